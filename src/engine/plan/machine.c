/* The machine that is planned for (ebb/plan.h). */
#include <stdio.h>
#include <string.h>

#include "ebb/plan.h"
#include "os/limits.h"
#include "os/pool.h"
#include "os/proc.h"
#include "plan/layout.h"
#include "plan/measure.h"
#include "residency/measure.h"

#define MIB          ((uint64_t)1 << 20)
#define KEPT_MACHINE (384 * MIB)                 /* of the machine's memory, for everybody else */
#define KEPT_CGROUP  (16 * MIB)                  /* of a cgroup's, and 1 % of it */

static void lower(ebb_machine *m, uint64_t bytes, uint64_t kept, const char *why)
{
    bytes = bytes > kept ? bytes - kept : 0;
    if (bytes >= m->available_bytes)
        return;
    m->available_bytes = bytes;
    m->kept_bytes = kept;
    snprintf(m->available_why, sizeof m->available_why, "%.*s", (int)sizeof m->available_why - 1, why);
}

/* What this process may take in all: what is free for it, and what it has.
 * Pages of files that it maps are in MemAvailable already. */
static ebb_status probe_memory(ebb_machine *m, ebb_error *err)
{
    ebb_limits l;
    ebb_proc own;
    ebb_status st = ebb_limits_read(NULL, &l, err);

    if (st != EBB_OK)
        return st;
    st = ebb_proc_read(NULL, &own, err);
    if (st != EBB_OK)
        return st;
    own.rss_anon_bytes += own.rss_shmem_bytes;   /* the ring */
    m->available_bytes = UINT64_MAX;
    lower(m, l.available_bytes + own.rss_anon_bytes, KEPT_MACHINE, "memory that is available");
    if (l.cgroup_limit_bytes != EBB_LIMIT_NONE) {
        uint64_t others = l.cgroup_used_bytes - l.cgroup_cache_bytes;

        others = others > own.rss_anon_bytes ? others - own.rss_anon_bytes : 0;
        lower(m, l.cgroup_limit_bytes > others ? l.cgroup_limit_bytes - others : 0,
              KEPT_CGROUP + l.cgroup_limit_bytes / 100, l.cgroup);
    }
    lower(m, l.rlimit_as_bytes, 0, "the limit of the address space (ulimit -v)");
    lower(m, l.rlimit_data_bytes, 0, "the limit of data (ulimit -d)");
    return EBB_OK;
}

ebb_status ebb_machine_probe(const char *path, bool measure, ebb_machine *out, ebb_error *err)
{
    ebb_read_speed speeds[EBB_IO_MMAP + 1];
    ebb_status st;

    memset(out, 0, sizeof *out);
    out->n_cpus = ebb_limits_cpus(NULL);
    st = probe_memory(out, err);
    if (st != EBB_OK || !measure)
        return st;
    if (path && ebb_read_measure_path(path, speeds, NULL) == EBB_OK)     /* of a model in memory there is no file */
        out->disk_bytes_s = speeds[ebb_read_best(speeds)].bytes_s;
    return ebb_machine_probe_compute(out, EBB_CPU_AUTO, err);
}

ebb_status ebb_machine_probe_compute(ebb_machine *m, ebb_cpu cpu, ebb_error *err)
{
    const ebb_kernels *kern;
    ebb_pool *pool;
    ebb_status st = ebb_kernels_get(cpu, &kern, err);

    if (st == EBB_OK)
        st = ebb_pool_new(m->n_cpus, &pool, err);
    if (st != EBB_OK)
        return st;
    m->memory_bytes_s = ebb_measure_memory(pool, kern);
    m->int8_mac_s = ebb_measure_int8(pool, kern);
    ebb_pool_free(pool);
    return EBB_OK;
}

ebb_status ebb_machine_readers(const char *path, ebb_disk_reader out[EBB_N_DISK_READERS], ebb_error *err)
{
    ebb_read_speed speeds[EBB_IO_MMAP + 1];
    ebb_status st = ebb_read_measure_path(path, speeds, err);

    memset(out, 0, EBB_N_DISK_READERS * sizeof *out);
    for (int i = 0; i < EBB_N_DISK_READERS && st == EBB_OK; i++) {
        ebb_io io = (ebb_io)(EBB_IO_URING + i);
        const ebb_read_speed *s = &speeds[io];

        out[i] = (ebb_disk_reader){ .is_allowed = s->is_allowed, .is_best = ebb_read_best(speeds) == io,
                                    .bytes_s = s->bytes_s, .cpu_s_per_gb = s->cpu_s_per_gb };
        snprintf(out[i].name, sizeof out[i].name, "%s", ebb_reader_get(io)->name);
        snprintf(out[i].why_not, sizeof out[i].why_not, "%s", s->why_not);
    }
    return st;
}
