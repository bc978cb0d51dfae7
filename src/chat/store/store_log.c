/* The write-ahead log, taken away by another program (store.h).
 *
 * SQLite holds the log and its index by their descriptors.  Without their names, whoever opens the database makes new
 * ones: two logs, whose pages are mixed by the next checkpoint.  So nobody opens it until those who have it open have
 * closed it; they share what was removed and are safe from each other, but for a kill, until one of them is alone. */

#include <string.h>

#include "base/buf.h"
#include "store/store_sql.h"

enum { LOOK_MS = 10 };

static bool look_up(const char *path, size_t i, ebb_file_id *out)
{
    static const char *const suffixes[EBB_STORE_LOG_FILES] = { "-wal", "-shm" };
    ebb_buf name = { 0 };
    bool is_there = ebb_buf_addf(&name, "%s%s", path, suffixes[i]) && ebb_file_look_up(name.data, out);

    ebb_buf_fini(&name);
    return is_there;
}

/* As it was opened: a link in the path may lead elsewhere by now.  "": in memory. */
static const char *opened_path(const ebb_store *s)
{
    const char *path = sqlite3_db_filename(s->db, "main");

    return path ? path : "";
}

/* Of what was opened as immutable none is used: what is there was left behind, and SQLite would map the index for
 * ever. */
void ebb_store_note_log(ebb_store *s)
{
    const char *path = opened_path(s);

    if (*path && sqlite3_uri_boolean(path, "immutable", 0))
        return;
    for (size_t i = 0; *path && i < EBB_STORE_LOG_FILES; i++)
        if (!look_up(path, i, &s->log[i]))
            s->log[i].inode = 0;
}

bool ebb_store_has_lost_log(const ebb_store *s)
{
    ebb_file_id now;

    for (size_t i = 0; i < EBB_STORE_LOG_FILES; i++)
        if (s->log[i].inode && (!look_up(opened_path(s), i, &now) || now.inode != s->log[i].inode ||
                                now.device != s->log[i].device))
            return true;
    return false;
}

/* -- Cut short by another program ------------------------------------------------------------- */

enum { INDEX_BYTES = 32 << 10 };     /* of which SQLite maps so many at once */
enum { LOG_HEAD_BYTES = 32, FRAME_HEAD_BYTES = 24 };

/* The beginning of the index (SQLite's "WAL-index format"), in the order of bytes of this machine. */
typedef struct index_head {
    struct {
        uint32_t version, unused, n_changes;
        uint8_t  is_made, is_big_endian;
        uint16_t page_bytes;     /* 1: 65536 */
        uint32_t n_frames;       /* those of finished transactions */
        uint32_t rest[7];
    } copies[2];
    uint32_t n_in_database;      /* frames that a checkpoint has brought there */
} index_head;

/* A part of it.  NULL: there is none that can be written. */
static volatile void *map_index(ebb_store *s, uint64_t at, bool widens)
{
    sqlite3_file *file = NULL;
    volatile void *index = NULL;

    if (s->log[1].inode && sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
        file->pMethods &&
        file->pMethods->xShmMap(file, (int)(at / INDEX_BYTES), INDEX_BYTES, widens, &index) == SQLITE_OK)
        return index;
    return NULL;
}

/* Without it SQLite reads the log as after a crash: as far as that is whole. */
static void forget_index(volatile index_head *head)
{
    memset((void *)head->copies, 0, sizeof head->copies);
}

/* SQLite widens the file for what is mapped behind its old end; we may not open it, as closing it would give up
 * SQLite's locks.  Not in a transaction, whose end would call the new index whole. */
void ebb_store_widen_index(ebb_store *s)
{
    ebb_file_id now, *known = &s->log[1];
    volatile index_head *head;

    if (known->inode == 0 || !sqlite3_get_autocommit(s->db) || !look_up(opened_path(s), 1, &now) ||
        now.inode != known->inode || now.device != known->device)
        return;
    if (now.n_bytes >= known->n_bytes)
        known->n_bytes = now.n_bytes;
    else if (map_index(s, known->n_bytes, true) && (head = map_index(s, 0, false)) != NULL)
        forget_index(head);
}

static sqlite3_int64 log_bytes(const volatile index_head *head, uint32_t n_frames)
{
    uint32_t page = head->copies[0].page_bytes == 1 ? 65536 : head->copies[0].page_bytes;

    return n_frames ? LOG_HEAD_BYTES + n_frames * (sqlite3_int64)(FRAME_HEAD_BYTES + page) : 0;
}

/* SQLite goes by the index, and would bring to the database what is no longer in the log.  What is left of the log is
 * older than the database where a checkpoint had more of it. */
bool ebb_store_drop_cut_log(ebb_store *s)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 n_bytes;
    volatile index_head *head;
    uint32_t n_frames;

    ebb_store_widen_index(s);
    head = map_index(s, 0, false);
    n_frames = head ? head->copies[0].n_frames : 0;
    if (n_frames == 0 || sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK ||
        !log->pMethods || log->pMethods->xFileSize(log, &n_bytes) != SQLITE_OK ||
        n_bytes >= log_bytes(head, n_frames) ||
        head->copies[0].n_frames != n_frames)    /* another ebb has just emptied it, as it may */
        return false;
    if (n_bytes < log_bytes(head, head->n_in_database))
        log->pMethods->xTruncate(log, 0);
    forget_index(head);
    return true;
}

/* As SQLite asks it before it removes a log: whoever has the database open holds this lock shared. */
static bool has_no_others(ebb_store *s)
{
    sqlite3_file *file = NULL;
    bool is;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file->pMethods)
        return false;
    is = file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK;
    return file->pMethods->xUnlock(file, SQLITE_LOCK_SHARED) == SQLITE_OK && is;
}

ebb_status ebb_store_empty_log(ebb_store *s, bool *is_alone, ebb_error *err)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    *is_alone = rc == SQLITE_OK && has_no_others(s);
    return rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);
}

static bool has_log(const char *path)
{
    ebb_file_id id;

    return look_up(path, 0, &id) && look_up(path, 1, &id);
}

static bool is_open_elsewhere(const char *path)
{
    bool is = false;
    int fd;

    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) == EBB_OK) {
        is = ebb_file_has_locked_bytes(fd);
        ebb_file_close(fd);
    }
    return is;
}

/* Who is just opening or closing it has the lock without a log for a moment. */
ebb_status ebb_store_expect_log(const char *path, ebb_error *err)
{
    int waited_ms = 0;

    while (!has_log(path) && is_open_elsewhere(path) && waited_ms < EBB_STORE_PATIENCE_MS)
        waited_ms += sqlite3_sleep(LOOK_MS);
    return waited_ms < EBB_STORE_PATIENCE_MS
               ? EBB_OK
               : EBB_FAIL(err, EBB_BUSY, "another ebb has %s open, and its log (-wal, -shm) was removed: say something "
                          "there, or leave it", path);
}
