/* Layers that see a window keep only what it sees: fewer bytes, the same bits; going back, sharing and
 * restoring as far as that reaches. */
#include "ebb_test.h"

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "open/engine_state.h"
#include "support/own_folder.h"
#include "support/tiny_engine.h"

#define N     500u
#define N_CTX 512u

static const char *const archs[] = { "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "cohere2" };
enum { N_ARCHS = sizeof archs / sizeof *archs };

static void open_arch(tiny_engine *f, const char *arch, const ebb_engine_opts *o)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 64 };

    open_tiny_engine(f, &tiny, o);
}

/* Logits of all positions; all K and V are kept if a step may be as long as the context. */
static float *eval(const char *arch, uint32_t n_batch, uint32_t chunk, bool has_window)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 2, .n_batch = n_batch, .no_kv_cache = true };
    float *out = calloc((size_t)N * EBB_TINY_VOCAB, sizeof *out);
    ebb_token ids[N];
    tiny_engine f;

    fill_ids(ids, N, 1);
    open_arch(&f, arch, &o);
    assert_int_equal(ebb_kv_window(f.engine->kv), has_window ? EBB_TINY_WINDOW : 0);
    assert_int_equal(ebb_session_eval(f.s, ids, N, chunk, keep_logits, out, NULL), EBB_OK);
    close_tiny_engine(&f);
    return out;
}

static void test_the_same_bits_across_the_edge(void **state)
{
    static const uint32_t chunks[] = { 1, 7, 16, 33, 64 };

    (void)state;
    for (unsigned i = 0; i < N_ARCHS; i++) {
        float *want = eval(archs[i], N_CTX, N_CTX, false);

        for (unsigned k = 0; k < sizeof chunks / sizeof *chunks; k++) {
            float *got = eval(archs[i], 64, chunks[k], true);

            if (memcmp(want, got, (size_t)N * EBB_TINY_VOCAB * sizeof *got) != 0)
                fail_msg("%s: other bits with %u columns", archs[i], chunks[k]);
            free(got);
        }
        free(want);
    }
}

/* Gemma 3 4B: 34 layers, of which 29 see 1,024 positions; 4 KV heads of 256. */
static void test_bytes_are_those_of_the_formula(void **state)
{
    enum { ROW = 4 * 256 * 2 * 2 };              /* a position of a layer, K and V in f16 */
    ebb_kv_layer layers[34];
    ebb_kv_shape shape = { .n_layers = 34, .layers = layers, .window = 1024, .n_ctx = 8192, .n_batch = 512 };
    uint64_t all;

    (void)state;
    for (uint32_t i = 0; i < 34; i++)
        layers[i] = (ebb_kv_layer){ .n_head = 4, .dim_k = 256, .dim_v = 256, .has_window = (i + 1) % 6 != 0 };
    assert_int_equal(ebb_kv_pool_bytes(&shape),
                     (uint64_t)(8192 + 32) * 5 * ROW + (uint64_t)(1024 + 512 + 1024 + 96) * 29 * ROW);
    shape.n_ctx = 2560;                          /* not worth it */
    assert_int_equal(ebb_kv_pool_bytes(&shape), (uint64_t)(2560 + 32) * 34 * ROW);
    shape.n_ctx = 8192;
    all = ebb_kv_pool_bytes(&shape);
    shape.window = 0;
    for (uint32_t i = 0; i < 34; i++)
        layers[i].has_window = false;
    assert_true(all * 100 < ebb_kv_pool_bytes(&shape) * 43);
}

static void test_the_plan_counts_so(void **state)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .no_kv_cache = true };
    ebb_machine machine = { .available_bytes = (uint64_t)1 << 32, .n_cpus = 1 };
    ebb_stats stats;
    ebb_plan p;
    tiny_engine f;

    (void)state;
    open_arch(&f, "gemma2", &o);              /* two layers, one of them with a window of 16 */
    assert_int_equal(ebb_plan_make(f.model, &o, &machine, &p, NULL), EBB_OK);
    ebb_engine_stats(f.engine, &stats);
    assert_int_equal(stats.kv_bytes, p.kv_bytes);
    assert_int_equal(p.kv_bytes, (17 + 5) * ebb_kv_group_block_bytes(f.engine->kv, EBB_KV_ALL));
    close_tiny_engine(&f);
}

static void expect_fresh(const char *arch, const ebb_session *s, const ebb_token *ids, uint32_t n)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true };
    tiny_engine f;

    open_arch(&f, arch, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    assert_memory_equal(ebb_session_logits(s), ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof(float));
    close_tiny_engine(&f);
}

