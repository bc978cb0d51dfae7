/* Memory while a model answers: given back when it gets short, taken again when it has been there for a
 * while, between turns and between the passes of an answer (budget.h, ebb/engine.h).
 *
 * Within a pass memory is only given back: as many groups as what is missing takes (evict_step.h), those with the
 * highest index first; a quarter of what is resident at most, in an emergency more; then memory of experts, a quarter
 * at most, then all of the ring but a slot, then K and V to a file (kv.h).  Results never depend on it.
 *
 * What comes back leaves the target of such a step, and waits longer if what came back before it had to go again at
 * once: neither a steady neighbour nor one that comes and goes makes a sawtooth of it.
 *
 * Checks are of two kinds.  The full check reads some thirty files, four times a second, at once
 * when the kernel tells of pressure.  Between them the use of the cgroup that limits us is
 * read before each layer: copies of our own cannot be dropped by the kernel, and where the limit
 * is hit it kills, so what a neighbour takes must be given to it within milliseconds. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "memory/lend.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "os/proc.h"
#include "os/psi.h"

#define MIB          ((uint64_t)1 << 20)
#define CHECK_PASSES 64u                         /* memory is checked after so many passes ... */
#define CHECK_NS     250000000u                  /* ... or so long, whichever comes first */
#define SOON_NS      5000000u                    /* a full check comes no sooner after the last */
#define FLOOR_BYTES  (300 * MIB)                 /* less than that available is short; of a quarter of it, below */
#define SWAP_BYTES   (64 * MIB)                  /* so much more of us in swap is short too */
#define FAULTS       64u                         /* so many of our page faults waited for the disk ... */
#define REFAULTS     2048u                       /* ... and so many pages came back that had been dropped: thrashing */
#define CALM_NS      10000000000u                /* after giving back, before the first layer is taken again ... */
#define RESTLESS_NS  (2 * CALM_NS)               /* ... or if what had come back was of use for less than that ... */
#define STEP_NS      2000000000u                 /* ... and between one and the next */
#define EXPERT_SHARE 16u                         /* of the memory for experts: a smaller step is not worth a line */
#define KV_STEP      (32 * MIB)                  /* of K and V that come back in a step */
#define SHOWN_NS     1000000000u                 /* a snapshot that is shown is no older than that */
#define CALM_AVG10   1.0                         /* percent of the last 10 s that somebody waited for memory */

void ebb_reclaim_open(ebb_engine *e)
{
    pthread_mutex_init(&e->budget.snapshot_lock, NULL);
    e->budget.psi_fd = ebb_psi_open();
    ebb_limits_gauge_open(NULL, &e->budget.gauge);
    e->budget.calm_ns = CALM_NS;
    e->budget.is_open = true;
    ebb_pressure_monitor_open(e);
}

void ebb_reclaim_close(ebb_engine *e)
{
    if (!e->budget.is_open)
        return;
    ebb_pressure_monitor_close(e);
    ebb_psi_close(e->budget.psi_fd);
    ebb_limits_gauge_close(&e->budget.gauge);
    pthread_mutex_destroy(&e->budget.snapshot_lock);
}

/* -- Groups ------------------------------------------------------------------------ */

static uint32_t count_resident_groups(const ebb_engine *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i <= e->net.n_layers; i++)
        n += ebb_reclaim_count_parts(e, i);
    return n;
}

/* The plan itself may leave less than the usual floor: a small cgroup. */
static int64_t floor_bytes(const ebb_engine *e)
{
    uint64_t left = (e->machine.os_reserve_bytes + e->plan.reserve_bytes) / 4 * 3;

    return (int64_t)(left < FLOOR_BYTES ? left : FLOOR_BYTES);
}

void ebb_reclaim_set_plan(ebb_engine *e)
{
    ebb_pressure_monitor_set(e, !e->plan.is_mapped && !ebb_model_is_in_memory(e->model),
                             (uint64_t)floor_bytes(e));
}

