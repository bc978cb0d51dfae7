/* Sizes as people write them (size.h). */
#include "base/size.h"

#include <ctype.h>
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

const char *ebb_size_text(uint64_t bytes, char out[16])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    int u = 0;

    while (v >= 1000 && u < 4) {
        v /= 1024;
        u++;
    }
    snprintf(out, 16, u == 0 || v >= 99.95 ? "%.0f %s" : v >= 9.995 ? "%.1f %s" : "%.2f %s", v, units[u]);
    return out;
}
