/* 2,000 damaged files: opened, used as far as they open, and thrown away.
 * No crash, no hang, and never more heap than the file's size + 64 MiB. */
#include "gguf_damage.h"

#include "ebb_alloc.h"

#include "ebb/experimental/inspect.h"
#include "ebb/model.h"
#include "ebb/experimental/type.h"
#include "os/file.h"

#define SLACK ((long long)64 << 20)

/* -- Use ----------------------------------------------------------------------------- */
static void use_model(const ebb_model *m)
{
    static const char text[] = "Once upon a time, 3 <s>caf\xc3\xa9\xff 12345";
    ebb_token ids[64];
    size_t n = 0;
    char buf[40];
    ebb_tensor_info t;

    for (size_t i = 0; i < ebb_model_n_meta(m); i++) {
        memset(buf, 'x', sizeof buf);
        assert_non_null(ebb_model_meta(m, i, buf, sizeof buf));
        assert_non_null(memchr(buf, '\0', sizeof buf));
    }
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++)
        ebb_model_tensor(m, i, &t);
    if (ebb_model_tokenize(m, text, sizeof text - 1, EBB_TOK_BOS | EBB_TOK_SPECIAL, ids, 64, &n, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n && i < 64; i++)
        ebb_model_piece(m, ids[i], true, buf, sizeof buf);
}

/* The file in exactly its own bytes, so that a sanitizer sees one byte too far. */
static void try_one(const ebb_buf *f, bool with_tokenizer)
{
    char *exact = malloc(f->len ? f->len : 1);
    long long begin = alloc_begin(), most = (long long)f->len + SLACK;
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_model *m;

    assert_non_null(exact);
    if (f->len)
        memcpy(exact, f->data, f->len);
    if (ebb_gguf_open_memory(exact, f->len, "mutant", &g, &err) != EBB_OK)
        gguf_check_failure(&err);
    else
        gguf_use(g);
    ebb_gguf_close(g);
    err = (ebb_error){ 0 };
    if (with_tokenizer) {
        if (ebb_model_open_memory(exact, f->len, "mutant", &m, &err) != EBB_OK)
            gguf_check_failure(&err);
        else
            use_model(m);
        ebb_model_close(m);
    }
    if (alloc_peak_since(begin) > most)
        fail_msg("%lld bytes of heap for a file of %zu", alloc_peak_since(begin), f->len);
    free(exact);
}

/* n mutants of `base`, damaged within the first `span` bytes; every nth also with its tokenizer. */
static void mutate_model(const ebb_buf *base, size_t span, int n, int every)
{
    ebb_buf f = { 0 };

    for (int i = 0; i < n; i++) {
        ebb_buf_clear(&f);
        ebb_buf_add(&f, base->data, base->len);
        for (uint64_t edits = 1 + gguf_random_below(4); edits > 0; edits--)
            gguf_damage(&f, span);
        try_one(&f, i % every == 0);
    }
    ebb_buf_fini(&f);
}

/* -- Bases --------------------------------------------------------------------------- */
static void add_vocab(ebb_buf *f, const char *model)
{
    static const char *const tokens[] = { "<unk>", "<s>", "</s>", "a", "b", "ab", "c", "\xc4\xa0", "O", "n", "on" };
    const int32_t n = sizeof tokens / sizeof tokens[0];

    gguf_kv_str(f, "tokenizer.ggml.model", model);
    gguf_kv_array(f, "tokenizer.ggml.tokens", EBB_GGUF_STRING, n);
    for (int i = 0; i < n; i++)
        gguf_text(f, tokens[i], strlen(tokens[i]));
    gguf_kv_array(f, "tokenizer.ggml.scores", EBB_GGUF_F32, n);
    for (int i = 0; i < n; i++)
        ebb_buf_add(f, &(float){ (float)-i }, sizeof(float));
    gguf_kv_array(f, "tokenizer.ggml.token_type", EBB_GGUF_I32, n);
    for (int32_t i = 0; i < n; i++)
        ebb_buf_add(f, &(int32_t){ i == 0 ? 2 : i < 3 ? 3 : 1 }, sizeof(int32_t));
    gguf_kv_array(f, "tokenizer.ggml.merges", EBB_GGUF_STRING, 2);
    gguf_text(f, "a b", 3);
    gguf_text(f, "o n", 3);
    gguf_kv_u32(f, "tokenizer.ggml.bos_token_id", 1);
    gguf_kv_u32(f, "tokenizer.ggml.eos_token_id", 2);
}