/* -- Looking ----------------------------------------------------------------------- */

/* Pages of mapped weights are dropped and read again and again: the page cache is too small for them. */
static bool is_thrashing(ebb_engine *e, const ebb_limits *l, const ebb_proc *own)
{
    ebb_budget *b = &e->budget;
    bool is = b->n_refaults > 0 && l->n_refaults >= b->n_refaults + REFAULTS &&
              own->n_major_faults >= b->n_faults + FAULTS;

    b->n_refaults = l->n_refaults;
    b->n_faults = own->n_major_faults;
    return is;
}

/* Pages of ours went to swap, so memory was needed.  Those that lie there since an idle night are nobody's loss: they
 * would be a shortage without an end, since what is never used again never comes back. */
static bool is_being_swapped(ebb_budget *b, uint64_t swap_bytes)
{
    bool is = swap_bytes > b->swap_seen + SWAP_BYTES;

    if (is || swap_bytes < b->swap_seen)
        b->swap_seen = swap_bytes;
    return is;
}

/* What could still be taken without anybody's loss: of the machine and of our
 * cgroup, less the file's pages that hold our weights, which both count as free. */
static bool read_memory(ebb_engine *e, ebb_limits *l, ebb_proc *own, ebb_memory_snapshot *out)
{
    ebb_res_stats res;
    uint64_t available;

    if (ebb_limits_read(e->budget.root, l, NULL) != EBB_OK)
        return false;
    if (ebb_proc_read(e->budget.root, own, NULL) != EBB_OK)
        *own = (ebb_proc){ 0 };
    available = l->available_bytes;
    if (l->cgroup_limit_bytes != EBB_LIMIT_NONE) {
        uint64_t used = l->cgroup_used_bytes - l->cgroup_cache_bytes;
        uint64_t left = l->cgroup_limit_bytes > used ? l->cgroup_limit_bytes - used : 0;

        available = left < available ? left : available;
    }
    ebb_res_get_stats(e->res, &res);
    out->left_bytes = available;
    out->available_bytes = (int64_t)(available - ebb_res_pending_bytes(e->res)) -
                           (ebb_model_is_in_memory(e->model) ? 0 : (int64_t)res.mapped_bytes);
    out->pressure_avg10 = l->pressure_some_avg10;
    out->swap_bytes = own->swap_bytes;
    return true;
}

static void store_snapshot(ebb_engine *e, const ebb_memory_snapshot *snapshot)
{
    pthread_mutex_lock(&e->budget.snapshot_lock);
    e->budget.snapshot = *snapshot;
    e->budget.snapshot_ns = ebb_clock_ns();
    pthread_mutex_unlock(&e->budget.snapshot_lock);
}

ebb_memory_snapshot ebb_reclaim_last_snapshot(ebb_engine *e)
{
    ebb_memory_snapshot snapshot;
    ebb_limits l;
    ebb_proc own;
    bool is_old;

    if (e->host || !e->budget.is_open)
        return (ebb_memory_snapshot){ .pressure_avg10 = -1 };
    pthread_mutex_lock(&e->budget.snapshot_lock);
    snapshot = e->budget.snapshot;
    is_old = e->budget.snapshot_ns == 0 || ebb_clock_ns() - e->budget.snapshot_ns > SHOWN_NS;
    pthread_mutex_unlock(&e->budget.snapshot_lock);
    if (is_old && read_memory(e, &l, &own, &snapshot))
        store_snapshot(e, &snapshot);
    return snapshot;
}

typedef struct headroom {
    int64_t  bytes;
    bool     is_a_sign;          /* nothing, and not by measurement */
    uint64_t left_bytes;         /* ebb_memory_snapshot */
    double   pressure;           /* ebb_limits.pressure_some_avg10 */
} headroom;

