/* model/recurrent.h - what layers with a state have in common (for delta_net.c and its like).
 *
 * A state says all that a layer remembers of the tokens before some position.  It is large, and
 * cannot be cut back as K and V can.  So where tokens may be rejected (draft tokens), the state
 * itself follows only as far as is certain, to `commit_pos`.  What the tokens from there on
 * change in it, their updates, goes to the log: a product of two vectors for each head and an
 * input of the convolution, kilobytes where the state has megabytes.  The pass itself goes on
 * with copies of one head, in each thread's scratch.  The next pass first applies the updates of
 * the tokens that were accepted, then computes its own.  Those of rejected tokens are never
 * looked at; nothing is copied.
 *
 *     log:    an entry for each position p, at p mod n_state_log:  layer 0 | layer 1 | ...
 *     layer:  inputs of the convolution | updates of the heads | what heads share
 *
 * An update is applied by the operations that made it, on the same values: the bits are those of a
 * state that had followed. */
#ifndef EBB_RECURRENT_H
#define EBB_RECURRENT_H
#include "model/forward.h"

typedef struct ebb_recurrence {
    const ebb_forward *r;
    size_t  state_at, log_at;    /* of the layer in a state and in an entry of the log, bytes */
} ebb_recurrence;

/* Where a layer's part of states and of the state log is. */
ebb_recurrence ebb_recurrence_of(const ebb_forward *r, const ebb_recurrent *l);
/* The layer's part of the log's entry for a column of the pass; NULL: the state follows its token,
 * and nothing is logged. */
float *ebb_recurrence_column_log(const ebb_recurrence *x, uint32_t c);

/* How a part of a state (a head's, some channels' of a convolution) goes one token further. */
typedef struct ebb_recurrence_ops {
    void (*replay)(void *arg, float *part, const float *log);
    /* By column c of the pass.  log: where the update goes; NULL: nowhere. */
    void (*step)(void *arg, float *part, uint32_t c, float *log);
} ebb_recurrence_ops;

/* Take n floats of the layer's state, from element `at` on, from state_pos through all columns, of
 * one sequence after the other; `work` has room for as many. */
void ebb_recurrence_advance(const ebb_recurrence *x, const ebb_recurrence_ops *ops, void *arg,
                            size_t at, size_t n, float *work);

/* A causal convolution of each channel over the last K = net->n_conv tokens, in the pool:
 *
 *     s(t) = bias + sum_j w[j] u(t - (K - 1) + j),   u = x or x * x_gate
 *     y    = silu(s), or s * y_gate where there is one
 *
 * Its part of a state is the last K - 1 inputs u of EBB_CONV_CHANNELS channels at a time; it stands
 * first in the layer. */
#define EBB_CONV_CHANNELS 64u
typedef struct ebb_conv {
    const ebb_recurrence *x;
    const float *w, *bias;       /* [channels][K]; [channels] or NULL */
    uint32_t     n_channels;
    const float *in, *in_gate;   /* of column 0 */
    const float *out_gate;
    size_t       in_stride;      /* of all three */
    float       *out;            /* may be `in` */
    size_t       out_stride;
} ebb_conv;
void   ebb_recurrence_convolve(const ebb_conv *conv);
size_t ebb_conv_state_floats(const ebb_net *net, uint32_t n_channels);

/* -- Kinds ------------------------------------------------------------------------ */

typedef struct ebb_recurrent_class {
    size_t (*state_floats)(const ebb_net *net);  /* of a layer */
    size_t (*log_floats)(const ebb_net *net);    /* of a layer, for a token */
    size_t (*thread_floats)(const ebb_net *net); /* beside those of the convolution; NULL: none */
    /* r->recurrent.in (and z, alpha, beta) hold what the columns were projected to: y = what goes
     * to `out`, and the state goes on. */
    ebb_status (*advance)(ebb_forward *r, const ebb_recurrent *l, ebb_error *err);
} ebb_recurrent_class;

extern const ebb_recurrent_class ebb_recurrent_delta_net, ebb_recurrent_conv, ebb_recurrent_mamba2,
    ebb_recurrent_mamba;

/* ln(1 + e^x) without overflow */
float ebb_softplus(float x);

#endif
