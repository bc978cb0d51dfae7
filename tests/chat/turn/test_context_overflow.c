/* A conversation of several times the context, under each policy (overflow.c, overflow_compact.c,
 * overflow_grow.c): it goes on, the system prompt holds, and every decision stands in the path. */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"

static const char system_text[] = "Be good.";

/* A context that a conversation soon fills. */
static int setup_small(void **state)
{
    int rc = setup(state);

    script.n_ctx = 200;
    script.n_tokens = 5;
    return rc;
}

static ebb_chat *open_with(ebb_overflow_policy how, bool goes_on)
{
    return open_ready(&(ebb_chat_opts){ .overflow = how, .system = goes_on ? NULL : system_text,
                                        .continue_last = goes_on });
}

static size_t n_ui_events(const ebb_chat *c)
{
    size_t n = 0;

    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        n += ebb_chat_message(c, i)->role == EBB_ROLE_NOTE;
    return n;
}

/* What the model was asked last began with the system prompt. */
static void assert_system_holds(void)
{
    assert_true(script.n_asked > sizeof system_text);
    assert_int_equal(script.first[0], EBB_ROLE_SYSTEM + 1);
    for (size_t i = 0; i < sizeof system_text - 1; i++)
        assert_int_equal(script.first[1 + i], 1000 + (unsigned char)system_text[i]);
}

static void talk(ebb_chat *c, int from, int to)
{
    for (int i = from; i < to; i++) {
        char text[32];

        snprintf(text, sizeof text, "question %d", i);
        say(c, text);
        assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
        assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
        assert_true(script.n_asked < script.n_ctx);
        assert_system_holds();
    }
}

/* 50 turns of 16 to 17 tokens: more than four times a context of 200.  What is behind the gap is moved, so a
 * turn computes its own tokens only. */
static void test_forget(void **state)
{
    ebb_chat *c;
    size_t n;

    (void)state;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    for (int i = 0; i < 50; i += 10) {
        talk(c, i, i + 10);
        assert_true(last(c)->turn_stats.n_computed < 20);
    }
    n = n_ui_events(c);
    assert_true(n >= 5 && n <= 12);
    assert_int_equal(script.n_gaps, n);
    assert_int_equal(ebb_chat_n_messages(c), 1 + 100 + n);
    assert_non_null(strstr(ebb_chat_truncation_note(c)->text, "forgotten"));
    assert_true(ebb_message_omits(ebb_chat_truncation_note(c), 1));
    assert_false(ebb_message_omits(ebb_chat_truncation_note(c), 100 + n));
    ebb_chat_close(c);

    /* The next run sees what this one saw. */
    n = script.n_asked;
    c = open_with(EBB_OVERFLOW_FORGET, true);
    assert_true(ebb_chat_truncation_note(c)->truncation.has_cache_salt);
    assert_int_equal(ebb_chat_n_tokens(c), n + 5);
    talk(c, 50, 60);
    ebb_chat_close(c);
}

/* Tokens go instead of turns: what stays is the system prompt and the last tokens, in their order; K and V behind the
 * gap are moved, and the next run sees the same. */
static void test_slide(void **state)
{
    ebb_chat *c;
    size_t n;

    (void)state;
    c = open_with(EBB_OVERFLOW_SLIDE, false);
    for (int i = 0; i < 50; i += 10) {
        talk(c, i, i + 10);
        assert_true(last(c)->turn_stats.n_computed < 20);
    }
    n = n_ui_events(c);
    assert_true(n >= 10 && n <= 30);             /* a quarter of the context each time */
    assert_int_equal(script.n_gaps, n);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_SLIDE);
    assert_non_null(strstr(ebb_chat_truncation_note(c)->text, "The context slides: "));
    assert_true(ebb_message_omits(ebb_chat_truncation_note(c), 1));
    assert_true(ebb_chat_n_tokens(c) > 100);     /* more than forget leaves */
    ebb_chat_close(c);
    n = script.n_asked;
    c = open_with(EBB_OVERFLOW_SLIDE, true);
    assert_int_equal(ebb_chat_n_tokens(c), n + 5);
    talk(c, 50, 60);
    ebb_chat_close(c);
}

/* A message that is most of the context: turns cannot go, its middle can. */
static void test_slide_in_a_long_message(void **state)
{
    char paste[181];
    ebb_chat *c;

    (void)state;
    memset(paste, 'x', sizeof paste - 1);
    paste[sizeof paste - 1] = '\0';
    script.n_tokens = 10;
    c = open_with(EBB_OVERFLOW_SLIDE, false);
    say(c, paste);
    assert_int_equal(n_ui_events(c), 1);
    assert_true(script.n_asked <= 150);
    assert_system_holds();
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    ebb_chat_close(c);
}

