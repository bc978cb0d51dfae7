/* Titles (title.h). */
#include "store/title.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "tree/attachment.h"

#define COLUMNS 50

static bool is_blank_cp(uint32_t cp)
{
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0xa0 || cp == 0x2028 || cp == 0x2029;
}

/* What the filter would show as a number, and what has no picture. */
static bool is_invisible_cp(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);

    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CS || c == UTF8PROC_CATEGORY_CN ||
           (c == UTF8PROC_CATEGORY_CF && cp != 0x200d) || (cp != EBB_UTF8_BAD && !ebb_utf8_is_visible(cp));
}

size_t ebb_title_own_words(const char *s, size_t n)
{
    size_t at = ebb_attachments_end(s, n);

    while (at > 0 && at < n && s[at] == '\n')
        at++;
    return at < n ? at : 0;
}

static void write_line(const char *text, size_t n, int max_columns, char *out, size_t cap)
{
    static const char dots[] = "…";
    size_t at = 0, len = 0, cut = 0;             /* cut: where the dots would go */
    int columns = 0;
    bool gap = false;

    while (at < n) {
        uint32_t cp = EBB_UTF8_BAD;
        char bytes[4];
        size_t step = ebb_utf8_decode(text + at, n - at, &cp), n_bytes = ebb_utf8_encode(cp, bytes);
        int width = utf8proc_charwidth((utf8proc_int32_t)cp);

        at += step ? step : n - at;
        gap |= is_blank_cp(cp) && len > 0;
        if (is_blank_cp(cp) || is_invisible_cp(cp))
            continue;
        if (columns + gap + width > max_columns || len + gap + n_bytes >= cap) {
            memcpy(out + cut, dots, sizeof dots);
            return;
        }
        if (gap)
            out[len++] = ' ';
        memcpy(out + len, bytes, n_bytes);
        columns += gap + width;
        len += n_bytes;
        if (columns < max_columns && len + sizeof dots <= cap)
            cut = len;
        gap = false;
    }
    out[len] = '\0';
}

void ebb_title_make(const char *text, size_t n, char *out, size_t cap)
{
    size_t at = ebb_title_own_words(text, n);

    write_line(text + at, n - at, COLUMNS, out, cap);
}

void ebb_title_read(const char *text, size_t n, char *out, size_t cap)
{
    write_line(text, n, INT_MAX, out, cap);
}
