/* Forgetting in the middle of a sequence: K turned back is K computed at the new
 * position, as far as its type holds it; what was moved is never taken for computed. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/experimental/cache_salt.h"
#include "open/engine_state.h"
#include "kernels/kernels.h"
#include "support/own_folder.h"
#include "support/tiny_engine.h"

#define N_CTX 256u

static double nmse(const float *a, const float *b)
{
    double error = 0, power = 0;

    for (uint32_t i = 0; i < EBB_TINY_VOCAB; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        power += (double)b[i] * b[i];
    }
    return error / power;
}

static void open_typed(tiny_engine *f, const ebb_tiny_opts *tiny, ebb_kv_type type)
{
    ebb_engine_opts o = { .n_ctx = N_CTX,
                          .n_threads = 1,
                          .n_batch = 32, /* so that windows have blocks of their own */
                          .has_kv = true,
                          .kv_k = type,
                          .kv_v = type,
                          .no_kv_cache = true };

    open_tiny_engine(f, tiny, &o);
}

/* NMSE of the logits behind n_ids ids without [from, from + n) and with one token more: forgotten, and computed. */
static double distance(tiny_engine *f, uint32_t n_ids, uint32_t from, uint32_t n)
{
    ebb_token ids[N_CTX];
    float moved[EBB_TINY_VOCAB];
    ebb_sync_result r;

    fill_ids(ids, N_CTX, 3);
    assert_int_equal(ebb_session_sync(f->s, ids, n_ids, NULL, NULL), EBB_OK);
    if (ebb_session_shift(f->s, from, n, NULL) == EBB_UNSUPPORTED) {     /* a window reaches before it */
        assert_true(ebb_session_cannot_shift(f->s) || n_ids - n + 1 < from + ebb_kv_window(f->engine->kv));
        return 0;
    }
    memmove(ids + from, ids + from + n, (N_CTX - from - n) * sizeof *ids);
    assert_int_equal(ebb_session_sync(f->s, ids, n_ids - n + 1, &r, NULL), EBB_OK);
    assert_int_equal(r.n_computed, 1);
    memcpy(moved, ebb_session_logits(f->s), sizeof moved);
    assert_int_equal(ebb_session_sync(f->s, NULL, 0, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f->s, ids, n_ids - n + 1, &r, NULL), EBB_OK);
    assert_true(r.n_reused <= from);             /* computed blocks only */
    return nmse(moved, ebb_session_logits(f->s));
}

/* In a single layer K and V of a token depend on no other token.  (A layer of Nemotron H is one thing: a model needs
 * several.) */
static void check_arch(const char *arch, bool is_split)
{
    static const uint32_t cuts[][3] = { { 100, 10, 20 }, { 100, 0, 32 }, { 90, 33, 1 }, { 200, 64, 96 }, { 90, 85, 1 },
                                        { 70, 10, 52 }, { 250, 3, 71 }, { 250, 100, 130 } };
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 64, .is_split = is_split };
    tiny_engine f;

    tiny.n_layers = strncmp(arch, "nemotron_h", 10) == 0 ? 3 : 1;
    open_typed(&f, &tiny, EBB_KV_F32);
    for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
        double d = distance(&f, cuts[k][0], cuts[k][1], cuts[k][2]);

        if (d > 1e-9)
            fail_msg("%s: NMSE %g after forgetting %u from %u", arch, d, cuts[k][2], cuts[k][1]);
    }
    if (ebb_session_cannot_shift(f.s))
        print_message("%s cannot: %s\n", arch, ebb_session_cannot_shift(f.s));
    close_tiny_engine(&f);
}

static void test_k_is_that_of_the_new_position(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++)
        check_arch(ebb_tiny_archs[i], false);
    check_arch("deepseek2", true);
}

