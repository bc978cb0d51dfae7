/* Speeds that were measured before (speeds.h). */
#include "plan/speeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/paths.h"

#define FILE_MAX  ((size_t)64 << 10)
#define LINES_MAX 200            /* the last ones stay */
#define DAY_S     86400
#define FOUNDED   3u             /* measurements that a figure rests on for good */
#define BAND      0.1            /* so much worse is still the same speed */
#define FOLLOW_UP 0.5            /* how far a figure goes to a better measurement, ... */
#define STEP_UP   0.1            /* ... but not further than by that, if it is founded, ... */
#define FOLLOW    0.125          /* ... and to one a little worse */
#define APART_S   (6 * 3600)     /* worse ones that are nearer to each other count once */
#define UNQUIET_S 600            /* so long serves what nobody has measured in quiet */
#define N_LOW     6u             /* so many of them displace what is founded ... */
#define N_LOW_NEW 3u             /* ... and what is not */

static int64_t clock_s(const ebb_speeds *s)
{
    return s->now_s ? s->now_s : (int64_t)time(NULL);
}

/* Another build may have other kernels. */
static uint64_t build_id(void)
{
    ebb_file_id id = { 0 };
    int fd;

    if (ebb_file_open("/proc/self/exe", EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return 0;
    if (ebb_file_get_id(fd, "the program", &id, NULL) != EBB_OK)
        id = (ebb_file_id){ 0 };
    ebb_file_close(fd);
    return (uint64_t)id.modified_ns ^ id.n_bytes << 40;
}

static ebb_speed *find_speed(const ebb_speeds *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return (ebb_speed *)(uintptr_t)&s->list[i];
    return NULL;
}

/* -- The file ----------------------------------------------------------------------- */

static bool read_speeds_file(ebb_buf *text)
{
    ebb_buf path = { 0 };
    bool ok = ebb_path_in(EBB_DIR_CACHE, "speeds", &path, NULL) == EBB_OK &&
              ebb_file_slurp_kept(path.data, FILE_MAX, text, NULL) == EBB_OK && !text->failed;

    ebb_buf_fini(&path);
    return ok;
}

static bool is_speed(double v)
{
    return v >= 0 && v < 1e18;
}

/* "owner \t name \t v0 \t v1 \t when \t asked \t n \t contention \t low0 \t low1 \t when \t n"; false: not one of
 * ours. */
static bool parse_speed(const char *line, size_t n, const char *owner, ebb_speed *out)
{
    size_t n_owner = strlen(owner);
    char text[256];

    if (n >= sizeof text || n <= n_owner || memcmp(line, owner, n_owner) != 0 || line[n_owner] != '\t')
        return false;
    memcpy(text, line + n_owner + 1, n - n_owner - 1);
    text[n - n_owner - 1] = '\0';
    return sscanf(text,
                  "%31[^\t]\t%lf\t%lf\t%" SCNd64 "\t%" SCNd64 "\t%" SCNu32 "\t%lf\t%lf\t%lf\t%" SCNd64
                  "\t%" SCNu32,
                  out->name, &out->v[0], &out->v[1], &out->when_s, &out->asked_s, &out->n_seen, &out->contention,
                  &out->low[0], &out->low[1], &out->low_s, &out->n_low) == 11 &&
           out->v[0] > 0 && is_speed(out->contention) && is_speed(out->v[0]) && is_speed(out->v[1]) &&
           is_speed(out->low[0]) && is_speed(out->low[1]) && out->when_s >= 0 && out->asked_s >= 0 && out->low_s >= 0;
}

void ebb_speeds_load(ebb_speeds *s, const ebb_kernels *kern, uint32_t n_threads)
{
    ebb_buf text = { 0 };
    char cpu[64];

    memset(s, 0, sizeof *s);
    ebb_cpu_name(cpu);
    snprintf(s->owner, sizeof s->owner, "%s, %s, %u threads, build %llx", cpu, kern->name, n_threads,
             (unsigned long long)build_id());
    if (read_speeds_file(&text))
        for (const char *p = ebb_buf_text(&text); *p && s->n < EBB_MAX_SPEEDS;) {
            size_t n = strcspn(p, "\n");

            s->n += parse_speed(p, n, s->owner, &s->list[s->n]);
            p += n + (p[n] == '\n');
        }
    ebb_buf_fini(&text);
}

/* The lines of others, the last ones if there are many. */
static void add_others(ebb_buf *out, const char *text, const char *owner)
{
    size_t n_owner = strlen(owner);
    int n_lines = 0;

    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n_lines++;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");

        if (n_lines-- <= LINES_MAX && n > 0 && strncmp(p, owner, n_owner) != 0)
            ebb_buf_addf(out, "%.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static ebb_status write_speeds_file(const ebb_buf *text, ebb_error *err)
{
    ebb_buf dir = { 0 }, path = { 0 };
    ebb_status st = ebb_path_in(EBB_DIR_CACHE, NULL, &dir, err);

    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_CACHE, "speeds", &path, err);
    if (st == EBB_OK)
        st = ebb_file_mkdirs(dir.data, err);
    if (st == EBB_OK)
        st = ebb_file_replace(path.data, text->data, text->len, err);
    ebb_buf_fini(&dir);
    ebb_buf_fini(&path);
    return st;
}

void ebb_speeds_save(ebb_speeds *s)
{
    ebb_buf before = { 0 }, text = { 0 };
    ebb_error err = { 0 };

    if (!s->is_changed)
        return;
    s->is_changed = false;
    if (read_speeds_file(&before))
        add_others(&text, ebb_buf_text(&before), s->owner);
    for (uint32_t i = 0; i < s->n; i++) {
        const ebb_speed *x = &s->list[i];

        ebb_buf_addf(
            &text,
            "%s\t%s\t%.6g\t%.6g\t%" PRId64 "\t%" PRId64 "\t%" PRIu32 "\t%.3g\t%.6g\t%.6g\t%" PRId64 "\t%" PRIu32 "\n",
            s->owner, x->name, x->v[0], x->v[1], x->when_s, x->asked_s, x->n_seen, x->contention, x->low[0],
            x->low[1], x->low_s, x->n_low);
    }
    if (text.failed || write_speeds_file(&text, &err) != EBB_OK)
        ebb_log("plan", "speeds are not kept: %s", text.failed ? "no memory" : err.msg);
    ebb_buf_fini(&before);
    ebb_buf_fini(&text);
}

/* -- Figures -------------------------------------------------------------------------- */

static int64_t seconds_since(const ebb_speeds *s, int64_t then_s)
{
    int64_t age = clock_s(s) - then_s;

    return age >= -DAY_S ? age : INT64_MAX;
}

int64_t ebb_speeds_age_s(const ebb_speeds *s, const ebb_speed *x)
{
    return seconds_since(s, x->when_s);
}

/* How long what it says is taken for granted. */
static int64_t believed_s(const ebb_speed *x)
{
    return x->contention > EBB_QUIET ? UNQUIET_S : x->n_seen < FOUNDED ? DAY_S : INT64_MAX;
}

bool ebb_speeds_get(const ebb_speeds *s, const char *name, int64_t max_age_s, double v[2])
{
    const ebb_speed *x = find_speed(s, name);

    if (x && max_age_s < INT64_MAX)
        max_age_s = believed_s(x) < max_age_s ? believed_s(x) : max_age_s;
    if (!x || seconds_since(s, x->asked_s) > max_age_s)
        return false;
    memcpy(v, x->v, sizeof x->v);
    return true;
}

static void set_speed(ebb_speed *x, double v0, double v1, double contention, int64_t now_s)
{
    x->v[0] = v0;
    x->v[1] = v1;
    x->when_s = x->asked_s = now_s;
    x->n_seen = 1;
    x->contention = contention;
    x->n_low = 0;
    x->low[0] = x->low[1] = 0;
}

/* The measurement agrees with the stored speed or is better: move a part of the way there. */
static void confirm_speed(ebb_speed *x, double v0, double v1, double better, int64_t now_s)
{
    double part = better < 1 ? FOLLOW : x->n_seen < FOUNDED ? 1 : FOLLOW_UP;

    if (x->n_seen >= FOUNDED && part * (better - 1) > STEP_UP)
        part = STEP_UP / (better - 1);
    x->v[0] += part * (v0 - x->v[0]);
    x->v[1] += part * (v1 - x->v[1]);
    x->when_s = now_s;
    x->n_seen += x->n_seen < 1000;
    x->n_low = 0;
    x->low[0] = x->low[1] = 0;
}

/* It is worse, on a quiet machine: that may be how the machine is now. */
static void doubt_speed(const ebb_speeds *s, ebb_speed *x, ebb_speed_kind kind, double v0, double v1, int64_t now_s)
{
    if (x->low[0] <= 0 || (kind == EBB_SPEED_RATE ? v0 > x->low[0] : v0 < x->low[0])) {
        x->low[0] = v0;
        x->low[1] = v1;
    }
    if (x->n_low > 0 && seconds_since(s, x->low_s) < APART_S)
        return;
    x->n_low++;
    x->low_s = now_s;
    if (x->n_low >= (x->n_seen < FOUNDED ? N_LOW_NEW : N_LOW))
        set_speed(x, x->low[0], x->low[1], 0, now_s);
}

/* Disks come and go: each that was ever plugged in has figures, and so has each number that the system gave to one. */
static ebb_speed *find_longest_unasked(ebb_speeds *s)
{
    ebb_speed *x = &s->list[0];

    for (uint32_t i = 1; i < s->n; i++)
        if (seconds_since(s, s->list[i].asked_s) > seconds_since(s, x->asked_s))
            x = &s->list[i];
    return x;
}

static ebb_speed *find_or_add_speed(ebb_speeds *s, const char *name)
{
    ebb_speed *x = find_speed(s, name);

    if (!x) {
        x = s->n < EBB_MAX_SPEEDS ? &s->list[s->n++] : find_longest_unasked(s);
        *x = (ebb_speed){ 0 };
        snprintf(x->name, sizeof x->name, "%.31s", name);
    }
    s->is_changed = true;
    return x;
}

void ebb_speeds_doubt(ebb_speeds *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        ebb_speed *x = &s->list[i];

        x->asked_s = x->low_s = 0;
        x->n_low = N_LOW - 1;
        x->low[0] = x->low[1] = 0;
        s->is_changed = true;
    }
}

void ebb_speeds_learn(ebb_speeds *s, const char *name, ebb_speed_kind kind, double v0, double v1, double contention)
{
    ebb_speed *x = v0 > 0 ? find_or_add_speed(s, name) : NULL;
    double better;

    if (!x)
        return;
    if (x->n_seen == 0 || x->v[0] <= 0) {
        set_speed(x, v0, v1, contention, clock_s(s));
        return;
    }
    x->asked_s = clock_s(s);
    x->contention = contention < x->contention ? contention : x->contention;
    better = kind == EBB_SPEED_RATE ? v0 / x->v[0] : x->v[0] / v0;
    if (better >= 1 || (better > 1 - BAND && contention <= EBB_QUIET))
        confirm_speed(x, v0, v1, better, clock_s(s));
    else if (contention <= EBB_QUIET)
        doubt_speed(s, x, kind, v0, v1, clock_s(s));
}
