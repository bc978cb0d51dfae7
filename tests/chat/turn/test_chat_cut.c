/* An answer that is cut goes on from its last token, in a new branch (chat_cut.c). */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"

static void test_goes_on_from_that_token(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "hello");
    assert_int_equal(ebb_chat_cut(c, "a1.0 a1.1 ", 10, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[hello] [a1.0 a1.1 a2.0 a2.1 a2.2 ]");
    assert_int_equal(last(c)->turn_stats.n_computed, 0);
    assert_int_equal(last(c)->n_ids, 5);
    assert_int_equal(last(c)->ids[1], 100001);
    assert_int_equal(c->tree.n_nodes, 3);        /* the old answer is there */
    assert_int_equal(ebb_chat_go(c, "2a", &err), EBB_OK);
    assert_string_equal(path(c), "[hello] [a1.0 a1.1 a1.2 ]");
    ebb_chat_close(c);
}

/* What the user writes in place of the end is computed, and nothing else. */
static void test_other_words(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "hello");
    assert_int_equal(ebb_chat_cut(c, "a1.0 so", 7, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[hello] [a1.0 soa2.0 a2.1 a2.2 ]");
    assert_int_equal(last(c)->turn_stats.n_computed, 2);
    say(c, "more");
    assert_int_equal(last(c)->turn_stats.n_computed, 6);
    ebb_chat_close(c);
}

static void test_refusals(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_chat_cut(c, "x", 1, &err), EBB_USAGE);
    say(c, "hello");
    assert_int_equal(ebb_chat_cut(c, "", 0, &err), EBB_USAGE);
    script.hold_at = 1;
    send(c, "wait");
    assert_int_equal(ebb_chat_cut(c, "x", 1, &err), EBB_BUSY);
    ebb_chat_stop(c);
    done(c);
    assert_int_equal(ebb_chat_cut(c, "x", 1, &err), EBB_USAGE);      /* a question without an answer */
    ebb_chat_close(c);
}

/* Whether the prompt began a thought is known of what is left of the answer, too. */
static void test_knows_how_it_began(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "hello");
    c->tree.path[1]->m.sample_records[0].begin = EBB_THOUGHT_OPENED;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ebb_chat_cut(c, "a1.0 ", 5, &err), EBB_OK);
        done(c);
        assert_int_equal(last(c)->n_sample_records, 1);
        assert_int_equal(last(c)->sample_records[0].from, 1);
        assert_true(ebb_message_is_sampled(last(c)));
        assert_int_equal(last(c)->sample_records[0].begin, EBB_THOUGHT_OPENED);
    }
    assert_int_equal(ebb_chat_set_system(c, "Be long.", &err), EBB_OK);
    assert_string_equal(path(c), "[Be long.] [hello] [a1.0 a3.0 a3.1 a3.2 ]");
    assert_int_equal(last(c)->sample_records[0].begin, EBB_THOUGHT_OPENED);
    assert_false(ebb_message_is_sampled(last(c)));
    ebb_chat_close(c);
}

static void test_is_kept(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "hello");
    assert_int_equal(ebb_chat_cut(c, "a1.0 ", 5, &err), EBB_OK);
    done(c);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_string_equal(path(c), "[hello] [a1.0 a2.0 a2.1 a2.2 ]");
    assert_int_equal(last(c)->n_ids, 4);
    ebb_chat_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_goes_on_from_that_token),
        T(test_other_words),
        T(test_refusals),
        T(test_knows_how_it_began),
        T(test_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
