/* What is typed is computed before it is sent, as far as it stays (chat_prefill.c). */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"

static void type(ebb_chat *c, const char *text)
{
    script.n_prefilled_early = 0;
    ebb_chat_prefill_input(c, EBB_ACT_SEND, 0, text, strlen(text));
}

/* All but the last word, and the blank in front of it. */
static void test_whole_words(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    say(c, "hello");
    type(c, "a draft of some words, and the la");
    assert_int_equal(script.n_prefilled_early, 10 + 1 + strlen("a draft of some words, and the"));
    type(c, "a draft of some words, and the last");
    assert_int_equal(script.n_prefilled_early, 0); /* it stands */
    send(c, "a draft of some words, and the last one");
    done(c);
    assert_int_equal(last(c)->turn_stats.n_computed, strlen(" last one") + 1);
    ebb_chat_close(c);
}

/* What is edited is rolled back: the answer is to what was sent. */
static void test_edited(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    type(c, "one question that is long enough for it");
    assert_true(script.n_prefilled_early > 0);
    send(c, "one thing");
    done(c);
    assert_int_equal(last(c)->turn_stats.n_prompt, 11);
    assert_int_equal(last(c)->turn_stats.n_reused, 5);
    ebb_chat_close(c);
}

static void test_system_prompt(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .system = "A system prompt of thirty-two letters or more." });

    (void)state;
    type(c, "H");
    assert_int_equal(script.n_prefilled_early, 2 + strlen("A system prompt of thirty-two letters or more.") + 1);
    ebb_chat_close(c);
}

static void test_of_an_edit(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    say(c, "hello");
    say(c, "and more");
    ebb_chat_prefill_input(c, EBB_ACT_EDIT, 0, "instead of it a long question that", 34);
    assert_int_equal(script.n_prefilled_early, 1 + strlen("instead of it a long question"));
    ebb_chat_close(c);
}

static void test_switch(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_chat_set(c, "prefill", "off", NULL, 0, &err), EBB_OK);
    type(c, "one question that is long enough for it");
    assert_int_equal(script.n_prefilled_early, 0);
    assert_int_equal(ebb_chat_set(c, "prefill", "on", NULL, 0, &err), EBB_OK);
    type(c, "one question that is long enough for it");
    assert_true(script.n_prefilled_early > 0);
    script.n_prefilled_early = 1;
    ebb_chat_prefill_input(c, EBB_ACT_SEND, 0, "", 0);
    assert_int_equal(script.n_prefilled_early, 0);
    script.hold_at = 1;
    send(c, "wait");
    type(c, "one question that is long enough for it");
    assert_int_equal(script.n_prefilled_early, 0);
    ebb_chat_stop(c);
    done(c);
    ebb_chat_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_whole_words), T(test_edited), T(test_system_prompt), T(test_of_an_edit), T(test_switch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
