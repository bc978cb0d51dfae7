/* Turning the database (store/sealed.h). */
#include "store/sealed.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/folder.h"
#include "os/paths.h"
#include "store/sealed_vfs.h"
#include "store/store_sql.h"

enum { PAGE = EBB_SEALED_PAGE, MAGIC = 16, LAST_VERSION = 64 };

/* Whose first bytes cannot be read may be anything. */
static ebb_status look_into(int fd, const char *path, ebb_stored *how, ebb_error *err)
{
    char head[MAGIC];
    uint64_t n = 0;
    ebb_status st = ebb_file_size(fd, path, &n, err);

    if (st == EBB_OK && n == 0)
        *how = EBB_STORED_NOTHING;
    else if (st == EBB_OK && (st = ebb_file_read_at(fd, path, head, MAGIC, 0, err)) == EBB_OK)
        *how = memcmp(head, EBB_SEALED_MAGIC, MAGIC) == 0  ? EBB_STORED_SEALED
               : memcmp(head, EBB_PLAIN_MAGIC, MAGIC) == 0 ? EBB_STORED_PLAIN
                                                           : EBB_STORED_UNKNOWN;
    return st == EBB_FORMAT ? EBB_OK : st;       /* no file, or shorter than any: UNKNOWN */
}

ebb_status ebb_stored_look(const char *path, ebb_stored *how, ebb_error *err)
{
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &fd, err);

    *how = EBB_STORED_UNKNOWN;
    if (st == EBB_NOTFOUND && ebb_file_is_link(path))    /* what it leads to may be out of reach for now */
        return EBB_FAIL(err, EBB_IO, "%s is a link that leads nowhere: put back what it leads to, or mount its disk",
                        path);
    if (st == EBB_NOTFOUND) {                    /* a file that is there by now was made meanwhile, by another ebb */
        *how = EBB_STORED_NOTHING;
        return EBB_OK;
    }
    if (st != EBB_OK)
        return st;
    st = look_into(fd, path, how, err);
    ebb_file_close(fd);
    return st;
}

ebb_stored ebb_stored_how(const char *path)
{
    ebb_stored how;

    (void)!ebb_stored_look(path, &how, NULL);
    return how;
}

/* What is neither stays, and its key with it: it may be one of ours with a few damaged bytes. */
static ebb_status look_for_ours(const char *path, ebb_stored *how, ebb_error *err)
{
    ebb_status st = ebb_stored_look(path, how, err);

    if (st != EBB_OK || *how != EBB_STORED_UNKNOWN)
        return st;
    return EBB_FAIL(err, EBB_FORMAT, "%s is damaged, or not a session database; move it away, or put it back "
                    "from a copy", path);
}

ebb_status ebb_stored_check(const char *path, ebb_error *err)
{
    ebb_stored how;

    return look_for_ours(path, &how, err);
}

ebb_status ebb_stored_path(ebb_buf *out, ebb_error *err)
{
    return ebb_path_in(EBB_DIR_STATE, "sessions.db", out, err);
}

ebb_status ebb_stored_key_path(ebb_buf *out, ebb_error *err)
{
    return ebb_path_in(EBB_DIR_STATE, "sessions.key", out, err);
}

/* A folder that cannot be written to has nobody who turns what is in it. */
ebb_status ebb_stored_lock(const char *path, bool is_alone, int *fd, ebb_error *err)
{
    ebb_buf name = { 0 };
    ebb_status st = ebb_buf_addf(&name, "%s-lock", path) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");

    *fd = -1;
    if (st == EBB_OK)
        st = ebb_file_open(name.data, EBB_FILE_UPDATE_HERE, fd, err);
    if (st != EBB_OK && st != EBB_NOMEM && !is_alone)
        st = ebb_file_open(name.data, EBB_FILE_READ, fd, NULL) == EBB_OK ? EBB_OK : EBB_NOTFOUND;
    if (st == EBB_OK)
        st = is_alone ? ebb_file_lock(*fd, name.data, err) : ebb_file_lock_shared(*fd, name.data, err);
    ebb_buf_fini(&name);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_file_close(*fd);
    *fd = -1;
    if (st == EBB_BUSY)
        return EBB_FAIL(err, EBB_BUSY, is_alone ? "%s is open in another ebb: leave it first; `ebb stat` shows who"
                                                : "%s is just being encrypted or decrypted by another ebb",
                        path);
    return is_alone || st == EBB_NOMEM ? st : EBB_OK;
}

