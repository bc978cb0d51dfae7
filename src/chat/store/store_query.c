/* Looking over all sessions (store.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "os/folder.h"
#include "store/store_sql.h"

/* The first column of the first row; NOTFOUND without a message if there is none. */
static ebb_status first_value(ebb_store *s, sqlite3_stmt *q, int64_t *out, ebb_error *err)
{
    int rc = sqlite3_step(q);

    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    if (rc == SQLITE_ROW)
        return EBB_OK;
    return rc == SQLITE_DONE ? EBB_NOTFOUND : ebb_store_fail(s, rc, err);
}

int64_t ebb_session_number(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0' ? strtoll(name, NULL, 10) : 0;
}

/* What a wrong clock has dated ahead, by hours or by years, comes last, or it would be the newest one until then; but
 * where nothing was said anywhere since, as right after the clock is set, it is the newest one.  Of `sessions AS s`. */
#define NEWEST_FIRST "s.updated_ms > 1000 * (strftime('%s', 'now') + 600)" \
    " AND s.id IS NOT (SELECT session FROM messages ORDER BY id DESC LIMIT 1), s.updated_ms DESC, s.id DESC"

/* Several sessions have the title: an error that lists them, for the user to choose. */
static ebb_status fail_ambiguous(const char *title, const int64_t *ids, size_t n, ebb_error *err)
{
    enum { TOLD = 8 };
    ebb_buf told = { 0 };
    ebb_status st;

    for (size_t i = 0; i < n && i < TOLD; i++)
        ebb_buf_addf(&told, "%s%lld", i ? ", " : "", (long long)ids[i]);
    st = EBB_FAIL(err, EBB_LIMIT, "%zu sessions are called '%.100s': %s%s; name one by its number", n, title,
                  ebb_buf_text(&told), n > TOLD ? " ..." : "");
    ebb_buf_fini(&told);
    return st;
}

/* The first column of each row; *ids is free()d by the caller, NULL on failure. */
static ebb_status all_values(ebb_store *s, sqlite3_stmt *q, int64_t **ids, size_t *n, ebb_error *err)
{
    size_t cap = 0;
    int rc;

    *ids = NULL;
    *n = 0;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        int64_t *p = ebb_grow(*ids, *n, &cap, sizeof *p);

        if (!p) {
            rc = SQLITE_NOMEM;
            break;
        }
        *ids = p;
        p[(*n)++] = sqlite3_column_int64(q, 0);
    }
    sqlite3_finalize(q);
    if (rc == SQLITE_DONE)
        return EBB_OK;
    free(*ids);
    *ids = NULL;
    *n = 0;
    return ebb_store_fail(s, rc, err);
}

/* Lists show the titles of sessions without a name; a title behind a name counts only where none of those has it. */
static ebb_status find_by_title(ebb_store *s, const char *title, int64_t *session, ebb_error *err)
{
    int64_t *ids = NULL;
    size_t n = 0;
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT id FROM sessions AS s WHERE title = ?1 AND (name IS NULL OR NOT EXISTS"
                               " (SELECT 1 FROM sessions WHERE title = ?1 AND name IS NULL)) ORDER BY " NEWEST_FIRST,
                               "t", title);
    ebb_status st = rc == SQLITE_OK ? all_values(s, q, &ids, &n, err) : ebb_store_fail(s, rc, err);

    if (st == EBB_OK && n == 0)
        st = EBB_NOTFOUND;
    if (n > 1)
        st = fail_ambiguous(title, ids, n, err);
    else if (n == 1)
        *session = ids[0];
    free(ids);
    return st;
}

ebb_status ebb_store_list_under_way(ebb_store *s, int64_t **out, size_t *n, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT s.id FROM sessions AS s JOIN messages AS m ON m.id = s.leaf"
                                      " WHERE m.finish = 0 AND m.role = ?", "i", (int64_t)EBB_ROLE_ASSISTANT);

    *out = NULL;
    *n = 0;
    return rc == SQLITE_OK ? all_values(s, q, out, n, err) : ebb_store_fail(s, rc, err);
}

ebb_status ebb_store_find_named(ebb_store *s, const char *name, int64_t *session, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT id FROM sessions WHERE name = ?", "t", name);

    return rc == SQLITE_OK ? first_value(s, q, session, err) : ebb_store_fail(s, rc, err);
}

