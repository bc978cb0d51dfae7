/* The Ollama-style estimate against the shared vectors, and its arithmetic by hand. */
#include "ebb_test.h"

#include <jansson.h>

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/ollama.h"

static uint64_t u64(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static json_t *load(void)
{
    json_error_t e;
    json_t *root = json_load_file(ebb_test_shared_path("data/estimate/vectors.json"), 0, &e);

    if (!root)
        fail_msg("vectors.json: %s", e.text);
    return root;
}

static json_t *meta_value(const json_t *meta, const char *arch, const char *key)
{
    char full[128];

    snprintf(full, sizeof full, "%s.%s", arch, key);
    return json_object_get(meta, full);
}

static uint64_t meta_u64(const json_t *meta, const char *arch, const char *key)
{
    return (uint64_t)json_integer_value(meta_value(meta, arch, key));
}

static void meta_heads(const json_t *meta, const char *arch, const char *key, ebb_ollama_heads *out)
{
    json_t *v = meta_value(meta, arch, key), *one;
    size_t i;

    if (!v)
        return;
    out->n = json_is_array(v) ? json_array_size(v) : 1;
    out->values = calloc(out->n + 1, sizeof *out->values);
    assert_non_null(out->values);
    if (!json_is_array(v))
        out->values[0] = (uint64_t)json_integer_value(v);
    else
        json_array_foreach(v, i, one)
            out->values[i] = (uint64_t)json_integer_value(one);
}

static void model_of(json_t *root, const char *name, ebb_ollama_model *o)
{
    json_t *m = json_object_get(json_object_get(root, "models"), name), *meta = json_object_get(m, "metadata"), *t;
    const char *arch = json_string_value(json_object_get(meta, "general.architecture")), *tensor;

    assert_int_equal(ebb_ollama_model_init(o, arch, meta_u64(meta, arch, "block_count"), NULL), EBB_OK);
    o->n_embd = meta_u64(meta, arch, "embedding_length");
    o->n_ff = meta_u64(meta, arch, "feed_forward_length");
    o->n_ctx_train = meta_u64(meta, arch, "context_length");
    o->window = meta_u64(meta, arch, "attention.sliding_window");
    o->has_dim_k = meta_value(meta, arch, "attention.key_length") != NULL;
    o->has_dim_v = meta_value(meta, arch, "attention.value_length") != NULL;
    o->dim_k = meta_u64(meta, arch, "attention.key_length");
    o->dim_v = meta_u64(meta, arch, "attention.value_length");
    o->is_embedding = meta_value(meta, arch, "pooling_type") != NULL;
    o->ssm_conv = meta_u64(meta, arch, "ssm.conv_kernel");
    o->ssm_inner = meta_u64(meta, arch, "ssm.inner_size");
    o->ssm_state = meta_u64(meta, arch, "ssm.state_size");
    o->ssm_groups = meta_u64(meta, arch, "ssm.group_count");
    o->n_vocab = u64(json_object_get(meta, "tokenizer.ggml.tokens"), "array_len");
    meta_heads(meta, arch, "attention.head_count", &o->heads);
    meta_heads(meta, arch, "attention.head_count_kv", &o->kv_heads);
    meta_heads(meta, arch, "attention.cross_attention_layers", &o->cross_layers);
    json_object_foreach(json_object_get(m, "tensors"), tensor, t) {
        ebb_tensor_info info = { .name = tensor };
        json_t *dims = json_array_get(t, 0);
        uint64_t n = 1;
        info.n_dims = (uint32_t)json_array_size(dims);
        for (uint32_t d = 0; d < info.n_dims; d++)
            n *= info.dims[d] = (uint64_t)json_integer_value(json_array_get(dims, d));
        assert_true(ebb_type_parse(json_string_value(json_array_get(t, 1)), &info.type));
        const ebb_type_info *type = ebb_type_get(info.type);
        info.n_bytes = n * type->block_bytes / type->block_len;
        ebb_ollama_model_add_tensor(o, &info);
    }
}

static ebb_ollama_load load_of(const json_t *v)
{
    return (ebb_ollama_load){ .n_ctx = u64(v, "ctx"), .n_parallel = u64(v, "parallel"), .n_batch = u64(v, "batch"),
                              .kv_type = json_string_value(json_object_get(v, "kv_type")),
                              .flash = json_is_true(json_object_get(v, "flash")) };
}

#define CHECK(name, got, want)                                                                      \
    do { uint64_t g_ = (got), w_ = (want);                                                          \
        if (g_ != w_) fail_msg("%s: %s is %llu, expected %llu", name, #got, (unsigned long long)g_, \
            (unsigned long long)w_);                                                                \
    } while (0)

static void test_graph_vectors(void **state)
{
    json_t *root = load(), *v, *one;
    size_t i, j;

    (void)state;
    json_array_foreach(json_object_get(root, "graph_vectors"), i, v) {
        const char *id = json_string_value(json_object_get(v, "id"));
        json_t *want = json_object_get(v, "expect");
        ebb_ollama_model o;
        ebb_ollama_graph g = { 0 };
        ebb_ollama_load l = load_of(v);
        model_of(root, json_string_value(json_object_get(v, "model")), &o);
        g.kv = calloc(o.n_layers + 1, sizeof *g.kv);
        assert_true(ebb_ollama_graph_is_in_range(&o, &l));
        ebb_ollama_graph_size(&o, &l, false, &g);
        CHECK(id, o.n_layers, json_array_size(json_object_get(want, "kv")));
        json_array_foreach(json_object_get(want, "kv"), j, one)
            CHECK(id, g.kv[j], (uint64_t)json_integer_value(one));
        CHECK(id, g.partial, u64(want, "partial"));
        CHECK(id, g.full, u64(want, "full"));
        CHECK(id, g.kv_total, u64(want, "kv_total"));
        CHECK(id, g.kv_generic_total, u64(want, "generic_kv_total"));
        CHECK(id, g.resolved_partial, u64(want, "resolved_partial"));
        CHECK(id, g.resolved_full, u64(want, "resolved_full"));
        free(g.kv);
        ebb_ollama_model_fini(&o);
    }
    json_decref(root);
}

/* Up to what is in range, more of everything never comes to less: nothing wraps. */
static void test_nothing_wraps_in_range(void **state)
{
    json_t *root = load(), *v;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(root, "graph_vectors"), i, v) {
        ebb_ollama_load l = load_of(v);
        ebb_ollama_graph g = { 0 }, last = { 0 };
        ebb_ollama_model o;

        model_of(root, json_string_value(json_object_get(v, "model")), &o);
        g.kv = calloc(o.n_layers + 1, sizeof *g.kv);
        for (int step = 0; ebb_ollama_graph_is_in_range(&o, &l); step++) {
            ebb_ollama_graph_size(&o, &l, false, &g);
            assert_true(g.full >= last.full && g.partial >= last.partial && g.kv_total >= last.kv_total);
            assert_true(g.resolved_full < (uint64_t)1 << 62 && g.resolved_partial < (uint64_t)1 << 62);
            last = g;
            *(step % 3 == 0 ? &l.n_ctx : step % 3 == 1 ? &l.n_batch : &l.n_parallel) *= 2;
        }
        free(g.kv);
        ebb_ollama_model_fini(&o);
    }
    json_decref(root);
}

