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
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "store/store_sql.h"

enum { INDEXED_LETTERS = 4, PHRASES_MAX = 32, WORDS_MAX = 256, SNIPPET_BEFORE = 4, SNIPPET_WORDS = 14 };
enum { LETTERS_BEFORE = 20, LETTERS_BEHIND = 30 };        /* of a snippet without blanks */
static const double look_s = 0.1;

typedef struct word {
    const char *s;
    size_t      n;
    size_t      n_indexed;       /* bytes of its first letters, if it is longer and a word by itself; else n */
    size_t      unspaced, n_unspaced;    /* the first letters in it that may stand within a run; 0 bytes: there are
                                          * none */
    bool        is_beside;       /* such letters are in its phrase, and may touch it in a text: it is found anywhere */
} word;

typedef struct search {
    word   words[WORDS_MAX];
    size_t n_words, n_phrases;
    bool   has_long, has_unspaced, has_spaced;
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

/* Of a script without blanks between words. */
static bool is_unspaced(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        { 0xE01, 0xE4E }, { 0xE81, 0xECD },      /* Thai, Lao */
        { 0x1000, 0x103F }, { 0x1050, 0x108F }, { 0x1780, 0x17D3 },      /* Burmese, Khmer */
        { 0x3005, 0x3007 }, { 0x3041, 0x30FF }, { 0x31F0, 0x31FF }, { 0xFF66, 0xFF9F },  /* Japanese */
        { 0x3400, 0x4DBF }, { 0x4E00, 0x9FFF }, { 0xF900, 0xFAFF }, { 0x20000, 0x3FFFD },        /* Chinese */
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1])
            return true;
    return false;
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

/* Whether the rest of a word is at *at, which moves behind it. */
static bool goes_on_with(const char *s, size_t n, size_t *at, const char *w, size_t n_w)
{
    size_t k = 0;
    uint32_t letter;

    while ((letter = next_letter(w, n_w, &k)) != 0)
        if (next_letter(s, n, at) != letter)
            return false;
    return true;
}

