/* From metadata and tensor index to a network (bind.h, net.h). */
#include "model/bind.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/arch.h"

#define MAX_LAYERS 4096u
#define MAX_WIDTH  (1u << 24)    /* of any dimension but the vocabulary's */
#define ALIGN      64u

/* -- Failing ----------------------------------------------------------------- */

void ebb_bind_fail(ebb_binder *b, ebb_status st, const char *fmt, ...)
{
    char msg[240];
    va_list ap;

    if (b->st != EBB_OK)
        return;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    b->st = EBB_FAIL(b->err, st, "%s", msg);
}

/* -- Numbers ----------------------------------------------------------------- */

uint32_t ebb_bind_u32_or(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min, uint32_t max)
{
    uint64_t v = otherwise;

    if (b->st != EBB_OK)
        return min;
    if (!ebb_gguf_get_u64(b->g, key, &v) && ebb_gguf_find(b->g, key))
        ebb_bind_fail(b, EBB_UNSUPPORTED, "metadata %s%s: not one whole number", b->net->arch->name, key);
    else if (v < min || v > max)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: %llu is not in %u..%u", b->net->arch->name, key,
                      (unsigned long long)v, min, max);
    return b->st == EBB_OK ? (uint32_t)v : min;
}

uint32_t ebb_bind_u32(ebb_binder *b, const char *key, uint32_t min, uint32_t max)
{
    if (b->st == EBB_OK && !ebb_gguf_find(b->g, key))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s is missing", b->net->arch->name, key);
    return ebb_bind_u32_or(b, key, min, min, max);
}

double ebb_bind_f64_or(ebb_binder *b, const char *key, double otherwise)
{
    double v = otherwise;

    ebb_gguf_get_f64(b->g, key, &v);
    if (!isfinite(v))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s is not finite", b->net->arch->name, key);
    return v;
}

/* -- Tensors ----------------------------------------------------------------- */

static const ebb_gguf_tensor *find(ebb_binder *b, const char *what, const char *suffix, bool is_required)
{
    char name[128];
    const ebb_gguf_tensor *t;

    if (b->st != EBB_OK)
        return NULL;
    if (b->layer == EBB_OUTSIDE)
        snprintf(name, sizeof name, "%s.%s", what, suffix);
    else
        snprintf(name, sizeof name, "blk.%u.%s.%s", b->layer, what, suffix);
    t = ebb_gguf_find_tensor(b->g, name);
    if (!t && is_required)
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s is missing", name);
    return t;
}

/* n_rows == 1 is a vector. */
static void check_shape(ebb_binder *b, const ebb_gguf_tensor *t, uint32_t n_rows, uint32_t n_k)
{
    if (b->st == EBB_OK && (t->dims[0] != n_k || t->dims[1] != n_rows || t->n_dims > 2))
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: %llu x %llu where the metadata says %u x %u", t->name,
                      (unsigned long long)t->dims[0], (unsigned long long)t->dims[1], n_k, n_rows);
}

static void check_type(ebb_binder *b, const ebb_gguf_tensor *t)
{
    if (b->st != EBB_OK)
        return;
    b->st = ebb_gguf_check_type(t, b->err);
    if (b->st == EBB_OK && !ebb_kernel_has_type((ebb_type)t->type))
        ebb_bind_fail(b, EBB_UNSUPPORTED, "tensor %s: type %s is not supported yet", t->name,
                      ebb_type_get(t->type)->name);
}

/* Room for one more item in a growing list. */
static bool reserve(ebb_binder *b, void **items, uint32_t n, uint32_t *cap, size_t item_bytes)
{
    uint32_t want = *cap ? *cap * 2 : 64;
    void *p;

    if (n < *cap)
        return true;
    p = realloc(*items, want * item_bytes);
    if (!p) {
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a table of %u tensors", want);
        return false;
    }
    *items = p;
    *cap = want;
    return true;
}

static void add_vector(ebb_binder *b, const ebb_gguf_tensor *t, const float **to, uint32_t n)
{
    ebb_net *net = b->net;

    check_shape(b, t, 1, n);
    if (b->st == EBB_OK && t->type != EBB_TYPE_F32)
        ebb_bind_fail(b, EBB_UNSUPPORTED, "tensor %s: a vector of another type than F32 is not supported yet", t->name);
    if (b->st == EBB_OK && reserve(b, (void **)&net->vectors, net->n_vectors, &net->cap_vectors, sizeof *net->vectors))
        net->vectors[net->n_vectors++] = (ebb_vector){ .tensor = t, .to = to };
}