/* For a decision: while we go to swap, or are read again and again, nothing is to be had. */
static bool read_headroom(ebb_engine *e, headroom *out)
{
    ebb_memory_snapshot snapshot;
    ebb_res_stats res;
    ebb_limits l;
    ebb_proc own;
    bool is_swapped, is_read_again;

    if (!read_memory(e, &l, &own, &snapshot))
        return false;
    atomic_store(&e->budget.cache_bytes, l.cgroup_cache_bytes);
    ebb_res_get_stats(e->res, &res);
    is_swapped = is_being_swapped(&e->budget, snapshot.swap_bytes);
    is_read_again = is_thrashing(e, &l, &own) && res.mapped_bytes > 0;
    *out = (headroom){ .is_a_sign = (is_swapped || is_read_again) && snapshot.available_bytes > 0 };
    if (out->is_a_sign)
        snapshot.available_bytes = 0;
    store_snapshot(e, &snapshot);
    out->bytes = snapshot.available_bytes;
    out->left_bytes = snapshot.left_bytes;
    out->pressure = snapshot.pressure_avg10;
    return true;
}

/* -- Giving back --------------------------------------------------------------------- */

/* What came back and has to go again at once waits longer the next time. */
static void note_eviction(ebb_engine *e)
{
    ebb_budget *b = &e->budget;
    uint64_t now = ebb_clock_ns();

    if (b->reloaded_ns > 0)
        b->calm_ns = now - b->reloaded_ns < CALM_NS ? RESTLESS_NS : CALM_NS;
    b->reloaded_ns = 0;
    b->evicted_ns = now;
}

typedef struct shortage {
    int64_t  available;
    uint64_t missing;            /* to what an eviction aims at */
    bool     is_bottom;          /* less than a quarter of the floor is available */
    bool     is_a_sign;          /* headroom */
    bool     is_exhausted;       /* others have nothing left either, and may want far more */
} shortage;

/* Of `whole` for it: a quarter at most, and at once if much more may be missing. */
static uint64_t next_step(ebb_engine *e, const shortage *s, uint64_t whole)
{
    uint64_t least = s->is_exhausted && s->missing < whole / 4 ? whole / 4 : s->missing,
             n = ebb_evict_step_next(&e->budget.step, ebb_clock_ns(), least, whole);

    e->budget.was_quarter = n >= whole / 4;
    return n < whole / 4 ? n : whole / 4;
}

/* What a ring will take that evicted layers can pass through; 0: there is one. */
static uint64_t ring_to_open_bytes(ebb_engine *e)
{
    ebb_res_stats res;

    ebb_res_get_stats(e->res, &res);
    return res.ring_bytes > EBB_LOADER_BYTES || e->plan.stream_bytes > 0 ? 0 : ebb_plan_ring_bytes(&e->net);
}

static ebb_status ensure_ring(ebb_engine *e, ebb_error *err)
{
    if (ring_to_open_bytes(e) == 0)
        return EBB_OK;
    return ebb_res_set_reader(e->res, e->opts.io, e->calibration.has_disk ? e->calibration.disk.rest : NULL,
                              ebb_plan_ring_bytes(&e->net), err);
}

/* What is lent goes first, then groups are left to the ring, from the last one on, until n_bytes are free and what a
 * new ring takes.  Returns how many had something. */
static uint32_t evict_groups(ebb_engine *e, uint64_t n_bytes, ebb_error *err)
{
    uint32_t n = e->net.n_layers + 1, n_shed = 0;
    uint64_t freed = 0, ring = ring_to_open_bytes(e);
    ebb_status st = EBB_OK;

    for (uint32_t i = n; i-- > 0 && freed < n_bytes;) {
        uint64_t lent = ebb_res_take_back(e->res, i);

        freed += lent;
        n_shed += lent > 0;
    }
    if (freed < n_bytes) {
        st = ensure_ring(e, err);
        n_bytes += n_bytes < UINT64_MAX - ring ? ring : 0;
    }
    for (uint32_t i = n; i-- > 0 && freed < n_bytes && st == EBB_OK;)
        if (ebb_reclaim_group_is_resident(e, i)) {
            st = ebb_res_set_state(e->res, i, EBB_LAYER_DISK, err);
            freed += st == EBB_OK ? ebb_res_group_bytes(e->res, i) : 0;
            n_shed += st == EBB_OK;
        }
    if (st != EBB_OK)
        ebb_log("budget", "%s", err->msg);
    return n_shed;
}