static bool word_begins_with(const char *s, size_t n, const char *w, size_t n_w)
{
    return goes_on_with(s, n, &(size_t){ 0 }, w, n_w);
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

static bool is_char_start(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* The folded letter before *at, which moves to it; 0: there is none. */
static uint32_t previous_letter(const char *s, size_t *at)
{
    uint32_t cp, letter = 0;
    size_t end;

    while (*at > 0 && letter == 0) {
        end = *at;
        *at = ebb_utf8_before(s, end);
        decode_char(s + *at, end - *at, &cp);
        letter = fold_char(cp);
    }
    return letter;
}

/* Whether s[0..*at) ends with this beginning of a word, which *at moves to. */
static bool ends_with(const char *s, size_t *at, const char *w, size_t n_w)
{
    uint32_t letter;

    while ((letter = previous_letter(w, &n_w)) != 0)
        if (previous_letter(s, at) != letter)
            return false;
    return true;
}

/* Where a word with letters of such a script stands, within others too, and its bytes there; NULL: nowhere.  Such
 * letters know no case; those around them do, and accents. */
static const char *find_unspaced(const char *s, size_t n, const word *w, size_t *n_hit)
{
    size_t behind = w->unspaced + w->n_unspaced, from, to;

    for (const char *p = s; (p = memmem(p, n - (size_t)(p - s), w->s + w->unspaced, w->n_unspaced)) != NULL; p++) {
        from = (size_t)(p - s);
        to = from + w->n_unspaced;
        if (!ends_with(s, &from, w->s, w->unspaced) || !goes_on_with(s, n, &to, w->s + behind, w->n - behind))
            continue;
        *n_hit = to - from;
        return s + from;
    }
    return NULL;
}

/* Whether a text has these letters, at the beginning of a word or not. */
static bool has_letters(const char *s, size_t n, const word *w)
{
    for (size_t at = 0, to; at < n; at += decode_char(s + at, n - at, &(uint32_t){ 0 })) {
        to = at;
        if (goes_on_with(s, n, &to, w->s, w->n))
            return true;
    }
    return false;
}

/* -- What is looked for ------------------------------------------------------------------- */

static bool find_unspaced_run(word *w)
{
    uint32_t cp;

    for (size_t at = 0, used; at < w->n; at += used) {
        used = decode_char(w->s + at, w->n - at, &cp);
        if (is_unspaced(cp) && w->n_unspaced == 0)
            w->unspaced = at;
        if (is_unspaced(cp))
            w->n_unspaced = at + used - w->unspaced;
        else if (w->n_unspaced > 0)
            break;
    }
    return w->n_unspaced > 0;
}

/* One that the index finds. */
static void add_spaced(search *q, const char *s, size_t n)
{
    word *w = &q->words[q->n_words++];
    size_t at = 0;
    uint32_t cp;

    *w = (word){ .s = s, .n = n, .n_indexed = n };
    q->has_spaced = true;
    for (int i = 0; i < INDEXED_LETTERS && at < n; i++)
        at += decode_char(s + at, n - at, &cp);
    if (at < n && word_bytes(s, n) == n) {
        w->n_indexed = at;
        q->has_long = true;
    }
}

/* The words of a phrase that have such letters, or those beside them, as far as each phrase that may follow has room:
 * a text with so many words of a long one is the one that it is of. */
static void add_words_of(search *q, const char *s, size_t n, bool are_beside)
{
    size_t most = WORDS_MAX - (PHRASES_MAX - q->n_phrases);

    for (size_t at = 0, len; q->n_words < most && (len = next_word(s, n, &at)) > 0; at += len) {
        word w = { .s = s + at, .n = len, .n_indexed = len, .is_beside = are_beside };

        if (find_unspaced_run(&w) != are_beside)
            q->words[q->n_words++] = w;
    }
}

/* What is between two blanks is one phrase to the index, which knows no marks.  Texts have them: where they are looked
 * through, the words of it are looked for one by one, those with letters of such a script first, as few texts have
 * them.  false: there are too many phrases. */
static bool add_phrase(search *q, const char *s, size_t n)
{
    word whole = { .s = s, .n = n, .n_indexed = n };

    if (q->n_phrases == PHRASES_MAX)
        return false;
    q->n_phrases++;
    if (!find_unspaced_run(&whole)) {
        add_spaced(q, s, n);
        return true;
    }
    q->has_unspaced = true;
    if (next_word(s, n, &(size_t){ 0 }) == 0) {  /* marks of such a script */
        q->words[q->n_words++] = whole;
        return true;
    }
    add_words_of(q, s, n, false);
    add_words_of(q, s, n, true);
    return true;
}

static bool parse_query(const char *words, search *q)
{
    memset(q, 0, sizeof *q);
    while (*words) {
        size_t n = strcspn(words, " \t\r\n");
        if (n > 0 && !add_phrase(q, words, n))
            return false;
        words += n + strspn(words + n, " \t\r\n");
    }
    return q->n_words > 0;
}

/* Each word quoted, so that nothing in it is an operator, and a beginning is enough. */
static void add_query(const search *q, bool looks, ebb_buf *out)
{
    for (size_t i = 0; i < q->n_words; i++) {
        const word *w = &q->words[i];
        if (looks && (w->n_unspaced || w->is_beside))
            continue;
        ebb_buf_adds(out, out->len ? " \"" : "\"");
        for (size_t k = 0; k < (looks ? w->n_indexed : w->n); k++)
            ebb_buf_adds(out, w->s[k] == '"' ? "\"\"" : (char[2]){ w->s[k], '\0' });
        ebb_buf_adds(out, "\"*");
    }
}

static bool has_all(const search *q, const char *s, size_t n)
{
    size_t n_hit;

    for (size_t i = 0; i < q->n_words; i++) {
        const word *w = &q->words[i];
        if (w->n_unspaced ? !find_unspaced(s, n, w, &n_hit)
            : w->is_beside ? !has_letters(s, n, w) : w->n_indexed < w->n && !has_word(s, n, w))
            return false;
    }
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

/* As much of the text as there is room for, in whole characters. */
static void copy_snippet(ebb_buf *text, char *out, size_t cap)
{
    size_t len = ebb_utf8_cut(ebb_buf_text(text), text->len, cap - 1);

    memcpy(out, ebb_buf_text(text), len);
    out[len] = '\0';
    ebb_buf_fini(text);
}

/* The letters around the first word with letters of a script without blanks; false: none is there, or asked for. */
static bool unspaced_snippet(const search *q, const char *s, size_t n, char *out, size_t cap)
{
    const char *hit = NULL, *from, *to;
    ebb_buf text = { 0 };
    const word *w = q->words;
    size_t n_hit = 0;

    while (w < q->words + q->n_words && !(w->n_unspaced && (hit = find_unspaced(s, n, w, &n_hit))))
        w++;
    if (!hit)
        return false;
    from = hit;
    for (int i = 0; from > s && i < LETTERS_BEFORE; i += is_char_start(*from))
        from--;
    to = hit + n_hit;
    for (int i = 0; to < s + n && (i < LETTERS_BEHIND || !is_char_start(*to)); to++)
        i += is_char_start(*to);
    ebb_buf_adds(&text, from > s ? "…" : "");
    ebb_buf_add(&text, from, (size_t)(hit - from));
    ebb_buf_addc(&text, EBB_HIT_BEGIN);
    ebb_buf_add(&text, hit, n_hit);
    ebb_buf_addc(&text, EBB_HIT_END);
    ebb_buf_add(&text, hit + n_hit, (size_t)(to - hit) - n_hit);
    ebb_buf_adds(&text, to < s + n ? "…" : "");
    copy_snippet(&text, out, cap);
    return true;
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
    copy_snippet(&text, out, cap);
}

static void take_hit(const search *q, sqlite3_stmt *st, ebb_store_hit *h)
{
    const char *text = (const char *)sqlite3_column_text(st, 5);
    size_t n = (size_t)sqlite3_column_bytes(st, 5);

    h->session = sqlite3_column_int64(st, 0);
    h->message = sqlite3_column_int64(st, 1);
    h->created_ms = sqlite3_column_int64(st, 2);
    h->role = (ebb_role)ebb_store_in_range(sqlite3_column_int(st, 3), EBB_ROLE_ASSISTANT, EBB_ROLE_NOTE);
    ebb_store_text(st, 4, h->name, sizeof h->name);
    if (!unspaced_snippet(q, text ? text : "", n, h->snippet, sizeof h->snippet))
        snippet(q, text ? text : "", n, h->snippet, sizeof h->snippet);
}

/* -- Looking ------------------------------------------------------------------------------------ */

#define COLUMNS "SELECT m.session, m.id, m.created_ms, m.role, coalesce(s.name, s.title), m.text FROM "
#define OF_SESSION "CROSS JOIN sessions AS s ON s.id = m.session"

/* Messages older than `before`, the newest first: what the index says of the words that it is asked for, or all. */
static int prepare_query(ebb_store *s, const search *q, bool looks, int64_t before, ebb_buf *query, sqlite3_stmt **out)
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

static looking begin_looking(const ebb_store *s, const search *q)
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
static int run_query(ebb_store *s, const search *q, bool looks, size_t limit, int64_t *before, ebb_store_hit *hits,
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
        if (!looks || (text && has_all(q, text, n_text)))
            take_hit(q, st, &hits[(*n)++]);
        is_cut = looks && *n < limit && is_enough(&l, n_text);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    ebb_buf_fini(&query);
    if (rc == SQLITE_OK)
        return is_cut ? SQLITE_INTERRUPT : SQLITE_DONE;
    return rc;
}

ebb_status ebb_store_search(ebb_store *s, const char *words, size_t limit,
                            ebb_store_hit **out, size_t *n, ebb_error *err)
{
    ebb_store_hit *hits = calloc(limit + 1, sizeof *hits);
    int64_t before = INT64_MAX;
    int rc = SQLITE_INTERRUPT;
    search q;

    *out = NULL;
    *n = 0;
    s->is_search_cut = false;
    if (!hits)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for what is found");
    if (!parse_query(words, &q)) {
        free(hits);
        return EBB_FAIL(err, EBB_USAGE, "search for what? one or more words, %d at most", PHRASES_MAX);
    }
    if (q.has_long || q.has_unspaced)
        rc = run_query(s, &q, true, limit, &before, hits, n);
    if (rc == SQLITE_INTERRUPT) {
        s->is_search_cut = q.has_unspaced;
        rc = run_query(s, &q, false, limit, &before, hits, n);
    }
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
