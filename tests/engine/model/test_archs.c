/* Every architecture on a model that the test writes: the logits of a position
 * have the same bits for every cut into chunks and number of threads, across the
 * edge of a sliding window too; experts are found merged and split; sequences of
 * layers with a state go back to a checkpoint. */
#include "ebb_test.h"

#include <math.h>
#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "support/tiny_engine.h"

#define N_IDS 700u

static void open_threads(tiny_engine *f, const ebb_tiny_opts *tiny, uint32_t n_ctx, uint32_t threads)
{
    ebb_engine_opts o = { .n_ctx = n_ctx, .n_threads = threads, .n_batch = 128 };

    open_tiny_engine(f, tiny, &o);
}

/* Logits of n positions; for free(). */
static float *eval_tiny(tiny_engine *f, uint32_t n, uint32_t chunk)
{
    ebb_token ids[N_IDS];
    float *out = calloc((size_t)n * EBB_TINY_VOCAB, sizeof *out);

    fill_ids(ids, n, 1);
    assert_int_equal(ebb_session_eval(f->s, ids, n, chunk, keep_logits, out, NULL), EBB_OK);
    return out;
}

static ebb_tiny_opts tiny_of(const char *arch)
{
    return (ebb_tiny_opts){ .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
}

/* -- The same bits ------------------------------------------------------------------ */

static void check_arch(const ebb_tiny_opts *tiny, uint32_t n)
{
    static const uint32_t chunks[] = { 2, 3, 5, 17, 64 };
    tiny_engine one, many;
    float *want, *got;

    open_threads(&one, tiny, n, 1);
    open_threads(&many, tiny, n, 3);
    want = eval_tiny(&one, n, 1);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        got = eval_tiny(&many, n, chunks[i]);
        if (memcmp(want, got, (size_t)n * EBB_TINY_VOCAB * sizeof *got) != 0)
            fail_msg("%s: other bits with %u columns", tiny->arch, chunks[i]);
        free(got);
    }
    free(want);
    close_tiny_engine(&one);
    close_tiny_engine(&many);
}

static void test_same_bits_for_every_n(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);

        check_arch(&tiny, 4 * EBB_TINY_WINDOW + 6);
    }
}

/* Logits of n positions with `resident` layers in memory and the others read from the file; for free(). */
static float *eval_file(const char *path, uint32_t n, uint32_t resident, uint32_t batch)
{
    ebb_engine_opts o = { .n_ctx = n, .n_threads = 2, .n_batch = 64, .has_resident = true, .resident = resident,
                          .no_kv_cache = true };
    tiny_engine f;
    float *out;

    open_tiny_file(&f, path, &o);
    out = eval_tiny(&f, n, batch);
    close_tiny_engine(&f);
    return out;
}

static void test_same_bits_from_disk(void **state)
{
    char path[] = "build/test_archs.XXXXXX.gguf";
    const uint32_t n = 2 * EBB_TINY_WINDOW + 3;

    (void)state;
    close(mkstemps(path, 5));                    /* a name of its own */
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);
        float *want, *got;

        assert_true(ebb_tiny_write(&tiny, path));
        want = eval_file(path, n, 64, 1);
        got = eval_file(path, n, 0, 20);
        if (memcmp(want, got, (size_t)n * EBB_TINY_VOCAB * sizeof *got) != 0)
            fail_msg("%s: other bits from disk", tiny.arch);
        free(want);
        free(got);
    }
    unlink(path);
}

/* Keys and values of each head from the latent, as files had them before 2025. */
static void test_same_bits_of_old_latents(void **state)
{
    ebb_tiny_opts tiny = tiny_of("deepseek2");

    (void)state;
    tiny.is_split = true;
    check_arch(&tiny, 70);
}

/* Experts of which each is chosen by some columns only, more than a few of them. */
static void test_same_bits_with_many_experts(void **state)
{
    ebb_tiny_opts tiny = tiny_of("llama");

    (void)state;
    tiny.n_expert = 33;
    tiny.type = EBB_TYPE_F32;
    check_arch(&tiny, 70);
}

