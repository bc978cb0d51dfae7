/* What a download says while it runs (download_priv.h). */
#include "pull/download_priv.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define FRAME_S 0.25             /* between two reports */
#define RATE_S  0.5              /* a speed is taken over so long, and smoothed */

void ebb_download_notice(const ebb_download *d, const char *fmt, ...)
{
    char line[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    ebb_log("pull", "%s: %s", d->request->name, line);
    if (d->env->on_notice)
        d->env->on_notice(d->env->arg, line);
}

bool ebb_download_is_canceled(const ebb_download *d)
{
    return d->env->is_canceled && d->env->is_canceled(d->env->arg);
}

void ebb_download_report(ebb_download *d, uint64_t done, bool is_check, bool must)
{
    double now = ebb_clock_s(), speed;
    ebb_download_progress p = { .done = done, .total = d->total, .left_s = -1, .is_check = is_check };

    if (now - d->rate_at >= RATE_S) {
        speed = (double)(done - d->rate_pos) / (now - d->rate_at);
        if (d->rate_at > 0 && done >= d->rate_pos)
            d->bytes_s = d->bytes_s > 0 ? d->bytes_s * 0.8 + speed * 0.2 : speed;
        d->rate_at = now;
        d->rate_pos = done;
    }
    if (!d->request->on_progress || (!must && now - d->frame_at < FRAME_S))
        return;
    d->frame_at = now;
    p.bytes_s = d->bytes_s > 0 ? d->bytes_s : -1;
    if (d->bytes_s > 0 && d->total != UNKNOWN)
        p.left_s = (double)(d->total - done) / d->bytes_s;
    d->request->on_progress(d->request->arg, &p);
}

void ebb_download_reset_rate(ebb_download *d)
{
    d->rate_at = 0;
    d->bytes_s = 0;
}
