/* A whole chat on a scripted backend: events, ids, branches, stopping, the store. */
#include "ebb_test.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "chat/conversation/chat_fixture.h"
#include "os/file.h"
#include "store/store_sql.h"

static ebb_phase phase(const ebb_chat *c)
{
    ebb_stats s;

    ebb_chat_stats(c, &s);
    return s.phase;
}

static uint32_t n_ctx_used(const ebb_chat *c)
{
    ebb_stats s;

    ebb_chat_stats(c, &s);
    return s.n_ctx_used;
}

static void test_turn(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_event ev;
    char shown[256] = "";
    bool is_done = false;

    (void)state;
    assert_string_equal(ebb_chat_session_name(c), "new session");
    assert_int_equal(phase(c), EBB_PHASE_IDLE);
    send(c, "hello");
    assert_true(ebb_chat_is_busy(c));
    assert_int_equal(phase(c), EBB_PHASE_PREFILL);       /* whatever the engine says yet */
    while (!is_done) {                           /* the text told and the text that stands go together */
        assert_true(fake_next(c, &ev));
        if (ev.kind == EBB_EVENT_TEXT)
            strcat(shown, ev.text);
        if (ev.kind == EBB_EVENT_TEXT)
            assert_string_equal(last(c)->text, shown);
        is_done = ev.kind == EBB_EVENT_DONE;
    }
    assert_int_equal(phase(c), EBB_PHASE_IDLE);
    assert_string_equal(shown, "a1.0 a1.1 a1.2 ");
    assert_string_equal(path(c), "[hello] [a1.0 a1.1 a1.2 ]");
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    assert_int_equal(last(c)->n_ids, 3);
    assert_int_equal(last(c)->ids[2], 100002);
    assert_string_equal(last(c)->model, "fake");
    assert_string_equal(ebb_chat_session_name(c), "hello");
    assert_int_equal(last(c)->turn_stats.n_computed, 7);
    ebb_chat_close(c);
}

/* Turn two computes what it adds, and nothing else. */
static void test_second_turn_adds_only(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_cost cost;

    (void)state;
    say(c, "hello");
    assert_true(ebb_chat_preview(c, EBB_ACT_SEND, 0, "more", 4, &cost));
    assert_int_equal(cost.n_new, 6);
    assert_int_equal(cost.n_compute, 6);
    assert_int_equal(cost.n_before, 10);
    assert_int_equal(cost.n_tokens, 16);
    say(c, "more");
    assert_int_equal(last(c)->turn_stats.n_computed, 6);
    assert_int_equal(last(c)->turn_stats.n_reused, 10);
    ebb_chat_close(c);
}

static void test_retry_and_undo_compute_nothing(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "one");
    say(c, "two");
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ] [two] [a3.0 a3.1 a3.2 ]");
    assert_int_equal(last(c)->turn_stats.n_computed, 0);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    say(c, "drei");
    assert_int_equal(last(c)->turn_stats.n_computed, 5); /* it begins as "two" did: with a role */
    assert_int_equal(ebb_chat_redo(c, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_redo(c, &err), EBB_OK);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    ebb_chat_close(c);
}

/* Siblings of the last message, in their order: "[a1.0 ] [o1.0 ]"; *n: how many. */
static const char *siblings(ebb_chat *c, size_t *n)
{
    static char s[2048];
    const ebb_message *shown = ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
    ebb_branch *rows;
    size_t n_rows, at = 0;

    *n = 0;
    assert_int_equal(ebb_chat_branches(c, &rows, &n_rows, NULL), EBB_OK);
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].message->parent == shown->parent) {
            at += (size_t)snprintf(s + at, sizeof s - at, "[%s]", rows[i].message->text);
            assert_int_equal(rows[i].message->finish, EBB_FINISH_STOP);
            assert_int_equal(rows[i].message->n_sample_records, 1);
            assert_int_equal(rows[i].message->sample_records->sampling.seed, 7 + (*n)++);
            assert_int_equal(rows[i].message->sample_records->n, 3);
        }
    free(rows);
    return s;
}

