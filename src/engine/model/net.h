/* model/net.h - a network as the forward pass sees it: shapes, layers, weights.
 *
 * Binding (bind.h) turns the metadata and tensor index of a file into an
 * ebb_net; nothing is read from the weights then.  Three kinds of tensors:
 *   matrices   used in place, through residency: an extent each;
 *   vectors    norms, biases, rope factors (F32): copied once, at open, into
 *              the engine's own memory - a few hundred KB;
 *   token_embd read row by row; if the output is tied it is a matrix too.
 *
 * Letters, as in the papers: E embedding, H query heads, G = H / KV heads that
 * share a KV head, D elements of a head, F feed-forward width, V vocabulary. */
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

#define EBB_NO_EXTENT UINT32_MAX

/* W [n_rows, n_k]: y = x W^T + bias. */
typedef struct ebb_weight {
    uint32_t     extent;         /* in residency; EBB_NO_EXTENT: there is no such matrix */
    uint32_t     first_row;      /* of the extent: not 0 where a tensor holds several matrices */
    ebb_type     type;
    uint32_t     n_rows, n_k;
    size_t       row_bytes;
    const float *bias;           /* [n_rows], NULL: none */
} ebb_weight;

/* Angles of the rotary embedding: pair i of position p is turned by
 * p * freq_base^(-2 i / n_rot) / factors[i] * freq_scale and lengthened by
 * magnitude.  Longrope has two lists of factors: which one holds is decided
 * once, by the context that the engine is opened with. */
typedef struct ebb_rope {
    uint32_t     n_rot;          /* elements of a head that are turned, from its start */
    bool         is_halves;      /* pairs (i, i + n_rot / 2); else (2 i, 2 i + 1) */
    double       freq_base;
    double       freq_scale;     /* 1 / the factor of linear scaling */
    double       magnitude;
    const float *factors;        /* [n_rot / 2] divisors (Llama 3; longrope up to n_ctx_orig), NULL: none */
    const float *long_factors;   /* [n_rot / 2] those for a context beyond n_ctx_orig, NULL: the same */
    uint32_t     n_ctx_orig;
} ebb_rope;

#define EBB_MAX_ROPES 2          /* different ones in a model: global and local layers */

typedef enum ebb_gate { EBB_GATE_SILU, EBB_GATE_GELU } ebb_gate;

typedef struct ebb_layer {
    const float *attn_norm;      /* [E] */
    ebb_weight   q, k, v, o;     /* [H D, E], [KV D, E], [KV D, E], [E, H D] */
    const float *q_norm, *k_norm;        /* [D] each head is normed before it is turned; NULL: not */
    uint32_t     window;         /* positions attended to; 0: all */
    uint32_t     rope;           /* index of net.ropes */
    const float *attn_post_norm; /* [E] norm of what attention adds, NULL: none */
    const float *ffn_norm;       /* [E] */
    ebb_weight   gate, up, down; /* [F, E], [F, E], [E, F] */
    const float *ffn_post_norm;  /* [E], NULL: none */
} ebb_layer;

/* A vector to be copied at open. */
typedef struct ebb_vector {
    const ebb_gguf_tensor *tensor;
    const float          **to;   /* where the pointer goes */
} ebb_vector;

struct ebb_arch;

typedef struct ebb_net {
    const struct ebb_arch *arch;
    uint32_t    n_layers, n_embd, n_ff, n_vocab, n_ctx_train;
    uint32_t    n_head, n_head_kv, dim_k, dim_v;
    float       norm_eps;
    float       attn_scale;      /* of q . k */
    float       attn_softcap;    /* 0: none */
    float       logit_softcap;   /* 0: none */
    float       embd_scale;
    ebb_gate    ffn_gate;
    ebb_rope    ropes[EBB_MAX_ROPES];
    uint32_t    n_ropes;

    const ebb_gguf_tensor *embd; /* [V, E], by rows */
    size_t       embd_row_bytes;
    const float *output_norm;    /* [E] */
    ebb_weight   output;         /* [V, E] */
    bool         is_tied;        /* output is token_embd */
    ebb_layer   *layers;         /* owned */

    ebb_res_extent *extents;     /* owned; in order of use */
    uint32_t        n_extents, cap_extents;
    ebb_vector     *vectors;     /* owned */
    uint32_t        n_vectors, cap_vectors;

    unsigned    acts;            /* bit ebb_act: kinds of activations that the matrices want */
    uint32_t    max_k;           /* longest row of a matrix */
} ebb_net;

/* Read shapes from `g` and find every tensor.  The net refers to `g` and must
 * stay where it is (its vectors remember addresses in it).
 * Errors: UNSUPPORTED (architecture with the list of known ones; a tensor's
 * type, named), FORMAT (a key or tensor is missing or has another shape),
 * NOMEM.  Allocates some KB, which ebb_net_fini frees. */
EBB_MUST_CHECK
ebb_status ebb_net_bind(ebb_net *net, const ebb_gguf *g, ebb_error *err);
void ebb_net_fini(ebb_net *net);                 /* a zeroed net is fine */

/* Place the vectors (counts if a->base is NULL), then fill them. */
void ebb_net_layout(ebb_net *net, ebb_arena *a);
EBB_MUST_CHECK
ebb_status ebb_net_load(const ebb_net *net, ebb_res *res, ebb_error *err);

/* KV of each layer, to out[n_layers]. */
void ebb_net_kv_layers(const ebb_net *net, ebb_kv_layer *out);
/* Bytes of weights that every pass touches. */
uint64_t ebb_net_pass_bytes(const ebb_net *net);

#endif
