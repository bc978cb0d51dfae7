/* Several sequences in one pass: each has the bits that it has alone, whatever is beside it. */
#include "ebb_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "open/engine_state.h"
#include "support/tiny_engine.h"

enum { N_SEQS = 8, LENGTH = 90, N_CTX = 1024, BATCH = 64, N_PASSES = 40 };

/* What the sequences are, and the logits that each of them has alone. */
typedef struct texts {
    ebb_token ids[N_SEQS][LENGTH];
    float    *alone[N_SEQS];     /* [LENGTH][vocabulary] */
} texts;

static uint64_t random_state;

static uint32_t draw(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static ebb_tiny_opts tiny_of(const char *arch)
{
    return (ebb_tiny_opts){ .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
}

/* Every other sequence begins as the one before it does. */
static void init_texts(texts *t, const ebb_model *m)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = BATCH, .no_kv_cache = true };
    ebb_engine *e;
    ebb_session *s;

    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    for (uint32_t i = 0; i < N_SEQS; i++) {
        fill_ids(t->ids[i], LENGTH, 7 * i + 1);
        if (i % 2)
            memcpy(t->ids[i], t->ids[i - 1], 40 * sizeof **t->ids);
        t->alone[i] = calloc((size_t)LENGTH * EBB_TINY_VOCAB, sizeof **t->alone);
        assert_int_equal(ebb_session_eval(s, t->ids[i], LENGTH, 1, keep_logits, t->alone[i], NULL), EBB_OK);
    }
    ebb_session_free(s);
    ebb_engine_close(e);
}

static void free_texts(texts *t)
{
    for (uint32_t i = 0; i < N_SEQS; i++)
        free(t->alone[i]);
}

static size_t length_of(const ebb_session *s)
{
    size_t n;

    (void)ebb_session_ids(s, &n);
    return n;
}

static void check_logits(const texts *t, const ebb_session *s, uint32_t i, const char *what)
{
    size_t n = length_of(s);

    assert_true(n > 0 && ebb_session_logits(s));
    assert_memory_equal(ebb_session_ids(s, &n), t->ids[i], n * sizeof **t->ids);
    if (memcmp(ebb_session_logits(s), t->alone[i] + (n - 1) * EBB_TINY_VOCAB, EBB_TINY_VOCAB * sizeof(float)) != 0)
        fail_msg("%s: sequence %u has other bits behind %zu tokens", what, i, n);
}

/* A pass of some sequences that are not at their end, with one token or several each. */
static void shared_pass(const texts *t, ebb_session *const *s, const char *what)
{
    ebb_session_step steps[N_SEQS];
    uint32_t which[N_SEQS], n = 0, room = BATCH;

    for (uint32_t i = 0; i < N_SEQS; i++) {
        size_t at = length_of(s[i]), most = at < LENGTH ? LENGTH - at : 0;
        uint32_t want = draw(3) ? 1 : 1 + draw(30);

        want = want < most ? want : (uint32_t)most;
        want = want < room ? want : room;
        if (want == 0 || draw(4) == 0)
            continue;
        room -= want;
        which[n] = i;
        steps[n++] = (ebb_session_step){ .session = s[i], .ids = t->ids[i] + at, .n = want };
    }
    if (n == 0)
        return;
    assert_int_equal(ebb_sessions_append(steps, n, NULL), EBB_OK);
    for (uint32_t k = 0; k < n; k++)
        check_logits(t, s[which[k]], which[k], what);
}

/* What else happens to a sequence between passes. */
static void disturb(const texts *t, ebb_engine *e, ebb_session **s, const char *what)
{
    uint32_t i = draw(N_SEQS);
    size_t n = length_of(s[i]);

    switch (draw(4)) {
    case 0:                                      /* it goes back */
        if (n > 1)
            assert_int_equal(ebb_session_sync(s[i], t->ids[i], 1 + draw((uint32_t)n - 1), NULL, NULL), EBB_OK);
        break;
    case 1:                                      /* it goes on alone, with draft tokens if there are some */
        for (uint32_t k = 0; k < 3 && n + k < LENGTH; k++)
            assert_int_equal(ebb_session_append(s[i], t->ids[i][n + k], NULL), EBB_OK);
        break;
    case 2: {                                    /* a copy takes its place */
        ebb_session *copy;

        assert_int_equal(ebb_session_fork(s[i], &copy, NULL), EBB_OK);
        ebb_session_free(s[i]);
        s[i] = copy;
        break;
    }
    default:                                     /* the one beside it becomes a copy of it, where they are the same */
        if (i % 2 && length_of(s[i - 1]) > 0 && length_of(s[i - 1]) <= 40) {
            ebb_session_free(s[i]);
            assert_int_equal(ebb_session_fork(s[i - 1], &s[i], NULL), EBB_OK);
        }
        break;
    }
    if (length_of(s[i]) > 0 && ebb_session_logits(s[i]))
        check_logits(t, s[i], i, what);
    assert_null(ebb_kv_check(e->kv));
}

