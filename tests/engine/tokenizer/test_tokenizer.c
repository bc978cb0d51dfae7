/* Tokenizers of hand-built vocabularies: order of joins, special tokens, flags, hostile input. */
#include "toy_vocab.h"

#include <math.h>

#include "tokenizer/special.h"

/* -- Byte-level BPE --------------------------------------------------------------- */

static void test_bpe_joins_lowest_rank_then_leftmost(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_add(&t, "he", 1, 0);                     /* 256 */
    toy_add(&t, "el", 1, 0);                     /* 257 */
    toy_add(&t, "aa", 1, 0);                     /* 258 */
    toy_add(&t, "aaaa", 1, 0);                   /* 259 */
    toy_add(&t, "\xC4\xA0h", 1, 0);              /* 260: " h" */
    toy_merge(&t, "e l");
    toy_merge(&t, "h e");
    toy_merge(&t, "a a");
    toy_merge(&t, "aa aa");
    toy_merge(&t, "\xC4\xA0 h");
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "hel", 0), "104 257");        /* "e l" outranks "h e" */
    assert_string_equal(toy_ids(tok, "he", 0), "256");
    assert_string_equal(toy_ids(tok, "aaaaaaa", 0), "259 258 97");
    assert_string_equal(toy_ids(tok, " h h", 0), "260 260");
    assert_string_equal(toy_ids(tok, " he", 0), "32 256");
    assert_string_equal(toy_ids(tok, "", 0), "");
    assert_string_equal(toy_ids(tok, "\xFF\xC3", 0), "255 195");   /* no UTF-8 */
    ebb_tokenizer_free(tok);
}

static void test_bpe_ignores_merges_where_the_family_does(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "llama-bpe");
    toy_add(&t, "\xC4\xA0word", 1, 0);           /* no merge leads here */
    toy_merge(&t, "w o");
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, " word", 0), "256");
    ebb_tokenizer_free(tok);
    t.v.pre = "qwen2";
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, " word", 0), "32 119 111 114 100");
    ebb_tokenizer_free(tok);
}

static void test_bpe_drops_bytes_it_cannot_spell(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init(&t, "gpt2", "gpt-2");
    toy_add(&t, "a", 1, 0);
    toy_add(&t, "b", 1, 0);
    toy_add(&t, "ab", 1, 0);
    toy_merge(&t, "a b");
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "a\x01" "b-ab", 0), "0 1 2");
    ebb_tokenizer_free(tok);
}

/* -- SentencePiece ------------------------------------------------------------------ */

#define SP "\xE2\x96\x81"

static void test_spm_joins_best_score(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_spm(&t);
    toy_add(&t, SP, 1, -9);                      /* 259 */
    toy_add(&t, "a", 1, -9);                     /* 260 */
    toy_add(&t, "b", 1, -9);                     /* 261 */
    toy_add(&t, "ab", 1, -3);                    /* 262 */
    toy_add(&t, SP "a", 1, -2);                  /* 263 */
    toy_add(&t, "bb", 1, -1);                    /* 264 */
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "ab", 0), "263 261");
    assert_string_equal(toy_ids(tok, "bab", 0), "259 261 262");
    assert_string_equal(toy_ids(tok, "abb", 0), "263 264");
    assert_string_equal(toy_ids(tok, " ab", 0), "259 263 261");
    assert_string_equal(toy_ids(tok, "a\xC3\xA9", 0), "263 198 172");         /* bytes C3 A9 */
    assert_string_equal(toy_ids(tok, "a", EBB_TOK_BOS), "1 263");
    assert_string_equal(toy_ids(tok, "", EBB_TOK_BOS), "1");
    assert_string_equal(toy_ids(tok, "<s>a</s>a", EBB_TOK_SPECIAL), "1 263 2 263");
    assert_string_equal(toy_ids(tok, "ab", EBB_TOK_INSIDE), "262");
    assert_string_equal(toy_ids(tok, " a<s>a", EBB_TOK_SPECIAL | EBB_TOK_INSIDE), "263 1 260");
    ebb_tokenizer_free(tok);
    t.v.add_space_prefix = 0;
    t.v.add_bos = 0;
    t.v.add_eos = 1;
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "ab", EBB_TOK_BOS), "262 2");
    ebb_tokenizer_free(tok);
}

