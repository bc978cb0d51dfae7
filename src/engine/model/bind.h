/* model/bind.h - what an architecture's file uses to find its tensors.
 *
 * A binder remembers the first failure and then does nothing, so a bind
 * function lists its tensors one after the other and returns b->st.  Names are
 * those of GGUF: `what` = "attn_q" in layer 3 means blk.3.attn_q.weight, and
 * blk.3.attn_q.bias where the file has one. */
#ifndef EBB_BIND_H
#define EBB_BIND_H
#include "model/net.h"

#define EBB_NO_LAYER  UINT32_MAX /* as a layer: a tensor outside the layers */
#define EBB_MAX_WIDTH (1u << 24) /* elements of any column, and of the logits (net.h, N1) */

/* How an architecture's experts are chosen, and the shared ones beside them; zero: softmax of the
 * scores, shares that sum to 1. */
typedef struct ebb_routing {
    bool is_sigmoid;             /* else softmax */
    bool is_raw;                 /* shares are not made to sum to 1 */
    bool gating_is_in_file;      /* unless expert_gating_func says otherwise */
    bool shares_are_in_file;     /* unless expert_weights_norm does; times expert_weights_scale */
    bool has_choice_bias;        /* layers may have exp_probs_b */
    bool has_shared;             /* layers may have an expert for all tokens */
    bool is_shared_multiple;     /* expert_shared_feed_forward_length is of one of
                                    expert_shared_count */
} ebb_routing;

typedef struct ebb_binder {
    const ebb_gguf *g;
    ebb_net        *net;
    uint32_t        layer;       /* whose tensors are bound now (n_layers: the draft head's), or
                                    EBB_NO_LAYER */
    bool           *is_used;     /* of each tensor of the file */
    bool           *is_read;     /* of each key: what nobody has asked for is an error in the end */
    bool            is_forced;   /* or left out, and net->left_out names it */
    ebb_routing     routing;     /* to be set before ebb_bind_shape */
    bool            has_yarn_betas;      /* likewise: the file's count, not 32 and 1 */
    bool            has_no_attention;    /* likewise: no layer has heads or a feed-forward */
    bool            norms_have_bias;     /* likewise: RMSNorm(x) * w + b */
    const char     *output_norm;         /* what the last norm is called; NULL: "output_norm" */
    ebb_status      st;          /* of the first failure */
    ebb_error      *err;
} ebb_binder;

/* -- The metadata (bind_metadata.c) ------------------------------------------- */

/* Numbers of the architecture's metadata: key ".block_count".  The first form
 * fails if the key is absent, or beyond [min, max]. */
uint32_t ebb_bind_u32(ebb_binder *b, const char *key, uint32_t min, uint32_t max);
uint32_t ebb_bind_u32_or(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min,
                         uint32_t max);
/* Keys that are a number or an array with one for each layer: that of layer i; the largest of
 * all. */
uint32_t ebb_bind_u32_at(ebb_binder *b, const char *key, uint32_t i, uint32_t otherwise,
                         uint32_t min, uint32_t max);
uint32_t ebb_bind_u32_most(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min,
                           uint32_t max);
double   ebb_bind_f64_or(ebb_binder *b, const char *key, double otherwise);
double   ebb_bind_f64_at(ebb_binder *b, const char *key, uint32_t i, double otherwise);
bool     ebb_bind_bool_or(ebb_binder *b, const char *key, bool otherwise);
/* a * n, of which the metadata at `key` says one; beyond max a failure that names it, and 0. */
uint32_t ebb_bind_product(ebb_binder *b, const char *key, uint64_t a, uint64_t n, uint32_t max);
const char *ebb_bind_string(ebb_binder *b, const char *key);     /* NULL: there is none */
/* Whether a key, from the point on, is in such a list as ebb_arch.harmless (arch.h). */
bool     ebb_bind_is_listed(const char *const *list, const char *key);
/* Keys that may be there but can not be honoured: any other value is refused, if not harmless. */
void     ebb_bind_only(ebb_binder *b, const char *key, double value);
void     ebb_bind_either(ebb_binder *b, const char *key, double value, double or_value);
/* The key itself; NULL if the file has none.  All others are read through it: whoever asks for a
 * key understands it. */
