/* What a slip of the finger meant, and what is no slip. */
#include "ebb_test.h"

#include "base/closest.h"

static const char *meant(const char *word)
{
    static const char *const names[] = { "--seed", "--temp", "--threads", "--top-k", "--top-p",
                                         "bench",  "run",    "sessions",  "stat" };
    ebb_closest c = ebb_closest_begin(word, strlen(word));

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ebb_closest_try(&c, names[i]);
    return c.best ? c.best : "";
}

static void slips(void **state)
{
    (void)state;
    assert_string_equal(meant("benhc"), "bench");        /* swapped */
    assert_string_equal(meant("rnu"), "run");
    assert_string_equal(meant("bnch"), "bench");         /* missing */
    assert_string_equal(meant("sesssions"), "sessions"); /* one more */
    assert_string_equal(meant("--treads"), "--threads");
    assert_string_equal(meant("--sed"), "--seed");
    assert_string_equal(meant("-seed"), "--seed");
    assert_string_equal(meant("--topk"), "--top-k");
    assert_string_equal(meant("run"), "run");
}

static void others(void **state)
{
    char endless[4096];

    (void)state;
    assert_string_equal(meant("hello"), "");
    assert_string_equal(meant("x"), "");
    assert_string_equal(meant(""), "");
    assert_string_equal(meant("--"), "");
    assert_string_equal(meant("--xy"), "");
    assert_string_equal(meant("start"), "stat");
    memset(endless, 's', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_string_equal(meant(endless), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(slips), cmocka_unit_test(others) };

    return cmocka_run_group_tests_name("closest", tests, NULL, NULL);
}
