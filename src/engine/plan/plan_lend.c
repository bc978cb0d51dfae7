/* Memory of K and V that is lent to layers until the context grows into it (plan/layout.h). */
#include "plan/layout.h"

#include "residency/pin.h"

#define MIB         ((uint64_t)1 << 20)
#define EDGE_BYTES  (4 * MIB)    /* huge pages at the ends of what K and V have taken */
#define COPY_BYTES  4096u        /* of a layer's copy, at most, beside its extents */
#define TABLE_SHARE 200u         /* one part in so many of lent memory is the kernel's, for its tables */

uint32_t ebb_plan_lend_order(uint32_t n_layers, uint32_t i)
{
    uint32_t n_even = (n_layers + 1) / 2;

    if (i == 0)
        return n_layers;
    return i <= n_even ? 2 * (i - 1) : 2 * (i - 1 - n_even) + 1;
}

/* What of kv_bytes is neither lent nor for K and V. */
static uint64_t edges(const ebb_plan *p)
{
    return EDGE_BYTES + COPY_BYTES * (p->n_layers + 1);
}

uint64_t ebb_plan_lendable_bytes(const ebb_plan *p, uint64_t taken_bytes)
{
    uint64_t n_blocks = ebb_kv_blocks_of(p->n_ctx) + 1, chunk = ebb_kv_blocks_of(p->n_batch) + 2, least, room;

    if (p->stream_bytes == 0 || p->is_mapped || p->expert_disk_bytes > 0)
        return 0;
    least = (p->kv_bytes + p->kv_spill_bytes) / n_blocks * chunk;
    least = (taken_bytes > least ? taken_bytes : least) + edges(p);
    room = p->kv_bytes > least ? p->kv_bytes - least : 0;
    return room / (TABLE_SHARE + 1) * TABLE_SHARE;
}

uint64_t ebb_plan_kv_limit(const ebb_plan *p, uint64_t lent_bytes)
{
    uint64_t not_kv = edges(p) + lent_bytes + lent_bytes / TABLE_SHARE;

    if (lent_bytes == 0)
        return UINT64_MAX;
    return p->kv_bytes > not_kv ? p->kv_bytes - not_kv : 0;
}

/* Of the group's streamed extents as many as n_bytes hold; *n_read receives their weights. */
static uint64_t lend_group(const ebb_net *net, const bool *is_resident, uint32_t group, uint64_t n_bytes,
                           uint64_t *n_read)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < net->n_extents; i++) {
        const ebb_res_extent *x = &net->extents[i];

        if (x->group != group || is_resident[i] || !x->is_certain)
            continue;
        if (sum + ebb_pin_bytes(x) > n_bytes)
            break;
        sum += ebb_pin_bytes(x);
        *n_read += x->n_bytes;
    }
    return sum;
}

void ebb_plan_lend(const ebb_net *net, ebb_plan *p, const bool *is_resident)
{
    uint64_t room, whole;

    p->lent_bytes = p->lent_read_bytes = 0;
    p->n_resident_first = p->n_resident;
    room = ebb_plan_lendable_bytes(p, 0);
    for (uint32_t i = 0; i <= net->n_layers && room > 0; i++)
        p->lent_bytes += lend_group(net, is_resident, ebb_plan_lend_order(net->n_layers, i), room - p->lent_bytes,
                                    &p->lent_read_bytes);
    whole = ebb_net_weight_bytes(net);
    if (p->lent_bytes > 0 && whole > 0)
        p->n_resident_first = (uint32_t)((whole - (p->stream_bytes - p->lent_read_bytes)) * p->n_layers / whole);
}
