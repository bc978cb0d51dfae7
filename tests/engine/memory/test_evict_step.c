/* How much is evicted when memory is short (memory/evict_step.h): as much as is missing, more when it is short again at
 * once, so that whoever takes memory fast gets it in time and in few steps. */
#include "ebb_test.h"

#include "memory/evict_step.h"

#define MIB    ((uint64_t)1 << 20)
#define SECOND 1000000000u
enum { FLOOR_MIB = 300, GROUP_MIB = 290, N_GROUPS = 60 };

static const uint64_t resident = (uint64_t)N_GROUPS * GROUP_MIB * MIB;

static void test_a_step_is_what_is_missing(void **state)
{
    ebb_evict_step s = { 0 };

    (void)state;
    assert_int_equal(ebb_evict_target(FLOOR_MIB * (int64_t)MIB), 375 * MIB);
    assert_int_equal(ebb_evict_step_next(&s, 5 * SECOND, 175 * MIB, resident), 175 * MIB);
    assert_int_equal(ebb_evict_step_next(&s, 7 * SECOND, 100 * MIB, resident), 100 * MIB);
}

static void test_soon_again_is_twice_as_much(void **state)
{
    ebb_evict_step s = { 0 };
    uint64_t at = SECOND / 2, want = 175;

    (void)state;
    assert_int_equal(ebb_evict_step_next(&s, at, want * MIB, resident), want * MIB);
    while (2 * want < N_GROUPS * GROUP_MIB / 4) {
        want *= 2;
        assert_int_equal(ebb_evict_step_next(&s, at += SECOND / 4, 10 * MIB, resident), want * MIB);
    }
    assert_int_equal(ebb_evict_step_next(&s, at += SECOND / 4, 10 * MIB, resident), resident / 4);
    assert_int_equal(ebb_evict_step_next(&s, at += SECOND / 4, resident, resident), resident);   /* it is missing */
    assert_int_equal(ebb_evict_step_next(&s, at + SECOND, 10 * MIB, resident), 10 * MIB);
}

/* A neighbour takes mib_s for so many milliseconds; checks come as the monitor's, each of them late_ms late. */
static void take(uint64_t mib_s, uint32_t for_ms, uint32_t late_ms, int64_t *least_mib, uint64_t *evicted_mib,
                 uint32_t *n_steps)
{
    int64_t available = 1000 * (int64_t)MIB, floor = FLOOR_MIB * (int64_t)MIB;
    uint64_t here = resident, check_ms = 0;
    ebb_evict_step s = { 0 };

    *least_mib = available;
    *n_steps = 0;
    for (uint64_t ms = 1; ms <= for_ms; ms++) {
        available -= (int64_t)(mib_s * MIB / 1000);
        *least_mib = available < *least_mib ? available : *least_mib;
        if (ms < check_ms)
            continue;
        if (available < floor) {
            uint64_t n = ebb_evict_step_next(&s, ms * (SECOND / 1000), (uint64_t)(ebb_evict_target(floor) - available),
                                             here);

            n = (n / MIB + GROUP_MIB - 1) / GROUP_MIB * GROUP_MIB * MIB;         /* whole groups */
            n = n < here ? n : here;
            here -= n;
            available += (int64_t)n;
            ++*n_steps;
        }
        check_ms = ms + 4 + late_ms + (available > floor ? (uint64_t)(available - floor) / (8 * MIB) * 1000 / 1024 : 0);
    }
    *least_mib /= (int64_t)MIB;
    *evicted_mib = (resident - here) / MIB;
}

static void test_who_takes_fast_gets_it_in_few_steps(void **state)
{
    static const uint64_t rates[] = { 50, 100, 500, 1024, 2048, 4096 };

    (void)state;
    for (uint32_t late = 0; late <= 30; late += 10)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            uint64_t evicted, taken = 10240;
            int64_t least;
            uint32_t n_steps, ms = (uint32_t)(taken * 1000 / rates[i]);

            take(rates[i], ms, late, &least, &evicted, &n_steps);
            if (late == 30)
                print_message("%4llu MiB/s, checks %u ms late: %u steps in %.1f s, %lld MiB were left at least, %llu "
                              "MiB evicted\n", (unsigned long long)rates[i], late, n_steps, ms / 1000.0,
                              (long long)least, (unsigned long long)evicted);
            assert_true(least > FLOOR_MIB / 3);
            assert_true(n_steps <= 4 + 2 * ms / 1000);
            assert_true(evicted <= taken - 1000 + 375 + (rates[i] > GROUP_MIB ? 2 * rates[i] : GROUP_MIB));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_what_is_missing),
        cmocka_unit_test(test_soon_again_is_twice_as_much),
        cmocka_unit_test(test_who_takes_fast_gets_it_in_few_steps),
    };

    return cmocka_run_group_tests_name("evict_step", tests, NULL, NULL);
}
