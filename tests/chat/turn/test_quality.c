/* A better file of the same network for one answer (turn/quality.c): there, back, and the ids of both. */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"

static const char better[] = "better.gguf";
static char own_file[96];

/* The everyday file has to be there for the way back. */
static ebb_chat *open_everyday(void)
{
    FILE *f;
    ebb_chat *c;

    snprintf(own_file, sizeof own_file, "%s/everyday.gguf", dir);
    f = fopen(own_file, "w");
    assert_non_null(f);
    fclose(f);
    script.info.path = own_file;
    script.better = better;
    c = open_ready(&(ebb_chat_opts){ .model_path = own_file });
    return c;
}

/* Until the answer has ended and the everyday file is back. */
static void there_and_back(ebb_chat *c, char *notice, size_t cap, bool *was_better)
{
    ebb_chat_event ev;

    *was_better = false;
    do {
        assert_true(fake_next(c, &ev));
        if (ev.kind == EBB_EVENT_NOTICE && notice)
            snprintf(notice, cap, "%s", ev.text);
        *was_better |= strstr(script.opened, better) == script.opened;
    } while (ev.kind != EBB_EVENT_READY || strstr(script.opened, better) == script.opened);
}

static void test_there_and_back(void **state)
{
    ebb_chat *c = open_everyday();
    char notice[400] = "";
    ebb_error err = { 0 };
    uint8_t first[16];
    bool was_better;
    size_t n_asked;

    (void)state;
    say(c, "one");
    memcpy(first, last(c)->ids_model, sizeof first);
    assert_int_equal(ebb_chat_answer_better(c, "two", 3, &err), EBB_OK);
    there_and_back(c, notice, sizeof notice, &was_better);
    assert_true(was_better);
    assert_non_null(strstr(notice, "F16 answers this one"));
    assert_non_null(strstr(notice, "about 2.0 tok/s"));
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ] [two] [a2.0 a2.1 a2.2 ]");
    assert_non_null(strstr(last(c)->model, "F16"));
    assert_memory_not_equal(last(c)->ids_model, first, sizeof first);
    assert_non_null(strstr(script.opened, own_file));
    n_asked = script.n_asked;
    say(c, "three");                           /* the ids of both answers stand: tokens of answer 2 are 200000 and on */
    assert_true(script.n_asked > n_asked);
    assert_int_equal(last(c)->turn_stats.n_prompt,
                     n_asked + 3 + 7);     /* its three tokens, and "three" with its two marks */
    ebb_chat_close(c);
}

/* Its draft model is the everyday file; behind it all is as it was. */
static void test_draft(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_error err = { 0 };
    bool was_better;
    char want[200];

    (void)state;
    assert_int_equal(ebb_chat_answer_better(c, "one", 3, &err), EBB_OK);
    snprintf(want, sizeof want, "%s + %s?", better, own_file);
    assert_string_equal(script.opened, want);
    there_and_back(c, NULL, 0, &was_better);
    snprintf(want, sizeof want, "%s + -", own_file);
    assert_string_equal(script.opened, want);
    ebb_chat_close(c);
}

/* The last question again, beside the answer that it had. */
static void test_again(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_error err = { 0 };
    bool was_better;

    (void)state;
    assert_int_equal(ebb_chat_answer_better(c, "", 0, &err), EBB_USAGE);
    say(c, "one");
    assert_int_equal(ebb_chat_answer_better(c, "", 0, &err), EBB_OK);
    there_and_back(c, NULL, 0, &was_better);
    assert_string_equal(path(c), "[one] [a2.0 a2.1 a2.2 ]");
    ebb_chat_close(c);
}

static void test_none(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_error err = { 0 };

    (void)state;
    script.better = NULL;
    assert_int_equal(ebb_chat_answer_better(c, "one", 3, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    say(c, "one");
    ebb_chat_close(c);
}

/* Stopped: what is there stays, and the everyday file comes back. */
static void test_stopped(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_error err = { 0 };
    bool was_better;

    (void)state;
    script.hold_at = 2;
    assert_int_equal(ebb_chat_answer_better(c, "one", 3, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_stop(c);
    there_and_back(c, NULL, 0, &was_better);
    assert_int_equal(last(c)->finish, EBB_FINISH_CANCELED);
    script.hold_at = 0;
    say(c, "two");
    ebb_chat_close(c);
}

/* It cannot be loaded: said, and the everyday file comes back with the question. */
static void test_cannot_load(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_chat_event ev;
    ebb_error err = { 0 };
    bool is_said = false;

    (void)state;
    script.fail_load = true;
    assert_int_equal(ebb_chat_answer_better(c, "one", 3, &err), EBB_OK);
    do {
        assert_true(fake_next(c, &ev));
        is_said |= ev.kind == EBB_EVENT_ERROR;
        script.fail_load = script.fail_load && !is_said;
    } while (ev.kind != EBB_EVENT_READY && !is_said);
    assert_true(is_said);
    ebb_chat_close(c);
}

/* Left in the middle: what was written is kept, and nothing is opened any more. */
static void test_left(void **state)
{
    ebb_chat *c = open_everyday();
    ebb_error err = { 0 };

    (void)state;
    script.hold_at = 2;
    assert_int_equal(ebb_chat_answer_better(c, "one", 3, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_close(c);
    assert_ptr_equal(strstr(script.opened, better), script.opened);
    script.hold_at = 0;
    c = open_ready(&(ebb_chat_opts){ .model_path = own_file, .continue_last = true });
    assert_string_equal(path(c), "[one] [a1.0 ]");
    say(c, "two");
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_there_and_back), T(test_draft), T(test_again), T(test_none), T(test_stopped), T(test_cannot_load),
        T(test_left),
    };

    return cmocka_run_group_tests_name("quality", tests, NULL, NULL);
}