static void test_spm_unknown_once_per_character(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init(&t, "llama", NULL);
    toy_add(&t, "<unk>", EBB_VOCAB_UNKNOWN, 0);
    toy_add(&t, "a", 1, 0);
    t.v.add_space_prefix = 0;
    t.v.unk = 0;
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "a\xE2\x82\xAC" "a", 0), "1 0 1");
    ebb_tokenizer_free(tok);
}

/* Words are encoded one by one where no token spans them: with one token that
 * does, and that no text reaches, the whole text goes in one piece, to the same ids. */
static void test_spm_words_are_independent(void **state)
{
    static const char *const parts[] = { "a", "b", " ", "  ", SP, "ab", "\n", "\xE2\x96", "c" };
    static toy t;
    ebb_tokenizer *words, *whole;
    uint64_t seed = 11;
    ebb_token spanning;

    (void)state;
    toy_init_spm(&t);
    toy_add(&t, SP, 1, -9);
    toy_add(&t, SP SP, 1, -4);
    toy_add(&t, SP SP "a", 1, -5);
    toy_add(&t, SP "a", 1, -4.5f);
    toy_add(&t, "ab", 1, -3);
    toy_add(&t, "ba", 1, -3);
    toy_add(&t, "aba", 1, -2);
    words = toy_open(&t);
    spanning = toy_add(&t, "x" SP "y", 1, -1);
    whole = toy_open(&t);
    for (int round = 0; round < 500; round++) {
        char text[256] = "", first[4096];
        for (unsigned i = toy_random(&seed) % 30; i > 0; i--)
            strcat(text, parts[toy_random(&seed) % (sizeof parts / sizeof parts[0])]);
        strcpy(first, toy_ids(words, text, 0));
        assert_string_equal(first, toy_ids(whole, text, 0));
    }
    assert_int_equal(ebb_tokenizer_find(whole, "x" SP "y"), spanning);
    ebb_tokenizer_free(words);
    ebb_tokenizer_free(whole);
}

/* -- Special tokens, facts ----------------------------------------------------------- */

static void test_special_texts(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add(&t, "<|a|>", EBB_VOCAB_CONTROL, 0);              /* 256 */
    toy_add(&t, "<|a|>b", EBB_VOCAB_CONTROL, 0);             /* 257 */
    toy_add(&t, "<u>", EBB_VOCAB_USER, 0);                   /* 258 */
    toy_add(&t, "<u>v", EBB_VOCAB_CONTROL, 0);               /* 259 */
    toy_add(&t, "<|im_end|>", EBB_VOCAB_NORMAL, 0);          /* 260: mistyped in the file */
    toy_add(&t, "<|a|>", EBB_VOCAB_CONTROL, 0);              /* 261: twice */
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "x<|a|>b<|a|>c", EBB_TOK_SPECIAL), "120 257 256 99");
    assert_string_equal(toy_ids(tok, "<|a|>", 0), "60 124 97 124 62");
    assert_string_equal(toy_ids(tok, "<u>v", 0), "258 118");
    assert_string_equal(toy_ids(tok, "<u>v", EBB_TOK_SPECIAL), "259");
    assert_string_equal(toy_ids(tok, "<|im_end|>", EBB_TOK_SPECIAL), "260");
    assert_string_equal(toy_ids(tok, "<|im_en", EBB_TOK_SPECIAL), "60 124 105 109 95 101 110");
    assert_true(ebb_tokenizer_is_eog(tok, 260));
    assert_true(ebb_tokenizer_is_control(tok, 260));
    assert_int_equal(ebb_tokenizer_eot(tok), 260);
    assert_int_equal(ebb_tokenizer_bos(tok), -1);
    assert_false(ebb_tokenizer_is_eog(tok, 256));
    assert_int_equal(ebb_tokenizer_find(tok, "<|a|>"), 256);
    assert_int_equal(ebb_tokenizer_find(tok, "<|a"), -1);
    assert_int_equal(ebb_tokenizer_find(tok, ""), -1);
    ebb_tokenizer_free(tok);
}

