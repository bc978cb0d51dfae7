/* Which buffers a plan makes (plan/layout.h). */
#include "plan/layout.h"

void ebb_layout_arena(ebb_net *net, ebb_forward *run, ebb_arena *a)
{
    ebb_net_layout(net, a);
    ebb_forward_layout(run, a);
}

/* Heads that are kept as one; types that do not suit are refused later. */
static uint32_t kv_unit(const ebb_plan *plan, const ebb_net *net)
{
    uint32_t unit = ebb_net_kv_unit(net, plan->kv_k, plan->kv_v);

    return unit ? unit : 1;
}

void ebb_layout_run(const ebb_plan *plan, const ebb_net *net, ebb_forward *run)
{
    run->net = net;
    run->n_threads = plan->n_threads;
    run->cap_tokens = plan->n_batch;
    run->n_ctx = plan->n_ctx;
    run->cap_logits = plan->n_draft_max + 1 > plan->n_sequences ? plan->n_draft_max + 1 : plan->n_sequences;
    run->cap_hidden = run->cap_logits > EBB_MAX_SEQUENCES ? run->cap_logits : EBB_MAX_SEQUENCES;
    run->k_type = plan->kv_k;
    run->v_type = plan->kv_v;
    run->unit = kv_unit(plan, net);
    run->n_states = net->state_bytes ? ebb_n_state_slots(plan->n_sequences) : 0;
    if (net->state_bytes)                        /* who does not let others draft is a draft model, and takes back its
                                                    own tokens */
        run->n_state_log = plan->n_draft_max ? plan->n_draft_max : EBB_DRAFT_MAX_MODEL;
}

ebb_kv_shape ebb_layout_kv(const ebb_plan *plan, const ebb_net *net, ebb_kv_layer *layers)
{
    ebb_net_kv_layers(net, kv_unit(plan, net), layers);
    return (ebb_kv_shape){
        .n_layers = ebb_net_n_kv_layers(net), .layers = layers, .k_type = plan->kv_k, .v_type = plan->kv_v,
        .window = net->window, .n_ctx = plan->n_ctx, .n_batch = plan->n_batch, .n_sequences = plan->n_sequences,
        .has_file = plan->kv_spill_bytes > 0,
    };
}

uint64_t ebb_layout_session_bytes(const ebb_net *net, uint32_t n_ctx)
{
    uint64_t blocks = EBB_KV_GROUPS * sizeof(uint32_t) * ebb_kv_blocks_of(n_ctx);
    uint64_t session = (uint64_t)n_ctx * sizeof(ebb_token) + blocks + (uint64_t)net->n_vocab * sizeof(float);
    uint64_t sampler = (uint64_t)net->n_vocab * 3 * 8;
    uint64_t rows = (uint64_t)net->n_vocab * (sizeof(uint32_t) + sizeof(uint16_t));     /* ebb_draft_rows */
    uint64_t drafter = net->has_draft_head ? sampler + rows + 2 * (uint64_t)net->n_embd * sizeof(float) : 0;

    return session + sampler + drafter;
}
