/* The inline terminal: what is finished goes up once and stays; the region is below. */
#include "ebb_test.h"

#include "tui/screen.h"

static void open_ready(screen *s, int rows, int cols)
{
    screen_open_inline(s, rows, cols);
    fake_ready(s->chat);
    *fake_stats(s->chat) = (ebb_stats){ .phase = EBB_PHASE_IDLE, .n_ctx = 4096, .n_ctx_used = 1024 };
    screen_step(s, 1);
}

static const char *scrolled(screen *s)
{
    return ebb_term_mem_scrolled(s->term);
}

static void assert_scrolled(screen *s, const char *want)
{
    if (!strstr(scrolled(s), want)) {
        print_message("%s", scrolled(s));
        fail_msg("what has scrolled lacks: %s", want);
    }
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void a_turn_goes_up(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    assert_non_null(strstr(screen_text(&s), "Ask something."));
    screen_keys(&s, "Hello\r");
    assert_string_equal(scrolled(&s), "> Hello\n\n");
    fake_text(s.chat, "Hi **there**, how");
    screen_step(&s, 0.1);
    assert_string_equal(scrolled(&s), "> Hello\n\n");     /* the paragraph is not closed */
    assert_non_null(strstr(screen_text(&s), "there"));
    screen_answer(&s, " are you?\n");
    assert_string_equal(scrolled(&s),
        "> Hello\n"
        "\n"
        "Hi there, how are you?\n"
        "212 tok | 6.3/s | 41 s\n"
        "\n");
    assert_string_equal(screen_text(&s), ">\n  Fake 8B Q4_K_M | ctx 1,024/4,096 25%\n");
    screen_close(&s);
}

/* Lines of code are complete as they end; prose when its block closes.  Nothing goes up twice, whatever
 * the sizes meanwhile. */
static void streams_through_resizes(void **state)
{
    char line[96];
    screen s;

    (void)state;
    open_ready(&s, 12, 50);
    screen_keys(&s, "code\r");
    fake_text(s.chat, "Look:\n\n```c\n");
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "int number_%02d = %d; /* and a word or two */\n", i, i);
        fake_text(s.chat, line);
        if (i % 7 == 3)
            ebb_term_mem_resize(s.term, 8 + i, 30 + i);
        screen_step(&s, 0.1);
        if (i == 30)
            assert_scrolled(&s, "int number_29");
    }
    fake_text(s.chat, "```\n\n- a\n- list\n\nlast words\n\n");
    screen_step(&s, 0.1);
    assert_scrolled(&s, "- a\n- list\n");
    screen_close(&s);
}

static void each_row_once(void **state)
{
    char line[96];
    screen s;

    (void)state;
    open_ready(&s, 12, 44);
    screen_keys(&s, "list\r");
    for (int i = 0; i < 60; i++) {
        snprintf(line, sizeof line, "row%02d is a paragraph of its own, which is long enough\n\n", i);
        for (size_t k = 0; k < strlen(line); k += 7) {
            fake_text_n(s.chat, line + k, strlen(line + k) < 7 ? strlen(line + k) : 7);
            screen_step(&s, 0.05);
        }
        if (i % 9 == 4)
            ebb_term_mem_resize(s.term, 8 + i % 5, 20 + i);
    }
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_text(&s);
    for (int i = 0; i < 60; i++) {
        snprintf(line, sizeof line, "row%02d is", i);
        assert_int_equal(count(scrolled(&s), line), 1);
    }
    screen_close(&s);
}

/* A long answer and a long thought go up in steps: the cells of all their rows would be a thousand times the text. */
static void a_long_answer_goes_up_in_steps(void **state)
{
    enum { N = 3000, STEP = 450 };
    char line[32];
    screen s;

    (void)state;
    for (int growing = 0; growing < 2; growing++) {
        open_ready(&s, 12, 60);
        screen_keys(&s, "\x0F" "Tell\r");
        for (int i = 0; i < 2 * N; i++) {
            snprintf(line, sizeof line, "%s%s%d.\n\n", i == 0 ? "<think>\n" : i == N ? "</think>\n" : "",
                     i < N ? "thought" : "said", i % N);
            fake_text(s.chat, line);
        }
        if (growing)
            screen_step(&s, 0.1);
        fake_done(s.chat, EBB_FINISH_STOP);
        screen_text(&s);
        for (int i = 0; i < 2 * N; i += i < 2 * N - 500 ? 37 : 1) {
            snprintf(line, sizeof line, "%s%d.\n", i < N ? "  thought" : "\nsaid", i % N);
            if (count(scrolled(&s), line) != 1)
                fail_msg("%zu times: %s", count(scrolled(&s), line), line);
        }
        assert_int_equal(count(scrolled(&s), "212 tok"), 1);
        assert_in_range(ebb_term_mem_most_rows(s.term), STEP / 2, STEP);
        screen_close(&s);
    }
}

