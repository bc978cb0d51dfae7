/* Attention of a layer (forward.h): softmax(q K^T) V.
 *
 * Work is cut by sequence, by KV head (or unit of them, forward.h) and, where a sequence has few columns, by segment of
 * the key positions; else by group of columns.  Either way a segment's partial
 * result and the order in which they are merged are the same. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "model/forward.h"

#define SEGMENT_POS EBB_CHUNK_UNIT
#define GROUP_COLS  32u          /* columns of a slice in prefill, ... */
#define GROUP_FEW   16u          /* ... where that would be too few slices, or partial results too large */
#define GROUP_CTX   32768u
#define SLICES       8u          /* for each thread, so that none waits long for the others */
#define SPLIT_COLS   4u          /* up to here slices are (head, segment) */

/* -- Attending ---------------------------------------------------------------- */

typedef struct attention_job {
    const ebb_forward *r;
    const ebb_layer *l;
    uint32_t i_layer;
    const ebb_batch_seq *seq;    /* whose columns ... */
    uint32_t c0, c1;             /* ... [c0, c1) attend */
    uint32_t window;             /* of the layer */
    uint32_t group, n_groups;    /* columns of a group; groups */
    size_t   thread_floats;      /* of r->buf.parts */
    bool     is_input;           /* what a KV head's queries give becomes input right away */
    uint32_t seg0, n_segs;       /* split by segment: those that the columns see */
} attention_job;

static uint32_t pos_of(const attention_job *job, uint32_t c)
{
    return job->seq->pos0 + c - job->seq->c0;
}

static uint32_t n_attending(const attention_job *job)
{
    return job->c1 - job->c0;
}

/* Segments that the column at `pos` sees: [lo, hi]. */
static uint32_t seg_lo(const attention_job *job, uint32_t pos)
{
    if (job->l->chunk)
        return pos / job->l->chunk * (job->l->chunk / SEGMENT_POS);
    return job->window && pos >= job->window ? (pos - job->window + 1) / SEGMENT_POS : 0;
}

static uint32_t seg_hi(uint32_t pos)
{
    return pos / SEGMENT_POS;
}

/* KV heads of the cache, query heads of each, elements of its rows. */
static uint32_t n_heads(const ebb_forward *r, const ebb_layer *l)
{
    return l->heads.n_kv / r->unit;
}

static uint32_t n_group(const ebb_forward *r, const ebb_layer *l)
{
    return l->heads.n / n_heads(r, l);
}

static uint32_t width_k(const ebb_forward *r, const ebb_layer *l)
{
    return r->unit * l->heads.dim_k;
}

static uint32_t width_v(const ebb_forward *r, const ebb_layer *l)
{
    return r->unit * l->heads.dim_v;
}

/* Floats of one column's partial results of one KV head. */
static size_t col_floats(const ebb_forward *r, const ebb_layer *l)
{
    return (size_t)n_group(r, l) * (width_v(r, l) + 2);
}

/* What this thread will probably attend to behind a segment; a head beyond the last: nothing. */
typedef struct next_segment { uint32_t head, seg; } next_segment;

/* Keys and values of a head in block b; NULL where there are none. */
static void head_rows(const attention_job *job, uint32_t head, uint32_t b, const void **k, const void **v)
{
    const ebb_forward *r = job->r;
    uint32_t layer = job->l->kv_layer;
    const ebb_block_table *table = job->seq->table;
    const uint32_t *blocks = table->blocks[ebb_kv_group(r->kv, layer)];
    bool is_there = head < n_heads(r, job->l) && b < table->n_blocks && blocks[b] != EBB_KV_NONE;

    *k = is_there ? ebb_kv_k(r->kv, table, b, layer, head) : NULL;
    *v = is_there ? ebb_kv_v(r->kv, table, b, layer, head) : NULL;
}

/* Partial results of columns [c0, c1) over segment `seg`, to acc (of column c0):
 * those columns that see nothing of the segment are left out. */
static void attend_segment(const attention_job *job, uint32_t head, uint32_t c0, uint32_t c1, uint32_t seg,
                           next_segment next, float *acc, uint32_t thread)
{
    const ebb_forward *r = job->r;
    const ebb_net *net = r->net;
    const void *k[EBB_KV_SEGMENT], *v[EBB_KV_SEGMENT], *next_k, *next_v;
    uint32_t from = c0, to = c1;

    while (from < to && seg_hi(pos_of(job, from)) < seg)
        from++;
    while (from < to && seg_lo(job, pos_of(job, to - 1)) > seg)
        to--;
    if (from == to)
        return;
    for (uint32_t i = 0; i < EBB_KV_SEGMENT; i++)
        head_rows(job, head, seg * EBB_KV_SEGMENT + i, &k[i], &v[i]);
    head_rows(job, next.head, next.seg * EBB_KV_SEGMENT, &next_k, &next_v);
    ebb_attend a = {
        .k_type = r->k_type, .v_type = r->v_type, .k = k, .v = v, .next_k = next_k, .next_v = next_v,
        .seg_pos = seg * SEGMENT_POS, .pos0 = pos_of(job, from), .n_cols = to - from, .window = job->window,
        .n_group = n_group(r, job->l), .dim_k = width_k(r, job->l), .dim_v = width_v(r, job->l),
        .q = r->buf.q + ((size_t)from * job->l->heads.n + head * n_group(r, job->l)) * width_k(r, job->l),
        .q_stride = (size_t)job->l->heads.n * width_k(r, job->l),
        .scale = net->attn_scale, .softcap = net->attn_softcap,
        .acc = acc + (from - c0) * col_floats(r, job->l), .scratch = ebb_forward_scratch(r, thread),
    };
    r->kern->attend(&a);
}