/* One is shown; the others are branches beside it, each with a seed of its own, and kept as it is. */
static void test_several_answers_are_siblings(void **state)
{
    const ebb_chat_opts o = { .sampling = { .temp = 1, .top_p = 1, .repeat_penalty = 1, .seed = 7 } };
    ebb_chat *c = open_ready(&o);
    ebb_error err;
    size_t n;

    (void)state;
    assert_int_equal(ebb_chat_send_several(c, 17, "one", 3, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_send_several(c, 3, "one", 3, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    assert_true(n_ctx_used(c) > 0);              /* also where the others took the blocks of the first */
    assert_int_equal(n_ctx_used(c), ebb_chat_n_tokens(c));
    assert_string_equal(siblings(c, &n), "[a1.0 a1.1 a1.2 ][o1.0 o1.1 o1.2 ][o2.0 o2.1 o2.2 ]");
    assert_int_equal(ebb_chat_retry_several(c, 2, &err), EBB_OK);        /* their seeds go on */
    done(c);
    assert_string_equal(siblings(c, &n), "[a1.0 a1.1 a1.2 ][o1.0 o1.1 o1.2 ][o2.0 o2.1 o2.2 ]"
                                         "[a2.0 a2.1 a2.2 ][o1.0 o1.1 o1.2 ]");
    assert_int_equal(ebb_chat_go(c, "2c", &err), EBB_OK);
    assert_string_equal(path(c), "[one] [o2.0 o2.1 o2.2 ]");
    say(c, "two");                               /* one answer again */
    assert_string_equal(path(c), "[one] [o2.0 o2.1 o2.2 ] [two] [a3.0 a3.1 a3.2 ]");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    (void)siblings(c, &n);
    assert_int_equal(n, 5);
    ebb_chat_close(c);
}

/* The number is of one question: where that gets no answer, the next one does not inherit it. */
static void test_a_wish_for_several_ends(void **state)
{
    const ebb_chat_opts o = { .sampling = { .temp = 1, .top_p = 1, .repeat_penalty = 1, .seed = 7 } };
    ebb_chat *c = open_ready(&o);
    char text[120];
    ebb_error err;
    size_t n;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_retry_several(c, 3, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_redo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_edit(c, 0, "two", 3, &err), EBB_OK);
    done(c);
    assert_string_equal(siblings(c, &n), "[a2.0 a2.1 a2.2 ]");
    ebb_chat_close(c);

    script.n_ctx = 100;
    c = open_ready(&o);
    say(c, "one");
    memset(text, 'x', sizeof text);
    assert_int_equal(ebb_chat_send_several(c, 3, text, 90, &err), EBB_OK);
    assert_true(ebb_chat_awaits_overflow_choice(c));
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_edit(c, 0, "two", 3, &err), EBB_OK);
    done(c);
    assert_string_equal(siblings(c, &n), "[a4.0 a4.1 a4.2 ]");
    ebb_chat_close(c);
}

static size_t count_messages(ebb_chat *c)
{
    ebb_branch *rows;
    size_t n;

    assert_int_equal(ebb_chat_branches(c, &rows, &n, NULL), EBB_OK);
    free(rows);
    return n;
}

/* Stopped before a word there are none, in the middle each keeps what it has; an error leaves the question. */
static void test_several_answers_are_stopped(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    script.hold_at = 1;
    assert_int_equal(ebb_chat_send_several(c, 4, "one", 3, &err), EBB_OK);
    ebb_chat_stop(c);
    done(c);
    assert_int_equal(count_messages(c), 1);
    script.hold_at = 2;
    assert_int_equal(ebb_chat_retry_several(c, 4, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_stop(c);
    done(c);
    assert_string_equal(path(c), "[one] [a2.0 ]");
    assert_int_equal(count_messages(c), 5);
    script.hold_at = 0;
    script.fail_answer = true;
    assert_int_equal(ebb_chat_send_several(c, 3, "two", 3, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_ERROR, NULL, 0));
    assert_int_equal(count_messages(c), 6);
    script.fail_answer = false;
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_int_equal(count_messages(c), 7);
    ebb_chat_close(c);
}

static void test_edit_makes_a_branch(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "one");
    say(c, "two");
    assert_int_equal(ebb_chat_edit(c, 0, "uno", 3, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[uno] [a3.0 a3.1 a3.2 ]");
    assert_int_equal(ebb_chat_edit(c, 1, "better", 6, &err), EBB_OK);
    assert_string_equal(path(c), "[uno] [better]");
    say(c, "and");
    assert_int_equal(ebb_chat_edit(c, 9, "x", 1, &err), EBB_USAGE);
    assert_int_equal(c->tree.n_nodes, 9);        /* nothing was lost */
    ebb_chat_close(c);
}

static void test_stop_and_continue(void **state)
{
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.n_tokens = 5;
    script.hold_at = 3;
    c = open_ready(NULL);
    send(c, "go");
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_BUSY);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_BUSY);
    assert_int_equal(ebb_chat_load(c, "go", &err), EBB_BUSY);
    while (last(c)->n_ids < 2)
        assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_stop(c);
    done(c);
    assert_int_equal(last(c)->finish, EBB_FINISH_CANCELED);
    assert_string_equal(last(c)->text, "a1.0 a1.1 ");
    script.hold_at = 0;
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    done(c);
    assert_string_equal(path(c), "[go] [a1.0 a1.1 a2.0 a2.1 a2.2 a2.3 a2.4 ]");
    assert_int_equal(last(c)->n_ids, 7);
    assert_int_equal(last(c)->turn_stats.n_computed, 4); /* of the question; to go on took nothing */
    assert_int_equal(last(c)->turn_stats.n_generated, 7);
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    assert_int_equal(ebb_chat_continue(c, &err), EBB_USAGE);
    ebb_chat_close(c);
}

/* Stopped before the first token, there is no answer: the question can be asked again. */
static void test_stop_before_the_first_token(void **state)
{
    ebb_chat *c;
    ebb_error err;
    ebb_session_row *rows;
    size_t n;

    (void)state;
    script.hold_at = 1;
    c = open_ready(NULL);
    send(c, "go");
    ebb_chat_stop(c);
    done(c);
    assert_string_equal(path(c), "[go]");
    assert_int_equal(ebb_chat_list(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(rows[0].n_messages, 1);
    free(rows);
    script.hold_at = 0;
    send(c, "instead");
    done(c);
    assert_string_equal(path(c), "[instead] [a2.0 a2.1 a2.2 ]");
    ebb_chat_close(c);
}

static void test_error_in_an_answer(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    char text[64];

    (void)state;
    script.fail_answer = true;
    send(c, "go");
    assert_true(fake_wait(c, EBB_EVENT_ERROR, text, sizeof text));
    assert_string_equal(text, "the disk is gone");
    assert_string_equal(path(c), "[go]");
    assert_false(ebb_chat_is_busy(c));
    script.fail_answer = false;
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_int_equal(ebb_chat_n_messages(c), 2);
    ebb_chat_close(c);
}

/* Another question takes the place of one without an answer, which is said. */
static void test_a_question_is_left_out(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char text[128];

    (void)state;
    script.fail_answer = true;
    send(c, "go");
    assert_true(fake_wait(c, EBB_EVENT_ERROR, NULL, 0));
    script.fail_answer = false;
    send(c, "go on");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_string_equal(text, "the question before has no answer and is left out; /tree shows it");
    done(c);
    assert_string_equal(ebb_chat_message(c, 0)->text, "go on");
    assert_int_equal(count_messages(c), 3);
    ebb_chat_close(c);
}

/* An action that fails changes nothing. */
static void test_refused_prompt(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    ebb_session_row *rows;
    size_t n;

    (void)state;
    script.refuse = true;
    assert_int_equal(ebb_chat_send(c, "first", 5, &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    assert_int_equal(ebb_chat_list(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 0);
    free(rows);
    script.refuse = false;
    say(c, "one");
    script.refuse = true;
    assert_int_equal(ebb_chat_send(c, "two", 3, &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_retry(c, &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_edit(c, 0, "uno", 3, &err), EBB_UNSUPPORTED);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    assert_string_equal(ebb_chat_session_name(c), "one");
    assert_int_equal(c->tree.n_nodes, 2);
    ebb_chat_close(c);
}

static void test_a_question_waits_for_the_model(void **state)
{
    ebb_chat *c;

    (void)state;
    script.hold_load = true;
    c = open_chat(NULL);
    send(c, "early");
    assert_true(ebb_chat_is_busy(c));
    assert_false(ebb_chat_is_ready(c));
    script.hold_load = false;
    done(c);
    assert_string_equal(path(c), "[early] [a1.0 a1.1 a1.2 ]");
    ebb_chat_close(c);
}

static void test_no_model(void **state)
{
    ebb_chat *c;
    ebb_error err;
    char text[64];

    (void)state;
    script.fail_load = true;
    c = open_chat(NULL);
    assert_true(fake_wait(c, EBB_EVENT_ERROR, text, sizeof text));
    assert_string_equal(text, "no such file");
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_load_model(c, "/nowhere/m.gguf", &err), EBB_NOTFOUND);
    script.fail_load = false;
    assert_int_equal(ebb_chat_load_model(c, "/dev/null", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, text, sizeof text));
    assert_string_equal(text, "fake");
    say(c, "x");
    ebb_chat_close(c);
}

static void test_sessions(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    (void)state;
    say(c, "about   rivers\nand lakes");
    assert_string_equal(ebb_chat_session_name(c), "about rivers and lakes");
    assert_int_equal(ebb_chat_save_as(c, "rivers", &err), EBB_OK);
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    say(c, "second");
    assert_int_equal(ebb_chat_save_as(c, "rivers", &err), EBB_USAGE);
    assert_string_equal(ebb_chat_session_name(c), "second");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_save_as(c, "rivers", &err), EBB_USAGE);    /* before anything is said, too */
    assert_string_equal(ebb_chat_session_name(c), "new session");
    assert_int_equal(ebb_chat_save_as(c, "lakes", &err), EBB_OK);
    assert_string_equal(ebb_chat_session_name(c), "lakes");
    assert_int_equal(ebb_chat_session_id(c), 0);
    assert_int_equal(ebb_chat_load(c, "rivers", &err), EBB_OK);
    assert_string_equal(path(c), "[about   rivers\nand lakes] [a1.0 a1.1 a1.2 ]");
    assert_int_equal(ebb_chat_list(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].name, "second");
    assert_string_equal(rows[1].name, "rivers");
    assert_string_equal(rows[1].model, "fake");
    assert_int_equal(rows[1].n_tokens, 29);
    free(rows);
    assert_int_equal(ebb_chat_load(c, "nothing", &err), EBB_NOTFOUND);
    assert_string_equal(ebb_chat_session_name(c), "rivers");
    ebb_chat_close(c);

    c = open_ready(&(ebb_chat_opts){ .session_name = "rivers" });
    assert_int_equal(ebb_chat_n_messages(c), 2);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_string_equal(ebb_chat_session_name(c), "second");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .session_name = "lakes" });
    say(c, "x");
    assert_string_equal(ebb_chat_session_name(c), "lakes");
    ebb_chat_close(c);
}

/* The meter is the conversation's at hand, also before the model has read it. */
static void test_meter_of_another_path(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    uint32_t n;

    (void)state;
    say(c, "about rivers");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(n_ctx_used(c), 0);
    say(c, "hello");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    n = n_ctx_used(c);
    assert_true(n > 0);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(n_ctx_used(c), 0);
    assert_int_equal(ebb_chat_redo(c, &err), EBB_OK);
    assert_int_equal(n_ctx_used(c), n);
    ebb_chat_close(c);
}

/* After a restart the ids are the same ones, and what is computed again is told. */
static void test_ids_survive_a_restart(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char text[160];

    (void)state;
    say(c, "hello");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(last(c)->n_ids, 3);
    send(c, "more");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "10 tokens of the conversation are computed again"));
    done(c);
    assert_int_equal(last(c)->turn_stats.n_prompt, 16);
    ebb_chat_close(c);
}

/* Ids of another model's vocabulary mean nothing: its texts are what counts. */
static void test_another_model(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    script.n_tokens = 2;
    script.hold_at = 2;
    send(c, "hello");
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_stop(c);
    done(c);
    script.hold_at = 0;
    memcpy(script.fingerprint, "model two", 10);
    assert_int_equal(ebb_chat_load_model(c, "/dev/null", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_int_equal(ebb_chat_continue(c, &err), EBB_USAGE);
    say(c, "more");
    assert_int_equal(ebb_chat_message(c, 1)->n_ids, 7 + 7);      /* "hello", "a1.0 " and their frames */
    assert_int_equal(last(c)->turn_stats.n_prompt, 20);
    ebb_chat_close(c);
}

/* It stays from model to model, and the engine may do without it then; a name that nobody has changes nothing. */
static void test_draft(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .model_path = "first", .draft_path = "small" });
    ebb_error err;

    (void)state;
    assert_string_equal(script.opened, "first + small");
    assert_int_equal(ebb_chat_load_model(c, "/dev/null", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_string_equal(script.opened, "/dev/null + small?");
    assert_int_equal(ebb_chat_set_draft(c, "/nonexistent/x.gguf", &err), EBB_NOTFOUND);
    assert_string_equal(ebb_chat_draft(c), "small");
    assert_true(ebb_chat_is_ready(c));
    say(c, "hello");
    assert_int_equal(ebb_chat_set_draft(c, "/dev/null", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_string_equal(script.opened, "guide + /dev/null?");       /* the scripted one has no file */
    assert_int_equal(ebb_chat_set_draft(c, "auto", &err), EBB_OK);
    assert_int_equal(ebb_chat_set_draft(c, "off", &err), EBB_BUSY);  /* it is being loaded */
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_string_equal(ebb_chat_draft(c), "auto");
    assert_int_equal(ebb_chat_set_draft(c, NULL, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_string_equal(script.opened, "guide + -?");
    assert_null(ebb_chat_draft(c));
    say(c, "and on");
    assert_int_equal(ebb_chat_n_messages(c), 4);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .draft_path = "small", .engine.no_speculation = true });
    assert_null(ebb_chat_draft(c));
    assert_int_equal(ebb_chat_set_draft(c, "/dev/null", &err), EBB_USAGE);
    ebb_chat_close(c);
}

static void test_system_prompt(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .system = "Be brief." });
    ebb_error err;
    char text[160];

    (void)state;
    assert_string_equal(path(c), "[Be brief.]");
    say(c, "q");
    assert_int_equal(ebb_chat_set_system(c, "Be long.", &err), EBB_OK);
    assert_string_equal(path(c), "[Be long.] [q] [a1.0 a1.1 a1.2 ]");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "6 tokens"));
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    say(c, "r");
    assert_int_equal(ebb_chat_set_system(c, NULL, &err), EBB_OK);
    assert_int_equal(ebb_chat_message(c, 0)->role, EBB_ROLE_USER);
    assert_int_equal(ebb_chat_set_system(c, "New.", &err), EBB_OK);
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_string_equal(path(c), "[New.]");
    say(c, "q");
    ebb_chat_close(c);
    script.hold_load = true;                     /* whose the ids are is not known yet */
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_set_system(c, "Newer.", &err), EBB_OK);
    assert_string_equal(path(c), "[Newer.] [q] [a3.0 a3.1 a3.2 ]");
    script.hold_load = false;
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .n_predict = 2 });
    say(c, "q");
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_int_equal(ebb_chat_set_system(c, "Other.", &err), EBB_OK);
    assert_int_equal(ebb_chat_continue(c, &err), EBB_USAGE);     /* its ids are of another beginning */
    assert_non_null(strstr(err.msg, "the beginning has changed since"));
    ebb_chat_close(c);
}

/* What the configuration or the command line says is for new sessions: one that is there keeps its own, and nothing of
 * it is copied; of the command line's a line says so. */
static void test_system_prompt_of_a_kept_session(void **state)
{
    static const struct {
        const char *name, *system, *beginning;
        bool        is_given, is_told;
    } cases[] = {
        { "own", "Other.", "[Be brief.] [q] ", false, false }, { "own", "Other.", "[Be brief.] [q] ", true, true },
        { "own", "Be brief.", "[Be brief.] [q] ", true, false }, { "none", "Other.", "[q] ", false, false },
        { "none", "Other.", "[q] ", true, true },
    };
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "own", .system = "Be brief.", .system_given = true });
    ebb_chat_event ev;
    ebb_error err;

    (void)state;
    say(c, "q");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .session_name = "none" });
    say(c, "q");
    ebb_chat_close(c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_told = false;

        c = open_chat(&(ebb_chat_opts){ .session_name = cases[i].name, .system = cases[i].system,
                                        .system_given = cases[i].is_given, .is_unattended = true });
        assert_int_equal(ebb_chat_take_turn(c, &err), EBB_OK);   /* as `ebb run` */
        while (fake_next(c, &ev) && ev.kind != EBB_EVENT_READY)
            is_told |= ev.kind == EBB_EVENT_WARNING && strstr(ev.text, "--system is for a new one; /system");
        assert_int_equal(is_told, cases[i].is_told);
        assert_true(strncmp(path(c), cases[i].beginning, strlen(cases[i].beginning)) == 0);
        assert_int_equal(c->tree.n_nodes, c->tree.n_path);
        assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
        assert_int_equal(ebb_chat_n_messages(c), 1);
        assert_string_equal(ebb_chat_message(c, 0)->text, cases[i].system);
        ebb_chat_close(c);
    }
}

