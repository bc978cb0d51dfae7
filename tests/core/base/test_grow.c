/* Arrays that grow as they are filled. */
#include "ebb_test.h"

#include "base/grow.h"

static void test_elements_stay(void **state)
{
    size_t cap = 0;
    int *list = NULL;

    (void)state;
    for (size_t n = 0; n < 1000; n++) {
        int *p = ebb_grow(list, n, &cap, sizeof *p);

        assert_non_null(p);
        assert_true(cap > n);
        list = p;
        list[n] = (int)n;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list[i], i);
    assert_true(cap < 2000);
    assert_ptr_equal(ebb_grow(list, cap - 1, &cap, sizeof *list), list);         /* there is room */
    free(list);
}

static void test_without_memory_all_is_as_before(void **state)
{
    size_t cap = SIZE_MAX / 8, before = cap;
    char one;

    (void)state;
    assert_null(ebb_grow(&one, cap, &cap, 16));  /* more bytes than can be counted */
    assert_int_equal(cap, before);
    cap = before = SIZE_MAX / 2 + 1;
    assert_null(ebb_grow(&one, cap, &cap, 1));
    assert_int_equal(cap, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_stay),
        cmocka_unit_test(test_without_memory_all_is_as_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
