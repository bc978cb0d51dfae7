/* model/net.h - a network as the forward pass sees it: shapes, layers, weights.
 *
 * Binding (bind.h) turns the metadata and tensor index of a file into an
 * ebb_net; nothing is read from the weights then.  Three kinds of tensors:
 *   matrices   used in place, through residency: an extent for some rows each, or for an expert;
 *   vectors    norms, biases, rope factors (F32): copied once, at open, into
 *              the engine's own memory - a few hundred KB;
 *   token_embd read row by row; if the output is tied it is a matrix too.
 *
 * What binding has checked, so that nobody needs to check it again:
 *  N1  no column has more than 2^24 elements (E, F, H D, H Dv, H (N + R), H (N + Dv), VH S, V;
 *      3 * 2^24 where a delta net convolves); a matrix at most 2^31 - 1 rows;
 *  N2  at most 4096 layers, 4096 experts in each and 2^17 experts in all;
 *  N3  a layer's heads are those of its tensors, and K and V of another layer that it uses are of
 *      as many heads as wide; no layer's F is above the net's.
 * So rows, and elements of a column, count in 32 bits; what they are multiplied with is 64 bits
 * wide, and what is multiplied with the context, too, counts by base/size.h.
 *
 * Letters, as in the papers: E embedding, H query heads, G = H / KV heads that
 * share a KV head, D elements of a head, F feed-forward width, V vocabulary, X
 * experts; KH, VH, S, K: heads, width and kernel of delta-net layers. */
#ifndef EBB_NET_H
#define EBB_NET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"
#include "kv/kv.h"
#include "residency/residency.h"

/* A matrix of the file, or one expert of a tensor.  It is cut into parts of some rows, an
 * extent each, so that a part can be used while the next is read, and what is
 * resident can be chosen finely; parts of gate and up alternate, as they are used. */
typedef struct ebb_matrix {
    ebb_res_extent whole;
    ebb_type     type;
    uint32_t     n_rows;
    bool         is_whole;       /* not to be cut: experts, and what several weights are views of */
    bool         is_paired;      /* its parts alternate with those of the next matrix, which
                                    have as many rows */
    uint32_t     extent, stride; /* part i is extent + i * stride in residency */
    uint32_t     n_parts, part_rows;     /* the last part may have fewer rows */
} ebb_matrix;

#define EBB_MAX_PARTS 256u

/* W [n_rows, n_k]: y = x W^T + bias.  A tensor may hold several matrices: each is then
 * a view of rows of the same ebb_matrix. */
typedef struct ebb_weight {
    uint32_t     matrix;         /* of the net's */
    ebb_type     type;
    uint32_t     n_rows, n_k;    /* n_rows 0: there is no such matrix */
    size_t       row_bytes;
    uint32_t     first;          /* row of the tensor that is row 0 */
    uint32_t     run, skip;      /* behind each `run` rows, `skip` of another matrix; run 0: rows in
                                    a row */
    const float *scale;          /* [1] of W's products, before the bias; NULL: none */
    const float *bias;           /* [n_rows], NULL: none */
} ebb_weight;

/* RMSNorm(x) * w, or LayerNorm(x) * w + b: whichever the network has. */
typedef struct ebb_norm {
    const float *w, *b;          /* NULL: none */
    float        eps;            /* 0: the net's */
    bool         is_on;          /* false: there is no such norm */
} ebb_norm;

/* Angles of the rotary embedding: pair i of position p is rotated by
 * p * freq_base^(-2 i / n_rot) / freq_factors[i] * scale(i), and lengthened by magnitude. */