static void test_settings(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    char text[200];

    (void)state;
    assert_int_equal(ebb_chat_set(c, "temp", "0.25", text, sizeof text, &err), EBB_OK);
    assert_string_equal(text, "temp = 0.25");
    assert_int_equal(ebb_chat_set(c, "top_p", "0.5", text, sizeof text, &err), EBB_OK);  /* as other programs call it */
    assert_string_equal(text, "top-p = 0.5");
    assert_int_equal(ebb_chat_set(c, "temperature", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "temp = 0.25"));
    assert_int_equal(ebb_chat_set(c, "temp", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "0 to 10"));
    assert_int_equal(ebb_chat_set(c, "temp", "hot", text, sizeof text, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set(c, "temp", "nan", text, sizeof text, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set(c, "top-k", "1.5", text, sizeof text, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set(c, "wat", "1", text, sizeof text, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set(c, "seed", "7", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "thinking", "off", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "overflow", "slide", text, sizeof text, &err), EBB_OK);
    for (size_t i = 0; ebb_chat_setting_name(i); i++)
        assert_int_equal(ebb_chat_set(c, ebb_chat_setting_name(i), NULL, text, sizeof text, &err), EBB_OK);
    say(c, "q");
    assert_int_equal(script.seed, 7);
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_int_equal(script.seed, 8);            /* another try, another answer */
    ebb_chat_close(c);

    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(c->settings.sampling.seed, 7);
    assert_float_equal(c->settings.sampling.temp, 0.25f, 1e-9f);
    assert_int_equal(c->settings.thinking, EBB_THINKING_OFF);
    assert_int_equal(c->settings.overflow, EBB_OVERFLOW_SLIDE);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true,
                                     .sampling = { .temp = 0, .top_k = 40, .top_p = 1, .repeat_penalty = 1 } });
    assert_true(c->settings.sampling.temp == 0); /* the command line counts more */
    ebb_chat_close(c);
}

/* One of the command line may be larger than a double has digits; what /set takes is exact, too. */
static void test_large_seeds(void **state)
{
    const uint64_t large = UINT64_C(9007199254740993);
    ebb_chat_opts opts = { .sampling = { .top_p = 1, .seed = large } };
    ebb_chat *c = open_ready(&opts);
    ebb_error err;
    char text[200];

    (void)state;
    say(c, "q");
    assert_true(script.seed == large);
    assert_int_equal(ebb_chat_set(c, "seed", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "seed = 9007199254740993 "));
    assert_int_equal(ebb_chat_set(c, "seed", "9007199254740993", text, sizeof text, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set(c, "seed", "9007199254740991", text, sizeof text, &err), EBB_OK);
    assert_string_equal(text, "seed = 9007199254740991");
    say(c, "q");
    assert_true(script.seed == UINT64_C(9007199254740991));
    ebb_chat_close(c);
}

/* Every digit, or the seed gives other answers; what an older ebb wrote, all as reals, is read. */
static void test_settings_are_kept_exactly(void **state)
{
    static const struct { const char *name, *value; } kept[] = {
        { "seed", "9007199254740991" }, { "predict", "999999999" }, { "top-p", "0.123456789" },
    };
    ebb_chat *c = open_ready(NULL);
    ebb_chat_settings is;
    char text[200];

    (void)state;
    say(c, "q");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_int_equal(ebb_chat_set(c, kept[i].name, kept[i].value, text, sizeof text, NULL), EBB_OK);
    is = c->settings;
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(c->settings.sampling.seed, is.sampling.seed);
    assert_int_equal(c->settings.n_predict, is.n_predict);
    assert_true(c->settings.sampling.top_p == is.sampling.top_p);
    ebb_chat_settings_load(c, "{\"seed\":12.0,\"predict\":5.0}");
    assert_int_equal(c->settings.sampling.seed, 12);
    assert_int_equal(c->settings.n_predict, 5);
    ebb_chat_close(c);
}

/* What the command line says counts for its run: the session has its own again without it, unless /set changed it. */
static void test_an_option_is_for_its_run(void **state)
{
    ebb_chat_opts with = { .session_name = "own", .n_predict = 3, .overflow = EBB_OVERFLOW_GROW, .overflow_given = true,
                           .template_name = "chatml", .sampling_given = EBB_SAMPLING_BIT(temp),
                           .sampling = { .temp = 1.25f, .top_k = 40, .top_p = 1, .repeat_penalty = 1 } };
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "own" });
    ebb_error err;
    char text[200];

    (void)state;
    say(c, "a");
    assert_int_equal(ebb_chat_set(c, "temp", "0.25", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "predict", "6", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "overflow", "stop", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set_template(c, "zephyr", &err), EBB_OK);
    ebb_chat_close(c);

    c = open_ready(&with);
    assert_true(c->settings.sampling.temp == 1.25f && c->settings.n_predict == 3);
    assert_int_equal(c->settings.overflow, EBB_OVERFLOW_GROW);
    assert_string_equal(script.rendered_with, "chatml");
    say(c, "b");
    assert_int_equal(ebb_chat_set(c, "predict", "9", text, sizeof text, &err), EBB_OK);
    ebb_chat_close(c);

    c = open_ready(&(ebb_chat_opts){ .session_name = "own" });
    assert_true(c->settings.sampling.temp == 0.25f);
    assert_int_equal(c->settings.n_predict, 9);
    assert_int_equal(c->settings.overflow, EBB_OVERFLOW_STOP);
    assert_string_equal(script.rendered_with, "zephyr");
    ebb_chat_close(c);

    c = open_ready(&with);                       /* a new session has none of it */
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    say(c, "c");
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_true(c->settings.sampling.temp == 0.5f && c->settings.n_predict == 0);
    assert_string_equal(script.rendered_with, "");
    ebb_chat_close(c);
}

/* A session whose template cannot be read is usable all the same, with what a new one would have, and keeps its
 * choice: the file may only be on a disk that is not there. */
static void test_a_template_that_is_gone(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "own" });
    char text[200];
    ebb_error err;

    (void)state;
    say(c, "a");
    assert_int_equal(ebb_chat_set_template(c, "own", &err), EBB_OK);
    assert_string_equal(script.rendered_with, "own");
    ebb_chat_close(c);

    script.lost_template = "own";
    c = open_chat(&(ebb_chat_opts){ .session_name = "own" });
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "there is no chat template 'own'; the default is used"));
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_string_equal(ebb_chat_template(c), "auto");
    say(c, "b");
    ebb_chat_close(c);

    c = open_ready(NULL);                        /* loaded from a session with another one */
    say(c, "a");
    assert_int_equal(ebb_chat_set_template(c, "zephyr", &err), EBB_OK);
    assert_int_equal(ebb_chat_load(c, "own", &err), EBB_OK);
    assert_string_equal(script.rendered_with, "");
    assert_string_equal(ebb_chat_template(c), "auto");
    say(c, "c");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_string_equal(c->settings.template_name, "");
    ebb_chat_close(c);

    script.lost_template = NULL;
    c = open_ready(&(ebb_chat_opts){ .session_name = "own" });
    assert_string_equal(script.rendered_with, "own");
    assert_int_equal(ebb_chat_set_template(c, "zephyr", &err), EBB_OK);
    assert_string_equal(ebb_chat_template(c), "zephyr");
    ebb_chat_close(c);
}