static ebb_status find_by_number(ebb_store *s, int64_t number, int64_t *session, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT id FROM sessions WHERE id = ?", "i", number);

    return rc == SQLITE_OK ? first_value(s, q, session, err) : ebb_store_fail(s, rc, err);
}

/* OK: the session has a name of digits, and they are not its number; NOTFOUND without a message if not. */
static ebb_status check_called_by_other_number(ebb_store *s, int64_t session, ebb_error *err)
{
    int64_t found;
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT id FROM sessions WHERE id = ? AND name <> '' AND"
                               " name NOT GLOB '*[^0-9]*' AND CAST(name AS INTEGER) <> id", "i", session);

    return rc == SQLITE_OK ? first_value(s, q, &found, err) : ebb_store_fail(s, rc, err);
}

void ebb_store_word(ebb_store *s, int64_t session, char out[static EBB_SESSION_WORD])
{
    int width = snprintf(out, EBB_SESSION_WORD, "%lld", (long long)session);
    int64_t named;

    if (check_called_by_other_number(s, session, NULL) == EBB_OK)
        snprintf(out, EBB_SESSION_WORD, "%0*lld", ++width, (long long)session);
    while (width < EBB_SESSION_WORD - 1 && ebb_store_find_named(s, out, &named, NULL) == EBB_OK && named != session)
        snprintf(out, EBB_SESSION_WORD, "%0*lld", ++width, (long long)session);
}

/* An older ebb gave the number away after the name, or the name after the number; or the session with the number was
 * deleted meanwhile, and came back with it.  Which of the two is meant cannot be told, and one may be to be deleted. */
static ebb_status fail_two_meant(ebb_store *s, const char *name, int64_t named, int64_t numbered, ebb_error *err)
{
    char one[EBB_SESSION_WORD], other[EBB_SESSION_WORD];

    ebb_store_word(s, named, one);
    ebb_store_word(s, numbered, other);
    return EBB_FAIL(err, EBB_LIMIT, "'%.20s' is the name of one session and the number of another: %.40s is the one of "
                    "this name, %.40s the other; `ebb sessions rename %.40s NAME` tells them apart", name, one, other,
                    one);
}

/* The number by which one is asked for, also as a list pads it; a name has all of its blanks. */
static int64_t number_asked_for(const char *name)
{
    return ebb_session_number(name + strspn(name, " "));
}

/* A number goes before a title: a title comes with an import, or of a question, and must not take the place of the
 * session that a list shows under this number. */
ebb_status ebb_store_find(ebb_store *s, const char *name, int64_t *session, ebb_error *err)
{
    int64_t numbered = 0;
    ebb_status st = ebb_store_find_named(s, name, session, err), of_number;

    if (st != EBB_OK && st != EBB_NOTFOUND)
        return st;
    of_number = find_by_number(s, st == EBB_OK ? ebb_session_number(name) : number_asked_for(name), &numbered, err);
    if (st == EBB_OK && of_number == EBB_OK && numbered != *session)
        return fail_two_meant(s, name, *session, numbered, err);
    if (st == EBB_NOTFOUND && of_number == EBB_OK)
        *session = numbered;
    st = st == EBB_OK && of_number == EBB_NOTFOUND ? st : of_number;
    if (st == EBB_NOTFOUND)
        st = find_by_title(s, name, session, err);
    return st == EBB_NOTFOUND
           ? EBB_FAIL(err, EBB_NOTFOUND, "there is no session '%s'%s", name,
                      strcmp(s->path, ":memory:") == 0 ? " among those in memory; /list shows them"
                                                       : "; /list or `ebb sessions list` shows all") : st;
}

ebb_status ebb_store_find_or_begin(ebb_store *s, const char *name, int64_t *session, ebb_error *err)
{
    char word[EBB_SESSION_WORD];
    ebb_status st = ebb_store_find(s, name, session, err);

    if (st != EBB_OK || name[strspn(name, " ")] == '0' || number_asked_for(name) != *session)
        return st;
    st = check_called_by_other_number(s, *session, err);
    if (st != EBB_OK)
        return st == EBB_NOTFOUND ? EBB_OK : st;
    ebb_store_word(s, *session, word);
    return EBB_FAIL(err, EBB_LIMIT, "no session is called '%.20s', and the one with that number is called by another: "
                    "%.40s is that one; a new one needs another name", name, word);
}

