/* Memory, swap, pages and processor, for the doctor (cmd_doctor.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/size.h"
#include "cmd_doctor.h"
#include "os/cpu.h"
#include "os/file.h"

#define LOW_MEMLOCK ((uint64_t)64 << 20)

ebb_doctor_finding *ebb_doctor_add(ebb_doctor_report *r, const char *key, const char *fmt, ...)
{
    ebb_doctor_finding *f = &r->list[r->n < EBB_MAX_FINDINGS - 1 ? r->n++ : EBB_MAX_FINDINGS - 1];
    va_list ap;

    memset(f, 0, sizeof *f);
    f->key = key;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return f;
}

void ebb_doctor_advise(ebb_doctor_finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->advice, sizeof f->advice, fmt, ap);
    va_end(ap);
}

void ebb_doctor_figure(ebb_doctor_report *r, const char *key, double v)
{
    json_object_set_new(r->figures, key, json_real(v));
}

/* The first line of a small file of /proc or /sys; "" if there is none. */
static const char *line_of(const char *root, const char *path, char out[256])
{
    ebb_buf name = { 0 }, text = { 0 };

    out[0] = '\0';
    if (ebb_buf_addf(&name, "%s%s", root, path) && ebb_file_slurp(name.data, 1 << 20, &text, NULL) == EBB_OK)
        snprintf(out, 256, "%.*s", (int)strcspn(ebb_buf_text(&text), "\n"), ebb_buf_text(&text));
    ebb_buf_fini(&name);
    ebb_buf_fini(&text);
    return out;
}

static bool file_has(const char *root, const char *path, const char *word)
{
    ebb_buf name = { 0 }, text = { 0 };
    bool has = ebb_buf_addf(&name, "%s%s", root, path) && ebb_file_slurp(name.data, 1 << 20, &text, NULL) == EBB_OK &&
               strstr(ebb_buf_text(&text), word) != NULL;

    ebb_buf_fini(&name);
    ebb_buf_fini(&text);
    return has;
}

/* -- Memory -------------------------------------------------------------------------- */

static void check_limits(ebb_doctor_report *r, const ebb_limits *l)
{
    char a[16], b[16];
    ebb_doctor_finding *f;

    if (l->cgroup_limit_bytes == EBB_LIMIT_NONE) {
        ebb_doctor_add(r, "cgroup", "no memory limit");
    } else {
        f = ebb_doctor_add(r, "cgroup", "%s, %s used without page cache (%.60s)",
                           ebb_size_text(l->cgroup_limit_bytes, a),
                           ebb_size_text(l->cgroup_used_bytes - l->cgroup_cache_bytes, b), l->cgroup);
        if (l->cgroup_limit_bytes < l->available_bytes)
            ebb_doctor_advise(f, "the machine has more; whoever set this limit can raise it");
    }
    if (l->rlimit_as_bytes != EBB_LIMIT_NONE)
        ebb_doctor_advise(ebb_doctor_add(r, "ulimit", "address space %s (ulimit -v)",
                                         ebb_size_text(l->rlimit_as_bytes, a)),
                          "ulimit -v unlimited: a mapped model counts here, though it takes no memory of its own");
    if (l->rlimit_memlock_bytes == EBB_LIMIT_NONE)
        ebb_doctor_add(r, "memlock", "unlimited");
    else
        ebb_doctor_add(r, "memlock", "%s%s", ebb_size_text(l->rlimit_memlock_bytes, a),
                       l->rlimit_memlock_bytes < LOW_MEMLOCK ? ": too little to lock a model, but ebb locks nothing"
                                                             : "; ebb locks nothing");
}

