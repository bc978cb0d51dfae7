/* One word of a megabyte: the joins that its heap leaves out for a while change no id, its memory is a small
 * multiple of its bytes, also of blanks, which SentencePiece spells with three bytes, and it can be stopped. */
#include "ebb_alloc.h"
#include "toy_vocab.h"

enum { N_WORD = 1 << 20, BYTES_PER_BYTE = 16, BYTES_PER_BLANK = 12, LONGEST_BLANK = 16 };

#define SPELT_4 "\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81"
#define SPELT   3                /* bytes of a blank in a vocabulary */

/* In the order in which they are joined; no join makes one of an earlier pair possible. */
static const struct { const char *left, *right, *both, *merge; } pairs[] = {
    { "a", "b", "ab", "a b" },    { "b", "c", "bc", "b c" },       { "ab", "c", "abc", "ab c" },
    { "c", "c", "cc", "c c" },    { "a", "a", "aa", "a a" },       { "abc", "a", "abca", "abc a" },
};
enum { N_PAIRS = sizeof pairs / sizeof pairs[0] };

static char word[N_WORD + 1];
static ebb_token got[N_WORD], want[N_WORD];

static void make_word(void)
{
    uint64_t seed = 7;

    for (size_t i = 0; i < N_WORD; i++)
        word[i] = (char)('a' + toy_random(&seed) % 3);
}

/* The ids by as many passes over the word as there are pairs. */
static size_t join_by_passes(const ebb_tokenizer *tok)
{
    ebb_token left, right, both;
    size_t n = N_WORD, kept;

    for (size_t i = 0; i < n; i++)
        want[i] = ebb_tokenizer_find(tok, (char[]){ word[i], '\0' });
    for (size_t p = 0; p < N_PAIRS; p++) {
        left = ebb_tokenizer_find(tok, pairs[p].left);
        right = ebb_tokenizer_find(tok, pairs[p].right);
        both = ebb_tokenizer_find(tok, pairs[p].both);
        kept = 0;
        for (size_t i = 0; i < n; i++) {
            bool is_pair = i + 1 < n && want[i] == left && want[i + 1] == right;
            want[kept++] = is_pair ? both : want[i];
            i += is_pair;
        }
        n = kept;
    }
    return n;
}

static void check_word(ebb_tokenizer *tok)
{
    long long begin;
    size_t n;

    make_word();
    begin = alloc_begin();
    assert_int_equal(ebb_tokenizer_encode(tok, word, N_WORD, &(ebb_tokenize_opts){ 0 }, got, N_WORD, &n,
                                          NULL), EBB_OK);
    assert_in_range(alloc_peak_since(begin), 1, (long long)BYTES_PER_BYTE * N_WORD);
    assert_int_equal(n, join_by_passes(tok));
    assert_memory_equal(got, want, n * sizeof *got);
    ebb_tokenizer_free(tok);
}

static void test_bpe(void **state)
{
    static toy t;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    for (size_t p = 0; p < N_PAIRS; p++) {
        toy_add(&t, pairs[p].both, EBB_VOCAB_NORMAL, 0);
        toy_merge(&t, pairs[p].merge);
    }
    check_word(toy_open(&t));
}

static void test_spm(void **state)
{
    static toy t;

    (void)state;
    toy_init_spm(&t);
    t.v.add_space_prefix = 0;
    toy_add(&t, "a", EBB_VOCAB_NORMAL, -100);
    toy_add(&t, "b", EBB_VOCAB_NORMAL, -100);
    toy_add(&t, "c", EBB_VOCAB_NORMAL, -100);
    for (size_t p = 0; p < N_PAIRS; p++)
        toy_add(&t, pairs[p].both, EBB_VOCAB_NORMAL, -(float)p);
    check_word(toy_open(&t));
}

/* Tokens of 1, 2, 4, 8 and 16 blanks, as vocabularies of SentencePiece have them. */
static void test_blanks(void **state)
{
    static const char blanks[] = SPELT_4 SPELT_4 SPELT_4 SPELT_4;
    static toy t;
    ebb_tokenizer *tok;
    long long begin;
    size_t n;

    (void)state;
    toy_init_spm(&t);
    t.v.add_space_prefix = 0;
    for (size_t i = 1; i <= LONGEST_BLANK; i *= 2)
        toy_add_n(&t, blanks, i * SPELT, EBB_VOCAB_NORMAL, -(float)i);
    tok = toy_open(&t);
    memset(word, ' ', N_WORD);
    begin = alloc_begin();
    assert_int_equal(ebb_tokenizer_encode(tok, word, N_WORD, &(ebb_tokenize_opts){ 0 }, got, N_WORD, &n,
                                          NULL), EBB_OK);
    assert_in_range(alloc_peak_since(begin), 1, (long long)BYTES_PER_BLANK * N_WORD);
    assert_int_equal(n, N_WORD / LONGEST_BLANK);
    ebb_tokenizer_free(tok);
}

enum { ASKED = 3 };              /* times until it is stopped: early in a word of a megabyte */

static bool stop_soon(void *n_asked)
{
    return ++*(int *)n_asked == ASKED;
}

static void check_stopped(ebb_tokenizer *tok)
{
    int n_asked = 0;
    ebb_error err = { 0 };
    size_t n;

    assert_int_equal(ebb_tokenizer_encode(tok, word, N_WORD,
                                          &(ebb_tokenize_opts){ .stop = stop_soon, .stop_arg = &n_asked },
                                          got, N_WORD, &n, &err), EBB_CANCELED);
    assert_int_equal(n_asked, ASKED);            /* and not once more */
    assert_int_equal(n, 0);
    ebb_tokenizer_free(tok);
}

/* However much of the work is left, nothing of it is done any more. */
static void test_stopped(void **state)
{
    static toy bpe, spm;

    (void)state;
    memset(word, 'a', N_WORD);
    toy_init_bpe(&bpe, "gpt-2");
    toy_add(&bpe, "aa", EBB_VOCAB_NORMAL, 0);
    toy_merge(&bpe, "a a");
    check_stopped(toy_open(&bpe));
    toy_init_spm(&spm);
    toy_add(&spm, "aa", EBB_VOCAB_NORMAL, -1);
    check_stopped(toy_open(&spm));
    for (size_t i = 0; i < N_WORD; i += 2)       /* words of a letter: the work is in how many there are */
        word[i] = ' ';
    check_stopped(toy_open(&bpe));
    check_stopped(toy_open(&spm));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bpe), cmocka_unit_test(test_spm),
                                        cmocka_unit_test(test_blanks), cmocka_unit_test(test_stopped) };

    alloc_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