/* Whoever has the empty file makes it; who waited for that finds it made.  PATH-lock would not do: those who want a
 * database hold it shared already. */
ebb_status ebb_stored_make_sealed(const char *path, const ebb_seal *s, ebb_error *err)
{
    uint8_t plain[PAGE], page[PAGE];
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_UPDATE, &fd, err);

    if (st == EBB_OK)
        st = ebb_file_lock_wait(fd, path, err);
    if (st == EBB_OK && ebb_stored_how(path) == EBB_STORED_NOTHING) {
        ebb_sealed_empty_page(plain);
        ebb_sealed_page_close(s, 1, plain, page);
        st = ebb_file_replace(path, page, sizeof page, err);
    }
    ebb_file_close(fd);
    return st;
}

/* -- Files ---------------------------------------------------------------------------------------- */

/* A page of `from` as it shall stand in the other file. */
typedef ebb_status turn_page_fn(const ebb_seal *s, uint64_t place, uint8_t page[PAGE], const char *path,
                                ebb_error *err);

static ebb_status close_page(const ebb_seal *s, uint64_t place, uint8_t page[PAGE], const char *path, ebb_error *err)
{
    uint8_t plain[PAGE];

    memcpy(plain, page, PAGE);
    if (place == 1) {
        if (memcmp(page, EBB_PLAIN_MAGIC, MAGIC) != 0 || page[16] != PAGE >> 8 || page[17] != (PAGE & 255) ||
            page[20] != EBB_SEAL_EXTRA)
            return EBB_FAIL(err, EBB_FORMAT, "%s cannot be encrypted: its pages have no room for it", path);
        plain[18] = plain[19] = 2;               /* with a write-ahead log: there is no other one that is sealed */
    }
    ebb_sealed_page_close(s, place, plain, page);
    return EBB_OK;
}

/* The page whose bytes SQLite locks, at 1 GiB, is never written: where a database grew beyond it, it is a hole. */
static bool is_hole(uint64_t place, const uint8_t page[PAGE])
{
    uint64_t locked = (uint64_t)sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 0u);

    return place == locked / PAGE + 1 && place > 1 && page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

static ebb_status open_page(const ebb_seal *s, uint64_t place, uint8_t page[PAGE], const char *path, ebb_error *err)
{
    uint8_t plain[PAGE];

    if (is_hole(place, page))
        return EBB_OK;
    if (!ebb_sealed_page_open(s, place, page, plain))
        return EBB_FAIL(err, EBB_FORMAT, "%s is damaged, or encrypted with another key", path);
    memcpy(page, plain, PAGE);
    return EBB_OK;
}

/* All pages of `from` to a new file beside `path`, synced; *beside is its name. */
static ebb_status turn_pages(const char *from, const char *path, turn_page_fn *turn, const ebb_seal *s,
                             ebb_buf *beside, ebb_error *err)
{
    uint8_t page[PAGE];
    uint64_t n = 0;
    int in, out = -1;
    ebb_status st = ebb_file_open(from, EBB_FILE_READ, &in, err);

    if (st == EBB_OK)
        st = ebb_file_size(in, path, &n, err);
    if (st == EBB_OK && (n == 0 || n % PAGE != 0))
        st = EBB_FAIL(err, EBB_FORMAT, "%s is damaged: its last page is not whole", path);
    if (st == EBB_OK)
        st = ebb_file_begin_beside(path, beside, &out, err);
    for (uint64_t at = 0; st == EBB_OK && at < n; at += PAGE) {
        st = ebb_file_read_at(in, path, page, PAGE, at, err);
        if (st == EBB_OK)
            st = turn(s, at / PAGE + 1, page, path, err);
        if (st == EBB_OK)
            st = ebb_file_write_at(out, path, page, PAGE, at, err);
    }
    if (st == EBB_OK)
        st = ebb_file_sync(out, path, err);
    if (st != EBB_OK && out >= 0)
        ebb_file_remove(beside->data);
    ebb_file_close(in);
    ebb_file_close(out);
    explicit_bzero(page, sizeof page);
    return st;
}

/* `beside` takes the name; what had it is overwritten. */
static ebb_status put_in_place(const char *beside, const char *path, bool overwrites, ebb_error *err)
{
    ebb_status st = (overwrites ? ebb_file_rename_wiping : ebb_file_rename)(beside, path, err);

    if (st == EBB_OK)
        ebb_folder_sync_name(path);
    else
        ebb_file_remove(beside);
    return st;
}

