/* ebb/experimental/ollama.h - the memory estimate of Ollama 0.13, reimplemented: KV per
 * layer, compute graph for full and partial offload, placement on GPUs.
 *
 * ebb itself plans differently (ebb/experimental/plan.h); this is the figure that users of
 * Ollama know, so that both can be seen side by side.  Arithmetic is unsigned 64
 * bit with truncating division where the formulas divide, and IEEE single
 * precision in the placement, because the results must agree to the byte. */
#ifndef EBB_EXPERIMENTAL_OLLAMA_H
#define EBB_EXPERIMENTAL_OLLAMA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/experimental/inspect.h"
#include "ebb/model.h"
#include "ebb/status.h"

/* A list of heads: one entry serves all layers; a longer one is padded with 1. */
typedef struct ebb_ollama_heads {
    uint64_t *values;
    size_t    n;
} ebb_ollama_heads;

/* What the estimate reads of a model.  Owned by the caller: init, fill, fini. */
typedef struct ebb_ollama_model {
    char             arch[64];
    uint64_t         n_layers, n_embd, n_ff, n_vocab, n_ctx_train, window;
    uint64_t         dim_k, dim_v;               /* key_length, value_length; valid if has_ */
    bool             has_dim_k, has_dim_v, is_embedding;
    ebb_ollama_heads heads, kv_heads, cross_layers;
    uint64_t         ssm_conv, ssm_inner, ssm_state, ssm_groups;

    /* from the tensors */
    uint64_t        *layer_bytes;                /* per layer; valid where has_layer */
    bool            *has_layer;
    uint64_t         output_norm_bytes, output_bytes, token_embd_bytes;
    bool             has_output;
    uint64_t         gate_exps_bytes;            /* blk.0.ffn_gate_exps.weight; 0: none */
    uint64_t         gate_expert_width;          /* second dimension of blk.0.ffn_gate.0.weight; 0:
                                                  * none */
    uint64_t         qkv_bias_dim;               /* first dimension of blk.0.attn_qkv.bias; 0:
                                                  * none */
    uint64_t         rope_freqs_elements;        /* of a tensor named rope_freqs.weights */
} ebb_ollama_model;

/* An empty model of that architecture: fill its fields, then add every tensor.  The caller owns it
 * until fini, also on failure.  Errors: FORMAT (no plausible count of layers), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_ollama_model_init(ebb_ollama_model *o, const char *arch, uint64_t n_layers,
                                 ebb_error *err);
void ebb_ollama_model_add_tensor(ebb_ollama_model *o, const ebb_tensor_info *t);
void ebb_ollama_model_fini(ebb_ollama_model *o);
/* The same from a model file. */
EBB_MUST_CHECK
ebb_status ebb_ollama_model_read(ebb_ollama_model *o, const ebb_model *m, ebb_error *err);

typedef struct ebb_ollama_load {
    uint64_t    n_ctx;           /* per sequence */
    uint64_t    n_parallel, n_batch;
    const char *kv_type;         /* q8_0: 1 byte, q4_0: half a byte, f32: 4, anything else: 2 */
    bool        flash;
} ebb_ollama_load;

typedef struct ebb_ollama_graph {
    uint64_t *kv;                /* bytes per layer, n_layers of them: the caller's memory */
    uint64_t  kv_total, kv_generic_total;
    uint64_t  partial, full;     /* as the architecture's rule gives them; 0: it has none */
    uint64_t  resolved_partial, resolved_full;   /* after the fallback; what placement uses */
} ebb_ollama_graph;

/* Whether sums of it stay far below 2^63; else they may wrap. */
bool ebb_ollama_graph_is_in_range(const ebb_ollama_model *o, const ebb_ollama_load *l);
/* The graph sizes and g->kv[0 .. n_layers).  Cannot fail. */
void ebb_ollama_graph_size(const ebb_ollama_model *o, const ebb_ollama_load *l, bool metal,
                           ebb_ollama_graph *g);

typedef struct ebb_ollama_gpu {
    uint64_t    free_bytes;
    const char *library;         /* "CUDA", "ROCm", "Vulkan", "Metal" */
    bool        integrated;
} ebb_ollama_gpu;

