/* model/forward.h - one forward path for n columns.
 *
 * A pass takes n tokens through all layers, one layer after the other for all
 * columns: decode is n = 1, the verification of drafts n = 2..32, prefill n up
 * to the chunk.  The columns belong to one sequence or to several, each with a
 * block table and consecutive positions of its own: prompts beside answers.
 * Every operation treats a column by itself and adds floats in an order that
 * depends on the column's position alone (kernels.h, K1), so the logits of a
 * position have the same bits for every n, every cut into chunks, every
 * mix of sequences and every number of threads.
 *
 * Buffers are placed once (ebb_forward_layout); a pass allocates nothing.  Shapes
 * are [column][element]; C is the most columns a pass may have.
 *
 * What an operation returns is that of acquiring its weights (ebb_res_acquire): IO,
 * FORMAT, CANCELED.  Then the pass ends, and what it has computed is of no use.
 *
 * A layer is written with the operations below.  They work on the active
 * columns [c0, c1): after K and V of the last layer are stored, only the
 * columns whose logits are wanted go on. */
#ifndef EBB_FORWARD_H
#define EBB_FORWARD_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "ebb/model.h"
#include "ebb/stats.h"
#include "model/net.h"
#include "os/pool.h"

/* Copy the state to `to` as it stands before position n_pos. */
typedef struct ebb_checkpoint {
    uint32_t n_pos;
    char    *to;
} ebb_checkpoint;

/* Predictions of the experts that the next layer's router will select (expert_prefetch.c). */
typedef struct ebb_expert_prediction {
    float    *scores;            /* [32][X] */
    uint32_t *chosen;            /* [32][used], the best first */
    float    *miss_chance;       /* [X] */
    float    *confidence;        /* [layer][used] share of the i-th predictions for a layer that
                                    were selected */
    uint32_t *n_skip;            /* [layer] passes left without a prediction */
    uint32_t  layer, n_tokens;   /* that `chosen` is for; layer UINT32_MAX: none */
} ebb_expert_prediction;

/* The columns that operations work on and their current input: all that a product needs
 * of the pass under way.  A job that a late thread may still look at has its own copy (pool.h). */
typedef struct ebb_columns {
    uint32_t c0, c1;             /* active: [c0, c1) of the batch */
    uint32_t in_k;               /* the current input, in `act`: elements of a column ... */
    unsigned in_acts;            /* ... and its kinds */
    void    *act[EBB_ACT_COUNT]; /* [C] of these */
    const ebb_xielu *xielu;      /* of the layer whose feed-forward is computed */
} ebb_columns;
static inline uint32_t ebb_n_columns(const ebb_columns *c)
{
    return c->c1 - c->c0;
}

/* What is still to be done with the residual stream. */
typedef struct ebb_residual {
    bool            has_y;       /* y is still to be added to x ... */
    bool            y_waits;     /* ... after the next norm of x, not before it */
    const ebb_norm *post;        /* norm of y before that, or NULL ... */
    const float    *x_scale;     /* [1] ... and of x behind it, or NULL */
} ebb_residual;

/* Placed by ebb_forward_layout, as those below. */
typedef struct ebb_forward_buffers {
    float  *x;                   /* [C][E] the residual stream */
    float  *y;                   /* [C][H D] heads' outputs; then [C][E] what a block adds to x */
    /* these share memory, also with those of recurrent layers: each group is done with when the
     * next is written */
    float  *q, *k, *v, *head_gate;       /* [C][H U D], [C][KV D], [C][KV D], [C][H D] */
    float  *ff;                  /* [C][F], or [C][P] */
    float  *up;                  /* [C][F] where gate is cut off */
    float  *beside;              /* [C][E] what a feed-forward beside experts adds */
    float  *layer_input;         /* [C][layer][P] of per-layer embeddings */
    float  *streams, *laurel;    /* [C][A][E], [C][E]; where there are streams */
    void   *act[EBB_ACT_COUNT];  /* [C] columns of an operation's input, of the kinds that are in
                                    use */
    float  *cos_sin[EBB_MAX_ROPES];      /* [C][n_rot / 2][2] */
    double *freqs[EBB_MAX_ROPES];        /* [n_rot / 2] radians per position */
    float  *parts;               /* attention before segments are merged */
    float  *logits;              /* [cap_logits][V] */
    float  *hidden;              /* [cap_hidden][E] what the output saw of the columns of a pass
                                    whose logits are wanted, of each sequence at least of the last
                                    one; with a draft head only */
    char   *thread;              /* [EBB_POOL_SCRATCHES(n_threads)] of a thread: the kernels', then
                                    floats */
    size_t  thread_bytes;
} ebb_forward_buffers;

