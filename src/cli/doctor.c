/* ebb doctor: what this machine gives to a model, and what would help. */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli.h"
#include "ebb/plan.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/limits.h"

#define MIB        ((uint64_t)1 << 20)
#define CACHE_READ ((size_t)32 << 20)            /* read twice for the speed of the page cache */
#define Q4_BYTES   0.6                           /* of a weight in a Q4_K_M file, with what belongs to it */

/* One line of the report. */
typedef struct finding {
    const char *key;             /* in the JSON object */
    char        text[160];       /* what was found */
    char        advice[200];     /* "" if there is nothing to do */
} finding;

#define MAX_FINDINGS 24
typedef struct report {
    finding  list[MAX_FINDINGS];
    uint32_t n;
    json_t  *figures;            /* numbers beside the texts */
} report;

static finding *add(report *r, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static finding *add(report *r, const char *key, const char *fmt, ...)
{
    finding *f = &r->list[r->n < MAX_FINDINGS - 1 ? r->n++ : MAX_FINDINGS - 1];
    va_list ap;

    memset(f, 0, sizeof *f);
    f->key = key;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return f;
}

static void advise(finding *f, const char *text)
{
    snprintf(f->advice, sizeof f->advice, "%s", text);
}

static void figure(report *r, const char *key, double v)
{
    json_object_set_new(r->figures, key, json_real(v));
}

/* The first line of a small file of /proc or /sys; "" if there is none. */
static const char *line_of(const char *path, char out[256])
{
    ebb_buf text = { 0 };

    out[0] = '\0';
    if (ebb_file_slurp(path, 1 << 20, &text, NULL) == EBB_OK)
        snprintf(out, 256, "%.*s", (int)strcspn(ebb_buf_text(&text), "\n"), ebb_buf_text(&text));
    ebb_buf_fini(&text);
    return out;
}

/* -- Memory -------------------------------------------------------------------------- */

static void look_at_memory(report *r, const ebb_limits *l, const ebb_machine *m)
{
    char a[16], b[16];

    add(r, "memory", "%s in all, %s available", ebb_size_text(l->total_bytes, a), ebb_size_text(l->available_bytes, b));
    figure(r, "total_bytes", (double)l->total_bytes);
    figure(r, "available_bytes", (double)m->available_bytes);
    add(r, "budget", "%s may be used (%.70s)", ebb_size_text(m->available_bytes, a), m->available_why);
    if (l->cgroup_limit_bytes == EBB_LIMIT_NONE)
        add(r, "cgroup", "no limit of memory");
    else
        add(r, "cgroup", "%s, %s used without page cache (%.60s)", ebb_size_text(l->cgroup_limit_bytes, a),
            ebb_size_text(l->cgroup_used_bytes - l->cgroup_cache_bytes, b), l->cgroup);
    if (l->rlimit_memlock_bytes == EBB_LIMIT_NONE)
        add(r, "memlock", "unlimited");
    else
        add(r, "memlock", "%s; ebb needs none", ebb_size_text(l->rlimit_memlock_bytes, a));
    if (l->pressure_some_avg10 >= 10)
        advise(add(r, "pressure", "tasks waited for memory %.0f %% of the last 10 s", l->pressure_some_avg10),
               "something else takes memory now: close it, or give ebb less with --ram");
    else if (l->pressure_some_avg10 >= 0)
        add(r, "pressure", "none to speak of (%.1f %% of the last 10 s)", l->pressure_some_avg10);
    else
        add(r, "pressure", "the kernel does not tell (no PSI)");
}

static void look_at_swap(report *r, const ebb_limits *l)
{
    char a[16], zswap[256], swappiness[256];
    ebb_buf swaps = { 0 };
    finding *f;
    bool has_zram;

    line_of("/sys/module/zswap/parameters/enabled", zswap);
    line_of("/proc/sys/vm/swappiness", swappiness);
    has_zram = ebb_file_slurp("/proc/swaps", 1 << 20, &swaps, NULL) == EBB_OK && strstr(ebb_buf_text(&swaps), "zram") != NULL;
    ebb_buf_fini(&swaps);
    if (l->swap_total_bytes == 0) {
        add(r, "swap", "none: weights that are pinned stay in memory");
        return;
    }
    f = add(r, "swap", "%s%s%s, swappiness %s", ebb_size_text(l->swap_total_bytes, a), has_zram ? ", zram" : "",
            zswap[0] == 'Y' ? ", zswap" : "", swappiness);
    if (has_zram || zswap[0] == 'Y')
        advise(f, "quantized weights do not compress: sysctl vm.swappiness=1 keeps them out of compressed swap");
    else if (atoi(swappiness) > 10)
        advise(f, "sysctl vm.swappiness=1: the kernel drops file pages rather than swap weights out");
}

static void look_at_huge_pages(report *r)
{
    char thp[256];
    finding *f;

    line_of("/sys/kernel/mm/transparent_hugepage/enabled", thp);
    f = add(r, "huge_pages", "%s", thp[0] ? thp : "not supported by this kernel");
    if (strstr(thp, "[never]"))
        advise(f, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: faster loading, fewer TLB misses");
}

/* -- CPU ------------------------------------------------------------------------------- */

static void look_at_cpu(report *r, const ebb_machine *m)
{
    ebb_cpu_features c = ebb_cpu_detect();
    char stat[256], siblings[256];
    unsigned long long v[8] = { 0 }, sum = 0;
    finding *f;

    line_of("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", siblings);
    f = add(r, "cpu", "%u CPUs for this process,%s%s%s%s", m->n_cpus, c.avx512 ? " AVX-512" : c.avx2 ? " AVX2" : "",
            c.neon ? " NEON" : "", c.dotprod ? " dot product" : "", !c.avx2 && !c.neon ? " plain instructions only" : "");
    if (strpbrk(siblings, ",-"))
        advise(f, "two CPUs may be one core: try bench with -t 1 too");
    add(r, "compute", "%.1f GB/s of weights with one column, %.0f G multiply-adds/s with many", m->memory_bytes_s / 1e9,
        m->int8_mac_s / 1e9);
    figure(r, "memory_bytes_s", m->memory_bytes_s);
    figure(r, "int8_mac_s", m->int8_mac_s);
    line_of("/proc/stat", stat);
    if (sscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
        return;
    for (int i = 0; i < 8; i++)
        sum += v[i];
    f = add(r, "steal", "%.1f %% of CPU time since boot went to other guests", sum ? 100.0 * (double)v[7] / (double)sum : 0);
    if (sum && v[7] * 20 > sum)
        advise(f, "this is a shared CPU: speeds will vary");
}

/* -- Disk ------------------------------------------------------------------------------ */

static double cached_speed(const char *path)
{
    double begin, speed = 0;
    int fd = -1;
    char *to = malloc(CACHE_READ);
    uint64_t n = 0;

    if (to && ebb_file_open(path, EBB_FILE_READ, &fd, NULL) == EBB_OK && ebb_file_size(fd, path, &n, NULL) == EBB_OK &&
        n >= CACHE_READ && ebb_file_read_at(fd, path, to, CACHE_READ, 0, NULL) == EBB_OK) {
        begin = ebb_clock_s();
        if (ebb_file_read_at(fd, path, to, CACHE_READ, 0, NULL) == EBB_OK)
            speed = (double)CACHE_READ / (ebb_clock_s() - begin);
    }
    ebb_file_close(fd);
    free(to);
    return speed;
}

static bool is_rotational(const char *path)
{
    char name[96], line[256];
    ebb_file_id id;
    int fd;

    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return false;
    line[0] = '\0';
    if (ebb_file_get_id(fd, path, &id, NULL) == EBB_OK) {
        for (int i = 0; i < 2 && !line[0]; i++) {        /* a partition's queue is its disk's */
            snprintf(name, sizeof name, "/sys/dev/block/%u:%u%s/queue/rotational", major(id.device), minor(id.device), i ? "/.." : "");
            line_of(name, line);
        }
    }
    ebb_file_close(fd);
    return line[0] == '1';
}

static void look_at_readers(report *r, const char *path)
{
    ebb_disk_reader readers[EBB_N_DISK_READERS];
    ebb_error err = { 0 };

    if (ebb_machine_readers(path, readers, &err) != EBB_OK) {
        add(r, "disk", "%.150s", err.msg);
        return;
    }
    for (int i = 0; i < EBB_N_DISK_READERS; i++) {
        const ebb_disk_reader *d = &readers[i];
        char key[40];

        snprintf(key, sizeof key, "disk_%.7s_bytes_s", d->name);
        figure(r, key, d->bytes_s);
        if (!d->is_allowed)
            advise(add(r, "disk", "%s: %.90s", d->name, d->why_not),
                   i == 0 ? "nothing is lost but a little speed: two threads read instead" : "");
        else if (d->bytes_s > 0)
            add(r, "disk", "%s: %.2f GB/s cold, %.2f CPU seconds per GB%s", d->name, d->bytes_s / 1e9, d->cpu_s_per_gb,
                d->is_best ? "; --io auto takes it" : "");
        else
            add(r, "disk", "%s: works (the file is too small to measure)", d->name);
    }
}

static void look_at_disk(report *r, const char *path)
{
    char fs[16], uring[256];
    double cached = cached_speed(path);
    finding *f;

    ebb_file_system_name(path, fs);
    f = add(r, "file_system", "%s%s", fs, is_rotational(path) ? ", on a disk that says it rotates" : "");
    if (strcmp(fs, "btrfs") == 0 || strcmp(fs, "zfs") == 0)
        advise(f, "compression defeats direct reads: keep models in a folder without it (chattr +m)");
    else if (strcmp(fs, "nfs") == 0 || strcmp(fs, "cifs") == 0 || strcmp(fs, "9p") == 0 || strcmp(fs, "fuse") == 0)
        advise(f, "a model that does not fit is read from it for every token: a local disk is faster");
    look_at_readers(r, path);
    if (cached > 0)
        add(r, "page_cache", "%.1f GB/s from the page cache", cached / 1e9);
    figure(r, "cached_bytes_s", cached);
    line_of("/proc/sys/kernel/io_uring_disabled", uring);
    if (uring[0] && uring[0] != '0')
        advise(add(r, "io_uring", "kernel.io_uring_disabled is %.1s", uring), "sysctl kernel.io_uring_disabled=0 allows it");
}

/* -- What fits --------------------------------------------------------------------------- */

static void look_at_model(report *r, const ebb_args *a, const ebb_model *m, const ebb_machine *machine)
{
    ebb_plan plan;
    ebb_error err = { 0 };
    uint64_t room = machine->available_bytes > 700 * MIB ? machine->available_bytes - 700 * MIB : 0;
    char size[16];

    add(r, "fits", "about %s of weights beside a context: %.0f billion in Q4_K_M",
        ebb_size_text(room, size), (double)room / Q4_BYTES / 1e9);
    if (!m)
        return;
    if (ebb_plan_make(m, &a->engine, machine, &plan, &err) != EBB_OK)
        add(r, "model", "%.150s", err.msg);
    else
        add(r, "model", "tier %s: %.120s", ebb_tier_name(plan.tier), plan.why);
}

/* -- The report ---------------------------------------------------------------------------- */

static int print_json(report *r)
{
    json_t *list = json_array(), *root = json_object();

    for (uint32_t i = 0; i < r->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", r->list[i].key, "text", r->list[i].text,
                                              "advice", r->list[i].advice));
    if (!root || json_object_set_new(root, "findings", list) != 0 || json_object_set(root, "figures", r->figures) != 0)
        return EBB_EXIT_FAILED;
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
    return EBB_EXIT_OK;
}

static int print_text(const report *r)
{
    const char *last = "";

    for (uint32_t i = 0; i < r->n; i++) {
        const finding *f = &r->list[i];
        char label[24];

        snprintf(label, sizeof label, "%s", strcmp(last, f->key) ? f->key : "");
        for (char *p = label; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        printf("%-12s ", label);
        ebb_cli_print(f->text, strlen(f->text));
        putchar('\n');
        if (f->advice[0])
            printf("%-12s -> %s\n", "", f->advice);
        last = f->key;
    }
    return EBB_EXIT_OK;
}

int ebb_cli_doctor(ebb_args *a)
{
    const char *path = a->model ? a->model : "/proc/self/exe";   /* the program is a file on a disk too */
    report *r = calloc(1, sizeof *r);
    ebb_model *m = NULL;
    ebb_machine machine;
    ebb_limits limits;
    ebb_error err = { 0 };
    int status = EBB_EXIT_FAILED;
    ebb_status st = r && (r->figures = json_object()) ? EBB_OK : EBB_FAIL(&err, EBB_NOMEM, "no memory for a report");

    if (st == EBB_OK && a->model)
        st = ebb_model_open(a->model, &m, &err);
    if (st == EBB_OK)
        st = ebb_limits_read(NULL, &limits, &err);
    if (st == EBB_OK)
        st = ebb_machine_probe(path, true, &machine, &err);
    if (st == EBB_OK && a->engine.ram_bytes && a->engine.ram_bytes < machine.available_bytes)
        machine.available_bytes = a->engine.ram_bytes;
    if (st == EBB_OK) {
        look_at_memory(r, &limits, &machine);
        look_at_swap(r, &limits);
        look_at_huge_pages(r);
        look_at_cpu(r, &machine);
        look_at_disk(r, path);
        look_at_model(r, a, m, &machine);
        status = a->json ? print_json(r) : print_text(r);
    }
    if (r)
        json_decref(r->figures);
    free(r);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
