/* From the tensor index to a network (bind.h). */
#include "model/bind.h"

#include <stdio.h>

#include "base/grow.h"
#include "base/size.h"

/* -- Finding tensors ---------------------------------------------------------- */

/* By its name in the layer, or outside the layers. */
static const ebb_gguf_tensor *find_tensor_named(const ebb_binder *b, const char *name, char full[128])
{
    if (b->layer == EBB_NO_LAYER)
        snprintf(full, 128, "%s", name);
    else
        snprintf(full, 128, "blk.%u.%s", b->layer, name);
    return ebb_gguf_find_tensor(b->g, full);
}

static const ebb_gguf_tensor *find_tensor(ebb_binder *b, const char *what, const char *suffix, bool is_required)
{
    char name[96], full[128];
    const ebb_gguf_tensor *t;

    if (b->st != EBB_OK)
        return NULL;
    snprintf(name, sizeof name, "%s%s", what, suffix);
    t = find_tensor_named(b, name, full);
    if (t)
        b->is_used[t - ebb_gguf_get_tensor(b->g, 0)] = true;
    else if (is_required)
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s is missing", full);
    return t;
}

void ebb_bind_unused(ebb_binder *b, const char *what)
{
    find_tensor(b, what, ".weight", false);
    find_tensor(b, what, ".bias", false);
    find_tensor(b, what, ".scale", false);
}

uint64_t ebb_bind_row_count(const ebb_binder *b, const char *what)
{
    char name[96], full[128];
    const ebb_gguf_tensor *t;

    snprintf(name, sizeof name, "%s.weight", what);
    t = find_tensor_named(b, name, full);
    return t ? t->dims[1] : 0;
}

bool ebb_bind_has_named(const ebb_binder *b, const char *name)
{
    char full[128];

    return find_tensor_named(b, name, full) != NULL;
}

bool ebb_bind_has(const ebb_binder *b, const char *what)
{
    return ebb_bind_row_count(b, what) > 0;
}

/* A vector is one row; n_mats matrices follow each other. */
static void check_shape(ebb_binder *b, const ebb_gguf_tensor *t, uint32_t n_mats, uint64_t n_rows, uint32_t n_k)
{
    if (b->st != EBB_OK || (t->dims[0] == n_k && t->dims[1] == n_rows && t->dims[2] == n_mats && t->n_dims <= 3))
        return;
    if (n_mats == 1 && t->n_dims <= 2)
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: %llu x %llu where the metadata says %u x %llu", t->name,
                      (unsigned long long)t->dims[0], (unsigned long long)t->dims[1], n_k, (unsigned long long)n_rows);
    else
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: %llu x %llu x %llu where the metadata says %u x %llu x %u", t->name,
                      (unsigned long long)t->dims[0], (unsigned long long)t->dims[1], (unsigned long long)t->dims[2],
                      n_k, (unsigned long long)n_rows, n_mats);
}

static void check_tensor_type(ebb_binder *b, const ebb_gguf_tensor *t)
{
    if (b->st != EBB_OK)
        return;
    b->st = ebb_gguf_check_type(t, b->err);
    if (b->st == EBB_OK && !ebb_kernel_has_type((ebb_type)t->type))
        ebb_bind_fail(b, EBB_UNSUPPORTED, "tensor %s: type %s is not supported yet", t->name,
                      ebb_type_get(t->type)->name);
}

void *ebb_bind_reserve(ebb_binder *b, void *items, uint32_t n, size_t *cap, size_t item_bytes)
{
    void *p = ebb_grow(items, n, cap, item_bytes);

    if (!p)
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a table of %zu tensors", *cap * 2);
    return p;
}

/* -- Vectors ------------------------------------------------------------------ */

static void add_vector(ebb_binder *b, const ebb_gguf_tensor *t, const float **to, uint64_t first, uint64_t n)
{
    ebb_net *net = b->net;
    ebb_vector *vectors;

    check_tensor_type(b, t);
    if (b->st == EBB_OK && ebb_type_get(t->type)->block_len > 1)
        ebb_bind_fail(b, EBB_UNSUPPORTED, "tensor %s: a vector of type %s is not supported", t->name,
                      ebb_type_get(t->type)->name);
    if (b->st != EBB_OK ||
        !(vectors = ebb_bind_reserve(b, net->vectors, net->n_vectors, &net->cap_vectors, sizeof *vectors)))
        return;
    net->vectors = vectors;
    net->vectors[net->n_vectors++] = (ebb_vector){ .tensor = t, .first = first, .n = n, .to = to, .factor = 1 };
}