typedef struct ebb_recurrent_buffers {
    float  *in, *z, *alpha, *beta;       /* `in` of the layer; of a delta net z, alpha, beta; of
                                            Mamba [C][I] what the convolution gives, [C][I] dt,
                                            [C][R + 2 S] */
    char   *state;               /* [n_states][net->state_bytes] */
    char   *state_log;           /* [n_state_log][net->state_log_bytes] updates by tokens that may
                                    be taken back */
} ebb_recurrent_buffers;

typedef struct ebb_latent_buffers {
    float  *low_q, *low_kv;      /* [C][Lq], [C][L + R] */
    float  *wide;                /* [C][H (N + R)] q, then what kv_b makes, then what v_b makes */
    char   *head_acts;           /* [n_threads] columns of one head */
    size_t  head_acts_bytes;     /* of a thread */
} ebb_latent_buffers;

/* Scores in place of the router's, for measurements with the routes of other models: weights at
 * random choose experts without the locality of trained ones (tests/bench/bench_routes.c).  Called
 * by the thread that computes the pass, once for each column and layer. */
typedef struct ebb_router_trace {
    void (*score)(void *arg, uint32_t layer, uint32_t pos, float *scores);   /* [X], all of them */
    void  *arg;
} ebb_router_trace;

typedef struct ebb_moe_buffers {
    float  *out;                 /* [C][E] what an expert adds ... */
    float  *sum;                 /* ... to this: y, or ... */
    float  *narrow;              /* ... [C][E'], where experts work in a narrower space */
    float  *scores;              /* [C][X] of the experts, then their shares */
    uint32_t *chosen;            /* [C][used] experts of a column */
    uint32_t *members;           /* [C][used] columns of the experts, one expert's behind the
                                    other's */
    uint32_t *first_member;      /* [X + 1] where an expert's begin */
    bool   *is_computed;         /* [X] */
    void   *gathered[EBB_ACT_COUNT];     /* [C] inputs of an expert's columns */
    ebb_expert_prediction prediction;
    const ebb_router_trace *trace;       /* NULL: the router decides */
} ebb_moe_buffers;

/* Called with the logits of columns [col, col + n) of a pass, n <= cap_logits. */
typedef void ebb_forward_logits_fn(void *arg, uint32_t col, uint32_t n, const float *logits);

/* The columns of one sequence, at consecutive positions. */
typedef struct ebb_batch_seq {
    const ebb_token    *ids;     /* [n] */
    uint32_t            n;       /* >= 1 */
    uint32_t            c0;      /* its first column: the n of those before it */
    uint32_t            pos0;    /* position of ids[0] */
    const ebb_block_table *table; /* grown to pos0 + n */
    uint32_t            n_out;   /* logits of its last n_out columns are wanted */
    char               *state;   /* of the sequence: one of recurrent.state, as it stands before
                                    state_pos ... */
    uint32_t            state_pos;       /* ... <= pos0: the log has the updates of the positions
                                            between ... */
    uint32_t            commit_pos;      /* ... and behind the pass before this one, in state_pos ..
                                            pos0 + n: tokens before it are not taken back;
                                            n_state_log others at most, whose updates the log
                                            gets */
    const ebb_checkpoint *checkpoints;   /* copies of it to be made, at positions in (state_pos,
                                            commit_pos] */
    uint32_t            n_checkpoints;
    const float        *hidden;  /* [E] with a draft head: what the output saw of position pos0 - 1;
                                    NULL: unknown */
    uint32_t            n_before;        /* of a branch: the positions right before pos0 are columns
                                            [0, n_before) of the batch, those of its first sequence,
                                            whose K and V this table gets, too; 0: of none */
} ebb_batch_seq;