/* -- Vocabularies that make a text quadratic -------------------------------------------- */

/* A text of n letters "a". */
static ebb_status encode_letters(const ebb_tokenizer *tok, size_t n, unsigned flags, ebb_error *err)
{
    char *text = malloc(n);
    size_t n_ids = 0;
    ebb_status st;

    assert_non_null(text);
    memset(text, 'a', n);
    st = ebb_tokenizer_encode(tok, text, n, &(ebb_tokenize_opts){ .flags = flags }, NULL, 0, &n_ids, err);
    free(text);
    return st;
}

static void expect_beyond_measure(const ebb_tokenizer *tok, size_t n)
{
    ebb_error err = { 0 };

    assert_int_equal(encode_letters(tok, n, EBB_TOK_SPECIAL, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "beyond all measure"));
}

/* A control token that the text almost has, at every byte. */
static void test_a_long_special_text(void **state)
{
    static char text[60000];
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add_n(&t, text, sizeof text - 1, EBB_VOCAB_CONTROL, 0);
    text[sizeof text - 1] = 'b';
    toy_add_n(&t, text, sizeof text, EBB_VOCAB_CONTROL, 0);
    tok = toy_open(&t);
    assert_int_equal(encode_letters(tok, 1000, EBB_TOK_SPECIAL, NULL), EBB_OK);
    expect_beyond_measure(tok, 50000);
    ebb_tokenizer_free(tok);
}

/* Tokens of each length: joined, each grows by a letter, and its text is looked up. */
static void test_tokens_that_grow(void **state)
{
    static char text[TOY_MAX];
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    memset(text, 'a', sizeof text);
    toy_init(&t, "llama", NULL);
    for (size_t n = 1; n <= sizeof text; n++)
        toy_add_n(&t, text, n, EBB_VOCAB_NORMAL, (float)n);
    tok = toy_open(&t);
    assert_int_equal(encode_letters(tok, 10000, 0, NULL), EBB_OK);
    expect_beyond_measure(tok, 3000000);
    ebb_tokenizer_free(tok);
}

/* A text is searched for once, however many tokens have it. */
static void test_special_twins(void **state)
{
    static toy t;
    ebb_tok_table table;
    ebb_tok_special special;
    ebb_tok_search q = { .text = "xe", .n = 2, .control = true, .budget.left = 100 };
    ebb_token id;

    (void)state;
    toy_init(&t, "llama", NULL);
    toy_add(&t, "ee", EBB_VOCAB_USER, 0);
    for (int i = 1; i < 500; i++)
        toy_add(&t, "e", i == 1 ? EBB_VOCAB_CONTROL : EBB_VOCAB_USER, 0);
    assert_int_equal(ebb_tok_table_init(&table, &t.v, NULL), EBB_OK);
    assert_int_equal(ebb_tok_special_init(&special, &table, NULL), EBB_OK);
    assert_int_equal(special.n, 2);
    assert_int_equal(ebb_tok_special_next(&special, &q, &id), 1);
    assert_int_equal(id, 1);
    ebb_tok_special_fini(&special);
    ebb_tok_table_fini(&table);
}

/* Of 1000 steps, those that are left when "xaa...", 101 bytes, was searched for tokens that it almost has: "xa...a!" of
 * `first` letters and more. */
static uint64_t left_of_search(size_t first)
{
    enum { N_TOKENS = 200, N_TEXT = 101 };
    static char text[N_TOKENS][2 * N_TOKENS + 2];
    static toy t;
    ebb_tok_table table;
    ebb_tok_special special;
    ebb_tok_search q = { .text = text[N_TOKENS - 1], .n = N_TEXT, .control = true, .budget.left = 1000 };
    ebb_token id;

    toy_init(&t, "llama", NULL);
    for (size_t i = 0; i < N_TOKENS; i++) {
        memset(text[i], 'a', sizeof text[i]);
        text[i][0] = 'x';
        text[i][first + i] = '!';
        toy_add_n(&t, text[i], first + i + 1, EBB_VOCAB_USER, 0);
    }
    assert_int_equal(ebb_tok_table_init(&table, &t.v, NULL), EBB_OK);
    assert_int_equal(ebb_tok_special_init(&special, &table, NULL), EBB_OK);
    assert_int_equal(ebb_tok_special_next(&special, &q, &id), N_TEXT);
    assert_int_equal(id, -1);
    ebb_tok_special_fini(&special);
    ebb_tok_table_fini(&table);
    return q.budget.left;
}