static void check_engine(const texts *t, const ebb_model *m, const ebb_engine_opts *o, const char *what)
{
    ebb_session *s[N_SEQS];
    ebb_engine *e;

    if (ebb_engine_open(m, o, NULL, NULL, &e, NULL) == EBB_UNSUPPORTED)
        return;                                  /* this CPU has other kernels */
    assert_true(ebb_engine_max_sequences(e) >= N_SEQS);
    for (uint32_t i = 0; i < N_SEQS; i++)
        assert_int_equal(ebb_session_new(e, &s[i], NULL), EBB_OK);
    random_state = 1;
    for (uint32_t i = 0; i < N_PASSES; i++) {
        shared_pass(t, s, what);
        disturb(t, e, s, what);
    }
    for (uint32_t i = 0; i < N_SEQS; i++)
        ebb_session_free(s[i]);
    ebb_engine_close(e);
}

static ebb_engine_opts opts_of(uint32_t threads, ebb_isa cpu)
{
    return (ebb_engine_opts){ .n_ctx = N_CTX, .n_threads = threads, .n_batch = BATCH, .cpu = cpu,
                              .n_sequences = N_SEQS, .no_kv_cache = true };
}

static void check_model(const ebb_tiny_opts *tiny)
{
    static const ebb_isa isas[] = { EBB_ISA_SCALAR, EBB_ISA_AVX2, EBB_ISA_AVXVNNI, EBB_ISA_AVX512, EBB_ISA_AMX,
                                     EBB_ISA_NEON };
    char path[] = "build/test_steps.XXXXXX.gguf";
    ebb_engine_opts o = opts_of(2, EBB_ISA_AUTO);
    ebb_model *m;
    texts t;

    close(mkstemps(path, 5));                    /* a name of its own */
    assert_true(ebb_tiny_write(tiny, path));
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    init_texts(&t, m);
    check_engine(&t, m, &(ebb_engine_opts){ .n_ctx = N_CTX, .n_threads = 1, .n_batch = BATCH, .n_sequences = N_SEQS },
                 tiny->arch);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        ebb_engine_opts own = opts_of(2, isas[i]);

        check_engine(&t, m, &own, tiny->arch);
    }
    o.has_resident = true;                       /* all layers streamed */
    check_engine(&t, m, &o, tiny->arch);
    free_texts(&t);
    ebb_model_close(m);
    unlink(path);
}

static void test_bits_are_those_of_one_alone(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);

        if (i % ebb_test_one_in(8) == 0)
            check_model(&tiny);
    }
}

static void test_draft_heads_follow(void **state)
{
    static const char *const archs[] = { "qwen35", "deepseek2" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ebb_tiny_opts tiny = tiny_of(archs[i]);

        tiny.has_draft_head = true;
        check_model(&tiny);
    }
}

/* -- What cannot be ------------------------------------------------------------------- */

static void test_no_room_changes_nothing(void **state)
{
    const ebb_tiny_opts tiny = tiny_of("llama");
    ebb_engine_opts o = { .n_ctx = 96, .n_threads = 1, .n_batch = 32, .no_kv_cache = true };
    ebb_session *s[3];
    ebb_token ids[96];
    ebb_session_step steps[3];
    tiny_engine f;

    (void)state;
    open_tiny_engine(&f, &tiny, &o);
    fill_ids(ids, 96, 5);
    for (uint32_t i = 0; i < 3; i++) {           /* four blocks of 32 for three of them */
        ids[0] = (ebb_token)i;
        assert_int_equal(ebb_session_new(f.engine, &s[i], NULL), EBB_OK);
        assert_int_equal(ebb_session_sync(s[i], ids, i < 2 ? 32 : 10, NULL, NULL), EBB_OK);
        steps[i] = (ebb_session_step){ .session = s[i], .ids = ids + 40, .n = 1 };
    }
    assert_int_equal(ebb_sessions_append(steps, 3, NULL), EBB_BUDGET);
    assert_int_equal(length_of(s[0]), 32);
    assert_int_equal(length_of(s[1]), 32);
    assert_int_equal(length_of(s[2]), 10);
    for (uint32_t i = 0; i < 3; i++)
        assert_non_null(ebb_session_logits(s[i]));
    assert_int_equal(ebb_sessions_append(steps, 2, NULL), EBB_OK);       /* the third gives way */
    assert_int_equal(length_of(s[0]), 33);
    assert_int_equal(length_of(s[1]), 33);
    assert_int_equal(length_of(s[2]), 0);
    for (uint32_t i = 0; i < 3; i++)
        ebb_session_free(s[i]);
    close_tiny_engine(&f);
}