#define EBB_MAX_SEQUENCES 16u    /* of a pass */

/* What a pass is about; stays as it is until ebb_forward_end. */
typedef struct ebb_batch {
    const ebb_batch_seq *seqs;   /* [n_seqs]; no two share a block that is written */
    uint32_t            n_seqs;  /* 1..EBB_MAX_SEQUENCES */
    uint32_t            n;       /* columns of all: 1..cap_tokens */
    float              *logits;  /* where the logits go if those of one column are wanted; else
                                    NULL, and ... */
    ebb_forward_logits_fn *each; /* ... this is called */
    void               *arg;
} ebb_batch;

/* The sequence of a column. */
static inline const ebb_batch_seq *ebb_batch_seq_of(const ebb_batch *b, uint32_t c)
{
    const ebb_batch_seq *s = b->seqs;

    while (c >= s->c0 + s->n)
        s++;
    return s;
}
static inline uint32_t ebb_batch_pos(const ebb_batch *b, uint32_t c)
{
    const ebb_batch_seq *s = ebb_batch_seq_of(b, c);

    return s->pos0 + c - s->c0;
}
/* The first column of a sequence whose logits are wanted; its end if there is none. */
static inline uint32_t ebb_batch_seq_wanted(const ebb_batch_seq *s)
{
    return s->c0 + s->n - s->n_out;
}
/* The same of all. */
static inline uint32_t ebb_batch_wanted(const ebb_batch *b)
{
    for (uint32_t i = 0; i < b->n_seqs; i++)
        if (b->seqs[i].n_out > 0)
            return ebb_batch_seq_wanted(&b->seqs[i]);
    return b->n;
}

typedef struct ebb_forward {
    /* Constant from open on: threads of the pool, late ones too, read it without a lock. */
    const ebb_net     *net;
    const ebb_kernels *kern;
    ebb_pool          *pool;
    ebb_res           *res;
    ebb_kv            *kv;
    ebb_kv_type        k_type, v_type;
    uint32_t           unit;     /* U: KV heads that stand side by side in a row of the cache
                                    (ebb_net_kv_unit) */
    const atomic_bool *cancel;   /* looked at before each layer, and by slices of matrices; NULL:
                                    never ... */
    atomic_bool       *is_cut;   /* ... which say here that they left out their work: the pass is
                                    worth nothing */
    uint32_t           n_threads, cap_tokens, n_ctx;
    uint32_t           cap_logits, cap_hidden;   /* columns of `logits`, of `hidden` */
    uint32_t           n_states; /* if layers have a state ... */
    uint32_t           n_state_log;      /* ... and tokens by which one may lag behind
                                            (recurrent.h) */

    ebb_forward_buffers   buf;
    ebb_recurrent_buffers recurrent;
    ebb_latent_buffers    latent;
    ebb_moe_buffers       moe;

    /* the pass under way */
    const ebb_batch *batch;
    ebb_columns      cols;
    ebb_residual     residual;
    uint32_t         i_layer;    /* which comes next */
    uint64_t         lap_ns;     /* when the last operation had ended */
    atomic_uint      n_layers_done;      /* any thread may look */
    atomic_ullong    spent_ns[EBB_TIME_COUNT];   /* of all passes; any thread may look */
} ebb_forward;

/* Slices left their work out; the flag of who cancels may have been cleared since they saw it. */
static inline bool ebb_forward_left_work_out(const ebb_forward *r)
{
    return r->is_cut && atomic_load_explicit(r->is_cut, memory_order_relaxed);
}

/* Whether the pass is to end: for each layer, and for loops in one that take long. */
static inline bool ebb_forward_is_stopped(const ebb_forward *r)
{
    return ebb_forward_left_work_out(r) ||
           (r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed));
}

