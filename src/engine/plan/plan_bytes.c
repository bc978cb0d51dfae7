/* What a plan takes (plan/planning.h). */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "plan/planning.h"

#define MIB ((uint64_t)1 << 20)

#define CODE_BYTES      (8 * MIB)                /* program and libraries, as far as they are touched */
#define EXPERT_MATRICES 3u                       /* of an expert, at most: gate, up, down */
#define RING_LEAST      (16 * MIB)
#define RING_PARTS      3u                       /* two in use, the next on its way */
#define MISSED_LEAST    0.01                     /* where not all experts have room */

uint64_t ebb_plan_pinned_bytes(const ebb_res_extent *x)
{
    return (x->offset % 4096 + x->n_bytes + 4095) / 4096 * 4096;
}

static uint64_t kv_bytes(const ebb_planning *q)
{
    ebb_kv_shape shape = ebb_layout_kv(q->p, q->net, q->layers);

    return ebb_kv_pool_bytes(&shape);
}

static uint64_t activation_bytes(const ebb_planning *q)
{
    ebb_arena arena = { 0 };
    ebb_forward run = { 0 };

    ebb_layout_run(q->p, q->net, &run);
    ebb_layout_arena(q->net, &run, &arena);
    return ebb_size_plus(arena.used, ebb_layout_session_bytes(q->net, q->p->n_ctx));
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Room for what is in use and on its way: more would only leave the processor's cache, in
 * which it is multiplied faster and into which many a disk reads faster too. */
static uint64_t largest_part(const ebb_net *net, bool is_certain, const bool *is_resident)
{
    uint64_t part = 0;

    for (uint32_t i = 0; i < net->n_extents; i++)
        if (net->extents[i].is_certain == is_certain && !(is_resident && is_resident[i]))
            part = max_u64(part, ebb_plan_pinned_bytes(&net->extents[i]));
    return part;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static uint64_t ring_bytes(const ebb_net *net, const bool *is_resident)
{
    return whole_pages(max_u64(RING_LEAST, RING_PARTS * largest_part(net, true, is_resident)));
}

uint64_t ebb_plan_ring_min_bytes(const ebb_net *net)
{
    return whole_pages(largest_part(net, true, NULL));
}

/* Twice what a layer chooses, of matrices of `one`. */
static uint64_t least_for_experts(const ebb_net *net, uint64_t one)
{
    return ebb_size_times(2 * EXPERT_MATRICES * (uint64_t)net->n_expert_used, one);
}

uint64_t ebb_plan_experts_min_bytes(const ebb_net *net)
{
    return least_for_experts(net, largest_part(net, false, NULL));
}

uint64_t ebb_plan_ring_bytes(const ebb_net *net)
{
    return ring_bytes(net, NULL);
}

/* What a draft head reads for each draft token goes to memory before layers do: it is read several times for each pass.
 * Its bytes; 0 where they would be more than a half. */
static uint64_t keep_for_drafts(const ebb_net *net, uint64_t bytes, bool *is_resident)
{
    uint64_t total = 0;

    for (uint32_t i = 0; net->has_draft_head && i < net->n_extents; i++)
        if (net->extents[i].is_certain && ebb_net_is_for_drafts(net, i))
            total += ebb_plan_pinned_bytes(&net->extents[i]);
    if (total > bytes / 2)
        return 0;
    for (uint32_t i = 0; total > 0 && i < net->n_extents; i++)
        if (net->extents[i].is_certain && ebb_net_is_for_drafts(net, i))
            is_resident[i] = true;
    return total;
}

/* Of the extents that are certain (or not), as many bytes as there are, spread evenly over the
 * pass: then a read always has something to be computed beside it.  What they take. */
static uint64_t spread_extents(const ebb_net *net, bool is_certain, uint64_t bytes, bool *is_resident)
{
    uint64_t total = 0, passed = 0, taken = 0, kept = is_certain ? keep_for_drafts(net, bytes, is_resident) : 0;

    bytes -= kept;
    for (uint32_t i = 0; i < net->n_extents; i++)
        if (net->extents[i].is_certain == is_certain && !(kept && ebb_net_is_for_drafts(net, i)))
            total += ebb_plan_pinned_bytes(&net->extents[i]);
    for (uint32_t i = 0; i < net->n_extents; i++) {
        uint64_t n = ebb_plan_pinned_bytes(&net->extents[i]);

        if (net->extents[i].is_certain != is_certain || (kept && ebb_net_is_for_drafts(net, i)))
            continue;
        passed += n;
        is_resident[i] = bytes >= total || (double)(taken + n) <= (double)bytes / (double)total * (double)passed;
        taken += is_resident[i] ? n : 0;
    }
    return kept + taken;
}

/* Whole layers, where the user says how many. */
static bool is_whole_resident(const ebb_plan *p, ebb_placement placement, uint32_t group)
{
    if (group == p->n_layers)
        return !p->streams_output;
    if (placement == EBB_PLACEMENT_FIRST)
        return group < p->n_resident;
    if (placement == EBB_PLACEMENT_LAST)
        return group >= p->n_layers - p->n_resident;
    /* evenly: layer i is resident where i * share passes a whole number */
    return (uint64_t)(group + 1) * p->n_resident / p->n_layers > (uint64_t)group * p->n_resident / p->n_layers;
}

uint64_t ebb_plan_resident_extents(const ebb_net *net, const ebb_plan *p, ebb_placement placement, bool *is_resident)
{
    uint64_t left = p->spread_bytes, experts = 0;

    for (uint32_t i = 0; i < net->n_extents; i++)
        is_resident[i] = is_whole_resident(p, placement, net->extents[i].group);
    if (!p->is_spread)
        return 0;
    left -= spread_extents(net, true, left, is_resident); /* what every pass needs first */
    for (uint32_t i = 0; i < net->n_extents; i++)
        experts += net->extents[i].is_certain ? 0 : ebb_plan_pinned_bytes(&net->extents[i]);
    if (experts > left)                          /* which of them stay is for their use to say */
        return spread_extents(net, false, 0, is_resident), left;
    return spread_extents(net, false, experts, is_resident), 0;
}

/* Memory for streamed experts. */
static uint64_t expert_bytes(const ebb_planning *q, uint64_t left)
{
    uint64_t one = largest_part(q->net, false, q->is_resident);

    return one ? ebb_size_plus(least_for_experts(q->net, one), left) : 0;
}

/* Share of what is chosen that is read where that share of the experts has room: as it was before, else as if all
 * were chosen alike. */
static double predict_miss_rate(const ebb_planning *q, double room)
{
    const double *at = q->machine->expert_miss_rate;
    double i = floor(room * 16);

    return at[0] > 0 ? at[(int)i] + (room * 16 - i) * (at[(int)i + 1] - at[(int)i]) : 1 - room;
}

void ebb_plan_set_miss_rate(const ebb_net *net, ebb_plan *p, double miss_rate)
{
    uint64_t chosen = p->expert_disk_bytes / net->n_expert * net->n_expert_used;

    miss_rate = miss_rate > MISSED_LEAST ? miss_rate : MISSED_LEAST;
    p->stream_bytes -= p->expert_read_bytes;
    p->expert_read_bytes = (uint64_t)(miss_rate * (double)chosen);
    p->stream_bytes += p->expert_read_bytes;
    p->expert_hit_rate = miss_rate < 1 ? 1 - miss_rate : 0;
}

static uint64_t total_bytes(const ebb_plan *p)
{
    const uint64_t parts[] = {
        p->weights_resident_bytes, p->weights_ring_bytes, p->expert_bytes, p->kv_bytes, p->activation_bytes,
        p->tokenizer_bytes, p->code_bytes, p->reserve_bytes, p->draft_bytes,
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum = ebb_size_plus(sum, parts[i]);
    return sum;
}

/* What the draft head has of its own; whether a draft token would read from disk for certain. */
static uint64_t draft_head_bytes(const ebb_planning *q, bool *is_streamed)
{
    uint64_t sum = 0;

    *is_streamed = false;
    for (uint32_t i = 0; q->net->has_draft_head && i < q->net->n_extents; i++) {
        if (!ebb_net_is_for_drafts(q->net, i))
            continue;
        sum += i >= q->net->draft_head.first_extent ? q->net->extents[i].n_bytes : 0;
        *is_streamed |= q->net->extents[i].is_certain && !q->is_resident[i];
    }
    return sum;
}

/* Fill the parts for the choices made so far in the plan. */
void ebb_planning_count(const ebb_planning *q)
{
    ebb_plan *p = q->p;
    uint64_t experts = 0, left;

    if (p->n_batch > p->n_ctx)
        p->n_batch = p->n_ctx;
    p->weights_resident_bytes = 0;
    p->stream_bytes = 0;
    left = ebb_plan_resident_extents(q->net, p, q->o->placement, q->is_resident);
    for (uint32_t i = 0; i < q->net->n_extents; i++) {
        const ebb_res_extent *x = &q->net->extents[i];

        if (q->is_resident[i])
            p->weights_resident_bytes += ebb_plan_pinned_bytes(x);
        else
            *(x->is_certain ? &p->stream_bytes : &experts) += x->n_bytes;
    }
    p->draft_head_bytes = draft_head_bytes(q, &p->streams_draft_head);
    p->expert_bytes = expert_bytes(q, left);
    p->expert_read_bytes = 0;
    p->expert_hit_rate = 0;
    p->expert_disk_bytes = experts;
    if (experts > p->expert_bytes)
        ebb_plan_set_miss_rate(q->net, p, predict_miss_rate(q, (double)p->expert_bytes / (double)experts));
    if (p->is_mapped && p->stream_bytes == 0)
        p->weights_resident_bytes = ebb_net_weight_bytes(q->net);
    p->weights_ring_bytes = p->stream_bytes > 0 ? ring_bytes(q->net, q->is_resident) : 0;
    p->kv_bytes = kv_bytes(q) - p->kv_spill_bytes;
    if (!q->is_live)
        p->activation_bytes = activation_bytes(q);
    p->code_bytes = CODE_BYTES;
    p->reserve_bytes = EBB_PLAN_FIXED_BYTES + p->weights_resident_bytes / EBB_PLAN_FIXED_SHARE +
                       (p->stream_bytes > 0 ? EBB_READER_BYTES : 0);
    p->total_bytes = total_bytes(p);
}

uint64_t ebb_plan_draft_bytes(const ebb_plan *draft)
{
    return draft->total_bytes - draft->code_bytes - EBB_PLAN_FIXED_BYTES;         /* its host has these */
}