/* A pipe gives its text once, and may let all keys wait for it: only the command line names one. */
static void test_a_template_is_no_pipe(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "own" });
    char path[128], text[300];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/template", ebb_own_dir);
    assert_int_equal(ebb_file_replace(path, "x", 1, NULL), EBB_OK);
    say(c, "a");
    assert_int_equal(ebb_chat_set_template(c, path, &err), EBB_OK);
    assert_string_equal(script.rendered_with, path);
    assert_int_equal(unlink(path) + mkfifo(path, 0600), 0);
    assert_int_equal(ebb_chat_set_template(c, path, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "/template: is no regular file; copy its text into one"));
    ebb_chat_close(c);

    c = open_chat(&(ebb_chat_opts){ .session_name = "own" });
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "/template: is no regular file; copy its text into one; the default is used"));
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    ebb_chat_close(c);

    c = open_ready(&(ebb_chat_opts){ .template_name = path });
    assert_string_equal(script.rendered_with, path);
    ebb_chat_close(c);
    assert_int_equal(unlink(path), 0);
}

/* -- A store that fails --------------------------------------------------------------- */

static void expect_setting(ebb_chat *c, const char *name, const char *value)
{
    char text[160], want[64];

    snprintf(want, sizeof want, "%s = %s (", name, value);
    assert_int_equal(ebb_chat_set(c, name, NULL, text, sizeof text, NULL), EBB_OK);
    if (strncmp(text, want, strlen(want)) != 0)
        fail_msg("%s, not %s", text, want);
}