/* Nobody can say where the system prompt ends: turns go instead, and it stays. */
static void test_slide_behind_a_system_prompt_without_end(void **state)
{
    ebb_chat *c;

    (void)state;
    script.hides_system = true;
    c = open_with(EBB_OVERFLOW_SLIDE, false);
    talk(c, 0, 20);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_FORGET);
    ebb_chat_close(c);
}

/* Without one of the user's, the template's own stays as well, and nothing of what was said gets into it; where nobody
 * can say where it ends, turns go. */
static void test_slide_behind_a_text_of_the_template(void **state)
{
    static const char own[] = "<Own text.>";

    (void)state;
    script.own_text = own;
    for (int hides = 0; hides < 2; hides++) {
        ebb_chat *c = open_ready(&(ebb_chat_opts){ .overflow = EBB_OVERFLOW_SLIDE });

        script.hides_system = hides;
        for (int i = 0; i < 20; i++)
            say(c, "question");
        assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, hides ? EBB_OVERFLOW_FORGET : EBB_OVERFLOW_SLIDE);
        for (size_t i = 0; i < sizeof own - 1; i++)
            assert_int_equal(script.first[i], 2000 + (unsigned char)own[i]);
        ebb_chat_close(c);
    }
}

/* A number of turns that could not be left out is that of this command alone. */
static void test_forget_that_fails(void **state)
{
    ebb_chat *c;
    ebb_error err;

    (void)state;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 5);
    script.refuse = true;
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err), EBB_UNSUPPORTED);
    script.refuse = false;
    for (int i = 5; !ebb_chat_truncation_note(c); i++)
        talk(c, i, i + 1);
    assert_true(ebb_chat_truncation_note(c)->truncation.n_turns > 1);
    ebb_chat_close(c);
}

/* Where K cannot be moved, what is left is computed: once for each decision. */
static void test_forget_and_compute(void **state)
{
    ebb_chat *c;
    size_t n_more = 0;

    (void)state;
    script.cannot_forget = true;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    for (int i = 0; i < 50; i++) {
        talk(c, i, i + 1);
        n_more += last(c)->turn_stats.n_computed > 20;
    }
    assert_int_equal(script.n_gaps, 0);
    assert_int_equal(n_more, 1 + n_ui_events(c)); /* and the system prompt with the first turn */
    ebb_chat_close(c);
}

static void test_compact(void **state)
{
    ebb_chat *c;
    const ebb_message *note;
    ebb_chat_event ev;
    char begins[40];

    (void)state;
    script.n_ctx = 2000;
    script.n_tokens = 60;
    c = open_with(EBB_OVERFLOW_COMPACT, false);
    for (int i = 0; i < 84; i++) {
        char notice[300];

        send(c, "another question");
        do {
            assert_true(fake_next(c, &ev));
            snprintf(notice, sizeof notice, "%s", ev.kind == EBB_EVENT_NOTICE ? ev.text : "");
            assert_null(strstr(notice, "neither in memory"));
        } while (ev.kind != EBB_EVENT_DONE);
        assert_system_holds();
    }
    assert_true(n_ui_events(c) >= 3);
    note = ebb_chat_truncation_note(c);
    assert_int_equal(note->truncation.how, EBB_OVERFLOW_COMPACT);
    assert_non_null(strstr(note->text, "Summary of the oldest"));
    snprintf(begins, sizeof begins, "%.20s", note->text);
    /* The summary stands behind the system prompt. */
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(script.first[1 + sizeof system_text - 1 + 2 + i], 1000 + (unsigned char)begins[i]);
    assert_true(note->turn_stats.n_generated > 0);
    ebb_chat_close(c);
    c = open_with(EBB_OVERFLOW_COMPACT, true);
    talk(c, 84, 100);
    ebb_chat_close(c);
}

/* The summary is all that is left of older turns: it stays when later ones are left out, or their tokens. */
static void check_that_a_summary_stays(ebb_overflow_policy how)
{
    char begins[40];
    const ebb_message *note;
    ebb_chat *c;
    ebb_error err;

    script.n_ctx = 800;
    script.n_tokens = 30;
    c = open_with(how, false);
    talk(c, 0, 12);
    assert_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_COMPACT, 3, &err), EBB_OK);
    done(c);
    note = ebb_chat_truncation_note(c);
    assert_int_equal(note->truncation.how, EBB_OVERFLOW_COMPACT);
    snprintf(begins, sizeof begins, "%.20s", note->text);
    for (int i = 12; ebb_chat_truncation_note(c)->truncation.how == EBB_OVERFLOW_COMPACT; i++)
        talk(c, i, i + 1);
    talk(c, 50, 52);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, how);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(script.first[1 + sizeof system_text - 1 + 2 + i], 1000 + (unsigned char)begins[i]);
    ebb_chat_close(c);
}

static void test_a_summary_stays_behind_forgotten_turns(void **state)
{
    (void)state;
    check_that_a_summary_stays(EBB_OVERFLOW_FORGET);
}