/* If a quarter was not enough a moment ago, all that is missing, and all layers if nobody knows how much that is. */
static void evict_layers(ebb_engine *e, const shortage *s)
{
    bool is_emergency = s->is_bottom && e->budget.was_quarter && ebb_clock_ns() - e->budget.evicted_ns < CALM_NS;
    ebb_res_stats res;
    ebb_error err = { 0 };
    ebb_memory_event event = { .is_emergency = is_emergency, .available_bytes = s->available };
    uint32_t output = e->net.n_layers, had_output = ebb_reclaim_count_parts(e, output), n_shed;
    uint64_t n_bytes;

    ebb_res_get_stats(e->res, &res);
    n_bytes = next_step(e, s, res.pinned_bytes + res.mapped_bytes);
    ebb_pool_drain(e->pool);                     /* a late thread may still read them */
    if (is_emergency)
        n_bytes = s->is_a_sign || s->is_exhausted ? UINT64_MAX : s->missing;
    n_shed = evict_groups(e, n_bytes > 0 ? n_bytes : 1, &err);
    e->budget.n_evicted += n_shed;
    note_eviction(e);
    ebb_reclaim_tell_evicted(e, n_shed, had_output, &event);
    event.n_layers_left = count_resident_groups(e) - ebb_reclaim_count_parts(e, output);
    ebb_stats_memory_event(e, &event);
}

/* A step of the memory for experts, as long as there is more than the least. */
static bool evict_experts(ebb_engine *e, const shortage *s)
{
    uint64_t had = e->budget.expert_bytes, least = ebb_plan_experts_min_bytes(&e->net), n_bytes;

    if (had <= least)
        return false;
    n_bytes = next_step(e, s, had);
    n_bytes = n_bytes < had - least ? n_bytes : had - least;
    e->budget.expert_bytes = had - n_bytes;
    note_eviction(e);
    ebb_pool_drain(e->pool);
    ebb_res_resize_expert_cache(e->res, e->budget.expert_bytes);
    ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_EXPERTS_EVICTED, .available_bytes = s->available,
                                                   .bytes = n_bytes, .bytes_left = e->budget.expert_bytes });
    return true;
}

static ebb_status set_ring(ebb_engine *e, uint64_t bytes, ebb_error *err)
{
    ebb_status st = ebb_res_set_reader(e->res, e->opts.io, e->calibration.has_disk ? e->calibration.disk.rest : NULL,
                                       bytes, err);

    if (st == EBB_OK && e->plan.expert_bytes > 0)
        st = ebb_res_set_expert_cache(e->res, e->plan.expert_bytes, err);
    if (st == EBB_OK)
        ebb_res_resize_expert_cache(e->res, e->budget.expert_bytes);
    return st;
}

/* No layer is left to give: the ring keeps one slot. */
static void shrink_ring_to_one_slot(ebb_engine *e, int64_t available)
{
    ebb_error err = { 0 };

    ebb_pool_drain(e->pool);
    e->budget.is_ring_minimal = true;
    note_eviction(e);
    if (set_ring(e, ebb_plan_ring_min_bytes(&e->net), &err) != EBB_OK)
        ebb_log("budget", "%s", err.msg);
    else
        ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_RING_SHRUNK, .is_emergency = true,
                                                       .available_bytes = available });
}

