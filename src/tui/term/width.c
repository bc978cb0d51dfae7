/* Grapheme clusters and their columns (width.h). */
#include "term/width.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum { ZWJ = 0x200D, TONE_FIRST = 0x1F3FB, TONE_LAST = 0x1F3FF, REGION_A = 0x1F1E6, REGION_Z = 0x1F1FF,
       FAR = 1024 /* bytes: how far back a place is looked for at which a cluster ends */ };

typedef struct range { uint32_t first, last; } range;

/* Indic_Conjunct_Break = Consonant and Linker: rule GB9c (the scripts of Unicode
 * 15.1, and Myanmar, Khmer and Balinese, which came later). */
static const range consonants[] = {
    { 0x0915, 0x0939 }, { 0x0958, 0x095F }, { 0x0978, 0x097F }, { 0x0995, 0x09A8 }, { 0x09AA, 0x09B0 },
    { 0x09B2, 0x09B2 }, { 0x09B6, 0x09B9 }, { 0x09DC, 0x09DD }, { 0x09DF, 0x09DF }, { 0x09F0, 0x09F1 },
    { 0x0A95, 0x0AA8 }, { 0x0AAA, 0x0AB0 }, { 0x0AB2, 0x0AB3 }, { 0x0AB5, 0x0AB9 }, { 0x0AF9, 0x0AF9 },
    { 0x0B15, 0x0B28 }, { 0x0B2A, 0x0B30 }, { 0x0B32, 0x0B33 }, { 0x0B35, 0x0B39 }, { 0x0B5C, 0x0B5D },
    { 0x0B5F, 0x0B5F }, { 0x0B71, 0x0B71 }, { 0x0C15, 0x0C28 }, { 0x0C2A, 0x0C39 }, { 0x0C58, 0x0C5A },
    { 0x0D15, 0x0D3A }, { 0x1000, 0x102A }, { 0x103F, 0x103F }, { 0x1780, 0x17B3 }, { 0x1B0B, 0x1B0C },
    { 0x1B13, 0x1B33 }, { 0x1B45, 0x1B4C },
};
static const range linkers[] = {
    { 0x094D, 0x094D }, { 0x09CD, 0x09CD }, { 0x0ACD, 0x0ACD }, { 0x0B4D, 0x0B4D }, { 0x0C4D, 0x0C4D },
    { 0x0D4D, 0x0D4D }, { 0x1039, 0x1039 }, { 0x17D2, 0x17D2 }, { 0x1B44, 0x1B44 },
};

static bool in_ranges(uint32_t cp, const range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= r[i].first && cp <= r[i].last)
            return true;
    return false;
}

static bool is_consonant(uint32_t cp)
{
    return cp >= 0x0915 && cp <= 0x1B4C && in_ranges(cp, consonants, sizeof consonants / sizeof *consonants);
}

static bool is_linker(uint32_t cp)
{
    return cp >= 0x094D && cp <= 0x1B44 && in_ranges(cp, linkers, sizeof linkers / sizeof *linkers);
}

static bool is_joining(uint32_t cp)
{
    return cp == ZWJ || utf8proc_get_property((utf8proc_int32_t)cp)->boundclass == UTF8PROC_BOUNDCLASS_EXTEND;
}

/* Columns of one code point: 0, 1 or 2. */
static int code_point_width(uint32_t cp)
{
    if (cp < 0x300)
        return cp >= 0x20 && (cp < 0x7F || cp >= 0xA0);
    if ((cp >= 0x1160 && cp <= 0x11FF) || (cp >= 0xD7B0 && cp <= 0xD7FF))
        return 0;                                /* Hangul vowels and finals join their initial */
    if (cp >= 0x4DC0 && cp <= 0x4DFF)
        return 2;
    if (utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MC)
        return 1;                                /* as wcwidth and terminals have it */
    return utf8proc_charwidth((utf8proc_int32_t)cp);
}

static bool is_region(uint32_t cp)
{
    return cp >= REGION_A && cp <= REGION_Z;
}

/* Columns that `cp` adds to a cluster in which it follows `before`. */
static int added_width(uint32_t before, uint32_t cp)
{
    if (before == ZWJ || (cp >= TONE_FIRST && cp <= TONE_LAST && before))
        return 0;
    return code_point_width(cp);
}

/* State of rule GB9c over a cluster: a consonant was seen, then a linker. */
typedef struct conjunct { bool consonant, linker; } conjunct;

