/* A model as a file: facts, metadata as text, tensors, tokens. */
#include "engine/gguf/gguf_build.h"

#include <jansson.h>

#include "ebb/experimental/inspect.h"
#include "ebb/model.h"
#include "open/model_file.h"

static ebb_model *open_or_fail(const ebb_buf *f)
{
    ebb_error err = { 0 };
    ebb_model *m;

    if (ebb_model_open_memory(f->data, f->len, "dir/Some-Model.gguf", &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

/* Layers of different kinds, as hybrids have them, and an array where llama has a number. */
static void build(ebb_buf *f)
{
    const float eps = 1e-5f;

    gguf_head(f, 3, 3, 11);
    gguf_kv_str(f, "general.architecture", "mixed");
    gguf_kv_u32(f, "general.file_type", 15);
    gguf_kv_u32(f, "mixed.block_count", 3);
    gguf_kv_u32(f, "mixed.embedding_length", 64);
    gguf_kv_u32(f, "mixed.attention.head_count", 4);
    gguf_kv_array(f, "mixed.attention.head_count_kv", EBB_GGUF_I32, 3);
    gguf_u32(f, 4);
    gguf_u32(f, 0);
    gguf_u32(f, 2);
    gguf_kv_u32(f, "mixed.attention.key_length", 32);
    gguf_kv_u32(f, "mixed.attention.value_length", 16);
    gguf_kv_raw(f, "mixed.eps", EBB_GGUF_F32, &eps, sizeof eps);
    gguf_kv_str(f, "tokenizer.chat_template", "{{ messages }}");
    gguf_kv_str(f, "tokenizer.chat_template.tool_use", "caf\xc3\xa9 {{ tools }}");
    gguf_tensor(f, "token_embd.weight", EBB_TYPE_F32, 0, 2, (uint64_t)64, (uint64_t)5);
    gguf_tensor(f, "blk.0.ffn_up.weight", EBB_TYPE_Q8_0, 1280, 2, (uint64_t)32, (uint64_t)2);
    gguf_tensor(f, "blk.1.odd", 133, 1376, 1, (uint64_t)7);
    gguf_data(f, 32, 1376 + 96);
}

static void test_facts(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    const ebb_model_info *i = ebb_model_get_info(m);
    assert_string_equal(i->name, "Some-Model");
    assert_string_equal(i->arch, "mixed");
    assert_string_equal(i->quantization, "Q4_K_M");
    assert_int_equal(i->n_layers, 3);
    assert_int_equal(i->n_head_kv, 4);
    assert_int_equal(i->head_dim, 32);
    assert_int_equal(i->n_vocab, 5);
    assert_int_equal(i->n_params, 64 * 5 + 64 + 7);
    assert_int_equal(i->weight_bytes, 64 * 5 * 4 + 2 * 34);
    assert_int_equal(i->kv_bytes_per_tok_f16, (4 + 0 + 2) * (32 + 16) * 2);
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

/* It stands in lists, notices and greetings: a line of text, however long and of whatever it is made. */
static void test_name_is_a_line(void **state)
{
    static const struct { const char *given, *shown; } names[] = {
        { "Some Model 8B", "Some Model 8B" }, { "caf\u00E9", "caf\u00E9" }, { "", "Some-Model" },
        { "a\n\n* updated: run x\tb\x1B[2J", "a\u240A\u240A* updated: run x\u2409b\u241B[2J" },
    };
    char large[1000];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ebb_buf f = { 0 };
        gguf_head(&f, 3, 0, 2);
        gguf_kv_str(&f, "general.architecture", "llama");
        gguf_kv_str(&f, "general.name", names[i].given);
        ebb_model *m = open_or_fail(&f);
        assert_string_equal(ebb_model_get_info(m)->name, names[i].shown);
        ebb_model_close(m);
        ebb_buf_fini(&f);
    }
    ebb_buf f = { 0 };
    for (size_t i = 0; i + 2 < sizeof large; i += 3)
        memcpy(large + i, "\u4F60", 3);
    large[999] = '\0';
    gguf_head(&f, 3, 0, 1);
    gguf_kv_str(&f, "general.name", large);
    ebb_model *m = open_or_fail(&f);
    assert_int_equal(strlen(ebb_model_get_info(m)->name), 198);
    assert_memory_equal(ebb_model_get_info(m)->name, large, 198);
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

/* One that no model has is no prefix of keys, either. */
static void test_arch_is_a_short_line(void **state)
{
    char large[100];
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 1);
    gguf_kv_str(&f, "general.architecture", "a\n\x1B[2J");
    ebb_model *m = open_or_fail(&f);
    assert_string_equal(ebb_model_get_info(m)->arch, "a\u240A\u241B[2J");
    ebb_model_close(m);
    ebb_buf_fini(&f);
    memset(large, 'a', sizeof large - 1);
    large[65] = '\0';
    gguf_head(&f, 3, 0, 2);
    gguf_kv_str(&f, "general.architecture", large);
    memcpy(large + 65, ".block_count", 13);
    gguf_kv_u32(&f, large, 5);
    m = open_or_fail(&f);
    assert_int_equal(strlen(ebb_model_get_info(m)->arch), 64);
    assert_int_equal(ebb_model_get_info(m)->n_layers, 0);
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

/* The metadata counts for the fingerprint, the weights do not. */
static void test_fingerprint(void **state)
{
    uint8_t before[16];
    ebb_buf f = { 0 };

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    memcpy(before, ebb_model_get_info(m)->fingerprint, 16);
    ebb_model_close(m);
    f.data[f.len - 1] ^= 1;
    m = open_or_fail(&f);
    assert_memory_equal(ebb_model_get_info(m)->fingerprint, before, 16);
    ebb_model_close(m);
    for (size_t i = 0; i + 8 < f.len; i++)
        if (memcmp(f.data + i, "messages", 8) == 0)
            f.data[i] = 'M';
    m = open_or_fail(&f);
    assert_memory_not_equal(ebb_model_get_info(m)->fingerprint, before, 16);
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

static void test_unknown_architecture_and_no_tokenizer_open(void **state)
{
    ebb_error err = { 0 };
    ebb_buf f = { 0 };
    ebb_token id;
    size_t n;

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    assert_int_equal(ebb_model_tokenize(m, "a", 1, 0, &id, 1, &n, &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "Some-Model: has no tokenizer"));
    assert_int_equal(ebb_model_check_tokenizer(m, NULL), EBB_UNSUPPORTED);
    assert_int_equal(ebb_model_bos(m), -1);
    assert_int_equal(ebb_model_find_token(m, "a"), -1);
    assert_false(ebb_model_is_eog(m, 0));
    assert_int_equal(ebb_model_piece(m, 0, true, NULL, 0), 0);
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

static void test_tensors_and_templates(void **state)
{
    ebb_tensor_info t;
    ebb_buf f = { 0 };

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    assert_int_equal(ebb_model_n_tensors(m), 3);
    ebb_model_tensor(m, 1, &t);
    assert_string_equal(t.name, "blk.0.ffn_up.weight");
    assert_int_equal(t.type, EBB_TYPE_Q8_0);
    assert_int_equal(t.n_bytes, 68);
    assert_int_equal(t.dims[0], 32);
    ebb_model_tensor(m, 2, &t);
    assert_int_equal((int)t.type, 133);
    assert_string_equal(ebb_model_template(m, NULL), "{{ messages }}");
    assert_string_equal(ebb_model_template(m, "tool_use"), "caf\xc3\xa9 {{ tools }}");
    assert_null(ebb_model_template(m, "absent"));
    assert_null(ebb_model_meta_string(m, "mixed.block_count"));
    assert_string_equal(ebb_model_meta_string(m, "general.architecture"), "mixed");
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

static void test_numbers(void **state)
{
    ebb_buf f = { 0 };
    double x = -1;

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    assert_true(ebb_model_meta_number(m, "mixed.block_count", &x));
    assert_true(x == 3);
    assert_true(ebb_model_meta_number(m, "mixed.eps", &x));
    assert_true(x == (double)1e-5f);
    assert_false(ebb_model_meta_number(m, "general.architecture", &x));
    assert_false(ebb_model_meta_number(m, "mixed.attention.head_count_kv", &x));
    assert_false(ebb_model_meta_number(m, "absent", &x));
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

static void expect_meta(const ebb_model *m, const char *key, size_t cap, const char *want)
{
    char buf[256];

    for (size_t i = 0; i < ebb_model_n_meta(m); i++) {
        memset(buf, '#', sizeof buf);
        if (strcmp(ebb_model_meta(m, i, buf, cap), key) != 0)
            continue;
        assert_string_equal(buf, want);
        assert_int_equal(buf[cap], '#');
        return;
    }
    fail_msg("no key %s", key);
}

static void test_metadata_as_text(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    build(&f);
    ebb_model *m = open_or_fail(&f);
    expect_meta(m, "mixed.eps", 64, "1e-05");
    expect_meta(m, "mixed.attention.head_count_kv", 64, "[4, 0, 2]");
    expect_meta(m, "mixed.attention.head_count_kv", 6, "[4, 0");
    expect_meta(m, "tokenizer.chat_template.tool_use", 64, "caf\xc3\xa9 {{ tools }}");
    expect_meta(m, "tokenizer.chat_template.tool_use", 6, "caf\xc3\xa9");
    expect_meta(m, "tokenizer.chat_template.tool_use", 5, "caf");        /* no half characters */
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

static void test_more_values_as_text(void **state)
{
    const int64_t i64 = -5;
    const double f64 = 0.1;
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 6);
    gguf_kv_raw(&f, "bool", EBB_GGUF_BOOL, "\1", 1);
    gguf_kv_raw(&f, "i64", EBB_GGUF_I64, &i64, 8);
    gguf_kv_raw(&f, "f64", EBB_GGUF_F64, &f64, 8);
    gguf_kv_array(&f, "tags", EBB_GGUF_STRING, 2);
    gguf_text(&f, "chat", 4);
    gguf_text(&f, "en", 2);
    gguf_kv_array(&f, "long", EBB_GGUF_STRING, 9);
    for (int i = 0; i < 9; i++)
        gguf_text(&f, "x", 1);
    gguf_kv_array(&f, "types", EBB_GGUF_I8, 65);
    gguf_data(&f, 1, 65);
    ebb_model *m = open_or_fail(&f);
    expect_meta(m, "bool", 64, "true");
    expect_meta(m, "i64", 64, "-5");
    expect_meta(m, "f64", 64, "0.1");
    expect_meta(m, "tags", 64, "[\"chat\", \"en\"]");
    expect_meta(m, "long", 64, "[9 strings]");
    expect_meta(m, "types", 64, "[65 i8]");
    ebb_model_close(m);
    ebb_buf_fini(&f);
}

/* -- Metadata that cannot be true ---------------------------------------------------- */
static void expect_failure(ebb_buf *f, ebb_status want, const char *words)
{
    ebb_error err = { 0 };
    ebb_model *m;
    ebb_status st = ebb_model_open_memory(f->data, f->len, "bad.gguf", &m, &err);

    if (st != want || !strstr(err.msg, words))
        fail_msg("wanted %s with \"%s\", got %s: \"%s\"", ebb_status_text(want), words, ebb_status_text(st), err.msg);
    assert_null(m);
    ebb_buf_fini(f);
}

static void test_absurd_facts(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 2);
    gguf_kv_str(&f, "general.architecture", "llama");
    gguf_kv_u32(&f, "llama.block_count", UINT32_MAX);
    expect_failure(&f, EBB_FORMAT, "bad: damaged: metadata key llama.block_count is not a number up to 16384");

    gguf_head(&f, 3, 0, 2);
    gguf_kv_str(&f, "general.architecture", "llama");
    gguf_kv_str(&f, "llama.context_length", "many");
    expect_failure(&f, EBB_FORMAT, "llama.context_length is not a number");
}

static void test_vocabulary_lists_that_do_not_fit(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 3);
    gguf_kv_str(&f, "tokenizer.ggml.model", "llama");
    gguf_kv_array(&f, "tokenizer.ggml.tokens", EBB_GGUF_STRING, 2);
    gguf_text(&f, "a", 1);
    gguf_text(&f, "b", 1);
    gguf_kv_array(&f, "tokenizer.ggml.token_type", EBB_GGUF_I32, 1);
    gguf_u32(&f, 1);
    expect_failure(&f, EBB_FORMAT, "tokenizer.ggml.token_type has 1 numbers for 2 tokens");

    gguf_head(&f, 3, 0, 2);
    gguf_kv_str(&f, "tokenizer.ggml.model", "llama");
    gguf_kv_u32(&f, "tokenizer.ggml.tokens", 2);
    expect_failure(&f, EBB_FORMAT, "tokenizer.ggml.tokens is not a list of strings");

    gguf_head(&f, 3, 0, 2);
    gguf_kv_str(&f, "tokenizer.ggml.model", "llama");
    gguf_kv_array(&f, "tokenizer.ggml.tokens", EBB_GGUF_STRING, 600000);
    for (int i = 0; i < 600000; i++)
        gguf_text(&f, "x", 1);
    expect_failure(&f, EBB_LIMIT, "tokenizer.ggml.tokens has 600000 items");
}

/* -- Real files ---------------------------------------------------------------------- */
static ebb_token id_of(const json_t *o, const char *key)
{
    return (ebb_token)json_integer_value(json_object_get(o, key));
}

/* The bytes of path.gz. */
static bool gunzip(const char *path, ebb_buf *out)
{
    char command[600], block[4096];
    size_t n;

    snprintf(command, sizeof command, "gzip -dc '%s.gz'", path);
    FILE *f = popen(command, "r");
    while (f && (n = fread(block, 1, sizeof block, f)) > 0)
        ebb_buf_add(out, block, n);
    return f && pclose(f) == 0 && out->len > 0 && !out->failed;
}

static void test_real_vocabularies(void **state)
{
    const char *path = ebb_test_shared_path("data/tokenizers/info.json");
    json_t *list = json_load_file(path, 0, NULL), *o;
    size_t i, n_opened = 0;

    (void)state;
    assert_non_null(list);
    json_array_foreach(list, i, o) {
        const char *name = json_string_value(json_object_get(o, "vocab"));
        ebb_error err = { 0 };
        ebb_model *m;
        char rest[128];
        snprintf(rest, sizeof rest, "data/tokenizers/%s", name);
        path = ebb_test_shared_path(rest);
        ebb_buf unpacked = { 0 };
        if (access(path, R_OK) != 0 && !gunzip(path, &unpacked))
            continue;
        ebb_status st = unpacked.len > 0 ? ebb_model_open_memory(unpacked.data, unpacked.len, name, &m, &err)
                                         : ebb_model_open(path, &m, &err);
        if (st != EBB_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(ebb_model_get_info(m)->n_vocab, json_integer_value(json_object_get(o, "n_tokens")));
        assert_int_equal(ebb_model_n_tensors(m), 0);
        assert_int_equal(ebb_model_check_tokenizer(m, NULL), EBB_OK);
        assert_int_equal(ebb_model_eos(m), id_of(o, "eos"));
        assert_true(ebb_model_bytes(m) < 64 << 20);
        ebb_model_close(m);
        ebb_buf_fini(&unpacked);
        n_opened++;
    }
    assert_int_equal(n_opened, json_array_size(list));
    json_decref(list);
}

static void test_a_real_model(void **state)
{
    ebb_token ids[32];
    ebb_model *m;
    size_t n;

    (void)state;
    assert_int_equal(ebb_model_open(ebb_test_shared_path("data/models/stories260K.gguf"), &m, NULL), EBB_OK);
    const ebb_model_info *i = ebb_model_get_info(m);
    assert_string_equal(i->arch, "llama");
    assert_string_equal(i->quantization, "F32");
    assert_int_equal(i->n_layers, 5);
    assert_int_equal(i->n_vocab, 512);
    assert_int_equal(i->kv_bytes_per_tok_f16, 5 * 4 * (8 + 8) * 2);
    assert_int_equal(ebb_model_tokenize(m, "Once upon a time", 16, EBB_TOK_BOS, ids, 32, &n, NULL), EBB_OK);
    assert_int_equal(ids[0], 1);

    ebb_detok *d = ebb_detok_new(m, false);
    ebb_buf text = { 0 };
    assert_non_null(d);
    for (size_t k = 1; k < n; k++) {
        size_t len = 0;
        const char *s = ebb_detok_push(d, ids[k], &len);
        ebb_buf_add(&text, s, len);
    }
    assert_string_equal(ebb_buf_text(&text), " Once upon a time");
    ebb_buf_fini(&text);
    ebb_detok_free(d);
    ebb_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_name_is_a_line), cmocka_unit_test(test_arch_is_a_short_line),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_unknown_architecture_and_no_tokenizer_open),
        cmocka_unit_test(test_tensors_and_templates),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_metadata_as_text),
        cmocka_unit_test(test_more_values_as_text),
        cmocka_unit_test(test_absurd_facts),
        cmocka_unit_test(test_vocabulary_lists_that_do_not_fit),
        cmocka_unit_test(test_real_vocabularies),
        cmocka_unit_test(test_a_real_model),
    };
    return cmocka_run_group_tests_name("model file", tests, NULL, NULL);
}
