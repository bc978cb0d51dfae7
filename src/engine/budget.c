/* Memory after open: the plan's states are brought about, memory that gets short is
 * given back, and taken again between turns (engine_impl.h, ebb/engine.h).
 *
 * In a turn memory is only given back: a quarter of the resident layers, those with
 * the highest index first, or in an emergency all.  Results never depend on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine_impl.h"
#include "model_file.h"
#include "os/limits.h"
#include "os/proc.h"
#include "os/psi.h"

#define MIB          ((uint64_t)1 << 20)
#define LOOK_PASSES  64u                         /* memory is looked at after so many passes ... */
#define LOOK_NS      250000000u                  /* ... or so long, whichever comes first */
#define FLOOR_BYTES  (300 * MIB)                 /* less than that available is short, a quarter of it an emergency */
#define SWAP_BYTES   (64 * MIB)                  /* so much of us in swap is short too */
#define CALM_NS      10000000000u                /* after giving back, before the first layer is taken again ... */
#define STEP_NS      2000000000u                 /* ... and between one and the next */
#define CALM_AVG10   1.0                         /* percent of the last 10 s that somebody waited for memory */
#define MEASURE_S    0.25
#define LOADER_BYTES 4096u                       /* of a ring that only brings what stays */

/* -- States ----------------------------------------------------------------------- */

/* Something of the group shall be resident. */
static bool is_wanted(const ebb_engine *e, uint32_t group)
{
    return ebb_res_group_bytes(e->res, group) > 0;
}

static bool is_here(const ebb_engine *e, uint32_t group)
{
    ebb_layer_state s = ebb_res_state(e->res, group);

    return s == EBB_LAYER_PINNED || s == EBB_LAYER_MAPPED;
}

static bool is_in_memory(const ebb_engine *e)
{
    return ebb_gguf_get_part(ebb_model_gguf(e->model), 0)->fd < 0;
}

/* Have read, in the background, what shall be resident; groups for which there is no memory stay with the ring. */
static ebb_status take(ebb_engine *e, const ebb_plan *p, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_layer_state state = p->is_mapped ? EBB_LAYER_MAPPED : EBB_LAYER_PINNED;
    uint64_t total = 0, done = 0;
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i <= p->n_layers; i++)
        if (is_wanted(e, i) && ebb_res_state(e->res, i) != state)
            total += ebb_res_group_bytes(e->res, i);
    for (uint32_t i = 0; i <= p->n_layers && st == EBB_OK; i++) {
        if (!is_wanted(e, i) || ebb_res_state(e->res, i) == state)
            continue;
        if (atomic_load(&e->cancel))
            return EBB_FAIL(err, EBB_CANCELED, "stopped before layer %u was read", i);
        st = p->is_mapped ? ebb_res_place(e->res, i, state, err) : ebb_res_pin_later(e->res, i, err);
        done += ebb_res_group_bytes(e->res, i);
        if (st == EBB_OK && progress && state == EBB_LAYER_PINNED)
            progress(arg, done, total);
    }
    return st;
}

/* Tell residency which extents stay. */
static ebb_status keep(ebb_engine *e, const ebb_plan *p, ebb_error *err)
{
    bool *stays = malloc(e->net.n_extents * sizeof *stays);
    ebb_status st;

    if (!stays)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %u tensors", e->net.n_extents);
    ebb_plan_stays(&e->net, p, e->opts.placement, stays);
    st = ebb_res_keep(e->res, stays, err);
    free(stays);
    return st;
}

static ebb_status apply(ebb_engine *e, const ebb_plan *p, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    const ebb_read_speed *speeds = e->budget.has_speeds ? e->budget.speeds : NULL;
    ebb_status st = EBB_OK;

    if (!is_in_memory(e) && (!p->is_mapped || p->stream_bytes > 0))
        st = ebb_res_set_reader(e->res, e->opts.io, speeds, p->weights_ring_bytes ? p->weights_ring_bytes : LOADER_BYTES, err);
    if (st == EBB_OK)
        st = keep(e, p, err);
    for (uint32_t i = 0; i <= p->n_layers && st == EBB_OK; i++)
        if (!is_wanted(e, i))
            st = ebb_res_place(e->res, i, EBB_LAYER_DISK, err);
    if (st == EBB_OK)
        st = take(e, p, progress, arg, err);
    return st;
}

static void measure_readers(void *arg, ebb_read_speed speeds[EBB_IO_MMAP + 1])
{
    ebb_res_measure(arg, MEASURE_S, speeds);
}

