/* Which reader is chosen from what was measured. */
#include "ebb_test.h"

#include "residency/read_speed.h"

static ebb_io best_of(double uring, double pread, double mmap)
{
    ebb_read_speed s[EBB_IO_MMAP + 1] = {
        [EBB_IO_URING] = { .is_allowed = uring > 0, .bytes_s = uring * 1e9 },
        [EBB_IO_PREAD] = { .is_allowed = pread > 0, .bytes_s = pread * 1e9 },
        [EBB_IO_MMAP] = { .is_allowed = mmap > 0, .bytes_s = mmap * 1e9 },
    };

    return ebb_read_speed_best(s);
}

static void test_fastest(void **state)
{
    (void)state;
    assert_int_equal(best_of(3.0, 2.0, 1.0), EBB_IO_URING);
    assert_int_equal(best_of(2.0, 3.0, 1.0), EBB_IO_PREAD);
    assert_int_equal(best_of(1.0, 2.0, 3.0), EBB_IO_MMAP);
}

static void test_noise_decides_nothing(void **state)
{
    (void)state;
    assert_int_equal(best_of(2.9, 3.0, 3.1), EBB_IO_URING);
    assert_int_equal(best_of(0, 2.9, 3.1), EBB_IO_PREAD);
}

static void test_cpu_time_counts(void **state)
{
    ebb_read_speed s[EBB_IO_MMAP + 1] = { 0 };

    (void)state;
    s[EBB_IO_URING] = (ebb_read_speed){ .is_allowed = true, .bytes_s = 2.5e9, .cpu_s_per_gb = 0.1 };
    s[EBB_IO_MMAP] = (ebb_read_speed){ .is_allowed = true, .bytes_s = 3e9, .cpu_s_per_gb = 1.7 };
    assert_int_equal(ebb_read_speed_best(s), EBB_IO_URING);
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(best_of(0, 0, 0), EBB_IO_PREAD);
    assert_int_equal(best_of(0, 0, 1.0), EBB_IO_MMAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fastest),
        cmocka_unit_test(test_noise_decides_nothing),
        cmocka_unit_test(test_cpu_time_counts),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