/* A pass that was stopped has cost the first one its state, and there is no room to compute it again: it is empty then,
 * and no shorter one that the caller would go on with. */
static void test_a_lost_state_leaves_nothing(void **state)
{
    const ebb_tiny_opts tiny = tiny_of("qwen35");
    ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1, .n_batch = 64, .no_kv_cache = true, .no_speculation = true };
    ebb_session *s[3];
    ebb_token ids[256], other[256];
    ebb_session_step steps[3];
    tiny_engine f;

    (void)state;
    open_tiny_engine(&f, &tiny, &o);
    fill_ids(ids, 256, 1);
    fill_ids(other, 256, 2);
    s[0] = f.s;
    assert_int_equal(ebb_session_new(f.engine, &s[2], NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(s[0], ids, 6, NULL, NULL), EBB_OK);
    for (size_t i = 6; i < 127; i++)
        assert_int_equal(ebb_session_append(s[0], ids[i], NULL), EBB_OK);
    assert_int_equal(ebb_session_fork(s[0], &s[1], NULL), EBB_OK);
    ebb_engine_cancel(f.engine);
    assert_int_equal(ebb_session_append(s[0], ids[127], NULL), EBB_CANCELED);
    ebb_engine_cancel_clear(f.engine);
    assert_int_equal(ebb_session_sync(s[2], other, 127, NULL, NULL), EBB_OK);
    for (uint32_t i = 0; i < 3; i++)
        steps[i] = (ebb_session_step){ .session = s[i], .ids = (i < 2 ? ids : other) + 127, .n = 1 };
    assert_int_equal(ebb_sessions_append(steps, 3, NULL), EBB_BUDGET);
    assert_int_equal(length_of(s[0]), 0);
    assert_int_equal(length_of(s[1]), 127);
    assert_int_equal(length_of(s[2]), 127);
    ebb_session_free(s[1]);
    ebb_session_free(s[2]);
    close_tiny_engine(&f);
}

/* One token of one sequence: its state went to the others, and bringing it back is stopped when a part of that is done.
 */
static void test_a_state_that_is_stopped_half_way_leaves_nothing(void **state)
{
    const ebb_tiny_opts tiny = tiny_of("qwen35");
    ebb_engine_opts o = { .n_ctx = 512, .n_threads = 1, .no_kv_cache = true };
    ebb_session *others[7];
    ebb_session_step step;
    ebb_token ids[64], first;
    tiny_engine f;

    (void)state;
    open_tiny_engine(&f, &tiny, &o);
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        fill_ids(ids, 64, 1);
        first = ids[0];
        assert_int_equal(ebb_session_sync(f.s, ids, 40, NULL, NULL), EBB_OK);
        for (size_t i = 40; i < 60; i++)
            assert_int_equal(ebb_session_append(f.s, ids[i], NULL), EBB_OK);
        for (ebb_token k = 0; k < 7; k++) {      /* the last one leaves a checkpoint of the same text */
            ids[0] = k < 6 ? (first + k + 1) % (ebb_token)EBB_TINY_VOCAB : first;
            assert_int_equal(ebb_session_new(f.engine, &others[k], NULL), EBB_OK);
            assert_int_equal(ebb_session_sync(others[k], ids, k < 6 ? 20 : 31, NULL, NULL), EBB_OK);
        }
        step = (ebb_session_step){ .session = f.s, .ids = ids + 60, .n = 1 };
        ebb_engine_cancel(f.engine);
        assert_int_equal(is_plain ? ebb_session_append(f.s, ids[60], NULL) : ebb_sessions_append(&step, 1, NULL),
                         EBB_CANCELED);
        ebb_engine_cancel_clear(f.engine);
        assert_int_equal(length_of(f.s), 0);
        for (int k = 0; k < 7; k++)
            ebb_session_free(others[k]);
    }
    close_tiny_engine(&f);
}