ebb_status ebb_store_last(ebb_store *s, int64_t *session, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT id FROM sessions AS s ORDER BY " NEWEST_FIRST " LIMIT 1", "");
    ebb_status st = rc == SQLITE_OK ? first_value(s, q, session, err) : ebb_store_fail(s, rc, err);

    return st == EBB_NOTFOUND ? EBB_FAIL(err, EBB_NOTFOUND, "there is no session yet") : st;
}

ebb_status ebb_store_read_leaf_text(ebb_store *s, int64_t session, int64_t *message, ebb_buf *text, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT m.id, m.text FROM sessions AS s JOIN messages AS m ON m.id = s.leaf "
                                      "WHERE s.id = ?",
                               "i", session);
    bool ok = true;

    *message = 0;
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        *message = sqlite3_column_int64(q, 0);
        ok = ebb_buf_add(text, sqlite3_column_text(q, 1), (size_t)sqlite3_column_bytes(q, 1));
    }
    sqlite3_finalize(q);
    if (!ok)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? EBB_OK : ebb_store_fail(s, rc, err);
}

static int by_session_name(const void *a, const void *b)
{
    return strcmp((*(ebb_session_row *const *)a)->name, (*(ebb_session_row *const *)b)->name);
}

static int by_session_id(const void *a, const void *b)
{
    int64_t x = (*(ebb_session_row *const *)a)->id, y = (*(ebb_session_row *const *)b)->id;

    return (x > y) - (x < y);
}

/* Which of them are called like another one, or as another one's number is.  False without memory. */
static bool mark_namesakes(ebb_session_row *rows, size_t n)
{
    ebb_session_row **sorted = calloc(n + 1, sizeof *sorted);

    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &rows[i];
    qsort(sorted, n, sizeof *sorted, by_session_name);
    for (size_t i = 1; i < n; i++)
        if (by_session_name(&sorted[i - 1], &sorted[i]) == 0)
            sorted[i - 1]->has_namesake = sorted[i]->has_namesake = true;
    qsort(sorted, n, sizeof *sorted, by_session_id);
    for (size_t i = 0; i < n; i++) {
        ebb_session_row numbered = { .id = ebb_session_number(rows[i].name) }, *key = &numbered;
        ebb_session_row **other = bsearch(&key, sorted, n, sizeof *sorted, by_session_id);

        if (other != NULL && *other != &rows[i])
            rows[i].has_namesake = true;
    }
    free(sorted);
    return true;
}

ebb_status ebb_store_list(ebb_store *s, ebb_session_row **out, size_t *n, ebb_error *err)
{
    sqlite3_stmt *q;
    ebb_session_row *rows = NULL;
    size_t cap = 0;
    int rc = ebb_store_prepare(s, &q, "SELECT s.id AS id, coalesce(s.name, s.title), s.model, s.updated_ms,"
                               " count(m.n_ids), coalesce(sum(iif(m.role = 3, 0, m.n_ids)), 0), s.created_ms,"
                               " EXISTS (SELECT 1 FROM sessions AS o WHERE o.name = CAST(s.id AS TEXT) AND"
                               " o.id <> s.id)"
                               " FROM sessions AS s LEFT JOIN messages AS m ON m.session = s.id"
                               " GROUP BY s.id ORDER BY " NEWEST_FIRST, "");

    *out = NULL;
    *n = 0;
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        ebb_session_row *p = ebb_grow(rows, *n, &cap, sizeof *p);
        if (!p) {
            rc = SQLITE_NOMEM;
            break;
        }
        rows = p;
        p += (*n)++;
        p->id = sqlite3_column_int64(q, 0);
        ebb_store_text(q, 1, p->name, sizeof p->name);
        ebb_store_text(q, 2, p->model, sizeof p->model);
        p->updated_ms = sqlite3_column_int64(q, 3);
        p->n_messages = (uint32_t)sqlite3_column_int64(q, 4);
        p->n_tokens = (uint32_t)sqlite3_column_int64(q, 5);
        p->created_ms = sqlite3_column_int64(q, 6);
        p->has_namesake = false;
        snprintf(p->word, sizeof p->word, "%lld", (long long)p->id);
        if (sqlite3_column_int(q, 7))
            ebb_store_word(s, p->id, p->word);
    }
    sqlite3_finalize(q);
    if (rc == SQLITE_DONE && !mark_namesakes(rows, *n))
        rc = SQLITE_NOMEM;
    if (rc != SQLITE_DONE) {
        free(rows);
        *n = 0;
        return ebb_store_fail(s, rc, err);
    }
    *out = rows;
    return EBB_OK;
}

