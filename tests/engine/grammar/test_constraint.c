/* Constrained sampling: the tokens that are allowed are exactly those the grammar goes on with, texts are of it, and
 * draft tokens change no bit of them. */
#include "ebb_test.h"

#include <malloc.h>

#include "ebb/grammar.h"
#include "grammar/constraint.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "support/tiny_engine.h"

#define JSON                                                                                   \
    "root ::= object\n"                                                                        \
    "value ::= object | array | string | \"true\" | \"the\" | [0-9]{1,3}\n"                    \
    "object ::= \"{\" (string \":\" value (\",\" string \":\" value){0,2})? \"}\"\n"           \
    "array ::= \"[\" (value (\",\" value){0,3})? \"]\"\n"                                      \
    "string ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]{0,9} \"\\\"\"\n"

static ebb_grammar *compile(const char *text)
{
    ebb_grammar *g;
    ebb_error err = { 0 };

    if (ebb_grammar_new(text, strlen(text), &g, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return g;
}

static uint32_t noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* -- Masks --------------------------------------------------------------------------- */

static bool has_bit(const uint64_t *mask, ebb_token id)
{
    return mask[id / 64] >> (id % 64) & 1;
}

/* Each token alone, against what the trie found for all of them. */
static size_t check_mask(ebb_constraint *c, const ebb_model *m, ebb_constraint_state at)
{
    size_t n, n_allowed = 0;
    const uint64_t *mask = ebb_constraint_mask(c, at, &n);

    if (!mask)
        return 0;
    assert_int_equal(n, EBB_TINY_VOCAB);
    for (ebb_token id = 0; id < (ebb_token)n; id++) {
        ebb_constraint_state next = at;
        bool accepts = ebb_constraint_accept(c, &next, id);

        assert_int_equal(has_bit(mask, id), accepts);
        if (accepts && ebb_model_is_control(m, id))
            assert_true(ebb_model_is_eog(m, id));
        n_allowed += accepts;
    }
    return n_allowed;
}

static ebb_token pick(ebb_constraint *c, ebb_constraint_state at, uint32_t i)
{
    size_t n;
    const uint64_t *mask = ebb_constraint_mask(c, at, &n);

    for (ebb_token id = 0;; id = (id + 1) % (ebb_token)n)
        if (has_bit(mask, id) && i-- == 0)
            return id;
}

static void test_masks_are_what_is_accepted(void **state)
{
    ebb_grammar *g = compile(JSON);
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_constraint *c;
    uint32_t seed = 7;

    (void)state;
    assert_int_equal(ebb_constraint_new(g, ebb_model_token_trie(m), &c, NULL), EBB_OK);
    assert_ptr_equal(ebb_model_token_trie(m), ebb_model_token_trie(m));
    for (int walk = 0; walk < 60; walk++) {
        ebb_constraint_state at = ebb_constraint_begin(c);
        size_t n_allowed;

        for (int i = 0; i < 80 && (n_allowed = check_mask(c, m, at)) > 0; i++)
            assert_true(ebb_constraint_accept(c, &at, pick(c, at, noise(&seed) % (uint32_t)n_allowed)));
    }
    ebb_constraint_free(c);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* What a sampler leaves behind, in a session that drafts for it, is used when its model is closed. */
static void test_a_model_that_is_closed(void **state)
{
    ebb_grammar *g = compile(JSON);
    char *bytes[2];
    ebb_model *m[2];
    ebb_constraint *c[2];
    const uint64_t *mask[2];
    size_t n[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        m[i] = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes[i]);
        assert_int_equal(ebb_constraint_new(g, ebb_model_token_trie(m[i]), &c[i], NULL), EBB_OK);
    }
    (void)mallopt(M_PERTURB, 0xa5);              /* what is free is not what it was */
    ebb_model_close(m[0]);
    (void)mallopt(M_PERTURB, 0);
    for (int i = 0; i < 2; i++)
        mask[i] = ebb_constraint_mask(c[i], ebb_constraint_begin(c[i]), &n[i]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(mask[0], mask[1], (n[1] + 63) / 64 * sizeof **mask);
    for (int i = 0; i < 2; i++) {
        ebb_constraint_free(c[i]);
        free(bytes[i]);
    }
    ebb_model_close(m[1]);
    ebb_grammar_free(g);
}

/* A text so long that what led to it is forgotten meanwhile, more than once; an old state is known as old. */
static void test_what_led_to_a_text_is_forgotten(void **state)
{
    enum { N = 900000 };
    ebb_grammar *g = compile("root ::= \"(\" root \")\" | \"\"");
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_token open = ebb_model_find_token(m, "("), close = ebb_model_find_token(m, ")");
    ebb_constraint_state at, old;
    ebb_constraint *c;
    size_t n;

    (void)state;
    assert_int_equal(ebb_constraint_new(g, ebb_model_token_trie(m), &c, NULL), EBB_OK);
    at = old = ebb_constraint_begin(c);
    for (int i = 0; i < N; i++) {
        if (!ebb_constraint_accept(c, &at, open))
            fail_msg("( number %d", i);
        ebb_constraint_settle(c, &at);
    }
    assert_int_not_equal(at.epoch, old.epoch);
    assert_null(ebb_constraint_mask(c, old, &n));
    assert_false(ebb_constraint_accept(c, &old, open));
    for (int i = 0; i < N; i++) {
        assert_true(ebb_constraint_accept(c, &at, close));
        ebb_constraint_settle(c, &at);
    }
    assert_false(ebb_constraint_accept(c, &at, close));
    assert_int_equal(ebb_constraint_check(c, at, NULL), EBB_OK);
    assert_true(ebb_constraint_accept(c, &at, ebb_model_eos(m)));
    assert_int_equal(ebb_constraint_check(c, at, NULL), EBB_OK);
    assert_null(ebb_constraint_mask(c, at, &n));
    ebb_constraint_free(c);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* -- Texts ------------------------------------------------------------------------------ */

/* Write a text with s; its length, with the end of the turn. */
static size_t write_text(ebb_session *s, ebb_sampler *sampler, const ebb_model *m, ebb_token *ids, size_t cap)
{
    size_t n = 0;
    ebb_token id;

    while (n < cap && (id = ebb_session_sample(s, sampler)) != EBB_TOKEN_NONE) {
        ids[n++] = id;
        if (ebb_model_is_eog(m, id))
            break;
        assert_int_equal(ebb_session_append(s, id, NULL), EBB_OK);
    }
    return n;
}

static void check_text(const ebb_grammar *g, const ebb_model *m, const ebb_token *ids, size_t n)
{
    char text[4096];
    size_t n_text = 0;
    ebb_match match;

    for (size_t i = 0; i + 1 < n; i++) {
        assert_false(ebb_model_is_control(m, ids[i]));
        n_text += ebb_model_piece(m, ids[i], false, text + n_text, sizeof text - n_text);
    }
    assert_true(ebb_model_is_eog(m, ids[n - 1]));
    assert_int_equal(ebb_grammar_match(g, text, n_text, &match, NULL), EBB_OK);
    if (match != EBB_MATCH_WHOLE)
        fail_msg("not of the grammar: %.*s", (int)n_text, text);
}

static const ebb_sampler_params wild = { .temp = 3, .top_p = 1, .repeat_penalty = 1.1f, .repeat_last_n = 16 };

static void test_texts_are_of_the_grammar(void **state)
{
    ebb_grammar *g = compile(JSON);
    tiny_engine f = { 0 };
    ebb_token prompt[12], ids[1000];

    (void)state;
    open_tiny_engine(&f, &(ebb_tiny_opts){ .n_layers = 1 }, &(ebb_engine_opts){ .n_threads = 1, .no_kv_cache = true });
    fill_ids(prompt, 12, 3);
    for (uint32_t seed = 1; seed <= 60; seed++) {
        ebb_sampler_params p = wild;
        ebb_sampler *s;
        size_t n;

        p.seed = seed;
        p.temp = seed % 4 ? wild.temp : 0;
        p.top_k = seed % 3 ? 0 : 20;
        p.repeat_penalty = seed % 4 ? 1.1f : 2;
        s = ebb_sampler_new(&p, EBB_TINY_VOCAB);
        assert_int_equal(ebb_sampler_constrain(s, g, f.model, NULL), EBB_OK);
        assert_int_equal(ebb_session_sync(f.s, prompt, 12, NULL, NULL), EBB_OK);
        n = write_text(f.s, s, f.model, ids, 900);
        check_text(g, f.model, ids, n);
        assert_int_equal(ebb_session_sample(f.s, s), EBB_TOKEN_NONE);
        assert_int_equal(ebb_sampler_check(s, NULL), EBB_OK);
        ebb_sampler_free(s);
    }
    close_tiny_engine(&f);
    ebb_grammar_free(g);
}

/* -- Too much work ------------------------------------------------------------------------ */

/* Behind a b more can follow than is followed, so there is no mask of the beginning; an a leads there again. */
#define WIDE "root ::= \"a\" root | \"b\" (\"c\"?){5000} | \"!\"\n"

static void test_too_much_is_of_a_choice(void **state)
{
    ebb_grammar *g = compile(WIDE);
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_token a = ebb_model_find_token(m, "a"), b = ebb_model_find_token(m, "b");
    ebb_constraint_state at;
    ebb_constraint *c;
    ebb_error err = { 0 };
    size_t n;

    (void)state;
    assert_int_equal(ebb_constraint_new(g, ebb_model_token_trie(m), &c, NULL), EBB_OK);
    at = ebb_constraint_begin(c);
    for (int i = 0; i < 2; i++) {                /* the second time it is known */
        ebb_constraint_begin_choice(c);
        assert_null(ebb_constraint_mask(c, at, &n));
        assert_int_equal(ebb_constraint_check(c, at, &err), EBB_LIMIT);
        assert_non_null(strstr(err.msg, "too ambiguous"));
    }
    ebb_constraint_begin_choice(c);
    assert_false(ebb_constraint_wants_mask(c, at));
    assert_true(ebb_constraint_accept(c, &at, a));
    assert_int_equal(ebb_constraint_check(c, at, NULL), EBB_UNSUPPORTED);
    assert_false(ebb_constraint_accept(c, &at, b));
    assert_int_equal(ebb_constraint_check(c, at, NULL), EBB_LIMIT);
    ebb_constraint_free(c);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* A text that is there and is too much to follow is not said to be of another grammar. */
static void test_too_much_of_a_text(void **state)
{
    ebb_grammar *g = compile(WIDE);
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_token wide[] = { ebb_model_find_token(m, "a"), ebb_model_find_token(m, "b") };
    ebb_token wrong = ebb_model_find_token(m, "c");
    ebb_sampler *s = ebb_sampler_new(&(ebb_sampler_params){ .repeat_penalty = 1 }, EBB_TINY_VOCAB);
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(ebb_sampler_constrain(s, g, m, NULL), EBB_OK);
    assert_int_equal(ebb_sampler_accept(s, wide, 2, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "too ambiguous"));
    assert_int_equal(ebb_sampler_accept(s, &wrong, 1, &err), EBB_USAGE);
    assert_int_equal(ebb_sampler_accept(s, wide, 1, &err), EBB_OK);
    ebb_sampler_free(s);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* Who looks for drafts and finds too much spoils no choice; and where there is no mask, the likeliest is found. */
static void test_drafts_of_too_much(void **state)
{
    ebb_grammar *g = compile(WIDE);
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_token a = ebb_model_find_token(m, "a"), end = ebb_model_find_token(m, "!");
    ebb_sampler *drafter = ebb_sampler_new(&(ebb_sampler_params){ .repeat_penalty = 1 }, EBB_TINY_VOCAB);
    float logits[EBB_TINY_VOCAB] = { 0 };
    ebb_sampler_state mark = { 0 };
    ebb_choice choices[1];

    (void)state;
    for (int drafts = 0; drafts < 2; drafts++) {
        ebb_sampler *s = ebb_sampler_new(&(ebb_sampler_params){ .repeat_penalty = 1 }, EBB_TINY_VOCAB);

        assert_int_equal(ebb_sampler_constrain(s, g, m, NULL), EBB_OK);
        for (size_t i = 0; i < 20; i++) {
            ebb_token likely = i < 19 ? a : end;

            if (drafts) {
                ebb_sampler_get_state(s, &mark);
                ebb_sampler_set_state(drafter, &mark);
                assert_int_equal(ebb_sampler_rank(drafter, logits, NULL, i, choices, 1), 0);
            }
            logits[likely] = 1;
            assert_int_equal(ebb_sampler_sample(s, logits, NULL, i), likely);
            logits[likely] = 0;
        }
        assert_int_equal(ebb_sampler_check(s, NULL), EBB_OK);
        ebb_sampler_free(s);
    }
    ebb_sampler_state_fini(&mark);
    ebb_sampler_free(drafter);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* Asking for tokens one by one has the limit, too: here of a text that is followed in thousands of ways. */
static void test_asking_has_a_limit(void **state)
{
    char grammar[1024] = "root ::= [a-z]* \"a\" [a-z]{0,300} \"#\"";
    ebb_constraint_state at;
    ebb_constraint *c;
    ebb_grammar *g;
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);
    ebb_token letters[14];
    uint32_t seed = 1;
    int n = 0;

    (void)state;
    for (int i = 0; i < 14; i++) {
        size_t n_text = strlen(grammar);

        letters[i] = ebb_model_find_token(m, (char[]){ (char)('a' + i), '\0' });
        snprintf(grammar + n_text, sizeof grammar - n_text, " | [a-z]* \"%c\" [a-z]{0,300} \"#\"", 'a' + i);
    }
    g = compile(grammar);
    assert_int_equal(ebb_constraint_new(g, ebb_model_token_trie(m), &c, NULL), EBB_OK);
    at = ebb_constraint_begin(c);
    ebb_constraint_begin_choice(c);
    while (n < 100000 && ebb_constraint_accept(c, &at, letters[noise(&seed) % 14]))
        n++;
    assert_int_equal(ebb_constraint_check(c, at, NULL), EBB_LIMIT);
    ebb_constraint_begin_choice(c);
    assert_true(ebb_constraint_accept(c, &at, letters[0]));
    ebb_constraint_free(c);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* A sampler that was constrained and is free again chooses as one that never was. */
static void test_freed_again(void **state)
{
    ebb_grammar *g = compile("root ::= \"a\"");
    ebb_sampler_params p = { .temp = 1, .top_k = 40, .top_p = 0.9f, .repeat_penalty = 1, .seed = 5 };
    ebb_sampler *a = ebb_sampler_new(&p, EBB_TINY_VOCAB), *b = ebb_sampler_new(&p, EBB_TINY_VOCAB);
    float logits[EBB_TINY_VOCAB];
    uint32_t seed = 1;
    char *bytes;
    ebb_model *m = ebb_tiny_open(&(ebb_tiny_opts){ 0 }, &bytes);

    (void)state;
    assert_int_equal(ebb_sampler_constrain(a, g, m, NULL), EBB_OK);
    assert_int_equal(ebb_sampler_accept(a, &(ebb_token){ ebb_model_find_token(m, "b") }, 1, NULL), EBB_USAGE);
    assert_int_equal(ebb_sampler_accept(a, &(ebb_token){ ebb_model_find_token(m, "a") }, 1, NULL), EBB_OK);
    assert_int_equal(ebb_sampler_constrain(a, NULL, NULL, NULL), EBB_OK);
    for (int i = 0; i < 200; i++) {
        for (size_t k = 0; k < EBB_TINY_VOCAB; k++)
            logits[k] = (float)(noise(&seed) % 1000) / 100;
        assert_int_equal(ebb_sampler_sample(a, logits, NULL, (size_t)i),
                         ebb_sampler_sample(b, logits, NULL, (size_t)i));
    }
    ebb_sampler_free(a);
    ebb_sampler_free(b);
    ebb_model_close(m);
    ebb_grammar_free(g);
    free(bytes);
}

/* -- With draft tokens --------------------------------------------------------------------- */

/* The text and the logits behind it, with and without draft tokens. */
static void compare_drafts(const ebb_tiny_opts *tiny, const ebb_tiny_opts *draft, const char *grammar, float temp)
{
    ebb_grammar *g = compile(grammar);
    char *bytes, *draft_bytes = NULL;
    ebb_model *m = ebb_tiny_open(tiny, &bytes), *d = draft ? ebb_tiny_open(draft, &draft_bytes) : NULL;
    ebb_token prompt[24], ids[2][400];
    uint64_t n_drafted = 0;

    fill_ids(prompt, 24, 5);
    for (uint32_t seed = 1; seed <= 12 / ebb_test_one_in(4); seed++) {
        float logits[2][EBB_TINY_VOCAB];
        size_t n[2];

        for (int plain = 0; plain < 2; plain++) {
            ebb_engine_opts o = { .n_ctx = 512, .n_threads = 2, .no_kv_cache = true, .no_speculation = plain,
                                  .draft = plain ? NULL : d, .n_draft = draft || tiny->has_draft_head ? 4 : 0 };
            ebb_sampler_params p = { .temp = temp, .top_p = 1, .repeat_penalty = 1, .seed = seed };
            ebb_sampler *s = ebb_sampler_new(&p, EBB_TINY_VOCAB);
            ebb_engine *e;
            ebb_session *session;
            ebb_stats stats;

            assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
            assert_int_equal(ebb_session_new(e, &session, NULL), EBB_OK);
            assert_int_equal(ebb_sampler_constrain(s, g, m, NULL), EBB_OK);
            assert_int_equal(ebb_session_sync(session, prompt, 24, NULL, NULL), EBB_OK);
            n[plain] = write_text(session, s, m, ids[plain], 400);
            memcpy(logits[plain], ebb_session_logits(session), sizeof logits[plain]);
            ebb_engine_stats(e, &stats);
            n_drafted += stats.n_drafted;
            ebb_sampler_free(s);                 /* before the session, which remembers how it chose */
            ebb_session_free(session);
            ebb_engine_close(e);
        }
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(ids[0], ids[1], n[0] * sizeof **ids);
        assert_memory_equal(logits[0], logits[1], sizeof *logits);
    }
    assert_true(n_drafted > 0);
    ebb_model_close(m);
    ebb_model_close(d);
    ebb_grammar_free(g);
    free(bytes);
    free(draft_bytes);
}

static const char rows[] = "root ::= row{20}\nrow ::= \"name: \" [a-d]{3} \", the number: \" [0-9] \"\\n\"\n";

static void test_lookup_changes_nothing(void **state)
{
    (void)state;
    compare_drafts(&(ebb_tiny_opts){ .n_layers = 1 }, NULL, rows, 1);
    compare_drafts(&(ebb_tiny_opts){ .n_layers = 1 }, NULL, rows, 0);
}

static void test_draft_model_changes_nothing(void **state)
{
    const ebb_tiny_opts tiny = { .n_layers = 2 };

    (void)state;
    compare_drafts(&tiny, &(ebb_tiny_opts){ .n_layers = 1, .seed = 9 }, rows, 1);
    compare_drafts(&tiny, &tiny, JSON, 1);
    compare_drafts(&tiny, &tiny, JSON, 0);
}

static void test_draft_head_changes_nothing(void **state)
{
    const ebb_tiny_opts tiny = { .arch = "qwen35", .has_draft_head = true };

    (void)state;
    compare_drafts(&tiny, NULL, rows, 1);
    compare_drafts(&tiny, NULL, JSON, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_what_is_accepted),
        cmocka_unit_test(test_a_model_that_is_closed),
        cmocka_unit_test(test_what_led_to_a_text_is_forgotten),
        cmocka_unit_test(test_texts_are_of_the_grammar),
        cmocka_unit_test(test_too_much_is_of_a_choice),
        cmocka_unit_test(test_too_much_of_a_text),
        cmocka_unit_test(test_drafts_of_too_much),
        cmocka_unit_test(test_asking_has_a_limit),
        cmocka_unit_test(test_freed_again),
        cmocka_unit_test(test_lookup_changes_nothing),
        cmocka_unit_test(test_draft_model_changes_nothing),
        cmocka_unit_test(test_draft_head_changes_nothing),
    };

    return cmocka_run_group_tests_name("constraint", tests, NULL, NULL);
}