/* The last thing to give: K and V that a file can hold as well. */
static void spill_kv(ebb_engine *e, uint64_t missing, int64_t available)
{
    uint64_t block = ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL);
    uint32_t want = block ? (uint32_t)(missing / block) + 1 : 0, n;
    ebb_error err = { 0 };
    ebb_status st = want ? ebb_kv_spill(e->kv, want, &n, &err) : EBB_OK;

    ebb_stats_kv(e);
    if (want && st == EBB_OK && n > 0) {
        note_eviction(e);
        ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_KV_SPILLED, .is_emergency = true,
                                                       .available_bytes = available,
                                                       .bytes = n * block, .bytes_left =
                                                           ebb_kv_n_spilled(e->kv) * block });
    } else if (st != EBB_OK && !e->budget.is_spill_refused) {
        e->budget.is_spill_refused = true;
        ebb_stats_memory_notice(e, EBB_MEMORY_KV_SPILL_FAILED, err.msg);
    }
}

static void check_memory(ebb_engine *e)
{
    int64_t floor = floor_bytes(e);
    headroom h;
    shortage s;

    e->budget.checked_ns = ebb_clock_ns();
    e->budget.n_passes_unchecked = 0;
    if (!read_headroom(e, &h) || h.bytes >= floor || ebb_draft_model_release(e, h.bytes) ||
        ebb_model_is_in_memory(e->model))
        return;
    s = (shortage){ .available = h.bytes, .missing = (uint64_t)(ebb_evict_target(floor) - h.bytes),
                    .is_bottom = h.bytes < floor / 4, .is_a_sign = h.is_a_sign,
                    .is_exhausted = h.left_bytes < (uint64_t)floor / 4 };
    if (count_resident_groups(e) > 0)
        evict_layers(e, &s);
    else if (evict_experts(e, &s))
        return;
    else if (!e->budget.is_ring_minimal)
        shrink_ring_to_one_slot(e, h.bytes);
    else
        spill_kv(e, s.missing, h.bytes);
}

/* By the gauge: nearly all of the cgroup is used, if its page cache is as it was at the last snapshot. */
static bool seems_short(const ebb_engine *e)
{
    const ebb_limits_gauge *g = &e->budget.gauge;
    uint64_t used, cache = atomic_load(&e->budget.cache_bytes);

    if (e->plan.is_mapped || !ebb_limits_gauge_used(g, &used))
        return false;                            /* what is mapped the kernel drops by itself */
    used = used > cache ? used - cache : 0;
    return (int64_t)(g->limit_bytes - used) < floor_bytes(e);
}

/* What the memory-pressure monitor has evicted is read by the ring from here on. */
static void follow_monitor(ebb_engine *e)
{
    ebb_error err = { 0 };

    ebb_draft_model_follow_monitor(e);
    if (ebb_pressure_monitor_take_n_evicted(e) == 0)
        return;
    note_eviction(e);
    ebb_pool_drain(e->pool);
    if (ensure_ring(e, &err) != EBB_OK)
        ebb_log("budget", "%s", err.msg);
}

void ebb_reclaim_between_layers(ebb_engine *e)
{
    uint64_t since = ebb_clock_ns() - e->budget.checked_ns;

    ebb_pressure_monitor_wake(e);
    follow_monitor(e);
    if (since >= CHECK_NS || ebb_psi_poll(e->budget.psi_fd) ||
        (since >= SOON_NS && (e->budget.monitor ? ebb_pressure_monitor_take_alert(e) : seems_short(e))))
        check_memory(e);
}

/* -- Taking back ------------------------------------------------------------------- */

/* Nothing was given back for a while. */
static bool is_time_to_reload(const ebb_budget *b)
{
    uint64_t now = ebb_clock_ns();

    return now - b->evicted_ns >= b->calm_ns && now - b->reload_tried_ns >= STEP_NS;
}