/* A row of message, session and ids, which are NULL for another model's.  A SQLite code. */
static int tell_ids(sqlite3_stmt *q, ebb_store_ids_fn *fn, void *arg)
{
    size_t n = (size_t)sqlite3_column_bytes(q, 2) / sizeof(int32_t);
    int32_t *ids;

    if (n == 0)
        return SQLITE_ROW;
    ids = malloc(n * sizeof *ids);               /* what SQLite has need not be aligned */
    if (!ids)
        return SQLITE_NOMEM;
    memcpy(ids, sqlite3_column_blob(q, 2), n * sizeof *ids);
    ebb_store_swap_ids(ids, n);
    fn(arg, sqlite3_column_int64(q, 1), ids, n);
    free(ids);
    return SQLITE_ROW;
}

ebb_status ebb_store_read_ids(ebb_store *s, int64_t *before, uint32_t n_rows, const uint8_t model[16],
                              ebb_store_ids_fn *fn, void *arg, ebb_error *err)
{
    sqlite3_stmt *q;
    uint32_t n = 0;
    int rc = ebb_store_prepare(s, &q, "SELECT id, session, iif(ids_model = ?, ids, NULL) FROM messages WHERE id < ?"
                                      " ORDER BY id DESC LIMIT ?", "bii", (const void *)model, (size_t)16, *before,
                               (int64_t)n_rows);

    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        *before = sqlite3_column_int64(q, 0);
        n++;
        if ((rc = tell_ids(q, fn, arg)) != SQLITE_ROW)
            break;
    }
    sqlite3_finalize(q);
    if (n < n_rows)
        *before = 0;
    return rc == SQLITE_DONE ? EBB_OK : ebb_store_fail(s, rc, err);
}

/* OK if a statement changed this session, NOTFOUND if there is none. */
static ebb_status fail_no_session(int64_t session, ebb_error *err)
{
    return EBB_FAIL(err, EBB_NOTFOUND, "there is no session %lld", (long long)session);
}

static ebb_status check_session_changed(ebb_store *s, int rc, int64_t session, ebb_error *err)
{
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    return sqlite3_changes(s->db) == 0 ? fail_no_session(session, err) : EBB_OK;
}

ebb_status ebb_session_check_name(const char *name, ebb_error *err)
{
    enum { MOST = sizeof ((ebb_session_facts *)0)->name - 1 };

    if (!*name || strlen(name) > MOST)
        return EBB_FAIL(err, EBB_USAGE, "a session's name must have 1 to %d bytes", (int)MOST);
    if (*name == ' ' || name[strlen(name) - 1] == ' ')   /* a list does not show it, and commands take none */
        return EBB_FAIL(err, EBB_USAGE, "a session's name may not begin or end with a blank");
    if (ebb_utf8_has_controls(name))
        return EBB_FAIL(err, EBB_USAGE, "a session's name may not contain control characters");
    if (!ebb_utf8_is_valid(name, strlen(name)))  /* a list would show another one, by which it is not found */
        return EBB_FAIL(err, EBB_USAGE, "a session's name must be UTF-8");
    return EBB_OK;
}

/* Dates and tickets are good names, but nobody is to stand where lists show another one: `session` is the one that is
 * to have the name, 0 for one that has no number yet. */
static ebb_status check_no_number(ebb_store *s, const char *name, int64_t session, ebb_error *err)
{
    int64_t id;
    ebb_status st = find_by_number(s, ebb_session_number(name), &id, err);

    if (st == EBB_OK && id != session)
        return EBB_FAIL(err, EBB_USAGE, "%lld is the number of another session; choose another name", (long long)id);
    return st == EBB_NOTFOUND ? EBB_OK : st;
}

ebb_status ebb_store_check_free_name(ebb_store *s, const char *name, ebb_error *err)
{
    int64_t id;
    ebb_status st = ebb_store_find_named(s, name, &id, err);

    if (st == EBB_OK)
        return EBB_FAIL(err, EBB_USAGE, EBB_STORE_NAME_TAKEN);
    return st == EBB_NOTFOUND ? check_no_number(s, name, 0, err) : st;
}