static void check_layout(const char *id, const json_t *want, const ebb_ollama_layout *l, const ebb_ollama_graph *g)
{
    json_t *entry, *one;
    size_t i;

    CHECK(id, l->n_entries, json_array_size(json_object_get(want, "assign")));
    json_array_foreach(json_object_get(want, "assign"), i, entry) {
        json_t *layers = json_array_get(entry, 1);
        CHECK(id, l->entry[i].gpu, (uint64_t)json_integer_value(json_array_get(entry, 0)));
        CHECK(id, l->entry[i].n, json_array_size(layers));
        if (l->entry[i].n)
            CHECK(id, l->entry[i].first, (uint64_t)json_integer_value(json_array_get(layers, 0)));
    }
    json_array_foreach(json_object_get(want, "graph_per_gpu"), i, one)
        CHECK(id, l->graph_per_gpu[i], (uint64_t)json_integer_value(one));
    json_array_foreach(json_object_get(want, "gpu_bytes"), i, one)
        CHECK(id, l->gpu_bytes[i], (uint64_t)json_integer_value(one));
    CHECK(id, l->n_on_gpu, u64(want, "layers_on_gpu"));
    CHECK(id, l->n_total, u64(want, "total_layers"));
    CHECK(id, g->resolved_partial, u64(want, "partial"));
    CHECK(id, g->resolved_full, u64(want, "full"));
    CHECK(id, l->cpu_bytes, u64(want, "cpu_bytes"));
    CHECK(id, l->vram_bytes, u64(want, "vram"));
    CHECK(id, l->total_bytes, u64(want, "total"));
    CHECK(id, l->buffer_bytes, u64(want, "buffer"));
    CHECK(id, l->weight_bytes, u64(want, "weights"));
    assert_string_equal(l->ps, json_string_value(json_object_get(want, "ps")));
    assert_string_equal(l->is_full ? "full" : "partial", json_string_value(json_object_get(want, "graph_kind")));
}

