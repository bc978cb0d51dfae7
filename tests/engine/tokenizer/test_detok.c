/* Streams from ids to text, and the way there and back for random text. */
#include "toy_vocab.h"

static const char *push_token(ebb_detok *d, ebb_token id)
{
    size_t n;
    const char *s = ebb_detok_push(d, id, &n);

    assert_int_equal(strlen(s), n);
    return s;
}

static void test_half_a_character_is_held_back(void **state)
{
    static toy t;
    ebb_tokenizer *tok;
    ebb_detok *d;
    size_t n;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add(&t, "<c>", EBB_VOCAB_CONTROL, 0);                /* 256 */
    toy_add(&t, "a\xC4\xA0\xC3\xB0", 1, 0);                  /* 257: 'a', ' ', F0 */
    tok = toy_open(&t);
    d = ebb_tokenizer_detok(tok, false);
    assert_string_equal(push_token(d, 257), "a ");
    assert_string_equal(push_token(d, 0x9F), "");
    assert_string_equal(push_token(d, 0x98), "");
    assert_string_equal(push_token(d, 256), "");             /* hidden, and interrupts nothing */
    assert_string_equal(push_token(d, 0x80), "\xF0\x9F\x98\x80");
    assert_string_equal(push_token(d, 0xC3), "");
    assert_string_equal(push_token(d, 'x'), "\xEF\xBF\xBDx");
    assert_string_equal(push_token(d, 0xFF), "\xEF\xBF\xBD");
    assert_string_equal(push_token(d, 0xEF), "");
    assert_string_equal(push_token(d, 'p'), "\xEF\xBF\xBDp");
    assert_string_equal(push_token(d, 0xE2), "");
    assert_string_equal(push_token(d, 0x82), "");
    assert_string_equal(ebb_detok_flush(d, &n), "\xEF\xBF\xBD");
    assert_int_equal(n, 3);
    assert_string_equal(ebb_detok_flush(d, &n), "");
    assert_string_equal(push_token(d, -1), "");
    assert_string_equal(push_token(d, 'y'), "y");
    ebb_detok_free(d);
    d = ebb_tokenizer_detok(tok, true);
    assert_string_equal(push_token(d, 256), "<c>");
    ebb_detok_free(d);
    ebb_detok_free(NULL);
    ebb_tokenizer_free(tok);
}

/* -- There and back --------------------------------------------------------------------- */

static size_t random_text(uint64_t *seed, char *out, size_t cap)
{
    size_t n = 0, want = toy_random(seed) % (cap - 8);
    bool bytes = toy_random(seed) % 4 == 0;

    while (n < want) {
        uint32_t r = toy_random(seed), cp = r % 16 < 9  ? 32 + r / 16 % 95
                                          : r % 16 < 12 ? (uint32_t) "\n\t  a\r"[r / 16 % 6]
                                                        : r / 16 % 0x30000;
        if (bytes)
            out[n++] = (char)r;
        else if (cp != 0x2581 && (cp < 0xD800 || cp > 0xDFFF))
            n += ebb_utf8_encode(cp, out + n);
    }
    return n;
}

/* The bytes of the pieces of text's ids are text. */
static void expect_same_text(const ebb_tokenizer *tok, const char *text, size_t n)
{
    ebb_token *ids = malloc((n + 1) * sizeof *ids);
    char *back = malloc(n + 64);
    size_t n_ids, at = 0;

    assert_int_equal(ebb_tokenizer_encode(tok, text, n, &(ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL },
                                          ids, n + 1, &n_ids, NULL),
                     EBB_OK);
    assert_true(n_ids <= n);
    for (size_t i = 0; i < n_ids; i++) {
        at += ebb_tokenizer_piece(tok, ids[i], true, back + at, n + 64 - at);
        assert_true(at <= n);
    }
    assert_int_equal(at, n);
    assert_memory_equal(back, text, n);
    free(ids);
    free(back);
}

static void add_common(toy *t, const char *space)
{
    static char texts[2][8][16];
    static const char *const words[] = { "th", "the", "in", "ing", "er", "he", "aa", "aaaa" };
    unsigned row = t->v.n_merges > 0;

    for (size_t i = 0; i < 8; i++) {
        toy_add(t, words[i], 1, -(float)i);
        snprintf(texts[row][i], sizeof texts[row][i], "%s%s", space, words[i]);
        toy_add(t, texts[row][i], 1, -(float)i - 0.5f);
    }
    toy_add(t, "<x>", EBB_VOCAB_USER, 0);
    toy_add(t, "<|y|>", EBB_VOCAB_CONTROL, 0);
}

static void test_random_text_comes_back(void **state)
{
    static const char *const pres[] = { "llama-bpe",    "qwen2",       "qwen35", "gpt-4o",    "tekken",
                                        "gpt-2",        "smollm",      "falcon", "default",   "deepseek-coder",
                                        "deepseek-llm", "deepseek-v3", "bloom",  "seed-coder" };
    static const char *const merges[] = { "t h", "th e", "i n", "in g", "e r", "h e", "a a", "aa aa", "\xC4\xA0 the" };
    static toy t;
    static char text[400];
    uint64_t seed = 2024;

    (void)state;
    for (size_t p = 0; p <= sizeof pres / sizeof pres[0]; p++) {
        bool is_spm = p == sizeof pres / sizeof pres[0];
        ebb_tokenizer *tok;
        if (is_spm) {
            toy_init_spm(&t);
            t.v.add_space_prefix = 0;
            toy_add(&t, "\xE2\x96\x81", 1, -20);
            add_common(&t, "\xE2\x96\x81");
        } else {
            toy_init_bpe(&t, pres[p]);
            for (size_t i = 0; i < sizeof merges / sizeof merges[0]; i++)
                toy_merge(&t, merges[i]);
            add_common(&t, "\xC4\xA0");
        }
        tok = toy_open(&t);
        for (int round = 0; round < 150; round++)
            expect_same_text(tok, text, random_text(&seed, text, sizeof text));
        ebb_tokenizer_free(tok);
    }
}

/* Runs that a quadratic scan, or a pattern that backs up, would not finish. */
static void test_long_runs(void **state)
{
    static const char *const pres[] = { "llama-bpe",      "gpt-4o", "default", "deepseek-llm",
                                        "deepseek-coder", "falcon", NULL };
    static const char *const runs[] = { "a", "A", " ", "\n", " \n", "9", "-", "\xFF", "\xE4\xB8\x80", "<", "aA" };
    const size_t n = 200000;
    char *text = malloc(n + 2);
    static toy t;

    (void)state;
    for (size_t p = 0; p < sizeof pres / sizeof pres[0]; p++) {
        ebb_tokenizer *tok;
        if (pres[p])
            toy_init_bpe(&t, pres[p]);
        else
            toy_init_spm(&t);
        t.v.add_space_prefix = 0;
        toy_merge(&t, "a a");
        toy_add(&t, "\xE2\x96\x81", 1, -20);
        add_common(&t, "\xC4\xA0");
        tok = toy_open(&t);
        for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
            for (size_t i = 0; i < n; i++)
                text[i] = runs[r][i % strlen(runs[r])];
            text[n] = 'z';
            expect_same_text(tok, text, n + 1);
        }
        ebb_tokenizer_free(tok);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_a_character_is_held_back),
        cmocka_unit_test(test_random_text_comes_back),
        cmocka_unit_test(test_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