static void test_a_summary_stays_while_the_context_slides(void **state)
{
    (void)state;
    check_that_a_summary_stays(EBB_OVERFLOW_SLIDE);
}

/* A summary that is stopped changes nothing; the question waits, and Enter asks again. */
static void test_stop_a_summary(void **state)
{
    ebb_chat *c;
    ebb_error err;
    size_t n;

    (void)state;
    script.n_ctx = 2000;
    script.n_tokens = 60;
    c = open_with(EBB_OVERFLOW_ASK, false);
    talk(c, 0, 8);
    n = ebb_chat_n_messages(c);
    script.hold_at = 5;
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_COMPACT, 0, &err), EBB_CONTEXT); /* half is free already */
    script.hold_at = 0;
    talk(c, 8, 20);
    n = ebb_chat_n_messages(c);
    script.hold_at = 5;
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_COMPACT, 0, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    ebb_chat_stop(c);
    done(c);
    assert_int_equal(ebb_chat_n_messages(c), n);
    assert_null(ebb_chat_truncation_note(c));
    script.hold_at = 0;
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_COMPACT, 0, &err), EBB_OK);
    done(c);
    assert_int_equal(ebb_chat_n_messages(c), n + 1);
    assert_non_null(ebb_chat_truncation_note(c));
    talk(c, 20, 22);
    ebb_chat_close(c);
}

static void test_grow(void **state)
{
    ebb_chat *c;
    ebb_chat_event ev;
    size_t n = 0;

    (void)state;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    c = open_with(EBB_OVERFLOW_GROW, false);
    for (int i = 0; i < 50; i++) {
        char text[32];

        snprintf(text, sizeof text, "question %d", i);
        send(c, text);
        while (ebb_chat_is_busy(c))
            assert_true(fake_next(c, &ev));
        while (ebb_chat_event_next(c, &ev))
            ;
        assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
        assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
        assert_system_holds();
    }
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        n += ebb_chat_message(c, i)->truncation.how == EBB_OVERFLOW_GROW;
    assert_int_equal(n, 3);                      /* 400, 800, 1000 */
    ebb_chat_close(c);
}

/* The most tokens of an answer are counted through a context that becomes full within it; who asks for more of it gets
 * up to as many again. */
static void assert_limit_holds(ebb_overflow_policy how)
{
    char text[140];
    ebb_chat *c;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    c = open_ready(&(ebb_chat_opts){ .overflow = how, .system = system_text, .n_predict = 80 });
    say(c, "question");
    script.n_tokens = 1000;
    say(c, text);
    assert_true(n_ui_events(c) >= 1);
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_int_equal(last(c)->turn_stats.n_generated, 80);
    assert_int_equal(ebb_chat_continue(c, NULL), EBB_OK);
    done(c);
    assert_in_range(last(c)->turn_stats.n_generated, 81, 160);
    ebb_chat_close(c);
}

static void test_limit_while_the_context_grows(void **state)
{
    (void)state;
    assert_limit_holds(EBB_OVERFLOW_GROW);
}

static void test_limit_while_the_context_slides(void **state)
{
    (void)state;
    assert_limit_holds(EBB_OVERFLOW_SLIDE);
}

/* A question that waits for the model, and then for more context: it is answered when both are there. */
static void test_grow_for_a_question_that_waits(void **state)
{
    char text[300];
    ebb_chat *c;
    ebb_chat_event ev;

    (void)state;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    script.hold_load = true;
    c = open_chat(&(ebb_chat_opts){ .overflow = EBB_OVERFLOW_GROW });
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    send(c, text);
    script.hold_load = false;
    while (ebb_chat_is_busy(c))
        assert_true(fake_next(c, &ev));
    assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    ebb_chat_close(c);
}

static unsigned n_openings;

/* The plan fits, and yet the larger context cannot be had. */
static ebb_status open_small_only(void *arg, const ebb_backend_models *models, const ebb_engine_opts *opts,
                                  ebb_backend_sink *sink, void *sink_arg, ebb_backend **out, ebb_error *err)
{
    n_openings++;
    script.fail_load = opts->n_ctx > 200;
    return fake_ops(&script).open(arg, models, opts, sink, sink_arg, out, err);
}

/* It fails once: the oldest turns go from then on, and the policy of the command line stays what it is.  It is tried
 * again when it is chosen again. */