const ebb_gguf_kv *ebb_bind_key(ebb_binder *b, const char *key);
void ebb_bind_fail(ebb_binder *b, ebb_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* -- Tensors (bind.c) ---------------------------------------------------------- */

/* W [n_rows, n_k] of the current layer, in the order of use.  A bias becomes part of it, and a
 * scale ("attn_q.scale") of all of its products. */
void ebb_bind_matrix(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n_rows, uint32_t n_k);
/* The same without a scale: what is called so belongs to its input ("ffn_gate_inp.scale" of Gemma
 * 4). */
void ebb_bind_router(ebb_binder *b, ebb_experts *x);
/* The file may have such a tensor in this layer, and nobody needs it. */
void ebb_bind_unused(ebb_binder *b, const char *what);
/* The scale of that matrix again, for a weight that is another view of it. */
void ebb_bind_scale(ebb_binder *b, ebb_weight *w, const char *what);
/* A tensor of the rows of several matrices, one behind the other: w[i] has w[i]->n_rows of them. */
void ebb_bind_fused(ebb_binder *b, ebb_weight *const *w, uint32_t n, const char *what,
                    uint32_t n_k);
/* Weights are views of w's matrix: it is not cut. */
void ebb_bind_whole(ebb_binder *b, const ebb_weight *w);
/* The rows of gate and up, bound one behind the other, are used together. */
void ebb_bind_pair(ebb_binder *b, const ebb_weight *gate, const ebb_weight *up);
/* Elements of a vector; left NULL where the file has none and it is not required. */
void ebb_bind_vector(ebb_binder *b, const float **to, const char *what, uint32_t n,
                     bool is_required);
/* The same by its full name in the layer: "ssm_a", "ssm_dt.bias". */
void ebb_bind_named(ebb_binder *b, const float **to, const char *name, uint32_t n);
/* The same as a tensor [n_rows, n_k]; left NULL where the file has none and it is not required. */
void ebb_bind_named_table(ebb_binder *b, const float **to, const char *name, uint32_t n_rows,
                          uint32_t n_k, bool is_required);
/* The same as a norm's weight, times `factor`. */
void ebb_bind_named_norm(ebb_binder *b, ebb_norm *norm, const char *name, uint32_t n,
                         double factor);
/* A tensor [n_rows, n_k] kept as F32 like a vector. */
void ebb_bind_table(ebb_binder *b, const float **to, const char *what, uint32_t n_rows,
                    uint32_t n_k);
/* A norm that must be there: weight [n], and bias where the file has one. */
void ebb_bind_norm(ebb_binder *b, ebb_norm *norm, const char *what, uint32_t n);
bool ebb_bind_has(const ebb_binder *b, const char *what); /* whether the file has that weight ... */
bool ebb_bind_has_named(const ebb_binder *b,
                        const char *name); /* ... by its full name in the layer ... */
uint64_t ebb_bind_row_count(const ebb_binder *b,
                            const char *what); /* ... and its rows, 0: it has not */
/* Matrices [n_rows, n_k] one behind the other, as one: a tensor of three dimensions. */
void ebb_bind_stack(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n, uint32_t n_rows,
                    uint32_t n_k);
/* n_expert experts of n_ff_expert. */
void ebb_bind_experts(ebb_binder *b, ebb_experts *x);
/* token_embd, output_norm, output (or tied). */
void ebb_bind_embd_and_output(ebb_binder *b);
/* The tensor itself, to be read by rows. */
const ebb_gguf_tensor *ebb_bind_rows(ebb_binder *b, const char *what, uint32_t n_rows,
                                     uint32_t n_k);

/* What the file asks for is not done: an error `st`, or, if forced, a line in net->left_out: the
 * first such name, and how many there are. */
void ebb_bind_leave_out(ebb_binder *b, ebb_status st, const char *name, const char *why);
/* For net.c (bind_unused.c): a tensor or a key of the architecture that nothing has asked for, and
 * that is none of those left out on purpose (for keys: arch.h), is an error. */
void ebb_bind_check_unused(ebb_binder *b);
/* ebb_grow (base/grow.h); NULL, with b->st: no memory. */
void *ebb_bind_reserve(ebb_binder *b, void *items, uint32_t n, size_t *cap, size_t item_bytes);

/* -- What architectures share (bind_parts.c, bind_rope.c, bind_streams.c) ---------- */

/* Sizes, heads, epsilon, experts, one rope with its scaling; allocates the layers. */
void ebb_bind_shape(ebb_binder *b, bool rope_is_halves);
/* net->ropes[0], as the metadata and rope_freqs or rope_factors_* say (bind_rope.c). */
void ebb_bind_rope(ebb_binder *b, bool is_halves);
/* The rope of `metadata` again as net->ropes[1], for local layers: of another base, frequencies
 * unscaled. */
void ebb_bind_local_rope(ebb_binder *b, double freq_base);
/* Whether the parts of a bound layer agree: heads, KV heads and widths with its tensors and with
 * the layer whose K and V it uses, RoPE with its heads; the net's n_ff is no smaller than the
 * layer's (bind_check.c). */
void ebb_bind_check_layer(ebb_binder *b, const ebb_layer *l);
/* `bind` for each layer, and a check of it, then token_embd, output_norm, output (or tied), then
 * the draft head if there is one. */
void ebb_bind_layers(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l));
/* The first layer for multi-token prediction, `bind` for the layer in it.  One that is not
 * understood is left out (bind_draft_head.c). */
