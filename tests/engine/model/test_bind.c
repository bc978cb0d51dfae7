/* Binding: a file that does not fit its architecture is refused with one line
 * that names what is wrong. */
#include "ebb_test.h"

#include "ebb/engine.h"
#include "support/tiny_model.h"

static char *bytes;
static size_t n_bytes;

static int setup(void **state)
{
    ebb_tiny_opts o = { .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .head_dim = 32 };

    (void)state;
    bytes = ebb_tiny_bytes(&o, &n_bytes);
    return bytes ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(bytes);
    return 0;
}

/* The place behind `name` in the file. */
static char *text_behind(const char *name)
{
    char *p = memmem(bytes, n_bytes, name, strlen(name));

    assert_non_null(p);
    return p + strlen(name);
}

/* Opening must fail with `code` and say `say`. */
static void expect_refusal(ebb_status code, const char *say)
{
    ebb_engine_opts o = { .n_ctx = 32, .n_threads = 1 };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    ebb_model *m = NULL;

    assert_int_equal(ebb_model_open_memory(bytes, n_bytes, "tiny", &m, &err), EBB_OK);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), code);
    assert_null(e);
    if (!strstr(err.msg, say))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, say);
    ebb_model_close(m);
}

static void test_unknown_architecture(void **state)
{
    (void)state;
    memcpy(text_behind("general.architecture") + 12, "lxama", 5);
    expect_refusal(EBB_UNSUPPORTED, "architecture 'lxama' is not supported; supported are: llama,");
    memcpy(text_behind("general.architecture") + 12, "llama", 5);
}

/* Files that only another model's inner states make sense of. */
static void test_drafter(void **state)
{
    ebb_tiny_opts o = { .arch = "gemma3", .type = EBB_TYPE_Q8_0 };
    char *llama = bytes;
    size_t n_llama = n_bytes;

    (void)state;
    bytes = ebb_tiny_bytes(&o, &n_bytes);
    assert_non_null(bytes);
    memcpy(text_behind("general.architecture") + 12, "eagle3", 6);
    expect_refusal(EBB_UNSUPPORTED, "'eagle3' is a drafter that reads hidden states of the model");
    free(bytes);
    bytes = llama;
    n_bytes = n_llama;
}

static void test_missing_tensor(void **state)
{
    char *p = text_behind("blk.1.ffn_u");

    (void)state;
    *p = 'q';
    expect_refusal(EBB_FORMAT, "tiny: tensor blk.1.ffn_up.weight is missing");
    *p = 'p';
}

static void test_surplus_tensor(void **state)
{
    char *p = text_behind("outpu");              /* output_norm comes last: the other one begins so */

    (void)state;
    while (memcmp(p, "t.weight", 8) != 0) {
        p = memmem(p, n_bytes - (size_t)(p - bytes), "outpu", 5);
        assert_non_null(p);
        p += 5;
    }
    *p = 'x';                                    /* tied now */
    expect_refusal(EBB_FORMAT, "tensor outpux.weight: llama has no use for it");
    *p = 't';
}

static void test_other_shape(void **state)
{
    char *p = text_behind("blk.0.attn_k.weight") + 12; /* dims[1] */
    uint64_t rows;

    (void)state;
    memcpy(&rows, p, 8);
    assert_int_equal(rows, 64);
    rows = 32;
    memcpy(p, &rows, 8);
    expect_refusal(EBB_FORMAT, "tensor blk.0.attn_k.weight: 64 x 32 where the metadata says 64 x 64");
    rows = 64;
    memcpy(p, &rows, 8);
}

static void test_unsupported_type(void **state)
{
    char *p = text_behind("blk.1.ffn_gate.weight") + 20;
    uint32_t type = EBB_TYPE_I16;

    (void)state;
    memcpy(p, &type, 4);
    expect_refusal(EBB_UNSUPPORTED, "tensor blk.1.ffn_gate.weight: type I16 is not supported yet");
    type = EBB_TYPE_Q8_0;
    memcpy(p, &type, 4);
}

static void test_missing_key(void **state)
{
    char *p = text_behind("llama.block_coun");

    (void)state;
    *p = 'x';
    expect_refusal(EBB_FORMAT, "tiny: metadata llama.block_count is missing");
    *p = 't';
}

/* What is missing in a LoRA adapter does not say that it is one. */
static void test_no_language_model(void **state)
{
    char *key = text_behind("general.name") - strlen("general.name"), *p = text_behind("llama.block_coun");

    (void)state;
    memcpy(key, "adapter.type", 12);
    *p = 'x';
    expect_refusal(EBB_FORMAT, "tiny: is no language model (adapter): metadata llama.block_count is missing");
    *p = 't';
    memcpy(key, "general.name", 12);
}

static void test_impossible_numbers(void **state)
{
    static const struct { const char *key; uint32_t value, right; ebb_status code; const char *say; } cases[] = {
        { "llama.attention.head_count_kv", 3, 2, EBB_FORMAT, "4 heads are not a multiple of 3 KV heads" },
        { "llama.attention.head_count_kv", 0, 2, EBB_FORMAT, "head_count_kv: 0" },
        { "llama.attention.head_count", 0, 4, EBB_FORMAT, "head_count" },
        { "llama.block_count", 3, 2, EBB_FORMAT, "blk.2.attn_norm.weight is missing" },
        { "llama.attention.key_length", 16384, 32, EBB_FORMAT, "attn" },
        { "llama.rope.dimension_count", 64, 32, EBB_FORMAT, "rope.dimension_count: 64" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[64], *p;

        snprintf(key, sizeof key, "%s%c%c%c%c", cases[i].key, 4, 0, 0, 0);
        p = memmem(bytes, n_bytes, key, strlen(cases[i].key) + 4);
        assert_non_null(p);
        p += strlen(cases[i].key) + 4;
        memcpy(p, &cases[i].value, 4);
        expect_refusal(cases[i].code, cases[i].say);
        memcpy(p, &cases[i].right, 4);
    }
}

static void test_epsilon_of_no_norm(void **state)
{
    static const char key[] = "llama.attention.layer_norm_rms_epsilon\x06\0\0";   /* and the last byte of the type, 0 */
    static const float wrong[] = { -1, -1e-30f, 1, 3e38f };
    float right;
    char *p = memmem(bytes, n_bytes, key, sizeof key);

    (void)state;
    assert_non_null(p);
    p += sizeof key;
    memcpy(&right, p, sizeof right);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(p, &wrong[i], sizeof wrong[i]);
        expect_refusal(EBB_FORMAT, "metadata llama.attention.layer_norm_rms_epsilon is");
    }
    memcpy(p, &right, sizeof right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drafter),              cmocka_unit_test(test_no_language_model),
        cmocka_unit_test(test_unknown_architecture), cmocka_unit_test(test_missing_tensor),
        cmocka_unit_test(test_surplus_tensor),       cmocka_unit_test(test_epsilon_of_no_norm),
        cmocka_unit_test(test_other_shape),          cmocka_unit_test(test_unsupported_type),
        cmocka_unit_test(test_missing_key),          cmocka_unit_test(test_impossible_numbers),
    };

    return cmocka_run_group_tests_name("bind", tests, setup, teardown);
}
