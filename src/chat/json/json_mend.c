/* Half characters (json_mend.h). */
#include "json/json_mend.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

/* The \u escape at s: its unit, -1 if there is none. */
static int unit_at(const char *s, const char *end)
{
    int unit = 0;

    if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = ebb_hex_digit(s[i]);

        if (digit < 0)
            return -1;
        unit = 16 * unit + digit;
    }
    return unit;
}

static bool is_high(int unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(int unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* The next half of a surrogate pair alone, which programs write that cut a text within a pair; NULL: there is none. */
static const char *next_half(const char *s, const char *end)
{
    while (s < end && (s = memchr(s, '\\', (size_t)(end - s))) != NULL) {
        int unit = unit_at(s, end);

        if (is_low(unit) || (is_high(unit) && !is_low(unit_at(s + 6, end))))
            return s;
        s += is_high(unit) ? 12 : 2;             /* an escaped backslash begins nothing */
    }
    return NULL;
}

bool ebb_json_mend(const char *s, size_t n, ebb_buf *out)
{
    const char *half = next_half(s, s + n);

    if (!half && ebb_utf8_is_valid(s, n))
        return true;
    if (!ebb_utf8_add_valid(out, s, n))
        return false;
    half = out->data;
    while ((half = next_half(half, out->data + out->len)) != NULL) {
        memcpy(out->data + (half - out->data), "\\uFFFD", 6);
        half += 6;
    }
    return true;
}
