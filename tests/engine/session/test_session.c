/* Sessions on models that the test writes itself: the logits of a position have
 * the same bits whichever way it was reached; prefixes are reused; what cannot
 * be done changes nothing. */
#include "ebb_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "kernels/kernels.h"
#include "open/engine_state.h"
#include "support/tiny_engine.h"

#define N_SHORT 70u
#define N_LONG 560u              /* crosses a segment of attention */

/* Logits of n positions by passes of `chunk` columns with `threads` threads. */
static float *eval(const ebb_tiny_opts *tiny, ebb_engine_opts o, uint32_t n, uint32_t chunk, uint32_t threads)
{
    tiny_engine f;
    ebb_token ids[N_LONG];
    float *out = calloc((size_t)n * EBB_TINY_VOCAB, sizeof *out);

    o.n_threads = threads;
    fill_ids(ids, n, 1);
    open_tiny_engine(&f, tiny, &o);
    assert_int_equal(ebb_session_eval(f.s, ids, n, chunk, keep_logits, out, NULL), EBB_OK);
    close_tiny_engine(&f);
    return out;
}

static void check_same(const ebb_tiny_opts *tiny, ebb_engine_opts o, uint32_t n, const uint32_t *chunks,
                       size_t n_chunks)
{
    float *want = eval(tiny, o, n, 1, 1);

    for (size_t i = 0; i < n_chunks; i++) {
        for (uint32_t threads = 1; threads <= 4; threads += ebb_test_one_in(3)) {
            float *got = eval(tiny, o, n, chunks[i], threads);

            if (memcmp(want, got, (size_t)n * EBB_TINY_VOCAB * sizeof *got) != 0)
                fail_msg("%s %s: other bits with %u columns, %u threads", tiny->arch ? tiny->arch : "llama",
                         ebb_type_get(tiny->type)->name, chunks[i], threads);
            free(got);
        }
    }
    free(want);
}

static void test_same_bits_for_every_n(void **state)
{
    static const ebb_type types[] = {
        EBB_TYPE_F32, EBB_TYPE_F16, EBB_TYPE_BF16, EBB_TYPE_Q8_0, EBB_TYPE_Q4_0, EBB_TYPE_Q5_1,
        EBB_TYPE_Q4_K, EBB_TYPE_Q5_K, EBB_TYPE_Q6_K,
    };
    static const uint32_t chunks[] = { 1, 2, 3, 5, 8, 17, 64 };

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i += ebb_test_one_in(4)) {
        ebb_tiny_opts tiny = { .type = types[i], .n_layers = 1, .seed = i };
        ebb_engine_opts o = { .n_ctx = 128 };

        check_same(&tiny, o, N_SHORT, chunks, sizeof chunks / sizeof *chunks);
    }
}

static void test_same_bits_over_segments(void **state)
{
    static const char *const archs[] = { "llama", "qwen2", "qwen3", "qwen3moe", "gemma2" };
    static const ebb_kv_type kv[] = { EBB_KV_F16, EBB_KV_F32, EBB_KV_Q8_0, EBB_KV_F16, EBB_KV_F16 };
    static const uint32_t chunks[] = { 1, 7, 64, 512 };

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i += ebb_test_one_in(2)) {
        ebb_tiny_opts tiny = { .arch = archs[i], .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .is_tied = i == 2 };
        ebb_engine_opts o = { .n_ctx = N_LONG, .has_kv = true, .kv_k = kv[i], .kv_v = kv[i] };

        check_same(&tiny, o, N_LONG, chunks, sizeof chunks / sizeof *chunks);
    }
    /* heads of 8, four of them in a row of the cache */
    ebb_tiny_opts narrow = { .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .n_head = 8, .n_head_kv = 4,
                             .head_dim = 8 };
    ebb_engine_opts o = { .n_ctx = N_LONG, .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q4_0 };

    check_same(&narrow, o, N_LONG, chunks, sizeof chunks / sizeof *chunks);
}

