/* Statements and errors of SQLite (store/store_sql.h). */
#include "store/store_sql.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "os/confine.h"

/* Why the log was not written: a COMMIT that fails leaves no sqlite3_system_errno. */
static int log_errno(const ebb_store *s)
{
    sqlite3_file *log = NULL;
    int why = 0;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &why);
    return why;
}

/* SQLite calls a read that the disk refuses damage.  What the system said to it; 0: it is damage. */
static int refused_read_errno(const ebb_store *s)
{
    int why = 0;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_LAST_ERRNO, &why) != SQLITE_OK || why == 0)
        why = log_errno(s);
    return why == EIO || why == ENXIO ? why : 0;
}

/* What the system said; 0: nothing. */
static int system_errno(const ebb_store *s, int rc)
{
    if ((rc & 0xff) == SQLITE_FULL)
        return ENOSPC;
    if ((rc & 0xff) == SQLITE_CORRUPT)
        return s->db ? refused_read_errno(s) : 0;
    if (s->db && sqlite3_extended_errcode(s->db) == SQLITE_IOERR_WRITE)
        return log_errno(s);
    return (rc & 0xff) == SQLITE_IOERR && s->db ? sqlite3_system_errno(s->db) : 0;
}

/* Of a home on a network, for example. */
static bool is_lock_refused(const ebb_store *s)
{
    switch (s->db ? sqlite3_extended_errcode(s->db) : SQLITE_OK) {
    case SQLITE_IOERR_LOCK:
    case SQLITE_IOERR_RDLOCK:
    case SQLITE_IOERR_SHMLOCK:
    case SQLITE_IOERR_SHMMAP:
    case SQLITE_PROTOCOL:                        /* what becomes of a refusal after ten seconds of trying */
        return true;
    default:
        return false;
    }
}

/* The mode of what it leads to would let us write, of which a confined process may not make use everywhere. */
static bool is_link_out_of_reach(const ebb_store *s)
{
    char to[1];

    return ebb_confine_state()->landlock_abi > 0 && readlink(s->path, to, 1) > 0 && access(s->path, W_OK) == 0;
}

/* With the names of what stands beside it. */
static bool is_path_too_long(const ebb_store *s)
{
    const sqlite3_vfs *files = sqlite3_vfs_find(NULL);

    return files && strlen(s->path) + strlen("-journal") > (size_t)files->mxPathname;
}

ebb_status ebb_store_fail(const ebb_store *s, int rc, ebb_error *err)
{
    int why = system_errno(s, rc);

    if (why == ENOSPC || why == EDQUOT)          /* a quota is used up */
        return EBB_FAIL(err, EBB_IO, "%s cannot grow: the disk is full; free some space", s->path);
    if (why == EFBIG)
        return EBB_FAIL(err, EBB_IO, "%s cannot grow: this process may write no larger file (`ulimit -f` says how "
                        "large)", s->path);
    if (why == ENOMEM)                           /* for the log's index, which is mapped */
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its log", s->path);
    if (is_lock_refused(s))
        return EBB_FAIL(err, EBB_IO, "%s: its file system refuses the locks that sessions need%s%s; XDG_STATE_HOME="
                        "FOLDER keeps them on another one", s->path, why ? ": " : "", why ? strerror(why) : "");
    if (rc == SQLITE_READONLY_DBMOVED)
        return EBB_FAIL(err, EBB_NOTFOUND, "%s was moved, removed, replaced or cut short while it was open", s->path);
    if (rc == SQLITE_CONSTRAINT_UNIQUE ||
        (rc == SQLITE_CONSTRAINT && s->db && sqlite3_extended_errcode(s->db) == SQLITE_CONSTRAINT_UNIQUE))
        return EBB_FAIL(err, EBB_USAGE, EBB_STORE_NAME_TAKEN);
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBB_FAIL(err, EBB_BUSY, "%s is locked by another program", s->path);
    case SQLITE_READONLY:
        if (is_link_out_of_reach(s))
            return EBB_FAIL(err, EBB_IO, "%s is a link to where ebb does not write; see CONFINEMENT in ebb(1)",
                            s->path);
        return EBB_FAIL(err, EBB_IO, "%s cannot be written: it is read-only", s->path);
    case SQLITE_NOTADB:
        return EBB_FAIL(err, EBB_FORMAT, "%s is not a session database; move it away to begin a new one", s->path);
    case SQLITE_CORRUPT:
        if (why)
            return EBB_FAIL(err, EBB_IO, "%s cannot be read: %s; its disk fails, or is gone for now", s->path,
                            strerror(why));
        return EBB_FAIL(err, EBB_FORMAT, "%s is damaged; move it away to begin a new one", s->path);
    case SQLITE_INTERRUPT:
        return EBB_FAIL(err, EBB_CANCELED, "stopped");
    case SQLITE_NOMEM:
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the session database");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return EBB_FAIL(err, EBB_IO, "%s cannot be opened%s", s->path,
                        is_path_too_long(s) ? ": its path is too long for SQLite; XDG_STATE_HOME=FOLDER keeps "
                                              "sessions in another folder" : "");
    default:
        if (why)
            return EBB_FAIL(err, EBB_IO, "%s: disk I/O error: %s", s->path, strerror(why));
        return EBB_FAIL(err, EBB_IO, "%s: %s", s->path, s->db && sqlite3_errcode(s->db) != SQLITE_OK
                        ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));   /* a ROLLBACK since then has forgotten it */
    }
}