typedef struct ebb_rope {
    uint32_t     n_rot;          /* elements of a head that are rotated, from its start */
    bool         is_halves;      /* pairs (i, i + n_rot / 2); else (2 i, 2 i + 1) */
    double       freq_base;
    double       freq_scale;     /* 1 / the factor of the scaling */
    double       magnitude;
    const float *freq_factors;   /* [n_rot / 2] divisors (Llama 3; Phi's for short contexts), NULL:
                                    none */
    const float *long_factors;   /* [n_rot / 2] instead of these, if the context is longer than
                                    n_ctx_orig (LongRoPE) */
    uint32_t     n_ctx_orig;     /* context before the scaling; 0: unknown */
    bool         is_yarn;        /* only slow pairs are scaled: those with fewer than beta_slow
                                    rotations in ... */
    double       beta_fast, beta_slow;   /* ... n_ctx_orig; none above beta_fast; a ramp between */
} ebb_rope;

#define EBB_CHUNK_UNIT ((uint32_t)(EBB_KV_BLOCK * EBB_KV_SEGMENT))
#define EBB_MAX_ROPES 2          /* different ones in a model: global and local layers */
#define EBB_NO_ROPE   UINT32_MAX

typedef enum ebb_gate {
    EBB_GATE_SILU, EBB_GATE_GELU,
    EBB_GATE_CLAMPED,            /* gpt-oss: g = min(gate, 7), g sigmoid(1.702 g) (clamp(up, -7, 7)
                                    + 1) */
    EBB_GATE_RELU,
    EBB_GATE_RELU2,              /* relu(x)^2 (So et al. 2021, "Primer") */
    EBB_GATE_XIELU,              /* Huang 2024; see ebb_xielu */
} ebb_gate;

/* x > 0: p x^2 + b x; else (expm1(min(x, eps)) - x) n + b x. */
typedef struct ebb_xielu { float p, n, b, eps; } ebb_xielu;

/* What the norms of q and k see: a head, with one weight for all; a head, each with its own; all
 * heads as one vector. */
typedef enum ebb_qk_norm { EBB_QK_HEAD, EBB_QK_EACH, EBB_QK_WHOLE } ebb_qk_norm;

/* A mixture of experts.  gate, up and down are those of expert 0; expert e has the
 * matrices e * n_matrices further on, of types of their own, the biases e * n_rows further on, and
 * the scale e. */
typedef struct ebb_experts {
    ebb_weight   router;         /* [X, E] */
    ebb_norm     router_norm;    /* [E] what the router sees is x normed by it, not the input of the
                                    others; none in most */
    ebb_norm     norm, post_norm;        /* [E] of x, before the experts; of what they add together:
                                            with router_norm only */
    const float *choice_bias;    /* [X] added to the scores by which experts are chosen, NULL:
                                    none */
    ebb_weight   narrow, widen;  /* [E', E], [E, E']: experts work on what the first makes of the
                                    input, the second on what they add together; none in most, where
                                    E' = E */
    ebb_weight   gate, up, down; /* [F, E'], [F, E'], [E', F]; without gate: down act(up x) */
    uint32_t     first_matrix;   /* of expert 0 */
    uint32_t     n_matrices;     /* of an expert: 3; 2 where gate and up are one, or there is no
                                    gate */
    unsigned     acts;           /* bit ebb_act: kinds of activations that gate and up of any expert
                                    want */
    ebb_weight   shared_gate;    /* [1, E] sigmoid: share of the layer's own feed-forward; none:
                                    1 */
    ebb_norm     shared_post_norm;       /* [E] of what that one adds */
} ebb_experts;

/* What a layer with a state is made of (recurrent.h): a causal convolution, and behind it what its
 * kind says. */
typedef enum ebb_recurrent_kind {
    EBB_RECURRENT_NONE,
    EBB_RECURRENT_DELTA_NET,     /* gated delta net (Yang, Kautz, Hatamizadeh 2025): delta_net.c */
    EBB_RECURRENT_CONV,          /* the convolution alone, between two gates (Liquid AI 2025):
                                    short_conv.c */
    EBB_RECURRENT_MAMBA2,        /* Dao and Gu 2024: mamba2.c */
    EBB_RECURRENT_MAMBA,         /* Gu and Dao 2023: mamba.c */
} ebb_recurrent_kind;