/* Every kind of kernels that this machine has computes what plain C computes. */
static void test_same_bits_for_every_cpu(void **state)
{
    static const ebb_type types[] = { EBB_TYPE_F16, EBB_TYPE_Q8_0, EBB_TYPE_Q4_K, EBB_TYPE_Q6_K };

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ebb_tiny_opts tiny = { .type = types[i], .n_layers = 1, .seed = i };
        ebb_engine_opts o = { .n_ctx = 64, .cpu = EBB_ISA_SCALAR };
        float *want = eval(&tiny, o, 40, 40, 2);

        for (o.cpu = EBB_ISA_AUTO; o.cpu <= EBB_ISA_NEON; o.cpu++) {
            const ebb_kernels *k;
            float *got;

            if (ebb_kernels_get(o.cpu, &k, NULL) != EBB_OK)
                continue;
            got = eval(&tiny, o, 40, 40, 2);
            if (memcmp(want, got, (size_t)40 * EBB_TINY_VOCAB * sizeof *got) != 0)
                fail_msg("%s: %s gives other bits than scalar", ebb_type_get(types[i])->name, k->name);
            free(got);
        }
        free(want);
    }
}

/* -- Prefixes ---------------------------------------------------------------------- */

static const ebb_tiny_opts small = { .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96 };

/* Compute ids anew in another engine: the logits of the last position. */
static void fresh(const ebb_token *ids, uint32_t n, float *out)
{
    ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1 };
    tiny_engine f;

    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    memcpy(out, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *out);
    close_tiny_engine(&f);
}

static void expect_fresh(const ebb_session *s, const ebb_token *ids, uint32_t n)
{
    float want[EBB_TINY_VOCAB];
    size_t n_held;

    fresh(ids, n, want);
    assert_memory_equal(ebb_session_ids(s, &n_held), ids, n * sizeof *ids);
    assert_int_equal(n_held, n);
    assert_memory_equal(ebb_session_logits(s), want, sizeof want);
}