static void test_growth_fails(void **state)
{
    ebb_chat_ops ops = fake_ops(&script);
    ebb_chat_opts o = { .store_path = db, .system = system_text, .overflow = EBB_OVERFLOW_GROW,
                        .overflow_given = true };
    ebb_chat *c;
    ebb_chat_event ev;
    ebb_error err;

    (void)state;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    ops.open = open_small_only;
    n_openings = 0;
    assert_int_equal(ebb_chat_open_with(&o, &ops, &c, &err), EBB_OK);
    while (!ebb_chat_is_ready(c))
        assert_true(fake_next(c, &ev));
    for (int i = 0; i < 30; i++) {
        send(c, "and then what");
        while (ebb_chat_is_busy(c) && n_openings <= 3)
            assert_true(fake_next(c, &ev));
        assert_in_range(n_openings, 1, 3);       /* the larger one, and that from before */
        assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    }
    assert_int_equal(n_openings, 3);
    assert_int_equal(c->settings.overflow, EBB_OVERFLOW_GROW);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_FORGET);
    assert_int_equal(ebb_chat_set(c, "overflow", "grow", NULL, 0, &err), EBB_OK);
    for (int i = 0; i < 10; i++)
        say(c, "and then what");
    assert_int_equal(n_openings, 5);
    ebb_chat_close(c);
}

/* No room to grow: said, and the oldest turns go instead. */
static void test_cannot_grow(void **state)
{
    ebb_chat *c;
    char notice[300] = "";
    ebb_chat_event ev;
    bool is_said = false;

    (void)state;
    script.info.n_ctx_train = 1000;
    c = open_with(EBB_OVERFLOW_GROW, false);
    for (int i = 0; i < 20; i++) {
        send(c, "and then what");
        do {
            assert_true(fake_next(c, &ev));
            if (ev.kind == EBB_EVENT_NOTICE)
                snprintf(notice, sizeof notice, "%s", ev.text);
            is_said |= strstr(notice, "does not fit the memory") != NULL;
        } while (ev.kind != EBB_EVENT_DONE);
    }
    assert_true(is_said);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_FORGET);
    ebb_chat_close(c);
}

/* The context that the user asks for: the model comes back with it, and the conversation goes on. */
static void test_asked_context(void **state)
{
    ebb_chat *c;
    ebb_chat_event ev;
    ebb_error err = { 0 };

    (void)state;
    script.info.n_ctx_train = 1000;
    c = open_with(EBB_OVERFLOW_STOP, false);
    talk(c, 0, 3);
    assert_int_equal(ebb_chat_set_ctx(c, 600, &err), EBB_BUDGET);    /* the plan says no */
    script.plan_fits = true;
    assert_int_equal(ebb_chat_set_ctx(c, 12, &err), EBB_CONTEXT);    /* less than the last turn */
    assert_int_equal(ebb_chat_set_ctx(c, 600, &err), EBB_OK);
    while (!ebb_chat_is_ready(c))
        assert_true(fake_next(c, &ev));
    for (int i = 0; i < 20; i++)                 /* more than 200 tokens */
        say(c, "and then what");
    assert_true(script.n_asked > 200);
    assert_null(ebb_chat_truncation_note(c));
    ebb_chat_close(c);
}

static char own_file[96];

static ebb_chat *open_file(ebb_overflow_policy how)
{
    FILE *f;

    snprintf(own_file, sizeof own_file, "%s/own.gguf", dir);
    f = fopen(own_file, "w");
    assert_non_null(f);
    fclose(f);
    script.info.path = own_file;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    return open_ready(&(ebb_chat_opts){ .model_path = own_file, .overflow = how });
}

/* The open model needs its file no more: nothing closes it that would need it, and no other takes its place. */
static void test_the_file_of_the_model_is_gone(void **state)
{
    ebb_chat *c = open_file(EBB_OVERFLOW_GROW);
    ebb_error err = { 0 };
    size_t n;

    (void)state;
    say(c, "question");
    n = ebb_chat_n_messages(c);
    assert_int_equal(unlink(own_file), 0);
    assert_int_equal(ebb_chat_set_ctx(c, 600, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "own.gguf is gone: "));
    assert_int_equal(ebb_chat_replan(c, 1 << 20, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_set_draft(c, NULL, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_GROW, 0, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_n_messages(c), n);
    assert_true(ebb_chat_is_ready(c));
    for (int i = 0; i < 20; i++)                 /* it cannot grow: the oldest turns go */
        say(c, "and then what");
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_FORGET);
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        assert_int_not_equal(ebb_chat_message(c, i)->truncation.how, EBB_OVERFLOW_GROW);
    assert_non_null(strstr(script.opened, own_file));
    ebb_chat_close(c);
}

/* A smaller context than what was said: the price first, and nothing has changed; then the oldest turns go. */
static void test_smaller_context(void **state)
{
    ebb_chat *c;
    ebb_chat_event ev;
    ebb_error err = { 0 };
    size_t n;

    (void)state;
    script.n_ctx = 400;
    script.n_tokens = 5;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    c = open_with(EBB_OVERFLOW_STOP, false);
    talk(c, 0, 15);
    n = ebb_chat_n_messages(c);
    assert_true(ebb_chat_n_tokens(c) > 120);
    assert_int_equal(ebb_chat_set_ctx(c, 120, &err), EBB_OK);
    assert_true(fake_next(c, &ev));
    assert_int_equal(ev.kind, EBB_EVENT_NOTICE);
    assert_non_null(strstr(ev.text, "A context of 120 tokens has no room for the "));
    assert_non_null(strstr(ev.text, "computed again, in about "));
    assert_true(ebb_chat_is_ready(c));
    assert_int_equal(ebb_chat_n_messages(c), n);
    assert_null(ebb_chat_truncation_note(c));
    say(c, "one more");                          /* the price was said at another place */
    assert_int_equal(ebb_chat_set_ctx(c, 120, &err), EBB_OK);
    assert_true(ebb_chat_is_ready(c));
    assert_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_set_ctx(c, 120, &err), EBB_OK);
    assert_non_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_FORGET);
    while (!ebb_chat_is_ready(c))
        assert_true(fake_next(c, &ev));
    script.n_ctx = 120;
    talk(c, 15, 17);
    assert_true(script.n_asked < 120);
    ebb_chat_close(c);
}

