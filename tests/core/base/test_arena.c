/* Counting and placing with one function, and what fits nowhere. */
#include "ebb_test.h"

#include "base/arena.h"

typedef struct three {
    char  *a;
    float *b;
    void  *c;
} three;

static void layout(ebb_arena *a, three *t)
{
    t->a = ebb_arena_take(a, 3, 1);
    t->b = ebb_arena_take_rows(a, 5, 7, sizeof(float), 64);
    t->c = ebb_arena_take(a, 0, 32);
}

static void test_what_is_counted_is_placed(void **state)
{
    _Alignas(64) char bytes[64 + 160];
    ebb_arena count = { 0 }, place = { .base = bytes, .cap = sizeof bytes };
    three t;

    (void)state;
    layout(&count, &t);
    assert_null(t.b);
    assert_int_equal(count.used, sizeof bytes);  /* 3, then 140 from 64 on, then nothing at a multiple of 32 */
    layout(&place, &t);
    assert_ptr_equal(t.a, bytes);
    assert_ptr_equal(t.b, bytes + 64);
    assert_ptr_equal(t.c, bytes + sizeof bytes);
    assert_int_equal(place.used, count.used);
}

/* Once it is too much, it stays too much. */
static void test_what_fits_nowhere(void **state)
{
    static const size_t rows[][3] = {
        { (size_t)1 << 32, (size_t)1 << 32, 1 }, { (size_t)1 << 31, (size_t)1 << 31, 4 }, { SIZE_MAX, 1, 1 },
        { SIZE_MAX - 1, 1, 1 }, { SIZE_MAX / 4, 1, 8 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_arena a = { .used = 65 };

        assert_null(ebb_arena_take_rows(&a, rows[i][0], rows[i][1], rows[i][2], 64));
        assert_true(a.used == SIZE_MAX);
        assert_null(ebb_arena_take(&a, 0, 64));
        assert_null(ebb_arena_take(&a, 100, 1));
        assert_true(a.used == SIZE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_counted_is_placed),
        cmocka_unit_test(test_what_fits_nowhere),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