void ebb_bind_vector(ebb_binder *b, const float **to, const char *what, uint32_t n, bool is_required)
{
    const ebb_gguf_tensor *t = find(b, what, "weight", is_required);

    if (t)
        add_vector(b, t, to, n);
}

static void add_matrix(ebb_binder *b, ebb_weight *w, const ebb_gguf_tensor *t, uint32_t n_rows, uint32_t n_k)
{
    ebb_net *net = b->net;

    check_type(b, t);
    check_shape(b, t, n_rows, n_k);
    if (b->st != EBB_OK ||
        !reserve(b, (void **)&net->extents, net->n_extents, &net->cap_extents, sizeof *net->extents))
        return;
    w->extent = net->n_extents;
    w->type = (ebb_type)t->type;
    w->n_rows = n_rows;
    w->n_k = n_k;
    w->row_bytes = (size_t)ebb_type_row_bytes(w->type, n_k);
    net->extents[net->n_extents++] = (ebb_res_extent){
        .name = t->name, .offset = t->offset, .n_bytes = t->n_bytes, .n_elems = t->n_elems, .part = t->part,
        .group = b->layer == EBB_OUTSIDE ? net->n_layers : b->layer, .is_certain = true,
    };
    net->acts |= 1u << ebb_kernel_act(w->type);
    if (n_k > net->max_k)
        net->max_k = n_k;
}

void ebb_bind_matrix(ebb_binder *b, ebb_weight *w, const char *what, uint32_t n_rows, uint32_t n_k)
{
    const ebb_gguf_tensor *t = find(b, what, "weight", true);

    w->extent = EBB_NO_EXTENT;
    if (t)
        add_matrix(b, w, t, n_rows, n_k);
    t = find(b, what, "bias", false);
    if (t)
        add_vector(b, t, &w->bias, n_rows);
}

void ebb_bind_fused(ebb_binder *b, ebb_weight *const *w, const uint32_t *n_rows, uint32_t n,
                    const char *what, uint32_t n_k)
{
    ebb_weight all = { .extent = EBB_NO_EXTENT };
    const ebb_gguf_tensor *t = find(b, what, "weight", true);
    uint32_t row = 0;

    for (uint32_t i = 0; i < n; i++)
        row += n_rows[i];
    if (t)
        add_matrix(b, &all, t, row, n_k);
    row = 0;
    for (uint32_t i = 0; i < n; i++) {
        *w[i] = all;
        w[i]->first_row = row;
        w[i]->n_rows = n_rows[i];
        row += n_rows[i];
    }
    if (find(b, what, "bias", false))
        ebb_bind_fail(b, EBB_UNSUPPORTED, "tensor blk.%u.%s.bias: a bias of fused matrices is not supported yet",
                      b->layer, what);
}

/* -- What most architectures share ------------------------------------------- */

static void bind_rope(ebb_binder *b, bool is_halves)
{
    ebb_net *net = b->net;
    ebb_rope *rope = &net->ropes[0];
    const char *scaling = ebb_gguf_get_string(b->g, ".rope.scaling.type");

    net->n_ropes = 1;
    rope->n_rot = ebb_bind_u32_or(b, ".rope.dimension_count", net->dim_k, 2, net->dim_k) & ~1u;
    rope->is_halves = is_halves;
    rope->freq_base = ebb_bind_f64_or(b, ".rope.freq_base", 10000.0);
    rope->freq_scale = 1.0;
    rope->magnitude = ebb_bind_f64_or(b, ".rope.scaling.attn_factor", 1.0);
    rope->n_ctx_orig = ebb_bind_u32_or(b, ".rope.scaling.original_context_length", net->n_ctx_train, 1, UINT32_MAX);
    if (scaling && strcmp(scaling, "linear") == 0)
        rope->freq_scale = 1.0 / ebb_bind_f64_or(b, ".rope.scaling.factor", 1.0);
    else if (scaling && strcmp(scaling, "none") != 0 && strcmp(scaling, "longrope") != 0)
        ebb_bind_fail(b, EBB_UNSUPPORTED, "rope scaling \"%.40s\" is not supported yet", scaling);
    if (!(rope->freq_base > 0) || !isfinite(rope->freq_scale))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: a base or factor of 0", net->arch->name);
    ebb_bind_vector(b, &rope->factors, "rope_freqs", rope->n_rot / 2, false);
    ebb_bind_vector(b, &rope->factors, "rope_factors_short", rope->n_rot / 2, false);
    ebb_bind_vector(b, &rope->long_factors, "rope_factors_long", rope->n_rot / 2, false);
}