static void test_stop(void **state)
{
    ebb_chat *c;
    ebb_error err = { 0 };
    char big[2000];
    int i;

    (void)state;
    c = open_with(EBB_OVERFLOW_STOP, false);
    for (i = 0; i < 50; i++) {
        if (ebb_chat_send(c, "and then what", 13, &err) != EBB_OK)
            break;
        done(c);
    }
    assert_true(i >= 9 && i <= 11);
    assert_non_null(strstr(err.msg, "the context holds 200 with the answer"));
    assert_int_equal(n_ui_events(c), 0);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 3, &err), EBB_OK);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.n_turns, 3);
    say(c, "on");
    ebb_chat_close(c);

    c = open_with(EBB_OVERFLOW_STOP, false);     /* nothing older could make room */
    memset(big, 'a', sizeof big);
    for (size_t k = 1; k < sizeof big; k += 2)
        big[k] = ' ';
    assert_int_equal(ebb_chat_send(c, big, sizeof big, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "the message has "));
    assert_non_null(strstr(err.msg, "shorten it"));
    ebb_chat_close(c);
}

/* Asked, the question stands and waits; no answer but Enter forgets. */
static void test_ask(void **state)
{
    ebb_chat *c;
    ebb_error err;
    ebb_chat_event ev;
    char notice[700] = "";
    int n_asked = 0;

    (void)state;
    c = open_with(EBB_OVERFLOW_ASK, false);
    for (int i = 0; i < 50; i++) {
        send(c, "and then what");
        while (!ebb_chat_is_busy(c) && ebb_chat_event_next(c, &ev))
            if (ev.kind == EBB_EVENT_NOTICE && strstr(ev.text, "What now?"))
                snprintf(notice, sizeof notice, "%s", ev.text);
        if (!ebb_chat_is_busy(c) && last(c)->role == EBB_ROLE_USER) {
            n_asked++;
            assert_true(ebb_chat_awaits_overflow_choice(c));
            assert_non_null(strstr(notice, "/forget leaves the oldest"));
            assert_non_null(strstr(notice, "/compact"));
            assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
        }
        if (ebb_chat_is_busy(c))
            done(c);
        assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
    }
    assert_true(n_asked >= 5);
    assert_int_equal(n_ui_events(c), n_asked);
    assert_false(ebb_chat_awaits_overflow_choice(c));
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        if (ebb_chat_message(c, i)->role == EBB_ROLE_NOTE) {
            assert_int_equal(ebb_chat_edit(c, i, "x", 1, &err), EBB_USAGE);
            assert_int_equal(ebb_chat_pin(c, i, true, &err), EBB_USAGE);
        }
    ebb_chat_close(c);
}

/* Nobody can be asked: as if forgetting was chosen. */
static void test_unattended(void **state)
{
    ebb_chat *c;

    (void)state;
    c = open_ready(&(ebb_chat_opts){ .system = system_text, .is_unattended = true });
    talk(c, 0, 30);
    assert_true(n_ui_events(c) >= 3);
    ebb_chat_close(c);
}

static const char untrained[] = "the context holds 200 tokens, the model was trained for 100: beyond that its answers "
                                "fall apart";

/* How often that was said until the chat is idle. */
static unsigned n_untrained(ebb_chat *c)
{
    ebb_chat_event ev;
    unsigned n = 0;

    while (ebb_chat_event_next(c, &ev) || ((!ebb_chat_is_ready(c) || ebb_chat_is_busy(c)) && fake_next(c, &ev)))
        n += ev.kind == EBB_EVENT_WARNING && strcmp(ev.text, untrained) == 0;
    return n;
}

