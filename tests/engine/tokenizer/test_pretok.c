/* Pre-tokenizer patterns: what they cut, with the JIT and without. */
#include "base/buf.h"
#include "tokenizer/pretok.h"
#include "toy_vocab.h"

static bool collect_word(void *arg, const char *word, size_t n)
{
    ebb_buf *b = arg;

    assert_true(n > 0);
    if (b->len > 0)
        ebb_buf_addc(b, '|');
    return ebb_buf_add(b, word, n);
}

static void expect_words(const char *pre, const char *text, const char *want)
{
    for (int jit = 0; jit < 2; jit++) {
        ebb_pretok *p;
        ebb_buf words = { 0 };

        assert_int_equal(ebb_pretok_new(pre, jit, &p, NULL), EBB_OK);
        assert_int_equal(ebb_pretok_split(p, text, strlen(text), collect_word, &words, NULL), EBB_OK);
        assert_string_equal(ebb_buf_text(&words), want);
        ebb_buf_fini(&words);
        ebb_pretok_free(p);
    }
}

static void test_families(void **state)
{
    (void)state;
    expect_words("llama-bpe", "I'Ll say  12345  times\n\n x!?\n", "I|'Ll| say| | |123|45| | times|\n\n| x|!?\n");
    expect_words("qwen2", "a 123 it's", "a| |1|2|3| it|'s");
    expect_words("qwen35", "e\xCC\x81t\xC3\xA9", "e\xCC\x81t\xC3\xA9");
    expect_words("qwen2", "e\xCC\x81t", "e|\xCC\x81t");
    expect_words("gpt-4o", "camelCase HTTPServer don't a/\n", "camel|Case| HTTPServer| don't| a|/\n");
    expect_words("tekken", "camelCase 12", "camel|Case| |1|2");
    expect_words("gpt-2", "It's  12 o'clock\t\tx", "It|'s| | 12| o|'|clock|\t|\t|x");
    expect_words("smollm", "in 2024", "in| |2|0|2|4");
    expect_words("starcoder", "v12", "v|1|2");
    expect_words("falcon", "a+b 12345", "a|+|b| |123|45");
    expect_words("default", "x=1234", "x|=|123|4");
    expect_words("deepseek-coder", "if (x)\n 12", "if| (|x|)|\n| |1|2");
    expect_words("deepseek-llm", "go 123  ", "go| |123|  ");
    expect_words("deepseek-v3", "1234.append(x)", "123|4|.append|(x|)");
    expect_words("tiny_aya", "1234567 it's\n", "1|234|567| it's|\n");
    expect_words("youtu", "ABc 123 \xE4\xB8\x80\xE4\xBA\x8C" "d", "ABc| |1|2|3| |\xE4\xB8\x80\xE4\xBA\x8C|d");
    expect_words("minicpm5", "a12345 b", "a|123|45| b");
    expect_words("kimi-k2", "1234 \xE4\xB8\x80\xE4\xBA\x8C" "don't", "123|4| |\xE4\xB8\x80\xE4\xBA\x8C|don't");
    expect_words("superbpe", "so many words 1234", "so many words |1|234");
    expect_words("exaone-moe", "two words 12", "two words| |1|2");
    expect_words("bloom", "one two, three", "one| two|,| three");
    expect_words("", "a b", "a| b");
    expect_words("gpt-2", "", "");
}

static bool tally_word(void *arg, const char *word, size_t n)
{
    size_t *n_words = arg;

    (void)word;
    (void)n;
    return ++*n_words > 0;
}

/* A run of n digits and what stands behind it, cut in time with n: with its square it would take an hour. */
static void expect_groups(const char *pre, size_t n, char behind, size_t n_words)
{
    char *text = malloc(n + 1);
    size_t counted = 0;
    ebb_pretok *p;

    assert_non_null(text);
    memset(text, '7', n);
    text[n] = behind;
    assert_int_equal(ebb_pretok_new(pre, true, &p, NULL), EBB_OK);
    assert_int_equal(ebb_pretok_split(p, text, n + 1, tally_word, &counted, NULL), EBB_OK);
    assert_int_equal(counted, n_words);
    ebb_pretok_free(p);
    free(text);
}