/* Columns at the end of a sequence whose hidden states are kept, by a pass that keeps them. */
static inline uint32_t ebb_batch_seq_kept(const ebb_forward *r, const ebb_batch_seq *s)
{
    uint32_t n = s->n_out > 0 ? s->n_out : 1;

    return n < r->cap_hidden ? n : r->cap_hidden;
}

/* Place the buffers of a run whose constants are set (counts if a->base is NULL). */
void ebb_forward_layout(ebb_forward *r, ebb_arena *a);
/* Compute what never changes (the frequencies); after placing and ebb_net_load. */
void ebb_forward_init(ebb_forward *r);

/* A pass: begin; a layer at a time as long as there are some, between which the caller may do as it
 * likes with memory that no layer is using; end, whatever happened.
 *
 *     st = ebb_forward_begin(r, b, err);
 *     while (st == EBB_OK && ebb_forward_has_layer(r))
 *         st = ebb_forward_layer(r, err);
 *     st = ebb_forward_end(r, st, err);
 *
 * K and V of the columns are in the pool afterwards.  Errors: CANCELED (seen within one layer; K,
 * V and the state are not valid), IO, CONTEXT (learned positions end before it), USAGE (an id
 * beyond the vocabulary), FORMAT (what a layer computes is NaN or infinity: it is named). */
EBB_MUST_CHECK
ebb_status ebb_forward_begin(ebb_forward *r, const ebb_batch *b, ebb_error *err);
/* Whether a layer is still to be computed.  Without logits a pass ends with the last layer that
 * stores K and V. */
bool ebb_forward_has_layer(const ebb_forward *r);
EBB_MUST_CHECK
ebb_status ebb_forward_layer(ebb_forward *r, ebb_error *err);
/* Computes the logits and ends the pass; afterwards no thread of the pool reads weights.  st: the
 * status of the layers, which is returned unless this fails. */
EBB_MUST_CHECK
ebb_status ebb_forward_end(ebb_forward *r, ebb_status st, ebb_error *err);

/* One step of the draft head (draft_step.c): its logits behind `id` at `pos` >= 1.  The block table
 * has been grown to pos + 1. */
typedef struct ebb_draft_step {
    const ebb_block_table *table;
    ebb_token id;
    uint32_t  pos;
    float    *hidden;            /* [E] of position pos - 1; then of pos, as the head has it */
    float    *logits;            /* [V] */
    const uint32_t *rows;        /* [n_rows] of the output, ascending: all other logits are
                                    -INFINITY; */
    uint32_t  n_rows;            /* 0: no logit is left out.  Not where logits are capped */
} ebb_draft_step;
/* Writes the head's row of K and V at pos; the next pass over that position overwrites it, from the
 * net's hidden states.  Errors: as those of a pass. */
EBB_MUST_CHECK
ebb_status ebb_forward_draft(ebb_forward *r, const ebb_draft_step *p, ebb_error *err);

/* Rows that go to other positions, in blocks that are the table's own (ebb_kv_make_writable). */
typedef struct ebb_kv_shift {
    const ebb_block_table *table;
    uint32_t from[EBB_KV_GROUPS], end;   /* positions in [from, end) of a group get the rows ... */
    uint32_t n_rows[EBB_KV_GROUPS];      /* ... that are so many rows further on */
    uint32_t rerotate_by;        /* positions by which K is re-rotated (K-shift) */
} ebb_kv_shift;
/* Between passes.  The Hadamard basis and the type of the cache are kept: K of a quantized type is
 * rounded once more. */
void ebb_forward_shift_kv(ebb_forward *r, const ebb_kv_shift *m);

/* -- What layers are written with --------------------------------------------- */

/* x += Attention(norm(x)) and x += FFN(norm(x)), with the norms, biases, window,
 * softcaps that the layer has: a whole layer of most architectures. */
EBB_MUST_CHECK
ebb_status ebb_block_layer(ebb_forward *r, uint32_t i_layer, ebb_error *err);

