/* Qwen 3 Next and Qwen 3.5 (Qwen Team 2025, 2026), dense and with experts: three layers of gated delta
 * net (delta_net.c), then one of attention whose heads are gated. */
#include "model/arch.h"
#include "model/forward.h"

#define MAX_HEADS 4096u
#define MAX_WIDTH 4096u
_Static_assert(MAX_HEADS * MAX_WIDTH <= EBB_MAX_WIDTH, "N1");

/* Of each key head, the rows of beta of its value heads, then those of alpha. */
static void bind_beta_alpha(ebb_binder *b, ebb_recurrent *d)
{
    uint32_t n_v = b->net->n_head_delta_v, n = n_v / b->net->n_head_delta_k;

    ebb_bind_matrix(b, &d->beta, "ssm_ba", 2 * n_v, b->net->n_embd);
    ebb_bind_whole(b, &d->beta);
    d->beta.n_rows = n_v;
    d->beta.run = d->beta.skip = n;
    d->alpha = d->beta;
    d->alpha.first = n;
}

static void bind_delta_net(ebb_binder *b, ebb_recurrent *d)
{
    ebb_net *net = b->net;
    uint32_t n_v = net->n_head_delta_v, inner = n_v * net->dim_delta;
    uint32_t n_channels = 2 * net->n_head_delta_k * net->dim_delta + inner;

    ebb_bind_matrix(b, &d->in, "attn_qkv", n_channels, net->n_embd);
    ebb_bind_matrix(b, &d->z, "attn_gate", inner, net->n_embd);
    if (net->delta_is_grouped) {
        bind_beta_alpha(b, d);
    } else {
        ebb_bind_matrix(b, &d->alpha, "ssm_alpha", n_v, net->n_embd);
        ebb_bind_matrix(b, &d->beta, "ssm_beta", n_v, net->n_embd);
    }
    ebb_bind_table(b, &d->conv, "ssm_conv1d", n_channels, net->n_conv);
    ebb_bind_named(b, &d->dt, "ssm_dt.bias", n_v);
    ebb_bind_named(b, &d->a, "ssm_a", n_v);
    ebb_bind_vector(b, &d->norm, "ssm_norm", net->dim_delta, true);
    ebb_bind_matrix(b, &d->out, "ssm_out", net->n_embd, inner);
    ebb_bind_state(b, d, EBB_RECURRENT_DELTA_NET);
}

/* Of each head, rows of q, then rows of its gate. */
static void bind_gated_attention(ebb_binder *b, ebb_layer *l)
{
    ebb_net *net = b->net;
    uint32_t n_q = net->n_head * net->dim_k;

    ebb_bind_matrix(b, &l->q, "attn_q", 2 * n_q, net->n_embd);
    ebb_bind_whole(b, &l->q);
    l->q.n_rows = n_q;
    l->q.run = l->q.skip = net->dim_k;
    l->head_gate = l->q;
    l->head_gate.first = net->dim_k;
    ebb_bind_scale(b, &l->head_gate, "attn_q");
    ebb_bind_matrix(b, &l->k, "attn_k", net->n_head_kv * net->dim_k, net->n_embd);
    ebb_bind_matrix(b, &l->v, "attn_v", net->n_head_kv * net->dim_v, net->n_embd);
    ebb_bind_qk_norm(b, l);
    ebb_bind_matrix(b, &l->o, "attn_output", net->n_embd, net->n_head * net->dim_v);
    net->has_head_gate = true;
}

static void bind_qwen35_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    if (b->layer < b->net->n_layers && (b->layer + 1) % b->net->attention_period != 0)
        bind_delta_net(b, &l->recurrent);
    else
        bind_gated_attention(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "post_attention_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_qwen35(ebb_binder *b)
{
    ebb_net *net = b->net;

    b->routing.has_shared = true;
    ebb_bind_shape(b, true);
    net->attention_period = ebb_bind_u32_or(b, ".full_attention_interval", 4, 1, 1u << 16);
    net->n_conv = ebb_bind_u32(b, ".ssm.conv_kernel", 2, 64);
    net->dim_delta = ebb_bind_u32(b, ".ssm.state_size", 1, MAX_WIDTH);
    net->n_head_delta_k = ebb_bind_u32(b, ".ssm.group_count", 1, MAX_HEADS);
    net->n_head_delta_v = ebb_bind_u32(b, ".ssm.time_step_rank", 1, MAX_HEADS);
    ebb_bind_only(b, ".ssm.inner_size", net->n_head_delta_v * (double)net->dim_delta);
    if (b->st == EBB_OK && net->n_head_delta_v % net->n_head_delta_k != 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.ssm: %u heads are not a multiple of %u key heads", net->arch->name,
                      net->n_head_delta_v, net->n_head_delta_k);
    if (b->st == EBB_OK && net->dim_k != net->dim_v)
        ebb_bind_fail(b, EBB_UNSUPPORTED,
                      "metadata %s.attention: keys and values of different lengths are not supported",
                      net->arch->name);
    ebb_bind_layers(b, bind_qwen35_layer);
}

static const char *const harmless[] = { ".rope.dimension_sections", ".n_deepstack_layers", NULL };      /* of images */

const ebb_arch ebb_arch_qwen35 = { .name = "qwen35", .bind = bind_qwen35, .has_mtp = true, .harmless = harmless };
const ebb_arch ebb_arch_qwen35moe = { .name = "qwen35moe", .bind = bind_qwen35, .has_mtp = true, .harmless = harmless };

static void bind_qwen3next(ebb_binder *b)
{
    b->net->delta_is_grouped = true;
    bind_qwen35(b);
}

const ebb_arch ebb_arch_qwen3next = { .name = "qwen3next", .bind = bind_qwen3next, .has_mtp = true,
                                      .harmless = harmless };
