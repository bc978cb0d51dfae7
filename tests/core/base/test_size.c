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

static void test_texts(void **state)
{
    static const struct { uint64_t bytes; const char *want;
    } all[] = {
        { 0, "0 B" },
        { 999, "999 B" },
        { 1000, "0.98 KiB" },
        { 1736ull << 20, "1.70 GiB" },
        { 52ull << 20, "52.0 MiB" },
        { 16ull << 30, "16.0 GiB" },
        { 104837677, "100 MiB" },
        { 10475274, "9.99 MiB" },
        { 10484711, "10.0 MiB" },
    };
    char text[16];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_string_equal(ebb_size_text(all[i].bytes, text), all[i].want);
}

/* What is named as needed is enough when it is read back, and what is named as there is there. */
static void test_texts_read_back(void **state)
{
    static const char *const said[] = { "28.4M", "32.1M", "9.99G", "1.01T", "100M", "512B" };
    char text[16];
    uint64_t v;

    (void)state;
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 50; bytes += bytes / 7 + 1) {
        char *blank = strchr(ebb_size_text_up(bytes, text), ' ');

        memmove(blank, blank + 1, strlen(blank));
        assert_true(ebb_size_parse(text, &v));
        assert_true(v >= bytes && v - bytes <= bytes / 90);
    }
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        assert_true(ebb_size_parse(said[i], &v));
        ebb_size_text_down(v, text);
        assert_memory_equal(text, said[i], strlen(said[i]) - 1);
    }
    assert_string_equal(ebb_size_text_up(29800000, text), "28.5 MiB");
    assert_string_equal(ebb_size_text_down(29800000, text), "28.4 MiB");
}

static void test_products(void **state)
{
    static const struct { uint64_t a, b, product; bool fits; } all[] = {
        { 0, UINT64_MAX, 0, true }, { 1, UINT64_MAX, UINT64_MAX, true },
        { UINT32_MAX, UINT32_MAX, 0xfffffffe00000001u, true },
        { (uint64_t)1 << 20, (uint64_t)1 << 12, (uint64_t)1 << 32, true },
        { (uint64_t)1 << 32, (uint64_t)1 << 32, 0, false }, { UINT64_MAX, 2, 0, false },
        { ((uint64_t)1 << 32) + 1, UINT32_MAX, UINT64_MAX, true }, { UINT64_MAX, UINT64_MAX, 0, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint64_t v = 7;

        assert_true(ebb_size_mul(all[i].a, all[i].b, &v) == all[i].fits);
        assert_true(v == (all[i].fits ? all[i].product : 7));
        assert_true(ebb_size_times(all[i].a, all[i].b) == (all[i].fits ? all[i].product : UINT64_MAX));
    }
    assert_true(ebb_size_plus(UINT64_MAX - 1, 1) == UINT64_MAX);
    assert_true(ebb_size_plus(UINT64_MAX - 1, 2) == UINT64_MAX);
    assert_true(ebb_size_plus(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
    assert_true(ebb_size_plus(1, 2) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_texts), cmocka_unit_test(test_texts_read_back),
        cmocka_unit_test(test_products),
    };

    return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
