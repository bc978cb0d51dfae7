/* BPE of characters, as Gemma 4 has it: a small vocabulary of that kind (gemma4.json: 1037 tokens, 622 merges) and the
 * ids that llama.cpp 0.7.0 gives for it. */
#include "toy_vocab.h"

#include <jansson.h>

#define FILE_NAME "tests/engine/tokenizer/gemma4.json"
#define MAX_TOKENS 2048

typedef struct vocab {
    json_t       *json;
    ebb_vocab     v;
    ebb_vocab_str tokens[MAX_TOKENS], merges[MAX_TOKENS];
    int32_t       types[MAX_TOKENS];
} vocab;

static size_t read_texts(json_t *list, ebb_vocab_str *out)
{
    size_t n = json_array_size(list);

    assert_true(n > 0 && n <= MAX_TOKENS);
    for (size_t i = 0; i < n; i++)
        out[i] = (ebb_vocab_str){ json_string_value(json_array_get(list, i)),
                                  json_string_length(json_array_get(list, i)) };
    return n;
}

static vocab *load(void)
{
    static vocab v;

    if (v.json)
        return &v;
    v.json = json_load_file(FILE_NAME, JSON_ALLOW_NUL, NULL);
    assert_non_null(v.json);
    v.v = (ebb_vocab)EBB_VOCAB_EMPTY;
    v.v.model = "gemma4";
    v.v.n_tokens = read_texts(json_object_get(v.json, "tokens"), v.tokens);
    v.v.n_merges = read_texts(json_object_get(v.json, "merges"), v.merges);
    for (size_t i = 0; i < v.v.n_tokens; i++)
        v.types[i] = (int32_t)json_integer_value(json_array_get(json_object_get(v.json, "types"), i));
    v.v.tokens = v.tokens;
    v.v.merges = v.merges;
    v.v.types = v.types;
    v.v.eos = 1;
    v.v.bos = 2;
    v.v.unk = 3;
    v.v.add_bos = 0;                             /* BOS is added all the same */
    v.v.add_space_prefix = 0;
    return &v;
}

static int unload(void **state)
{
    (void)state;
    json_decref(load()->json);
    return 0;
}

static ebb_tokenizer *open_vocab(void)
{
    ebb_tokenizer *t;

    assert_int_equal(ebb_tokenizer_new(&load()->v, &t, NULL), EBB_OK);
    return t;
}

static void check_ids(const ebb_tokenizer *t, json_t *text, unsigned flags, json_t *want)
{
    ebb_token ids[512];
    size_t n;

    assert_int_equal(ebb_tokenizer_encode(t, json_string_value(text), json_string_length(text),
                                          &(ebb_tokenize_opts){ .flags = flags }, ids, 512, &n, NULL),
                     EBB_OK);
    if (n != json_array_size(want))
        fail_msg("%zu ids, not %zu: %s", n, json_array_size(want), json_string_value(text));
    for (size_t i = 0; i < n; i++)
        if (ids[i] != json_integer_value(json_array_get(want, i)))
            fail_msg("id %zu is %d: %s", i, ids[i], json_string_value(text));
}

static void test_ids(void **state)
{
    ebb_tokenizer *t = open_vocab();
    json_t *row;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(load()->json, "rows"), i, row) {
        check_ids(t, json_object_get(row, "text"), EBB_TOK_BOS | EBB_TOK_SPECIAL, json_object_get(row, "special"));
        check_ids(t, json_object_get(row, "text"), 0, json_object_get(row, "plain"));
    }
    assert_true(i > 100);
    ebb_tokenizer_free(t);
}

/* The pieces of a text's ids are that text. */
static void test_text_comes_back(void **state)
{
    ebb_tokenizer *t = open_vocab();
    json_t *row;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(load()->json, "rows"), i, row) {
        json_t *ids = json_object_get(row, "special"), *text = json_object_get(row, "text");
        char out[1024];
        size_t n = 0;

        for (size_t k = 1; k < json_array_size(ids); k++)        /* behind BOS */
            n += ebb_tokenizer_piece(t, (ebb_token)json_integer_value(json_array_get(ids, k)), true, out + n,
                                     sizeof out - n);
        if (strstr(json_string_value(text), "\xE2\x96\x81"))     /* is a space from now on */
            continue;
        assert_int_equal(n, json_string_length(text));
        assert_memory_equal(out, json_string_value(text), n);
    }
    ebb_tokenizer_free(t);
}

static void test_bytes_that_are_no_text(void **state)
{
    ebb_tokenizer *t = open_vocab();
    ebb_token first = ebb_tokenizer_find(t, "<0x00>");
    char want[64];

    (void)state;
    snprintf(want, sizeof want, "%d %d", first + 0xFF, first + 0xC3);
    assert_string_equal(toy_ids(t, "\xFF\xC3", 0), want);
    ebb_tokenizer_free(t);
}

static void test_what_ends_a_turn(void **state)
{
    ebb_tokenizer *t = open_vocab();

    (void)state;
    assert_true(ebb_tokenizer_is_eog(t, ebb_tokenizer_find(t, "<turn|>")));
    assert_true(ebb_tokenizer_is_eog(t, ebb_tokenizer_find(t, "<|tool_response>")));
    assert_true(ebb_tokenizer_is_eog(t, ebb_tokenizer_find(t, "<eos>")));
    assert_false(ebb_tokenizer_is_control(t, ebb_tokenizer_find(t, "<channel|>")));
    assert_false(ebb_tokenizer_is_eog(t, ebb_tokenizer_find(t, "<|turn>")));
    ebb_tokenizer_free(t);
}

static void test_without_merges_it_is_none(void **state)
{
    ebb_vocab v = load()->v;
    ebb_tokenizer *t;

    (void)state;
    v.n_merges = 0;
    assert_int_equal(ebb_tokenizer_new(&v, &t, NULL), EBB_FORMAT);
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_text_comes_back),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_what_ends_a_turn),
        cmocka_unit_test(test_without_merges_it_is_none),
    };

    return cmocka_run_group_tests_name("tokenizer of gemma4", tests, NULL, unload);
}
