/* Searching the messages of all sessions (store.h).
 *
 * The index knows beginnings of 2, 3 and 4 letters (store_schema.c) and hands their messages out one by
 * one, the newest first.  A longer beginning would first be collected whole: with a common one
 * and a million messages that takes seconds.  So the messages of its first four letters are
 * looked through here, for a short while; only if that was not enough the index collects. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "store/store_sql.h"

enum { INDEXED_LETTERS = 4, WORDS_MAX = 32, SNIPPET_BEFORE = 4, SNIPPET_WORDS = 14 };
static const double look_s = 0.1;

typedef struct word {
    const char *s;
    size_t      n;
    size_t      n_indexed;       /* bytes of its first letters, if it is longer and a word by itself; else n */
} word;

typedef struct search {
    word   words[WORDS_MAX];
    size_t n_words;
    bool   has_long;
} search;

/* -- Words, as the index has them: letters and digits, without case and accents ---------- */

static size_t decode_char(const char *s, size_t n, uint32_t *cp)
{
    size_t used = ebb_utf8_decode(s, n, cp);

    if (used)
        return used;
    *cp = EBB_UTF8_BAD;
    return 1;
}

static bool is_letter(uint32_t cp)
{
    utf8proc_category_t cat;

    if (cp < 0x80)
        return (cp >= '0' && cp <= '9') || (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
    cat = utf8proc_category((utf8proc_int32_t)cp);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NO) || cat == UTF8PROC_CATEGORY_CO;
}

/* 0: an accent that stands by itself, as in text of macOS: the index leaves it out, too. */
static uint32_t fold_char(uint32_t cp)
{
    utf8proc_int32_t out[8];
    utf8proc_ssize_t n;

    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    n = utf8proc_decompose_char((utf8proc_int32_t)cp, out, 8,
                                UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_STRIPMARK, NULL);
    return n < 0 ? cp : n == 0 ? 0 : (uint32_t)out[0];
}

/* Bytes of the word at s[0..n); 0: none begins there. */
static size_t word_bytes(const char *s, size_t n)
{
    size_t at = 0, used;
    uint32_t cp;

    for (; at < n; at += used) {
        used = decode_char(s + at, n - at, &cp);
        if (!is_letter(cp))
            break;
    }
    return at;
}

/* The folded letter at or behind *at, which moves behind it; 0: there is none. */
static uint32_t next_letter(const char *s, size_t n, size_t *at)
{
    uint32_t cp, letter = 0;

    while (*at < n && letter == 0) {
        *at += decode_char(s + *at, n - *at, &cp);
        letter = fold_char(cp);
    }
    return letter;
}

static bool word_begins_with(const char *s, size_t n, const char *w, size_t n_w)
{
    size_t at = 0, k = 0;
    uint32_t letter;

    while ((letter = next_letter(w, n_w, &k)) != 0)
        if (next_letter(s, n, &at) != letter)
            return false;
    return true;
}

/* To the next word at or behind *at; its bytes. */
static size_t next_word(const char *s, size_t n, size_t *at)
{
    uint32_t cp;

    while (*at < n) {
        size_t len = word_bytes(s + *at, n - *at);
        if (len > 0)
            return len;
        *at += decode_char(s + *at, n - *at, &cp);
    }
    return 0;
}

static bool has_word(const char *s, size_t n, const word *w)
{
    for (size_t at = 0, len; (len = next_word(s, n, &at)) > 0; at += len)
        if (word_begins_with(s + at, len, w->s, w->n))
            return true;
    return false;
}

/* -- What is looked for ------------------------------------------------------------------- */

static void add_query_word(search *q, const char *s, size_t n)
{
    word *w = &q->words[q->n_words++];
    size_t at = 0;
    uint32_t cp;

    *w = (word){ s, n, n };
    for (int i = 0; i < INDEXED_LETTERS && at < n; i++)
        at += decode_char(s + at, n - at, &cp);
    if (at < n && word_bytes(s, n) == n) {
        w->n_indexed = at;
        q->has_long = true;
    }
}

static bool parse_query(const char *words, search *q)
{
    memset(q, 0, sizeof *q);
    while (*words) {
        size_t n = strcspn(words, " \t\r\n");
        if (n > 0 && q->n_words == WORDS_MAX)
            return false;
        if (n > 0)
            add_query_word(q, words, n);
        words += n + strspn(words + n, " \t\r\n");
    }
    return q->n_words > 0;
}

/* Each word quoted, so that nothing in it is an operator, and a beginning is enough. */
static void add_query(const search *q, bool is_cut, ebb_buf *out)
{
    for (size_t i = 0; i < q->n_words; i++) {
        const word *w = &q->words[i];
        ebb_buf_adds(out, i ? " \"" : "\"");
        for (size_t k = 0; k < (is_cut ? w->n_indexed : w->n); k++)
            ebb_buf_adds(out, w->s[k] == '"' ? "\"\"" : (char[2]){ w->s[k], '\0' });
        ebb_buf_adds(out, "\"*");
    }
}

static bool has_all(const search *q, const char *s, size_t n)
{
    for (size_t i = 0; i < q->n_words; i++)
        if (q->words[i].n_indexed < q->words[i].n && !has_word(s, n, &q->words[i]))
            return false;
    return true;
}

/* -- What is shown of a message ------------------------------------------------------------- */

