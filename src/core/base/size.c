/* Sizes as people write them (size.h). */
#include "base/size.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ebb_size_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    double v = strtod(text, &end);
    const char *unit;

    if (end == text || !(v >= 0))
        return false;
    if (*end && (unit = strchr(units, toupper((unsigned char)*end))) != NULL) {
        for (const char *u = units; u <= unit; u++)
            v *= 1024;
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'B')
        end++;
    if (*end || v > 1e18)
        return false;
    *bytes = (uint64_t)v;
    return true;
}

/* Of the last digit that is shown. */
static const char *print_size(uint64_t bytes, double (*round_to)(double), char out[16])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    int u = 0, digits;

    while (v >= 1000 && u < 4) {
        v /= 1024;
        u++;
    }
    digits = u == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
    if (round_to)
        v = digits == 2 ? round_to(v * 100) / 100 : digits == 1 ? round_to(v * 10) / 10 : round_to(v);
    snprintf(out, 16, "%.*f %s", digits, v, units[u]);
    return out;
}

const char *ebb_size_text(uint64_t bytes, char out[16])
{
    return print_size(bytes, NULL, out);
}

const char *ebb_size_text_up(uint64_t bytes, char out[16])
{
    return print_size(bytes, ceil, out);
}

/* Who has said 28.4M gave less than a byte less, and reads 28.4 again. */
const char *ebb_size_text_down(uint64_t bytes, char out[16])
{
    return print_size(bytes >= 1000 && bytes < UINT64_MAX ? bytes + 1 : bytes, floor, out);
}