void ebb_bind_draft_head(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l));

/* A layer of ebb_bind_attention and ebb_bind_ffn. */
void ebb_bind_plain_layer(ebb_binder *b, ebb_layer *l);

/* Whether layer i sees a window only: an array says it of each; a number p, or `period` where the
 * file has neither: each layer but every p-th. */
bool ebb_bind_is_windowed(ebb_binder *b, uint32_t i, uint32_t period);
/* net->window, `otherwise` where the file says nothing (0: none), and whether layers have it; those
 * that have take `rope`. */
void ebb_bind_windows(ebb_binder *b, uint32_t otherwise, uint32_t period, uint32_t rope);
/* per_layer_token_embd and what goes with it, where embedding_length_per_layer_input is not 0;
 * before the layers. */
void ebb_bind_layer_embeddings(ebb_binder *b);

/* net->streams.n streams: what makes them of the first, before the layers; a layer's; what makes
 * one of them, before the output. */
void ebb_bind_spread(ebb_binder *b);
void ebb_bind_altup(ebb_binder *b, ebb_layer *l);
void ebb_bind_gather(ebb_binder *b);

/* attn_norm; q, k, v (or attn_qkv); o. */
void ebb_bind_attention(ebb_binder *b, ebb_layer *l);
void ebb_bind_qkv(ebb_binder *b, ebb_layer *l);
void ebb_bind_output(ebb_binder *b, ebb_layer *l);       /* o */
/* q_norm and k_norm as net->qk_norm says. */
void ebb_bind_qk_norm(ebb_binder *b, ebb_layer *l);
/* gate and up (or up alone), down. */
void ebb_bind_dense(ebb_binder *b, ebb_layer *l);
/* ffn_norm; then experts if the layer has a router, else gate (alone or as the first half of up),
 * up, down. */
void ebb_bind_ffn(ebb_binder *b, ebb_layer *l);
/* post_attention_norm and post_ffw_norm: of what is added to x. */
void ebb_bind_post_norms(ebb_binder *b, ebb_layer *l);
/* The same without its norm: for architectures that name it otherwise.  Beside experts what
 * b->routing says. */
void ebb_bind_ffn_matrices(ebb_binder *b, ebb_layer *l);
/* Recurrent layers without their norm, and the keys that those of Mamba need first, behind
 * ebb_bind_shape (bind_recurrent.c). */
void ebb_bind_short_conv(ebb_binder *b, ebb_layer *l);
void ebb_bind_mamba2_shape(ebb_binder *b);
void ebb_bind_mamba2(ebb_binder *b, ebb_layer *l);
void ebb_bind_mamba_shape(ebb_binder *b);
void ebb_bind_mamba(ebb_binder *b, ebb_layer *l);
/* The layer has a state of that kind, whose sizes the net has. */
void ebb_bind_state(ebb_binder *b, ebb_recurrent *l, ebb_recurrent_kind kind);
/* A whole network as the traits of its architecture say (arch.h). */
void ebb_bind_traits(ebb_binder *b);
/* embedding_scale, residual_scale, logit_scale (a divisor), attention.scale */
void ebb_bind_multipliers(ebb_binder *b);

#endif