typedef struct ebb_recurrent {
    ebb_recurrent_kind kind;     /* NONE: the layer has no state */
    ebb_weight   in;             /* delta net: q, k, v [2 KH S + VH S, E]; convolution: b, c, u [3
                                    E, E]; Mamba 2: z, x, B, C, dt [2 I + 2 G S + M, E]; Mamba: x, z
                                    [2 I, E] */
    ebb_weight   z, alpha, beta; /* delta net: [VH S, E], [VH, E], [VH, E] */
    ebb_weight   dt_b_c, dt_up;  /* Mamba: [R + 2 S, I], [I, R] */
    ebb_norm     dt_norm, b_norm, c_norm;        /* Mamba, where it has them: [R], [S], [S] */
    const float *conv, *conv_bias;       /* [channels][K], [channels] or NULL */
    const float *dt, *a, *d;     /* [VH] or [M] each, delta nets have no d; Mamba: a [I][S], d
                                    [I] */
    const float *norm;           /* delta net: [S] of a head's output; Mamba 2: [G][I / G], NULL:
                                    none */
    ebb_weight   out;            /* [E, ...] */
    size_t       state_at, log_at;       /* of this layer in a state, in an entry of its log,
                                            bytes */
} ebb_recurrent;

/* Latent attention (DeepSeek-AI 2024, sec. 2.1): mla.c.  Where k_b and v_b exist, K and V of all
 * heads are one: [rotated part | latent], the latent; else kv_b makes keys and values of each head
 * from the latent. */
typedef struct ebb_latent {
    ebb_weight   q_a, kv_a;      /* [Lq, E], none: l.q [H (N + R), E] is used at once; [L + R, E] */
    ebb_norm     q_a_norm, kv_a_norm;    /* [Lq], [L] */
    ebb_weight   k_b, v_b;       /* [H L, N], [H Dv, L]: of each head */
    ebb_weight   kv_b;           /* [H (N + Dv), L] */
} ebb_latent;

/* Heads of attention: H, KV, elements of a key and of a value. */
typedef struct ebb_heads {
    uint32_t n, n_kv;            /* n_kv 0: the layer has no attention */
    uint32_t dim_k, dim_v;
} ebb_heads;

/* Per-layer embedding (Gemma 3n, 2025): x += norm(proj(gelu(gate x) * z)), z a vector of the token
 * for this layer. */
typedef struct ebb_layer_input {
    ebb_weight   gate, proj;     /* [P, E], [E, P]; none in most */
    ebb_norm     post_norm;      /* [E] */
} ebb_layer_input;

/* Several residual streams of which a layer computes with the first (altup.c), and what it adds
 * beside attention: norm(up (down h)) + h, h being attention's input ("Laurel"). */
typedef struct ebb_altup {
    ebb_norm     router_norm;    /* [E] */
    const float *router;         /* [A][E]; NULL: one stream */
    const float *predict, *correct;      /* [A A][A], [A][A] */
    const float *scale;          /* [E] of the first stream, as the per-layer embedding sees it */
    ebb_weight   down, up;       /* [R, E], [E, R] */
    ebb_norm     norm;           /* [E] */
} ebb_altup;

/* A streams of which the first is a row of token_embd, the others come from it; in the end one
 * again. */
#define EBB_MAX_STREAMS 8u
typedef struct ebb_streams {
    uint32_t     n;              /* A; 0: just the one */
    ebb_weight   spread;         /* [(A - 1) E, E] of the first */
    ebb_weight   gather[EBB_MAX_STREAMS - 1];    /* [E, E] of each of the others */
} ebb_streams;