/* Merge n segments of a query head; of a row of values, its own place counts. */
static void merge_head(const attention_job *job, uint32_t h, uint32_t n, const float *parts, size_t stride, float *out,
                       uint32_t thread)
{
    const ebb_forward *r = job->r;
    size_t dim = job->l->heads.dim_v, n_per_kv = job->l->heads.n / job->l->heads.n_kv;
    float *row = r->unit > 1 ? ebb_forward_floats(r, thread) : out;

    r->kern->attend_merge(row, parts, n, stride, width_v(r, job->l), job->l->sinks ? &job->l->sinks[h] : NULL);
    if (row != out)
        memcpy(out, row + h / n_per_kv % r->unit * dim, dim * sizeof *out);
}

/* Merge the segments of columns [c0, c1); parts begin with column c0, segment seg0. */
static void merge(const attention_job *job, uint32_t head, uint32_t c0, uint32_t c1, uint32_t seg0, const float *parts,
                  uint32_t thread)
{
    const ebb_forward *r = job->r;
    uint32_t h0 = head * n_group(r, job->l), dim = job->l->heads.dim_v;
    size_t part = width_v(r, job->l) + 2, stride = (c1 - c0) * col_floats(r, job->l),
           width = (size_t)n_group(r, job->l) * dim;

    for (uint32_t c = c0; c < c1; c++) {
        uint32_t lo = seg_lo(job, pos_of(job, c)), n = seg_hi(pos_of(job, c)) - lo + 1;
        const float *p = parts + (lo - seg0) * stride + (c - c0) * col_floats(r, job->l);
        float *to = job->is_input ? ebb_forward_floats(r, thread) : r->buf.y + ((size_t)c * job->l->heads.n + h0) * dim,
              *out = to;

        for (uint32_t h = h0; h < h0 + n_group(r, job->l); h++, p += part, out += dim)
            merge_head(job, h, n, p, stride, out, thread);
        if (job->is_input)
            ebb_input_part(r, c, head * width, width, to);
    }
}

/* Many columns: a slice is a KV head and a group of columns, the last group first, for it sees most. */
static void group_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const attention_job *job = arg;
    const ebb_forward *r = job->r;
    uint32_t head = slice % n_heads(r, job->l), group = job->n_groups - 1 - slice / n_heads(r, job->l);
    uint32_t c0 = job->c0 + group * job->group, c1 = c0 + job->group < job->c1 ? c0 + job->group : job->c1;
    uint32_t lo = seg_lo(job, pos_of(job, c0)), hi = seg_hi(pos_of(job, c1 - 1));
    float *parts = r->buf.parts + thread * job->thread_floats;

    for (uint32_t c = c0; c < c1; c++)
        ebb_rope_q(r, job->i_layer, c, head * n_group(r, job->l), n_group(r, job->l));
    for (uint32_t seg = lo; seg <= hi; seg++) {
        next_segment next = { seg < hi ? head : UINT32_MAX, seg + 1 };

        attend_segment(job, head, c0, c1, seg, next, parts + (seg - lo) * (c1 - c0) * col_floats(r, job->l), thread);
    }
    merge(job, head, c0, c1, lo, parts, thread);
}

static float *split_parts(const attention_job *job, uint32_t head)
{
    return job->r->buf.parts + (size_t)head * job->n_segs * n_attending(job) * col_floats(job->r, job->l);
}

/* Few columns: a slice is a KV head and a segment. */
static void split_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const attention_job *job = arg;
    const ebb_forward *r = job->r;
    uint32_t head = slice / job->n_segs, i = slice % job->n_segs, after = slice + r->n_threads;
    next_segment next = { after / job->n_segs, job->seg0 + after % job->n_segs };

    attend_segment(job, head, job->c0, job->c1, job->seg0 + i, next,
                   split_parts(job, head) + i * n_attending(job) * col_floats(r, job->l), thread);
}

static void merge_slice(void *arg, uint32_t head, uint32_t thread)
{
    const attention_job *job = arg;

    merge(job, head, job->c0, job->c1, job->seg0, split_parts(job, head), thread);
}

