/* Sealed files of SQLite (store/sealed_vfs.h). */
#include "store/sealed_vfs.h"

#include <sqlite3.h>
#include <string.h>

enum {
    PAGE = EBB_SEALED_PAGE, TEXT = PAGE - EBB_SEAL_EXTRA, MAGIC = 16,
    LOG_HEAD = 32, FRAME_HEAD = 24,              /* as SQLite has them */
    FRAME = FRAME_HEAD + PAGE,
    SEALED_LOG_HEAD = LOG_HEAD + EBB_SEAL_EXTRA, SEALED_FRAME_HEAD = FRAME_HEAD + EBB_SEAL_EXTRA,
    SEALED_FRAME = FRAME + 2 * EBB_SEAL_EXTRA,
};

typedef struct sealed_file {
    sqlite3_file    base;
    sqlite3_file   *real;
    const ebb_seal *seal;
} sealed_file;

static sqlite3_vfs *usual;
static const ebb_seal *seal_of_files;

/* -- Pages of the database ------------------------------------------------------------------------ */

static size_t clear_bytes(uint64_t place)
{
    return place == 1 ? MAGIC : 0;
}

void ebb_sealed_page_close(const ebb_seal *s, uint64_t place, const uint8_t plain[EBB_SEALED_PAGE],
                           uint8_t sealed[EBB_SEALED_PAGE])
{
    size_t clear = clear_bytes(place);

    memcpy(sealed, EBB_SEALED_MAGIC, clear);
    ebb_seal_block(s, EBB_SEAL_PAGE, place, plain + clear, TEXT - clear, sealed + clear, sealed + TEXT);
}

bool ebb_sealed_page_open(const ebb_seal *s, uint64_t place, const uint8_t sealed[EBB_SEALED_PAGE],
                          uint8_t plain[EBB_SEALED_PAGE])
{
    size_t clear = clear_bytes(place);

    if (memcmp(sealed, EBB_SEALED_MAGIC, clear) != 0 ||
        !ebb_seal_open(s, EBB_SEAL_PAGE, place, sealed + clear, TEXT - clear, sealed + TEXT, plain + clear))
        return false;
    memcpy(plain, EBB_PLAIN_MAGIC, clear);
    memset(plain + TEXT, 0, EBB_SEAL_EXTRA);
    return true;
}

void ebb_sealed_empty_page(uint8_t out[EBB_SEALED_PAGE])
{
    /* From byte 16 on: page size, write-ahead log for writers and readers, reserved bytes, fractions, change counter,
     * pages; byte 44: the schema's format; 56: UTF-8; 92: pages are valid for that counter.  Byte 100: a leaf of a
     * table with no cells, which begin behind its last usable byte. */
    static const uint8_t from_16[] = { PAGE >> 8, PAGE & 255, 2, 2, EBB_SEAL_EXTRA, 64, 32, 32, 0, 0, 0, 1, 0, 0, 0,
                                       1 },
                         from_100[] = { 13, 0, 0, 0, 0, TEXT >> 8, TEXT & 255, 0 };

    memset(out, 0, PAGE);
    memcpy(out, EBB_PLAIN_MAGIC, MAGIC);
    memcpy(out + 16, from_16, sizeof from_16);
    out[47] = 4;
    out[59] = 1;
    out[95] = 1;
    memcpy(out + 100, from_100, sizeof from_100);
}

static int read_page(sealed_file *f, sqlite3_int64 index, uint8_t out[PAGE])
{
    uint8_t sealed[PAGE];
    int rc = f->real->pMethods->xRead(f->real, sealed, PAGE, index * PAGE);

    if (rc != SQLITE_OK) {                       /* a part of a page is none: it stands in the log */
        memset(out, 0, PAGE);
        return rc;
    }
    return ebb_sealed_page_open(f->seal, (uint64_t)index + 1, sealed, out) ? SQLITE_OK : SQLITE_CORRUPT;
}