static void test_every_type(void **state)
{
    static const double limits[] = {
        [EBB_KV_F16] = 1e-5, [EBB_KV_Q8_0] = 1e-3, [EBB_KV_Q4_0] = 0.05, [EBB_KV_F32] = 1e-9
    };

    (void)state;
    for (int i = 0; i < 8; i++) {                /* heads of 16: two in a row of the cache */
        ebb_tiny_opts tiny = { .type = EBB_TYPE_F32, .n_layers = 1, .n_embd = 64, .head_dim = i < 4 ? 64 : 16 };
        ebb_kv_type type = (ebb_kv_type)(i % 4);
        tiny_engine f;
        double d;

        open_typed(&f, &tiny, type);
        d = distance(&f, 150, 20, 45);
        close_tiny_engine(&f);
        print_message("type %d, heads of %u: NMSE %.2g\n", type, tiny.head_dim, d);
        assert_true(d <= limits[type]);
    }
}

/* -- Names ------------------------------------------------------------------------------ */

static const ebb_tiny_opts small = { .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96 };

/* ids[0..170) without [40, 70), which `moved` gets the logits of. */
static uint32_t forget(ebb_session *s, ebb_token *ids, float *moved)
{
    fill_ids(ids, N_CTX, 5);
    assert_int_equal(ebb_session_sync(s, ids, 170, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_shift(s, 40, 30, NULL), EBB_OK);
    memmove(ids + 40, ids + 70, (N_CTX - 70) * sizeof *ids);
    assert_int_equal(ebb_session_sync(s, ids, 140 + 60, NULL, NULL), EBB_OK);
    memcpy(moved, ebb_session_logits(s), EBB_TINY_VOCAB * sizeof *moved);
    return 140 + 60;
}

static void expect_logits(const ebb_session *s, const float *want)
{
    assert_memory_equal(ebb_session_logits(s), want, EBB_TINY_VOCAB * sizeof *want);
}

static void fresh(const ebb_token *ids, uint32_t n, float *out)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true };
    tiny_engine f;

    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    memcpy(out, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *out);
    close_tiny_engine(&f);
}

static void test_moved_is_not_taken_for_computed(void **state)
{
    char dir[] = "/tmp/ebb-forget-XXXXXX";
    ebb_engine_opts o = { .n_ctx = 4 * N_CTX, .n_threads = 1, .kv_cache_dir = mkdtemp(dir) };
    ebb_token ids[N_CTX], other[N_CTX];
    float moved[EBB_TINY_VOCAB], computed[EBB_TINY_VOCAB];
    ebb_cache_salt shift;
    ebb_session *t;
    ebb_sync_result r;
    uint32_t n;
    tiny_engine f;

    (void)state;
    fill_ids(other, N_CTX, 9);
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_new(f.engine, &t, NULL), EBB_OK);
    n = forget(f.s, ids, moved);
    shift = ebb_session_get_cache_salt(f.s);
    assert_true(shift.is_on && shift.pos == 40);
    ebb_session_persist(f.s);
    fresh(ids, n, computed);
    assert_memory_not_equal(moved, computed, sizeof moved);
    assert_int_equal(ebb_session_common_prefix(t, ids, n), 40);  /* another session */
    assert_int_equal(ebb_session_sync(t, ids, n, &r, NULL), EBB_OK);
    expect_logits(t, computed);
    assert_int_equal(ebb_session_sync(f.s, ids, n, &r, NULL), EBB_OK);       /* this one goes on */
    assert_int_equal(r.n_computed, 0);
    expect_logits(f.s, moved);
    assert_int_equal(ebb_session_sync(f.s, ids, 39, &r, NULL), EBB_OK);      /* back before it, and on: computed */
    assert_false(ebb_session_get_cache_salt(f.s).is_on);
    assert_int_equal(ebb_session_sync(f.s, ids, n, &r, NULL), EBB_OK);
    expect_logits(f.s, computed);
    ebb_session_free(t);
    close_tiny_engine(&f);

    open_tiny_engine(&f, &small, &o);            /* from disk, if it is asked for */
    assert_int_equal(ebb_session_sync(f.s, other, 50, NULL, NULL), EBB_OK);
    ebb_session_set_cache_salt(f.s, &shift);
    assert_int_equal(ebb_session_sync(f.s, ids, n, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused_disk, n - 1);
    expect_logits(f.s, moved);
    shift.salt[3] ^= 1;                          /* one that nobody knows */
    ebb_session_set_cache_salt(f.s, &shift);
    assert_int_equal(ebb_session_sync(f.s, ids, n, &r, NULL), EBB_OK);
    expect_logits(f.s, computed);
    close_tiny_engine(&f);
    assert_int_equal(ebb_own_folder_end(dir), 0);
}

