/* Memory of K and V that is lent to layers (lend.h). */
#include "memory/lend.h"

#include "base/log.h"
#include "open/engine_state.h"

/* The group that is lent memory as the i-th. */
static uint32_t group_of(const ebb_engine *e, uint32_t i)
{
    return ebb_plan_lend_order(e->net.n_layers, i);
}

static uint64_t all_lent_bytes(ebb_engine *e)
{
    ebb_res_stats res;

    ebb_res_get_stats(e->res, &res);
    return res.lent_bytes;
}

/* A row of passes is of one speed. */
static void memory_has_changed(ebb_engine *e, const ebb_memory_event *event)
{
    ebb_stats_memory_event(e, event);
    pthread_mutex_lock(&e->lock);
    ebb_calibrate_break(e);
    pthread_mutex_unlock(&e->lock);
}

/* K and V are about to have taken n_bytes: layers go until that is not lent.  What a late thread of the pool still
 * reads of them is zeroes, for a slice that is dropped. */
static void take_back(void *engine, uint64_t n_bytes)
{
    ebb_engine *e = engine;
    ebb_memory_event event = { .code = EBB_MEMORY_KV_TAKEN_BACK };
    uint64_t lent = all_lent_bytes(e);

    for (uint32_t i = e->net.n_layers + 1; i-- > 0 && n_bytes > ebb_plan_kv_limit(&e->plan, lent);) {
        uint64_t n = ebb_res_take_back(e->res, group_of(e, i));

        event.n_layers += n > 0;
        event.bytes += n;
        lent -= n;
    }
    event.bytes_left = lent;
    ebb_kv_set_limit(e->kv, ebb_plan_kv_limit(&e->plan, lent), (ebb_kv_host){ take_back, e });
    if (event.n_layers > 0)                      /* the monitor may have been there before */
        memory_has_changed(e, &event);
}

/* One layer's extents, as many as fit; returns the bytes. */
static uint64_t lend_to(ebb_engine *e, uint32_t group, uint64_t n_bytes)
{
    ebb_error err = { 0 };
    uint64_t lent = 0;

    if (ebb_res_lend(e->res, group, n_bytes, &lent, &err) != EBB_OK)
        ebb_log("budget", "%s", err.msg);
    return lent;
}

static void set_kv_limit(ebb_engine *e)
{
    ebb_kv_set_limit(e->kv, ebb_plan_kv_limit(&e->plan, all_lent_bytes(e)), (ebb_kv_host){ take_back, e });
}

void ebb_lend_open(ebb_engine *e)
{
    ebb_memory_event event = { .code = EBB_MEMORY_KV_LENT };
    uint64_t room = e->plan.lent_bytes ? ebb_plan_lendable_bytes(&e->plan, ebb_kv_taken_bytes(e->kv)) : 0;

    for (uint32_t i = 0; i <= e->net.n_layers && event.bytes < room; i++) {
        uint64_t n = lend_to(e, group_of(e, i), room - event.bytes);

        event.n_layers += n > 0;
        event.bytes += n;
    }
    event.bytes_left = event.bytes;
    set_kv_limit(e);
    if (event.n_layers > 0)
        memory_has_changed(e, &event);
}

void ebb_lend_close(ebb_engine *e)
{
    for (uint32_t i = 0; i <= e->net.n_layers; i++)
        (void)ebb_res_take_back(e->res, i);
    set_kv_limit(e);
}

/* The first layer that nothing is lent to and that could be; n_layers + 1: none. */
static uint32_t find_next(ebb_engine *e, uint64_t *n_bytes)
{
    uint32_t i = 0;

    for (; i <= e->net.n_layers; i++) {
        *n_bytes = ebb_res_lendable_bytes(e->res, group_of(e, i));
        if (*n_bytes > 0 && ebb_res_lent_bytes(e->res, group_of(e, i)) == 0)
            break;
    }
    return i;
}

/* K and V that nobody holds can be found on disk, too, if there is a cache; what of them is lent comes first then. */
static uint64_t kv_bytes_in_use(const ebb_engine *e)
{
    return ebb_kv_taken_bytes(e->kv) - (e->cache.disk ? ebb_kv_unheld_bytes(e->kv) : 0);
}

bool ebb_lend_is_due(ebb_engine *e, uint64_t *n_bytes)
{
    if (e->plan.lent_bytes == 0 || find_next(e, n_bytes) > e->net.n_layers)
        return false;
    return all_lent_bytes(e) + *n_bytes <= ebb_plan_lendable_bytes(&e->plan, kv_bytes_in_use(e));
}

void ebb_lend_step(ebb_engine *e)
{
    ebb_memory_event event = { .code = EBB_MEMORY_KV_LENT, .n_layers = 1 };
    uint64_t wanted, lent = all_lent_bytes(e), taken = ebb_kv_taken_bytes(e->kv), limit;
    uint32_t i = find_next(e, &wanted);

    if (i > e->net.n_layers)
        return;
    limit = ebb_plan_kv_limit(&e->plan, lent + wanted);
    if (taken > limit)
        (void)ebb_kv_release_unheld(e->kv, taken - limit);
    if (ebb_kv_taken_bytes(e->kv) <= limit)
        event.bytes = lend_to(e, group_of(e, i), wanted);
    event.bytes_left = lent + event.bytes;
    set_kv_limit(e);
    if (event.bytes > 0)
        memory_has_changed(e, &event);
}