/* What a model's file recommends comes after the session and the command line. */
static void test_model_advice(void **state)
{
    static const struct fake_number numbers[] = {
        { "general.sampling.temp", 0 }, { "general.sampling.top_k", 20 }, { "general.sampling.top_p", 7 }, { NULL, 0 },
    };
    ebb_chat_opts opts = { .continue_last = true };
    char text[160];
    ebb_chat *c;

    (void)state;
    script.numbers = numbers;
    c = open_ready(NULL);
    expect_setting(c, "temp", "0");
    expect_setting(c, "top-k", "20");
    expect_setting(c, "top-p", "1");             /* 7 is no probability */
    say(c, "a");
    assert_int_equal(ebb_chat_set(c, "top-k", "5", text, sizeof text, NULL), EBB_OK);
    ebb_chat_close(c);
    c = open_ready(&opts);
    expect_setting(c, "temp", "0");
    expect_setting(c, "top-k", "5");
    script.numbers = NULL;                       /* another model, that recommends nothing */
    assert_int_equal(ebb_chat_load_model(c, NULL, NULL), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    expect_setting(c, "temp", "0.5");
    expect_setting(c, "top-k", "5");
    ebb_chat_close(c);
    script.numbers = numbers;
    opts = (ebb_chat_opts){ .sampling_given = EBB_SAMPLING_BIT(temp) };
    c = open_ready(&opts);
    expect_setting(c, "temp", "0.5");            /* the default, but said */
    expect_setting(c, "top-k", "20");
    ebb_chat_close(c);
    /* a configuration file: before the model, after the session */
    opts = (ebb_chat_opts){ .continue_last = true,
                            .sampling = { .temp = 0.9f, .top_k = 9, .top_p = 1, .repeat_penalty = 1 },
                            .sampling_config = EBB_SAMPLING_BIT(temp) | EBB_SAMPLING_BIT(top_k) };
    c = open_ready(&opts);
    expect_setting(c, "temp", "0.9");
    expect_setting(c, "top-k", "5");
    ebb_chat_close(c);
    script.numbers = NULL;
}

/* What a file recommends and no setting can follow is named: samplers that are not here and switched on, values out of
 * range.  What they would be tuned by, or switched off, is nothing to tell. */
static void test_advice_that_no_setting_follows(void **state)
{
    static const struct fake_number on[] = {
        { "general.sampling.xtc_probability", 0.25 }, { "general.sampling.xtc_threshold", 0.1 },
        { "general.sampling.mirostat", 2 }, { "general.sampling.mirostat_tau", 5 },
        { "general.sampling.mirostat_eta", 0.1 }, { "general.sampling.top_p", 7 },
        { "general.sampling.penalty_repeat", 1.1 }, { "general.sampling.penalty_last_n", 32 },
        { "general.sampling.min_p", 0.05 }, { NULL, 0 },
    };
    static const struct fake_number off[] = {
        { "general.sampling.xtc_probability", 0 }, { "general.sampling.mirostat", 0 },
        { "general.sampling.mirostat_tau", 5 }, { NULL, 0 },
    };
    char text[200];
    ebb_chat *c;

    (void)state;
    script.numbers = on;
    c = open_ready(NULL);
    expect_setting(c, "repeat-penalty", "1.1");
    expect_setting(c, "repeat-last", "32");
    expect_setting(c, "min-p", "0.05");
    assert_true(ebb_chat_settings_unfollowed(c, text, sizeof text));
    assert_string_equal(text, "general.sampling.xtc_probability = 0.25, general.sampling.mirostat = 2, "
                              "general.sampling.top_p = 7");
    ebb_chat_close(c);
    script.numbers = off;
    c = open_ready(NULL);
    assert_false(ebb_chat_settings_unfollowed(c, text, sizeof text));
    ebb_chat_close(c);
    script.numbers = NULL;
}

/* Advice of a name that nothing here knows is named, whatever it says and whatever bytes its name has. */
static void test_advice_of_an_unknown_name(void **state)
{
    static const struct fake_number unknown[] = {
        { "general.sampling.temp", 0.5 }, { "general.sampling.dry_multiplier", 0.8 }, { "general.name", 1 },
        { "general.sampling.\33[2J", 1 }, { NULL, 0 },
    };
    char text[200];
    ebb_chat *c;

    (void)state;
    script.numbers = unknown;
    c = open_ready(NULL);
    assert_true(ebb_chat_settings_unfollowed(c, text, sizeof text));
    assert_int_equal(strncmp(text, "general.sampling.dry_multiplier, general.sampling.", 50), 0);
    assert_null(strchr(text, '\33'));
    ebb_chat_close(c);
    script.numbers = NULL;
}

/* An order of the samplers is followed where it is the sampler's own, and named where it is another. */
static void test_advice_of_an_order(void **state)
{
    static const char *const own[] = {
        "penalties;top_k;top_p;min_p;temperature",
        "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
    };
    static const char *const others[] = {
        "temperature;top_k", "penalties;top_k;min_p;top_p;temperature", "penalties;top_k;top_p;min_p",
        "penalties;top_k;top_p;min_p;temperature;infill", "penalties;top_k;top_p;min_p;temperature;top_k",
        "penalties;top_k;top_p;min_p;temperature;", "top", "",
    };
    char text[200], want[200];
    ebb_chat *c = open_ready(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        script.sampling_sequence = own[i];
        assert_false(ebb_chat_settings_unfollowed(c, text, sizeof text));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        script.sampling_sequence = others[i];
        snprintf(want, sizeof want, "general.sampling.sequence = %s", others[i]);
        assert_true(ebb_chat_settings_unfollowed(c, text, sizeof text));
        assert_string_equal(text, want);
    }
    script.sampling_sequence = "\33[2Jtop_k";     /* nothing of a file reaches the terminal raw */
    assert_true(ebb_chat_settings_unfollowed(c, text, sizeof text));
    assert_null(strchr(text, '\33'));
    script.sampling_sequence = NULL;
    ebb_chat_close(c);
}

static void test_garbage_store(void **state)
{
    FILE *f = fopen(db, "w");
    ebb_chat *c;
    ebb_error err;
    char text[400], file[96], line[128];

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database. ", f);
    fclose(f);
    c = open_chat(NULL);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "not a session database"));
    assert_non_null(strstr(text, "memory"));
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    say(c, "still talking");
    assert_int_equal(ebb_chat_n_messages(c), 2);
    assert_int_equal(ebb_chat_save_as(c, "kept", &err), EBB_FORMAT);
    assert_string_equal(ebb_chat_session_name(c), "still talking");
    snprintf(file, sizeof file, "%s/kept.md", dir);
    assert_int_equal(ebb_chat_save_as(c, file, &err), EBB_OK);
    assert_int_equal(ebb_chat_save_as(c, file, &err), EBB_USAGE);          /* not over what is there */
    snprintf(line, sizeof line, "%s/link.md", dir);
    assert_int_equal(symlink("/nowhere/at/all", line), 0);
    assert_int_equal(ebb_chat_save_as(c, line, &err), EBB_USAGE);          /* nor over what cannot be read */
    assert_int_equal(unlink(line), 0);
    assert_int_equal(ebb_chat_load(c, "x", &err), EBB_IO);
    assert_non_null(strstr(err.msg, "kept in memory"));
    f = fopen(file, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "# still talking\n");
    fclose(f);
    assert_int_equal(unlink(db), 0);             /* moved away, as the notice said */
    assert_int_equal(ebb_chat_save_as(c, "kept", &err), EBB_OK);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .session_name = "kept" });
    assert_int_equal(ebb_chat_n_messages(c), 2);
    ebb_chat_close(c);
}

