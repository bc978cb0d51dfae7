/* Shapes whose products pass 24, 32 and 64 bits: each is counted as what it is, or refused with one line that names
 * the key or the tensor.  The files are real ones, of many gigabytes of nothing. */
#include "engine/gguf/gguf_build.h"

#include <fcntl.h>

#include "ebb/experimental/plan.h"
#include "ebb/experimental/type.h"
#include "kv/kv.h"
#include "support/own_folder.h"

static char folder[64], path[128];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(folder, sizeof folder, "/tmp/ebb-bind-sizes-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/huge.gguf", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(folder);
}

/* -- A file ----------------------------------------------------------------------------- */

typedef struct maker {
    const char *arch;
    ebb_buf     keys, infos;
    uint64_t    n_keys, n_tensors, data;
} maker;

static void key(maker *m, const char *name, uint32_t v)
{
    char full[64];

    snprintf(full, sizeof full, "%s%s", m->arch, name);
    gguf_kv_u32(&m->keys, full, v);
    m->n_keys++;
}

/* F16; a dimension of 0 is none. */
static void tensor(maker *m, const char *name, uint64_t d0, uint64_t d1, uint64_t d2)
{
    uint64_t n = d0 * (d1 ? d1 : 1) * (d2 ? d2 : 1) * 2;

    gguf_tensor(&m->infos, name, EBB_TYPE_F16, m->data, d2 ? 3 : d1 ? 2 : 1, d0, d1, d2);
    m->n_tensors++;
    m->data += (n + 31) / 32 * 32;
}

static void layer_tensor(maker *m, uint32_t layer, const char *name, uint64_t d0, uint64_t d1, uint64_t d2)
{
    char full[64];

    snprintf(full, sizeof full, "blk.%u.%s", layer, name);
    tensor(m, full, d0, d1, d2);
}

/* Skips the test where the disk has no files so large. */
static void write_file(maker *m)
{
    ebb_buf f = { 0 };
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written;

    assert_true(fd >= 0);
    gguf_head(&f, 3, m->n_tensors, m->n_keys + 1);
    gguf_kv_str(&f, "general.architecture", m->arch);
    ebb_buf_add(&f, m->keys.data, m->keys.len);
    ebb_buf_add(&f, m->infos.data, m->infos.len);
    gguf_data(&f, 32, 0);
    assert_int_equal(write(fd, f.data, f.len), f.len);
    is_written = ftruncate(fd, (off_t)(f.len + m->data)) == 0;
    close(fd);
    ebb_buf_fini(&f);
    ebb_buf_fini(&m->keys);
    ebb_buf_fini(&m->infos);
    if (!is_written)
        skip();
}

/* -- What comes of it --------------------------------------------------------------------- */

static const ebb_machine machine = { .available_bytes = (uint64_t)1 << 30, .n_cpus = 2 };

static ebb_status plan(maker *m, const ebb_engine_opts *opts, ebb_plan *p, ebb_error *err)
{
    ebb_model *model;
    ebb_status st;

    write_file(m);
    st = ebb_model_open(path, &model, err);
    if (st != EBB_OK)
        return st;
    st = ebb_plan_make(model, opts, &machine, p, err);
    ebb_model_close(model);
    return st;
}

static void expect_refusal(maker *m, const char *say)
{
    ebb_error err = { 0 };
    ebb_plan p;

    assert_int_equal(plan(m, NULL, &p, &err), EBB_FORMAT);
    if (!strstr(err.msg, say))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, say);
}

/* Keys of a network of width 1 and heads [n_head][dim]. */
static void shape_keys(maker *m, uint32_t n_layers, uint32_t n_head, uint32_t dim, uint32_t n_ff)
{
    key(m, ".block_count", n_layers);
    key(m, ".embedding_length", 1);
    key(m, ".feed_forward_length", n_ff);
    key(m, ".attention.head_count", n_head);
    key(m, ".attention.key_length", dim);
    key(m, ".attention.value_length", dim);
}

static void ends(maker *m, uint64_t n_vocab)
{
    tensor(m, "token_embd.weight", 1, n_vocab, 0);
    tensor(m, "output_norm.weight", 1, 0, 0);
}

static void attention(maker *m, uint32_t layer, uint64_t width)
{
    layer_tensor(m, layer, "attn_norm.weight", 1, 0, 0);
    layer_tensor(m, layer, "attn_q.weight", 1, width, 0);
    layer_tensor(m, layer, "attn_k.weight", 1, width, 0);
    layer_tensor(m, layer, "attn_v.weight", 1, width, 0);
    layer_tensor(m, layer, "attn_output.weight", width, 1, 0);
    layer_tensor(m, layer, strcmp(m->arch, "glm4moe") == 0 ? "post_attention_norm.weight" : "ffn_norm.weight", 1, 0, 0);
}