/* A byte at which all tokens go on alike costs a step; one at which they part a search among them. */
static void test_searches_are_spent(void **state)
{
    (void)state;
    assert_int_equal(left_of_search(101), 1000 - 101);
    assert_in_range(left_of_search(1), 0, 300);
}

/* Of a text that somebody wrote, or of one that is free. */
static size_t count_ids(const ebb_tokenizer *t, const char *text, bool is_quoted)
{
    const ebb_text_range all = { 0, strlen(text) };
    const ebb_tokenize_opts o = { .flags = is_quoted ? EBB_TOK_SPECIAL : 0, .quoted = &all, .n_quoted = is_quoted };
    size_t n = 0;

    assert_int_equal(ebb_tokenizer_encode(t, text, strlen(text), &o, NULL, 0, &n, NULL), EBB_OK);
    return n;
}

static void test_harmony(void **state)
{
    static toy t;
    ebb_tokenizer *tok;
    char out[16];

    (void)state;
    toy_init_bpe(&t, "gpt-4o");
    toy_merge(&t, "x x");
    toy_add(&t, "<|return|>", EBB_VOCAB_CONTROL, 0);         /* 256 */
    toy_add(&t, "<|call|>", EBB_VOCAB_CONTROL, 0);           /* 257 */
    toy_add(&t, "<|end|>", EBB_VOCAB_CONTROL, 0);            /* 258 */
    toy_add(&t, "<|channel|>", EBB_VOCAB_CONTROL, 0);        /* 259 */
    t.v.eos = 256;
    tok = toy_open(&t);
    assert_true(ebb_tokenizer_is_eog(tok, 256));
    assert_true(ebb_tokenizer_is_eog(tok, 257));
    assert_false(ebb_tokenizer_is_eog(tok, 258));
    assert_int_equal(ebb_tokenizer_piece(tok, 259, false, out, sizeof out), 11);
    assert_memory_equal(out, "<|channel|>", 11);
    assert_int_equal(ebb_tokenizer_piece(tok, 258, false, out, sizeof out), 7);
    for (ebb_token id = 256; id < 260; id++)
        assert_true(ebb_tokenizer_is_control(tok, id));
    assert_string_equal(toy_ids(tok, "<|end|><|channel|>", EBB_TOK_SPECIAL), "258 259");
    assert_int_equal(count_ids(tok, "<|end|><|channel|>", true), 7 + 11);
    assert_int_equal(count_ids(tok, "<|end|><|channel|>", false), 2);       /* as other readers of such files */
    ebb_tokenizer_free(tok);
}

/* What begins a turn is no text, whatever the file says of it; other tokens that it calls user-defined are. */
static void test_types_by_their_look(void **state)
{
    static const char *const texts[] = { "<|im_start|>", "<｜User｜>", "<start_of_turn>", "<tool_call>", "<|\"|>" };
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    for (size_t i = 0; i < 5; i++)
        toy_add(&t, texts[i], EBB_VOCAB_USER, 0);            /* 256 ... */
    tok = toy_open(&t);
    for (ebb_token id = 256; id < 261; id++) {
        const char *text = texts[id - 256];
        bool frames = id < 259;
        assert_int_equal(ebb_tokenizer_is_control(tok, id), frames);
        assert_int_equal(ebb_tokenizer_piece(tok, id, false, NULL, 0), strlen(text));
        assert_int_equal(count_ids(tok, text, false), 1);
        assert_int_equal(count_ids(tok, text, true), frames ? strlen(text) : 1);
    }
    ebb_tokenizer_free(tok);
}

