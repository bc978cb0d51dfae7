/* The KV pool: tables, sharing, copies on write; random operations against a
 * model that remembers what was written. */
#include "ebb_test.h"

#include "kv/kv.h"
#include "os/fault.h"

#define N_CTX 200u
#define N_TABLES 4

static const ebb_kv_layer layers[2] = {
    { .n_head = 2, .dim_k = 8, .dim_v = 8 },
    { .n_head = 1, .dim_k = 16, .dim_v = 8 },
};
static const ebb_kv_shape shape = {
    .n_layers = 2, .layers = layers, .k_type = EBB_KV_F16, .v_type = EBB_KV_F32, .n_ctx = N_CTX, .n_batch = 32,
};

static ebb_kv *open_pool(uint32_t n_blocks)
{
    ebb_kv_shape s = shape;
    ebb_kv *kv;

    s.n_ctx = (n_blocks - 1) * EBB_KV_BLOCK;
    assert_int_equal(ebb_kv_open(&s, &kv, NULL), EBB_OK);
    assert_int_equal(ebb_kv_n_blocks(kv, EBB_KV_ALL), n_blocks);
    return kv;
}

static void test_sizes(void **state)
{
    ebb_kv *kv = open_pool(3);
    ebb_block_table t;

    (void)state;
    assert_int_equal(ebb_block_table_init(&t, N_CTX, NULL), EBB_OK);
    assert_int_equal(ebb_kv_grow(kv, &t, 1, NULL), EBB_OK);
    /* layer 0: 2 heads x 32 x (8 x 2 + 8 x 4), layer 1: 32 x (16 x 2 + 8 x 4) */
    assert_int_equal(ebb_kv_block_bytes(&shape), 2 * 32 * 48 + 32 * 64);
    assert_int_equal(ebb_kv_bytes(kv), 3 * (2 * 32 * 48 + 32 * 64));
    assert_int_equal(ebb_kv_pool_bytes(&shape), 8 * (2 * 32 * 48 + 32 * 64));
    assert_int_equal(ebb_kv_blocks_of(0), 0);
    assert_int_equal(ebb_kv_blocks_of(32), 1);
    assert_int_equal(ebb_kv_blocks_of(33), 2);
    assert_int_equal(ebb_kv_k_row_bytes(kv, 1), 32);
    assert_int_equal(ebb_kv_v_row_bytes(kv, 1), 32);
    assert_ptr_equal((char *)ebb_kv_k(kv, &t, 0, 0, 0) + 32 * 16, ebb_kv_k(kv, &t, 0, 0, 1));
    assert_ptr_equal((char *)ebb_kv_k(kv, &t, 0, 0, 0) + 2 * 32 * 16, ebb_kv_v(kv, &t, 0, 0, 0));
    assert_ptr_equal((char *)ebb_kv_k(kv, &t, 0, 0, 0) + 2 * 32 * 48, ebb_kv_k(kv, &t, 0, 1, 0));
    ebb_block_table_fini(kv, &t);
    ebb_kv_close(kv);
}

/* The formula of kv.h: w + n_batch + min(w, 1024) positions in whole blocks, and three. */
static void test_sizes_of_a_window(void **state)
{
    static const struct { uint32_t window, n_batch, n_blocks; } cases[] = {
        { 64, 32, 5 + 3 }, { 65, 32, 6 + 3 }, { 64, 33, 6 + 3 }, { 2048, 64, 98 + 3 },
    };
    ebb_kv_layer both[2] = { layers[0], layers[1] };

    (void)state;
    both[1].has_window = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_kv_shape s = shape;
        ebb_kv *kv;

        s.layers = both;
        s.n_ctx = 8192;
        s.window = cases[i].window;
        s.n_batch = cases[i].n_batch;
        assert_int_equal(ebb_kv_open(&s, &kv, NULL), EBB_OK);
        assert_int_equal(ebb_kv_n_blocks(kv, EBB_KV_ALL), 8192 / 32 + 1);
        assert_int_equal(ebb_kv_n_blocks(kv, EBB_KV_WINDOW), cases[i].n_blocks);
        assert_int_equal(ebb_kv_pool_bytes(&s), 257 * 2 * 32 * 48 + cases[i].n_blocks * 32 * 64);
        ebb_kv_close(kv);
    }
}

