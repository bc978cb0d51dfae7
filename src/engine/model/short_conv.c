/* Short convolution between two gates (Liquid AI 2025, "LFM2"), recurrent.h: of a column, b, c and u are projected, and
 *
 *     y = c * conv(b * u)
 *
 * over the last K columns.  A layer's state is the last K - 1 products b * u. */
#include "model/recurrent.h"

static size_t short_conv_state_floats(const ebb_net *net)
{
    return ebb_conv_state_floats(net, net->n_embd);
}

static size_t short_conv_log_floats(const ebb_net *net)
{
    return net->n_embd;
}

static ebb_status short_conv_advance(ebb_forward *r, const ebb_recurrent *l, ebb_error *err)
{
    ebb_recurrence x = ebb_recurrence_of(r, l);
    size_t n = r->net->n_embd;

    (void)err;
    ebb_recurrence_convolve(&(ebb_conv){
        .x = &x, .w = l->conv, .bias = l->conv_bias, .n_channels = r->net->n_embd, .in = r->recurrent.in,
        .in_gate = r->recurrent.in + 2 * n,
        .out_gate = r->recurrent.in + n, .in_stride = 3 * n, .out = r->buf.y, .out_stride = n,
    });
    return EBB_OK;
}

const ebb_recurrent_class ebb_recurrent_conv = {
    short_conv_state_floats, short_conv_log_floats, NULL, short_conv_advance
};
