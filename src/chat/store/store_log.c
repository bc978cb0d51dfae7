/* The write-ahead log, taken away by another program (store.h).
 *
 * SQLite holds the log and its index by their descriptors.  Without their names, whoever opens the database makes new
 * ones: two logs, whose pages are mixed by the next checkpoint.  So nobody opens it until those who have it open have
 * closed it; they share what was removed and are safe from each other, but for a kill, until one of them is alone. */

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

void ebb_store_note_log(ebb_store *s)
{
    const char *path = opened_path(s);

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