static bool is_hit(const search *q, const char *s, size_t n)
{
    for (size_t i = 0; i < q->n_words; i++)
        for (size_t at = 0, len; (len = next_word(q->words[i].s, q->words[i].n, &at)) > 0; at += len)
            if (word_begins_with(s, n, q->words[i].s + at, len))
                return true;
    return false;
}

/* Where the words around the first hit begin. */
static size_t snippet_start(const search *q, const char *s, size_t n)
{
    size_t ring[SNIPPET_BEFORE + 1] = { 0 }, n_seen = 0;

    for (size_t at = 0, len; (len = next_word(s, n, &at)) > 0; at += len) {
        ring[n_seen++ % (SNIPPET_BEFORE + 1)] = at;
        if (is_hit(q, s + at, len))
            return n_seen > SNIPPET_BEFORE ? ring[n_seen % (SNIPPET_BEFORE + 1)] : 0;
    }
    return 0;
}

static void snippet(const search *q, const char *s, size_t n, char *out, size_t cap)
{
    size_t start = snippet_start(q, s, n), at = start, from = start, len;
    ebb_buf text = { 0 };

    if (start > 0)
        ebb_buf_adds(&text, "…");
    for (int i = 0; i < SNIPPET_WORDS && (len = next_word(s, n, &at)) > 0 && text.len + len < cap; i++, at += len) {
        bool hit = is_hit(q, s + at, len);
        ebb_buf_add(&text, s + from, at - from);
        if (hit)
            ebb_buf_addc(&text, EBB_HIT_BEGIN);
        ebb_buf_add(&text, s + at, len);
        if (hit)
            ebb_buf_addc(&text, EBB_HIT_END);
        from = at + len;
    }
    at = from;
    if (next_word(s, n, &at) > 0)
        ebb_buf_adds(&text, "…");
    else
        ebb_buf_add(&text, s + from, n - from < 16 ? n - from : 0);
    len = text.len < cap ? text.len : cap - 1;
    while (len < text.len && len > 0 && ((unsigned char)text.data[len] & 0xC0) == 0x80)
        len--;
    memcpy(out, ebb_buf_text(&text), len);
    out[len] = '\0';
    ebb_buf_fini(&text);
}

static void take_hit(const search *q, sqlite3_stmt *st, ebb_store_hit *h)
{
    const char *text = (const char *)sqlite3_column_text(st, 5);

    h->session = sqlite3_column_int64(st, 0);
    h->message = sqlite3_column_int64(st, 1);
    h->created_ms = sqlite3_column_int64(st, 2);
    h->role = (ebb_role)ebb_store_in_range(sqlite3_column_int(st, 3), EBB_ROLE_ASSISTANT, EBB_ROLE_NOTE);
    ebb_store_text(st, 4, h->name, sizeof h->name);
    snippet(q, text ? text : "", (size_t)sqlite3_column_bytes(st, 5), h->snippet, sizeof h->snippet);
}

/* -- Looking ------------------------------------------------------------------------------------ */

/* With is_cut words are cut to what the index has, and each message is looked at; INTERRUPT: that
 * took too long. */
static int run_query(ebb_store *s, const search *q, bool is_cut, size_t limit, ebb_store_hit *hits, size_t *n)
{
    double end = ebb_clock_s() + look_s;
    ebb_buf query = { 0 };
    sqlite3_stmt *st;
    int rc;

    *n = 0;
    add_query(q, is_cut, &query);
    rc = query.failed ? SQLITE_NOMEM
                      : ebb_store_prepare(s, &st, "SELECT m.session, m.id, m.created_ms, m.role, coalesce(s.name, "
                                                  "s.title), m.text"
                                          " FROM search JOIN messages AS m ON m.id = search.rowid"
                                          " JOIN sessions AS s ON s.id = m.session"
                                          " WHERE search MATCH ? ORDER BY search.rowid DESC", "t", query.data);
    if (rc != SQLITE_OK) {
        ebb_buf_fini(&query);
        return rc;
    }
    while (*n < limit && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 5);
        if (!is_cut || (text && has_all(q, text, (size_t)sqlite3_column_bytes(st, 5))))
            take_hit(q, st, &hits[(*n)++]);
        else if (ebb_clock_s() > end)
            break;
    }
    sqlite3_finalize(st);
    ebb_buf_fini(&query);
    if (rc == SQLITE_ROW || rc == SQLITE_OK)
        return *n == limit ? SQLITE_DONE : SQLITE_INTERRUPT;
    return rc;
}

ebb_status ebb_store_search(ebb_store *s, const char *words, size_t limit,
                            ebb_store_hit **out, size_t *n, ebb_error *err)
{
    ebb_store_hit *hits = calloc(limit + 1, sizeof *hits);
    int rc = SQLITE_INTERRUPT;
    search q;

    *out = NULL;
    *n = 0;
    if (!hits || !parse_query(words, &q)) {
        free(hits);
        return EBB_FAIL(err, EBB_USAGE, "search for what? one or more words, %d at most", WORDS_MAX);
    }
    if (q.has_long)
        rc = run_query(s, &q, true, limit, hits, n);
    if (rc == SQLITE_INTERRUPT)
        rc = run_query(s, &q, false, limit, hits, n);
    if (rc != SQLITE_DONE) {
        free(hits);
        *n = 0;
        return ebb_store_fail(s, rc, err);
    }
    *out = hits;
    return EBB_OK;
}