static void test_sync_reuses_the_common_prefix(void **state)
{
    ebb_engine_opts o = { .n_ctx = 256, .n_threads = 2, .n_batch = 16 };
    ebb_token ids[200], other[200];
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    fill_ids(ids, 200, 1);
    memcpy(other, ids, sizeof ids);
    fill_ids(other + 50, 150, 2);
    other[50] = ids[50] ^ 1;
    open_tiny_engine(&f, &small, &o);
    assert_null(ebb_session_logits(f.s));

    assert_int_equal(ebb_session_sync(f.s, ids, 100, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 0);
    assert_int_equal(r.n_computed, 100);
    expect_fresh(f.s, ids, 100);

    assert_int_equal(ebb_session_sync(f.s, ids, 100, &r, NULL), EBB_OK);     /* nothing to do */
    assert_int_equal(r.n_computed, 0);
    expect_fresh(f.s, ids, 100);
    assert_int_equal(ebb_session_append(f.s, ids[100], NULL), EBB_OK);
    expect_fresh(f.s, ids, 101);

    assert_int_equal(ebb_session_common_prefix(f.s, other, 120), 50);
    assert_int_equal(ebb_session_sync(f.s, other, 120, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 50);
    assert_int_equal(r.n_computed, 70);
    expect_fresh(f.s, other, 120);

    assert_int_equal(ebb_session_sync(f.s, other, 60, &r, NULL), EBB_OK);    /* back: one token for its logits */
    assert_int_equal(r.n_reused, 59);
    assert_int_equal(r.n_computed, 1);
    expect_fresh(f.s, other, 60);

    assert_int_equal(ebb_session_sync(f.s, NULL, 0, &r, NULL), EBB_OK);
    assert_null(ebb_session_logits(f.s));
    close_tiny_engine(&f);
}

static void test_sessions_share_a_prefix(void **state)
{
    ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1 };
    ebb_token ids[120], other[120];
    ebb_session *t;
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    fill_ids(ids, 120, 1);
    memcpy(other, ids, sizeof ids);
    for (int i = 70; i < 120; i++)
        other[i] = (ids[i] + 1) % (int)EBB_TINY_VOCAB;
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_new(f.engine, &t, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, ids, 120, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_common_prefix(t, other, 110), 70);
    assert_int_equal(ebb_session_sync(t, other, 110, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 70);
    assert_int_equal(r.n_computed, 40);
    expect_fresh(t, other, 110);
    assert_int_equal(ebb_session_append(f.s, 5, NULL), EBB_OK);              /* the first one is untouched */
    assert_int_equal(ebb_session_sync(f.s, ids, 120, NULL, NULL), EBB_OK);
    expect_fresh(f.s, ids, 120);
    ebb_session_free(t);
    close_tiny_engine(&f);
}

static void test_old_timelines_give_way(void **state)
{
    ebb_engine_opts o = { .n_ctx = 128, .n_threads = 1 };
    ebb_token a[128], b[128];
    ebb_session *t;
    size_t n;
    tiny_engine f;

    (void)state;
    fill_ids(a, 128, 1);
    fill_ids(b, 128, 2);
    b[0] = a[0] ^ 1;
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_new(f.engine, &t, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, a, 100, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(t, b, 128, NULL, NULL), EBB_OK);
    expect_fresh(t, b, 128);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 0);
    assert_null(ebb_session_logits(f.s));
    assert_int_equal(ebb_session_sync(f.s, a, 100, NULL, NULL), EBB_OK);
    expect_fresh(f.s, a, 100);
    ebb_session_free(t);
    close_tiny_engine(&f);
}

/* -- Recurrent states --------------------------------------------------------------- */

#define N_SLOTS 6u               /* states of an engine whose passes take one sequence */

static void open_states(tiny_engine *f, ebb_session **s, uint32_t n)
{
    const ebb_tiny_opts tiny = { .arch = "qwen35", .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
    ebb_engine_opts o = { .n_ctx = 1024, .n_threads = 1, .n_batch = 256, .no_kv_cache = true };

    open_tiny_engine(f, &tiny, &o);
    assert_int_equal(f->engine->run.n_states, N_SLOTS);
    s[0] = f->s;
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(ebb_session_new(f->engine, &s[i], NULL), EBB_OK);
}

static void close_states(tiny_engine *f, ebb_session **s, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        ebb_session_free(s[i]);
    close_tiny_engine(f);
}

/* The logits behind ids[0..n) are those of ids that are computed anew. */
static void expect_anew(ebb_session *s, const ebb_token *ids, uint32_t n)
{
    float got[EBB_TINY_VOCAB], *all = calloc((size_t)n * EBB_TINY_VOCAB, sizeof *all);

    assert_non_null(all);
    assert_non_null(ebb_session_logits(s));
    memcpy(got, ebb_session_logits(s), sizeof got);
    assert_int_equal(ebb_session_eval(s, ids, n, 0, keep_logits, all, NULL), EBB_OK);
    assert_memory_equal(got, all + (size_t)(n - 1) * EBB_TINY_VOCAB, sizeof got);
    free(all);
}

/* Of six states five are live, and the last is the checkpoint that a sixth sequence begins with. */
static void test_the_last_checkpoint_becomes_the_live_state(void **state)
{
    ebb_session *s[N_SLOTS];
    ebb_token ids[40];
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    open_states(&f, s, N_SLOTS);
    for (uint32_t i = 0; i < N_SLOTS; i++) {
        fill_ids(ids, 40, i < N_SLOTS - 1 ? i : N_SLOTS - 2);
        assert_int_equal(ebb_session_sync(s[i], ids, 40, &r, NULL), EBB_OK);
    }
    assert_int_equal(r.n_reused, 39);
    for (uint32_t i = 0; i < N_SLOTS; i++)
        assert_non_null(s[i]->live);
    expect_anew(s[N_SLOTS - 1], ids, 40);
    close_states(&f, s, N_SLOTS);
}

/* One pass makes two checkpoints where five of six states are live: none of them is what another is called. */
static void test_each_checkpoint_of_a_pass_has_its_slot(void **state)
{
    ebb_session *s[N_SLOTS - 1], *last;
    ebb_token ids[256];
    tiny_engine f;

    (void)state;
    open_states(&f, s, N_SLOTS - 1);
    for (uint32_t i = 0; i < N_SLOTS - 1; i++) {
        fill_ids(ids, 256, i);
        last = s[i];
        assert_int_equal(ebb_session_sync(last, ids, i < N_SLOTS - 2 ? 20 : 256, NULL, NULL), EBB_OK);
    }
    ids[255] = (ids[255] + 1) % (int)EBB_TINY_VOCAB;     /* from the checkpoint before it, if there is one */
    assert_int_equal(ebb_session_sync(last, ids, 256, NULL, NULL), EBB_OK);
    expect_anew(last, ids, 256);
    close_states(&f, s, N_SLOTS - 1);
}

static ebb_token periodic_id(uint32_t i)
{
    return (ebb_token)(10 + i % 7);
}

/* Draft tokens wait while other sequences take all states: what is appended then has the bits that it has without. */
static void check_lost_state(bool is_drafted)
{
    ebb_session *s[N_SLOTS + 1];
    ebb_token ids[100], other[20];
    uint32_t n = 40;
    tiny_engine f;

    for (uint32_t i = 0; i < 100; i++)
        ids[i] = periodic_id(i);
    open_states(&f, s, N_SLOTS + 1);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    for (; n < 90 && f.s->n_pending < 2; n++)
        assert_int_equal(ebb_session_append(f.s, ids[n], NULL), EBB_OK);
    assert_true(f.s->n_pending >= 2);
    for (uint32_t i = 1; i <= N_SLOTS; i++) {
        fill_ids(other, 20, i);
        assert_int_equal(ebb_session_sync(s[i], other, 20, NULL, NULL), EBB_OK);
    }
    assert_null(f.s->live);
    ids[n] = is_drafted ? ids[n] : 200;
    assert_int_equal(ebb_session_append(f.s, ids[n++], NULL), EBB_OK);
    assert_int_equal(ebb_session_append(f.s, ids[n++], NULL), EBB_OK);
    expect_anew(f.s, ids, n);
    close_states(&f, s, N_SLOTS + 1);
}

static void test_draft_tokens_may_lose_their_state(void **state)
{
    (void)state;
    check_lost_state(true);
    check_lost_state(false);
}

/* -- What cannot be done ------------------------------------------------------------ */

static void test_context_overflow_changes_nothing(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1 };
    ebb_error err = { 0 };
    ebb_token ids[80];
    tiny_engine f;

    (void)state;
    fill_ids(ids, 80, 1);
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, 64, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, ids, 65, NULL, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "64"));
    assert_int_equal(ebb_session_append(f.s, ids[64], &err), EBB_CONTEXT);
    expect_fresh(f.s, ids, 64);
    close_tiny_engine(&f);
}