static void a_stopped_answer_goes_on(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "Tell\r");
    fake_text(s.chat, "One.\n\nTwo and");
    fake_done(s.chat, EBB_FINISH_CANCELED);
    screen_keys(&s, "/nosuch\r");
    assert_scrolled(&s, "no command /nosuch");
    screen_keys(&s, "\r");                       /* goes on */
    screen_step(&s, 0.1);
    fake_text(s.chat, " a half.\n\nThree.");
    screen_step(&s, 0.1);
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_text(&s);
    assert_int_equal(count(scrolled(&s), "One."), 1);
    assert_int_equal(count(scrolled(&s), "Two and"), 1);
    assert_scrolled(&s, "a half.");
    assert_scrolled(&s, "Three.");
    screen_close(&s);
}

static void what_is_undone_is_said(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    for (int i = 0; i < 2; i++) {
        screen_keys(&s, i ? "second\r" : "first\r");
        screen_answer(&s, "answer");
    }
    screen_keys(&s, "/undo\r");
    screen_text(&s);
    assert_scrolled(&s, "* the conversation goes on after its message 2\n");
    screen_keys(&s, "\x15/undo\r");
    screen_text(&s);
    assert_scrolled(&s, "* an empty conversation\n");
    assert_non_null(strstr(screen_text(&s), "This is ebb"));
    screen_close(&s);
}

static void a_long_session_opens_at_its_end(void **state)
{
    char text[64];
    screen s;

    (void)state;
    screen_open_inline(&s, 12, 60);
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof text, "message %d", i);
        fake_add(s.chat, i % 2 ? EBB_ROLE_ASSISTANT : EBB_ROLE_USER, text);
    }
    fake_ready(s.chat);
    s.app.view.scrollback = (ebb_scrollback){ 0 };
    ebb_transcript_sync(&s.app.view);
    screen_text(&s);
    assert_scrolled(&s, "earlier messages: PgUp");
    assert_scrolled(&s, "message 499");
    assert_null(strstr(scrolled(&s), "message 3\n"));
    screen_close(&s);
}

/* Looking back takes the whole screen; at the end one is back, and nothing was written meanwhile. */
static void looking_back(void **state)
{
    char text[64];
    size_t before;
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "question %d\r", i);
        screen_keys(&s, text);
        screen_answer(&s, "answer");
    }
    before = strlen(scrolled(&s));
    screen_keys(&s, "\033[5~");
    assert_true(s.app.is_fullscreen);
    assert_non_null(strstr(screen_text(&s), "> question 7"));
    screen_keys(&s, "\033");
    assert_false(s.app.is_fullscreen);
    assert_string_equal(screen_text(&s), ">\n  Fake 8B Q4_K_M | ctx 1,024/4,096 25%\n");
    screen_keys(&s, "\x13question 2");           /* Ctrl-S */
    assert_true(s.app.is_fullscreen);
    assert_non_null(strstr(screen_text(&s), "> question 2"));
    screen_keys(&s, "\033");
    screen_keys(&s, "\033>");
    assert_false(s.app.is_fullscreen);
    assert_int_equal(strlen(scrolled(&s)), before);
    screen_close(&s);
}

static void thoughts(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "Why?\r");
    screen_answer(&s, "<think>\nLet me see.\n</think>\nBecause.\n");
    assert_scrolled(&s, "(Ctrl-O shows it)\n\nBecause.\n");
    assert_null(strstr(scrolled(&s), "Let me see"));
    screen_keys(&s, "\x0F");
    screen_text(&s);
    assert_scrolled(&s, "  Let me see.\n");
    assert_non_null(strstr(screen_text(&s), "from now on thoughts and attached files are shown"));
    screen_close(&s);
}

static void the_end_leaves_all(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "Tell\r");
    fake_text(s.chat, "A half");
    screen_step(&s, 0.1);
    ebb_app_inline_frame(&s.app, true);
    assert_scrolled(&s, "A half");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_goes_up),
        cmocka_unit_test(streams_through_resizes),
        cmocka_unit_test(each_row_once),
        cmocka_unit_test(a_long_answer_goes_up_in_steps),
        cmocka_unit_test(a_stopped_answer_goes_on),
        cmocka_unit_test(what_is_undone_is_said),
        cmocka_unit_test(a_long_session_opens_at_its_end),
        cmocka_unit_test(looking_back),
        cmocka_unit_test(thoughts),
        cmocka_unit_test(the_end_leaves_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