static void test_layout_vectors(void **state)
{
    json_t *root = load(), *v, *one;
    size_t i, j;

    (void)state;
    json_array_foreach(json_object_get(root, "layout_vectors"), i, v) {
        const char *id = json_string_value(json_object_get(v, "id"));
        json_t *want = json_object_get(v, "expect");
        ebb_ollama_gpu gpus[EBB_OLLAMA_GPUS] = { 0 };
        ebb_ollama_options opts = { .num_gpu = json_integer_value(json_object_get(v, "num_gpu")),
                                    .require_full = json_is_true(json_object_get(v, "require_full")),
                                    .spread = json_is_true(json_object_get(v, "spread")),
                                    .overhead_bytes = u64(v, "overhead"), .projector_bytes = u64(v, "projector") };
        ebb_ollama_model o;
        ebb_ollama_graph g = { 0 };
        ebb_ollama_layout layout;
        ebb_ollama_load l = load_of(v);
        bool metal = false;
        json_array_foreach(json_object_get(v, "gpus"), j, one) {
            gpus[j].free_bytes = u64(one, "free");
            gpus[j].library = json_string_value(json_object_get(one, "library"));
            gpus[j].integrated = json_is_true(json_object_get(one, "integrated"));
            metal |= j == 0 && strcmp(gpus[0].library, "Metal") == 0;
        }
        model_of(root, json_string_value(json_object_get(v, "model")), &o);
        g.kv = calloc(o.n_layers + 1, sizeof *g.kv);
        ebb_ollama_graph_size(&o, &l, metal, &g);
        ebb_status st = ebb_ollama_place(&o, &g, gpus, json_array_size(json_object_get(v, "gpus")), &opts, &layout,
                                         NULL);
        if (json_object_get(want, "error"))
            assert_int_equal(st, EBB_BUDGET);
        else {
            assert_int_equal(st, EBB_OK);
            check_layout(id, want, &layout, &g);
        }
        free(g.kv);
        ebb_ollama_model_fini(&o);
    }
    json_decref(root);
}

static void test_predict_vectors(void **state)
{
    json_t *root = load(), *v;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(root, "predict_vectors"), i, v) {
        const char *id = json_string_value(json_object_get(v, "id"));
        json_t *a = json_object_get(v, "args"), *want = json_object_get(v, "expect");
        ebb_ollama_prediction p = ebb_ollama_predict(u64(a, "vram"), u64(a, "kv_total"), u64(a, "graph_partial"),
                                                     u64(a, "graph_full"), u64(a, "buffer"), u64(a, "weights"),
                                                     u64(a, "n_total"));
        double ratio = json_real_value(json_object_get(want, "gpu_ratio_weights"));
        CHECK(id, p.total_bytes, u64(want, "total"));
        CHECK(id, p.splits, json_is_true(json_object_get(want, "splits")));
        CHECK(id, p.weight_room_bytes, u64(want, "available_for_weights"));
        CHECK(id, p.n_layers, u64(want, "layers"));
        assert_true(p.gpu_ratio > ratio - 1e-9 && p.gpu_ratio < ratio + 1e-9);
    }
    json_decref(root);
}

