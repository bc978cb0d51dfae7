/* The machine that is planned for (ebb/plan.h). */
#include <stdio.h>
#include <string.h>

#include "ebb/plan.h"
#include "os/limits.h"
#include "os/proc.h"
#include "plan/measure.h"

static void lower(ebb_machine *m, uint64_t bytes, const char *why)
{
    if (bytes >= m->available_bytes)
        return;
    m->available_bytes = bytes;
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
    m->available_bytes = UINT64_MAX;
    lower(m, l.available_bytes + own.rss_anon_bytes, "memory that is available");
    if (l.cgroup_limit_bytes != EBB_LIMIT_NONE) {
        uint64_t others = l.cgroup_used_bytes - l.cgroup_cache_bytes;

        others = others > own.rss_anon_bytes ? others - own.rss_anon_bytes : 0;
        lower(m, l.cgroup_limit_bytes > others ? l.cgroup_limit_bytes - others : 0, l.cgroup);
    }
    lower(m, l.rlimit_as_bytes, "the limit of the address space (ulimit -v)");
    lower(m, l.rlimit_data_bytes, "the limit of data (ulimit -d)");
    return EBB_OK;
}

ebb_status ebb_machine_probe(const char *path, bool measure, ebb_machine *out, ebb_error *err)
{
    ebb_pool *pool;
    ebb_status st;

    memset(out, 0, sizeof *out);
    out->n_cpus = ebb_limits_cpus(NULL);
    st = probe_memory(out, err);
    if (st != EBB_OK || !measure)
        return st;
    st = ebb_pool_new(out->n_cpus, &pool, err);
    if (st != EBB_OK)
        return st;
    out->memory_bytes_s = ebb_measure_memory(pool);
    out->int8_mac_s = ebb_measure_int8(pool);
    if (path)
        out->disk_bytes_s = ebb_measure_disk(pool, path);
    ebb_pool_free(pool);
    return EBB_OK;
}
