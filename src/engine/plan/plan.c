/* The memory arithmetic (ebb/plan.h, plan/layout.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_file.h"
#include "plan/layout.h"

#define MIB ((uint64_t)1 << 20)

#define CODE_BYTES      (8 * MIB)                /* program and libraries, as far as they are touched */
#define CHUNK_DEFAULT   512u
#define CHUNK_MAX       1024u
#define CTX_MIN         512u
#define MEMORY_BYTES_S  10e9                     /* per core, where it was not measured */
#define DISK_BYTES_S    1e9
#define INT8_MAC_S      60e9

/* -- The layout ---------------------------------------------------------------- */

void ebb_layout_arena(ebb_net *net, ebb_run *run, ebb_arena *a)
{
    ebb_net_layout(net, a);
    ebb_run_layout(run, a);
}

void ebb_layout_run(const ebb_plan *plan, const ebb_net *net, ebb_run *run)
{
    run->net = net;
    run->n_threads = plan->n_threads;
    run->cap_cols = plan->n_chunk;
    run->n_ctx = plan->n_ctx;
    run->cap_logits = EBB_LOGIT_COLS;
    run->n_states = net->state_bytes ? EBB_N_SLOTS : 0;
}

uint64_t ebb_layout_session_bytes(const ebb_net *net, uint32_t n_ctx)
{
    uint64_t session = (uint64_t)n_ctx * sizeof(ebb_token) + ebb_kv_blocks_for(n_ctx) * sizeof(uint32_t) +
                       (uint64_t)net->n_vocab * sizeof(float);
    uint64_t sampler = (uint64_t)net->n_vocab * 3 * 8;

    return session + sampler;
}

/* -- Bytes ----------------------------------------------------------------------- */

static uint64_t kv_bytes(const ebb_net *net, const ebb_kv_layer *layers, const ebb_plan *p)
{
    ebb_kv_shape shape = { .n_layers = net->n_layers, .layers = layers, .k_type = p->kv_k, .v_type = p->kv_v };

    return ebb_kv_block_bytes(&shape) * ebb_kv_blocks_for(p->n_ctx);
}

static uint64_t activation_bytes(ebb_net *net, const ebb_plan *p)
{
    ebb_arena count = { 0 };
    ebb_run run = { 0 };

    ebb_layout_run(p, net, &run);
    ebb_layout_arena(net, &run, &count);
    return count.used + ebb_layout_session_bytes(net, p->n_ctx);
}

/* Fill the parts for the context and KV type that stand in p. */
static void count(ebb_net *net, const ebb_kv_layer *layers, ebb_plan *p)
{
    if (p->n_chunk > p->n_ctx)
        p->n_chunk = p->n_ctx;
    p->weights_resident_bytes = ebb_net_weight_bytes(net);
    p->kv_bytes = kv_bytes(net, layers, p);
    p->activation_bytes = activation_bytes(net, p);
    p->code_bytes = CODE_BYTES;
    p->total_bytes = p->weights_resident_bytes + p->weights_ring_bytes + p->kv_bytes + p->activation_bytes +
                     p->tokenizer_bytes + p->code_bytes + p->reserve_bytes;
}

/* -- Choices --------------------------------------------------------------------- */

static uint32_t usual_ctx(const ebb_net *net, ebb_mode mode)
{
    uint32_t want = mode == EBB_MODE_MAX_CONTEXT ? net->n_ctx_train : mode == EBB_MODE_MAX_TPS ? 4096 : 8192;

    return want < net->n_ctx_train ? want : net->n_ctx_train;
}

/* Rows of a head must be whole blocks of the type. */
static bool can_store(const ebb_net *net, ebb_kv_type k, ebb_kv_type v)
{
    return ebb_kv_row_bytes(k, net->dim_k) > 0 && ebb_kv_row_bytes(v, net->dim_v) > 0;
}

/* Context and KV type: f16 if it fits, then q8_0, then less context. */
static void choose(ebb_net *net, const ebb_kv_layer *layers, const ebb_engine_opts *o, ebb_plan *p)
{
    bool has_k = o->has_kv && o->kv_k != EBB_KV_AUTO, has_v = o->has_kv && o->kv_v != EBB_KV_AUTO;

    p->n_ctx = o->n_ctx ? o->n_ctx : usual_ctx(net, o->mode);
    p->kv_k = has_k ? o->kv_k : EBB_KV_F16;
    p->kv_v = has_v ? o->kv_v : EBB_KV_F16;
    p->tier = EBB_TIER_FULL;
    snprintf(p->why, sizeof p->why, "everything fits");
    count(net, layers, p);
    if (p->total_bytes > p->budget_bytes && !(has_k && has_v) && can_store(net, EBB_KV_Q8_0, EBB_KV_Q8_0)) {
        p->kv_k = has_k ? o->kv_k : EBB_KV_Q8_0;
        p->kv_v = has_v ? o->kv_v : EBB_KV_Q8_0;
        p->tier = EBB_TIER_TIGHT;
        snprintf(p->why, sizeof p->why, "fits with KV in q8_0");
        count(net, layers, p);
    }
    while (p->total_bytes > p->budget_bytes && !o->n_ctx && p->n_ctx / 2 >= CTX_MIN) {
        p->n_ctx /= 2;
        p->tier = EBB_TIER_TIGHT;
        snprintf(p->why, sizeof p->why, "fits with a context of %u", p->n_ctx);
        count(net, layers, p);
    }
}

