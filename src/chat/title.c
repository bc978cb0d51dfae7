/* Titles (title.h). */
#include "title.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

#define COLUMNS 50

static bool is_blank(uint32_t cp)
{
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0xa0 || cp == 0x2028 || cp == 0x2029;
}

static bool is_unseen(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);

    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CS || c == UTF8PROC_CATEGORY_CN ||
           (c == UTF8PROC_CATEGORY_CF && cp != 0x200d);
}

void ebb_title_make(const char *text, size_t n, char *out, size_t cap)
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
        gap |= is_blank(cp) && len > 0;
        if (is_blank(cp) || is_unseen(cp))
            continue;
        if (columns + gap + width > COLUMNS || len + gap + n_bytes + sizeof dots > cap) {
            memcpy(out + cut, dots, sizeof dots);
            return;
        }
        if (gap)
            out[len++] = ' ';
        memcpy(out + len, bytes, n_bytes);
        columns += gap + width;
        len += n_bytes;
        if (columns < COLUMNS)
            cut = len;
        gap = false;
    }
    out[len] = '\0';
}