/* A lock that somebody holds too long: told once; when it is gone, everything is saved. */
static void test_locked_store(void **state)
{
    ebb_chat *c = open_ready(NULL);
    sqlite3 *other;
    char text[400];
    int64_t id;
    ebb_error err;

    (void)state;
    say(c, "before");
    assert_int_equal(sqlite3_open(db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    send(c, "while locked");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "locked"));
    done(c);
    assert_int_equal(ebb_chat_n_messages(c), 4);
    assert_true(last(c)->id < 0);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    send(c, "after");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, "saved again"));
    done(c);
    assert_true(last(c)->id > 0);
    assert_int_equal(ebb_store_find(c->store, "before", &id, &err), EBB_OK);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_n_messages(c), 6);
    ebb_chat_close(c);
}

/* Closing in the middle keeps what was written. */
static void test_close_saves(void **state)
{
    ebb_chat *c;

    (void)state;
    script.hold_at = 3;
    c = open_ready(NULL);
    send(c, "go");
    while (ebb_chat_n_messages(c) < 2 || last(c)->n_ids < 2)
        assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_string_equal(path(c), "[go] [a1.0 a1.1 ]");
    assert_int_equal(last(c)->finish, EBB_FINISH_CANCELED);
    ebb_chat_close(c);
}

