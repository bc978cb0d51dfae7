/* A network: bound, cut into parts, its vectors placed and read (net.h). */
#include "model/net.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "gguf/gguf_zip.h"
#include "model/arch.h"
#include "model/bind.h"

#define ALIGN      64u
#define PART_BYTES ((uint64_t)2 << 20)
#define PIECE_BYTES 16384u       /* of a vector that is converted */
#define PART_ROWS  256u          /* at least, so that threads share a part evenly */
#define ROWS_UNIT  64u

/* -- Parts ---------------------------------------------------------------------- */

/* Rows of a part: whole slices of the widest pass, and so many bytes that a disk reads them at full speed. */
static uint32_t rows_of_part(const ebb_matrix *m)
{
    uint64_t row_bytes = m->whole.n_bytes / m->n_rows, rows = PART_BYTES / row_bytes;
    uint32_t least = (m->n_rows + EBB_MAX_PARTS - 1) / EBB_MAX_PARTS;

    if (least < PART_ROWS)
        least = PART_ROWS;
    if (rows < least)
        rows = least;
    rows = (rows + ROWS_UNIT - 1) / ROWS_UNIT * ROWS_UNIT;
    return rows < m->n_rows ? (uint32_t)rows : m->n_rows;
}

static void add_part_extent(ebb_binder *b, const ebb_matrix *m, uint32_t i)
{
    ebb_net *net = b->net;
    uint64_t first = (uint64_t)i * m->part_rows,
             n = m->n_rows - first < m->part_rows ? m->n_rows - first : m->part_rows;
    ebb_res_extent x = m->whole,
                   *extents = ebb_bind_reserve(b, net->extents, net->n_extents, &net->cap_extents, sizeof *extents);

    if (!extents)
        return;
    net->extents = extents;
    x.offset += x.n_bytes / m->n_rows * first;
    x.n_bytes = x.n_bytes / m->n_rows * n;
    x.n_elems = x.n_elems / m->n_rows * n;
    net->extents[net->n_extents++] = x;
}

/* Matrices [i, i + n) become parts in turn. */
static void cut_together(ebb_binder *b, uint32_t i, uint32_t n)
{
    ebb_matrix *m = &b->net->matrices[i];

    for (uint32_t k = 0; k < n; k++) {
        m[k].part_rows = m[k].is_whole ? m[k].n_rows : rows_of_part(&m[k]);
        if (k > 0 && m[k].part_rows > m->part_rows)
            m->part_rows = m[k].part_rows;
    }
    for (uint32_t k = 0; k < n; k++) {
        m[k].part_rows = m->part_rows;
        m[k].n_parts = (m[k].n_rows + m->part_rows - 1) / m->part_rows;
        m[k].extent = b->net->n_extents + k;
        m[k].stride = n;
    }
    for (uint32_t p = 0; p < m->n_parts; p++)
        for (uint32_t k = 0; k < n && b->st == EBB_OK; k++)
            add_part_extent(b, &m[k], p);
}

static void cut_matrices(ebb_binder *b)
{
    for (uint32_t i = 0, n; i < b->net->n_matrices && b->st == EBB_OK; i += n) {
        n = b->net->matrices[i].is_paired ? 2 : 1;
        cut_together(b, i, n);
    }
}

/* -- The network --------------------------------------------------------------- */