/* The marks of a thought are read, as the text between them is; other control tokens are not. */
static void test_marks_of_thoughts(void **state)
{
    static toy t;
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add(&t, "[THINK]", EBB_VOCAB_CONTROL, 0);            /* 256 */
    toy_add(&t, "[INST]", EBB_VOCAB_CONTROL, 0);             /* 257 */
    tok = toy_open(&t);
    assert_true(ebb_tokenizer_is_control(tok, 256));
    assert_int_equal(ebb_tokenizer_piece(tok, 256, false, NULL, 0), 7);
    assert_int_equal(ebb_tokenizer_piece(tok, 257, false, NULL, 0), 0);
    assert_int_equal(count_ids(tok, "[THINK]", false), 7);
    assert_int_equal(count_ids(tok, "[THINK]", true), 7);
    ebb_tokenizer_free(tok);
}

static void test_phi3_swallows_space_behind_special(void **state)
{
    static toy t;
    ebb_tokenizer *tok;
    ebb_token user, x;

    (void)state;
    toy_init_spm(&t);
    user = toy_add(&t, "<|user|>", EBB_VOCAB_CONTROL, 0);
    x = toy_add(&t, SP "x", 1, 0);
    toy_add(&t, SP, 1, 0);
    toy_add(&t, "x", 1, 0);
    t.v.name = "Phi-3.5 mini";
    tok = toy_open(&t);
    assert_int_equal(user, 259);
    assert_int_equal(x, 260);
    assert_string_equal(toy_ids(tok, "<|user|> \n x", EBB_TOK_SPECIAL), "259 260");
    ebb_tokenizer_free(tok);
}

static void test_capacity_and_pieces(void **state)
{
    static toy t;
    ebb_tokenizer *tok;
    ebb_token ids[2] = { -7, -7 };
    size_t n;
    char out[8] = "........";

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add(&t, "\xC4\xA0hi", 1, 0);             /* 256 */
    toy_add(&t, "<c>", EBB_VOCAB_CONTROL, 0);    /* 257 */
    toy_add(&t, "<0x41>", EBB_VOCAB_BYTE, 0);    /* 258 */
    toy_add(&t, "gone", EBB_VOCAB_UNUSED, 0);    /* 259 */
    tok = toy_open(&t);
    assert_int_equal(ebb_tokenizer_encode(tok, "abc", 3, &(ebb_tokenize_opts){ 0 }, NULL, 0, &n, NULL), EBB_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ebb_tokenizer_encode(tok, "abc", 3, &(ebb_tokenize_opts){ 0 }, ids, 1, &n, NULL), EBB_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], 97);
    assert_int_equal(ids[1], -7);
    assert_int_equal(ebb_tokenizer_piece(tok, 256, false, out, 2), 3);
    assert_memory_equal(out, " h.", 3);
    assert_int_equal(ebb_tokenizer_piece(tok, 257, false, out, 8), 0);
    assert_int_equal(ebb_tokenizer_piece(tok, 257, true, NULL, 0), 3);
    assert_int_equal(ebb_tokenizer_piece(tok, 258, false, out, 8), 1);
    assert_int_equal(out[0], 'A');
    assert_int_equal(ebb_tokenizer_piece(tok, 259, true, out, 8), 0);
    assert_int_equal(ebb_tokenizer_piece(tok, -1, true, out, 8), 0);
    assert_int_equal(ebb_tokenizer_piece(tok, 260, true, out, 8), 0);
    assert_false(ebb_tokenizer_is_eog(tok, 1 << 30));
    assert_true(ebb_tokenizer_bytes(tok) > 260 * 16);
    ebb_tokenizer_free(tok);
}