static bool is_stored(const char *text, ebb_finish finish)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_store *s;
    int64_t id;
    bool is_it;

    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, id, &f, &t, &err), EBB_OK);
    is_it = strcmp(ebb_tree_leaf(&t)->m.text, text) == 0 && ebb_tree_leaf(&t)->m.finish == finish;
    ebb_tree_fini(&t);
    ebb_session_facts_fini(&f);
    ebb_store_close(s);
    return is_it;
}

/* What ends with the process nobody opens again. */
static void test_in_memory_is_not_saved(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .store_path = ":memory:" });

    (void)state;
    say(c, "in private");
    assert_false(ebb_chat_is_saved(c));
    ebb_chat_close(c);
    c = open_ready(NULL);
    say(c, "in the open");
    assert_true(ebb_chat_is_saved(c));
    ebb_chat_close(c);
}

/* The answer under way comes to the disk although no event asks for it: the timer rings, once or (where the machine
 * stood still) not. */
static void test_saved_while_under_way(void **state)
{
    ebb_chat *c;
    ebb_chat_event ev;

    (void)state;
    script.hold_at = 3;
    c = open_ready(NULL);
    send(c, "go");
    while (ebb_chat_n_messages(c) < 2 || last(c)->n_ids < 2)
        assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };
    assert_false(ebb_chat_event_next(c, &ev));
    while (!is_stored("a1.0 a1.1 ", EBB_FINISH_NONE)) {
        assert_int_equal(poll(&p, 1, EBB_TEST_WAIT_S * 1000), 1);
        assert_false(ebb_chat_event_next(c, &ev));
    }
    assert_int_equal(poll(&p, 1, 50), 0);        /* and is silent when there is nothing to save */
    assert_int_equal(c->queues.timer_ns, 0);
    ebb_chat_close(c);
}

