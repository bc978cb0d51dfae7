/* model/bind.h - what an architecture's file uses to find its tensors.
 *
 * A binder remembers the first failure and then does nothing, so a bind
 * function lists its tensors one after the other and returns b->st.  Names are
 * those of GGUF: `what` = "attn_q" in layer 3 means blk.3.attn_q.weight, and
 * blk.3.attn_q.bias where the file has one. */
#ifndef EBB_BIND_H
#define EBB_BIND_H
#include "model/net.h"

#define EBB_OUTSIDE UINT32_MAX   /* as a layer: a tensor outside the layers */

typedef struct ebb_binder {
    const ebb_gguf *g;
    ebb_net        *net;
    uint32_t        layer;       /* whose tensors are bound now, or EBB_OUTSIDE */
    ebb_status      st;          /* of the first failure */
    ebb_error      *err;
} ebb_binder;

/* Numbers of the architecture's metadata: key ".block_count".  The first form
 * fails if the key is absent, or beyond [min, max]. */
uint32_t ebb_bind_u32(ebb_binder *b, const char *key, uint32_t min, uint32_t max);
uint32_t ebb_bind_u32_or(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min, uint32_t max);
double   ebb_bind_f64_or(ebb_binder *b, const char *key, double otherwise);
void     ebb_bind_fail(ebb_binder *b, ebb_status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What all transformers have: sizes, heads, epsilon, one rope with its scaling
 * (none, linear, the factors of Llama 3, longrope); allocates the layers. */
void ebb_bind_shape(ebb_binder *b, bool rope_is_halves);

/* W [n_rows, n_k] of the current layer, in the order of use.  A bias becomes part of it. */
void ebb_bind_matrix(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n_rows, uint32_t n_k);
/* Several matrices that stand in one tensor, one behind the other; n_rows of each. */
void ebb_bind_fused(ebb_binder *b, ebb_weight *const *w, const uint32_t *n_rows, uint32_t n,
                    const char *what, uint32_t n_k);
/* F32 [n]; left NULL where the file has none and it is not required. */
void ebb_bind_vector(ebb_binder *b, const float **to, const char *what, uint32_t n, bool is_required);

/* token_embd, output_norm, output (or tied). */
void ebb_bind_ends(ebb_binder *b);
/* attn_norm, q, k, v, o; q and k norms; ffn_norm, gate, up, down; the norms behind both, of the current layer. */
void ebb_bind_attention(ebb_binder *b, ebb_layer *l);
void ebb_bind_head_norms(ebb_binder *b, ebb_layer *l);
void ebb_bind_ffn(ebb_binder *b, ebb_layer *l);
void ebb_bind_post_norms(ebb_binder *b, ebb_layer *l);

#endif
