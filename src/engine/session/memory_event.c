/* What was decided about memory: kept as a value (ebb/stats.h), written out as a line. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/size.h"
#include "open/engine_state.h"

#define MIB(n_bytes) ((uint64_t)(n_bytes) >> 20)

/* What of an eviction or a spill is known before it: "memory is short: 512 MiB available, 64 MiB still to be read;
 * ". */
static int write_pressure(const ebb_memory_event *e, char *buf, size_t cap)
{
    char pending[64] = "";

    if (e->bytes_pending > 0)
        snprintf(pending, sizeof pending, ", %" PRIu64 " MiB still to be read", MIB(e->bytes_pending));
    return snprintf(buf, cap, "memory is %s: %" PRId64 " MiB available%s; ", e->is_emergency ? "exhausted" : "short",
                    e->available_bytes / (1 << 20), pending);
}

/* "3 layers", "3 layers and the output matrix", "the output matrix". */
static void write_layers(const ebb_memory_event *e, char *buf, size_t cap)
{
    const char *plural = e->n_layers == 1 ? "" : "s";

    if (e->n_layers == 0 && e->detail[0])
        snprintf(buf, cap, "%s", e->detail);
    else
        snprintf(buf, cap, "%" PRIu32 " layer%s%s%s", e->n_layers, plural, e->detail[0] ? " and " : "", e->detail);
}

static void write_eviction(const ebb_memory_event *e, char *buf, size_t cap)
{
    char layers[sizeof e->detail + 32];

    switch ((int)e->code) {
    case EBB_MEMORY_LAYERS_EVICTED:
        write_layers(e, layers, sizeof layers);
        if (e->is_by_monitor)
            snprintf(buf, cap, "%s (%" PRIu64 " MiB) evicted at once", layers, MIB(e->bytes));
        else if (e->n_layers > 0)
            snprintf(buf, cap, "%s evicted, %" PRIu32 " stay", layers, e->n_layers_left);
        else
            snprintf(buf, cap, "%s evicted, %" PRIu32 " layer%s left", layers, e->n_layers_left,
                     e->n_layers_left == 1 ? "" : "s");
        break;
    case EBB_MEMORY_EXPERTS_EVICTED:
        snprintf(buf, cap, "%" PRIu64 " MiB of experts evicted, %" PRIu64 " stay", MIB(e->bytes), MIB(e->bytes_left));
        break;
    case EBB_MEMORY_RING_SHRUNK:
        snprintf(buf, cap, "no layer is left to evict; one slot for reading");
        break;
    case EBB_MEMORY_KV_SPILLED:
        snprintf(buf, cap, "%" PRIu64 " MiB of K and V moved to a file, which holds %" PRIu64 " MiB", MIB(e->bytes),
                 MIB(e->bytes_left));
        break;
    case EBB_MEMORY_DRAFT_EVICTED:
        if (e->is_by_monitor)
            snprintf(buf, cap, "the draft model's %" PRIu64 " MiB evicted at once", MIB(e->bytes));
        else
            snprintf(buf, cap, "the draft model is evicted (%" PRIu64 " MiB); answers get slower", MIB(e->bytes));
        break;
    }
}

/* The memory of K and V that the context does not use yet. */
static void write_lending(const ebb_memory_event *e, char *buf, size_t cap)
{
    if (e->code == EBB_MEMORY_KV_LENT)
        snprintf(buf, cap, "the context leaves room: %" PRIu64 " MiB of it keep %" PRIu32 " layer%s in memory until it "
                           "grows", MIB(e->bytes), e->n_layers, e->n_layers == 1 ? "" : "s");
    else
        snprintf(buf, cap, "the context grows: %" PRIu32 " layer%s gave %" PRIu64 " MiB back, %" PRIu64 " MiB are left "
                           "to give", e->n_layers, e->n_layers == 1 ? "" : "s", MIB(e->bytes), MIB(e->bytes_left));
}