/* Some bytes of one page: SQLite asks for the first hundred, which say how large pages are.  A torn page 1 is in the
 * log, so they are answered all the same: of ours they are always the same. */
static int read_some(sealed_file *f, uint8_t *out, int n, sqlite3_int64 at)
{
    uint8_t page[PAGE];
    int rc = read_page(f, at / PAGE, page);

    if (rc == SQLITE_CORRUPT && at + n <= 100) {
        ebb_sealed_empty_page(page);
        rc = SQLITE_OK;
    }
    memcpy(out, page + at % PAGE, (size_t)n);
    return rc;
}

static int db_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    sealed_file *f = (sealed_file *)file;

    if (at % PAGE == 0 && n == PAGE)
        return read_page(f, at / PAGE, out);
    return at % PAGE + n <= PAGE ? read_some(f, out, n, at) : SQLITE_IOERR_READ;
}

static int db_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    sealed_file *f = (sealed_file *)file;
    uint8_t sealed[PAGE];

    if (at % PAGE != 0 || n != PAGE)
        return SQLITE_IOERR_WRITE;
    ebb_sealed_page_close(f->seal, (uint64_t)(at / PAGE) + 1, data, sealed);
    return f->real->pMethods->xWrite(f->real, sealed, PAGE, at);
}

static int db_truncate(sqlite3_file *file, sqlite3_int64 n)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xTruncate(f->real, n);
}

static int db_size(sqlite3_file *file, sqlite3_int64 *n)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xFileSize(f->real, n);
}

/* -- The write-ahead log --------------------------------------------------------------------------- */

/* A piece of the log as SQLite knows it, and where it stands. */
typedef struct log_piece {
    uint64_t      place;         /* with which it is sealed: 0 the head, 2i + 1 and 2i + 2 of frame i */
    sqlite3_int64 at;
    size_t        n;
} log_piece;

static log_piece log_head(void)
{
    return (log_piece){ 0, 0, LOG_HEAD };
}

static log_piece frame_head(sqlite3_int64 i)
{
    return (log_piece){ 2 * (uint64_t)i + 1, SEALED_LOG_HEAD + i * SEALED_FRAME, FRAME_HEAD };
}

static log_piece frame_page(sqlite3_int64 i)
{
    return (log_piece){ 2 * (uint64_t)i + 2, SEALED_LOG_HEAD + i * SEALED_FRAME + SEALED_FRAME_HEAD, PAGE };
}

/* The pieces that stand at [at, at + n); 0: it asks for parts of some. */
static int pieces_at(sqlite3_int64 at, int n, log_piece out[2])
{
    sqlite3_int64 i = (at - LOG_HEAD) / FRAME, in = at < LOG_HEAD ? -1 : (at - LOG_HEAD) % FRAME;

    if (at == 0 && n == LOG_HEAD)
        out[0] = log_head();
    else if (in == 0 && n == FRAME_HEAD)
        out[0] = frame_head(i);
    else if (in == FRAME_HEAD && n == PAGE)
        out[0] = frame_page(i);
    else if (in == 0 && n == FRAME) {
        out[0] = frame_head(i);
        out[1] = frame_page(i);
        return 2;
    } else
        return 0;
    return 1;
}

static int read_piece(sealed_file *f, const log_piece *p, uint8_t *out)
{
    uint8_t sealed[PAGE + EBB_SEAL_EXTRA];
    int rc = f->real->pMethods->xRead(f->real, sealed, (int)(p->n + EBB_SEAL_EXTRA), p->at);

    if (rc == SQLITE_OK && !ebb_seal_open(f->seal, EBB_SEAL_LOG, p->place, sealed, p->n, sealed + p->n, out))
        rc = SQLITE_CORRUPT;
    if (rc != SQLITE_OK)
        memset(out, 0, p->n);
    return rc;
}

/* Where a transaction outgrows SQLite's cache and writes a page of its own once more, the sums from there on are made
 * anew, and the one before it is read by itself: eight bytes of a head. */
