/* What is remembered of a model's experts. */
#include "ebb_test.h"

#include <math.h>

#include "base/buf.h"
#include "os/file.h"
#include "os/paths.h"
#include "plan/expert_profile.h"
#include "support/own_cache.h"

#define N 64u

static const uint8_t name[16] = { 0xab, 1, 2 };

static void find_path(ebb_buf *path)
{
    assert_int_equal(ebb_path_in(EBB_DIR_CACHE, "experts/ab010200000000000000000000000000", path, NULL), EBB_OK);
}

static void make(ebb_expert_profile *u)
{
    assert_true(ebb_expert_profile_init(u, N));
    for (uint32_t i = 0; i < N; i++)
        u->uses[i] = 100.0f / (float)(i + 1);
    u->cache_share = 0.25;
    u->miss_rate = 0.5;
    u->slowdown = 1.25;
}

static void test_kept(void **state)
{
    ebb_expert_profile u, v = { 0 }, other;

    (void)state;
    make(&u);
    assert_false(ebb_expert_profile_load(&v, name));
    ebb_expert_profile_save(&u, name);
    assert_true(ebb_expert_profile_load(&v, name)); /* as many as there are */
    assert_int_equal(v.n, N);
    assert_memory_equal(u.uses, v.uses, N * sizeof *u.uses);
    assert_true(v.cache_share == 0.25 && v.miss_rate == 0.5 && v.slowdown == 1.25);
    assert_true(ebb_expert_profile_init(&other, N + 1));
    assert_false(ebb_expert_profile_load(&other, name)); /* of another shape */
    ebb_expert_profile_fini(&other);
    ebb_expert_profile_fini(&u);
    ebb_expert_profile_fini(&v);
}

/* Whatever is cut off or changed in the file, it says nothing any more. */
static void test_damaged(void **state)
{
    ebb_buf path = { 0 }, data = { 0 };
    ebb_expert_profile u, v;

    (void)state;
    make(&u);
    ebb_expert_profile_save(&u, name);
    find_path(&path);
    assert_int_equal(ebb_file_slurp(path.data, 1 << 20, &data, NULL), EBB_OK);
    for (size_t i = 0; i < data.len; i += 7) {
        assert_true(ebb_expert_profile_init(&v, N));
        assert_int_equal(ebb_file_replace(path.data, data.data, i, NULL), EBB_OK);
        assert_false(ebb_expert_profile_load(&v, name));
        data.data[i] = (char)(data.data[i] ^ 4);
        assert_int_equal(ebb_file_replace(path.data, data.data, data.len, NULL), EBB_OK);
        assert_false(ebb_expert_profile_load(&v, name));
        data.data[i] = (char)(data.data[i] ^ 4);
        ebb_expert_profile_fini(&v);
    }
    u.uses[3] = NAN;                             /* no number, though it is whole */
    ebb_expert_profile_save(&u, name);
    assert_true(ebb_expert_profile_init(&v, N));
    assert_false(ebb_expert_profile_load(&v, name));
    ebb_expert_profile_fini(&u);
    ebb_expert_profile_fini(&v);
    ebb_buf_fini(&path);
    ebb_buf_fini(&data);
}

/* What was measured is met where it was, and less is read where there is more room. */
static void test_missed(void **state)
{
    ebb_expert_profile u, none;

    (void)state;
    assert_true(ebb_expert_profile_init(&none, N));
    assert_true(fabs(ebb_expert_profile_miss_rate(&none, 0.25) - 0.75) < 1e-9);
    make(&u);
    assert_true(fabs(ebb_expert_profile_miss_rate(&u, 0.25) - 0.5) < 1e-6);
    for (int i = 0; i < 16; i++)
        assert_true(ebb_expert_profile_miss_rate(&u, i / 16.0) > ebb_expert_profile_miss_rate(&u, (i + 1) / 16.0));
    assert_true(ebb_expert_profile_miss_rate(&u, 1) == 0);
    u.cache_share = 0.98;                        /* all but one had room: that says little of half as many */
    u.miss_rate = 0.05;
    assert_true(fabs(ebb_expert_profile_miss_rate(&u, 0.98) - 0.05) < 1e-6);
    assert_true(fabs(ebb_expert_profile_miss_rate(&u, 0.5) - 0.5) < 1e-6);
    ebb_expert_profile_fini(&u);
    ebb_expert_profile_fini(&none);
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