static void write_reload(const ebb_memory_event *e, char *buf, size_t cap)
{
    static const char again[] = "memory is available again:";

    switch ((int)e->code) {
    case EBB_MEMORY_LAYER_RELOADED:
        if (e->detail[0])
            snprintf(buf, cap, "%s %s reloaded, %" PRIu32 " to come", again, e->detail, e->n_layers_left);
        else
            snprintf(buf, cap, "%s layer %" PRIu32 " reloaded, %" PRIu32 " to come", again, e->layer,
                     e->n_layers_left);
        break;
    case EBB_MEMORY_EXPERTS_RELOADED:
        snprintf(buf, cap, "%s %" PRIu64 " MiB for experts", again, MIB(e->bytes_left));
        break;
    case EBB_MEMORY_RING_RESTORED:
        snprintf(buf, cap, "%s the ring has all of its slots", again);
        break;
    case EBB_MEMORY_KV_RELOADED:
        snprintf(buf, cap, "%s %" PRIu64 " MiB of K and V come back from the file, %" PRIu64 " to come", again,
                 MIB(e->bytes), MIB(e->bytes_left));
        break;
    case EBB_MEMORY_DRAFT_RELOADED:
        snprintf(buf, cap, "%s the draft model is reloaded", again);
        break;
    }
}

const char *ebb_memory_event_text(const ebb_memory_event *e, char *buf, size_t cap)
{
    char size[16];
    int n;

    if (cap == 0)
        return buf;
    buf[0] = '\0';
    switch (e->code) {
    case EBB_MEMORY_NONE:
        break;
    case EBB_MEMORY_PLANNED:
    case EBB_MEMORY_CACHE_NOTICE:
        snprintf(buf, cap, "%s", e->detail);
        break;
    case EBB_MEMORY_BUDGET_SET:
        snprintf(buf, cap, "budget %s: %s", ebb_size_text(e->bytes, size), e->detail);
        break;
    case EBB_MEMORY_KV_SPILL_FAILED:
        snprintf(buf, cap, "memory is exhausted, and K and V stay in it: %s", e->detail);
        break;
    case EBB_MEMORY_DRAFT_ENDED:
        snprintf(buf, cap, "the draft model has ended; answers go on without it: %s", e->detail);
        break;
    case EBB_MEMORY_LAYERS_EVICTED:
    case EBB_MEMORY_EXPERTS_EVICTED:
    case EBB_MEMORY_RING_SHRUNK:
    case EBB_MEMORY_KV_SPILLED:
    case EBB_MEMORY_DRAFT_EVICTED:
        n = write_pressure(e, buf, cap);
        if (n > 0 && (size_t)n < cap)
            write_eviction(e, buf + n, cap - (size_t)n);
        break;
    case EBB_MEMORY_LAYER_RELOADED:
    case EBB_MEMORY_EXPERTS_RELOADED:
    case EBB_MEMORY_RING_RESTORED:
    case EBB_MEMORY_KV_RELOADED:
    case EBB_MEMORY_DRAFT_RELOADED:
        write_reload(e, buf, cap);
        break;
    case EBB_MEMORY_KV_LENT:
    case EBB_MEMORY_KV_TAKEN_BACK:
        write_lending(e, buf, cap);
        break;
    }
    return buf;
}

void ebb_stats_memory_event(ebb_engine *e, const ebb_memory_event *event)
{
    uint32_t number;
    char line[EBB_MEMORY_EVENT_TEXT];

    ebb_log("budget", "%s", ebb_memory_event_text(event, line, sizeof line));
    pthread_mutex_lock(&e->lock);
    number = e->stats.memory_event.number + 1;
    e->stats.memory_event = *event;
    e->stats.memory_event.number = number;
    snprintf(e->stats.io, sizeof e->stats.io, "%s", ebb_res_io_name(e->res));
    e->stats.tier = e->budget.is_ring_minimal ? EBB_TIER_CRITICAL
                  : e->budget.n_evicted && e->plan.tier < EBB_TIER_STREAMING ? EBB_TIER_STREAMING : e->plan.tier;
    e->stats.budget_bytes = e->plan.budget_bytes;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_memory_notice(ebb_engine *e, ebb_memory_event_code code, const char *detail)
{
    ebb_memory_event event = { .code = code };

    snprintf(event.detail, sizeof event.detail, "%s", detail ? detail : "");
    ebb_stats_memory_event(e, &event);
}
