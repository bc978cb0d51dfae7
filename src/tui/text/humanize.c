/* Numbers, sizes and times as people read them (humanize.h). */
#include "text/humanize.h"

#include <stdio.h>

#include "models/plan_text.h"

void ebb_humanize_count(ebb_buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            ebb_buf_addc(out, ',');
        ebb_buf_addc(out, digits[i]);
    }
}

void ebb_humanize_bytes(ebb_buf *out, uint64_t n)
{
    char text[16];

    ebb_buf_adds(out, ebb_size_text(n, text));
}

void ebb_humanize_rate(ebb_buf *out, double per_s)
{
    char text[16];

    ebb_buf_adds(out, ebb_speed_text(per_s, text));
}

void ebb_humanize_seconds(ebb_buf *out, double s)
{
    unsigned whole = (unsigned)(s + 0.5);

    if (s < 9.95)
        ebb_buf_addf(out, "%.1f s", s);
    else if (whole < 60)
        ebb_buf_addf(out, "%u s", whole);
    else if (whole < 3600)
        ebb_buf_addf(out, "%u min %02u s", whole / 60, whole % 60);
    else
        ebb_buf_addf(out, "%u h %02u min", whole / 3600, whole / 60 % 60);
}