void ebb_bind_shape(ebb_binder *b, bool rope_is_halves)
{
    ebb_net *net = b->net;

    net->n_layers = ebb_bind_u32(b, ".block_count", 1, MAX_LAYERS);
    net->n_embd = ebb_bind_u32(b, ".embedding_length", 1, MAX_WIDTH);
    net->n_ff = ebb_bind_u32(b, ".feed_forward_length", 1, MAX_WIDTH);
    net->n_ctx_train = ebb_bind_u32_or(b, ".context_length", 2048, 1, 1u << 30);
    net->n_head = ebb_bind_u32(b, ".attention.head_count", 1, 1u << 16);
    net->n_head_kv = ebb_bind_u32_or(b, ".attention.head_count_kv", net->n_head, 1, net->n_head);
    net->dim_k = ebb_bind_u32_or(b, ".attention.key_length", net->n_embd / net->n_head, 2, 1u << 14);
    net->dim_v = ebb_bind_u32_or(b, ".attention.value_length", net->n_embd / net->n_head, 1, 1u << 14);
    net->norm_eps = (float)ebb_bind_f64_or(b, ".attention.layer_norm_rms_epsilon", 1e-5);
    net->attn_scale = (float)(1.0 / sqrt((double)net->dim_k));
    net->embd_scale = 1.0f;
    if (net->n_head % net->n_head_kv != 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: %u heads do not share %u KV heads", net->arch->name,
                      net->n_head, net->n_head_kv);
    if ((uint64_t)net->n_head * net->dim_k > MAX_WIDTH || (uint64_t)net->n_head * net->dim_v > MAX_WIDTH)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: heads of an impossible size", net->arch->name);
    if (ebb_bind_u32_or(b, ".expert_count", 0, 0, 1u << 16) > 0)
        ebb_bind_fail(b, EBB_UNSUPPORTED, "a model with experts (mixture of experts) is not supported yet");
    b->layer = EBB_OUTSIDE;
    bind_rope(b, rope_is_halves);
    if (b->st != EBB_OK)
        return;
    net->layers = calloc(net->n_layers, sizeof *net->layers);
    if (!net->layers)
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a table of %u layers", net->n_layers);
}

void ebb_bind_attention(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;

    ebb_bind_vector(b, &l->attn_norm, "attn_norm", net->n_embd, true);
    ebb_bind_matrix(b, &l->q, "attn_q", net->n_head * net->dim_k, net->n_embd);
    ebb_bind_matrix(b, &l->k, "attn_k", net->n_head_kv * net->dim_k, net->n_embd);
    ebb_bind_matrix(b, &l->v, "attn_v", net->n_head_kv * net->dim_v, net->n_embd);
    ebb_bind_matrix(b, &l->o, "attn_output", net->n_embd, net->n_head * net->dim_v);
}

void ebb_bind_head_norms(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_vector(b, &l->q_norm, "attn_q_norm", b->net->dim_k, true);
    ebb_bind_vector(b, &l->k_norm, "attn_k_norm", b->net->dim_k, true);
}

void ebb_bind_post_norms(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_vector(b, &l->attn_post_norm, "post_attention_norm", b->net->n_embd, true);
    ebb_bind_vector(b, &l->ffn_post_norm, "post_ffw_norm", b->net->n_embd, true);
}

void ebb_bind_ffn(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;

    ebb_bind_vector(b, &l->ffn_norm, "ffn_norm", net->n_embd, true);
    ebb_bind_matrix(b, &l->gate, "ffn_gate", net->n_ff, net->n_embd);
    ebb_bind_matrix(b, &l->up, "ffn_up", net->n_ff, net->n_embd);
    ebb_bind_matrix(b, &l->down, "ffn_down", net->n_embd, net->n_ff);
}

