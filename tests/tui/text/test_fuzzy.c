/* Typed letters and names. */
#include "ebb_test.h"

#include "text/fuzzy.h"

static void order(void **state)
{
    static const char *const best_first[] = { "set", "settings", "my-set", "reset", "session-tree" };

    (void)state;
    for (size_t i = 0; i + 1 < sizeof best_first / sizeof *best_first; i++)
        assert_true(ebb_fuzzy_score("set", best_first[i]) > ebb_fuzzy_score("set", best_first[i + 1]));
    assert_true(ebb_fuzzy_score("l8q", "Llama-3-8B-Q4_K_M.gguf") > 0);
    assert_true(ebb_fuzzy_score("LOAD", "load") > 0);
}

static void no_match(void **state)
{
    (void)state;
    assert_int_equal(ebb_fuzzy_score("tes", "set"), -1);
    assert_int_equal(ebb_fuzzy_score("settings", "set"), -1);
    assert_int_equal(ebb_fuzzy_score("a", ""), -1);
    assert_int_equal(ebb_fuzzy_score("", ""), 0);
    assert_int_equal(ebb_fuzzy_score("", "anything"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(order), cmocka_unit_test(no_match) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
