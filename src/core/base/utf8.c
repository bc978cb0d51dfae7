/* UTF-8 decoding with maximal-subpart replacement, and the display filter. */
#include "base/utf8.h"

#include <string.h>

/* Length of the sequence that lead byte `b` begins, and the range its second
 * byte must lie in (Unicode 15, table 3-7).  0: `b` begins nothing. */
static size_t lead(unsigned char b, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (b >= 0xC2 && b <= 0xDF)
        return 2;
    if (b >= 0xE0 && b <= 0xEF) {
        if (b == 0xE0)
            *lo = 0xA0;
        if (b == 0xED)
            *hi = 0x9F;
        return 3;
    }
    if (b >= 0xF0 && b <= 0xF4) {
        if (b == 0xF0)
            *lo = 0x90;
        if (b == 0xF4)
            *hi = 0x8F;
        return 4;
    }
    return 0;
}

size_t ebb_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    unsigned char lo, hi;
    size_t len, i;

    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    *cp = EBB_UTF8_BAD;
    len = lead(u[0], &lo, &hi);
    if (len == 0)
        return 1;
    uint32_t value = u[0] & (0x7Fu >> len);
    for (i = 1; i < len; i++) {
        if (i == n)
            return 0;
        if (u[i] < lo || u[i] > hi)
            return i;
        value = value << 6 | (u[i] & 0x3Fu);
        lo = 0x80;
        hi = 0xBF;
    }
    *cp = value;
    return len;
}

size_t ebb_utf8_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

/* Of what ebb_utf8_decode has made of s: U+FFFD itself is a character. */
static bool is_invalid(const char *s, size_t used, uint32_t cp)
{
    return used == 0 || (cp == EBB_UTF8_BAD && (used != 3 || memcmp(s, "\xEF\xBF\xBD", 3) != 0));
}

bool ebb_utf8_is_valid(const char *s, size_t n)
{
    uint32_t cp;

    for (size_t at = 0, used; at < n; at += used) {
        used = ebb_utf8_decode(s + at, n - at, &cp);
        if (is_invalid(s + at, used, cp))
            return false;
    }
    return true;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t ebb_utf8_cut(const char *s, size_t n, size_t cap)
{
    size_t end = cap;

    if (n <= cap)
        return n;
    while (end > 0 && cap - end < 3 && is_continuation(s[end]))
        end--;
    return end;
}

size_t ebb_utf8_before(const char *s, size_t at)
{
    size_t begin = at - 1, used;
    uint32_t cp;

    while (begin > 0 && at - begin < 4 && is_continuation(s[begin]))
        begin--;
    used = ebb_utf8_decode(s + begin, at - begin, &cp);
    return used == 0 || used == at - begin ? begin : at - 1;     /* else a stray byte behind something whole */
}

void ebb_utf8_remove_last(ebb_buf *b)
{
    size_t at;

    if (b->len == 0)
        return;
    at = ebb_utf8_before(b->data, b->len);
    ebb_buf_remove(b, at, b->len - at);
}

bool ebb_utf8_add_valid(ebb_buf *out, const char *s, size_t n)
{
    while (n > 0) {
        uint32_t cp;
        size_t used = ebb_utf8_decode(s, n, &cp);
        bool is_bad = is_invalid(s, used, cp);

        if (used == 0)
            used = n;
        if (is_bad)
            ebb_buf_adds(out, "\xEF\xBF\xBD");
        else
            ebb_buf_add(out, s, used);
        s += used;
        n -= used;
    }
    return !out->failed;
}

/* Characters that move the cursor, reorder text or hide in it: controls of the second set, Unicode's format
 * characters and its fillers.  ZWJ (200D), ZWNJ (200C), the variation selectors FE00 to FE0F and the Mongolian ones
 * stay: emoji and scripts need them. */
static bool is_format(uint32_t cp)
{
    static const struct { uint32_t first, last;
    } ranges[] = {
        { 0x80, 0x9F },       { 0xAD, 0xAD },       { 0x034F, 0x034F },   { 0x061C, 0x061C }, { 0x115F, 0x1160 },
        { 0x17B4, 0x17B5 },   { 0x180E, 0x180E },   { 0x200B, 0x200B },   { 0x200E, 0x200F }, { 0x2028, 0x202E },
        { 0x2060, 0x206F },   { 0x3164, 0x3164 },   { 0xFEFF, 0xFEFF },   { 0xFFA0, 0xFFA0 }, { 0xFFF0, 0xFFFB },
        { 0x1BCA0, 0x1BCA3 }, { 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF },
    };

    if (cp < 0x80)
        return false;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && cp >= ranges[i].first; i++)
        if (cp <= ranges[i].last)
            return true;
    return false;
}

bool ebb_utf8_has_controls(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F)
            return true;
    return false;
}

bool ebb_utf8_is_visible(uint32_t cp)
{
    return cp >= 0x20 && cp != 0x7F && cp != EBB_UTF8_BAD && !is_format(cp);
}

static size_t count_plain(const char *s, size_t n, bool has_lines)
{
    size_t k = 0;

    while (k < n && ((s[k] >= ' ' && s[k] < 0x7F) || (has_lines && (s[k] == '\n' || s[k] == '\t'))))
        k++;
    return k;
}

static bool add_filtered(ebb_buf *out, const char *s, size_t n, bool has_lines, bool ascii)
{
    for (;;) {
        size_t used = count_plain(s, n, has_lines);        /* most text, in long runs */
        uint32_t cp;

        ebb_buf_add(out, s, used);
        s += used;
        n -= used;
        if (n == 0)
            break;
        used = ebb_utf8_decode(s, n, &cp);
        if (used == 0) {
            used = n;
            cp = EBB_UTF8_BAD;
        }
        if (cp < 0x20 || cp == 0x7F) {
            char picture[4];
            if (ascii)
                ebb_buf_addf(out, "^%c", (char)(cp ^ 0x40));
            else
                ebb_buf_add(out, picture, ebb_utf8_encode(cp == 0x7F ? 0x2421 : 0x2400 + cp, picture));
        } else if (is_format(cp))
            ebb_buf_addf(out, "<U+%04X>", (unsigned)cp);
        else if (cp == EBB_UTF8_BAD)
            ebb_buf_adds(out, ascii ? "?" : "\xEF\xBF\xBD");
        else
            ebb_buf_add(out, s, used);
        s += used;
        n -= used;
    }
    return !out->failed;
}

bool ebb_utf8_add_visible(ebb_buf *out, const char *s, size_t n, bool ascii)
{
    return add_filtered(out, s, n, true, ascii);
}

bool ebb_utf8_add_line(ebb_buf *out, const char *s, size_t n, bool ascii)
{
    return add_filtered(out, s, n, false, ascii);
}