#define EBB_OLLAMA_GPUS 32

/* Whether Ollama (0.13.1 to 0.13.3) computes this architecture only with its own engine.  That one
 * reports the sizes that it has; the formulas here then serve where it cannot load the file. */
bool ebb_ollama_needs_engine(const char *arch);

typedef struct ebb_ollama_options {
    int64_t  num_gpu;            /* layers asked for; -1: as many as fit */
    bool     require_full, spread;
    uint64_t overhead_bytes, projector_bytes;
    uint64_t system_free_bytes;  /* memory and swap the CPU part may take; 0: not checked */
} ebb_ollama_options;

typedef struct ebb_ollama_layout {
    size_t   n_entries;
    /* contiguous layers of GPU `gpu` (input order) */
    struct { size_t gpu, first, n; } entry[EBB_OLLAMA_GPUS];
    uint64_t n_on_gpu, n_total;  /* layers, the output counted as one */
    bool     is_full;            /* which graph was charged */
    uint64_t graph_per_gpu[EBB_OLLAMA_GPUS], gpu_bytes[EBB_OLLAMA_GPUS];
    uint64_t cpu_bytes, vram_bytes, total_bytes;
    uint64_t buffer_bytes;       /* what is left free on each GPU for safety */
    uint64_t weight_bytes;       /* of all layers and the output */
    char     ps[32];             /* "32%/68% CPU/GPU" */
} ebb_ollama_layout;

/* Place the layers of `o` (with its graph g) on n_gpus GPUs.  BUDGET if the options
 * demand what does not fit; NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_ollama_place(const ebb_ollama_model *o, const ebb_ollama_graph *g,
                            const ebb_ollama_gpu *gpus, size_t n_gpus,
                            const ebb_ollama_options *opts, ebb_ollama_layout *out, ebb_error *err);

/* Ollama's short prediction: how many layers a card of vram_bytes would take, from the sums of KV,
 * graphs, safety buffer and weights (bytes). */
typedef struct ebb_ollama_prediction {
    uint64_t total_bytes, weight_room_bytes, n_layers;
    bool     splits;
    double   gpu_ratio;
} ebb_ollama_prediction;
ebb_ollama_prediction ebb_ollama_predict(uint64_t vram_bytes, uint64_t kv_total, uint64_t partial,
                                         uint64_t full, uint64_t buffer, uint64_t weights,
                                         uint64_t n_total);

/* The same as it is worked out on paper, with the figures as people write them down: card, KV and
 * graph in GiB with two digits, the buffer in GiB with one, the weights in whole decimal GB (the
 * size of the file).  For a known example, 24 - 4.88 - 5.01 - 0.5 = 13.61 and 13.61 / 19 = 71.6
 * %. */
typedef struct ebb_ollama_paper {
    double vram, kv, graph, buffer, available;   /* GiB */
    double weights;                              /* GB */
    double ratio;                                /* available / weights; 0 without weights */
} ebb_ollama_paper;
ebb_ollama_paper ebb_ollama_predict_on_paper(uint64_t vram_bytes, uint64_t kv_total,
                                             uint64_t partial, uint64_t buffer, uint64_t weights);

/* What Ollama would make of the environment and a request. */
typedef struct ebb_ollama_request {
    /* NULL: not set */
    const char *env_parallel, *env_ctx, *env_flash, *env_kv_type, *env_overhead, *env_spread;
    uint64_t    n_ctx, n_batch;  /* 0: not given */
    bool        vision, flash_ok_on_gpus;
    uint64_t    total_vram_bytes;
} ebb_ollama_request;

typedef struct ebb_ollama_settings {
    uint64_t    n_ctx, n_batch, n_parallel, overhead_bytes;
    const char *kv_type;
    bool        flash, spread;
} ebb_ollama_settings;
/* The settings that come of it, Ollama's own defaults included. */
ebb_ollama_settings ebb_ollama_resolve(const ebb_ollama_model *o, const ebb_ollama_request *r);

#endif