static void check_split(ebb_tiny_opts merged)
{
    ebb_tiny_opts split = merged;
    tiny_engine a, b;
    float *want, *got;

    split.is_split = true;
    open_threads(&a, &merged, 64, 2);
    open_threads(&b, &split, 64, 2);
    want = eval_tiny(&a, 40, 0);
    got = eval_tiny(&b, 40, 0);
    assert_memory_equal(want, got, 40 * EBB_TINY_VOCAB * sizeof *got);
    free(want);
    free(got);
    close_tiny_engine(&a);
    close_tiny_engine(&b);
}

static void test_split_experts_are_the_merged_ones(void **state)
{
    ebb_tiny_opts tiny = tiny_of("llama");

    (void)state;
    tiny.n_expert = 5;
    check_split(tiny);
    tiny.is_joined = true;                       /* gate and up in one tensor */
    check_split(tiny);
}

/* Experts of a layer may be of several types, even such as want different activations. */
static void test_experts_of_several_types(void **state)
{
    ebb_tiny_opts tiny = tiny_of("llama");
    double error = 0, power = 0;
    float *want, *got;
    tiny_engine f;

    (void)state;
    tiny.n_expert = 5;
    tiny.is_split = tiny.is_mixed = true;
    check_arch(&tiny, 70);
    tiny.type = EBB_TYPE_F32;
    open_threads(&f, &tiny, 64, 2);
    got = eval_tiny(&f, 40, 0);
    close_tiny_engine(&f);
    tiny.is_mixed = false;                       /* the same weights, not rounded to f16 */
    open_threads(&f, &tiny, 64, 2);
    want = eval_tiny(&f, 40, 0);
    close_tiny_engine(&f);
    for (size_t i = 0; i < 40 * EBB_TINY_VOCAB; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        power += (double)want[i] * want[i];
    }
    assert_true(error > 0 && error < 1e-5 * power);
    free(want);
    free(got);
}

/* -- Factors and windows ---------------------------------------------------------------- */

/* Whether the logits of position `pos` depend on what stands at position `at`. */
static bool sees(const char *arch, uint32_t pos, uint32_t at)
{
    ebb_tiny_opts tiny = tiny_of(arch);
    ebb_token ids[80];
    float first[EBB_TINY_VOCAB];
    bool differs;
    tiny_engine f;

    tiny.n_layers = 1;                           /* more layers would see through each other's windows */
    fill_ids(ids, 80, 1);
    open_threads(&f, &tiny, 80, 1);
    assert_int_equal(ebb_session_sync(f.s, ids, pos + 1, NULL, NULL), EBB_OK);
    memcpy(first, ebb_session_logits(f.s), sizeof first);
    ids[at] ^= 1;
    assert_int_equal(ebb_session_sync(f.s, ids, pos + 1, NULL, NULL), EBB_OK);
    differs = memcmp(first, ebb_session_logits(f.s), sizeof first) != 0;
    close_tiny_engine(&f);
    return differs;
}

static void test_windows_have_their_width(void **state)
{
    static const char *const local[] = { "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "cohere2" };

    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if (!sees(local[i], 50, 51 - EBB_TINY_WINDOW) || sees(local[i], 50, 50 - EBB_TINY_WINDOW))
            fail_msg("%s: a window of another width", local[i]);
    }
    assert_true(sees("llama", 50, 0));
    assert_true(sees("phi3", 50, 0));
}

static void test_long_factors_hold_for_long_contexts(void **state)
{
    ebb_tiny_opts tiny = tiny_of("phi3");
    tiny_engine small, small_too, large;
    float *a, *b, *c;

    (void)state;
    open_threads(&small, &tiny, 64, 1);          /* the original context */
    open_threads(&small_too, &tiny, 32, 1);
    open_threads(&large, &tiny, 65, 1);
    a = eval_tiny(&small, 20, 0);
    b = eval_tiny(&small_too, 20, 0);
    c = eval_tiny(&large, 20, 0);
    assert_memory_equal(a, b, 20 * EBB_TINY_VOCAB * sizeof *a);
    assert_memory_not_equal(a, c, 20 * EBB_TINY_VOCAB * sizeof *a);
    free(a);
    free(b);
    free(c);
    close_tiny_engine(&small);
    close_tiny_engine(&small_too);
    close_tiny_engine(&large);
}

