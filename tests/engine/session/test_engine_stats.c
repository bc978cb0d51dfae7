/* The figures of an engine while it computes. */
#include "ebb_test.h"

#include "ebb/session.h"
#include "open/engine_state.h"
#include "support/tiny_model.h"

enum { N = 80, CHUNK = 64, LAYERS_MAX = 64 };

typedef struct looks {
    ebb_engine *engine;
    uint32_t    done[LAYERS_MAX];
    size_t      n;
} looks;

static void look(looks *l)
{
    ebb_stats s;

    ebb_engine_stats(l->engine, &s);
    assert_int_equal(s.phase, EBB_PHASE_PREFILL);
    assert_int_equal(s.prefill_total, N);
    assert_true(s.prefill_done == 0 || s.prefill_tok_s > 0);
    assert_true(l->n < LAYERS_MAX);
    l->done[l->n++] = s.prefill_done;
}

/* A pass of the prompt, as a session makes it. */
static void compute_chunk(looks *l, ebb_session *s, const ebb_token *ids, uint32_t pos0, uint32_t n)
{
    const ebb_batch_seq seq = { .ids = ids + pos0, .n = n, .pos0 = pos0, .table = &s->table };
    const ebb_batch b = { .seqs = &seq, .n_seqs = 1, .n = n };
    ebb_forward *f = &l->engine->run;
    ebb_status st;

    assert_int_equal(ebb_session_reserve(s, pos0 + n, NULL), EBB_OK);
    ebb_stats_prefill_pass(l->engine, n);
    st = ebb_forward_begin(f, &b, NULL);
    while (st == EBB_OK && ebb_forward_has_layer(f)) {
        look(l);
        st = ebb_forward_layer(f, NULL);
    }
    assert_int_equal(ebb_forward_end(f, st, NULL), EBB_OK);
    ebb_stats_prefill_step(l->engine, pos0 + n, 1e-3);
}

/* The progress of a prompt moves within a chunk, layer by layer, and never goes back. */
static void test_layers_are_progress(void **state)
{
    const ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 4 };
    ebb_engine_opts o = { .n_ctx = 128, .n_batch = CHUNK, .n_threads = 2 };
    ebb_model *m;
    looks l = { 0 };
    ebb_session *s;
    ebb_token ids[N];
    ebb_stats stats;
    char *bytes;

    (void)state;
    for (size_t i = 0; i < N; i++)
        ids[i] = (ebb_token)(i * 7 % EBB_TINY_VOCAB);
    m = ebb_tiny_open(&tiny, &bytes);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &l.engine, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(l.engine, &s, NULL), EBB_OK);
    ebb_stats_prefill_begin(l.engine, s, 0, 0, N);
    compute_chunk(&l, s, ids, 0, CHUNK);
    compute_chunk(&l, s, ids, CHUNK, N - CHUNK);
    assert_int_equal(l.n, 8);                    /* two chunks of four layers */
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(l.done[i], CHUNK * i / 4);
        assert_int_equal(l.done[4 + i], CHUNK + (N - CHUNK) * i / 4);
    }
    ebb_engine_stats(l.engine, &stats);
    assert_int_equal(stats.prefill_done, N);
    ebb_session_clear(s);
    assert_int_equal(ebb_session_sync(s, ids, N, NULL, NULL), EBB_OK);
    ebb_engine_stats(l.engine, &stats);
    assert_int_equal(stats.prefill_done, N);
    ebb_session_free(s);
    ebb_engine_close(l.engine);
    ebb_model_close(m);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_layers_are_progress) };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
