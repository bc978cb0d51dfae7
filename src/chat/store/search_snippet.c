/* What is shown of a message that a search has found (search_words.h). */
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "store/search_words.h"
#include "store/store.h"

enum { SNIPPET_BEFORE = 4, SNIPPET_WORDS = 14 };
enum { LETTERS_BEFORE = 20, LETTERS_BEHIND = 30 };        /* of a snippet without blanks */

static bool is_char_start(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static bool is_hit(const ebb_search *q, const char *s, size_t n)
{
    for (size_t i = 0; i < q->n_words; i++)
        for (size_t at = 0, len; (len = ebb_search_next_word(q->words[i].s, q->words[i].n, &at)) > 0; at += len)
            if (ebb_search_word_begins(s, n, q->words[i].s + at, len))
                return true;
    return false;
}

/* Where the words around the first hit begin. */
static size_t snippet_start(const ebb_search *q, const char *s, size_t n)
{
    size_t ring[SNIPPET_BEFORE + 1] = { 0 }, n_seen = 0;

    for (size_t at = 0, len; (len = ebb_search_next_word(s, n, &at)) > 0; at += len) {
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
static bool unspaced_snippet(const ebb_search *q, const char *s, size_t n, char *out, size_t cap)
{
    const char *hit = NULL, *from, *to;
    ebb_buf text = { 0 };
    const ebb_search_word *w = q->words;
    size_t n_hit = 0;

    while (w < q->words + q->n_words && !(w->n_unspaced && (hit = ebb_search_find_unspaced(s, n, w, &n_hit))))
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

static void words_snippet(const ebb_search *q, const char *s, size_t n, char *out, size_t cap)
{
    size_t start = snippet_start(q, s, n), at = start, from = start, len;
    ebb_buf text = { 0 };

    if (start > 0)
        ebb_buf_adds(&text, "…");
    for (int i = 0; i < SNIPPET_WORDS && (len = ebb_search_next_word(s, n, &at)) > 0 && text.len + len < cap;
         i++, at += len) {
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
    if (ebb_search_next_word(s, n, &at) > 0)
        ebb_buf_adds(&text, "…");
    else
        ebb_buf_add(&text, s + from, n - from < 16 ? n - from : 0);
    copy_snippet(&text, out, cap);
}

void ebb_search_snippet(const ebb_search *q, const char *s, size_t n, char *out, size_t cap)
{
    if (!unspaced_snippet(q, s, n, out, cap))
        words_snippet(q, s, n, out, cap);
}