/* A file that names no original context means that of the training. */
static void open_without_original(tiny_engine *f, const ebb_tiny_opts *tiny, uint32_t n_ctx)
{
    static const char key[] = ".rope.scaling.original_context_length";
    ebb_engine_opts o = { .n_ctx = n_ctx, .n_threads = 1, .no_kv_cache = true, .is_forced = true };
    ebb_error err = { 0 };
    size_t n;
    char *p;

    f->bytes = ebb_tiny_bytes(tiny, &n);
    p = memmem(f->bytes, n, key, sizeof key - 1);
    assert_non_null(p);
    p[1] = 'x';                                  /* a key that is not known, and left out */
    assert_int_equal(ebb_model_open_memory(f->bytes, n, "tiny", &f->model, &err), EBB_OK);
    if (ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(f->engine, &f->s, &err), EBB_OK);
}

static void test_long_factors_begin_behind_the_trained_context(void **state)
{
    ebb_tiny_opts tiny = tiny_of("phi3");
    tiny_engine small, trained, large;
    float *a, *b, *c;

    (void)state;
    open_threads(&small, &tiny, 64, 1);
    open_without_original(&trained, &tiny, 1024);
    open_without_original(&large, &tiny, 1025);
    a = eval_tiny(&small, 20, 0);
    b = eval_tiny(&trained, 20, 0);
    c = eval_tiny(&large, 20, 0);
    assert_memory_equal(a, b, 20 * EBB_TINY_VOCAB * sizeof *a);
    assert_memory_not_equal(a, c, 20 * EBB_TINY_VOCAB * sizeof *a);
    free(a);
    free(b);
    free(c);
    close_tiny_engine(&small);
    close_tiny_engine(&trained);
    close_tiny_engine(&large);
}

/* Tokens that the file suppresses have logits of minus infinity and are never drawn; the others stay as they were. */
static void test_suppressed_tokens_are_never_chosen(void **state)
{
    enum { N_SUPPRESSED = 250 };
    ebb_tiny_opts all = tiny_of("gemma4"), some = all;
    ebb_sampler_params p = { .temp = 2, .top_p = 1, .repeat_penalty = 1, .seed = 1 };
    ebb_sampler *sampler = ebb_sampler_new(&p, EBB_TINY_VOCAB);
    tiny_engine a, b;
    float *want, *got;

    (void)state;
    some.n_suppressed = N_SUPPRESSED;
    open_threads(&a, &all, 64, 2);
    open_threads(&b, &some, 64, 2);
    want = eval_tiny(&a, 20, 0);
    got = eval_tiny(&b, 20, 0);
    for (size_t i = 0; i < 20 * EBB_TINY_VOCAB; i++)
        assert_true(i % EBB_TINY_VOCAB < N_SUPPRESSED ? isinf(got[i]) && got[i] < 0 : got[i] == want[i]);
    for (int i = 0; i < 200; i++)
        assert_true(ebb_sampler_sample(sampler, got + 19 * EBB_TINY_VOCAB, NULL, 0) >= N_SUPPRESSED);
    free(want);
    free(got);
    ebb_sampler_free(sampler);
    close_tiny_engine(&a);
    close_tiny_engine(&b);
}

/* -- States ---------------------------------------------------------------------------- */

#define DISTANCE 256u            /* of checkpoints, in a context of 1024 */

/* The session holds these ids with the logits that another engine computes. */
static void expect_as_fresh(const ebb_session *s, const ebb_token *ids, uint32_t n)
{
    ebb_tiny_opts tiny = tiny_of("qwen35");
    size_t n_held;
    tiny_engine f;

    open_threads(&f, &tiny, 1024, 2);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    assert_memory_equal(ebb_session_ids(s, &n_held), ids, n * sizeof *ids);
    assert_int_equal(n_held, n);
    assert_memory_equal(ebb_session_logits(s), ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof(float));
    close_tiny_engine(&f);
}