static int read_of_head(sealed_file *f, void *out, size_t n, sqlite3_int64 at)
{
    sqlite3_int64 i = (at - LOG_HEAD) / FRAME, from = at < LOG_HEAD ? at : (at - LOG_HEAD) % FRAME;
    log_piece p = at < LOG_HEAD ? log_head() : frame_head(i);
    uint8_t head[LOG_HEAD];
    int rc;

    if ((size_t)from + n > p.n)
        return SQLITE_IOERR_READ;
    rc = read_piece(f, &p, head);
    memcpy(out, head + from, n);
    return rc;
}

/* Only a page that is wanted for itself is damage: where the log is gone through for its end, what is torn ends it. */
static int log_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    log_piece p[2];
    int n_pieces = pieces_at(at, n, p), rc = SQLITE_OK;
    uint8_t *to = out;

    if (n_pieces == 0)
        return read_of_head((sealed_file *)file, out, (size_t)n, at);
    for (int i = 0; i < n_pieces && rc == SQLITE_OK; to += p[i++].n)
        rc = read_piece((sealed_file *)file, &p[i], to);
    if (rc == SQLITE_CORRUPT && (n_pieces == 2 || n != PAGE)) {
        memset(out, 0, (size_t)n);
        rc = SQLITE_OK;
    }
    return rc;
}

static int write_piece(sealed_file *f, const log_piece *p, const uint8_t *data)
{
    uint8_t sealed[PAGE + EBB_SEAL_EXTRA];

    ebb_seal_block(f->seal, EBB_SEAL_LOG, p->place, data, p->n, sealed, sealed + p->n);
    return f->real->pMethods->xWrite(f->real, sealed, (int)(p->n + EBB_SEAL_EXTRA), p->at);
}

static int log_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    log_piece p[2];
    int n_pieces = pieces_at(at, n, p), rc = n_pieces ? SQLITE_OK : SQLITE_IOERR_WRITE;
    const uint8_t *from = data;

    for (int i = 0; i < n_pieces && rc == SQLITE_OK; from += p[i++].n)
        rc = write_piece((sealed_file *)file, &p[i], from);
    return rc;
}

/* A log of n bytes as SQLite counts ends here; rounded up to whole frames. */
static int log_truncate(sqlite3_file *file, sqlite3_int64 n)
{
    sealed_file *f = (sealed_file *)file;
    sqlite3_int64 end = n == 0 ? 0 : SEALED_LOG_HEAD;

    if (n > LOG_HEAD)
        end += (n - LOG_HEAD + FRAME - 1) / FRAME * SEALED_FRAME;
    return f->real->pMethods->xTruncate(f->real, end);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *n)
{
    sealed_file *f = (sealed_file *)file;
    sqlite3_int64 sealed;
    int rc = f->real->pMethods->xFileSize(f->real, &sealed);

    if (rc == SQLITE_OK)
        *n = sealed < SEALED_LOG_HEAD ? 0 : LOG_HEAD + (sealed - SEALED_LOG_HEAD) / SEALED_FRAME * FRAME;
    return rc;
}

/* -- What both leave to the usual file ------------------------------------------------------------- */

static int file_close(sqlite3_file *file)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xClose(f->real);
}

static int file_sync(sqlite3_file *file, int flags)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xSync(f->real, flags);
}

static int file_lock(sqlite3_file *file, int level)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xLock(f->real, level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xUnlock(f->real, level);
}

static int file_is_reserved(sqlite3_file *file, int *out)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

/* No mapping, which would show what is sealed; no size in advance, which would be another one. */
static int file_control(sqlite3_file *file, int op, void *arg)
{
    sealed_file *f = (sealed_file *)file;

    switch (op) {
    case SQLITE_FCNTL_MMAP_SIZE:
        *(sqlite3_int64 *)arg = 0;
        return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT:
    case SQLITE_FCNTL_CHUNK_SIZE:
        return SQLITE_OK;
    default:
        return f->real->pMethods->xFileControl(f->real, op, arg);
    }
}