static void build_small(ebb_buf *f, const char *tokenizer)
{
    const double base = 10000;

    gguf_head(f, 3, 3, 15);
    gguf_kv_str(f, "general.architecture", "llama");
    gguf_kv_str(f, "general.name", "Small");
    gguf_kv_u32(f, "llama.block_count", 2);
    gguf_kv_u32(f, "llama.embedding_length", 64);
    gguf_kv_u32(f, "llama.attention.head_count", 4);
    gguf_kv_array(f, "llama.attention.head_count_kv", EBB_GGUF_U32, 2);
    gguf_u32(f, 4);
    gguf_u32(f, 2);
    gguf_kv_raw(f, "llama.rope.freq_base", EBB_GGUF_F64, &base, sizeof base);
    gguf_kv_raw(f, "tokenizer.ggml.add_bos_token", EBB_GGUF_BOOL, "\1", 1);
    add_vocab(f, tokenizer);
    gguf_tensor(f, "token_embd.weight", EBB_TYPE_F16, 0, 2, (uint64_t)64, (uint64_t)11);
    gguf_tensor(f, "blk.0.attn_q.weight", EBB_TYPE_Q8_0, 1408, 2, (uint64_t)64, (uint64_t)4);
    gguf_tensor(f, "output_norm.weight", EBB_TYPE_F32, 1696, 1, (uint64_t)64);
    gguf_data(f, 32, 1696 + 256);
}

static void test_small_files(void **state)
{
    static const char *const tokenizers[] = { "llama", "gpt2" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        ebb_buf f = { 0 };
        ebb_model *m;
        ebb_error err = { 0 };
        build_small(&f, tokenizers[i]);
        if (ebb_model_open_memory(f.data, f.len, "small", &m, &err) != EBB_OK)
            fail_msg("%s", err.msg);
        use_model(m);
        ebb_model_close(m);
        mutate_model(&f, f.len, 700, 1);
        ebb_buf_fini(&f);
    }
}

static void mutate_shared(const char *name, size_t span, int n, int every)
{
    ebb_buf f = { 0 };

    assert_int_equal(ebb_file_slurp(ebb_test_shared_path(name), 16 << 20, &f, NULL), EBB_OK);
    mutate_model(&f, span, n, every);
    ebb_buf_fini(&f);
}

static void test_a_real_model(void **state)
{
    (void)state;
    mutate_shared("data/models/stories260K.gguf", 11347, 400, 1);        /* its header */
}

static void test_real_vocabularies(void **state)
{
    (void)state;
    mutate_shared("data/tokenizers/ggml-vocab-phi-3.gguf", (size_t)1 << 20, 150, 10);
    mutate_shared("data/tokenizers/ggml-vocab-deepseek-coder.gguf", (size_t)1 << 21, 150, 10);
}

/* The most expensive vocabulary that the limits let through: as many tokens and merges as allowed, all tiny. */
static void test_a_bloated_vocabulary(void **state)
{
    static const char *const tokenizers[] = { "llama", "gpt2" };
    const uint64_t n_tokens = (uint64_t)1 << 19, n_merges = (uint64_t)3 << 18;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ebb_buf f = { 0 };
        gguf_head(&f, 3, 0, 3);
        gguf_kv_str(&f, "tokenizer.ggml.model", tokenizers[i]);
        gguf_kv_array(&f, "tokenizer.ggml.tokens", EBB_GGUF_STRING, n_tokens);
        for (uint64_t k = 0; k < n_tokens; k++)
            gguf_text(&f, "\1\2\3", k % 4);
        gguf_kv_array(&f, "tokenizer.ggml.merges", EBB_GGUF_STRING, n_merges);
        for (uint64_t k = 0; k < n_merges; k++)
            gguf_text(&f, "\1 \2", 3);
        try_one(&f, true);
        ebb_buf_fini(&f);
    }
}

/* Every allocation of opening a model fails once: no crash, no leak, and the reason is named. */
static void test_no_memory(void **state)
{
#if ALLOC_CAN_FAIL
    static const char *const tokenizers[] = { "llama", "gpt2" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        ebb_buf f = { 0 };
        bool reached = true;
        build_small(&f, tokenizers[i]);
        for (int n = 1; reached; n++) {
            long long begin = alloc_begin();
            ebb_error err = { 0 };
            ebb_model *m;
            alloc_fail_nth(n);
            ebb_status st = ebb_model_open_memory(f.data, f.len, "small", &m, &err);
            reached = alloc_fail_nth(0);
            assert_true(st == EBB_OK || st == EBB_NOMEM);
            assert_true((st == EBB_OK) == (m != NULL));
            if (st != EBB_OK)
                gguf_check_failure(&err);
            ebb_model_close(m);
            assert_int_equal(atomic_load(&alloc_now), begin);
        }
        ebb_buf_fini(&f);
    }
#else
    (void)state;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_files),
        cmocka_unit_test(test_a_real_model),
        cmocka_unit_test(test_real_vocabularies),
        cmocka_unit_test(test_a_bloated_vocabulary),
        cmocka_unit_test(test_no_memory),
    };

    alloc_start();
    alarm(300);                                  /* a hang becomes a failure */
    return cmocka_run_group_tests_name("gguf mutants", tests, NULL, NULL);
}