/* A long one is written whole each time, so the less often. */
static void test_a_long_answer_is_saved_less_often(void **state)
{
    static char text[600000];
    ebb_chat_event ev;
    ebb_chat *c;

    (void)state;
    memset(text, 'x', sizeof text);
    script.hold_at = 1;
    c = open_ready(NULL);
    send(c, "go");
    assert_true(fake_wait(c, EBB_EVENT_PREFILL, NULL, 0));
    c->queues.timer_ns = 0;                      /* which rings for that */
    ebb_chat_sink(c, &(ebb_backend_event){ .kind = EBB_BACKEND_TOKEN, .text = text, .n_text = sizeof text });
    do {
        assert_true(fake_next(c, &ev));
    } while (ev.kind != EBB_EVENT_TEXT);
    assert_true(c->queues.timer_ns > ebb_clock_ns() + 1000000000u);
    ebb_chat_close(c);
}

/* What was asked about memory comes as a notice and a report, and is awaited until then. */
static void test_memory(void **state)
{
    ebb_chat *c;
    char text[64];
    ebb_error err;

    (void)state;
    script.hold_load = true;
    c = open_chat(NULL);
    assert_int_equal(ebb_chat_set_budget(c, 5, &err), EBB_BUSY);
    assert_int_equal(ebb_chat_plan(c, &err), EBB_BUSY);
    script.hold_load = false;
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_int_equal(ebb_chat_set_budget(c, 5, &err), EBB_OK);
    assert_true(ebb_chat_awaits_report(c));
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_string_equal(text, "budget 5");
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_false(ebb_chat_awaits_report(c));
    assert_int_equal(ebb_chat_plan(c, &err), EBB_OK);
    assert_true(ebb_chat_awaits_report(c));
    assert_true(fake_wait(c, EBB_EVENT_REPORT, text, sizeof text));
    assert_string_equal(text, "one\ntwo\n");
    assert_false(ebb_chat_awaits_report(c));
    ebb_chat_close(c);
}

/* A budget holds for the process: also when the model is opened again, in whatever way. */
static void test_a_budget_stays(void **state)
{
    static const struct { uint64_t asked, holds; } of[] = { { 5, 5 }, { 1, 5 }, { 7, 7 }, { 0, 0 } };
    ebb_chat *c = open_ready(NULL);
    char text[64];

    (void)state;
    script.plan_fits = true;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_int_equal(ebb_chat_set_budget(c, of[i].asked, NULL), EBB_OK);
        do
            assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
        while (strcmp(text, "it stands") != 0);
        assert_int_equal(ebb_chat_set_ctx(c, (uint32_t)(1000 + i), NULL), EBB_OK);
        assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
        assert_int_equal(script.opened_with_bytes, of[i].holds);
    }
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_turn), T(test_second_turn_adds_only), T(test_retry_and_undo_compute_nothing),
        T(test_several_answers_are_siblings), T(test_several_answers_are_stopped),
        T(test_a_wish_for_several_ends),
        T(test_edit_makes_a_branch),
        T(test_stop_and_continue), T(test_stop_before_the_first_token), T(test_error_in_an_answer),
        T(test_a_question_is_left_out),
        T(test_refused_prompt),
        T(test_a_question_waits_for_the_model), T(test_no_model), T(test_sessions), T(test_meter_of_another_path),
        T(test_ids_survive_a_restart),
        T(test_another_model), T(test_draft), T(test_system_prompt),
        T(test_system_prompt_of_a_kept_session), T(test_settings),
        T(test_settings_are_kept_exactly), T(test_large_seeds), T(test_model_advice),
        T(test_advice_that_no_setting_follows),
        T(test_advice_of_an_order), T(test_advice_of_an_unknown_name),
        T(test_an_option_is_for_its_run), T(test_a_template_that_is_gone), T(test_a_template_is_no_pipe),
        T(test_garbage_store), T(test_locked_store), T(test_close_saves), T(test_in_memory_is_not_saved),
        T(test_saved_while_under_way), T(test_a_long_answer_is_saved_less_often), T(test_memory),
        T(test_a_budget_stays),
    };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