static void test_option_vectors(void **state)
{
    json_t *root = load(), *v;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(root, "option_vectors"), i, v) {
        const char *id = json_string_value(json_object_get(v, "id"));
        json_t *env = json_object_get(v, "env"), *a = json_object_get(v, "args"), *want = json_object_get(v, "expect");
        ebb_ollama_request r = {
            .env_parallel = json_string_value(json_object_get(env, "OLLAMA_NUM_PARALLEL")),
            .env_ctx = json_string_value(json_object_get(env, "OLLAMA_CONTEXT_LENGTH")),
            .env_flash = json_string_value(json_object_get(env, "OLLAMA_FLASH_ATTENTION")),
            .env_kv_type = json_string_value(json_object_get(env, "OLLAMA_KV_CACHE_TYPE")),
            .env_overhead = json_string_value(json_object_get(env, "OLLAMA_GPU_OVERHEAD")),
            .env_spread = json_string_value(json_object_get(env, "OLLAMA_SCHED_SPREAD")),
            .n_ctx = u64(a, "num_ctx"), .n_batch = u64(a, "batch"),
            .vision = json_is_true(json_object_get(a, "vision")),
            .flash_ok_on_gpus = !json_is_false(json_object_get(a, "flash_ok_on_gpus")),
            .total_vram_bytes = u64(a, "total_vram"),
        };
        ebb_ollama_model o;
        model_of(root, json_string_value(json_object_get(v, "model")), &o);
        ebb_ollama_settings s = ebb_ollama_resolve(&o, &r);
        CHECK(id, s.n_ctx, u64(want, "num_ctx"));
        CHECK(id, s.n_batch, u64(want, "batch"));
        CHECK(id, s.n_parallel, u64(want, "parallel"));
        CHECK(id, s.flash, json_is_true(json_object_get(want, "flash")));
        CHECK(id, s.overhead_bytes, u64(want, "gpu_overhead"));
        CHECK(id, s.spread, json_is_true(json_object_get(want, "spread")));
        assert_string_equal(s.kv_type, json_string_value(json_object_get(want, "kv_type")));
        ebb_ollama_model_fini(&o);
    }
    json_decref(root);
}

/* Two layers of llama by hand: E = 8, H = 2, K = 1, V = 10; batch 4, context 16. */
static void test_llama_by_hand(void **state)
{
    ebb_ollama_model o;
    uint64_t kv[2], heads[1] = { 2 }, kv_heads[1] = { 1 };
    ebb_ollama_graph g = { .kv = kv };
    ebb_ollama_load l = { .n_ctx = 16, .n_parallel = 1, .n_batch = 4, .kv_type = "f16" };

    (void)state;
    assert_int_equal(ebb_ollama_model_init(&o, "llama", 2, NULL), EBB_OK);
    o.n_embd = 8;
    o.n_vocab = 10;
    o.heads = (ebb_ollama_heads){ heads, 1 };
    o.kv_heads = (ebb_ollama_heads){ kv_heads, 1 };
    ebb_ollama_graph_size(&o, &l, false, &g);
    assert_int_equal(kv[0], 16 * (4 + 4) * 1 * 2);
    assert_int_equal(g.full, 4 * 4 * (1 + 4 * 8 + 16 * 3));
    assert_int_equal(g.partial, 4 * 4 * 8 + 4 * 4 * (1 + 8 + 16) + 9 * 64 / 16 + 4 * 16 * (4 * 2 + 4 * 1));
    assert_true(ebb_ollama_graph_is_in_range(&o, &l));
    l.n_ctx = l.n_parallel = l.n_batch = 100000000;      /* full would wrap to another figure, and a negative one */
    assert_false(ebb_ollama_graph_is_in_range(&o, &l));
    o.heads.values = o.kv_heads.values = NULL;
    ebb_ollama_model_fini(&o);
}

/* A known example: 32000 tokens of a 35B on a card of 24 GiB. */
static void test_on_paper(void **state)
{
    ebb_ollama_paper p = ebb_ollama_predict_on_paper((uint64_t)24 << 30, 5242880000u, 5379721216u, 555778048,
                                                     18708594688u);
    ebb_ollama_paper none = ebb_ollama_predict_on_paper((uint64_t)8 << 30, 5242880000u, 5379721216u, 555778048, 0);

    (void)state;
    assert_float_equal(p.available, 13.61, 1e-9);
    assert_float_equal(p.ratio, 13.61 / 19, 1e-9);
    assert_true(none.available == 0 && none.ratio == 0);
}

static void test_engine_list(void **state)
{
    (void)state;
    assert_true(ebb_ollama_needs_engine("gemma3") && ebb_ollama_needs_engine("deepseek2"));
    assert_false(ebb_ollama_needs_engine("llama") || ebb_ollama_needs_engine("gemma2") || ebb_ollama_needs_engine(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_by_hand),
        cmocka_unit_test(test_on_paper),
        cmocka_unit_test(test_engine_list),
        cmocka_unit_test(test_graph_vectors),
        cmocka_unit_test(test_nothing_wraps_in_range),
        cmocka_unit_test(test_layout_vectors),
        cmocka_unit_test(test_predict_vectors),
        cmocka_unit_test(test_option_vectors),
    };
    return cmocka_run_group_tests_name("ollama", tests, NULL, NULL);
}