void ebb_doctor_memory(ebb_doctor_report *r, const ebb_limits *l, const ebb_machine *m)
{
    char a[16], b[16];

    ebb_doctor_add(r, "memory", "%s in all, %s available", ebb_size_text(l->total_bytes, a),
                   ebb_size_text(l->available_bytes, b));
    ebb_doctor_figure(r, "total_bytes", (double)l->total_bytes);
    ebb_doctor_figure(r, "available_bytes", (double)m->available_bytes);
    ebb_doctor_add(r, "budget", "%s may be used (%.70s)", ebb_size_text(m->available_bytes, a), m->available_why);
    check_limits(r, l);
    if (l->pressure_some_avg10 >= 10)
        ebb_doctor_advise(ebb_doctor_add(r, "pressure", "tasks waited for memory %.0f %% of the last 10 s",
                                         l->pressure_some_avg10),
                          "another program is using memory: close it, or give ebb less with --ram");
    else if (l->pressure_some_avg10 >= 0)
        ebb_doctor_add(r, "pressure", "none to speak of (%.1f %% of the last 10 s)", l->pressure_some_avg10);
    else
        ebb_doctor_add(r, "pressure", "the kernel does not say (no PSI): memory is checked four times a second");
}

void ebb_doctor_swap(ebb_doctor_report *r, const char *root, const ebb_limits *l)
{
    char a[16], b[16], zswap[256], swappiness[256];
    bool is_packed, has_zram;
    ebb_doctor_finding *f;

    if (l->swap_total_bytes == 0) {
        ebb_doctor_add(r, "swap", "none: weights that are pinned stay in memory");
        return;
    }
    line_of(root, "/sys/module/zswap/parameters/enabled", zswap);
    line_of(root, "/proc/sys/vm/swappiness", swappiness);
    has_zram = file_has(root, "/proc/swaps", "zram");
    is_packed = has_zram || zswap[0] == 'Y';
    f = ebb_doctor_add(r, "swap", "%s, %s in use%s%s, swappiness %.8s", ebb_size_text(l->swap_total_bytes, a),
                       ebb_size_text(l->swap_total_bytes - l->swap_free_bytes, b), has_zram ? ", zram" : "",
                       zswap[0] == 'Y' ? ", zswap" : "", swappiness[0] ? swappiness : "unknown");
    if (atoi(swappiness) <= 10)
        return;
    if (is_packed)
        ebb_doctor_advise(f, "sysctl vm.swappiness=1: quantized weights are noise, in compressed swap they take as "
                             "much room as before");
    else
        ebb_doctor_advise(f, "sysctl vm.swappiness=1: the kernel drops file pages rather than swap weights out");
}

void ebb_doctor_huge_pages(ebb_doctor_report *r, const char *root)
{
    char thp[256];
    ebb_doctor_finding *f;

    line_of(root, "/sys/kernel/mm/transparent_hugepage/enabled", thp);
    f = ebb_doctor_add(r, "huge_pages", "%.60s", thp[0] ? thp : "not supported by this kernel");
    if (strstr(thp, "[never]"))
        ebb_doctor_advise(f, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: faster loading, fewer "
                             "TLB misses");
}

/* -- Processor ------------------------------------------------------------------------- */

static void check_steal(ebb_doctor_report *r, const char *root)
{
    unsigned long long v[8] = { 0 }, sum = 0;
    char stat[256];
    ebb_doctor_finding *f;

    line_of(root, "/proc/stat", stat);
    if (sscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
               &v[7]) != 8)
        return;
    for (int i = 0; i < 8; i++)
        sum += v[i];
    f = ebb_doctor_add(r, "steal", "%.1f %% of CPU time since boot went to other guests",
                       sum ? 100.0 * (double)v[7] / (double)sum : 0);
    if (sum && v[7] * 20 > sum)
        ebb_doctor_advise(f, "this is a shared CPU: speeds will vary, and predictions with them");
}