static void test_ids_beyond_the_vocabulary_are_refused(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1 };
    ebb_error err = { 0 };
    ebb_token ids[3] = { 1, 2, EBB_TINY_VOCAB };
    float before[EBB_TINY_VOCAB], all[3 * EBB_TINY_VOCAB];
    size_t n;
    tiny_engine f;

    (void)state;
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, 3, NULL, &err), EBB_USAGE);
    assert_int_equal(ebb_session_append(f.s, -1, &err), EBB_USAGE);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 0);
    ids[2] = 3;                                  /* a sequence stays as it is, and so do its logits */
    assert_int_equal(ebb_session_sync(f.s, ids, 3, NULL, &err), EBB_OK);
    memcpy(before, ebb_session_logits(f.s), sizeof before);
    ids[1] = -5;
    assert_int_equal(ebb_session_sync(f.s, ids, 3, NULL, &err), EBB_USAGE);
    assert_int_equal(ebb_session_append(f.s, EBB_TINY_VOCAB, &err), EBB_USAGE);
    assert_int_equal(ebb_session_eval(f.s, ids, 3, 0, keep_logits, all, &err), EBB_USAGE);
    assert_int_equal(ebb_session_ids(f.s, &n)[1], 2);
    assert_int_equal(n, 3);
    assert_non_null(ebb_session_logits(f.s));
    assert_memory_equal(ebb_session_logits(f.s), before, sizeof before);
    close_tiny_engine(&f);
}

static void cancel_at(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)logits;
    (void)n_vocab;
    if (pos == 31)
        ebb_engine_cancel(arg);
}

