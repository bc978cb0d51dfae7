/* Events on their way, where there is no memory for them: an answer ends, and none that lacks a piece looks whole. */
#include "ebb_alloc.h"
#include "chat/conversation/chat_fixture.h"

static inline void hear(ebb_chat *c, ebb_backend_event_kind kind, const char *text, ebb_finish finish)
{
    ebb_chat_sink(c, &(ebb_backend_event){ .kind = kind, .token = 7, .text = text, .n_text = strlen(text),
                                           .finish = finish });
}

typedef struct told {
    size_t n_text;
    bool   has_error, is_done;
} told;

static inline told drain(ebb_chat *c)
{
    ebb_chat_event ev;
    told t = { 0 };

    while (ebb_chat_event_next(c, &ev)) {
        t.n_text += ev.kind == EBB_EVENT_TEXT ? ev.n_text : 0;
        t.has_error |= ev.kind == EBB_EVENT_ERROR && ev.n_text > 0 && strlen(ev.text) == ev.n_text;
        t.is_done |= ev.kind == EBB_EVENT_DONE;
    }
    return t;
}

/* The engine's thread writes these events in the test's stead, so that the nth allocation is one of theirs. */
static void test_an_answer_without_memory(void **state)
{
    (void)state;
#if ALLOC_CAN_FAIL
    bool reached = true;

    script.hold_at = 1;
    for (int nth = 1; reached; nth++) {
        ebb_chat *c = open_ready(NULL);
        told t;

        send(c, "question");
        drain(c);
        alloc_fail_nth(nth);
        hear(c, EBB_BACKEND_TOKEN, "one ", EBB_FINISH_NONE);
        hear(c, EBB_BACKEND_TOKEN, "two", EBB_FINISH_NONE);
        hear(c, EBB_BACKEND_END, ".", EBB_FINISH_STOP);
        t = drain(c);
        reached = alloc_fail_nth(0);
        assert_false(ebb_chat_is_busy(c));
        assert_true(t.is_done != t.has_error);
        if (t.is_done) {
            assert_string_equal(last(c)->text, "one two.");
            assert_int_equal(t.n_text, strlen("one two."));
            assert_int_equal(last(c)->n_ids, 2);
        } else if (last(c)->role == EBB_ROLE_ASSISTANT) {
            assert_int_equal(last(c)->finish, EBB_FINISH_ERROR);
            assert_int_equal(last(c)->n_ids, 0);
        }
        ebb_chat_close(c);
    }
#else
    skip();
#endif
}

static void test_a_failed_opening_without_memory(void **state)
{
    (void)state;
#if ALLOC_CAN_FAIL
    bool reached = true;

    for (int nth = 1; reached; nth++) {
        ebb_chat *c;
        told t;

        script.hold_load = true;
        c = open_chat(NULL);
        drain(c);
        alloc_fail_nth(nth);
        hear(c, EBB_BACKEND_FAILED, "no such file", EBB_FINISH_NONE);
        t = drain(c);
        reached = alloc_fail_nth(0);
        assert_true(t.has_error);
        script.hold_load = false;
        ebb_chat_close(c);
    }
#else
    skip();
#endif
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_an_answer_without_memory), T(test_a_failed_opening_without_memory),
    };

    alloc_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
