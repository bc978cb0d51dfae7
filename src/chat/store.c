/* Opening the store, errors, statements (store.h, store_sql.h). */
#include "store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "os/file.h"
#include "os/paths.h"
#include "store_sql.h"


static bool is_full(const ebb_store *s, int rc)
{
    int why = (rc & 0xff) == SQLITE_IOERR && s->db ? sqlite3_system_errno(s->db) : 0;

    return (rc & 0xff) == SQLITE_FULL || why == ENOSPC || why == EDQUOT;
}

ebb_status ebb_store_fail(const ebb_store *s, int rc, ebb_error *err)
{
    if (is_full(s, rc))
        return EBB_FAIL(err, EBB_IO, "%s cannot grow: the disk is full; free some room there", s->path);
    if (rc == SQLITE_CONSTRAINT && s->db && sqlite3_extended_errcode(s->db) == SQLITE_CONSTRAINT_UNIQUE)
        return EBB_FAIL(err, EBB_USAGE, "there is already a session of that name; choose another one");
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBB_FAIL(err, EBB_BUSY, "%s is locked by another program", s->path);
    case SQLITE_READONLY:
        return EBB_FAIL(err, EBB_IO, "%s cannot be written: it is read-only", s->path);
    case SQLITE_NOTADB:
        return EBB_FAIL(err, EBB_FORMAT, "%s is no session database; move it away to begin a new one", s->path);
    case SQLITE_CORRUPT:
        return EBB_FAIL(err, EBB_FORMAT, "%s is damaged; move it away to begin a new one", s->path);
    case SQLITE_NOMEM:
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the session database");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return EBB_FAIL(err, EBB_IO, "%s cannot be opened", s->path);
    default:
        return EBB_FAIL(err, EBB_IO, "%s: %s", s->path, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
    }
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

static int prepare(ebb_store *s, sqlite3_stmt **out, const char *sql, const char *types, va_list ap)
{
    int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);

    if (rc == SQLITE_OK)
        rc = bind_all(*out, types, ap);
    if (rc != SQLITE_OK) {
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
    rc = prepare(s, out, sql, types, ap);
    va_end(ap);
    return rc;
}

int ebb_store_run(ebb_store *s, const char *sql, const char *types, ...)
{
    sqlite3_stmt *q;
    va_list ap;
    int rc;

    va_start(ap, types);
    rc = prepare(s, &q, sql, types, ap);
    va_end(ap);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW)
        ;
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
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

/* The file is made here so that it is 0600; SQLite gives its companions the same mode. */
static ebb_status make_file(const char *path, ebb_error *err)
{
    const char *slash = strrchr(path, '/');
    int fd;
    ebb_status st = EBB_OK;

    if (slash && slash != path) {
        char *dir = strndup(path, (size_t)(slash - path));
        if (!dir)
            return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
        st = ebb_file_mkdirs(dir, err);
        free(dir);
    }
    if (st == EBB_OK && ebb_file_open(path, EBB_FILE_UPDATE, &fd, err) == EBB_OK) {
        ebb_file_close(fd);
        return EBB_OK;
    }
    /* It may still be there and readable. */
    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return st == EBB_OK ? EBB_IO : st;
    ebb_file_close(fd);
    return EBB_OK;
}

/* SQLite's defaults are not ours: wait for locks, check references, keep readers free of writers. */
static ebb_status set_up(ebb_store *s, ebb_error *err)
{
    int rc;

    sqlite3_busy_timeout(s->db, EBB_STORE_PATIENCE_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    rc = ebb_store_run(s, "PRAGMA foreign_keys = ON", "");
    s->is_readonly = sqlite3_db_readonly(s->db, "main") == 1;
    if (rc == SQLITE_OK && !s->is_readonly)
        rc = ebb_store_run(s, "PRAGMA journal_mode = WAL", "");
    if ((rc & 0xff) == SQLITE_READONLY) {
        s->is_readonly = true;
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    return ebb_store_migrate(s, err);
}

static char *default_path(ebb_error *err)
{
    ebb_buf b = { 0 };

    if (ebb_path_in(EBB_DIR_STATE, "sessions.db", &b, err) == EBB_OK)
        return ebb_buf_take(&b);
    ebb_buf_fini(&b);
    return NULL;
}

ebb_status ebb_store_open(const char *path, ebb_store **out, ebb_error *err)
{
    ebb_store *s = calloc(1, sizeof *s);
    ebb_error why = { .code = EBB_NOMEM, .msg = "no memory for the session database" };
    bool in_memory = path && strcmp(path, ":memory:") == 0;
    ebb_status st = EBB_NOMEM;
    int rc;

    *out = NULL;
    if (!s || !(s->path = path ? strdup(path) : default_path(&why))) {
        st = why.code;
        goto fail;
    }
    st = in_memory ? EBB_OK : make_file(s->path, &why);
    if (st != EBB_OK)
        goto fail;
    rc = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    st = rc == SQLITE_OK ? set_up(s, &why) : ebb_store_fail(s, rc, &why);
    if (st != EBB_OK)
        goto fail;
    *out = s;
    return EBB_OK;
fail:
    if (err)
        *err = why;
    ebb_store_close(s);
    return st;
}

void ebb_store_close(ebb_store *s)
{
    if (!s)
        return;
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

const char *ebb_store_path(const ebb_store *s)
{
    return s->path;
}

bool ebb_store_is_readonly(const ebb_store *s)
{
    return s->is_readonly;
}