static void attend_few(attention_job *job)
{
    const ebb_forward *r = job->r;

    for (uint32_t c = job->c0; c < job->c1; c++)
        ebb_rope_q(r, job->i_layer, c, 0, job->l->heads.n);
    job->seg0 = seg_lo(job, pos_of(job, job->c0));
    job->n_segs = seg_hi(pos_of(job, job->c1 - 1)) - job->seg0 + 1;
    ebb_forward_slices(r, split_slice, job, job->n_segs * n_heads(r, job->l));
    if (job->n_segs > 4)
        ebb_forward_slices(r, merge_slice, job, n_heads(r, job->l));
    else                                         /* less work than handing it over */
        for (uint32_t h = 0; h < n_heads(r, job->l); h++)
            merge_slice(job, h, 0);
}

static uint32_t most_group(const ebb_forward *r)
{
    return r->n_ctx <= GROUP_CTX ? GROUP_COLS : GROUP_FEW;
}

static void attend_many(attention_job *job)
{
    const ebb_forward *r = job->r;

    job->thread_floats = ebb_attend_part_floats(r) / r->n_threads;
    job->group = most_group(r);
    if (n_attending(job) / job->group * n_heads(r, job->l) < SLICES * r->n_threads)
        job->group = GROUP_FEW;
    job->n_groups = (n_attending(job) + job->group - 1) / job->group;
    ebb_forward_slices(r, group_slice, job, job->n_groups * n_heads(r, job->l));
}

/* What the queries of a KV head give is whole blocks of activations, and has room in a thread's floats. */
static bool heads_are_blocks(const ebb_forward *r, const ebb_layer *l)
{
    size_t width = (size_t)n_group(r, l) * l->heads.dim_v;

    return r->unit == 1 && width % 256 == 0 && width <= r->net->n_embd;
}

/* A draft head attends with one column, and not to position 0, for which it has no rows. */
static uint32_t window_of(const ebb_forward *r, uint32_t i_layer)
{
    return i_layer < r->net->n_layers ? r->net->layers[i_layer].window : r->batch->seqs[0].pos0;
}

/* The active columns of a sequence. */
static void attend_seq(attention_job *job, const ebb_batch_seq *s)
{
    const ebb_columns *cols = &job->r->cols;

    job->seq = s;
    job->c0 = s->c0 > cols->c0 ? s->c0 : cols->c0;
    job->c1 = s->c0 + s->n < cols->c1 ? s->c0 + s->n : cols->c1;
    if (job->c0 >= job->c1)
        return;
    if (n_attending(job) <= SPLIT_COLS)
        attend_few(job);
    else
        attend_many(job);
}

void ebb_op_attend(ebb_forward *r, uint32_t i_layer, unsigned acts)
{
    attention_job job = { .r = r, .l = &r->net->layers[i_layer], .i_layer = i_layer, .window = window_of(r, i_layer) };
    uint32_t n_k = job.l->heads.n * job.l->heads.dim_v;

    job.is_input = acts && ebb_n_columns(&r->cols) > SPLIT_COLS && heads_are_blocks(r, job.l);
    if (job.is_input)
        ebb_input_begin(r, n_k, acts);
    ebb_forward_lap(r, EBB_TIME_OTHER);
    for (uint32_t i = 0; i < r->batch->n_seqs; i++)
        attend_seq(&job, &r->batch->seqs[i]);
    ebb_forward_lap(r, EBB_TIME_ATTENTION);
    if (acts && !job.is_input)
        ebb_op_input(r, r->buf.y, n_k, acts);
}

static size_t part_floats(const ebb_forward *r, const ebb_layer *l)
{
    size_t grouped = (size_t)most_group(r) * r->n_threads, split = (size_t)SPLIT_COLS * n_heads(r, l);
    size_t cols = grouped > split ? grouped : (split + r->n_threads - 1) / r->n_threads * r->n_threads;

    return (size_t)ebb_size_times(cols, col_floats(r, l));
}

size_t ebb_attend_part_floats(const ebb_forward *r)
{
    size_t n_segs = r->n_ctx / SEGMENT_POS + 1, most = 0;

    for (uint32_t i = 0; i < ebb_net_n_kv_layers(r->net); i++)
        if (r->net->layers[i].heads.n_kv > 0 && part_floats(r, &r->net->layers[i]) > most)
            most = part_floats(r, &r->net->layers[i]);
    return (size_t)ebb_size_times(n_segs, most);
}

/* -- Gating ------------------------------------------------------------------- */

static void head_gate_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const attention_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = (size_t)job->l->heads.n * job->l->heads.dim_v, at = (r->cols.c0 + slice) * n;
    float *y = r->buf.y + at;
    const float *gate = r->buf.head_gate + at;

    (void)thread;
    for (size_t i = 0; i < n; i++)
        y[i] /= 1.0f + expf(-gate[i]);
}

void ebb_op_head_gate(ebb_forward *r, const ebb_layer *l)
{
    attention_job job = { .r = r, .l = l };

    ebb_forward_slices(r, head_gate_slice, &job, ebb_n_columns(&r->cols));
}