/* Of one that still had its name, a loss of power might leave the beginning, which SQLite would bring to the database
 * once more, over what is newer. */
static void remove_log(const char *path)
{
    ebb_buf name = { 0 };

    if (ebb_buf_addf(&name, "%s-wal", path))
        ebb_file_remove_wiping(name.data);
    ebb_buf_fini(&name);
}

/* -- SQLite's part ---------------------------------------------------------------------------------- */

static ebb_status open_raw(const char *path, const char *vfs, ebb_store *s, ebb_error *err)
{
    int rc;

    *s = (ebb_store){ .path = strdup(path), .lock = -1 };
    if (!s->path)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, EBB_STORE_PATIENCE_MS);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    return rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);
}

static void close_raw(ebb_store *s)
{
    sqlite3_close(s->db);
    free(s->path);
}

/* Everything is in the file, and nobody else has it open, not even an older ebb that knows no PATH-lock. */
static int bring_log_to_file(ebb_store *s)
{
    int persists = 1, n_frames = 0, n_there = 0;
    int rc = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &persists);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA schema_version", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_FULL, &n_frames, &n_there);
    return rc == SQLITE_OK && n_frames != n_there ? SQLITE_BUSY : rc;
}

/* And its log is overwritten and gone.  We do not have it open while it is overwritten: a connection that left the log
 * would open it once more. */
static ebb_status leave_log(const char *path, ebb_error *err)
{
    ebb_store s;
    ebb_status st = open_raw(path, NULL, &s, err);
    int rc = st == EBB_OK ? bring_log_to_file(&s) : SQLITE_OK;

    if (rc != SQLITE_OK)
        st = ebb_store_fail(&s, rc, err);
    close_raw(&s);
    if (st == EBB_OK)
        remove_log(path);
    return st;
}

/* The database with room in its pages, as one file `to`, which is there and empty. */
static ebb_status copy_with_room(const char *path, const char *to, ebb_error *err)
{
    ebb_store s;
    int n_extra = EBB_SEAL_EXTRA, rc = SQLITE_OK;
    ebb_status st = leave_log(path, err);

    if (st != EBB_OK)
        return st;
    st = open_raw(path, NULL, &s, err);
    if (st == EBB_OK)
        rc = ebb_store_run(&s, "PRAGMA journal_mode = DELETE", "");
    if (st == EBB_OK && rc == SQLITE_OK)
        rc = sqlite3_file_control(s.db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n_extra);
    if (st == EBB_OK && rc == SQLITE_OK)
        rc = ebb_store_run(&s, "VACUUM main INTO ?1", "t", to);
    if (st == EBB_OK && rc != SQLITE_OK)
        st = ebb_store_fail(&s, rc, err);
    close_raw(&s);
    return st;
}

/* All that is in the log goes to the file.  Before it has read anything, SQLite knows of no log: a checkpoint then does
 * nothing, and says that it is done. */