/* Control tokens are not read where they touch a quoted range; user-defined ones are. */
static void test_quoted(void **state)
{
    static toy t;
    static const ebb_text_range inside[] = { { 3, 7 }, { 12, 13 } };
    static const ebb_token want[] = { 256, 'x', '<', 'c', '>', 256, 257, '<', 'c', '>' };
    const char *text = "<c>x<c><c><<u><c>";
    ebb_tokenizer *tok;
    ebb_token ids[32];
    size_t n;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_merge(&t, "x x");
    toy_add(&t, "<c>", EBB_VOCAB_CONTROL, 0);    /* 256 */
    toy_add(&t, "<<u>", EBB_VOCAB_USER, 0);      /* 257 */
    toy_add(&t, "<c>x", EBB_VOCAB_CONTROL, 0);   /* 258: reaches into the range, so <c> is read */
    tok = toy_open(&t);
    assert_int_equal(ebb_tokenizer_encode(tok, text, 17,
                                          &(ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL,
                                                                .quoted = inside, .n_quoted = 2 },
                                          ids, 32, &n, NULL), EBB_OK);
    assert_int_equal(n, 8);
    assert_memory_equal(ids, want, 7 * sizeof *ids);
    assert_int_equal(ids[7], 256);
    assert_int_equal(ebb_tokenizer_encode(tok, text, 17,
                                          &(ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL, .n_quoted = 2,
                                                                .quoted = (ebb_text_range[]){ { 0, 10 },
                                                                                              { 15, 16 } } },
                                          ids, 32, &n, NULL),
                     EBB_OK);
    assert_int_equal(n, 10 + 1 + 3);
    assert_int_equal(ids[10], 257);
    assert_memory_equal(ids + 11, want + 7, 3 * sizeof *ids);
    ebb_tokenizer_free(tok);
}

/* -- Hostile vocabularies -------------------------------------------------------------- */

static void expect_ids(const toy *t, ebb_status want, const char *word)
{
    ebb_tokenizer *tok = (ebb_tokenizer *)t;
    ebb_error err = { 0 };

    assert_int_equal(ebb_tokenizer_new(&t->v, &tok, &err), want);
    assert_null(tok);
    if (!strstr(err.msg, word))
        fail_msg("'%s' does not mention %s", err.msg, word);
}

static void test_refused_vocabularies(void **state)
{
    static toy t;
    char *long_token = calloc(1, 70000);

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    expect_ids(&t, EBB_FORMAT, "merges");
    toy_merge(&t, "a b");
    t.v.pre = "smart";
    expect_ids(&t, EBB_UNSUPPORTED, "'smart'");
    t.v.pre = "llama3 llama-v3";                 /* two names are none */
    expect_ids(&t, EBB_UNSUPPORTED, "llama3");
    t.v.pre = NULL;
    t.v.model = "bert";
    expect_ids(&t, EBB_UNSUPPORTED, "'bert'");
    t.v.model = NULL;
    expect_ids(&t, EBB_UNSUPPORTED, "(none)");
    t.v.model = "gpt2";
    toy_add_n(&t, long_token, 70000, 1, 0);
    expect_ids(&t, EBB_FORMAT, "token 256");
    t.v.n_tokens = (size_t)1 << 40;
    expect_ids(&t, EBB_FORMAT, "at most");
    t.v.n_tokens = 0;
    expect_ids(&t, EBB_FORMAT, "no tokens");
    free(long_token);
}

static void test_odd_vocabularies_are_used(void **state)
{
    static toy t;
    static const ebb_token ends[] = { 5, -1, 100000, 97 };
    ebb_tokenizer *tok;

    (void)state;
    toy_init_bpe(&t, "gpt-2");
    toy_add(&t, "", 1, 0);                       /* empty */
    toy_add(&t, "", EBB_VOCAB_CONTROL, 0);
    toy_add(&t, "a", 77, 0);                     /* a duplicate of an unknown type */
    toy_add_n(&t, "a\0b", 3, EBB_VOCAB_USER, 0); /* 259 */
    toy_add(&t, "ab", 1, 0);                     /* 260 */
    toy_merge(&t, "a z");                        /* "az" is no token */
    toy_merge(&t, "nospace");
    toy_merge(&t, "");
    toy_merge(&t, " ");
    toy_merge(&t, "a ");
    toy_merge(&t, " a");
    toy_merge(&t, "a b c");
    toy_merge(&t, "a b");
    toy_merge(&t, "a b");
    t.v.bos = (ebb_token)0xFFFFFFFF;
    t.v.eos = 300;
    t.v.eot = -5;
    t.v.eom = 1 << 30;
    t.v.add_bos = t.v.add_eos = 1;
    t.v.eos_ids = ends;
    t.v.n_eos_ids = 4;
    tok = toy_open(&t);
    assert_string_equal(toy_ids(tok, "abaz", EBB_TOK_BOS | EBB_TOK_SPECIAL), "260 97 122");
    assert_int_equal(ebb_tokenizer_bos(tok), -1);
    assert_int_equal(ebb_tokenizer_eos(tok), -1);
    assert_int_equal(ebb_tokenizer_eot(tok), -1);
    assert_true(ebb_tokenizer_is_eog(tok, 5));
    assert_true(ebb_tokenizer_is_eog(tok, 97));
    assert_int_equal(ebb_tokenizer_piece(tok, 256, true, NULL, 0), 0);
    ebb_tokenizer_free(tok);
    t.v.types = NULL;
    t.v.scores = NULL;
    ebb_tokenizer_free(toy_open(&t));
    t.v.model = "llama";
    ebb_tokenizer_free(toy_open(&t));
}