typedef struct ebb_layer {
    ebb_heads    heads;
    uint32_t     kv_layer;       /* whose K and V it attends to: mostly its own */
    ebb_norm     attn_norm;      /* [E] */
    ebb_weight   q, k, v, o;     /* [H D, E], [KV D, E], [KV D, E], [E, H D]; k, v: none where K and
                                    V are another layer's; without v alone, V is K before its
                                    norm */
    ebb_weight   head_gate;      /* [H D, E] the heads' outputs are multiplied by its sigmoid; none
                                    in most */
    ebb_norm     q_norm, k_norm; /* of q and k before RoPE; see net.qk_norm */
    ebb_norm     v_norm;         /* of each head's V */
    const float *sinks;          /* [H] a score of each head that attends to nothing, NULL: none */
    uint32_t     window;         /* positions attended to; 0: all */
    uint32_t     chunk;          /* only positions of its own chunk are attended to, a multiple of
                                    EBB_CHUNK_UNIT; 0: all */
    uint32_t     rope;           /* index of net.ropes, or EBB_NO_ROPE */
    bool         has_temperature;        /* see net.temperature */
    ebb_recurrent recurrent;     /* in place of attention; beside it where the layer has both */
    ebb_latent   latent;         /* latent.kv_a exists: q, k and v come from it */
    ebb_norm     attn_post_norm; /* [E] norm of what attention adds */
    ebb_norm     ffn_norm;       /* [E] */
    uint32_t     n_ff;           /* F */
    ebb_weight   gate, up, down; /* [F, E], [F, E], [E, F]; without gate: down act(up x); beside
                                    experts: the shared one */
    ebb_xielu    xielu;
    float        gate_cutoff;    /* only what of gate's products is so many standard deviations
                                    above their mean counts; 0: all does */
    ebb_experts  experts;        /* experts.router exists: a mixture */
    ebb_norm     ffn_post_norm;  /* [E] */
    ebb_layer_input input;       /* behind the feed-forward */
    ebb_altup    altup;
    const float *scale;          /* [1] of x behind the layer, NULL: none */
} ebb_layer;

/* A draft head: the first layer for multi-token prediction (DeepSeek-AI 2024, "DeepSeek-V3", sec.
 * 2.2; "nextn" in GGUF).  With g the state behind the last layer at position p - 1, after
 * output_norm, and e the row of the token at p, it computes
 *
 *     u = join [norm(e, token_norm); norm(g, state_norm)]      then layers[n_layers] at position p,
 *     over K and V of its own
 *
 * and norm(u, norm) gives logits of the token at p + 1; as g, with the token that was drafted,
 * those of the next.  At position 0 there is no g: its rows of K and V are never looked at. */
typedef struct ebb_draft_head {
    ebb_norm     token_norm, state_norm; /* [E] */
    ebb_weight   join;           /* [E, 2 E] */
    ebb_norm     norm;           /* [E] */
    const ebb_gguf_tensor *embd; /* [V, E], by rows; mostly the net's */
    ebb_weight   own_output;     /* [V, E]; none: the net's is its too */
    /* what it has of its own is the last of the net's */
    uint32_t     first_matrix, first_extent, first_vector, first_expert;
} ebb_draft_head;

static inline bool ebb_weight_exists(const ebb_weight *w)
{
    return w->n_rows > 0;
}

/* Elements [first, first + n) of a tensor, to be copied as F32 at open. */
typedef struct ebb_vector {
    const ebb_gguf_tensor *tensor;
    uint64_t               first, n;     /* biases of all experts are one vector */
    float                  factor;       /* of what the file has */
    const float          **to;   /* where the pointer goes */
} ebb_vector;

struct ebb_arch;