static void test_digits_by_threes(void **state)
{
    (void)state;
    expect_words("tiny_aya", "12 345 6789 1234x 12", "12| |345| |6|789| |123|4|x| |12");
    expect_words("tiny_aya", "1\xC2\xBD" "2345 a1234 _12345", "1\xC2\xBD|2|345| a|1|234| _|12|345");
    expect_words("superbpe", "12 345 6789 1234x a12345", "12| |345| |6|789| |1|234|x a|12|345");
    expect_words("superbpe", "1234\xC2\xBD" "12345", "1|234|\xC2\xBD|12|345");
    expect_groups("tiny_aya", 1000000, ' ', 333335);
    expect_groups("tiny_aya", 1000000, 'x', 333335);
    expect_groups("superbpe", 1000000, 'x', 333335);
}

static void test_white_space_is_that_of_unicode(void **state)
{
    (void)state;
    expect_words("llama-bpe", "a\xC2\xA0\xC2\xA0" "b", "a|\xC2\xA0|\xC2\xA0" "b");
    expect_words("gpt-2", "a\xE1\xA0\x8E" "b", "a|\xE1\xA0\x8E|b"); /* U+180E is none */
    expect_words("gpt-2", "a\xC2\x85\xC2\x85" "b", "a|\xC2\x85|\xC2\x85|b");
}

static void test_broken_utf8_stands_alone(void **state)
{
    (void)state;
    expect_words("gpt-2", "ab\xFFzz\xE2\x82 c", "ab|\xFF|zz|\xE2\x82| c");
    expect_words("gpt-2", "\xEF\xBF\xBD", "\xEF\xBF\xBD");
    expect_words("gpt-2", "x\xF0\x9F", "x|\xF0\x9F");
}

static bool stop_at_word(void *arg, const char *word, size_t n)
{
    (void)word;
    (void)n;
    return --*(int *)arg > 0;
}

static void test_a_word_may_stop_it(void **state)
{
    ebb_pretok *p;
    ebb_error err;
    int left = 2;

    (void)state;
    assert_int_equal(ebb_pretok_new("gpt-2", true, &p, &err), EBB_OK);
    assert_int_equal(ebb_pretok_split(p, "a b c d", 7, stop_at_word, &left, &err), EBB_NOMEM);
    assert_int_equal(left, 0);
    ebb_pretok_free(p);
}

/* The JIT and the interpreter cut random text alike, and lose nothing. */
static bool count_word(void *arg, const char *word, size_t n)
{
    uint64_t *sum = arg;

    (void)word;
    sum[0] = sum[0] * 31 + n;
    sum[1] += n;
    return true;
}

static void test_jit_and_interpreter_agree(void **state)
{
    static const char *const pres[] = {
        "llama-bpe", "qwen35", "gpt-4o", "tekken", "falcon", "default", "deepseek-llm"
    };
    static const char *const bits[] = { "a",  "B",    " ",        "\n",       "1",
                                        "'s", ".",    "\xC3\xA9", "\xCC\x81", "\xE4\xB8\x80",
                                        "\t", "\xFF", "/",        "\xC7\x85" };
    uint64_t seed = 5;

    (void)state;
    for (size_t p = 0; p < sizeof pres / sizeof pres[0]; p++) {
        ebb_pretok *fast, *slow;
        assert_int_equal(ebb_pretok_new(pres[p], true, &fast, NULL), EBB_OK);
        assert_int_equal(ebb_pretok_new(pres[p], false, &slow, NULL), EBB_OK);
        for (int round = 0; round < 200; round++) {
            char text[256] = "";
            uint64_t one[2] = { 0 }, two[2] = { 0 };
            for (unsigned i = toy_random(&seed) % 40; i > 0; i--)
                strcat(text, bits[toy_random(&seed) % (sizeof bits / sizeof bits[0])]);
            assert_int_equal(ebb_pretok_split(fast, text, strlen(text), count_word, one, NULL), EBB_OK);
            assert_int_equal(ebb_pretok_split(slow, text, strlen(text), count_word, two, NULL), EBB_OK);
            assert_int_equal(one[0], two[0]);
            assert_int_equal(one[1], strlen(text));
        }
        assert_true(ebb_pretok_bytes(fast) >= ebb_pretok_bytes(slow));
        ebb_pretok_free(fast);
        ebb_pretok_free(slow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_digits_by_threes),
        cmocka_unit_test(test_white_space_is_that_of_unicode),
        cmocka_unit_test(test_broken_utf8_stands_alone),
        cmocka_unit_test(test_a_word_may_stop_it),
        cmocka_unit_test(test_jit_and_interpreter_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