static void bind_vector(ebb_binder *b, const float **to, const char *what, const char *suffix, uint32_t n_rows,
                        uint32_t n_k, bool is_required)
{
    const ebb_gguf_tensor *t = find_tensor(b, what, suffix, is_required);

    if (!t)
        return;
    check_shape(b, t, 1, n_rows, n_k);
    add_vector(b, t, to, 0, t->n_elems);         /* n_rows * n_k, if the shape is that */
}

void ebb_bind_vector(ebb_binder *b, const float **to, const char *what, uint32_t n, bool is_required)
{
    bind_vector(b, to, what, ".weight", 1, n, is_required);
}

void ebb_bind_named(ebb_binder *b, const float **to, const char *name, uint32_t n)
{
    bind_vector(b, to, name, "", 1, n, true);
}

void ebb_bind_named_table(ebb_binder *b, const float **to, const char *name, uint32_t n_rows, uint32_t n_k,
                          bool is_required)
{
    bind_vector(b, to, name, "", n_rows, n_k, is_required);
}

void ebb_bind_named_norm(ebb_binder *b, ebb_norm *norm, const char *name, uint32_t n, double factor)
{
    bind_vector(b, &norm->w, name, "", 1, n, true);
    norm->is_on = true;
    if (b->st == EBB_OK)
        b->net->vectors[b->net->n_vectors - 1].factor = (float)factor;
}

void ebb_bind_table(ebb_binder *b, const float **to, const char *what, uint32_t n_rows, uint32_t n_k)
{
    bind_vector(b, to, what, ".weight", n_rows, n_k, true);
}

void ebb_bind_norm(ebb_binder *b, ebb_norm *norm, const char *what, uint32_t n)
{
    norm->is_on = true;
    bind_vector(b, &norm->w, what, ".weight", 1, n, true);
    if (b->net->norm_is_layer || b->norms_have_bias)
        bind_vector(b, &norm->b, what, ".bias", 1, n, false);
}

/* -- Matrices ----------------------------------------------------------------- */

static void set_weight(ebb_binder *b, ebb_weight *w, const ebb_gguf_tensor *t, uint32_t n_rows, uint32_t n_k)
{
    w->matrix = b->net->n_matrices;
    w->type = (ebb_type)t->type;
    w->n_rows = n_rows;
    w->n_k = n_k;
    w->row_bytes = (size_t)ebb_type_row_bytes(w->type, n_k);
    b->net->acts |= 1u << ebb_kernel_act(w->type);
    if (n_k > b->net->max_k)
        b->net->max_k = n_k;
}

/* n * n_rows, which rows are counted with. */
static uint32_t count_rows(ebb_binder *b, const ebb_gguf_tensor *t, uint64_t n, uint64_t n_rows)
{
    uint64_t v = 0;

    if (b->st == EBB_OK && (!ebb_size_mul(n, n_rows, &v) || v > INT32_MAX))
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: %llu x %llu rows are an impossible size", t->name,
                      (unsigned long long)n, (unsigned long long)n_rows);
    return b->st == EBB_OK ? (uint32_t)v : 0;
}

/* What is used before the first layer counts as that layer's. */
static uint32_t expert_group(const ebb_binder *b)
{
    if (b->layer != EBB_NO_LAYER)
        return b->layer;
    return b->net->embd ? b->net->n_layers : 0;  /* token_embd is bound behind the layers */
}

/* Matrix i of n equal ones of a tensor becomes the next. */
static void add_nth(ebb_binder *b, const ebb_gguf_tensor *t, uint32_t i, uint32_t n, uint32_t n_rows, uint32_t expert)
{
    ebb_net *net = b->net;
    ebb_matrix *matrices;

    if (b->st != EBB_OK ||
        !(matrices = ebb_bind_reserve(b, net->matrices, net->n_matrices, &net->cap_matrices, sizeof *matrices)))
        return;
    net->matrices = matrices;
    net->matrices[net->n_matrices++] = (ebb_matrix){
        .whole = {
            .name = t->name, .offset = t->offset + t->n_bytes / n * i, .n_bytes = t->n_bytes / n,
            .n_elems = t->n_elems / n, .part = t->part,
            .group = expert_group(b), .is_certain = expert == 0, .expert = expert,
        },
        .type = (ebb_type)t->type, .n_rows = n_rows, .is_whole = expert > 0,
    };
}