static void expect_sync(tiny_engine *f, const char *arch, const ebb_token *ids, uint32_t n, uint32_t n_reused)
{
    size_t n_common = ebb_session_common_prefix(f->s, ids, n);
    ebb_sync_result r;

    assert_in_range(n_common, n_reused, n_reused + 1);
    assert_int_equal(ebb_session_sync(f->s, ids, n, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, n_reused);
    expect_fresh(arch, f->s, ids, n);
}

static void test_going_back(void **state)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .no_kv_cache = true };
    ebb_token ids[N], other[N];
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    for (unsigned i = 0; i < N_ARCHS; i++) {
        open_arch(&f, archs[i], &o);
        assert_int_equal(ebb_session_sync(f.s, ids, 400, NULL, NULL), EBB_OK);
        expect_sync(&f, archs[i], ids, 390, 389);
        memcpy(other, ids, sizeof ids);
        other[380] ^= 1;
        expect_sync(&f, archs[i], other, 400, 380);
        expect_sync(&f, archs[i], ids, 400, 384);        /* back to the old branch: its last full block */
        expect_sync(&f, archs[i], ids, 300, 0);  /* farther than its window reaches */
        close_tiny_engine(&f);
    }
}

/* Each turn leaves what the window saw at its end, so one can go back to any of them. */
static void test_turns_on_disk(void **state)
{
    char dir[] = "/tmp/ebb-windows-XXXXXX";
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .kv_cache_dir = mkdtemp(dir) };
    ebb_token ids[N], other[N];
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    memcpy(other, ids, sizeof ids);
    other[210] ^= 1;
    for (unsigned i = 0; i < N_ARCHS; i++) {
        open_arch(&f, archs[i], &o);
        for (uint32_t n = 100; n <= N; n += 100) {
            assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
            ebb_session_persist(f.s);
        }
        close_tiny_engine(&f);
        open_arch(&f, archs[i], &o);          /* another day */
        expect_sync(&f, archs[i], ids, N, N - 1);
        expect_sync(&f, archs[i], ids, 300, 299);
        expect_sync(&f, archs[i], ids, 101, 100);
        expect_sync(&f, archs[i], other, 300, 200);      /* an edit behind the second turn */
        expect_sync(&f, archs[i], ids, N, N - 1);
        close_tiny_engine(&f);
    }
    assert_int_equal(ebb_own_folder_end(dir), 0);
}

/* Whatever windows saw long ago, and no sequence sees any more, makes room for this. */
static void forget_windows(tiny_engine *f)
{
    ebb_session *s;
    ebb_token ids[64];

    assert_int_equal(ebb_session_new(f->engine, &s, NULL), EBB_OK);
    for (int i = 0; i < 20; i++) {
        fill_ids(ids, 64, (uint32_t)(100 + i));
        assert_int_equal(ebb_session_sync(s, ids, 64, NULL, NULL), EBB_OK);
    }
    ebb_session_free(s);
}

/* Another sequence has more of the ids, but no longer what windows see in their midst: that hides nothing of what a
 * sequence has itself.  Else it would begin anew with each piece, for ever where pieces are smaller than a block. */
static void test_small_pieces_go_on(void **state)
{
    enum { PIECE = 8, END = 10 * PIECE };
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .n_sequences = 3, .no_kv_cache = true };
    ebb_token ids[N], other[N];
    ebb_session *own;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    memcpy(other, ids, sizeof ids);
    other[200] ^= 1;
    for (unsigned i = 0; i < N_ARCHS; i++) {
        ebb_sync_result r;

        open_arch(&f, archs[i], &o);
        assert_int_equal(ebb_session_sync(f.s, other, 300, NULL, NULL), EBB_OK);
        forget_windows(&f);
        assert_int_equal(ebb_session_new(f.engine, &own, NULL), EBB_OK);
        for (uint32_t n = PIECE; n <= END; n += PIECE) {
            assert_int_equal(ebb_session_common_prefix(own, ids, N), n - PIECE);
            assert_int_equal(ebb_session_sync(own, ids, n, &r, NULL), EBB_OK);
            assert_int_equal(r.n_reused, n - PIECE);
        }
        expect_fresh(archs[i], own, ids, END);
        ebb_session_free(own);
        close_tiny_engine(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bits_across_the_edge),
        cmocka_unit_test(test_bytes_are_those_of_the_formula),
        cmocka_unit_test(test_the_plan_counts_so),
        cmocka_unit_test(test_going_back),
        cmocka_unit_test(test_turns_on_disk),
        cmocka_unit_test(test_small_pieces_go_on),
    };

    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