static void test_cancel_keeps_finished_chunks(void **state)
{
    ebb_engine_opts o = { .n_ctx = 128, .n_threads = 2, .n_batch = 16 };
    ebb_token ids[100];
    ebb_sync_result r;
    ebb_stats st;
    size_t n;
    tiny_engine f;

    (void)state;
    fill_ids(ids, 100, 1);
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_eval(f.s, ids, 100, 16, cancel_at, f.engine, NULL), EBB_CANCELED);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 32);
    assert_int_equal(ebb_session_sync(f.s, ids, 100, NULL, NULL), EBB_CANCELED);
    ebb_engine_cancel_clear(f.engine);
    assert_int_equal(ebb_session_sync(f.s, ids, 100, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 32);
    expect_fresh(f.s, ids, 100);
    ebb_engine_stats(f.engine, &st);
    assert_int_equal(st.prefill_done, 68);
    assert_int_equal(st.prefill_total, 68);
    assert_int_equal(st.n_ctx_used, 100);
    assert_true(st.rss_peak_bytes > 0 && st.kv_bytes > 0 && st.scratch_bytes > 0);
    close_tiny_engine(&f);
}

typedef struct meddler {
    ebb_engine *engine;
    atomic_bool ends;
} meddler;

/* Cancels at any moment, and takes it back at any other. */
static void *meddle(void *arg)
{
    meddler *m = arg;

    for (unsigned i = 1; !atomic_load(&m->ends); i = i * 1103515245u + 12345u) {
        ebb_engine_cancel(m->engine);
        for (volatile unsigned k = i >> 20 & 1023; k > 0; k--)
            ;
        ebb_engine_cancel_clear(m->engine);
        usleep(i >> 22);
    }
    return NULL;
}

/* What was computed all the same has the bits of a pass that nobody disturbed. */
static void test_cancel_within_a_layer(void **state)
{
    static const uint32_t chunks[] = { 1, 16, 64 };
    ebb_engine_opts o = { .n_ctx = 128, .n_threads = 3 };
    ebb_token ids[N_SHORT];
    size_t n_canceled = 0;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N_SHORT, 1);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        float *want = eval(&small, o, N_SHORT, chunks[i], 1),
              *got = calloc((size_t)N_SHORT * EBB_TINY_VOCAB, sizeof *got);
        meddler m;
        pthread_t thread;

        open_tiny_engine(&f, &small, &o);
        m.engine = f.engine;
        atomic_init(&m.ends, false);
        assert_int_equal(pthread_create(&thread, NULL, meddle, &m), 0);
        for (int k = 0; k < 40; k++) {
            ebb_status st;
            while ((st = ebb_session_eval(f.s, ids, N_SHORT, chunks[i], keep_logits, got, NULL)) == EBB_CANCELED)
                n_canceled++;
            assert_int_equal(st, EBB_OK);
            assert_memory_equal(want, got, (size_t)N_SHORT * EBB_TINY_VOCAB * sizeof *got);
            assert_int_equal(ebb_session_sync(f.s, ids, 0, NULL, NULL), EBB_OK);
        }
        atomic_store(&m.ends, true);
        pthread_join(thread, NULL);
        close_tiny_engine(&f);
        free(want);
        free(got);
    }
    print_message("%zu passes were canceled\n", n_canceled);       /* how many is the machine's mood */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_every_n),
        cmocka_unit_test(test_same_bits_over_segments),
        cmocka_unit_test(test_same_bits_for_every_cpu),
        cmocka_unit_test(test_sync_reuses_the_common_prefix),
        cmocka_unit_test(test_sessions_share_a_prefix),
        cmocka_unit_test(test_old_timelines_give_way),
        cmocka_unit_test(test_the_last_checkpoint_becomes_the_live_state),
        cmocka_unit_test(test_each_checkpoint_of_a_pass_has_its_slot),
        cmocka_unit_test(test_draft_tokens_may_lose_their_state),
        cmocka_unit_test(test_context_overflow_changes_nothing),
        cmocka_unit_test(test_ids_beyond_the_vocabulary_are_refused),
        cmocka_unit_test(test_cancel_keeps_finished_chunks),
        cmocka_unit_test(test_cancel_within_a_layer),
    };

    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