/* K and V of a layer, and nothing else. */
EBB_MUST_CHECK
ebb_status ebb_block_kv(ebb_forward *r, uint32_t i_layer, ebb_error *err);
/* Behind the layers of a pass: x of all columns is finished, and buf.hidden filled. */
void ebb_op_keep_hidden(ebb_forward *r);
/* x = join [token; state] of all columns, by a draft head. */
EBB_MUST_CHECK
ebb_status ebb_op_draft_join(ebb_forward *r, ebb_error *err);
/* Behind ebb_op_keep_hidden, all columns being active: the draft head's K and V of them; x is
 * lost. */
EBB_MUST_CHECK
ebb_status ebb_op_draft_kv(ebb_forward *r, ebb_error *err);
/* The token's row of `embd` as x begins with it.  Errors: USAGE (no such token), IO. */
EBB_MUST_CHECK
ebb_status ebb_run_embed(ebb_forward *r, const ebb_gguf_tensor *embd, ebb_token id, float *x,
                         ebb_error *err);
/* Logits of the active columns, whose states are the input, by w: y[column][V] from the first of
 * them on. */
EBB_MUST_CHECK
ebb_status ebb_op_logits(ebb_forward *r, const ebb_weight *w, float *y, ebb_error *err);
/* Products of the active columns become logits: scaled, and none of tokens that are never
 * chosen. */
EBB_MUST_CHECK
ebb_status ebb_op_finish_logits(ebb_forward *r, float *y, ebb_error *err);
/* What a pass ends with, behind its last product. */
EBB_MUST_CHECK
ebb_status ebb_forward_close(ebb_forward *r, ebb_status st, ebb_error *err);

/* One matrix of several that share an input. */
typedef struct ebb_mat {
    const ebb_weight *w;
    float  *y;                   /* of column c0 */
    size_t  y_stride;            /* floats */
} ebb_mat;

#define EBB_MAX_MATS 4
#define EBB_SLICE_ROWS 64u       /* rows of a slice of many columns, and ... */
#define EBB_SLICE_ROWS_FEW 128u  /* ... of few: some tens of microseconds of decode, and enough that
                                    most of them are fetched while others are multiplied */

/* Bit of the activations that w wants. */
static inline unsigned ebb_act_bit(const ebb_weight *w)
{
    return 1u << ebb_kernel_act(w->type);
}

/* y = norm(x) of n elements, as the network norms. */
void ebb_norm_row(const ebb_forward *r, const ebb_norm *norm, float *y, const float *x, size_t n);
/* Add y (normed by residual.post) to x if that is still due; then norm x (if `norm` is
 * on) and make it the input of the next operation, as the kinds in `acts`. */
void ebb_op_norm(ebb_forward *r, const ebb_norm *norm, unsigned acts);
/* Make src [column][n_k] the input. */
void ebb_op_input(ebb_forward *r, const float *src, uint32_t n_k, unsigned acts);
/* The same in parts: which input, then elements [from, from + n) of column c.  Both are multiples
 * of what shares a scale. */
void ebb_input_begin(ebb_forward *r, uint32_t n_k, unsigned acts);
void ebb_input_part(const ebb_forward *r, uint32_t c, size_t from, size_t n, const float *x);
/* y = x W^T + bias for n matrices at once; then softcap * tanh(logit_scale * y / softcap) unless
 * softcap is 0. */
EBB_MUST_CHECK
ebb_status ebb_op_matmul(ebb_forward *r, const ebb_mat *mats, uint32_t n, float softcap,
                         ebb_error *err);
/* Of each head, y = x W^T: W has n_rows / n_heads rows for it, x is at src + column *
 * src_stride + head * src_head, y at m->y + column * m->y_stride + head * y_head. */
typedef struct ebb_per_head {
    const float *src;            /* of column 0 */
    size_t       src_stride, src_head, y_head;
    uint32_t     n_heads;
} ebb_per_head;
EBB_MUST_CHECK
ebb_status ebb_op_heads(ebb_forward *r, const ebb_mat *m, const ebb_per_head *p, ebb_error *err);
/* ff = act(x gate^T) * (x up^T); without gate act(x up^T) */
EBB_MUST_CHECK
ebb_status ebb_op_gated(ebb_forward *r, const ebb_weight *gate, const ebb_weight *up,
                        ebb_error *err);