/* Who chats is told when the model is opened; a script when what it asks, or the answer, goes beyond. */
static void test_longer_than_trained(void **state)
{
    ebb_chat *c;

    (void)state;
    script.info.n_ctx_train = 200;
    c = open_chat(NULL);
    assert_int_equal(n_untrained(c), 0);
    ebb_chat_close(c);
    script.info.n_ctx_train = 100;
    c = open_chat(NULL);
    assert_int_equal(n_untrained(c), 1);
    send(c, "a hundred tokens of prompt, a hundred tokens of prompt, a hundred tokens of prompt, a hundred tokens");
    assert_int_equal(n_untrained(c), 0);         /* it was said */
    ebb_chat_close(c);
    c = open_chat(&(ebb_chat_opts){ .is_unattended = true });
    assert_int_equal(n_untrained(c), 0);
    send(c, "short");
    assert_int_equal(n_untrained(c), 0);
    script.n_tokens = 90;
    send(c, "and on");
    assert_int_equal(n_untrained(c), 1);
    send(c, "and on");
    assert_int_equal(n_untrained(c), 0);
    ebb_chat_close(c);
}

/* Nobody is told to take a context that is longer than that. */
static void test_no_advice_beyond_training(void **state)
{
    char text[400];
    ebb_chat *c;
    ebb_error err;

    (void)state;
    memset(text, 'x', sizeof text);
    script.info.n_ctx_train = 300;
    c = open_ready(&(ebb_chat_opts){ .is_unattended = true });
    assert_int_equal(ebb_chat_send(c, text, sizeof text, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "the model was trained for 300: shorten the input"));
    assert_null(strstr(err.msg, "--ctx"));
    ebb_chat_close(c);
    script.info.n_ctx_train = 600;
    c = open_ready(&(ebb_chat_opts){ .is_unattended = true });
    assert_int_equal(ebb_chat_send(c, text, sizeof text, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "give --ctx 600 or more"));
    ebb_chat_close(c);
    script.info.n_ctx_train = 300;
    c = open_with(EBB_OVERFLOW_STOP, false);
    assert_int_equal(ebb_chat_send(c, text, sizeof text, &err), EBB_CONTEXT);
    assert_null(strstr(err.msg, "/set ctx"));
    ebb_chat_close(c);
}

/* A pinned turn stays whole; one that was not is gone. */
static void check_pins(ebb_overflow_policy how)
{
    ebb_chat *c;
    ebb_error err;

    c = open_with(how, false);
    talk(c, 0, 3);
    assert_int_equal(ebb_chat_pin(c, 4, true, &err), EBB_OK);          /* the answer of the second turn */
    talk(c, 3, 40);
    assert_false(ebb_message_omits(ebb_chat_truncation_note(c), 3));
    assert_false(ebb_message_omits(ebb_chat_truncation_note(c), 4));
    assert_true(ebb_message_omits(ebb_chat_truncation_note(c), 2));
    assert_true(ebb_message_omits(ebb_chat_truncation_note(c), 5));
    /* system, then "question 1" as it was typed */
    assert_int_equal(script.first[sizeof system_text + 1], EBB_ROLE_USER + 1);
    assert_int_equal(script.first[sizeof system_text + 1 + 10], 1000 + '1');
    ebb_chat_close(c);
    c = open_with(how, true);
    assert_false(ebb_message_omits(ebb_chat_truncation_note(c), 3));
    talk(c, 40, 45);
    assert_int_equal(script.first[sizeof system_text + 1 + 10], 1000 + '1');
    ebb_chat_close(c);
}

static void test_pins(void **state)
{
    (void)state;
    check_pins(EBB_OVERFLOW_FORGET);
}

/* A window that slides would cut it: turns go instead. */
static void test_pins_before_a_slide(void **state)
{
    (void)state;
    check_pins(EBB_OVERFLOW_SLIDE);
}

/* Turns are left out of what the model sees now: what a note kept and another one does not is gone, and nothing that
 * was forgotten comes back. */
static void test_unpinned_turns_go(void **state)
{
    const ebb_message *note;
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.n_ctx = 2000;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 5);
    assert_int_equal(ebb_chat_pin(c, 1, true, &err), EBB_OK);
    assert_int_equal(ebb_chat_pin(c, 3, true, &err), EBB_OK);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 2, &err), EBB_OK);
    note = ebb_chat_truncation_note(c);
    assert_int_equal(note->truncation.first, 9);
    talk(c, 5, 6);
    assert_int_equal(ebb_chat_pin(c, 1, false, &err), EBB_OK);
    assert_int_equal(ebb_chat_pin(c, 3, false, &err), EBB_OK);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err), EBB_OK);
    note = ebb_chat_truncation_note(c);
    assert_int_equal(note->truncation.n_turns, 1);
    assert_true(ebb_message_omits(note, 1));
    assert_false(ebb_message_omits(note, 3));    /* one turn was asked for */
    for (size_t i = 5; i < 9; i++)
        assert_true(ebb_message_omits(note, i));
    assert_false(ebb_message_omits(note, 9));
    ebb_chat_close(c);
}

