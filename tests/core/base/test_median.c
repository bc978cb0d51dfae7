/* The median (base/median.h). */
#include "ebb_test.h"

#include "base/median.h"

static void test_the_middle_one(void **state)
{
    double one[] = { 7 }, odd[] = { 5, 1e300, -2, 3, 3.5 }, even[] = { 4, 1, 100, 2 }, equal[] = { 2, 2, 2, 9 };

    (void)state;
    assert_true(ebb_median(one, 1) == 7);
    assert_true(ebb_median(odd, 5) == 3.5);
    assert_true(ebb_median(even, 4) == 3);
    assert_true(ebb_median(even, 2) == 1.5);     /* they are sorted by now */
    assert_true(ebb_median(equal, 4) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_middle_one),
    };

    return cmocka_run_group_tests_name("median", tests, NULL, NULL);
}
