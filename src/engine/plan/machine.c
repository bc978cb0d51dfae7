/* The machine that is planned for (ebb/plan.h). */
#include <stdio.h>
#include <string.h>

#include "ebb/plan.h"
#include "model_file.h"
#include "os/limits.h"
#include "os/pool.h"
#include "os/proc.h"
#include "plan/layout.h"

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
    if (ebb_proc_read(NULL, &own, NULL) != EBB_OK)
        own = (ebb_proc){ 0 };                   /* no /proc: what we have counts as somebody else's */
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

/* -- Speeds -------------------------------------------------------------------------- */

uint64_t ebb_machine_types(const ebb_model *model)
{
    uint64_t bytes[EBB_TYPE_LIMIT] = { 0 }, all = 0, types = 0;
    ebb_tensor_info t;

    for (size_t i = 0; i < ebb_model_n_tensors(model); i++) {
        ebb_model_tensor(model, i, &t);
        if (t.n_dims < 2 || (unsigned)t.type >= EBB_TYPE_LIMIT || !ebb_kernel_has_type(t.type))
            continue;
        bytes[t.type] += t.n_bytes;
        all += t.n_bytes;
    }
    for (int i = 0; i < EBB_TYPE_LIMIT; i++)
        types |= (uint64_t)(bytes[i] > all / 50) << i;
    return types;
}

void ebb_machine_measure_types(ebb_machine *m, ebb_meter *meter, uint64_t types)
{
    for (int i = 0; i < EBB_TYPE_LIMIT; i++) {
        ebb_type_speed *s = &m->types[i];

        if (!(types >> i & 1) || s->bytes_s > 0)
            continue;
        *s = (ebb_type_speed){ ebb_meter_bytes(meter, (ebb_type)i), ebb_meter_macs(meter, (ebb_type)i) };
        if (i == EBB_TYPE_Q4_K || m->memory_bytes_s <= 0) {
            m->memory_bytes_s = s->bytes_s;
            m->int8_mac_s = s->mac_s;
            m->measured_type = (ebb_type)i;
        }
    }
    if (m->sync_s <= 0)
        m->sync_s = ebb_meter_sync(meter);
}

ebb_status ebb_machine_measure_disk(ebb_machine *m, ebb_meter *meter, ebb_io io, ebb_measure_disk_fn *measure, void *arg,
                                    ebb_read_speed speeds[EBB_IO_MMAP + 1], ebb_error *err)
{
    ebb_read_speed busy[EBB_IO_MMAP + 1];
    ebb_status st;
    double bytes_s;

    measure(arg, speeds);
    if (io == EBB_IO_AUTO)
        io = ebb_read_best(speeds);
    m->disk_bytes_s = speeds[io].bytes_s;
    if (m->disk_bytes_s <= 0)                    /* a small file, or none */
        return EBB_OK;
    st = ebb_meter_begin(meter, m->measured_type, err);
    if (st != EBB_OK)
        return st;
    measure(arg, busy);
    bytes_s = ebb_meter_end(meter);
    m->disk_busy_bytes_s = busy[io].bytes_s;
    m->busy_share = m->memory_bytes_s > 0 && bytes_s < m->memory_bytes_s ? bytes_s / m->memory_bytes_s : 1;
    return EBB_OK;
}

static void measure_path(void *arg, ebb_read_speed speeds[EBB_IO_MMAP + 1])
{
    if (ebb_read_measure_path(arg, speeds, NULL) != EBB_OK)      /* of a model in memory there is no file */
        memset(speeds, 0, (EBB_IO_MMAP + 1) * sizeof *speeds);
}

/* Beside what stands already, a part of what may be taken. */
static uint64_t meter_bytes(const ebb_machine *m, uint64_t weights_bytes)
{
    return weights_bytes < m->available_bytes / 4 ? weights_bytes : m->available_bytes / 4;
}

static ebb_status measure(ebb_machine *m, uint64_t types, uint64_t weights_bytes, const char *path, const ebb_engine_opts *o,
                          ebb_error *err)
{
    ebb_read_speed speeds[EBB_IO_MMAP + 1];
    const ebb_kernels *kern;
    ebb_pool *pool = NULL;
    ebb_meter *meter = NULL;
    ebb_status st = ebb_kernels_get(o ? o->cpu : EBB_CPU_AUTO, &kern, err);

    if (st == EBB_OK)
        st = ebb_pool_new(o && o->n_threads ? o->n_threads : m->n_cpus, &pool, err);
    if (st == EBB_OK)
        st = ebb_meter_open(pool, kern, meter_bytes(m, weights_bytes), &meter, err);
    if (st == EBB_OK)
        ebb_machine_measure_types(m, meter, types);
    if (st == EBB_OK && path && m->disk_bytes_s <= 0)
        st = ebb_machine_measure_disk(m, meter, o ? o->io : EBB_IO_AUTO, measure_path, (void *)(uintptr_t)path, speeds, err);
    ebb_meter_close(meter);
    ebb_pool_free(pool);
    return st;
}

ebb_status ebb_machine_probe(const char *path, bool measures, ebb_machine *out, ebb_error *err)
{
    ebb_status st;

    memset(out, 0, sizeof *out);
    out->n_cpus = ebb_limits_cpus(NULL);
    st = probe_memory(out, err);
    return st == EBB_OK && measures ? measure(out, (uint64_t)1 << EBB_TYPE_Q4_K, UINT64_MAX, path, NULL, err) : st;
}

ebb_status ebb_machine_measure(ebb_machine *m, const ebb_model *model, const ebb_engine_opts *opts, ebb_error *err)
{
    const ebb_gguf_part *first = ebb_gguf_get_part(ebb_model_gguf(model), 0);

    return measure(m, ebb_machine_types(model), ebb_model_get_info(model)->weight_bytes, first->fd < 0 ? NULL : first->path, opts, err);
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
