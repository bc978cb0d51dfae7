/* The figures of an engine while it computes. */
#include "ebb_test.h"

#include "ebb/experimental/prompt_parts.h"
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
    ebb_stats_prefill_begin(l.engine, s, &(ebb_sync_counts){ .n_prompt = N });
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

typedef struct fixture {
    ebb_model   *model;
    char        *bytes;
    ebb_engine  *engine;
    ebb_session *s, *other;
    ebb_token    ids[N];
} fixture;

static void open_two_sessions(fixture *f)
{
    const ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 2 };
    const ebb_engine_opts o = { .n_ctx = 256, .n_batch = CHUNK, .n_threads = 1, .no_kv_cache = true,
                                .no_speculation = true };

    for (size_t i = 0; i < N; i++)
        f->ids[i] = (ebb_token)(i * 7 % EBB_TINY_VOCAB);
    f->model = ebb_tiny_open(&tiny, &f->bytes);
    assert_int_equal(ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(f->engine, &f->s, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(f->engine, &f->other, NULL), EBB_OK);
}

static void close_two_sessions(fixture *f)
{
    ebb_session_free(f->s);
    ebb_session_free(f->other);
    ebb_engine_close(f->engine);
    ebb_model_close(f->model);
    free(f->bytes);
}

static void expect_turn(fixture *f, uint32_t total, uint32_t done, uint32_t reused, uint32_t computed)
{
    ebb_stats s;

    ebb_engine_stats(f->engine, &s);
    assert_int_equal(s.prefill_total, total);
    assert_int_equal(s.prefill_done, done);
    assert_int_equal(s.reused_tok, reused);
    assert_int_equal(s.computed_tok, computed);
}

static void sync_ids(fixture *f, ebb_session *s, size_t n)
{
    assert_int_equal(ebb_session_sync(s, f->ids, n, NULL, NULL), EBB_OK);
}

/* A prompt in two syncs is one turn, though the sequence was emptied between them.  Without that word each is one. */
static void test_a_prompt_in_parts(void **state)
{
    ebb_stats stats;
    fixture f;

    (void)state;
    open_two_sessions(&f);
    ebb_session_begin_prompt(f.s, N);
    sync_ids(&f, f.s, CHUNK);
    expect_turn(&f, N, CHUNK, 0, CHUNK);
    assert_int_equal(ebb_session_sync(f.s, NULL, 0, NULL, NULL), EBB_OK);
    expect_turn(&f, N, CHUNK, 0, CHUNK);
    sync_ids(&f, f.s, N);
    expect_turn(&f, N, N, 0, N);                 /* the first blocks were in the cache */
    assert_int_equal(ebb_session_append(f.s, 5, NULL), EBB_OK);
    ebb_engine_stats(f.engine, &stats);
    assert_true(stats.generated_tok == 1 && stats.reused_tok == 0 && stats.prefill_tok_s > 0);
    sync_ids(&f, f.s, 0);
    ebb_engine_stats(f.engine, &stats);
    assert_true(stats.generated_tok == 1 && stats.n_ctx_used == 0);
    sync_ids(&f, f.s, 70);
    expect_turn(&f, 6, 6, 64, 6);
    ebb_session_begin_prompt(f.s, N);
    sync_ids(&f, f.s, 72);
    expect_turn(&f, N - 70, 2, 70, 2);
    f.ids[0]++;
    sync_ids(&f, f.other, 40);                       /* another one's turn: what goes on behind it is a turn again */
    expect_turn(&f, 40, 40, 0, 40);
    f.ids[0]--;
    sync_ids(&f, f.s, N);
    expect_turn(&f, N - 72, N - 72, 72, N - 72);
    close_two_sessions(&f);
}

/* Parts of a prompt that go along in passes of several sequences count, and the last one ends it. */
static void test_a_prompt_beside_others(void **state)
{
    ebb_token id = 5;
    fixture f;

    (void)state;
    open_two_sessions(&f);
    f.ids[0]++;
    sync_ids(&f, f.other, 33);
    f.ids[0]--;
    ebb_session_begin_prompt(f.s, N);
    sync_ids(&f, f.s, 40);
    expect_turn(&f, N, 40, 0, 40);
    for (size_t at = 40; at < N - 1; at += 13) {         /* 53, 66, 79 */
        const ebb_session_step steps[] = { { .session = f.s, .ids = &f.ids[at], .n = 13 },
                                           { .session = f.other, .ids = &id, .n = 1 } };

        assert_int_equal(ebb_sessions_append(steps, 2, NULL), EBB_OK);
    }
    expect_turn(&f, N, N - 1, 0, N + 2);
    assert_int_equal(ebb_sessions_append(&(ebb_session_step){ .session = f.s, .ids = &f.ids[N - 1], .n = 1 }, 1, NULL),
                     EBB_OK);
    expect_turn(&f, N, N, 0, N + 3);
    assert_false(f.s->has_part);
    close_two_sessions(&f);
}

/* What other sequences hold is not free. */
static void test_kv_of_all_sequences(void **state)
{
    uint64_t block;
    ebb_stats stats;
    fixture f;

    (void)state;
    open_two_sessions(&f);
    block = ebb_kv_group_block_bytes(f.engine->kv, EBB_KV_ALL);
    sync_ids(&f, f.s, 70);
    ebb_engine_stats(f.engine, &stats);
    assert_int_equal(stats.kv_memory_bytes, 3 * block);
    f.ids[0]++;
    sync_ids(&f, f.other, 33);
    ebb_engine_stats(f.engine, &stats);
    assert_int_equal(stats.n_ctx_used, 33);
    assert_int_equal(stats.kv_memory_bytes, 5 * block);
    assert_int_equal(ebb_stats_kv_free_bytes(&stats), stats.kv_bytes - 5 * block);
    sync_ids(&f, f.s, 0);
    sync_ids(&f, f.other, 34);
    sync_ids(&f, f.other, 65);                       /* cached blocks are there to be taken */
    ebb_engine_stats(f.engine, &stats);
    assert_int_equal(stats.kv_memory_bytes, 3 * block);
    close_two_sessions(&f);
}

/* The one that was shown is freed: the figures are of one that is left, and what it holds is not free. */
static void test_kv_when_one_is_freed(void **state)
{
    uint64_t block;
    ebb_stats stats;
    fixture f;

    (void)state;
    open_two_sessions(&f);
    block = ebb_kv_group_block_bytes(f.engine->kv, EBB_KV_ALL);
    ebb_session_begin_prompt(f.s, N);
    sync_ids(&f, f.s, 70);
    f.ids[0]++;
    sync_ids(&f, f.other, 33);
    f.ids[0]--;
    ebb_session_free(f.other);
    f.other = NULL;
    ebb_engine_stats(f.engine, &stats);
    assert_int_equal(stats.n_ctx_used, 70);
    assert_int_equal(stats.kv_memory_bytes, 3 * block);
    assert_int_equal(ebb_stats_kv_free_bytes(&stats), stats.kv_bytes - 3 * block);
    sync_ids(&f, f.s, N);                            /* its prompt's first part was the turn before the other's */
    expect_turn(&f, N - 70, N - 70, 70, N - 70);
    ebb_session_free(f.s);
    f.s = NULL;
    ebb_engine_stats(f.engine, &stats);
    assert_true(stats.n_ctx_used == 0 && stats.kv_memory_bytes == 0);
    close_two_sessions(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_progress), cmocka_unit_test(test_a_prompt_in_parts),
        cmocka_unit_test(test_a_prompt_beside_others), cmocka_unit_test(test_kv_of_all_sequences),
        cmocka_unit_test(test_kv_when_one_is_freed),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