/* The same where gate's products are cut off, by all of a column's (l->gate_cutoff). */
EBB_MUST_CHECK
ebb_status ebb_op_sparse_gated(ebb_forward *r, const ebb_layer *l, ebb_error *err);
/* y = x W^T + bias, to be added to x, after `post` if it is on. */
EBB_MUST_CHECK
ebb_status ebb_op_add(ebb_forward *r, const ebb_weight *w, const ebb_norm *post, ebb_error *err);
/* The current y is to be added to x. */
void ebb_op_add_y(ebb_forward *r, const ebb_norm *post);

/* Norm and rotate k, norm v (or what was k), store both, where the layer has its own.  The same
 * with q, where it does not keep to one head; behind this, where U > 1, q of a head is a row of the
 * cache that is zero but for the head's own place. */
void ebb_op_kv_store(ebb_forward *r, uint32_t i_layer);
/* Row of a tensor of rows of n elements, to float. */
EBB_MUST_CHECK
ebb_status ebb_run_read_row(ebb_forward *r, const ebb_gguf_tensor *t, uint64_t row, uint32_t n,
                            float *out, ebb_error *err);
/* Norm and rotate q of a column's heads [h0, h0 + n), if ebb_op_kv_store has not. */
void ebb_rope_q(const ebb_forward *r, uint32_t i_layer, uint32_t c, uint32_t h0, uint32_t n);
/* y = softmax(q K^T) V of each head; made the input of the next operation, of the kinds in `acts`
 * (y is then not written as a rule), unless that is 0. */
void ebb_op_attend(ebb_forward *r, uint32_t i_layer, unsigned acts);
size_t ebb_attend_part_floats(const ebb_forward *r); /* of buf.parts */
/* y *= sigmoid(head_gate) */
void ebb_op_head_gate(ebb_forward *r, const ebb_layer *l);

/* Latent attention: q, k and v of the columns; then, behind attention, the input of l->o
 * (mla.c). */