/* How fast kernels are, and, once a plan streams, the disk: once each. */
static ebb_status measure(ebb_engine *e, const ebb_plan *p, ebb_error *err)
{
    bool wants_disk = !e->budget.has_speeds && p->stream_bytes > 0;
    ebb_meter *meter;
    ebb_status st;

    if (e->machine.memory_bytes_s > 0 && !wants_disk)
        return EBB_OK;
    st = ebb_meter_open(e->pool, e->run.kern, p->pass_bytes < p->budget_bytes / 4 ? p->pass_bytes : p->budget_bytes / 4, &meter, err);
    if (st != EBB_OK)
        return st;
    ebb_machine_measure_types(&e->machine, meter, ebb_machine_types(e->model));
    if (wants_disk)
        st = ebb_machine_measure_disk(&e->machine, meter, e->opts.io, measure_readers, e->res, e->budget.speeds, err);
    e->budget.has_speeds |= wants_disk && st == EBB_OK;
    ebb_meter_close(meter);
    return st;
}

ebb_status ebb_budget_open(ebb_engine *e, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_status st;

    e->budget.psi_fd = ebb_psi_open();
    e->budget.psi_is_open = true;
    e->run.between = ebb_budget_look;
    e->run.between_arg = e;
    st = measure(e, &e->plan, err);
    if (st != EBB_OK)
        return st;
    ebb_plan_predict(&e->net, &e->machine, &e->plan);
    return apply(e, &e->plan, progress, arg, err);
}

void ebb_budget_close(ebb_engine *e)
{
    if (e->budget.psi_is_open)
        ebb_psi_close(e->budget.psi_fd);
}

/* -- Looking ----------------------------------------------------------------------- */

/* What could still be taken without anybody's loss: of the machine and of our
 * cgroup, less the file's pages that hold our weights, which both count as free. */
static bool room(ebb_engine *e, int64_t *bytes, double *pressure)
{
    ebb_res_stats res;
    ebb_limits l;
    ebb_proc own;
    uint64_t available;

    if (ebb_limits_read(NULL, &l, NULL) != EBB_OK || ebb_proc_read(NULL, &own, NULL) != EBB_OK)
        return false;
    available = l.available_bytes;
    if (l.cgroup_limit_bytes != EBB_LIMIT_NONE) {
        uint64_t used = l.cgroup_used_bytes - l.cgroup_cache_bytes;
        uint64_t left = l.cgroup_limit_bytes > used ? l.cgroup_limit_bytes - used : 0;

        available = left < available ? left : available;
    }
    ebb_res_get_stats(e->res, &res);
    *bytes = (int64_t)available - (is_in_memory(e) ? 0 : (int64_t)res.mapped_bytes);
    if (own.swap_bytes > SWAP_BYTES)
        *bytes = 0;
    *pressure = l.pressure_some_avg10;
    return true;
}

/* The plan itself may leave less than the usual floor: a small cgroup. */
static int64_t floor_bytes(const ebb_engine *e)
{
    uint64_t left = (e->machine.kept_bytes + e->plan.reserve_bytes) / 4 * 3;

    return (int64_t)(left < FLOOR_BYTES ? left : FLOOR_BYTES);
}

/* Leave `n` resident layers to the ring, from the last one on. */
static void shed(ebb_engine *e, uint32_t n, bool is_emergency, int64_t available)
{
    uint32_t shed = 0, left = 0;
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;
    ebb_res_stats res;

    ebb_res_get_stats(e->res, &res);
    if (res.ring_bytes <= LOADER_BYTES && e->plan.stream_bytes == 0)
        st = ebb_res_set_reader(e->res, e->opts.io, NULL, ebb_plan_ring(&e->net), &err);
    for (uint32_t i = e->net.n_layers; i-- > 0 && shed < n && st == EBB_OK;)
        if (is_here(e, i)) {
            st = ebb_res_place(e->res, i, EBB_LAYER_DISK, &err);
            shed += st == EBB_OK;
        }
    for (uint32_t i = 0; i < e->net.n_layers; i++)
        left += is_here(e, i);
    e->budget.n_shed += shed;
    e->budget.shed_ns = ebb_clock_ns();
    if (st != EBB_OK)
        ebb_log("budget", "%s", err.msg);
    ebb_stats_decision(e, "%s: %lld MiB available; %u layers let go, %u stay", is_emergency ? "memory is gone" : "memory is short",
                       (long long)(available / (int64_t)MIB), shed, left);
}