static void sync_to(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_reused)
{
    ebb_sync_result r;

    assert_int_equal(ebb_session_common_prefix(s, ids, n), n_reused);
    assert_int_equal(ebb_session_sync(s, ids, n, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, n_reused);
    assert_int_equal(r.n_computed, n - n_reused);
    expect_as_fresh(s, ids, n);
}

static void test_states_go_back_to_a_checkpoint(void **state)
{
    ebb_tiny_opts tiny = tiny_of("qwen35");
    ebb_token ids[N_IDS];
    tiny_engine f;

    (void)state;
    fill_ids(ids, N_IDS, 1);
    open_threads(&f, &tiny, 1024, 2);
    sync_to(f.s, ids, 600, 0);                   /* leaves checkpoints at 256, 512 and 599 */
    assert_int_equal(ebb_session_append(f.s, ids[600], NULL), EBB_OK);
    expect_as_fresh(f.s, ids, 601);
    sync_to(f.s, ids, 610, 601);                 /* goes on where it is */
    assert_int_equal(ebb_session_sync(f.s, ids, 600, NULL, NULL), EBB_OK);   /* the same question again */
    expect_as_fresh(f.s, ids, 600);
    ids[550] ^= 1;
    sync_to(f.s, ids, 620, 2 * DISTANCE);
    ids[300] ^= 1;
    sync_to(f.s, ids, 310, DISTANCE);
    ids[DISTANCE] ^= 1;
    sync_to(f.s, ids, 270, DISTANCE);            /* just behind the checkpoint */
    ids[DISTANCE - 1] ^= 1;
    sync_to(f.s, ids, 260, 0);                   /* just before it */
    close_tiny_engine(&f);
}

static void test_states_of_two_timelines(void **state)
{
    ebb_tiny_opts tiny = tiny_of("qwen35");
    ebb_token a[N_IDS], b[N_IDS];
    ebb_session *t;
    tiny_engine f;

    (void)state;
    fill_ids(a, N_IDS, 1);
    memcpy(b, a, sizeof b);
    b[400] ^= 1;
    open_threads(&f, &tiny, 1024, 2);
    assert_int_equal(ebb_session_new(f.engine, &t, NULL), EBB_OK);
    sync_to(f.s, a, 420, 0);
    sync_to(t, b, 430, DISTANCE);                /* from the other's checkpoint */
    for (uint32_t i = 430; i < 440; i++) {       /* in turn */
        assert_int_equal(ebb_session_append(f.s, a[i - 10], NULL), EBB_OK);
        assert_int_equal(ebb_session_append(t, b[i], NULL), EBB_OK);
    }
    expect_as_fresh(f.s, a, 430);
    expect_as_fresh(t, b, 440);
    ebb_session_free(t);
    assert_int_equal(ebb_session_append(f.s, a[430], NULL), EBB_OK);
    expect_as_fresh(f.s, a, 431);
    close_tiny_engine(&f);
}

static size_t cancel_pos;

static void cancel_at(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)logits;
    (void)n_vocab;
    if (pos == cancel_pos)
        ebb_engine_cancel(arg);
}

/* A pass that was stopped has spoilt the state, between layers or (300: with more logits to come) within a matrix: what
 * follows is computed from a checkpoint. */
static void test_state_after_cancel(void **state)
{
    static const struct { size_t pos, n; } cases[] = { { 399, 400 }, { 300, 300 } };
    ebb_tiny_opts tiny = tiny_of("qwen35");
    ebb_token ids[N_IDS];
    size_t n;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N_IDS, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cancel_pos = cases[i].pos;
        open_threads(&f, &tiny, 1024, 2);
        assert_int_equal(ebb_session_eval(f.s, ids, 600, 100, cancel_at, f.engine, NULL), EBB_CANCELED);
        (void)ebb_session_ids(f.s, &n);
        assert_int_equal(n, cases[i].n);
        ebb_engine_cancel_clear(f.engine);
        assert_int_equal(ebb_session_append(f.s, ids[n], NULL), EBB_OK);
        expect_as_fresh(f.s, ids, (uint32_t)n + 1);
        sync_to(f.s, ids, 450, (uint32_t)n + 1);
        close_tiny_engine(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_every_n),
        cmocka_unit_test(test_same_bits_from_disk),
        cmocka_unit_test(test_same_bits_of_old_latents),
        cmocka_unit_test(test_same_bits_with_many_experts),
        cmocka_unit_test(test_split_experts_are_the_merged_ones),
        cmocka_unit_test(test_experts_of_several_types),
        cmocka_unit_test(test_windows_have_their_width),
        cmocka_unit_test(test_long_factors_hold_for_long_contexts),
        cmocka_unit_test(test_long_factors_begin_behind_the_trained_context),
        cmocka_unit_test(test_suppressed_tokens_are_never_chosen),
        cmocka_unit_test(test_states_go_back_to_a_checkpoint),
        cmocka_unit_test(test_states_of_two_timelines),
        cmocka_unit_test(test_state_after_cancel),
    };

    return cmocka_run_group_tests_name("archs", tests, NULL, NULL);
}
