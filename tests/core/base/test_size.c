/* Sizes as people write them. */
#include "ebb_test.h"

#include "base/size.h"

static void test_sizes(void **state)
{
    static const struct { const char *text; uint64_t want; } good[] = {
        { "4096", 4096 }, { "1k", 1024 }, { "800M", 800ull << 20 }, { "6G", 6ull << 30 }, { "1.5GiB", 3ull << 29 },
        { "2TB", 2ull << 40 }, { "0", 0 }, { "512B", 512 },
    };
    static const char *const bad[] = { "", "G", "5x", "-1", "5 G", "5Gi B", "nan", "1e30", "6G/s" };
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(ebb_size_parse(good[i].text, &v));
        assert_int_equal(v, good[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ebb_size_parse(bad[i], &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sizes) };

    return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