static void test_forgetting_again_and_at_the_end(void **state)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true };
    ebb_token ids[N_CTX];
    float moved[EBB_TINY_VOCAB], computed[EBB_TINY_VOCAB];
    tiny_engine f;
    size_t n;

    (void)state;
    open_tiny_engine(&f, &small, &o);
    n = forget(f.s, ids, moved);
    assert_int_equal(ebb_session_shift(f.s, 180, 20, NULL), EBB_OK);         /* the end: a cut */
    assert_true(ebb_session_get_cache_salt(f.s).is_on);
    assert_null(ebb_session_logits(f.s));
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    expect_logits(f.s, moved);
    assert_int_equal(ebb_session_shift(f.s, 100, 7, NULL), EBB_OK);
    assert_int_equal(ebb_session_get_cache_salt(f.s).pos, 40);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 193);
    assert_int_equal(ebb_session_shift(f.s, 10, 183, NULL), EBB_OK);
    assert_false(ebb_session_get_cache_salt(f.s).is_on);
    fresh(ids, 60, computed);
    assert_int_equal(ebb_session_sync(f.s, ids, 60, NULL, NULL), EBB_OK);
    expect_logits(f.s, computed);
    assert_int_equal(ebb_session_shift(f.s, 60, 1, NULL), EBB_USAGE);
    assert_int_equal(ebb_session_shift(f.s, 0, 61, NULL), EBB_USAGE);
    assert_int_equal(ebb_session_shift(f.s, 3, 0, NULL), EBB_USAGE);
    close_tiny_engine(&f);
}

/* A window sees positions before the end that is cut off, and those may be gone: then nothing changes. */
static void test_the_end_behind_a_window(void **state)
{
    const ebb_tiny_opts windowed = { .arch = "gemma3", .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .no_kv_cache = true };
    ebb_token ids[N_CTX];
    float before[EBB_TINY_VOCAB];
    tiny_engine f;
    size_t n;

    (void)state;
    fill_ids(ids, N_CTX, 3);
    open_tiny_engine(&f, &windowed, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, 200, NULL, NULL), EBB_OK);
    memcpy(before, ebb_session_logits(f.s), sizeof before);
    assert_int_equal(ebb_session_shift(f.s, 60, 140, NULL), EBB_UNSUPPORTED);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 200);
    expect_logits(f.s, before);
    assert_int_equal(ebb_session_append(f.s, ids[200], NULL), EBB_OK);
    assert_int_equal(ebb_session_shift(f.s, 0, 201, NULL), EBB_OK);      /* all of it */
    assert_int_equal(ebb_session_append(f.s, ids[0], NULL), EBB_OK);
    close_tiny_engine(&f);
}

/* The pool is full when the context is. */
static void test_forgetting_in_a_full_pool(void **state)
{
    ebb_engine_opts o = { .n_ctx = 128, .n_threads = 1, .no_kv_cache = true };
    ebb_token ids[N_CTX];
    ebb_session *t;
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N_CTX, 5);
    open_tiny_engine(&f, &small, &o);
    assert_int_equal(ebb_session_new(f.engine, &t, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, ids, 128, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(t, ids, 120, NULL, NULL), EBB_OK);     /* shares them */
    assert_int_equal(ebb_session_shift(f.s, 5, 50, NULL), EBB_OK);
    memmove(ids + 5, ids + 55, 200 * sizeof *ids);
    assert_int_equal(ebb_session_sync(f.s, ids, 128, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 78);
    ebb_session_free(t);
    assert_int_equal(ebb_session_sync(f.s, NULL, 0, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_kv_n_free(f.engine->kv, EBB_KV_ALL), ebb_kv_n_blocks(f.engine->kv, EBB_KV_ALL));
    close_tiny_engine(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_k_is_that_of_the_new_position),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_moved_is_not_taken_for_computed),
        cmocka_unit_test(test_the_end_behind_a_window),
        cmocka_unit_test(test_forgetting_again_and_at_the_end),
        cmocka_unit_test(test_forgetting_in_a_full_pool),
    };

    return cmocka_run_group_tests_name("forget", tests, NULL, NULL);
}