typedef struct ebb_net {
    const struct ebb_arch *arch;
    uint32_t    n_layers, n_embd, n_ff, n_vocab, n_ctx_train;
    uint32_t    n_mtp_layers;    /* blocks behind the layers, for multi-token prediction: the first
                                    may be the draft head's */
    bool        has_draft_head;
    ebb_draft_head draft_head;
    char        left_out[160];   /* what was not understood and is left out: the first of n_left_out
                                    keys and tensors */
    uint32_t    n_left_out;
    uint32_t    n_head, n_head_kv, dim_k, dim_v; /* of layers that do not say otherwise */
    uint32_t    last_mixing_layer;       /* in which tokens see others: behind it only columns whose
                                            logits are wanted go on */
    uint32_t    max_q, max_k_row, max_v_row, max_y;      /* floats of a column, of any layer: H D,
                                                            KV D, KV D, H D */
    uint32_t    max_dim;         /* of a head's row */
    uint32_t    max_in, max_z, max_alpha, max_beta;      /* floats of a column of recurrent layers
                                                            (forward.h) */
    bool        norm_is_layer;   /* LayerNorm, else RMSNorm */
    float       norm_eps;
    ebb_qk_norm qk_norm;
    bool        qk_norm_is_late; /* q and k are normed after RoPE */
    float       attn_scale;      /* of q . k */
    double      temperature;     /* t: q of position p is multiplied by 1 + t ln(1 + floor((p +
                                    temperature_from) / ... */
    uint32_t    temperature_from, temperature_span;      /* ... temperature_span)), in layers that
                                                            have it */
    float       attn_softcap;    /* 0: none */
    float       logit_softcap;   /* 0: none */
    float       embd_scale, residual_scale, logit_scale; /* of rows of token_embd, of what a block
                                                            adds, of logits */
    bool        embd_is_normed;  /* rows of token_embd, without a weight */
    ebb_gate    ffn_gate;
    bool        ffn_is_plain;    /* down act(up x): no gate */
    bool        has_head_gate;   /* layers have one */
    bool        has_mixture_beside;      /* layers have experts with norms of their own beside the
                                            feed-forward */
    uint32_t    window;          /* of those layers that have one */
    uint32_t    attention_period;        /* every how many layers one is attention, not a delta
                                            net */
    bool        is_parallel;     /* attention and feed-forward see the same x */
    uint32_t    n_expert, n_expert_used, n_ff_expert;
    uint32_t    n_experts;       /* of all layers */
    uint32_t    n_ff_shared;     /* of the expert for all tokens, if says_shared: the file has a key
                                    for it */
    bool        says_shared;
    uint32_t    dim_experts;     /* E' where experts work in a narrower space; 0: they do not */
    uint32_t    n_dense_layers, expert_period;   /* the first layers have no experts, then every so
                                                    many-th has */
    bool        router_is_sigmoid;       /* scores of experts: sigmoid, else softmax */
    bool        router_normalizes;       /* shares of the chosen experts sum to 1 ... */
    float       router_scale;            /* ... times this */
    bool        router_is_early;         /* it sees x as it enters the layer, before any norm */
    bool        share_is_on_input;       /* a share multiplies what its expert sees, not what it
                                            gives */
    uint32_t    n_expert_group, n_expert_group_used;    /* experts are chosen from the best groups
                                                           only; 0: from all */
    /* L, Lq, N, Dv of latent attention */
    uint32_t    dim_latent, dim_latent_q, dim_nope, dim_head_v;
    uint32_t    n_conv;          /* K of recurrent layers */
    uint32_t    n_head_delta_k, n_head_delta_v, dim_delta;       /* KH, VH, S of delta nets */
    bool        delta_is_grouped;        /* VH / KH value heads in a row share a key head, else
                                            every KH-th does */
    /* I, S, M, G of Mamba 2; R of Mamba */
    uint32_t    dim_mamba, dim_mamba_state, n_mamba_head, n_mamba_group, dim_mamba_dt;
    size_t      state_bytes;     /* of all layers; 0: no layer has a state */
    size_t      state_log_bytes; /* of what a token changes in it */
    ebb_rope    ropes[EBB_MAX_ROPES];
    uint32_t    n_ropes;

    const ebb_gguf_tensor *embd; /* [V, E], by rows */
    size_t       embd_row_bytes;
    const ebb_gguf_tensor *positions;    /* [ctx, E] added to the rows of token_embd, NULL: none */
    uint32_t    n_embd_layer;    /* P of per-layer embeddings; 0: there are none */
    const ebb_gguf_tensor *layer_embd;   /* [V, layers P], by rows */
    ebb_weight  layer_proj;      /* [layers P, E] of x as it enters the first layer */
    ebb_norm    layer_proj_norm; /* [P] */
    uint32_t   *suppressed;      /* owned; ids that are never to be chosen */
    uint32_t    n_suppressed;
    ebb_streams  streams;
    ebb_norm     output_norm;    /* [E] */
    ebb_weight   output;         /* [V, E] */
    ebb_layer   *layers;         /* owned; [n_layers], behind them the draft head's */

    ebb_matrix     *matrices;    /* owned; in order of use */
    uint32_t        n_matrices;
    ebb_res_extent *extents;     /* owned; in order of use */
    uint32_t        n_extents;
    ebb_vector     *vectors;     /* owned */
    uint32_t        n_vectors;
    size_t          cap_matrices, cap_extents, cap_vectors;

    unsigned    acts;            /* bit ebb_act: kinds of activations that the matrices want */
    uint32_t    max_k;           /* longest row of a matrix */
} ebb_net;

