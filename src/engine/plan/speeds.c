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

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
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
              ebb_file_slurp(path.data, FILE_MAX, text, NULL) == EBB_OK && !text->failed;

    ebb_buf_fini(&path);
    return ok;
}

/* "owner \t name \t v0 \t v1 \t when"; false: not one of ours. */
static bool parse_speed(const char *line, size_t n, const char *owner, ebb_speed *out)
{
    size_t n_owner = strlen(owner);
    char text[256];

    if (n >= sizeof text || n <= n_owner || memcmp(line, owner, n_owner) != 0 || line[n_owner] != '\t')
        return false;
    memcpy(text, line + n_owner + 1, n - n_owner - 1);
    text[n - n_owner - 1] = '\0';
    return sscanf(text, "%31[^\t]\t%lf\t%lf\t%" SCNd64, out->name, &out->v[0], &out->v[1], &out->when_s) == 4 && out->v[0] > 0 &&
           out->v[1] >= 0 && out->v[0] < 1e18 && out->v[1] < 1e18 && out->when_s >= 0;
}

void ebb_speeds_load(ebb_speeds *s, const ebb_kernels *kern, uint32_t n_threads)
{
    ebb_buf text = { 0 };
    char cpu[64];

    memset(s, 0, sizeof *s);
    ebb_cpu_name(cpu);
    snprintf(s->owner, sizeof s->owner, "%s, %s, %u threads, build %llx", cpu, kern->name, n_threads, (unsigned long long)build_id());
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
    for (uint32_t i = 0; i < s->n; i++)
        ebb_buf_addf(&text, "%s\t%s\t%.6g\t%.6g\t%lld\n", s->owner, s->list[i].name, s->list[i].v[0], s->list[i].v[1],
                     (long long)s->list[i].when_s);
    if (text.failed || write_speeds_file(&text, &err) != EBB_OK)
        ebb_log("plan", "speeds are not kept: %s", text.failed ? "no memory" : err.msg);
    ebb_buf_fini(&before);
    ebb_buf_fini(&text);
}

/* How old the figure is; one that a clock which was ahead has dated into the future is as old as can be. */
static int64_t speed_age_s(const ebb_speed *x)
{
    int64_t age = now_s() - x->when_s;

    return age >= -DAY_S ? age : INT64_MAX;
}

/* -- Figures -------------------------------------------------------------------------- */

bool ebb_speeds_get(const ebb_speeds *s, const char *name, int64_t max_age_s, double v[2])
{
    const ebb_speed *x = find_speed(s, name);

    if (!x || speed_age_s(x) > max_age_s)
        return false;
    memcpy(v, x->v, sizeof x->v);
    return true;
}

void ebb_speeds_put(ebb_speeds *s, const char *name, double v0, double v1)
{
    ebb_speed *x = find_speed(s, name);

    if (!x && s->n == EBB_MAX_SPEEDS)
        return;
    if (!x)
        x = &s->list[s->n++];
    snprintf(x->name, sizeof x->name, "%.31s", name);
    x->v[0] = v0;
    x->v[1] = v1;
    x->when_s = now_s();
    s->is_changed = true;
}

void ebb_speeds_offer(ebb_speeds *s, const char *name, double v0, double v1)
{
    const ebb_speed *x = find_speed(s, name);

    if (!x || v0 > x->v[0] || speed_age_s(x) > DAY_S)
        ebb_speeds_put(s, name, v0, v1);
}