static void conjunct_step(conjunct *c, uint32_t cp)
{
    if (is_consonant(cp))
        *c = (conjunct){ .consonant = true };
    else if (is_linker(cp))
        c->linker = c->consonant;
    else if (!is_joining(cp))
        *c = (conjunct){ 0 };
}

static size_t decode_code_point(const char *s, size_t n, uint32_t *cp)
{
    size_t used = ebb_utf8_decode(s, n, cp);

    if (used)
        return used;
    *cp = EBB_UTF8_BAD;
    return n;
}

size_t ebb_cluster_next(const char *s, size_t n, int *width)
{
    utf8proc_int32_t state = 0;
    uint32_t cp;
    conjunct conj = { 0 };
    size_t at;
    int w;

    if ((unsigned char)s[0] >= 0x20 && (unsigned char)s[0] < 0x7F && (n == 1 || (unsigned char)s[1] < 0x80)) {
        if (width)
            *width = 1;
        return 1;
    }
    at = decode_code_point(s, n, &cp);
    w = added_width(0, cp);
    conjunct_step(&conj, cp);
    while (at < n) {
        uint32_t next;
        size_t used = decode_code_point(s + at, n - at, &next);
        bool joined = conj.linker && is_consonant(next);

        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state) && !joined)
            break;
        if (at + used > EBB_CLUSTER_MAX)
            break;
        w += added_width(cp, next);
        conjunct_step(&conj, next);
        cp = next;
        at += used;
    }
    if (width)
        *width = w;
    return at;
}

bool ebb_is_wide(uint32_t cp)
{
    return is_region(cp) || code_point_width(cp) == 2;
}

/* Whether a linker may be among the marks that end at byte `at`: a consonant behind them then goes on with their
 * cluster. */
static bool may_link(const char *s, size_t at)
{
    uint32_t cp = ZWJ;

    for (size_t begin = at; begin > 0 && at - begin < FAR && is_joining(cp) && !is_linker(cp);) {
        begin = ebb_utf8_before(s, begin);
        decode_code_point(s + begin, at - begin, &cp);
    }
    return is_joining(cp) || is_linker(cp);
}

/* Whether a cluster ends at byte `at` > 0, whatever stands in front of the characters that meet there. */
static bool ends_surely(const char *s, size_t n, size_t at)
{
    size_t before = ebb_utf8_before(s, at);
    utf8proc_int32_t state = 0;
    uint32_t left, right;

    if (decode_code_point(s + before, n - before, &left) != at - before)
        return false;
    decode_code_point(s + at, n - at, &right);
    if ((left == ZWJ && right >= 0x80) || (is_region(left) && is_region(right)))     /* emoji; flags */
        return false;
    return utf8proc_grapheme_break_stateful((utf8proc_int32_t)left, (utf8proc_int32_t)right, &state) &&
           !(is_consonant(right) && may_link(s, at));
}

size_t ebb_cluster_prev(const char *s, size_t n, size_t at)
{
    size_t start = at, last;

    do
        start = ebb_utf8_before(s, start);
    while (start > 0 && at - start < FAR && !ends_surely(s, n, start));
    for (last = start; start < at;) {
        last = start;
        start += ebb_cluster_next(s + start, n - start, NULL);
    }
    return last;
}

int ebb_width_text(const char *s, size_t n)
{
    int col = 0, w;

    for (size_t at = 0; at < n;) {
        if (s[at] == '\t') {
            col += EBB_TAB_COLUMNS - col % EBB_TAB_COLUMNS;
            at++;
            continue;
        }
        at += ebb_cluster_next(s + at, n - at, &w);
        col += w;
    }
    return col;
}

size_t ebb_cluster_part(const char *s, size_t n, size_t *at, char *out, size_t cap, int *width)
{
    size_t begin = *at, len = 0, used;
    uint32_t cp, before = 0;

    *width = 0;
    while (*at < n) {
        used = decode_code_point(s + *at, n - *at, &cp);
        int w = added_width(before, cp);
        if (w > 0 && *width > 0)
            break;
        bool is_drawn = is_region(cp) || w > 0 || (before != ZWJ && cp != ZWJ && code_point_width(cp) == 0 &&
                                                    !(cp >= 0xFE00 && cp <= 0xFE0F) && cp < 0xE0000);
        if (is_region(cp) && cap > 1)
            out[len++] = (char)('A' + (int)(cp - REGION_A));
        else if (is_drawn && len + used + 1 <= cap) {
            memcpy(out + len, s + *at, used);
            len += used;
        }
        *width += w;
        before = cp;
        *at += used;
    }
    out[len] = '\0';
    return *at - begin;
}
