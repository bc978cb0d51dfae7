/* What architectures with recurrent layers share (bind.h). */
#include "model/arch.h"
#include "model/forward.h"

#define MAX_STATE 4096u
#define MAX_HEADS (1u << 16)
#define MAX_INNER (EBB_MAX_WIDTH / 4)            /* so that all that is projected at once is no wider than other
                                                    columns */

void ebb_bind_state(ebb_binder *b, ebb_recurrent *l, ebb_recurrent_kind kind)
{
    ebb_net *net = b->net;

    if (b->st != EBB_OK)
        return;
    l->kind = kind;
    l->state_at = net->state_bytes;
    l->log_at = net->state_log_bytes;
    net->state_bytes += ebb_recurrent_state_bytes(net, kind);
    net->state_log_bytes += ebb_recurrent_log_bytes(net, kind);
}

void ebb_bind_short_conv(ebb_binder *b, ebb_layer *l)
{
    ebb_recurrent *c = &l->recurrent;
    uint32_t n = b->net->n_embd;

    b->net->n_conv = ebb_bind_u32(b, ".shortconv.l_cache", 2, 64);
    ebb_bind_matrix(b, &c->in, "shortconv.in_proj", ebb_bind_product(b, ".embedding_length", 3, n, EBB_MAX_WIDTH), n);
    ebb_bind_table(b, &c->conv, "shortconv.conv", n, b->net->n_conv);
    ebb_bind_matrix(b, &c->out, "shortconv.out_proj", n, n);
    ebb_bind_state(b, c, EBB_RECURRENT_CONV);
}

/* -- Mamba ---------------------------------------------------------------------------- */

static void bind_mamba_sizes(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->n_conv = ebb_bind_u32(b, ".ssm.conv_kernel", 2, 64);
    net->dim_mamba = ebb_bind_u32(b, ".ssm.inner_size", 1, MAX_INNER);
    net->dim_mamba_state = ebb_bind_u32(b, ".ssm.state_size", 1, MAX_STATE);
}

void ebb_bind_mamba2_shape(ebb_binder *b)
{
    ebb_net *net = b->net;

    bind_mamba_sizes(b);
    net->n_mamba_head = ebb_bind_u32(b, ".ssm.time_step_rank", 1, MAX_HEADS);
    net->n_mamba_group = ebb_bind_u32(b, ".ssm.group_count", 1, MAX_HEADS);
    (void)ebb_bind_product(b, ".ssm.group_count", net->n_mamba_group, net->dim_mamba_state, MAX_INNER / 2);
    if (b->st == EBB_OK && (net->dim_mamba % net->n_mamba_head != 0 || net->n_mamba_head % net->n_mamba_group != 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.ssm: %u channels, %u heads and %u groups do not divide evenly",
                      net->arch->name, net->dim_mamba, net->n_mamba_head, net->n_mamba_group);
}

void ebb_bind_mamba2(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    ebb_recurrent *m = &l->recurrent;
    uint32_t n_channels = net->dim_mamba + 2 * net->n_mamba_group * net->dim_mamba_state, n_head = net->n_mamba_head;

    ebb_bind_matrix(b, &m->in, "ssm_in", net->dim_mamba + n_channels + n_head, net->n_embd);
    ebb_bind_table(b, &m->conv, "ssm_conv1d", n_channels, net->n_conv);
    ebb_bind_named_table(b, &m->conv_bias, "ssm_conv1d.bias", 1, n_channels, false);
    ebb_bind_named(b, &m->dt, "ssm_dt.bias", n_head);
    ebb_bind_named_table(b, &m->a, "ssm_a", n_head, 1, true);
    ebb_bind_named_table(b, &m->d, "ssm_d", n_head, 1, true);
    if (ebb_bind_has(b, "ssm_norm"))
        ebb_bind_table(b, &m->norm, "ssm_norm", net->n_mamba_group, net->dim_mamba / net->n_mamba_group);
    ebb_bind_matrix(b, &m->out, "ssm_out", net->n_embd, net->dim_mamba);
    ebb_bind_state(b, m, EBB_RECURRENT_MAMBA2);
}

void ebb_bind_mamba_shape(ebb_binder *b)
{
    bind_mamba_sizes(b);
    b->net->dim_mamba_dt = ebb_bind_u32(b, ".ssm.time_step_rank", 1, MAX_INNER);
    ebb_bind_only(b, ".ssm.dt_b_c_rms", false);
    ebb_bind_either(b, ".ssm.group_count", 0, 1);
}

void ebb_bind_mamba(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    ebb_recurrent *m = &l->recurrent;
    uint32_t inner = net->dim_mamba, n = net->dim_mamba_state, rank = net->dim_mamba_dt;

    ebb_bind_matrix(b, &m->in, "ssm_in", 2 * inner, net->n_embd);
    ebb_bind_table(b, &m->conv, "ssm_conv1d", inner, net->n_conv);
    ebb_bind_named_table(b, &m->conv_bias, "ssm_conv1d.bias", 1, inner, false);
    ebb_bind_matrix(b, &m->dt_b_c, "ssm_x", rank + 2 * n, inner);
    if (ebb_bind_has(b, "ssm_dt_norm")) {
        ebb_bind_norm(b, &m->dt_norm, "ssm_dt_norm", rank);
        ebb_bind_norm(b, &m->b_norm, "ssm_b_norm", n);
        ebb_bind_norm(b, &m->c_norm, "ssm_c_norm", n);
    }
    ebb_bind_matrix(b, &m->dt_up, "ssm_dt", inner, rank);
    ebb_bind_named_table(b, &m->a, "ssm_a", inner, n, true);
    ebb_bind_named_table(b, &m->d, "ssm_d", 1, inner, true);
    ebb_bind_matrix(b, &m->out, "ssm_out", net->n_embd, inner);
    ebb_bind_state(b, m, EBB_RECURRENT_MAMBA);
}