static int file_sector_size(sqlite3_file *file)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xSectorSize(f->real);
}

/* A page is not written at once, and one beside it is not harmed; then SQLite writes whole pages to the log. */
static int file_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int file_shm_map(sqlite3_file *file, int region, int n, int extends, void volatile **out)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xShmMap(f->real, region, n, extends, out);
}

static int file_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xShmLock(f->real, at, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    sealed_file *f = (sealed_file *)file;

    f->real->pMethods->xShmBarrier(f->real);
}

static int file_shm_unmap(sqlite3_file *file, int deletes)
{
    sealed_file *f = (sealed_file *)file;

    return f->real->pMethods->xShmUnmap(f->real, deletes);
}

#define COMMON                                                                                          \
    .xClose = file_close, .xSync = file_sync, .xLock = file_lock, .xUnlock = file_unlock,               \
    .xCheckReservedLock = file_is_reserved, .xFileControl = file_control,                               \
    .xSectorSize = file_sector_size, .xDeviceCharacteristics = file_characteristics,                    \
    .xShmMap = file_shm_map, .xShmLock = file_shm_lock, .xShmBarrier = file_shm_barrier,                \
    .xShmUnmap = file_shm_unmap

static const sqlite3_io_methods db_methods = {
    .iVersion = 2, .xRead = db_read, .xWrite = db_write, .xTruncate = db_truncate, .xFileSize = db_size, COMMON,
};
static const sqlite3_io_methods log_methods = {
    .iVersion = 2, .xRead = log_read, .xWrite = log_write, .xTruncate = log_truncate, .xFileSize = log_size, COMMON,
};

/* -- The VFS ---------------------------------------------------------------------------------------- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    sealed_file *f = (sealed_file *)file;
    int rc;

    (void)vfs;
    f->base.pMethods = NULL;
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        return SQLITE_CANTOPEN;
    f->real = (sqlite3_file *)(f + 1);
    f->seal = seal_of_files;
    rc = usual->xOpen(usual, name, f->real, flags, out_flags);
    if (f->real->pMethods)
        f->base.pMethods = flags & SQLITE_OPEN_WAL ? &log_methods : &db_methods;
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs)
{
    (void)vfs;
    return usual->xDelete(usual, name, syncs);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs;
    return usual->xAccess(usual, name, flags, out);
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int cap, char *out)
{
    (void)vfs;
    return usual->xFullPathname(usual, name, cap, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    return usual->xRandomness(usual, n, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return usual->xSleep(usual, us);
}

static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    return usual->xCurrentTime(usual, out);
}

static int vfs_last_error(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    return usual->xGetLastError ? usual->xGetLastError(usual, n, out) : 0;
}

static int vfs_time_64(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void)vfs;
    return usual->xCurrentTimeInt64(usual, out);
}

ebb_status ebb_sealed_vfs_register(const ebb_seal *s, ebb_error *err)
{
    static sqlite3_vfs vfs = {
        .iVersion = 2, .zName = EBB_SEALED_VFS, .xOpen = vfs_open, .xDelete = vfs_delete, .xAccess = vfs_access,
        .xFullPathname = vfs_full_name, .xRandomness = vfs_randomness, .xSleep = vfs_sleep, .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error, .xCurrentTimeInt64 = vfs_time_64,
    };

    seal_of_files = s;
    if (sqlite3_vfs_find(EBB_SEALED_VFS))
        return EBB_OK;
    usual = sqlite3_vfs_find(NULL);
    if (!usual || usual->iVersion < 2)
        return EBB_FAIL(err, EBB_IO, "this SQLite has no files that could be encrypted");
    vfs.szOsFile = (int)sizeof(sealed_file) + usual->szOsFile;
    vfs.mxPathname = usual->mxPathname;
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK
               ? EBB_OK
               : EBB_FAIL(err, EBB_IO, "this SQLite takes no files that are encrypted");
}