/* Read shapes from `g` and find every tensor.  The net refers to `g` and must
 * stay where it is (its vectors remember addresses in it).
 * Nothing is computed that is not understood: a key of the architecture or a tensor that nothing
 * has asked for is an error, but those that arch.h lists as harmless; those of images and audio,
 * and further layers for multi-token prediction, are left out with a line in the log.  With
 * is_forced what is not understood is left out too, and net->left_out names it.  Errors:
 * UNSUPPORTED (architecture with the list of known ones; a tensor's type, a key or its value,
 * named), FORMAT (a key or tensor is missing or has another shape, or a tensor is there that the
 * architecture does not use), NOMEM.  Each begins with the name of the model's (first) file, and
 * says if that is no language model.  Allocates some KB, which ebb_net_fini frees. */
EBB_MUST_CHECK
ebb_status ebb_net_bind(ebb_net *net, const ebb_gguf *g, bool is_forced, ebb_error *err);
void ebb_net_fini(ebb_net *net);                 /* a zeroed net is fine */
/* Do without the draft head: nothing of it is placed, read or kept.  Before anything is laid
 * out. */
void ebb_net_drop_draft_head(ebb_net *net);
/* Layers that may have K and V: those of the net, and the draft head's. */
static inline uint32_t ebb_net_n_kv_layers(const ebb_net *net)
{
    return net->n_layers + net->has_draft_head;
}
/* What makes logits of its states. */
static inline const ebb_weight *ebb_net_draft_output(const ebb_net *net)
{
    return ebb_weight_exists(&net->draft_head.own_output) ? &net->draft_head.own_output
                                                          : &net->output;
}
/* Whether a step of the draft head needs the extent: one of its own, or of the output. */
bool ebb_net_is_for_drafts(const ebb_net *net, uint32_t extent);

/* Place the vectors (counts if a->base is NULL), then fill them. */
void ebb_net_layout(ebb_net *net, ebb_arena *a);
EBB_MUST_CHECK
ebb_status ebb_net_load(const ebb_net *net, ebb_res *res, ebb_error *err);

/* How many KV heads the cache keeps as one, side by side in a row: as few as make rows of whole
 * blocks of the types (heads of 8 in q8_0: 4).  0: these types do not suit. */
uint32_t ebb_net_kv_unit(const ebb_net *net, ebb_kv_type k, ebb_kv_type v);
/* KV of each layer, to out[ebb_net_n_kv_layers], by units. */
void ebb_net_kv_layers(const ebb_net *net, uint32_t unit, ebb_kv_layer *out);
/* Whether a pass multiplies by matrix i: of a draft head's, by what gives its K and V. */
bool ebb_net_is_of_pass(const ebb_net *net, uint32_t i);
/* Bytes of weights that a pass of one column touches: of experts, as many as are chosen. */
uint64_t ebb_net_pass_bytes(const ebb_net *net);
/* Bytes of all matrices. */
uint64_t ebb_net_weight_bytes(const ebb_net *net);

#endif
