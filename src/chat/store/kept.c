/* What is kept, to tell what is not (kept.h). */
#include "store/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "ebb/experimental/kv_cache.h"
#include "store/sealed_kv.h"
#include "store/store_sql.h"
#include "store/title.h"

enum { RUN = 8, ABOVE_MAX = 64 };

static bool add_hash(uint64_t **list, size_t *n, size_t *cap, const void *data, size_t n_data)
{
    uint64_t *p = ebb_grow(*list, *n, cap, sizeof *p);

    if (!p)
        return false;
    *list = p;
    p[(*n)++] = ebb_hash_table(data, n_data);
    return true;
}

static int by_hash(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool has_hash(const uint64_t *list, size_t n, const void *data, size_t n_data)
{
    uint64_t h = ebb_hash_table(data, n_data);

    return n > 0 && bsearch(&h, list, n, sizeof h, by_hash) != NULL;
}

/* A message: its ids among those of its session. */
typedef struct said {
    int64_t id, parent;
    size_t  at, n;
} said;

/* One session, with its messages in the order of their numbers. */
typedef struct session_ids {
    int64_t  session;
    said    *messages;
    int32_t *ids;
    size_t   n_messages, cap_messages, n_ids, cap_ids;
} session_ids;

static int by_message_id(const void *a, const void *b)
{
    const said *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static const said *find_parent(const session_ids *s, const said *m)
{
    const said wanted = { .id = m->parent };

    return bsearch(&wanted, s->messages, s->n_messages, sizeof *s->messages, by_message_id);
}

/* The last ids above a message: its own first runs begin there.  Of an imported conversation no message has any; what
 * is missed of a stranger one is computed again. */
static size_t gather_ids_above(const session_ids *s, const said *m, int32_t out[RUN - 1])
{
    size_t n = 0, n_above = 0;

    for (const said *a = find_parent(s, m); a && n < RUN - 1 && n_above++ < ABOVE_MAX; a = find_parent(s, a))
        for (size_t i = a->n; i > 0 && n < RUN - 1; i--)
            out[RUN - 2 - n++] = s->ids[a->at + i - 1];
    memmove(out, out + RUN - 1 - n, n * sizeof *out);
    return n;
}

/* As it is, and as it was typed: without the files that went with it. */
static bool add_question(ebb_kept *k, const char *text, size_t n)
{
    size_t at = ebb_title_own_words(text, n);

    return add_hash(&k->questions, &k->n_questions, &k->cap_questions, text, n) &&
           (at == 0 || add_hash(&k->questions, &k->n_questions, &k->cap_questions, text + at, n - at));
}

static bool add_runs(ebb_kept *k, const session_ids *s, const said *m)
{
    int32_t above[RUN - 1];
    size_t n_above = m->n ? gather_ids_above(s, m, above) : 0, n = n_above + m->n;
    int32_t *all = malloc((n + 1) * sizeof *all);
    bool ok = all != NULL;

    if (ok && m->n) {
        memcpy(all, above, n_above * sizeof *all);
        memcpy(all + n_above, s->ids + m->at, m->n * sizeof *all);
    }
    for (size_t i = 0; ok && i + RUN <= n; i++)
        ok = add_hash(&k->runs, &k->n_runs, &k->cap_runs, all + i, RUN * sizeof *all);
    free(all);
    return ok;
}

/* What was gathered of a session; the next one begins. */
static bool end_session(ebb_kept *k, session_ids *s, int64_t next)
{
    for (size_t i = 0; i < s->n_messages; i++)
        if (!add_runs(k, s, &s->messages[i]))
            return false;
    s->n_messages = s->n_ids = 0;
    s->session = next;
    return true;
}

static bool add_message(session_ids *s, int64_t id, int64_t parent, const int32_t *ids, size_t n)
{
    said *m = ebb_grow(s->messages, s->n_messages, &s->cap_messages, sizeof *m);

    if (!m)
        return false;
    s->messages = m;
    m[s->n_messages++] = (said){ id, parent, s->n_ids, n };
    for (size_t i = 0; i < n; i++) {
        int32_t *p = ebb_grow(s->ids, s->n_ids, &s->cap_ids, sizeof *p);

        if (!p)
            return false;
        s->ids = p;
        p[s->n_ids++] = ids[i];
    }
    if (n)
        ebb_store_swap_ids(s->ids + m[s->n_messages - 1].at, n);
    return true;
}

/* session, id, parent, question, ids */
static bool add_row(ebb_kept *k, session_ids *s, sqlite3_stmt *q)
{
    int64_t session = sqlite3_column_int64(q, 0);
    const char *question = (const char *)sqlite3_column_text(q, 3);
    size_t n_question = (size_t)sqlite3_column_bytes(q, 3);
    const int32_t *ids = sqlite3_column_blob(q, 4);
    size_t n = ids ? (size_t)sqlite3_column_bytes(q, 4) / sizeof *ids : 0;

    if (session != s->session && !end_session(k, s, session))
        return false;
    if (question ? !add_question(k, question, n_question) : sqlite3_column_type(q, 3) != SQLITE_NULL)
        return false;
    return add_message(s, sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2), ids, n);
}

/* Of answers, which are most of what is stored, the text is not read. */
ebb_status ebb_kept_read(ebb_store *s, ebb_kept *out, ebb_error *err)
{
    session_ids gathered = { 0 };
    sqlite3_stmt *q;
    bool ok = true;
    int rc = ebb_store_prepare(s, &q, "SELECT session, id, coalesce(parent, 0), CASE role WHEN ? THEN text END, ids"
                                      " FROM messages ORDER BY session, id", "i", (int64_t)EBB_ROLE_USER);

    memset(out, 0, sizeof *out);
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    while (ok && (rc = sqlite3_step(q)) == SQLITE_ROW)
        ok = add_row(out, &gathered, q);
    sqlite3_finalize(q);
    ok = ok && end_session(out, &gathered, 0);
    free(gathered.messages);
    free(gathered.ids);
    if (out->n_runs)
        qsort(out->runs, out->n_runs, sizeof *out->runs, by_hash);
    if (out->n_questions)
        qsort(out->questions, out->n_questions, sizeof *out->questions, by_hash);
    if (!ok)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for what the sessions have said");
    return rc == SQLITE_DONE ? EBB_OK : ebb_store_fail(s, rc, err);
}

void ebb_kept_fini(ebb_kept *k)
{
    free(k->runs);
    free(k->questions);
    memset(k, 0, sizeof *k);
}

/* Whether all of these ids follow each other in some session: fewer than eight say too little. */
static bool has_ids(const ebb_kept *k, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i + RUN <= n; i++)
        if (!has_hash(k->runs, k->n_runs, ids + i, RUN * sizeof *ids))
            return false;
    return n >= RUN;
}

bool ebb_kept_has_question(const ebb_kept *k, const char *text, size_t n)
{
    return has_hash(k->questions, k->n_questions, text, n);
}

static bool is_run_kept(void *arg, const ebb_token *ids, size_t n)
{
    return has_ids(arg, ids, n);
}

ebb_status ebb_kept_sweep_kv(const ebb_kept *k, size_t *n_removed, ebb_error *err)
{
    return ebb_kv_cache_sweep(NULL, ebb_sealed_kv(), is_run_kept, (void *)k, false, n_removed, err);
}
