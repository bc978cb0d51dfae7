/* The machine's figures: there, and plausible. */
#include "ebb_test.h"

#include "ebb/experimental/plan.h"

static void test_limits(void **state)
{
    ebb_machine m;

    (void)state;
    assert_int_equal(ebb_machine_probe(NULL, false, &m, NULL), EBB_OK);
    assert_true(m.available_bytes > (uint64_t)16 << 20);
    assert_int_not_equal(m.available_why[0], 0);
    assert_true(m.n_cpus >= 1);
    assert_true(m.memory_bytes_s == 0 && m.disk_bytes_s == 0 && m.int8_mac_s == 0);
}

static void test_measured(void **state)
{
    ebb_machine m;
    char path[64];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "build/test_machine.XXXXXX");
    f = fdopen(mkstemp(path), "wb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 8 << 20, SEEK_SET), 0);
    assert_int_equal(fputc('x', f), 'x');
    assert_int_equal(fclose(f), 0);
    assert_int_equal(ebb_machine_probe(path, true, &m, NULL), EBB_OK);
    unlink(path);
    assert_true(m.memory_bytes_s > 1e8 && m.memory_bytes_s < 1e13);
    assert_true(m.int8_mac_s > 1e6 && m.int8_mac_s < 1e15);
    assert_true(m.disk_bytes_s >= 0);            /* 0: no direct reads here */
    assert_int_equal(ebb_machine_probe("build/no such file", true, &m, NULL), EBB_OK);
    assert_true(m.disk_bytes_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_limits), cmocka_unit_test(test_measured) };

    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
