/* Characters in GBNF text: literals and sets, with their escapes (gbnf_reader.h). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "base/utf8.h"
#include "grammar/gbnf_reader.h"

enum { LAST_CHAR = 0x10FFFF };

/* -- One character ------------------------------------------------------------------------- */

static bool read_hex(ebb_gbnf_reader *p, const char *from, size_t n_digits, uint32_t *cp)
{
    *cp = 0;
    for (size_t i = 0; i < n_digits; i++, p->at++) {
        int digit = p->at < p->end ? ebb_hex_digit(*p->at) : -1;

        if (digit < 0)
            return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the escape needs %zu hexadecimal digits", n_digits);
        *cp = *cp << 4 | (uint32_t)digit;
    }
    if (*cp > LAST_CHAR || (*cp >= 0xD800 && *cp <= 0xDFFF))
        return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the escape is not a character");
    return true;
}

static bool read_escape(ebb_gbnf_reader *p, uint32_t *cp)
{
    const char *from = p->at++;
    char c = p->at < p->end ? *p->at++ : '\0';

    switch (c) {
    case 'x': return read_hex(p, from, 2, cp);
    case 'u': return read_hex(p, from, 4, cp);
    case 'U': return read_hex(p, from, 8, cp);
    case 'n': *cp = '\n'; return true;
    case 'r': *cp = '\r'; return true;
    case 't': *cp = '\t'; return true;
    case '\\': case '"': case '[': case ']': *cp = (uint32_t)c; return true;
    default: return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] "
                                     "\\x41 \\u0041 \\U00000041");
    }
}

static bool read_char(ebb_gbnf_reader *p, uint32_t *cp)
{
    size_t n;

    if (*p->at == '\\')
        return read_escape(p, cp);
    n = ebb_utf8_decode(p->at, (size_t)(p->end - p->at), cp);
    if (n == 0 || (*cp == EBB_UTF8_BAD && n != 3))
        return ebb_gbnf_fail_at(p, p->at, EBB_FORMAT, "invalid UTF-8");
    p->at += n;
    return true;
}

/* -- Literals ------------------------------------------------------------------------------ */

static bool add_text_char(ebb_gbnf_reader *p, uint32_t cp)
{
    ebb_gbnf *t = p->t;
    char bytes[4];
    size_t n = ebb_utf8_encode(cp, bytes);

    for (size_t i = 0; i < n; i++) {
        char *grown = ebb_grow(t->text, t->n_text, &t->cap_text, 1);
        if (!grown)
            return ebb_gbnf_fail_no_memory(p);
        t->text = grown;
        grown[t->n_text++] = bytes[i];
    }
    return true;
}

uint32_t ebb_gbnf_read_literal(ebb_gbnf_reader *p)
{
    const char *from = p->at++;
    uint32_t first = (uint32_t)p->t->n_text, cp = 0;

    while (p->at < p->end && *p->at != '"')
        if (!read_char(p, &cp) || !add_text_char(p, cp))
            return EBB_GRAMMAR_NONE;
    if (p->at >= p->end) {
        ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the \" that begins here is never closed");
        return EBB_GRAMMAR_NONE;
    }
    p->at++;
    return ebb_gbnf_add_node(p, EBB_GBNF_TEXT, first, (uint32_t)p->t->n_text - first, 0);
}

/* -- Sets of characters ------------------------------------------------------------------ */

static bool add_char_range(ebb_gbnf_reader *p, uint32_t first, uint32_t last)
{
    ebb_gbnf *t = p->t;
    uint32_t *grown = ebb_grow(t->ranges, t->n_ranges, &t->cap_ranges, 2 * sizeof *grown);

    if (!grown)
        return ebb_gbnf_fail_no_memory(p);
    t->ranges = grown;
    grown[2 * t->n_ranges] = first;
    grown[2 * t->n_ranges++ + 1] = last;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sort the ranges from `first` on, join what overlaps. */
static void join_ranges(ebb_gbnf *t, size_t first)
{
    uint32_t *r = t->ranges + 2 * first;
    size_t n = t->n_ranges - first, kept = 0;

    if (n > 1)
        qsort(r, n, 2 * sizeof *r, compare_ranges);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && r[2 * i] <= r[2 * kept - 1] + 1) {
            if (r[2 * i + 1] > r[2 * kept - 1])
                r[2 * kept - 1] = r[2 * i + 1];
            continue;
        }
        r[2 * kept] = r[2 * i];
        r[2 * kept++ + 1] = r[2 * i + 1];
    }
    t->n_ranges = first + kept;
}

/* What is between the joined ranges from `first` on takes their place. */
static bool invert_ranges(ebb_gbnf_reader *p, size_t first)
{
    ebb_gbnf *t = p->t;
    uint32_t from = 0;

    for (size_t i = first; i < t->n_ranges; i++) {
        uint32_t begin = t->ranges[2 * i], last = t->ranges[2 * i + 1];
        t->ranges[2 * i] = from;
        t->ranges[2 * i + 1] = begin - 1;        /* of nothing in front of 0: dropped below */
        from = last + 1;
    }
    if (t->n_ranges > first && t->ranges[2 * first + 1] == UINT32_MAX) {
        memmove(t->ranges + 2 * first, t->ranges + 2 * first + 2,
                2 * (t->n_ranges - first - 1) * sizeof *t->ranges);
        t->n_ranges--;
    }
    return from > LAST_CHAR || add_char_range(p, from, LAST_CHAR);
}

static bool read_range(ebb_gbnf_reader *p)
{
    const char *from = p->at;
    uint32_t first = 0, last;

    if (!read_char(p, &first))
        return false;
    last = first;
    if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
        p->at++;
        if (!read_char(p, &last))
            return false;
    }
    if (last < first)
        return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the range ends before it begins");
    return add_char_range(p, first, last);
}

uint32_t ebb_gbnf_read_set(ebb_gbnf_reader *p)
{
    const char *from = p->at++;
    size_t first = p->t->n_ranges;
    bool is_inverted = ebb_gbnf_is_next(p, '^');

    p->at += is_inverted;
    while (p->at < p->end && *p->at != ']')
        if (!read_range(p))
            return EBB_GRAMMAR_NONE;
    if (p->at >= p->end) {
        ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the [ that begins here is never closed");
        return EBB_GRAMMAR_NONE;
    }
    p->at++;
    join_ranges(p->t, first);
    if (is_inverted && !invert_ranges(p, first))
        return EBB_GRAMMAR_NONE;
    if (p->t->n_ranges == first) {
        ebb_gbnf_fail_at(p, from, EBB_FORMAT, "no character is in this set");
        return EBB_GRAMMAR_NONE;
    }
    return ebb_gbnf_add_node(p, EBB_GBNF_CHARS, (uint32_t)first, (uint32_t)(p->t->n_ranges - first), 0);
}

uint32_t ebb_gbnf_read_any_char(ebb_gbnf_reader *p)
{
    uint32_t first = (uint32_t)p->t->n_ranges;

    p->at++;
    return add_char_range(p, 0, LAST_CHAR) ? ebb_gbnf_add_node(p, EBB_GBNF_CHARS, first, 1, 0) : EBB_GRAMMAR_NONE;
}