static void look(ebb_engine *e)
{
    uint32_t n_here = 0;
    int64_t available, floor = floor_bytes(e);
    double pressure;

    e->budget.looked_ns = ebb_clock_ns();
    e->budget.n_looked = 0;
    if (is_in_memory(e) || !room(e, &available, &pressure) || available >= floor)
        return;
    for (uint32_t i = 0; i < e->net.n_layers; i++)
        n_here += is_here(e, i);
    if (n_here == 0)
        return;
    if (available < floor / 4 && ebb_clock_ns() - e->budget.shed_ns < CALM_NS)
        shed(e, n_here, true, available);        /* a quarter was not enough a moment ago */
    else
        shed(e, (n_here + 3) / 4, false, available);
}

void ebb_budget_look(void *engine)
{
    ebb_engine *e = engine;

    if (ebb_clock_ns() - e->budget.looked_ns >= LOOK_NS || ebb_psi_poll(e->budget.psi_fd))
        look(e);
}

ebb_status ebb_budget_before_pass(ebb_engine *e, ebb_error *err)
{
    if (++e->budget.n_looked >= LOOK_PASSES)
        look(e);
    return ebb_res_check(e->res, err);
}

/* -- Taking back ------------------------------------------------------------------- */

static bool is_calm(ebb_engine *e, uint64_t n_bytes)
{
    uint64_t now = ebb_clock_ns();
    int64_t available;
    double pressure;

    if (now - e->budget.shed_ns < CALM_NS || now - e->budget.looked_ns < STEP_NS)
        return false;
    e->budget.looked_ns = now;
    return room(e, &available, &pressure) && pressure < CALM_AVG10 && available >= 2 * floor_bytes(e) + 2 * (int64_t)n_bytes;
}

bool ebb_engine_idle(ebb_engine *e)
{
    ebb_layer_state state = e->plan.is_mapped ? EBB_LAYER_MAPPED : EBB_LAYER_PINNED;
    uint32_t i = 0;
    ebb_error err = { 0 };

    if (e->budget.n_shed == 0)
        return false;
    while (i < e->net.n_layers && (is_here(e, i) || !is_wanted(e, i)))
        i++;
    if (i == e->net.n_layers) {
        e->budget.n_shed = 0;
        return false;
    }
    if (!is_calm(e, ebb_res_group_bytes(e->res, i)))
        return true;
    if (ebb_res_place(e->res, i, state, &err) != EBB_OK) {
        ebb_log("budget", "%s", err.msg);
        e->budget.shed_ns = ebb_clock_ns();      /* not before another while */
        return true;
    }
    e->budget.n_shed--;
    ebb_stats_decision(e, "memory is there again: layer %u taken back, %u to come", i, e->budget.n_shed);
    return e->budget.n_shed > 0;
}

/* -- Another budget ------------------------------------------------------------------ */

ebb_status ebb_engine_plan_budget(ebb_engine *e, uint64_t bytes, struct ebb_plan *out, ebb_error *err)
{
    ebb_machine now;
    ebb_status st = ebb_machine_probe(NULL, false, &now, err);

    *out = e->plan;
    if (st != EBB_OK)
        return st;
    if (bytes == 0 || bytes > now.available_bytes)
        bytes = now.available_bytes;
    st = ebb_plan_refit(&e->net, e->model, &e->opts, &e->machine, bytes, out, err);
    if (st == EBB_OK)
        st = measure(e, out, err);
    if (st == EBB_OK)
        ebb_plan_predict(&e->net, &e->machine, out);
    return st;
}

ebb_status ebb_engine_set_budget(ebb_engine *e, uint64_t bytes, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_plan plan;
    ebb_status st = ebb_engine_plan_budget(e, bytes, &plan, err);

    if (st != EBB_OK)
        return st;
    if (!plan.fits)
        return EBB_FAIL(err, EBB_BUDGET, "%s", plan.why);
    e->opts.has_resident = false;
    e->plan = plan;
    e->budget.n_shed = 0;
    st = apply(e, &plan, progress, arg, err);
    if (st == EBB_CANCELED) {                    /* what was not read is taken back later */
        for (uint32_t i = 0; i < e->net.n_layers; i++)
            e->budget.n_shed += is_wanted(e, i) && !is_here(e, i);
    }
    ebb_stats_decision(e, "budget %llu MiB: %s", (unsigned long long)(plan.budget_bytes / MIB), plan.why);
    return st;
}
