/* What is remembered of a model's experts. */
#include "ebb_test.h"

#include <math.h>

#include "base/buf.h"
#include "os/file.h"
#include "os/paths.h"
#include "plan/uses.h"
#include "support/own_cache.h"

#define N 64u

static const uint8_t name[16] = { 0xab, 1, 2 };

static void find_path(ebb_buf *path)
{
    assert_int_equal(ebb_path_in(EBB_DIR_CACHE, "experts/ab010200000000000000000000000000", path, NULL), EBB_OK);
}

static void make(ebb_uses *u)
{
    assert_true(ebb_uses_init(u, N));
    for (uint32_t i = 0; i < N; i++)
        u->often[i] = 100.0f / (float)(i + 1);
    u->room = 0.25;
    u->missed = 0.5;
    u->pace = 1.25;
}

static void test_kept(void **state)
{
    ebb_uses u, v = { 0 }, other;

    (void)state;
    make(&u);
    assert_false(ebb_uses_load(&v, name));
    ebb_uses_save(&u, name);
    assert_true(ebb_uses_load(&v, name));        /* as many as there are */
    assert_int_equal(v.n, N);
    assert_memory_equal(u.often, v.often, N * sizeof *u.often);
    assert_true(v.room == 0.25 && v.missed == 0.5 && v.pace == 1.25);
    assert_true(ebb_uses_init(&other, N + 1));
    assert_false(ebb_uses_load(&other, name));   /* of another shape */
    ebb_uses_fini(&other);
    ebb_uses_fini(&u);
    ebb_uses_fini(&v);
}

/* Whatever is cut off or changed in the file, it says nothing any more. */
static void test_damaged(void **state)
{
    ebb_buf path = { 0 }, data = { 0 };
    ebb_uses u, v;

    (void)state;
    make(&u);
    ebb_uses_save(&u, name);
    find_path(&path);
    assert_int_equal(ebb_file_slurp(path.data, 1 << 20, &data, NULL), EBB_OK);
    for (size_t i = 0; i < data.len; i += 7) {
        assert_true(ebb_uses_init(&v, N));
        assert_int_equal(ebb_file_replace(path.data, data.data, i, NULL), EBB_OK);
        assert_false(ebb_uses_load(&v, name));
        data.data[i] = (char)(data.data[i] ^ 4);
        assert_int_equal(ebb_file_replace(path.data, data.data, data.len, NULL), EBB_OK);
        assert_false(ebb_uses_load(&v, name));
        data.data[i] = (char)(data.data[i] ^ 4);
        ebb_uses_fini(&v);
    }
    u.often[3] = NAN;                            /* no number, though it is whole */
    ebb_uses_save(&u, name);
    assert_true(ebb_uses_init(&v, N));
    assert_false(ebb_uses_load(&v, name));
    ebb_uses_fini(&u);
    ebb_uses_fini(&v);
    ebb_buf_fini(&path);
    ebb_buf_fini(&data);
}

/* What was measured is met where it was, and less is read where there is more room. */
static void test_missed(void **state)
{
    ebb_uses u, none;

    (void)state;
    assert_true(ebb_uses_init(&none, N));
    assert_true(fabs(ebb_uses_missed(&none, 0.25) - 0.75) < 1e-9);
    make(&u);
    assert_true(fabs(ebb_uses_missed(&u, 0.25) - 0.5) < 1e-6);
    for (int i = 0; i < 16; i++)
        assert_true(ebb_uses_missed(&u, i / 16.0) > ebb_uses_missed(&u, (i + 1) / 16.0));
    assert_true(ebb_uses_missed(&u, 1) == 0);
    ebb_uses_fini(&u);
    ebb_uses_fini(&none);
}

static int end(void **state)
{
    ebb_buf path = { 0 };

    find_path(&path);
    unlink(path.data);
    assert_int_equal(ebb_path_in(EBB_DIR_CACHE, "experts", &path, NULL), EBB_OK);
    rmdir(path.data);
    ebb_buf_fini(&path);
    return ebb_own_cache_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_missed),
    };

    return cmocka_run_group_tests_name("uses", tests, ebb_own_cache, end);
}
