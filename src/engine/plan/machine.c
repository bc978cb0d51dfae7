/* The machine that is planned for (ebb/experimental/plan.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "open/model_file.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/pool.h"
#include "os/proc.h"
#include "plan/contention.h"
#include "plan/layout.h"

#define MIB          ((uint64_t)1 << 20)
#define KEPT_MACHINE (384 * MIB)                 /* of the machine's memory, for everybody else */
#define KEPT_CGROUP  (16 * MIB)                  /* of a cgroup's, and 1 % of it */
#define KEPT_COMMIT  (256 * MIB)                 /* of what may be promised: what the kernel keeps of it, stacks */
#define KERNEL_AGE_S (30 * 86400)                /* so long a measurement is valid */
#define DISK_AGE_S   86400
#define THREADS_LEAST   64u                      /* so many are computed with, if they are asked for */
#define THREADS_PER_CPU 4u                       /* likewise, where that is more */
#define CACHED       2.5                         /* so much faster than direct reads no disk is */

static void lower_available(ebb_machine *m, uint64_t bytes, uint64_t kept, const char *why)
{
    bytes = bytes > kept ? bytes - kept : 0;
    if (bytes >= m->available_bytes)
        return;
    m->available_bytes = bytes;
    m->os_reserve_bytes = kept;
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
    lower_available(m, l.available_bytes + own.rss_anon_bytes, KEPT_MACHINE, "available memory");
    if (l.cgroup_limit_bytes != EBB_LIMIT_NONE) {
        uint64_t others = l.cgroup_used_bytes - l.cgroup_cache_bytes;

        others = others > own.rss_anon_bytes ? others - own.rss_anon_bytes : 0;
        lower_available(m, l.cgroup_limit_bytes > others ? l.cgroup_limit_bytes - others : 0,
              KEPT_CGROUP + l.cgroup_limit_bytes / 100, l.cgroup);
    }
    if (l.commit_bytes != EBB_LIMIT_NONE)
        lower_available(m, l.commit_bytes + own.rss_anon_bytes, KEPT_COMMIT, "CommitLimit, vm.overcommit_memory 2");
    m->promised_bytes = l.commit_bytes == EBB_LIMIT_NONE ? 0 : l.commit_bytes;
    m->address_bytes = l.rlimit_as_bytes == EBB_LIMIT_NONE ? 0 : l.rlimit_as_bytes;
    lower_available(m, l.rlimit_as_bytes, 0, "the address space limit (ulimit -v)");
    lower_available(m, l.rlimit_data_bytes, 0, "the data limit (ulimit -d)");
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

/* The speed of types of which none is known. */
static void note_type(ebb_machine *m, int type)
{
    if (type != EBB_TYPE_Q4_K && m->memory_bytes_s > 0 && (int)m->measured_type != type)
        return;
    m->memory_bytes_s = m->types[type].bytes_s;
    m->int8_mac_s = m->types[type].mac_s;
    m->measured_type = (ebb_type)type;
}

static const char *type_key(int type, char out[EBB_SPEED_NAME])
{
    snprintf(out, EBB_SPEED_NAME, "weights %.16s", ebb_type_get((ebb_type)type)->name);
    return out;
}

static bool recall_overheads(ebb_overheads *overheads, const ebb_speeds *known)
{
    double product[2], attend[2], element[2];

    if (overheads->element_s > 0)
        return true;
    if (!ebb_speeds_get(known, "product", KERNEL_AGE_S, product) ||
        !ebb_speeds_get(known, "attend", KERNEL_AGE_S, attend) ||
        !ebb_speeds_get(known, "element", KERNEL_AGE_S, element))
        return false;
    *overheads = (ebb_overheads){ product[0], product[1], attend[0], attend[1], element[0], element[1] };
    return true;
}

bool ebb_machine_recall_types(ebb_machine *m, const ebb_speeds *known, uint64_t types)
{
    char key[EBB_SPEED_NAME];
    bool has_all = true;
    double v[2];

    for (int i = 0; i < EBB_TYPE_LIMIT; i++) {
        if (!(types >> i & 1))
            continue;
        if (m->types[i].bytes_s <= 0 && ebb_speeds_get(known, type_key(i, key), KERNEL_AGE_S, v)) {
            m->types[i] = (ebb_type_speed){ v[0], v[1] };
            note_type(m, i);
        }
        has_all &= m->types[i].bytes_s > 0;
    }
    if (m->sync_s <= 0 && ebb_speeds_get(known, "sync", KERNEL_AGE_S, v))
        m->sync_s = v[0];
    return recall_overheads(&m->overheads, known) && has_all && m->sync_s > 0;
}

/* What was learned of a type is what is planned with; where nothing was, the measurement is. */
static void set_type(ebb_machine *m, const ebb_speeds *known, int type, double bytes_s, double mac_s)
{
    char key[EBB_SPEED_NAME];
    double v[2] = { bytes_s, mac_s };

    (void)ebb_speeds_get(known, type_key(type, key), INT64_MAX, v);
    m->types[type] = (ebb_type_speed){ v[0], v[1] };
    note_type(m, type);
}

static void learn_time(ebb_speeds *known, const char *name, double v0, double v1, double contention)
{
    ebb_speeds_learn(known, name, EBB_SPEED_TIME, v0, v1, contention);
}

static void measure_overheads(ebb_machine *m, ebb_meter *meter, ebb_speeds *known)
{
    ebb_overheads *o = &m->overheads;
    double contention;

    ebb_meter_overheads(meter, m->measured_type, &m->types[m->measured_type], o);
    contention = ebb_meter_contention(meter);
    if (contention >= 1)
        return;
    learn_time(known, "product", o->product_s, o->output_s, contention);
    learn_time(known, "attend", o->attend_s, o->attend_dim_s, contention);
    learn_time(known, "element", o->element_s, o->state_s, contention);
}

void ebb_machine_measure_types(ebb_machine *m, ebb_meter *meter, uint64_t types, ebb_speeds *known)
{
    char key[EBB_SPEED_NAME];

    for (int i = 0; i < EBB_TYPE_LIMIT; i++) {
        double bytes_s, mac_s;

        if (!(types >> i & 1) || m->types[i].bytes_s > 0)
            continue;
        bytes_s = ebb_meter_bytes(meter, (ebb_type)i);
        mac_s = ebb_meter_macs(meter, (ebb_type)i);
        if (ebb_meter_contention(meter) < 1)
            ebb_speeds_learn(known, type_key(i, key), EBB_SPEED_RATE, bytes_s, mac_s, ebb_meter_contention(meter));
        set_type(m, known, i, bytes_s, mac_s);
    }
    if (m->overheads.element_s <= 0 && m->types[m->measured_type].mac_s > 0)
        measure_overheads(m, meter, known);
    if (m->sync_s <= 0) {
        m->sync_s = ebb_meter_sync(meter);
        if (ebb_meter_contention(meter) < 1)
            learn_time(known, "sync", m->sync_s, 0, ebb_meter_contention(meter));
    }
}

static const char *disk_key(const char *what, const ebb_disk_speeds *d, int io, char out[EBB_SPEED_NAME])
{
    snprintf(out, EBB_SPEED_NAME, "%s %llx %s", what, (unsigned long long)d->device, ebb_reader_get((ebb_io)io)->name);
    return out;
}

bool ebb_machine_recall_disk(ebb_machine *m, const ebb_speeds *known, ebb_disk_speeds *d)
{
    char key[EBB_SPEED_NAME];
    double v[2];
    bool any = false;

    for (int io = EBB_IO_URING; io <= EBB_IO_MMAP; io++) {
        if (!ebb_speeds_get(known, disk_key("disk", d, io, key), DISK_AGE_S, v))
            continue;
        d->rest[io] = (ebb_read_speed){ .is_allowed = true, .bytes_s = v[0], .cpu_s_per_gb = v[1] };
        any = true;
    }
    if (d->io == EBB_IO_AUTO)
        d->io = ebb_read_speed_best(d->rest);
    if (!any || d->rest[d->io].bytes_s <= 0 || !ebb_speeds_get(known, disk_key("busy", d, d->io, key), DISK_AGE_S, v))
        return false;
    if (m->disk_bytes_s <= 0) {                  /* a described one is not this one */
        m->disk_bytes_s = d->rest[d->io].bytes_s;
        m->disk_busy_bytes_s = v[0];
        m->busy_share = v[1];
    }
    return true;
}

/* As set_type. */
static void set_disk(ebb_machine *m, const ebb_speeds *known, const ebb_disk_speeds *d)
{
    char key[EBB_SPEED_NAME];
    double v[2];

    if (ebb_speeds_get(known, disk_key("disk", d, d->io, key), INT64_MAX, v))
        m->disk_bytes_s = v[0];
    if (ebb_speeds_get(known, disk_key("busy", d, d->io, key), INT64_MAX, v)) {
        m->disk_busy_bytes_s = v[0];
        m->busy_share = v[1];
    }
}

/* Keep what was measured; somebody who maps the file makes its page cache look like a disk, which will not stay. */
static void learn_disk(const ebb_machine *m, const ebb_disk_speeds *d, double contention, ebb_speeds *known)
{
    double direct = fmax(d->rest[EBB_IO_URING].bytes_s, d->rest[EBB_IO_PREAD].bytes_s);
    char key[EBB_SPEED_NAME];

    if (direct > 0 && d->rest[EBB_IO_MMAP].bytes_s > CACHED * direct)
        return;
    for (int io = EBB_IO_URING; io <= EBB_IO_MMAP; io++)
        if (d->rest[io].bytes_s > 0)
            ebb_speeds_learn(known, disk_key("disk", d, io, key), EBB_SPEED_RATE, d->rest[io].bytes_s,
                             d->rest[io].cpu_s_per_gb, contention);
    if (m->disk_busy_bytes_s > 0)
        ebb_speeds_learn(known, disk_key("busy", d, d->io, key), EBB_SPEED_RATE, m->disk_busy_bytes_s, m->busy_share,
                         contention);
}

ebb_status ebb_machine_measure_disk(ebb_machine *m, ebb_meter *meter, uint64_t load_bytes, ebb_measure_disk_fn *measure,
                                    void *arg, ebb_disk_speeds *d, ebb_speeds *known, ebb_error *err)
{
    ebb_read_speed busy[EBB_IO_MMAP + 1];
    ebb_disk_mark before;
    ebb_status st;

    ebb_disk_contention_begin(d->device, &before);
    measure(arg, EBB_IO_AUTO, d->rest);
    if (d->io == EBB_IO_AUTO)
        d->io = ebb_read_speed_best(d->rest);
    m->disk_bytes_s = d->rest[d->io].bytes_s;
    if (m->disk_bytes_s <= 0)                    /* a small file, or none */
        return EBB_OK;
    st = ebb_meter_begin_load(meter, m->measured_type, load_bytes, err);
    if (st != EBB_OK)
        return st;
    measure(arg, d->io, busy);
    m->busy_share = ebb_meter_end_load(meter);
    m->disk_busy_bytes_s = busy[d->io].bytes_s;
    if (ebb_meter_contention(meter) >= 1) {         /* it says more of them than of this */
        m->busy_share = m->disk_busy_bytes_s = 0;
        return EBB_OK;
    }
    learn_disk(m, d, fmax(ebb_meter_contention(meter), ebb_disk_contention_since(&before)), known);
    set_disk(m, known, d);
    return EBB_OK;
}

/* -- What passes teach ------------------------------------------------------------- */

void ebb_machine_correct_speeds(ebb_machine *m, uint64_t types, const ebb_disk_speeds *d, double factor,
                                double contention, ebb_speeds *known)
{
    char key[EBB_SPEED_NAME];

    for (int i = 0; i < EBB_TYPE_LIMIT && !d; i++)
        if (types >> i & 1 && m->types[i].bytes_s > 0) {
            const ebb_type_speed *s = &m->types[i];

            ebb_speeds_learn(known, type_key(i, key), EBB_SPEED_RATE, s->bytes_s * factor, s->mac_s, contention);
            set_type(m, known, i, s->bytes_s, s->mac_s);
        }
    if (!d || m->disk_bytes_s <= 0 || m->disk_busy_bytes_s <= 0)
        return;
    ebb_speeds_learn(known, disk_key("disk", d, d->io, key), EBB_SPEED_RATE, m->disk_bytes_s * factor,
                     d->rest[d->io].cpu_s_per_gb, contention);
    ebb_speeds_learn(known, disk_key("busy", d, d->io, key), EBB_SPEED_RATE, m->disk_busy_bytes_s * factor,
                     m->busy_share, contention);
    set_disk(m, known, d);
}

/* -- For a plan ------------------------------------------------------------------------ */

uint64_t ebb_machine_device(const ebb_model *model)
{
    const ebb_gguf_part *first = ebb_gguf_get_part(ebb_model_gguf(model), 0);
    ebb_file_id id;

    if (ebb_model_is_in_memory(model) || ebb_file_get_id(first->fd, first->path, &id, NULL) != EBB_OK)
        return 0;
    return id.device;
}

static uint64_t device_of(const char *path)
{
    ebb_file_id id = { 0 };
    char *file = path ? strndup(path, ebb_model_path_file(path)) : NULL;
    int fd;

    if (file && ebb_file_open(file, EBB_FILE_READ, &fd, NULL) == EBB_OK) {
        if (ebb_file_get_id(fd, file, &id, NULL) != EBB_OK)
            id.device = 0;
        ebb_file_close(fd);
    }
    free(file);
    return id.device;
}

static void measure_path(void *arg, ebb_io only, ebb_read_speed speeds[EBB_IO_MMAP + 1])
{
    if (ebb_read_speed_measure_path(arg, only, speeds, NULL) != EBB_OK)  /* of a model in memory there is no file */
        memset(speeds, 0, (EBB_IO_MMAP + 1) * sizeof *speeds);
}

/* What is to be measured, and for whom. */
typedef struct wish {
    uint64_t               types, weights_bytes;
    const char            *path;         /* of a file on the disk; NULL: none */
    uint64_t               device;
    const ebb_engine_opts *o;
    const ebb_kernels     *kern;
    uint32_t               n_threads;
} wish;

/* A share of the memory that may be taken, beside what the process has already. */
static uint64_t load_bytes(const ebb_machine *m, const wish *w)
{
    return w->weights_bytes < m->available_bytes / 4 ? w->weights_bytes : m->available_bytes / 4;
}

static ebb_status measure_wish(ebb_machine *m, const wish *w, bool with_disk, ebb_speeds *known, ebb_error *err)
{
    ebb_disk_speeds disk = { .device = w->device, .io = w->o ? w->o->io : EBB_IO_AUTO };
    ebb_pool *pool = NULL;
    ebb_meter *meter = NULL;
    ebb_status st = ebb_pool_new(w->n_threads, &pool, err);

    if (st == EBB_OK)
        st = ebb_meter_open(pool, w->kern, w->weights_bytes, &meter, err);
    if (st == EBB_OK)
        ebb_machine_measure_types(m, meter, w->types, known);
    if (st == EBB_OK && with_disk)
        st = ebb_machine_measure_disk(m, meter, load_bytes(m, w), measure_path, (void *)(uintptr_t)w->path, &disk,
                                      known, err);
    ebb_meter_close(meter);
    ebb_pool_free(pool);
    ebb_speeds_save(known);
    return st;
}

ebb_status ebb_machine_check_threads(const ebb_machine *m, const ebb_engine_opts *opts, ebb_error *err)
{
    uint32_t most = m->n_cpus * THREADS_PER_CPU > THREADS_LEAST ? m->n_cpus * THREADS_PER_CPU : THREADS_LEAST;

    if (!opts || opts->n_threads <= most)
        return EBB_OK;
    return EBB_FAIL(err, EBB_USAGE,
                    "%u threads are too many for %u CPUs: each would wait for all others; give %u at most",
                    opts->n_threads, m->n_cpus, most);
}

static ebb_status begin_measuring(const ebb_machine *m, wish *w, ebb_speeds *known, ebb_error *err)
{
    ebb_status st = ebb_machine_check_threads(m, w->o, err);

    if (st == EBB_OK)
        st = ebb_kernels_get(w->o ? w->o->cpu : EBB_ISA_AUTO, &w->kern, err);
    w->n_threads = w->o && w->o->n_threads ? w->o->n_threads : m->n_cpus;
    if (st == EBB_OK)
        ebb_speeds_load(known, w->kern, w->n_threads);
    return st;
}

ebb_status ebb_machine_measure_usual(ebb_machine *m, const char *path, ebb_error *err)
{
    wish w = { .types = (uint64_t)1 << EBB_TYPE_Q4_K, .weights_bytes = UINT64_MAX, .path = path,
               .device = device_of(path) };
    ebb_disk_speeds disk = { .device = w.device, .io = EBB_IO_AUTO };
    bool with_disk;
    ebb_speeds known;
    ebb_status st = begin_measuring(m, &w, &known, err);

    if (st != EBB_OK)
        return st;
    with_disk = path && !ebb_machine_recall_disk(m, &known, &disk);
    if (ebb_machine_recall_types(m, &known, w.types) && !with_disk)
        return EBB_OK;
    return measure_wish(m, &w, with_disk, &known, err);
}

ebb_status ebb_machine_probe(const char *path, bool measures, ebb_machine *out, ebb_error *err)
{
    ebb_status st;

    memset(out, 0, sizeof *out);
    out->n_cpus = ebb_limits_cpus(NULL);
    st = probe_memory(out, err);
    return st == EBB_OK && measures ? ebb_machine_measure_usual(out, path, err) : st;
}

void ebb_machine_set_experts(ebb_machine *m, const ebb_expert_profile *u)
{
    for (int i = 0; i <= 16; i++)
        m->expert_miss_rate[i] = ebb_expert_profile_miss_rate(u, i / 16.0);
    m->expert_slowdown = u->slowdown;
}

void ebb_machine_recall_experts(ebb_machine *m, const ebb_model *model)
{
    ebb_expert_profile u = { 0 };

    memset(m->expert_miss_rate, 0, sizeof m->expert_miss_rate);
    m->expert_slowdown = 0;
    if (ebb_expert_profile_load(&u, ebb_model_get_info(model)->fingerprint))
        ebb_machine_set_experts(m, &u);
    ebb_expert_profile_fini(&u);
}

ebb_status ebb_machine_measure(ebb_machine *m, const ebb_model *model, const ebb_engine_opts *opts, bool with_disk,
                               ebb_error *err)
{
    wish w = { .types = ebb_machine_types(model), .weights_bytes = ebb_model_get_info(model)->weight_bytes,
               .path = ebb_gguf_get_part(ebb_model_gguf(model), 0)->path,
               .device = ebb_machine_device(model), .o = opts };
    ebb_disk_speeds disk = { .device = w.device, .io = opts ? opts->io : EBB_IO_AUTO };
    ebb_speeds known;
    ebb_status st = begin_measuring(m, &w, &known, err);

    if (opts && opts->draft)
        w.types |= ebb_machine_types(opts->draft);
    if (st != EBB_OK)
        return st;
    ebb_machine_recall_experts(m, model);
    m->page_cache_share = ebb_model_page_cache_share(model);
    with_disk = with_disk && !ebb_model_is_in_memory(model) && m->disk_bytes_s <= 0 &&
                !ebb_machine_recall_disk(m, &known, &disk);
    if (ebb_machine_recall_types(m, &known, w.types) && !with_disk)
        return EBB_OK;
    return measure_wish(m, &w, with_disk, &known, err);
}

ebb_status ebb_machine_measure_readers(const char *path, ebb_disk_reader out[EBB_N_DISK_READERS], ebb_error *err)
{
    ebb_read_speed speeds[EBB_IO_MMAP + 1];
    ebb_status st = ebb_read_speed_measure_path(path, EBB_IO_AUTO, speeds, err);

    memset(out, 0, EBB_N_DISK_READERS * sizeof *out);
    for (int i = 0; i < EBB_N_DISK_READERS && st == EBB_OK; i++) {
        ebb_io io = (ebb_io)(EBB_IO_URING + i);
        const ebb_read_speed *s = &speeds[io];

        out[i] = (ebb_disk_reader){ .is_allowed = s->is_allowed, .is_best = ebb_read_speed_best(speeds) == io,
                                    .bytes_s = s->bytes_s, .cpu_s_per_gb = s->cpu_s_per_gb };
        snprintf(out[i].name, sizeof out[i].name, "%s", ebb_reader_get(io)->name);
        snprintf(out[i].why_not, sizeof out[i].why_not, "%s", s->why_not);
    }
    return st;
}