/* And nobody waits for memory, and there is as much as an eviction aims at: what can be taken beyond that. */
static bool find_room(ebb_engine *e, uint64_t *n_bytes)
{
    int64_t target = ebb_evict_target(floor_bytes(e));
    headroom h;

    if (!is_time_to_reload(&e->budget))
        return false;
    e->budget.reload_tried_ns = e->budget.checked_ns = ebb_clock_ns();
    if (!read_headroom(e, &h) || h.pressure >= CALM_AVG10 || h.bytes < target)
        return false;
    *n_bytes = (uint64_t)(h.bytes - target);
    return true;
}

static bool has_room(ebb_engine *e, uint64_t n_bytes)
{
    uint64_t room;

    return find_room(e, &room) && room >= n_bytes;
}

static void note_reload(ebb_engine *e)
{
    e->budget.reloaded_ns = ebb_clock_ns();
}

/* The first group that the plan has in memory and that is not. */
static uint32_t find_missing(const ebb_engine *e)
{
    uint32_t i = 0;

    while (i <= e->net.n_layers && (ebb_reclaim_group_is_resident(e, i) || !ebb_reclaim_group_is_planned(e, i)))
        i++;
    return i;
}

/* Something that was given away may come back. */
static bool has_evicted_anything(const ebb_engine *e)
{
    return e->budget.n_evicted > 0 || e->budget.is_ring_minimal || e->budget.expert_bytes < e->plan.expert_bytes ||
           (ebb_kv_n_spilled(e->kv) > 0 && e->plan.kv_spill_bytes == 0);
}

/* So may a layer whose memory K and V have left. */
static bool may_take_anything(ebb_engine *e)
{
    uint64_t n_bytes;

    return has_evicted_anything(e) || ebb_lend_is_due(e, &n_bytes);
}

static void reload_kv(ebb_engine *e)
{
    uint64_t block = ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL);
    uint32_t n = (uint32_t)(KV_STEP / block) + 1;

    if (!has_room(e, n * block))
        return;
    n = ebb_kv_unspill(e->kv, n);
    note_reload(e);
    e->budget.is_spill_refused = false;
    ebb_stats_kv(e);
    ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_KV_RELOADED, .bytes = n * block,
                                                   .bytes_left = ebb_kv_n_spilled(e->kv) * block });
}

static void restore_ring(ebb_engine *e)
{
    ebb_error err = { 0 };

    if (!has_room(e, ebb_plan_ring_bytes(&e->net)))
        return;
    if (set_ring(e, ebb_plan_ring_bytes(&e->net), &err) != EBB_OK) {
        ebb_log("budget", "%s", err.msg);
        e->budget.evicted_ns = ebb_clock_ns();
        return;
    }
    e->budget.is_ring_minimal = false;
    note_reload(e);
    ebb_stats_memory_notice(e, EBB_MEMORY_RING_RESTORED, NULL);
}

static void restore_expert_cache(ebb_engine *e)
{
    uint64_t missing = e->plan.expert_bytes - e->budget.expert_bytes, most = e->plan.expert_bytes / 4,
             least = e->plan.expert_bytes / EXPERT_SHARE, more;

    most = most < missing ? most : missing;
    if (!find_room(e, &more) || more < (least < most ? least : most))
        return;
    more = more < most ? more : most;
    e->budget.expert_bytes += more;
    note_reload(e);
    ebb_res_resize_expert_cache(e->res, e->budget.expert_bytes);
    ebb_res_fill_expert_cache(e->res);
    ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_EXPERTS_RELOADED,
                                                   .bytes_left = e->budget.expert_bytes });
}

