/* Smart-case search (pattern.h), by Knuth, Morris and Pratt: over the code points of the text, folded unless the
 * pattern has capitals, each of which is looked at once. */
#include "text/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum { LONGEST_CP = 4, BLOCK = 4096 };           /* bytes */

struct ebb_pattern_point {
    uint32_t cp;
    size_t   border;             /* points that both begin and end the pattern up to this one: fewer than those */
};

static uint32_t lower_code_point(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

/* The code point at s[*at], past which *at moves. */
static uint32_t next_cp(const char *s, size_t n, size_t *at)
{
    uint32_t cp = EBB_UTF8_BAD;
    size_t used = ebb_utf8_decode(s + *at, n - *at, &cp);

    *at += used > 0 ? used : n - *at;
    return cp;
}

/* How much of the pattern has been read behind one more code point, where its first k points were: of all its
 * beginnings that end there, the longest. */
static size_t step(const ebb_pattern *p, size_t k, uint32_t cp)
{
    while (k > 0 && p->points[k].cp != cp)
        k = p->points[k - 1].border;
    return k + (p->points[k].cp == cp);
}

void ebb_pattern_fini(ebb_pattern *p)
{
    free(p->points);
    *p = (ebb_pattern){ 0 };
}

void ebb_pattern_set(ebb_pattern *p, const char *s, size_t n)
{
    ebb_pattern_fini(p);
    p->points = n > 0 ? calloc(n, sizeof *p->points) : NULL;
    if (!p->points)
        return;
    for (size_t at = 0; at < n; p->n++) {
        uint32_t cp = next_cp(s, n, &at);
        p->points[p->n].cp = cp;
        p->is_exact = p->is_exact || lower_code_point(cp) != cp;
    }
    for (size_t i = 1; i < p->n; i++)
        p->points[i].border = step(p, p->points[i - 1].border, p->points[i].cp);
}

size_t ebb_pattern_reach(const ebb_pattern *p)
{
    return p->n * LONGEST_CP;
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* false: no match begins with c.  Most of a text is passed by this alone. */
static bool may_begin(const ebb_pattern *p, unsigned char c)
{
    uint32_t first = p->points[0].cp;

    return !is_continuation(c) &&
           (first >= 0x80 || c >= 0x80 || c == first || (!p->is_exact && lower_code_point(c) == first));
}

/* The first match that begins in s[from..before) and ends in s[..n), or the last; p is not empty. */
static size_t find_between(const ebb_pattern *p, const char *s, size_t n, size_t from, size_t before, bool is_last,
                           size_t *len)
{
    size_t begin = from, at = from, n_read = 0, found = SIZE_MAX;    /* s[begin..at) is n_read points of the pattern */

    while (at < n && begin < before) {
        if (n_read == 0 && !may_begin(p, (unsigned char)s[at])) {
            begin = ++at;
            continue;
        }
        uint32_t cp = next_cp(s, n, &at);
        size_t now = step(p, n_read, p->is_exact ? cp : lower_code_point(cp)), n_left = n_read + 1 - now;
        bool is_match = now == p->n;
        if (is_match && !is_continuation((unsigned char)s[begin])) {
            found = begin;
            *len = at - begin;
            if (!is_last)
                break;
        }
        n_read = is_match ? p->points[now - 1].border : now;
        n_left += now - n_read;
        if (n_read == 0)
            begin = at;
        for (; n_read > 0 && n_left > 0; n_left--)
            next_cp(s, n, &begin);
    }
    return found;
}

size_t ebb_pattern_find(const ebb_pattern *p, const char *s, size_t n, size_t from, size_t *len)
{
    return p->n > 0 ? find_between(p, s, n, from, n, false, len) : SIZE_MAX;
}

/* Block by block, back from `before`: each is read on for as long as a match reaches that begins in it. */
size_t ebb_pattern_find_last(const ebb_pattern *p, const char *s, size_t n, size_t before, size_t *len)
{
    size_t reach = ebb_pattern_reach(p), found = SIZE_MAX;

    for (size_t to = before < n ? before : n, from; p->n > 0 && to > 0 && found == SIZE_MAX; to = from) {
        from = to > BLOCK + reach ? to - BLOCK - reach : 0;
        found = find_between(p, s, n - to > reach ? to + reach : n, from, to, true, len);
    }
    return found;
}