static void predict(const ebb_net *net, const ebb_machine *m, ebb_plan *p)
{
    double memory = m->memory_bytes_s > 0 ? m->memory_bytes_s : MEMORY_BYTES_S * p->n_threads;
    double disk = m->disk_bytes_s > 0 ? m->disk_bytes_s : DISK_BYTES_S;
    double mac_s = m->int8_mac_s > 0 ? m->int8_mac_s : INT8_MAC_S * p->n_threads;
    double read_s = (double)p->stream_bytes / disk, touch_s = (double)p->pass_bytes / memory;
    double macs = 0, chunk_s;

    for (uint32_t i = 0; i + 1 < net->n_extents; i++)    /* all but the output, which few columns need */
        macs += (double)net->extents[i].n_elems *
                (net->extents[i].is_certain ? 1 : (double)net->n_expert_used / net->n_expert);
    p->predicted_decode_tok_s = 1 / (read_s > touch_s ? read_s : touch_s);
    chunk_s = macs * p->n_chunk / mac_s;
    p->predicted_prefill_tok_s = p->n_chunk / (chunk_s > read_s ? chunk_s : read_s);
    p->predicted_first_token_s = (read_s > touch_s ? read_s : touch_s) + 64 / p->predicted_prefill_tok_s;
}

static uint32_t resident_layers(const ebb_net *net, const ebb_engine_opts *o)
{
    uint64_t n = net->n_layers;

    if (o->has_resident)
        n = o->resident_is_percent ? n * o->resident / 100 : o->resident;
    return n < net->n_layers ? (uint32_t)n : net->n_layers;
}

ebb_status ebb_plan_net(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                        const ebb_machine *machine, ebb_plan *p, ebb_error *err)
{
    static const ebb_engine_opts defaults;
    const ebb_engine_opts *o = opts ? opts : &defaults;
    ebb_kv_layer *layers = calloc(net->n_layers, sizeof *layers);
    uint32_t chunk = o->n_chunk ? o->n_chunk : CHUNK_DEFAULT;
    uint64_t hard;

    memset(p, 0, sizeof *p);
    if (!layers)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u layers", net->n_layers);
    ebb_net_kv_layers(net, layers);
    p->n_threads = o->n_threads ? o->n_threads : machine->n_cpus;
    p->n_layers = net->n_layers;
    p->tokenizer_bytes = ebb_model_bytes(m);
    p->n_resident = resident_layers(net, o);
    p->n_chunk = chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
    p->budget_bytes = machine->available_bytes;
    if (o->ram_bytes && o->ram_bytes < p->budget_bytes)
        p->budget_bytes = o->ram_bytes;
    choose(net, layers, o, p);
    free(layers);
    if (!can_store(net, p->kv_k, p->kv_v))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "this KV type needs heads of a multiple of 32 elements, they have %u; --kv f16 works",
                        net->dim_k);
    p->pass_bytes = ebb_net_pass_bytes(net);
    p->fits = p->total_bytes <= p->budget_bytes;
    hard = p->total_bytes - p->weights_resident_bytes;
    if (!p->fits && hard <= p->budget_bytes) {   /* the weights' pages come and go */
        p->tier = EBB_TIER_STREAMING;
        p->stream_bytes = p->pass_bytes;
        snprintf(p->why, sizeof p->why, "the weights are %llu MiB more than memory has: read again for each token",
                 (unsigned long long)((p->total_bytes - p->budget_bytes) / MIB));
    } else if (!p->fits) {
        p->tier = EBB_TIER_CRITICAL;
        p->stream_bytes = p->pass_bytes;
        snprintf(p->why, sizeof p->why, "a context of %u takes %llu MiB beside the weights, there are %llu MiB (%.60s)",
                 p->n_ctx, (unsigned long long)(hard / MIB), (unsigned long long)(p->budget_bytes / MIB),
                 o->ram_bytes && o->ram_bytes <= p->budget_bytes ? "--ram" : machine->available_why);
    }
    predict(net, machine, p);
    return EBB_OK;
}

bool ebb_plan_is_resident(const ebb_plan *p, ebb_placement placement, uint32_t layer)
{
    if (placement == EBB_PLACE_FIRST)
        return layer < p->n_resident;
    if (placement == EBB_PLACE_LAST)
        return layer >= p->n_layers - p->n_resident;
    /* evenly: layer i is resident where i * share passes a whole number */
    return (uint64_t)(layer + 1) * p->n_resident / p->n_layers > (uint64_t)layer * p->n_resident / p->n_layers;
}

ebb_status ebb_plan_make(const ebb_model *m, const ebb_engine_opts *opts,
                         const ebb_machine *machine, ebb_plan *out, ebb_error *err)
{
    ebb_net net;
    ebb_status st = ebb_net_bind(&net, ebb_model_gguf(m), err);

    memset(out, 0, sizeof *out);
    if (st != EBB_OK)
        return st;
    st = ebb_plan_net(&net, m, opts, machine, out, err);
    ebb_net_fini(&net);
    return st;
}
