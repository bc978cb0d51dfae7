/* Searching the messages of all sessions (store.h).
 *
 * The index knows beginnings of 2, 3 and 4 letters (store_schema.c) and hands their messages out one by
 * one, the newest first.  A longer beginning would first be collected whole: with a common one
 * and a million messages that takes seconds.  So the messages of its first four letters are
 * looked through here, for a short while; only if that was not enough the index collects.
 *
 * Of scripts that put no blanks between words (Chinese, Japanese, Thai ...) the index has a run of letters as one word,
 * and finds its beginning alone.  A word with such letters is looked for in the texts themselves, in the newest
 * EBB_STORE_LOOK_BYTES of them; of older ones the index is asked. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/search_words.h"
#include "store/store_sql.h"

static const double look_s = 0.1;

/* Each word quoted, so that nothing in it is an operator, and a beginning is enough. */
static void add_query(const ebb_search *q, bool looks, ebb_buf *out)
{
    for (size_t i = 0; i < q->n_words; i++) {
        const ebb_search_word *w = &q->words[i];
        if (looks && (w->n_unspaced || w->is_beside))
            continue;
        ebb_buf_adds(out, out->len ? " \"" : "\"");
        for (size_t k = 0; k < (looks ? w->n_indexed : w->n); k++)
            ebb_buf_adds(out, w->s[k] == '"' ? "\"\"" : (char[2]){ w->s[k], '\0' });
        ebb_buf_adds(out, "\"*");
    }
}

static void take_hit(const ebb_search *q, sqlite3_stmt *st, ebb_store_hit *h)
{
    const char *text = (const char *)sqlite3_column_text(st, 5);
    size_t n = (size_t)sqlite3_column_bytes(st, 5);

    h->session = sqlite3_column_int64(st, 0);
    h->message = sqlite3_column_int64(st, 1);
    h->created_ms = sqlite3_column_int64(st, 2);
    h->role = (ebb_role)ebb_store_in_range(sqlite3_column_int(st, 3), EBB_ROLE_ASSISTANT, EBB_ROLE_NOTE);
    ebb_store_text(st, 4, h->name, sizeof h->name);
    ebb_search_snippet(q, text ? text : "", n, h->snippet, sizeof h->snippet);
}

#define COLUMNS "SELECT m.session, m.id, m.created_ms, m.role, coalesce(s.name, s.title), m.text FROM "
#define OF_SESSION "CROSS JOIN sessions AS s ON s.id = m.session"

/* Messages older than `before`, the newest first: what the index says of the words that it is asked for, or all. */
static int prepare_query(ebb_store *s, const ebb_search *q, bool looks, int64_t before, ebb_buf *query,
                         sqlite3_stmt **out)
{
    if (looks && !q->has_spaced)
        return ebb_store_prepare(s, out, COLUMNS "messages AS m " OF_SESSION
                                         " WHERE m.id < ? AND m.finish <> 0 ORDER BY m.id DESC", "i", before);
    add_query(q, looks, query);
    if (query->failed)
        return SQLITE_NOMEM;
    return ebb_store_prepare(s, out, COLUMNS "search CROSS JOIN messages AS m ON m.id = search.rowid " OF_SESSION
                                     " WHERE search.rowid < ? AND search MATCH ? ORDER BY search.rowid DESC",
                             "it", before, query->data);
}

/* How much is looked at, one message after the other. */
typedef struct looking {
    double end_s;                /* 0: no limit */
    size_t n_bytes, most_bytes;
} looking;

static looking begin_looking(const ebb_store *s, const ebb_search *q)
{
    looking l = { .end_s = q->has_unspaced ? 0 : ebb_clock_s() + look_s, .most_bytes = SIZE_MAX };

    if (q->has_unspaced)
        l.most_bytes = s->look_bytes ? s->look_bytes : EBB_STORE_LOOK_BYTES;
    return l;
}

static bool is_enough(looking *l, size_t n)
{
    l->n_bytes += n;
    return l->n_bytes >= l->most_bytes || (l->end_s > 0 && ebb_clock_s() > l->end_s);
}

/* Adds to the hits.  If it `looks`, words are cut to what the index has, those that it cannot find are left out, and
 * each message is looked at; INTERRUPT: that were too many, and *before is the last one. */
static int run_query(ebb_store *s, const ebb_search *q, bool looks, size_t limit, int64_t *before, ebb_store_hit *hits,
                     size_t *n)
{
    looking l = begin_looking(s, q);
    ebb_buf query = { 0 };
    sqlite3_stmt *st = NULL;
    int rc = prepare_query(s, q, looks, *before, &query, &st);
    bool is_cut = false;

    while (rc == SQLITE_OK && *n < limit && !is_cut && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 5);
        size_t n_text = (size_t)sqlite3_column_bytes(st, 5);

        *before = sqlite3_column_int64(st, 1);
        if (!looks || (text && ebb_search_has_all(q, text, n_text)))
            take_hit(q, st, &hits[(*n)++]);
        is_cut = looks && *n < limit && is_enough(&l, n_text);
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        ebb_store_note_damage(s);
    sqlite3_finalize(st);
    ebb_buf_fini(&query);
    if (rc == SQLITE_OK)
        return is_cut ? SQLITE_INTERRUPT : SQLITE_DONE;
    return rc;
}

/* SQLITE_DONE, or what has failed. */
static int find_hits(ebb_store *s, const ebb_search *q, size_t limit, ebb_store_hit *hits, size_t *n)
{
    int64_t before = INT64_MAX;
    int rc = SQLITE_INTERRUPT;

    *n = 0;
    s->is_search_cut = false;
    if (q->has_long || q->has_unspaced)
        rc = run_query(s, q, true, limit, &before, hits, n);
    if (rc != SQLITE_INTERRUPT)
        return rc;
    s->is_search_cut = q->has_unspaced;
    return run_query(s, q, false, limit, &before, hits, n);
}

ebb_status ebb_store_search(ebb_store *s, const char *words, size_t limit,
                            ebb_store_hit **out, size_t *n, ebb_error *err)
{
    ebb_store_hit *hits = calloc(limit + 1, sizeof *hits);
    ebb_search q;
    int rc;

    *out = NULL;
    *n = 0;
    if (!hits)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for what is found");
    if (!ebb_search_parse(words, &q)) {
        free(hits);
        return EBB_FAIL(err, EBB_USAGE, "search for what? one or more words, %d at most", EBB_SEARCH_PHRASES);
    }
    rc = find_hits(s, &q, limit, hits, n);
    if (rc != SQLITE_DONE && (rc = ebb_store_mend_index(s, rc)) == SQLITE_OK)
        rc = find_hits(s, &q, limit, hits, n);
    if (rc != SQLITE_DONE) {
        free(hits);
        *n = 0;
        return ebb_store_fail(s, rc, err);
    }
    *out = hits;
    return EBB_OK;
}

bool ebb_store_search_was_cut(const ebb_store *s)
{
    return s->is_search_cut;
}