static void experts(maker *m, uint32_t layer, uint64_t n_expert, uint64_t n_ff)
{
    layer_tensor(m, layer, "ffn_gate_inp.weight", 1, n_expert, 0);
    layer_tensor(m, layer, "ffn_gate_exps.weight", 1, n_ff, n_expert);
    layer_tensor(m, layer, "ffn_up_exps.weight", 1, n_ff, n_expert);
    layer_tensor(m, layer, "ffn_down_exps.weight", n_ff, 1, n_expert);
}

/* -- Cases -------------------------------------------------------------------------------- */

/* Biases of 4096 experts of 2^20 + 1: 2^32 + 4096 numbers, and not 4096. */
static void test_biases_of_experts(void **state)
{
    const uint64_t n_expert = 4096, n_ff = ((uint64_t)1 << 20) + 1;
    maker m = { .arch = "llama" };
    ebb_error err = { 0 };
    ebb_plan p = { 0 };

    (void)state;
    shape_keys(&m, 1, 1, 2, (uint32_t)n_ff);
    key(&m, ".expert_count", (uint32_t)n_expert);
    key(&m, ".expert_used_count", 1);
    ends(&m, 16);
    attention(&m, 0, 2);
    experts(&m, 0, n_expert, n_ff);
    layer_tensor(&m, 0, "ffn_gate_exps.bias", n_ff, n_expert, 0);
    if (plan(&m, NULL, &p, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(p.activation_bytes > n_expert * n_ff * sizeof(float));
    assert_false(p.fits);
    assert_non_null(strstr(p.why, "needs at least 16"));  /* GiB */
}

/* 4096 experts in each of 4096 layers, of 2 bytes each, would be a list of gigabytes. */
static void test_experts_without_number(void **state)
{
    maker m = { .arch = "llama" };

    (void)state;
    shape_keys(&m, 4096, 1, 2, 1);
    key(&m, ".expert_count", 4096);
    key(&m, ".expert_used_count", 1);
    expect_refusal(&m, "metadata llama.expert_count: 4096 x 4096 is an impossible size");
}

static void test_heads(void **state)
{
    static const struct { const char *key; uint32_t k, v; } cases[] = {
        { "metadata llama.attention.key_length: 65536 x 16384", 16384, 2 },
        { "metadata llama.attention.value_length: 65536 x 16384", 2, 16384 },
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        maker m = { .arch = "llama" };

        key(&m, ".block_count", 1);
        key(&m, ".embedding_length", 1);
        key(&m, ".feed_forward_length", 1);
        key(&m, ".attention.head_count", 65536);
        key(&m, ".attention.key_length", cases[i].k);
        key(&m, ".attention.value_length", cases[i].v);
        expect_refusal(&m, cases[i].key);
    }
}

/* 2^22 + 1 times 1024 shared experts: not 1024 elements. */
static void test_shared_experts(void **state)
{
    const uint32_t n_ff = (1u << 22) + 1;
    maker m = { .arch = "deepseek" };

    (void)state;
    shape_keys(&m, 1, 1, 2, n_ff);
    key(&m, ".expert_count", 1);
    key(&m, ".expert_used_count", 1);
    key(&m, ".expert_shared_count", 1024);
    ends(&m, 16);
    attention(&m, 0, 2);
    experts(&m, 0, 1, n_ff);
    layer_tensor(&m, 0, "ffn_gate_shexp.weight", 1, 1024, 0);
    layer_tensor(&m, 0, "ffn_up_shexp.weight", 1, 1024, 0);
    layer_tensor(&m, 0, "ffn_down_shexp.weight", 1024, 1, 0);
    expect_refusal(&m, "metadata deepseek.expert_shared_count: 4194305 x 1024 is an impossible size");
}

static void latent_keys(maker *m, uint32_t key_mla, uint32_t value_mla, uint32_t latent)
{
    key(m, ".block_count", 1);
    key(m, ".embedding_length", 1);
    key(m, ".feed_forward_length", 1);
    key(m, ".attention.head_count", 8192);
    key(m, ".attention.head_count_kv", 1);
    key(m, ".attention.key_length", latent + 2);
    key(m, ".attention.value_length", latent);
    key(m, ".rope.dimension_count", 2);
    key(m, ".attention.kv_lora_rank", latent);
    key(m, ".attention.key_length_mla", key_mla);
    key(m, ".attention.value_length_mla", value_mla);
}

static void test_latent_heads(void **state)
{
    static const struct { uint32_t key_mla, value_mla, latent; const char *say; } cases[] = {
        { 16384, 2, 64, "metadata deepseek2.attention.key_length_mla: 8192 x 16384" },
        { 64, 16384, 64, "metadata deepseek2.attention.value_length_mla: 8192 x 16446" },
        { 64, 64, 4096, "metadata deepseek2.attention.key_length: 8192 x 4098" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        maker m = { .arch = "deepseek2" };

        latent_keys(&m, cases[i].key_mla, cases[i].value_mla, cases[i].latent);
        expect_refusal(&m, cases[i].say);
    }
}

static void dense(maker *m, uint32_t layer, uint64_t n_ff)
{
    layer_tensor(m, layer, "ffn_gate.weight", 1, n_ff, 0);
    layer_tensor(m, layer, "ffn_up.weight", 1, n_ff, 0);
    layer_tensor(m, layer, "ffn_down.weight", n_ff, 1, 0);
}

/* 2^32 is not 0; what the model says of itself has no more than 2^24. */
static void test_vocabulary(void **state)
{
    static const uint64_t sizes[] = { (uint64_t)1 << 32, (1u << 24) + 1 };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        maker m = { .arch = "llama" };

        shape_keys(&m, 1, 1, 2, 1);
        ends(&m, sizes[i]);
        attention(&m, 0, 2);
        dense(&m, 0, 1);
        expect_refusal(&m, "tensor token_embd.weight: a vocabulary of an impossible size");
    }
}

/* A draft head whose feed-forward is wider than that of all layers. */
static void test_draft_head(void **state)
{
    const uint32_t n_ff = 1u << 20;
    const ebb_engine_opts opts = { .n_batch = 64 };
    maker m = { .arch = "glm4moe" };
    ebb_error err = { 0 };
    ebb_plan p = { 0 };

    (void)state;
    key(&m, ".block_count", 2);
    key(&m, ".nextn_predict_layers", 1);
    key(&m, ".embedding_length", 1);
    key(&m, ".attention.head_count", 1);
    key(&m, ".attention.key_length", 2);
    key(&m, ".attention.value_length", 2);
    gguf_kv_array(&m.keys, "glm4moe.feed_forward_length", EBB_GGUF_U32, 2);
    gguf_u32(&m.keys, 1);
    gguf_u32(&m.keys, n_ff);
    m.n_keys++;
    ends(&m, 16);
    for (uint32_t i = 0; i < 2; i++) {
        attention(&m, i, 2);
        dense(&m, i, i == 0 ? 1 : n_ff);
    }
    layer_tensor(&m, 1, "nextn.enorm.weight", 1, 0, 0);
    layer_tensor(&m, 1, "nextn.hnorm.weight", 1, 0, 0);
    layer_tensor(&m, 1, "nextn.eh_proj.weight", 2, 1, 0);
    if (plan(&m, &opts, &p, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(p.n_batch, 64);
    /* What it gives, and the same as what is multiplied next. */
    assert_true(p.activation_bytes > 2 * 64 * n_ff * sizeof(float));
}

/* 64 layers of K and V of 2^24, of 2^32 positions: 2^64 bytes and some more, and not these. */
static void test_context(void **state)
{
    const ebb_engine_opts opts = { .n_ctx = EBB_CTX_MAX - 1, .has_kv = true, .kv_k = EBB_KV_F16, .kv_v = EBB_KV_F16 };
    maker m = { .arch = "llama" };
    ebb_error err = { 0 };
    ebb_plan p = { 0 };

    (void)state;
    shape_keys(&m, 64, 1024, 16384, 1);
    ends(&m, 16);
    for (uint32_t i = 0; i < 64; i++) {
        attention(&m, i, (uint64_t)1 << 24);
        dense(&m, i, 1);
    }
    if (plan(&m, &opts, &p, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(p.kv_bytes == UINT64_MAX && p.total_bytes == UINT64_MAX);
    assert_false(p.fits);
    assert_non_null(strstr(p.why, "a context of 4294967294 needs at least"));
}

/* The pool itself, whatever was planned. */
static void test_pool(void **state)
{
    static ebb_kv_layer layers[4096];
    ebb_kv_shape shape = { .n_layers = 4096, .layers = layers, .n_batch = 512 };
    ebb_error err = { 0 };
    ebb_kv *kv;

    (void)state;
    for (size_t i = 0; i < 4096; i++)
        layers[i] = (ebb_kv_layer){ .n_head = 65536, .dim_k = 1u << 20, .dim_v = 1u << 20, .has_window = i % 2 };
    shape.k_type = shape.v_type = EBB_KV_F16;
    shape.window = UINT32_MAX;
    shape.n_ctx = UINT32_MAX;
    assert_true(ebb_kv_pool_bytes(&shape) == UINT64_MAX);
    assert_int_equal(ebb_kv_open(&shape, &kv, &err), EBB_NOMEM);
    assert_null(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_biases_of_experts), cmocka_unit_test(test_experts_without_number),
        cmocka_unit_test(test_heads),             cmocka_unit_test(test_shared_experts),
        cmocka_unit_test(test_latent_heads),      cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_draft_head),        cmocka_unit_test(test_context),
        cmocka_unit_test(test_pool),
    };

    return cmocka_run_group_tests_name("bind sizes", tests, setup, teardown);
}