/* What a turn has of tokens is its own: the first one does not have the system prompt's. */
static void test_tokens_of_the_first_turn(void **state)
{
    ebb_truncation l = { 0 };
    ebb_prompt p;
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.n_ctx = 2000;
    script.n_tokens = 5;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 4);
    assert_int_equal(c->tree.path[0]->m.n_ids, 0);
    assert_int_equal(ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, &err), EBB_OK);
    assert_true(ebb_overflow_choose_turns(c, &p, 0, &l));
    ebb_prompt_fini(&p);
    assert_int_equal(l.n_turns, 3);
    assert_int_equal(l.n_tokens, 3 * (c->tree.path[3]->m.n_ids + c->tree.path[4]->m.n_ids));
    free(l.kept);
    ebb_chat_close(c);
}

/* 14 turns, of which none has ids: behind another system prompt, or imported.  Each will have about 40 tokens. */
static ebb_chat *open_without_ids(const char *other_system)
{
    ebb_chat *c;
    ebb_error err;

    script.n_ctx = 600;
    script.n_tokens = 5;
    script.info.n_ctx_train = 1000;
    script.plan_fits = true;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 14);
    assert_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_set_system(c, other_system, &err), EBB_OK);
    assert_int_equal(ebb_chat_n_tokens(c), 0);
    return c;
}

/* They count as what they are, not as nothing: half of the context stays. */
static void test_forget_what_has_no_ids(void **state)
{
    ebb_chat *c;

    (void)state;
    c = open_without_ids("Be good, and be as brief as ever you can be, please.");
    say(c, "on");
    assert_non_null(ebb_chat_truncation_note(c));
    assert_in_range(ebb_chat_truncation_note(c)->truncation.n_turns, 6, 9);
    ebb_chat_close(c);
}

/* A smaller context has its price here, too. */
static void test_smaller_context_without_ids(void **state)
{
    char text[256];
    ebb_chat *c;
    ebb_error err;

    (void)state;
    c = open_without_ids(NULL);
    assert_int_equal(ebb_chat_set_ctx(c, 300, &err), EBB_OK);
    do
        assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    while (!strstr(text, "A context of 300 tokens has no room for the "));
    assert_true(ebb_chat_is_ready(c));
    assert_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_set_ctx(c, 300, &err), EBB_OK);
    assert_in_range(ebb_chat_truncation_note(c)->truncation.n_turns, 9, 12);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    say(c, "on");
    ebb_chat_close(c);
}

/* A template may print all of it in one piece, which is the last message's: each has its part by its bytes. */
static void test_tokens_of_one_piece(void **state)
{
    uint32_t *of, sum = 0;
    size_t n_system = sizeof system_text + 1;
    ebb_prompt p;
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.n_ctx = 2000;
    script.n_tokens = 5;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 3);
    say(c, "a question that is much longer than the others are, and has more tokens");
    assert_int_equal(ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, &err), EBB_OK);
    memset(p.n_ids_of, 0, c->tree.n_path * sizeof *p.n_ids_of);
    p.n_ids_of[c->tree.n_path - 1] = p.n_ids;
    of = ebb_chat_share_tokens(c, &p);
    assert_non_null(of);
    assert_int_equal(of[0], n_system);
    for (size_t i = 1; i < c->tree.n_path; i++) {
        assert_true(of[i] > 0);
        sum += of[i];
    }
    assert_int_equal(sum, p.n_ids - n_system);
    assert_true(of[7] > 2 * of[5]);
    free(of);
    ebb_prompt_fini(&p);
    ebb_chat_close(c);
}

/* An answer that fills the context goes on behind a note, in a copy of what stood. */
static void test_in_the_middle_of_an_answer(void **state)
{
    ebb_chat *c;

    (void)state;
    script.n_tokens = 30;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    for (int i = 0; i < 3; i++)
        say(c, "tell me more");
    script.n_tokens = 50;
    send(c, "tell me all");
    done(c);
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    assert_true(n_ui_events(c) >= 1);
    assert_true(last(c)->n_ids > 50);            /* the script begins anew when it is asked to go on */
    ebb_chat_close(c);
}

/* Room before it is needed: an unfinished answer stays as it is, below the note, until the user goes on. */
static void test_room_beforehand(void **state)
{
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.n_ctx = 2000;
    c = open_with(EBB_OVERFLOW_ASK, false);
    talk(c, 0, 4);
    assert_int_equal(ebb_chat_set(c, "predict", "2", NULL, 0, &err), EBB_OK);
    say(c, "short");
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 2, &err), EBB_OK);
    assert_false(ebb_chat_is_busy(c));
    assert_string_equal(last(c)->text, "a5.0 a5.1 ");
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    done(c);
    assert_string_equal(last(c)->text, "a5.0 a5.1 a6.0 a6.1 ");
    assert_true(last(c)->turn_stats.n_computed < 20); /* all but the first turn: what was moved counts as there */
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.n_turns, 2);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_COMPACT, 1, &err), EBB_OK);
    done(c);
    assert_string_equal(last(c)->text, "a5.0 a5.1 a6.0 a6.1 ");
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.how, EBB_OVERFLOW_COMPACT);
    ebb_chat_close(c);
}