ebb_status ebb_store_rename(ebb_store *s, int64_t session, const char *name, ebb_error *err)
{
    ebb_status st;
    int rc;

    if (s->is_readonly)
        return ebb_store_fail(s, SQLITE_READONLY, err);
    st = ebb_session_check_name(name, err);
    if (st != EBB_OK)
        return st;
    rc = ebb_store_run(s, "UPDATE sessions SET name = ?1 WHERE id = ?2 AND NOT EXISTS"
                       " (SELECT 1 FROM sessions WHERE id = ?3 AND id <> ?2)", "tii", name, session,
                       ebb_session_number(name));
    if (rc == SQLITE_OK && sqlite3_changes(s->db) == 0)
        st = check_no_number(s, name, session, err);
    return st == EBB_OK ? check_session_changed(s, rc, session, err) : st;
}

/* SQLite makes a copy of what stays, which in memory would be as large as the database.  Beside it, it is a file whose
 * name SQLite removes before it writes.  Of an encrypted one it would be in the clear: that is in memory, and what the
 * disk has no room for. */
static int rewrite_file(ebb_store *s)
{
    const char *path = sqlite3_db_filename(s->db, "main"), *slash = path ? strrchr(path, '/') : NULL;
    int rc = SQLITE_FULL;

    if (!s->vfs && slash && !ebb_file_has_readonly_folder(path))
        sqlite3_temp_directory = sqlite3_mprintf("%.*s", (int)(slash + 1 - path), path);
    if (sqlite3_temp_directory) {
        rc = sqlite3_exec(s->db, "PRAGMA temp_store = FILE; VACUUM", NULL, NULL, NULL);
        sqlite3_exec(s->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
        sqlite3_free(sqlite3_temp_directory);
        sqlite3_temp_directory = NULL;
    }
    return (rc & 0xff) == SQLITE_FULL ? sqlite3_exec(s->db, "VACUUM", NULL, NULL, NULL) : rc;
}

/* Or a loss of power brings its old length back, with what was deleted. */
static int sync_log(ebb_store *s)
{
    sqlite3_file *log = NULL;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK || !log || !log->pMethods)
        return SQLITE_OK;                        /* a database in memory has none */
    return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

ebb_status ebb_store_scrub(ebb_store *s, bool is_thorough, ebb_error *err)
{
    int rc;

    if (s->is_readonly)
        return ebb_store_fail(s, SQLITE_READONLY, err);
    rc = ebb_store_merge_index(s);
    if (rc == SQLITE_OK && is_thorough)
        rc = rewrite_file(s);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sync_log(s);
    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
        return EBB_FAIL(err, EBB_BUSY,
                        "%s is in use: some of what was deleted stays in it until `ebb sessions purge` finds it alone",
                        s->path);
    return rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);
}

/* The messages lose their parents first: else each would go within the one that it answers, and a long conversation
 * deeper than SQLite allows (1,000).  SQLITE_NOTFOUND: there is no such session. */
static int delete_rows(ebb_store *s, int64_t session)
{
    int rc = ebb_store_run(s, "UPDATE messages SET parent = NULL WHERE session = ?", "i", session);

    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "DELETE FROM sessions WHERE id = ?", "i", session);
    return rc == SQLITE_OK && sqlite3_changes(s->db) == 0 ? SQLITE_NOTFOUND : rc;
}

/* *at: the one that cannot be. */
static int delete_all(ebb_store *s, const int64_t *sessions, size_t n, size_t *at)
{
    int rc = ebb_store_begin(s, true);

    for (*at = 0; rc == SQLITE_OK && *at < n; *at += rc == SQLITE_OK)
        rc = delete_rows(s, sessions[*at]);
    return rc == SQLITE_OK ? ebb_store_run(s, "COMMIT", "") : rc;
}

ebb_status ebb_store_delete_all(ebb_store *s, const int64_t *sessions, size_t n, ebb_error *err)
{
    ebb_status st = EBB_OK;
    size_t at = 0;
    int rc = s->is_readonly ? SQLITE_READONLY : delete_all(s, sessions, n, &at);

    if (rc != SQLITE_OK && (rc = ebb_store_mend_index(s, rc)) == SQLITE_OK)
        rc = delete_all(s, sessions, n, &at);
    if (rc == SQLITE_NOTFOUND)
        st = fail_no_session(sessions[at], err);
    else if (rc != SQLITE_OK)
        st = ebb_store_fail(s, rc, err);
    if (rc != SQLITE_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

ebb_status ebb_store_delete(ebb_store *s, int64_t session, ebb_error *err)
{
    return ebb_store_delete_all(s, &session, 1, err);
}