EBB_MUST_CHECK
ebb_status ebb_op_latent_qkv(ebb_forward *r, const ebb_layer *l, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_op_latent_heads(ebb_forward *r, const ebb_layer *l, ebb_error *err);
void ebb_latent_layout(ebb_forward *r, ebb_arena *a);

/* x += norm(proj(gelu(gate x) * z)) (layer_input.c); z of all layers, from the ids and x as it
 * enters the first. */
EBB_MUST_CHECK
ebb_status ebb_op_layer_input(ebb_forward *r, uint32_t i_layer, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_layer_inputs(ebb_forward *r, ebb_error *err);
size_t ebb_layer_row_at(const ebb_net *net);     /* bytes of the raw row of a token, rounded up */

/* Several streams (altup.c): from x as it enters the first layer; x of a layer, and what goes
 * beside attention; that into x, behind attention; the layer's outcome into the streams, its
 * per-layer embedding included; x behind the last layer. */
EBB_MUST_CHECK
ebb_status ebb_streams_begin(ebb_forward *r, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_op_predict(ebb_forward *r, const ebb_layer *l, ebb_error *err);
void ebb_op_add_laurel(ebb_forward *r);
EBB_MUST_CHECK
ebb_status ebb_op_correct(ebb_forward *r, uint32_t i_layer, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_streams_end(ebb_forward *r, ebb_error *err);

/* A mixture of experts on the current input, to be added to x (moe.c).
 * Each expert is acquired once for all columns that chose it; a column adds its
 * experts in the order of their numbers, so its bits do not depend on the others. */
EBB_MUST_CHECK
ebb_status ebb_op_moe(ebb_forward *r, const ebb_layer *l, ebb_error *err);
/* The same on x, with norms of its own, and beside it the layer's feed-forward: both normed, then
 * added. */
EBB_MUST_CHECK
ebb_status ebb_op_mixture_beside(ebb_forward *r, const ebb_layer *l, ebb_error *err);
void ebb_moe_layout(ebb_forward *r, ebb_arena *a);
/* A router that sees x as it enters the layer: its scores, for ebb_op_moe. */
EBB_MUST_CHECK
ebb_status ebb_op_early_router(ebb_forward *r, const ebb_layer *l, ebb_error *err);
/* The experts of a column by its router's scores, the best first; scores become the probabilities
 * that decide, if they do. */
void ebb_moe_choose(const ebb_forward *r, const ebb_experts *x, float *score, uint32_t *chosen);
/* Behind the choice of l: let what the layer behind it may choose be read, if experts are streamed.
 * Errors: those of a product. */
EBB_MUST_CHECK
ebb_status ebb_expert_prefetch(ebb_forward *r, const ebb_layer *l, ebb_error *err);
void ebb_expert_prefetch_layout(ebb_forward *r, ebb_arena *a);
void ebb_expert_prefetch_init(ebb_forward *r);
/* First extent of expert e of a layer. */
static inline uint32_t ebb_expert_extent(const ebb_net *net, const ebb_experts *x, uint32_t e)
{
    return net->matrices[x->first_matrix + e * x->n_matrices].extent;
}

/* x += Recurrent(norm(x)), with the state of the sequence (recurrent.h).  is_beside: attention on
 * the same norm follows. */
EBB_MUST_CHECK
ebb_status ebb_op_recurrent(ebb_forward *r, uint32_t i_layer, bool is_beside, ebb_error *err);
/* Bytes of a layer's state, and of what a token changes in it. */
size_t ebb_recurrent_state_bytes(const ebb_net *net, ebb_recurrent_kind kind);
size_t ebb_recurrent_log_bytes(const ebb_net *net, ebb_recurrent_kind kind);
/* A thread's floats for layers with a state. */
size_t ebb_recurrent_thread_floats(const ebb_net *net);
/* Between passes: a state that stands before state_pos is brought to before pos, by the log. */
void ebb_forward_settle_state(ebb_forward *r, char *state, uint32_t state_pos, uint32_t pos);

/* cos and sin of the pass's positions, times the magnitude. */
void ebb_rope_freqs(const ebb_rope *rope, uint32_t n_ctx, double *freqs);
void ebb_rope_table(const ebb_rope *rope, const double *freqs, uint32_t pos0, uint32_t n,
                    float *cos_sin);
/* cos and sin that rotate back by n positions, without the magnitude. */
void ebb_rope_shift_table(const ebb_rope *rope, const double *freqs, uint32_t n, float *cos_sin);
/* Rotate the n_rot elements of x. */
void ebb_rope_rotate(const ebb_forward *r, const ebb_rope *rope, const float *cos_sin, float *x);

/* Scratch of a thread: EBB_KERNEL_SCRATCH bytes for a kernel, and floats for an operation. */
static inline void *ebb_forward_scratch(const ebb_forward *r, uint32_t thread)
{
    return r->buf.thread + thread * r->buf.thread_bytes;
}
static inline float *ebb_forward_floats(const ebb_forward *r, uint32_t thread)
{
    return (float *)(void *)(r->buf.thread + thread * r->buf.thread_bytes + EBB_KERNEL_SCRATCH);
}
/* What was done since the last lap was work of that kind. */
static inline void ebb_forward_lap(ebb_forward *r, ebb_pass_time what)
{
    uint64_t now = ebb_clock_ns();

    atomic_fetch_add_explicit(&r->spent_ns[what], now - r->lap_ns, memory_order_relaxed);
    r->lap_ns = now;
}
/* fn for each of n slices, in the pool; one slice is done here. */
static inline void ebb_forward_slices(const ebb_forward *r, ebb_slice_fn *fn, void *arg, uint32_t n)
{
    if (n == 1)
        fn(arg, 0, 0);
    else if (n > 1)
        ebb_pool_run(r->pool, fn, arg, n);
}

#endif