static void test_a_full_pool_changes_nothing(void **state)
{
    ebb_kv *kv = open_pool(2);
    ebb_block_table t, u;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(ebb_block_table_init(&t, N_CTX, NULL), EBB_OK);
    assert_int_equal(ebb_block_table_init(&u, 40, NULL), EBB_OK);
    assert_int_equal(ebb_kv_grow(kv, &t, 33, NULL), EBB_OK);
    assert_int_equal(ebb_kv_grow(kv, &t, 65, &err), EBB_BUDGET);
    assert_int_equal(t.n_pos, 33);
    assert_int_equal(t.n_blocks, 2);
    assert_int_equal(ebb_kv_grow(kv, &u, 65, &err), EBB_CONTEXT);
    ebb_kv_truncate(kv, &t, 32);
    assert_int_equal(ebb_kv_n_free(kv, EBB_KV_ALL), 1);
    ebb_block_table_fini(kv, &t);
    ebb_block_table_fini(kv, &u);
    assert_int_equal(ebb_kv_n_free(kv, EBB_KV_ALL), 2);
    ebb_kv_close(kv);
}

/* One float of V stands for a position. */
static float *row_of(ebb_kv *kv, const ebb_block_table *t, uint32_t pos)
{
    char *v = ebb_kv_v(kv, t, pos / EBB_KV_BLOCK, 1, 0);

    return (float *)(void *)(v + pos % EBB_KV_BLOCK * ebb_kv_v_row_bytes(kv, 1));
}

static void check_tables(ebb_kv *kv, const ebb_block_table *t, float want[N_TABLES][N_CTX])
{
    for (int i = 0; i < N_TABLES; i++) {
        assert_int_equal(t[i].n_blocks, (t[i].n_pos + EBB_KV_BLOCK - 1) / EBB_KV_BLOCK);
        for (uint32_t p = 0; p < t[i].n_pos; p++)
            assert_true(*row_of(kv, &t[i], p) == want[i][p]);
    }
}

static void test_random_operations_keep_every_timeline(void **state)
{
    enum { N_BLOCKS = 14 };
    static float want[N_TABLES][N_CTX];
    ebb_kv *kv = open_pool(N_BLOCKS);
    ebb_block_table t[N_TABLES];
    unsigned random = 1;
    int n_full = 0;

    (void)state;
    for (int i = 0; i < N_TABLES; i++)
        assert_int_equal(ebb_block_table_init(&t[i], N_CTX, NULL), EBB_OK);
    for (int step = 0; step < 20000; step++) {
        random = random * 1103515245u + 12345u;
        unsigned i = random >> 8 & 3, j = random >> 10 & 3, amount = random >> 16 & 63;
        uint32_t n = t[i].n_pos, to = n + amount < N_CTX ? n + amount : N_CTX;

        switch (random >> 24 & 3) {
        case 0: case 1:
            if (ebb_kv_grow(kv, &t[i], to, NULL) != EBB_OK) {
                n_full++;
                assert_int_equal(t[i].n_pos, n);
                break;
            }
            for (uint32_t p = n; p < to; p++)
                want[i][p] = *row_of(kv, &t[i], p) = (float)step;
            break;
        case 2:
            ebb_kv_truncate(kv, &t[i], n > amount ? n - amount : 0);
            break;
        default:
            if (i == j)
                break;
            n = amount < t[j].n_pos ? t[j].n_pos - amount : t[j].n_pos;
            ebb_kv_resize_table(kv, &t[i], n);
            for (uint32_t b = 0; b < t[i].n_blocks; b++)
                ebb_kv_set_block(kv, &t[i], EBB_KV_ALL, b, t[j].blocks[EBB_KV_ALL][b]);
            memcpy(want[i], want[j], n * sizeof want[i][0]);
        }
        if (step % 16 == 0)
            check_tables(kv, t, want);
    }
    assert_true(n_full > 0);
    for (int i = 0; i < N_TABLES; i++)
        ebb_block_table_fini(kv, &t[i]);
    assert_int_equal(ebb_kv_n_free(kv, EBB_KV_ALL), N_BLOCKS);
    ebb_kv_close(kv);
}

static void test_no_memory_is_said(void **state)
{
    ebb_error err = { 0 };
    ebb_kv *kv;

    (void)state;
    ebb_os_fail_nth(1);
    assert_int_equal(ebb_kv_open(&shape, &kv, &err), EBB_NOMEM);
    assert_true(ebb_os_fail_off());
    assert_null(kv);
    assert_int_not_equal(err.msg[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_of_a_window),
        cmocka_unit_test(test_a_full_pool_changes_nothing),
        cmocka_unit_test(test_random_operations_keep_every_timeline),
        cmocka_unit_test(test_no_memory_is_said),
    };

    return cmocka_run_group_tests_name("kv", tests, NULL, NULL);
}
