/* Smart-case search (pattern.h). */
#include "text/pattern.h"

#include <stdint.h>
#include <utf8proc.h>

#include "base/utf8.h"

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

void ebb_pattern_fini(ebb_pattern *p)
{
    ebb_buf_fini(&p->text);
}

void ebb_pattern_set(ebb_pattern *p, const char *s, size_t n)
{
    ebb_buf_clear(&p->text);
    ebb_buf_add(&p->text, s, n);
    p->is_exact = false;
    for (size_t at = 0; at < n;) {
        uint32_t cp = next_cp(s, n, &at);
        p->is_exact = p->is_exact || lower_code_point(cp) != cp;
    }
}

/* Bytes of s[0..n) that the pattern covers at its beginning; 0: no match. */
static size_t match_pattern_at(const ebb_pattern *p, const char *s, size_t n)
{
    size_t at = 0;

    for (size_t k = 0; k < p->text.len;) {
        uint32_t want = next_cp(p->text.data, p->text.len, &k);
        if (at >= n)
            return 0;
        uint32_t have = next_cp(s, n, &at);
        if (want != have && (p->is_exact || want != lower_code_point(have)))
            return 0;
    }
    return at;
}

size_t ebb_pattern_find(const ebb_pattern *p, const char *s, size_t n, size_t from, size_t *len)
{
    unsigned char first = p->text.len > 0 ? (unsigned char)p->text.data[0] : 0;

    for (size_t at = from; p->text.len > 0 && at < n; at++) {
        unsigned char c = (unsigned char)s[at];
        if ((c & 0xC0) == 0x80 ||
            (first < 0x80 && c < 0x80 && c != first && (p->is_exact || lower_code_point(c) != first)))
            continue;
        *len = match_pattern_at(p, s + at, n - at);
        if (*len > 0)
            return at;
    }
    return SIZE_MAX;
}

size_t ebb_pattern_find_last(const ebb_pattern *p, const char *s, size_t n, size_t before, size_t *len)
{
    for (size_t at = before < n ? before : n; p->text.len > 0 && at > 0;) {
        at--;
        if (((unsigned char)s[at] & 0xC0) == 0x80)
            continue;
        *len = match_pattern_at(p, s + at, n - at);
        if (*len > 0)
            return at;
    }
    return SIZE_MAX;
}