static void test_what_cannot_share_is_refused(void **state)
{
    const ebb_tiny_opts tiny = tiny_of("llama");
    ebb_engine_opts o = { .n_ctx = 96, .n_threads = 1, .n_batch = 32, .no_kv_cache = true };
    ebb_token ids[96], no_id = EBB_TINY_VOCAB;
    ebb_session *s;
    tiny_engine f;

    (void)state;
    open_tiny_engine(&f, &tiny, &o);
    fill_ids(ids, 96, 5);
    assert_int_equal(ebb_session_new(f.engine, &s, NULL), EBB_OK);
    ebb_session_step twice[] = { { s, ids, 1 }, { s, ids, 1 } }, none[] = { { s, ids, 1 }, { f.s, ids, 0 } },
                     large[] = { { s, ids, 30 }, { f.s, ids, 3 } }, full[] = { { s, ids, 1 }, { f.s, ids, 10 } },
                     unknown[] = { { f.s, ids, 1 }, { s, &no_id, 1 } };

    assert_int_equal(ebb_sessions_append(twice, 0, NULL), EBB_USAGE);
    assert_int_equal(ebb_sessions_append(twice, 2, NULL), EBB_USAGE);
    assert_int_equal(ebb_sessions_append(none, 2, NULL), EBB_USAGE);
    assert_int_equal(ebb_sessions_append(large, 2, NULL), EBB_USAGE);
    assert_int_equal(ebb_session_sync(f.s, ids, 90, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_sessions_append(full, 2, NULL), EBB_CONTEXT);
    assert_int_equal(ebb_sessions_append(unknown, 2, NULL), EBB_USAGE);
    assert_non_null(ebb_session_logits(f.s));
    assert_int_equal(length_of(f.s), 90);
    assert_int_equal(length_of(s), 0);
    ebb_session_free(s);
    close_tiny_engine(&f);
}

/* A pass that was stopped has added nothing, and all of them go on with the same bits. */
static void test_cancel_is_taken_back(void **state)
{
    static const char *const archs[] = { "llama", "gemma3", "qwen35" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ebb_tiny_opts tiny = tiny_of(archs[i]);
        ebb_engine_opts o = opts_of(2, EBB_ISA_AUTO);
        ebb_session_step steps[2];
        ebb_session *s[2];
        char *bytes;
        ebb_model *m = ebb_tiny_open(&tiny, &bytes);
        ebb_engine *e;
        texts t;

        init_texts(&t, m);
        assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(ebb_session_new(e, &s[k], NULL), EBB_OK);
            assert_int_equal(ebb_session_sync(s[k], t.ids[k], 30 + k, NULL, NULL), EBB_OK);
            steps[k] = (ebb_session_step){ .session = s[k], .ids = t.ids[k] + 30 + k, .n = 1 + k };
        }
        ebb_engine_cancel(e);
        assert_int_equal(ebb_sessions_append(steps, 2, NULL), EBB_CANCELED);
        ebb_engine_cancel_clear(e);
        assert_int_equal(length_of(s[0]), 30);
        assert_int_equal(length_of(s[1]), 31);
        assert_int_equal(ebb_sessions_append(steps, 2, NULL), EBB_OK);
        for (uint32_t k = 0; k < 2; k++) {
            check_logits(&t, s[k], k, archs[i]);
            ebb_session_free(s[k]);
        }
        free_texts(&t);
        ebb_engine_close(e);
        ebb_model_close(m);
        free(bytes);
    }
}

/* A copy takes no blocks until it is continued, and then one. */
static void test_fork_shares_blocks(void **state)
{
    const ebb_tiny_opts tiny = tiny_of("llama");
    ebb_engine_opts o = { .n_ctx = 512, .n_threads = 1, .n_batch = 64, .no_kv_cache = true };
    ebb_token ids[100];
    ebb_session *copy;
    tiny_engine f;
    uint32_t n_free;

    (void)state;
    open_tiny_engine(&f, &tiny, &o);
    fill_ids(ids, 100, 5);
    assert_int_equal(ebb_session_sync(f.s, ids, 99, NULL, NULL), EBB_OK);
    n_free = ebb_kv_n_free(f.engine->kv, EBB_KV_ALL);
    assert_int_equal(ebb_session_fork(f.s, &copy, NULL), EBB_OK);
    assert_int_equal(ebb_kv_n_free(f.engine->kv, EBB_KV_ALL), n_free);
    assert_memory_equal(ebb_session_logits(copy), ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof(float));
    assert_int_equal(ebb_session_append(copy, ids[99], NULL), EBB_OK);
    assert_int_equal(ebb_kv_n_free(f.engine->kv, EBB_KV_ALL), n_free - 1);
    assert_int_equal(ebb_session_append(f.s, ids[99], NULL), EBB_OK);
    assert_int_equal(ebb_kv_n_free(f.engine->kv, EBB_KV_ALL), n_free - 1);
    assert_memory_equal(ebb_session_logits(copy), ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof(float));
    ebb_session_free(copy);
    close_tiny_engine(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_those_of_one_alone),
        cmocka_unit_test(test_draft_heads_follow),
        cmocka_unit_test(test_a_lost_state_leaves_nothing),
        cmocka_unit_test(test_a_state_that_is_stopped_half_way_leaves_nothing),
        cmocka_unit_test(test_no_room_changes_nothing),
        cmocka_unit_test(test_what_cannot_share_is_refused),
        cmocka_unit_test(test_cancel_is_taken_back),
        cmocka_unit_test(test_fork_shares_blocks),
    };

    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