static ebb_status empty_log(const char *path, ebb_error *err)
{
    ebb_store s;
    int rc = SQLITE_OK, n_left = -1;             /* -1: there is no log, which a sealed one always has */
    ebb_status st = open_raw(path, EBB_SEALED_VFS, &s, err);

    if (st == EBB_OK)
        rc = ebb_store_run(&s, "PRAGMA schema_version", "");
    if (st == EBB_OK && rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(s.db, "main", SQLITE_CHECKPOINT_TRUNCATE, &n_left, NULL);
    if (st == EBB_OK && rc != SQLITE_OK)
        st = ebb_store_fail(&s, rc, err);
    if (st == EBB_OK && n_left != 0)
        st = EBB_FAIL(err, EBB_IO, "%s-wal: what is in this log did not reach the database, and nothing is decrypted: "
                      "run ebb sessions list, and this once more", path);
    close_raw(&s);
    return st;
}

/* -- Turning ---------------------------------------------------------------------------------------- */

/* The copy in the clear is gone before the sealed one is in place. */
static ebb_status encrypt_file(const char *path, const ebb_seal *s, ebb_error *err)
{
    ebb_buf plain = { 0 }, sealed = { 0 };
    int fd;
    ebb_status st = ebb_file_begin_beside(path, &plain, &fd, err);

    ebb_file_close(fd);
    if (st == EBB_OK)
        st = copy_with_room(path, plain.data, err);
    if (st == EBB_OK)
        st = turn_pages(plain.data, path, close_page, s, &sealed, err);
    if (plain.len)
        ebb_file_wipe(plain.data);
    if (st == EBB_OK)
        st = put_in_place(sealed.data, path, true, err);
    ebb_buf_fini(&plain);
    ebb_buf_fini(&sealed);
    return st;
}

static ebb_status decrypt_file(const char *path, const ebb_seal *s, ebb_error *err)
{
    ebb_buf plain = { 0 };
    ebb_status st = empty_log(path, err);

    if (st == EBB_OK)
        st = turn_pages(path, path, open_page, s, &plain, err);
    if (st == EBB_OK)
        st = put_in_place(plain.data, path, false, err);
    ebb_buf_fini(&plain);
    return st;
}

typedef ebb_status turn_file_fn(const char *path, const ebb_seal *s, ebb_error *err);

static ebb_status turn_if(const char *path, ebb_stored from, turn_file_fn *turn, const ebb_seal *s, ebb_error *err)
{
    ebb_stored how;
    ebb_status st = look_for_ours(path, &how, err);

    ebb_file_wipe_begun(path);
    return st == EBB_OK && how == from ? turn(path, s, err) : st;
}

/* The copies of before migrations that stand beside this name. */
static ebb_status turn_copies(const char *path, ebb_stored from, turn_file_fn *turn, const ebb_seal *s, ebb_error *err)
{
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    for (int version = 1; st == EBB_OK && version < LAST_VERSION; version++) {
        ebb_buf_clear(&name);
        if (!ebb_buf_addf(&name, "%s" EBB_STORE_COPY_SUFFIX "%d", path, version))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
        else
            st = turn_if(name.data, from, turn, s, err);
    }
    ebb_buf_fini(&name);
    return st;
}

/* Beside the file, and beside a link to it: it may have been moved there since. */
static ebb_status turn_all_copies(const char *path, const char *real, ebb_stored from, turn_file_fn *turn,
                                  const ebb_seal *s, ebb_error *err)
{
    ebb_status st = real ? turn_copies(real, from, turn, s, err) : EBB_OK;

    return st == EBB_OK && (!real || strcmp(real, path) != 0) ? turn_copies(path, from, turn, s, err) : st;
}

/* Where the file is; a link to it stays one.  *real NULL: nothing has the name. */
static ebb_status find_real(const char *path, char **real, ebb_error *err)
{
    ebb_status st = ebb_stored_check(path, err);
    int failed;

    *real = st == EBB_OK ? realpath(path, NULL) : NULL;
    failed = errno;
    if (st != EBB_OK || *real || (failed == ENOENT && !ebb_file_is_link(path)))
        return st;
    return EBB_FAIL(err, EBB_IO, "%s: cannot be found: %s", path, strerror(failed));
}

/* Until the disk knows it by that name, what was there may come back with a loss of power. */
static ebb_status sync_folder_of(const char *path, ebb_error *err)
{
    char *copy = strdup(path);
    ebb_status st = copy ? ebb_folder_sync(dirname(copy), err) : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");

    free(copy);
    return st;
}

/* The database is the last to be encrypted, and the first that no longer is: as long as anything is in the clear, so is
 * the database, and whoever has its key is told (choose_files in store_open.c). */
static ebb_status turn_store(const char *path, ebb_stored from, const ebb_seal *s, ebb_error *err)
{
    bool encrypts = from == EBB_STORED_PLAIN;
    turn_file_fn *turn = encrypts ? encrypt_file : decrypt_file;
    char *real;
    ebb_status st = find_real(path, &real, err);

    if (st == EBB_OK && encrypts)
        st = turn_all_copies(path, real, from, turn, s, err);
    if (st == EBB_OK && real)
        st = turn_if(real, from, turn, s, err);
    if (st == EBB_OK && !encrypts)
        st = turn_all_copies(path, real, from, turn, s, err);
    if (st == EBB_OK && real && !encrypts)       /* its key goes next */
        st = sync_folder_of(real, err);
    free(real);
    return st;
}

ebb_status ebb_store_encrypt(const char *path, const ebb_seal *s, ebb_error *err)
{
    ebb_status st = turn_store(path, EBB_STORED_PLAIN, s, err);

    return st == EBB_OK && ebb_stored_how(path) == EBB_STORED_NOTHING ? ebb_stored_make_sealed(path, s, err) : st;
}

ebb_status ebb_store_decrypt(const char *path, const ebb_seal *s, ebb_error *err)
{
    ebb_status st = ebb_sealed_vfs_register(s, err);

    return st == EBB_OK ? turn_store(path, EBB_STORED_SEALED, s, err) : st;
}