void ebb_bind_ends(ebb_binder *b)
{
    ebb_net *net = b->net;
    const ebb_gguf_tensor *out;

    b->layer = EBB_OUTSIDE;
    net->embd = find(b, "token_embd", "weight", true);
    if (!net->embd)
        return;
    if (net->embd->dims[1] > INT32_MAX)
        ebb_bind_fail(b, EBB_FORMAT, "tensor %s: a vocabulary of an impossible size", net->embd->name);
    net->n_vocab = (uint32_t)net->embd->dims[1];
    check_type(b, net->embd);
    check_shape(b, net->embd, net->n_vocab, net->n_embd);
    net->embd_row_bytes = (size_t)ebb_type_row_bytes((ebb_type)net->embd->type, net->n_embd);
    ebb_bind_vector(b, &net->output_norm, "output_norm", net->n_embd, true);
    out = find(b, "output", "weight", false);
    net->is_tied = !out;
    net->output.extent = EBB_NO_EXTENT;
    add_matrix(b, &net->output, out ? out : net->embd, net->n_vocab, net->n_embd);
}

/* -- The network --------------------------------------------------------------- */

static const ebb_arch *find_arch(const ebb_gguf *g, ebb_error *err)
{
    const char *name = ebb_gguf_get_string(g, "general.architecture");
    ebb_buf known = { .max = 200 };

    for (size_t i = 0; name && ebb_archs[i]; i++)
        if (strcmp(ebb_archs[i]->name, name) == 0)
            return ebb_archs[i];
    for (size_t i = 0; ebb_archs[i]; i++)
        ebb_buf_addf(&known, "%s%s", i ? ", " : "", ebb_archs[i]->name);
    if (name)
        (void)EBB_FAIL(err, EBB_UNSUPPORTED, "architecture \"%.40s\" is not supported; these are: %s", name,
                       ebb_buf_text(&known));
    else
        (void)EBB_FAIL(err, EBB_FORMAT, "metadata general.architecture is missing");
    ebb_buf_fini(&known);
    return NULL;
}

ebb_status ebb_net_bind(ebb_net *net, const ebb_gguf *g, ebb_error *err)
{
    ebb_binder b = { .g = g, .net = net, .layer = EBB_OUTSIDE, .err = err };

    memset(net, 0, sizeof *net);
    net->arch = find_arch(g, err);
    if (!net->arch)
        return ebb_gguf_get_string(g, "general.architecture") ? EBB_UNSUPPORTED : EBB_FORMAT;
    b.st = net->arch->bind(&b);
    if (b.st != EBB_OK)
        ebb_net_fini(net);
    return b.st;
}

void ebb_net_fini(ebb_net *net)
{
    free(net->layers);
    free(net->extents);
    free(net->vectors);
    memset(net, 0, sizeof *net);
}

void ebb_net_layout(ebb_net *net, ebb_arena *a)
{
    for (uint32_t i = 0; i < net->n_vectors; i++)
        *net->vectors[i].to = ebb_arena_take(a, (size_t)net->vectors[i].tensor->n_bytes, ALIGN);
}

ebb_status ebb_net_load(const ebb_net *net, ebb_res *res, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < net->n_vectors && st == EBB_OK; i++) {
        const ebb_gguf_tensor *t = net->vectors[i].tensor;

        st = ebb_res_read(res, t->part, t->offset, (float *)(uintptr_t)*net->vectors[i].to, (size_t)t->n_bytes, err);
    }
    return st;
}

void ebb_net_kv_layers(const ebb_net *net, ebb_kv_layer *out)
{
    for (uint32_t i = 0; i < net->n_layers; i++)
        out[i] = (ebb_kv_layer){ .n_head = net->n_head_kv, .dim_k = net->dim_k, .dim_v = net->dim_v };
}

uint64_t ebb_net_pass_bytes(const ebb_net *net)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < net->n_extents; i++)
        sum += net->extents[i].is_certain ? net->extents[i].n_bytes : 0;
    return sum;
}