void ebb_doctor_cpu(ebb_doctor_report *r, const char *root, const ebb_machine *m)
{
    ebb_cpu_features c = ebb_cpu_detect();
    char siblings[256], governor[256];
    ebb_doctor_finding *f;

    line_of(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", siblings);
    line_of(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor);
    f = ebb_doctor_add(r, "cpu", "%u CPUs for this process,%s%s%s%s; kernels %s", m->n_cpus,
                       c.amx ? " AVX-512 and AMX" : c.avx512 ? " AVX-512" :
                       c.avxvnni ? " AVX-VNNI" : c.avx2 ? " AVX2" : "",
                       c.neon ? " NEON" : "", c.dotprod ? " dot product" : "", !c.avx2 &&
                       !c.neon ? " plain instructions only" : "", ebb_isa_best());
    if (c.neon && !c.dotprod)
        ebb_doctor_advise(f, "kernels faster than plain C need the dot product extension: Cortex-A76, Neoverse N1 "
                             "or later");
    if (strpbrk(siblings, ",-"))
        ebb_doctor_advise(f, "the two CPUs may share one core: try bench with -t 1 too");
    if (strcmp(governor, "powersave") == 0)
        ebb_doctor_advise(ebb_doctor_add(r, "governor", "%.30s", governor),
                          "cpupower frequency-set -g performance, if power is no concern");
    check_steal(r, root);
    if (m->memory_bytes_s <= 0)
        return;
    ebb_doctor_add(r, "compute", "%.1f GB/s of weights with one column, %.0f G multiply-adds/s with many",
                   m->memory_bytes_s / 1e9, m->int8_mac_s / 1e9);
    ebb_doctor_figure(r, "memory_bytes_s", m->memory_bytes_s);
    ebb_doctor_figure(r, "int8_mac_s", m->int8_mac_s);
}

/* -- What is remembered -------------------------------------------------------------------- */

static const char *age_text(int64_t s, char out[32])
{
    if (s < 120)
        snprintf(out, 32, "now");
    else if (s < 7200)
        snprintf(out, 32, "%d minutes ago", (int)(s / 60));
    else if (s < 2 * 86400)
        snprintf(out, 32, "%d hours ago", (int)(s / 3600));
    else if (s < (int64_t)10000 * 86400)
        snprintf(out, 32, "%d days ago", (int)(s / 86400));
    else
        snprintf(out, 32, "at an unknown time");
    return out;
}

static const char *figure_text(const ebb_known_speed *k, double v, char out[32])
{
    if (k->is_rate)
        snprintf(out, 32, "%.2f GB/s", v / 1e9);
    else
        snprintf(out, 32, v < 1e-6 ? "%.3g ns" : "%.3g us", v * (v < 1e-6 ? 1e9 : 1e6));
    return out;
}

void ebb_doctor_speeds(ebb_doctor_report *r, const ebb_known_speed *list, size_t n, bool was_asked)
{
    char value[32], lower[32], age[32];

    for (size_t i = 0; i < n; i++) {
        const ebb_known_speed *k = &list[i];
        ebb_doctor_finding *f = ebb_doctor_add(r, "remembered", "%.31s: %s, seen last %s (%u %s)", k->name,
                                               figure_text(k, k->value, value),
                                               age_text(k->age_s, age), k->n_seen, k->n_seen == 1 ? "time" : "times");

        if (k->n_lower > 0)
            ebb_doctor_advise(f, "since then it was only %s when quiet, %u %s: if that lasts, it is adopted; ebb "
                                 "doctor --measure adopts it now",
                              figure_text(k, k->lower, lower), k->n_lower, k->n_lower == 1 ? "time" : "times");
        else if (!k->is_quiet)
            ebb_doctor_advise(f, "measured only beside other work: used for ten minutes, then measured again");
        else if (was_asked && k->age_s >= 120 && k->is_rate && strncmp(k->name, "weights", 7) == 0)
            ebb_doctor_advise(f, "not measured now, or measured while the machine was busy; the old figures stay. "
                                 "ebb doctor "
                                 "-m MODEL --measure takes its types");
    }
}

void ebb_doctor_io_uring(ebb_doctor_report *r, const char *root, const ebb_disk_reader *uring)
{
    char disabled[256];

    line_of(root, "/proc/sys/kernel/io_uring_disabled", disabled);
    if (uring->is_allowed)
        ebb_doctor_add(r, "io_uring", "allowed");
    else if (disabled[0] && disabled[0] != '0')
        ebb_doctor_advise(ebb_doctor_add(r, "io_uring", "kernel.io_uring_disabled is %.1s", disabled),
                          "sysctl kernel.io_uring_disabled=0 allows it; two threads read instead, nearly as fast");
    else
        ebb_doctor_advise(ebb_doctor_add(r, "io_uring", "refused: %.90s", uring->why_not),
                          "containers forbid it by default (seccomp); two threads read instead, nearly as fast");
}