static const ebb_arch *find_arch(const ebb_gguf *g, ebb_error *err)
{
    const char *name = ebb_gguf_get_string(g, "general.architecture");
    ebb_buf known = { .max = 400 };

    for (size_t i = 0; name && ebb_archs[i]; i++)
        if (strcmp(ebb_archs[i]->name, name) == 0)
            return ebb_archs[i];
    for (size_t i = 0; ebb_archs[i]; i++)
        ebb_buf_addf(&known, "%s%s", i ? ", " : "", ebb_archs[i]->name);
    if (name && ebb_gguf_kind_of_arch(name) == EBB_KIND_DRAFTER)
        (void)EBB_FAIL(err, EBB_UNSUPPORTED, "'%.40s' is a drafter that reads hidden states of the model it was made "
                                             "for, which ebb does not support; to draft, use a small model with "
                                             "the same vocabulary, or a draft head in the model's own file", name);
    else if (name)
        (void)EBB_FAIL(err, EBB_UNSUPPORTED, "architecture '%.40s' is not supported; supported are: %s", name,
                       ebb_buf_text(&known));
    else
        (void)EBB_FAIL(err, EBB_FORMAT, "metadata general.architecture is missing");
    ebb_buf_fini(&known);
    return NULL;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Layers without attention and layers that use another's K and V have none of their own. */
static bool has_kv(const ebb_net *net, uint32_t i)
{
    return ebb_weight_exists(&net->layers[i].o) && net->layers[i].kv_layer == i;
}

static void measure_recurrent(ebb_net *net, const ebb_recurrent *l)
{
    net->max_in = larger(net->max_in, l->in.n_rows);
    net->max_z = larger(net->max_z, larger(l->z.n_rows, l->dt_up.n_rows));
    net->max_alpha = larger(net->max_alpha, larger(l->alpha.n_rows, l->dt_up.n_rows));
    net->max_beta = larger(net->max_beta, larger(l->beta.n_rows, l->dt_b_c.n_rows));
    net->max_y = larger(net->max_y, l->out.n_k);
}

/* The most that any layer needs. */
static void measure_layers(ebb_net *net)
{
    for (uint32_t i = 0; net->layers && i < ebb_net_n_kv_layers(net); i++) {
        const ebb_heads *h = &net->layers[i].heads;

        net->max_q = larger(net->max_q, h->n * h->dim_k);
        net->max_k_row = larger(net->max_k_row, h->n_kv * h->dim_k);
        net->max_v_row = larger(net->max_v_row, h->n_kv * h->dim_v);
        net->max_y = larger(net->max_y, h->n * h->dim_v);
        net->max_dim = larger(net->max_dim, larger(h->dim_k, h->dim_v));
        if (i < net->n_layers && (has_kv(net, i) || net->layers[i].recurrent.kind))
            net->last_mixing_layer = i;
        measure_recurrent(net, &net->layers[i].recurrent);
    }
}

/* The ids of tokenizer.ggml.suppress_tokens, which are never sampled. */
static void bind_suppressed(ebb_binder *b)
{
    const ebb_gguf_kv *kv = ebb_bind_key(b, "tokenizer.ggml.suppress_tokens");
    ebb_net *net = b->net;
    uint64_t id = 0;

    if (b->st != EBB_OK || !kv)
        return;
    if (kv->n >= net->n_vocab) {
        ebb_bind_fail(b, EBB_FORMAT, "metadata tokenizer.ggml.suppress_tokens: lists %llu of %u tokens",
                      (unsigned long long)kv->n, net->n_vocab);
        return;
    }
    net->suppressed = calloc(kv->n + 1, sizeof *net->suppressed);
    if (!net->suppressed) {
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a list of %llu tokens", (unsigned long long)kv->n);
        return;
    }
    for (uint64_t i = 0; i < kv->n && b->st == EBB_OK; i++)
        if (ebb_gguf_item_u64(kv, i, &id) && id < net->n_vocab)
            net->suppressed[net->n_suppressed++] = (uint32_t)id;
        else
            ebb_bind_fail(b, EBB_FORMAT, "metadata tokenizer.ggml.suppress_tokens: item %llu is not a token",
                          (unsigned long long)i);
}

static ebb_status bind_net(ebb_net *net, const ebb_gguf *g, bool is_forced, ebb_error *err)
{
    size_t n_tensors = ebb_gguf_n_tensors(g), n_keys = ebb_gguf_n_keys(g);
    ebb_binder b = { .g = g, .net = net, .layer = EBB_NO_LAYER, .is_forced = is_forced, .err = err };

    memset(net, 0, sizeof *net);
    net->arch = find_arch(g, err);
    if (!net->arch)
        return ebb_gguf_get_string(g, "general.architecture") ? EBB_UNSUPPORTED : EBB_FORMAT;
    b.is_used = calloc(n_tensors + n_keys + 1, sizeof *b.is_used);
    if (!b.is_used)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %zu tensors", n_tensors);
    b.is_read = b.is_used + n_tensors;
    net->arch->bind(&b);
    bind_suppressed(&b);
    ebb_bind_check_unused(&b);
    measure_layers(net);
    cut_matrices(&b);
    if (b.st == EBB_OK && net->has_draft_head)
        net->draft_head.first_extent = net->matrices[net->draft_head.first_matrix].extent;
    free(b.is_used);
    if (b.st != EBB_OK)
        ebb_net_fini(net);
    return b.st;
}

/* The error names the file, of which there are two with a draft model, and says if it never was a language model. */
static void add_file(const ebb_gguf *g, ebb_error *err)
{
    const char *name = ebb_text_file_name(ebb_gguf_get_part(g, 0)->path);
    ebb_model_kind kind = ebb_gguf_kind(g);
    ebb_error said = *err;

    if (kind == EBB_KIND_CHAT)
        (void)ebb_error_set(err, said.code, said.where, "%s: %s", name, said.msg);
    else
        (void)ebb_error_set(err, said.code, said.where, "%s: is no language model (%s): %s", name,
                            ebb_model_kind_name(kind), said.msg);
}

ebb_status ebb_net_bind(ebb_net *net, const ebb_gguf *g, bool is_forced, ebb_error *err)
{
    ebb_status st = bind_net(net, g, is_forced, err);

    if (st != EBB_OK && err)
        add_file(g, err);
    return st;
}

void ebb_net_fini(ebb_net *net)
{
    free(net->layers);
    free(net->matrices);
    free(net->extents);
    free(net->vectors);
    free(net->suppressed);
    memset(net, 0, sizeof *net);
}

void ebb_net_drop_draft_head(ebb_net *net)
{
    const ebb_draft_head *h = &net->draft_head;

    if (!net->has_draft_head)
        return;
    net->has_draft_head = false;
    net->n_matrices = h->first_matrix;
    net->n_extents = h->first_extent;
    net->n_vectors = h->first_vector;
    net->n_experts = h->first_expert;
}

bool ebb_net_is_for_drafts(const ebb_net *net, uint32_t extent)
{
    const ebb_matrix *m;

    if (!net->has_draft_head)
        return false;
    m = &net->matrices[ebb_net_draft_output(net)->matrix];
    return extent >= net->draft_head.first_extent ||
           (extent >= m->extent && extent < m->extent + m->n_parts * m->stride);
}

void ebb_net_layout(ebb_net *net, ebb_arena *a)
{
    for (uint32_t i = 0; i < net->n_vectors; i++)
        *net->vectors[i].to = ebb_arena_take_rows(a, net->vectors[i].n, 1, sizeof(float), ALIGN);
}

/* Elements of other types pass through `raw` in pieces. */
static ebb_status convert_vector(const ebb_vector *v, const ebb_kernels *kern, ebb_res *res, float *to, ebb_error *err)
{
    const ebb_gguf_tensor *t = v->tensor;
    size_t elem = ebb_type_get(t->type)->block_bytes;
    _Alignas(64) char raw[PIECE_BYTES];
    ebb_status st = EBB_OK;

    for (uint64_t i = 0, n; i < v->n && st == EBB_OK; i += n) {
        n = v->n - i < PIECE_BYTES / elem ? v->n - i : PIECE_BYTES / elem;
        st = ebb_res_read(res, t->part, t->offset + (v->first + i) * elem, raw, n * elem, err);
        if (st == EBB_OK)
            kern->dequantize[t->type](raw, n, to + i);
    }
    return st;
}

static ebb_status load_vector(const ebb_vector *v, const ebb_kernels *kern, ebb_res *res, ebb_error *err)
{
    const ebb_gguf_tensor *t = v->tensor;
    float *to = (float *)(uintptr_t)*v->to;

    ebb_status st;

    if (t->type != EBB_TYPE_F32)
        st = convert_vector(v, kern, res, to, err);
    else
        st = ebb_res_read(res, t->part, t->offset + v->first * sizeof *to, to, v->n * sizeof *to, err);
    if (st == EBB_OK && v->factor != 1.0f)
        kern->scale(to, v->factor, v->n);
    return st;
}

ebb_status ebb_net_load(const ebb_net *net, ebb_res *res, ebb_error *err)
{
    const ebb_kernels *kern;
    ebb_status st = ebb_kernels_get(EBB_ISA_SCALAR, &kern, err);

    for (uint32_t i = 0; i < net->n_vectors && st == EBB_OK; i++)
        st = load_vector(&net->vectors[i], kern, res, err);
    return st;
}

/* Rows of `unit` heads of every layer are whole blocks. */
static bool unit_suits(const ebb_net *net, uint32_t unit, ebb_kv_type k, ebb_kv_type v)
{
    for (uint32_t i = 0; i < ebb_net_n_kv_layers(net); i++) {
        const ebb_heads *h = &net->layers[i].heads;

        if (h->n_kv % unit != 0 || ebb_kv_row_bytes(k, (size_t)unit * h->dim_k) == 0 ||
            ebb_kv_row_bytes(v, (size_t)unit * h->dim_v) == 0)
            return false;
    }
    return true;
}

uint32_t ebb_net_kv_unit(const ebb_net *net, ebb_kv_type k, ebb_kv_type v)
{
    uint32_t most = net->dim_latent ? 1 : net->n_head_kv;

    if (net->n_head_kv == 0)
        return 1;                                /* no layer has K and V */
    for (uint32_t unit = 1; unit <= most; unit++)
        if (unit_suits(net, unit, k, v))
            return unit;
    return 0;
}

void ebb_net_kv_layers(const ebb_net *net, uint32_t unit, ebb_kv_layer *out)
{
    for (uint32_t i = 0; i < ebb_net_n_kv_layers(net); i++) {
        const ebb_heads *h = &net->layers[i].heads;

        out[i] = (ebb_kv_layer){
            .n_head = has_kv(net, i) ? h->n_kv / unit : 0, .dim_k = unit * h->dim_k, .dim_v = unit * h->dim_v,
            .has_window = net->layers[i].window > 0,
        };
    }
}

bool ebb_net_is_of_pass(const ebb_net *net, uint32_t i)
{
    const ebb_layer *l = &net->layers[net->n_layers];

    if (!net->has_draft_head || i < net->draft_head.first_matrix)
        return true;
    return i == net->draft_head.join.matrix || (ebb_weight_exists(&l->k) && i == l->k.matrix) ||
           (ebb_weight_exists(&l->v) && i == l->v.matrix);
}

uint64_t ebb_net_pass_bytes(const ebb_net *net)
{
    uint64_t certain = 0, experts = 0;

    for (uint32_t i = 0; i < net->n_matrices; i++)
        if (ebb_net_is_of_pass(net, i))
            *(net->matrices[i].whole.is_certain ? &certain : &experts) += net->matrices[i].whole.n_bytes;
    return net->n_expert ? certain + experts / net->n_expert * net->n_expert_used : certain;
}

uint64_t ebb_net_weight_bytes(const ebb_net *net)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < net->n_extents; i++)
        sum += net->extents[i].n_bytes;
    return sum;
}