static void add_stack(ebb_binder *b, ebb_weight *w, const ebb_gguf_tensor *t, uint32_t n, uint64_t n_rows, uint32_t n_k)
{
    uint32_t n_all;

    check_tensor_type(b, t);
    check_shape(b, t, n, n_rows, n_k);
    n_all = count_rows(b, t, n, n_rows);
    if (b->st != EBB_OK)
        return;
    set_weight(b, w, t, n_all, n_k);
    add_nth(b, t, 0, 1, n_all, 0);
}

static void add_matrix(ebb_binder *b, ebb_weight *w, const ebb_gguf_tensor *t, uint64_t n_rows, uint32_t n_k)
{
    add_stack(b, w, t, 1, n_rows, n_k);
}

void ebb_bind_stack(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n, uint32_t n_rows, uint32_t n_k)
{
    const ebb_gguf_tensor *t = find_tensor(b, what, ".weight", true);

    if (t)
        add_stack(b, w, t, n, n_rows, n_k);
    ebb_bind_whole(b, w);
    ebb_bind_scale(b, w, what);
}

static void bind_unscaled(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n_rows, uint32_t n_k)
{
    const ebb_gguf_tensor *t = find_tensor(b, what, ".weight", true);

    if (t)
        add_matrix(b, w, t, n_rows, n_k);
    bind_vector(b, &w->bias, what, ".bias", 1, n_rows, false);
}

void ebb_bind_matrix(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n_rows, uint32_t n_k)
{
    bind_unscaled(b, w, what, n_rows, n_k);
    ebb_bind_scale(b, w, what);
}

void ebb_bind_scale(ebb_binder *b, ebb_weight *w, const char *what)
{
    bind_vector(b, &w->scale, what, ".scale", 1, 1, false);
}

void ebb_bind_router(ebb_binder *b, ebb_experts *x)
{
    bind_unscaled(b, &x->router, "ffn_gate_inp", b->net->n_expert, b->net->n_embd);
}

void ebb_bind_fused(ebb_binder *b, ebb_weight *const *w, uint32_t n, const char *what, uint32_t n_k)
{
    const ebb_gguf_tensor *t = find_tensor(b, what, ".weight", true), *bias = find_tensor(b, what, ".bias", false);
    const ebb_gguf_tensor *scale = find_tensor(b, what, ".scale", false);
    ebb_weight whole = { 0 };
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++)
        total += w[i]->n_rows;
    if (t)
        add_matrix(b, &whole, t, total, n_k);
    ebb_bind_whole(b, &whole);
    if (bias)
        check_shape(b, bias, 1, 1, whole.n_rows);        /* `total`, or there was a failure */
    if (scale)
        check_shape(b, scale, 1, 1, 1);
    for (uint32_t i = 0, first = 0; i < n && b->st == EBB_OK; i++) {
        uint32_t n_rows = w[i]->n_rows;

        *w[i] = whole;
        w[i]->n_rows = n_rows;
        w[i]->first = first;
        if (bias)
            add_vector(b, bias, &w[i]->bias, first, n_rows);
        if (scale)
            add_vector(b, scale, &w[i]->scale, 0, 1);
        first += n_rows;
    }
}

void ebb_bind_whole(ebb_binder *b, const ebb_weight *w)
{
    if (b->st == EBB_OK)
        b->net->matrices[w->matrix].is_whole = true;
}

void ebb_bind_pair(ebb_binder *b, const ebb_weight *gate, const ebb_weight *up)
{
    if (b->st == EBB_OK && gate->matrix + 1 == up->matrix && gate->n_rows == up->n_rows)
        b->net->matrices[gate->matrix].is_paired = true;
}

const ebb_gguf_tensor *ebb_bind_rows(ebb_binder *b, const char *what, uint32_t n_rows, uint32_t n_k)
{
    const ebb_gguf_tensor *t = find_tensor(b, what, ".weight", true);

    if (t) {
        check_tensor_type(b, t);
        check_shape(b, t, 1, n_rows, n_k);
    }
    return t;
}

/* -- Experts ------------------------------------------------------------------ */

typedef struct expert_kind {
    const char *what;
    ebb_weight *w;
    uint32_t    n_rows, n_k;
} expert_kind;

/* Merged: ffn_gate_exps [n_k, n_rows, X].  Old files: ffn_gate.E, a matrix each. */
static const ebb_gguf_tensor *find_expert(ebb_binder *b, const expert_kind *k, bool is_merged, uint32_t e)
{
    char what[64];
    const ebb_gguf_tensor *t;

    if (is_merged)
        snprintf(what, sizeof what, "%s_exps", k->what);
    else
        snprintf(what, sizeof what, "%s.%u", k->what, e);
    t = find_tensor(b, what, ".weight", true);
    if (!t)
        return NULL;
    check_tensor_type(b, t);
    check_shape(b, t, is_merged ? b->net->n_expert : 1, k->n_rows, k->n_k);
    return b->st == EBB_OK ? t : NULL;
}

