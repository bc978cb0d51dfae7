/* What the backend gets of other conversations: the ids of this model, the newest, none of this session, and nothing
 * that was deleted. */
#include "chat/conversation/chat_fixture.h"

/* Until the backend has what there is. */
static void gather(ebb_chat *c)
{
    ebb_chat_event ev;

    for (int i = 0; i < 5000 && !(c->reference.is_given && c->reference.generation == c->generation); i++) {
        while (ebb_chat_event_next(c, &ev))
            ;
        fake_sleep(200);
    }
    assert_true(c->reference.is_given);
}

/* Where these ids are in the reference text; -1: nowhere. */
static int place_of(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i + n <= script.n_reference; i++)
        if (memcmp(script.reference + i, ids, n * sizeof *ids) == 0)
            return (int)i;
    return -1;
}

static int place_of_answer(int32_t answer)
{
    const int32_t ids[] = { 100000 * answer, 100000 * answer + 1, 100000 * answer + 2 };

    return place_of(ids, 3);
}

static void other_sessions_are_given_and_the_own_is_not(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    int first, second;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    gather(c);
    assert_true(place_of_answer(1) > 0);
    say(c, "two");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    gather(c);
    first = place_of_answer(1);
    second = place_of_answer(2);
    assert_true(first >= 0 && second > first);   /* oldest first, so that the newest is found first */
    assert_true(place_of((const int32_t[]){ EBB_TOKEN_NONE }, 1) > first);
    assert_true(place_of((const int32_t[]){ EBB_TOKEN_NONE }, 1) < second);
    assert_int_equal(ebb_chat_load(c, "two", &err), EBB_OK);
    gather(c);
    assert_true(place_of_answer(1) >= 0);
    assert_int_equal(place_of_answer(2), -1);
    ebb_chat_close(c);
}

static void nothing_deleted_is_left(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    unsigned n;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    say(c, "two");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    gather(c);
    n = script.n_references;
    assert_int_equal(ebb_chat_delete(c, "one", &err), EBB_OK);
    assert_int_equal(script.n_references, n + 1);        /* at once */
    assert_int_equal(script.n_reference, 0);
    gather(c);
    assert_int_equal(place_of_answer(1), -1);
    assert_true(place_of_answer(2) >= 0);
    ebb_chat_close(c);
}

static void ids_of_another_model_are_not_given(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    say(c, "one");
    ebb_chat_close(c);
    memcpy(script.fingerprint, "model two", 10);
    c = open_ready(NULL);
    gather(c);
    assert_int_equal(script.n_reference, 0);
    ebb_chat_close(c);
}

static void it_waits_for_the_end_of_an_answer(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_event ev;
    unsigned n;

    (void)state;
    say(c, "one");
    ebb_chat_close(c);
    c = open_chat(NULL);
    n = script.n_references;
    script.hold_at = 1;
    send(c, "two");
    while (!c->turn.answer) {
        ebb_chat_event_next(c, &ev);
        fake_sleep(200);
    }
    for (int i = 0; i < 50; i++)
        ebb_chat_event_next(c, &ev);
    assert_int_equal(script.n_references, n);
    script.hold_at = 0;
    ebb_chat_stop(c);
    done(c);
    gather(c);
    assert_true(place_of_answer(1) >= 0);
    ebb_chat_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(other_sessions_are_given_and_the_own_is_not),
        T(nothing_deleted_is_left),
        T(ids_of_another_model_are_not_given),
        T(it_waits_for_the_end_of_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