/* Vocabularies and texts of random bits: nothing is expected but an end, with
 * ids that exist.  The sanitizers watch. */
static void test_random_vocabularies(void **state)
{
    static const char *const bits[] = { "",         "a",       "b",        "ab",        "ba",       "aba",
                                        SP,         SP "a",    "a" SP,     " ",         "<",        "<a",
                                        "<a>",      "</s>",    "<0x61>",   "<0xG1>",    "\xC4\xA0", "\xC4",
                                        "\xE2\x96", "<|end|>", "<|call|>", "<|return|>" };
    static const char *const merges[] = { "a b", "b a",  "ab a",       "a ba", " ",   "a",
                                          "",    "a  b", "\xC4\xA0 a", "< a",  "<a >" };
    static toy t;
    uint64_t seed = 99;

    (void)state;
    for (int round = 0; round < 400; round++) {
        ebb_tokenizer *tok;
        toy_init(&t, round % 2 ? "llama" : "gpt2", round % 4 ? "gpt-2" : "llama-bpe");
        for (unsigned i = 1 + toy_random(&seed) % 40; i > 0; i--)
            toy_add(&t, bits[toy_random(&seed) % (sizeof bits / sizeof bits[0])], (int32_t)(toy_random(&seed) % 9) - 1,
                    toy_random(&seed) % 5 ? (float)toy_random(&seed) : (float)NAN);
        for (unsigned i = 1 + toy_random(&seed) % 20; i > 0; i--)
            toy_merge(&t, merges[toy_random(&seed) % (sizeof merges / sizeof merges[0])]);
        t.v.bos = (ebb_token)(toy_random(&seed) % 50) - 5;
        t.v.unk = (ebb_token)(toy_random(&seed) % 50) - 5;
        t.v.add_bos = (int8_t)(toy_random(&seed) % 3) - 1;
        t.v.name = "phi-3";
        tok = toy_open(&t);
        for (int texts = 0; texts < 5; texts++) {
            char text[200] = "";
            const char *ids;
            for (unsigned i = toy_random(&seed) % 20; i > 0; i--)
                strcat(text, bits[toy_random(&seed) % (sizeof bits / sizeof bits[0])]);
            ids = toy_ids(tok, text, toy_random(&seed) % 4);
            for (char *end; *ids; ids = end) {
                long id = strtol(ids, &end, 10);
                assert_true(id >= 0 && (size_t)id < t.v.n_tokens);
            }
        }
        ebb_tokenizer_free(tok);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bpe_joins_lowest_rank_then_leftmost),
        cmocka_unit_test(test_bpe_ignores_merges_where_the_family_does),
        cmocka_unit_test(test_bpe_drops_bytes_it_cannot_spell),
        cmocka_unit_test(test_spm_joins_best_score),
        cmocka_unit_test(test_spm_unknown_once_per_character),
        cmocka_unit_test(test_spm_words_are_independent),
        cmocka_unit_test(test_special_texts),
        cmocka_unit_test(test_a_long_special_text),
        cmocka_unit_test(test_tokens_that_grow),
        cmocka_unit_test(test_special_twins), cmocka_unit_test(test_searches_are_spent),
        cmocka_unit_test(test_harmony),
        cmocka_unit_test(test_types_by_their_look), cmocka_unit_test(test_marks_of_thoughts),
        cmocka_unit_test(test_phi3_swallows_space_behind_special),
        cmocka_unit_test(test_capacity_and_pieces),
        cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_refused_vocabularies),
        cmocka_unit_test(test_odd_vocabularies_are_used),
        cmocka_unit_test(test_random_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