/* The next matrix of expert e. */
static void bind_expert(ebb_binder *b, ebb_experts *x, const expert_kind *k, bool is_merged, uint32_t e)
{
    const ebb_gguf_tensor *t = find_expert(b, k, is_merged, e);
    unsigned act;

    if (!t)
        return;
    act = 1u << ebb_kernel_act((ebb_type)t->type);
    b->net->acts |= act;
    x->acts |= k->w == &x->down ? 0 : act;
    if (e == 0)
        set_weight(b, k->w, t, k->n_rows, k->n_k);
    add_nth(b, t, is_merged ? e : 0, is_merged ? b->net->n_expert : 1, k->n_rows, b->net->n_experts);
}

void ebb_bind_experts(ebb_binder *b, ebb_experts *x)
{
    const ebb_net *net = b->net;
    uint32_t n_ff = net->n_ff_expert, n_in = net->dim_experts ? net->dim_experts : net->n_embd;
    const expert_kind apart[] = {
        { "ffn_gate", &x->gate, n_ff, n_in }, { "ffn_up", &x->up, n_ff, n_in }, { "ffn_down", &x->down, n_in, n_ff },
    };
    const expert_kind joined[] = { { "ffn_gate_up", &x->gate, 2 * n_ff, n_in }, apart[2] };
    bool is_merged = !ebb_bind_has(b, "ffn_gate.0"),
         is_joined = !net->ffn_is_plain && ebb_bind_has(b, "ffn_gate_up_exps");
    const expert_kind *kinds = is_joined ? joined : net->ffn_is_plain ? apart + 1 : apart;

    if (net->dim_experts)
        ebb_bind_matrix(b, &x->narrow, "ffn_latent_down", n_in, net->n_embd);
    x->first_matrix = net->n_matrices;
    x->n_matrices = is_joined || net->ffn_is_plain ? 2 : 3;
    for (uint32_t e = 0; e < net->n_expert; e++) {
        b->net->n_experts++;
        for (uint32_t i = 0; i < x->n_matrices && b->st == EBB_OK; i++)
            bind_expert(b, x, &kinds[i], is_merged, e);
    }
    for (uint32_t i = 0; i < x->n_matrices; i++) {
        char what[64];

        snprintf(what, sizeof what, "%s_exps", kinds[i].what);
        if (!is_joined || i > 0)                 /* a bias of both is not known */
            bind_vector(b, &kinds[i].w->bias, what, ".bias", net->n_expert, kinds[i].n_rows, false);
        bind_vector(b, &kinds[i].w->scale, what, ".scale", 1, net->n_expert, false);
    }
    if (is_joined) {                             /* the rows of gate, then those of up */
        x->gate.n_rows = n_ff;
        x->up = x->gate;
        x->up.first = n_ff;
        bind_vector(b, &x->up.scale, "ffn_gate_up_exps", ".scale", 1, net->n_expert, false);
    }
}

/* -- token_embd and output ----------------------------------------------------- */

void ebb_bind_embd_and_output(ebb_binder *b)
{
    ebb_net *net = b->net;
    const ebb_gguf_tensor *out;

    b->layer = EBB_NO_LAYER;
    net->embd = find_tensor(b, "token_embd", ".weight", true);
    if (!net->embd)
        return;
    if (net->embd->dims[1] > EBB_MAX_WIDTH)
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: a vocabulary of an impossible size", net->embd->name);
    net->n_vocab = (uint32_t)net->embd->dims[1];
    check_tensor_type(b, net->embd);
    check_shape(b, net->embd, 1, net->n_vocab, net->n_embd);
    net->embd_row_bytes = (size_t)ebb_type_row_bytes((ebb_type)net->embd->type, net->n_embd);
    ebb_bind_norm(b, &net->output_norm, b->output_norm ? b->output_norm : "output_norm", net->n_embd);
    if (net->streams.n)
        ebb_bind_gather(b);
    out = find_tensor(b, "output", ".weight", false);
    add_matrix(b, &net->output, out ? out : net->embd, net->n_vocab, net->n_embd);
    bind_vector(b, &net->output.bias, "output", ".bias", 1, net->n_vocab, false);
    ebb_bind_scale(b, &net->output, "output");
}