/* FTS5 has three words for it; constraints of ours have codes of their own. */
void ebb_store_note_damage(ebb_store *s)
{
    static const char format[] = "invalid fts5 file format";
    int code = sqlite3_extended_errcode(s->db);

    if (code == SQLITE_CORRUPT_VTAB || code == SQLITE_CONSTRAINT ||
        (code == SQLITE_ERROR && strncmp(sqlite3_errmsg(s->db), format, sizeof format - 1) == 0))
        s->is_index_damaged = true;
}

static int bind_all(sqlite3_stmt *q, const char *types, va_list ap)
{
    int rc = SQLITE_OK;

    for (int i = 1; *types && rc == SQLITE_OK; i++, types++) {
        if (*types == 'i')
            rc = sqlite3_bind_int64(q, i, va_arg(ap, int64_t));
        else if (*types == 'd')
            rc = sqlite3_bind_double(q, i, va_arg(ap, double));
        else if (*types == 't')
            rc = sqlite3_bind_text(q, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
        else {
            const void *p = va_arg(ap, const void *);
            size_t n = va_arg(ap, size_t);
            rc = *types == 'b' ? sqlite3_bind_blob64(q, i, n ? p : "", n, SQLITE_STATIC)
                               : sqlite3_bind_text64(q, i, n ? p : "", n, SQLITE_STATIC, SQLITE_UTF8);
        }
    }
    return rc;
}

static int prepare_bound(ebb_store *s, sqlite3_stmt **out, const char *sql, const char *types, va_list ap)
{
    int rc;

    ebb_store_widen_index(s);
    rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
    if (rc == SQLITE_OK)
        rc = bind_all(*out, types, ap);
    if (rc != SQLITE_OK) {
        ebb_store_note_damage(s);
        sqlite3_finalize(*out);
        *out = NULL;
    }
    return rc;
}

int ebb_store_prepare(ebb_store *s, sqlite3_stmt **out, const char *sql, const char *types, ...)
{
    va_list ap;
    int rc;

    va_start(ap, types);
    rc = prepare_bound(s, out, sql, types, ap);
    va_end(ap);
    return rc;
}

static int step_to_end(ebb_store *s, sqlite3_stmt *q)
{
    int rc;

    while ((rc = sqlite3_step(q)) == SQLITE_ROW)
        ;
    if (rc == SQLITE_DONE)
        return SQLITE_OK;
    ebb_store_note_damage(s);
    return rc;
}

int ebb_store_run(ebb_store *s, const char *sql, const char *types, ...)
{
    sqlite3_stmt *q;
    va_list ap;
    int rc;

    va_start(ap, types);
    rc = prepare_bound(s, &q, sql, types, ap);
    va_end(ap);
    if (rc != SQLITE_OK)
        return rc;
    rc = step_to_end(s, q);
    sqlite3_finalize(q);
    return rc;
}

int ebb_store_run_kept(ebb_store *s, sqlite3_stmt **kept, const char *sql, const char *types, ...)
{
    va_list ap;
    int rc = *kept ? SQLITE_OK : sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);

    if (rc != SQLITE_OK) {                       /* a file whose tables are somebody else's */
        ebb_store_note_damage(s);
        return rc;
    }
    va_start(ap, types);
    rc = bind_all(*kept, types, ap);
    va_end(ap);
    if (rc == SQLITE_OK)
        rc = step_to_end(s, *kept);
    sqlite3_reset(*kept);
    sqlite3_clear_bindings(*kept);               /* they point to what the caller may free */
    return rc;
}

void ebb_store_text(sqlite3_stmt *q, int column, char *out, size_t cap)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    size_t n = (size_t)sqlite3_column_bytes(q, column), at = 0;
    uint32_t cp;

    while (text && at < n) {
        size_t step = ebb_utf8_decode(text + at, n - at, &cp);
        if (step == 0 || at + step >= cap)
            break;
        at += step;
    }
    if (at)
        memcpy(out, text, at);
    out[at] = '\0';
}

int ebb_store_in_range(int value, int usual, int last)
{
    return value < 0 || value > last ? usual : value;
}