static void reload_layer(ebb_engine *e, bool in_answer)
{
    ebb_memory_event event = { .code = EBB_MEMORY_LAYER_RELOADED };
    uint32_t i = find_missing(e);
    ebb_error err = { 0 };
    ebb_status st;

    if (i > e->net.n_layers) {
        atomic_store(&e->budget.n_evicted, 0);
        return;
    }
    if (!has_room(e, ebb_res_group_bytes(e->res, i)))
        return;
    st = e->plan.is_mapped ? ebb_res_set_state(e->res, i, EBB_LAYER_MAPPED, &err)
       : in_answer         ? ebb_res_pin_async(e->res, i, &err) /* the next pass waits for what it needs, no longer */
                           : ebb_res_set_state(e->res, i, EBB_LAYER_PINNED, &err);
    if (st != EBB_OK) {
        ebb_log("budget", "%s", err.msg);
        e->budget.evicted_ns = ebb_clock_ns();   /* not before another while */
        return;
    }
    note_reload(e);
    if (e->budget.n_evicted > 0)
        e->budget.n_evicted--;
    event.layer = i;
    event.n_layers_left = e->budget.n_evicted;
    if (i == e->net.n_layers)
        ebb_reclaim_tell_output(&event);
    ebb_stats_memory_event(e, &event);
}

/* That memory is the plan's, and part of it K and V give. */
static void lend_layer(ebb_engine *e, uint64_t n_bytes)
{
    uint64_t given = e->cache.disk ? ebb_kv_unheld_bytes(e->kv) : 0;

    if (!has_room(e, n_bytes > given ? n_bytes - given : 0))
        return;
    note_reload(e);
    ebb_lend_step(e);
}

/* In the order opposite to that in which it was given, a step at a time. */
static bool reload_one_step(ebb_engine *e, bool in_answer)
{
    uint64_t n_bytes;

    if (ebb_kv_n_spilled(e->kv) > 0 && e->plan.kv_spill_bytes == 0)
        reload_kv(e);
    else if (e->budget.is_ring_minimal)
        restore_ring(e);
    else if (e->budget.expert_bytes < e->plan.expert_bytes)
        restore_expert_cache(e);
    else if (e->budget.n_evicted > 0)
        reload_layer(e, in_answer);
    else if (ebb_lend_is_due(e, &n_bytes))
        lend_layer(e, n_bytes);
    else if (!in_answer && has_room(e, e->draft_model.bytes)) /* all else is back */
        ebb_draft_model_reload(e);
    return e->draft_model.is_released || may_take_anything(e);
}

/* A neighbour that has left in the middle of a long answer shall not slow the rest of it.  Nothing is acquired between
 * two passes, but a late thread of the pool may still read what it computes in vain. */
static void reload_in_answer(ebb_engine *e)
{
    if (e->host)
        return;
    follow_monitor(e);                           /* what it has just evicted is not calm */
    if (!is_time_to_reload(&e->budget) || !may_take_anything(e))
        return;
    ebb_pool_drain(e->pool);
    (void)reload_one_step(e, true);
}

ebb_status ebb_reclaim_before_pass(ebb_engine *e, ebb_error *err)
{
    ebb_status st;

    if (!e->host && ++e->budget.n_passes_unchecked >= CHECK_PASSES)
        check_memory(e);
    reload_in_answer(e);
    st = e->host ? EBB_OK : ebb_budget_question_draft_model(e, err);
    return st == EBB_OK ? ebb_res_check(e->res, err) : st;
}

/* Copies of our own are looked after also while nobody asks anything. */
static bool has_copies(const ebb_engine *e)
{
    return !e->plan.is_mapped && e->budget.gauge.fd >= 0 && !ebb_model_is_in_memory(e->model);
}

void ebb_reclaim_before_turn(ebb_engine *e)
{
    if (e->host)
        return;
    follow_monitor(e);
    if (has_copies(e) && (e->budget.monitor ? ebb_pressure_monitor_take_alert(e) : seems_short(e)))
        check_memory(e);
}

bool ebb_reclaim_idle(ebb_engine *e)
{
    if (e->host)
        return false;
    ebb_reclaim_before_turn(e);
    return ((e->draft_model.is_released || may_take_anything(e)) && reload_one_step(e, false)) ||
           (has_copies(e) && !e->budget.monitor);
}
