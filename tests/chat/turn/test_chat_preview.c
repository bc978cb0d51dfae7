/* What an action would cost is what it costs (chat_preview.c). */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"

/* Turns are 2 + letters of the question and 3 of the answer. */
static void test_costs(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_cost cost;
    ebb_error err;

    (void)state;
    assert_false(ebb_chat_preview(c, EBB_ACT_UNDO, 0, "", 0, &cost));
    say(c, "one");
    say(c, "two");
    assert_true(ebb_chat_preview(c, EBB_ACT_UNDO, 0, "", 0, &cost));
    assert_int_equal(cost.n_before, 16);
    assert_int_equal(cost.n_tokens, 8);
    assert_int_equal(cost.n_compute, 0);
    assert_true(ebb_chat_preview(c, EBB_ACT_EDIT, 0, "uno", 3, &cost));
    assert_int_equal(cost.n_tokens, 5);
    assert_int_equal(cost.n_compute, 4);   /* its role stands */
    assert_false(ebb_chat_preview(c, EBB_ACT_EDIT, 1, "x", 1, &cost));
    assert_true(ebb_chat_preview(c, EBB_ACT_CUT, 0, "a2.0 so", 7, &cost));
    assert_int_equal(cost.n_tokens, 16);
    assert_int_equal(cost.n_compute, 2);
    assert_int_equal(ebb_chat_edit(c, 0, "uno", 3, &err), EBB_OK);
    done(c);
    assert_true(ebb_chat_preview(c, EBB_ACT_GO, 0, "4", 1, &cost));
    assert_int_equal(cost.n_tokens, 16);
    assert_int_equal(cost.n_compute, 15);  /* this backend has one sequence */
    assert_false(ebb_chat_preview(c, EBB_ACT_GO, 0, "9", 1, &cost));
    ebb_chat_close(c);
}

static void test_cost_of_another_session(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_cost cost;
    ebb_error err;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_false(ebb_chat_preview(c, EBB_ACT_LOAD, 0, "none", 4, &cost));
    assert_true(ebb_chat_preview(c, EBB_ACT_LOAD, 0, "one", 3, &cost));
    assert_int_equal(cost.n_before, 0);
    assert_int_equal(cost.n_tokens, 8);
    assert_int_equal(cost.n_compute, 0);
    say(c, "other");
    assert_true(ebb_chat_preview(c, EBB_ACT_LOAD, 0, "one", 3, &cost));
    assert_int_equal(cost.n_compute, 6);    /* it begins as "other" does: with a role and an o */
    assert_string_equal(path(c), "[other] [a2.0 a2.1 a2.2 ]");      /* and nothing was opened */
    ebb_chat_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = { T(test_costs), T(test_cost_of_another_session) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