static void take_model_two(ebb_chat *c, uint32_t n_ctx)
{
    ebb_error err;

    script.n_ctx = n_ctx;
    memcpy(script.fingerprint, "model two", 10);
    assert_int_equal(ebb_chat_load_model(c, "/dev/null", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
}

/* Another model does not go on with an answer of the first, also where its context is full, too, and turns go. */
static void test_room_for_another_models_answer(void **state)
{
    ebb_chat *c;
    ebb_error err;
    size_t n_text;

    (void)state;
    c = open_with(EBB_OVERFLOW_ASK, false);
    talk(c, 0, 4);
    script.n_tokens = 1000;
    say(c, "long");
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_int_equal(ebb_overflow_choose_next(c, ebb_tree_leaf(&c->tree)), EBB_NEXT_CONTINUE);
    n_text = last(c)->n_text;
    take_model_two(c, 200);
    assert_int_equal(ebb_overflow_choose_next(c, ebb_tree_leaf(&c->tree)), EBB_NEXT_STAY);
    take_model_two(c, 2000);
    assert_int_equal(ebb_chat_continue(c, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "another model wrote this answer"));
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err), EBB_OK);
    assert_false(ebb_chat_is_busy(c));
    assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
    assert_int_equal(last(c)->n_text, n_text);
    assert_int_equal(n_ui_events(c), 1);
    ebb_chat_close(c);
}

/* A model with room is an answer to "What now?": Enter asks it. */
static void test_a_larger_model_is_asked(void **state)
{
    ebb_chat *c;
    ebb_error err;

    (void)state;
    c = open_with(EBB_OVERFLOW_ASK, false);
    for (int i = 0; !ebb_chat_awaits_overflow_choice(c); i++) {
        assert_in_range(i, 0, 50);
        send(c, "and then what");
        if (ebb_chat_is_busy(c))
            done(c);
    }
    take_model_two(c, 0);
    assert_false(ebb_chat_awaits_overflow_choice(c));
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    done(c);
    assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
    assert_int_equal(n_ui_events(c), 0);
    ebb_chat_close(c);
}

/* Before the note nothing is left out: going there brings all back. */
static void test_back_before_it(void **state)
{
    ebb_chat *c;
    ebb_context_view v;
    ebb_error err;

    (void)state;
    c = open_with(EBB_OVERFLOW_FORGET, false);
    talk(c, 0, 9);
    assert_null(ebb_chat_truncation_note(c));
    talk(c, 9, 12);
    assert_non_null(ebb_chat_truncation_note(c));
    for (int i = 0; i < 3; i++)
        assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_null(ebb_chat_truncation_note(c));
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 2, &err), EBB_OK);
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.first, 5);
    assert_int_equal(ebb_chat_set_system(c, NULL, &err), EBB_OK);      /* the path is copied below no root */
    assert_int_equal(ebb_chat_truncation_note(c)->truncation.first, 4);
    assert_int_equal(ebb_context_view_make(c->tree.path, c->tree.n_path, NULL, &v, &err), EBB_OK);
    assert_string_equal(v.list[0]->text, "question 2");
    ebb_context_view_fini(&v);
    say(c, "on");
    ebb_chat_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, setup_small, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL(test_forget), SMALL(test_slide), SMALL(test_slide_in_a_long_message),
        SMALL(test_slide_behind_a_system_prompt_without_end), SMALL(test_slide_behind_a_text_of_the_template),
        SMALL(test_forget_that_fails), SMALL(test_forget_and_compute), T(test_compact),
        T(test_a_summary_stays_behind_forgotten_turns), T(test_a_summary_stays_while_the_context_slides),
        T(test_stop_a_summary), SMALL(test_grow), SMALL(test_the_file_of_the_model_is_gone),
        SMALL(test_limit_while_the_context_grows), SMALL(test_limit_while_the_context_slides),
        SMALL(test_grow_for_a_question_that_waits), SMALL(test_asked_context), T(test_smaller_context),
        SMALL(test_cannot_grow), SMALL(test_growth_fails), SMALL(test_stop), SMALL(test_ask),
        SMALL(test_unattended), SMALL(test_longer_than_trained), SMALL(test_no_advice_beyond_training),
        SMALL(test_pins), SMALL(test_pins_before_a_slide), T(test_unpinned_turns_go),
        T(test_tokens_of_the_first_turn), T(test_tokens_of_one_piece), T(test_forget_what_has_no_ids),
        T(test_smaller_context_without_ids), SMALL(test_in_the_middle_of_an_answer),
        SMALL(test_room_for_another_models_answer), SMALL(test_a_larger_model_is_asked), SMALL(test_back_before_it),
        T(test_room_beforehand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
