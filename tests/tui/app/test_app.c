#include "ebb_test.h"

#include "tui/screen.h"

static void a_turn(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 16, 60);
    screen_keys(&s, "Hello\r");
    assert_true(ebb_chat_is_busy(s.chat));
    fake_text(s.chat, "Hi **there**, how");
    screen_step(&s, 0.1);
    screen_answer(&s, " are you?\n");
    assert_string_equal(screen_text(&s),
        "> Hello\n"
        "\n"
        "Hi there, how are you?\n"
        "212 tok | 6.3/s | 41 s\n"
        "\n\n\n\n\n\n\n\n"
        "------------------------------------------------------------\n"
        ">\n"
        "  Fake 8B Q4_K_M | ctx 1,024/4,096 25% | memory 4.79 GiB\n"
        "  layers 6/8 ####==*.                           new session\n");
    assert_int_equal(ebb_term_mem_face(s.term, 2, 3), EBB_FACE_BOLD);
    assert_int_equal(ebb_term_mem_face(s.term, 3, 0), EBB_FACE_TURN_STATS);
    screen_close(&s);
}

/* Another process writes: it is seen, what is sent waits, and a model comes when that has ended. */
static void attached(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    fake_attached(s.chat, 4711, "Tell me");
    fake_text(s.chat, "Once upon");
    screen_step(&s, 1);
    assert_has(&s, "> Tell me\n\nOnce upon\n");
    assert_has(&s, " attached to process 4711");
    screen_keys(&s, "and then?\r");
    assert_has(&s, "waits: and then?");
    screen_answer(&s, " a time.");
    screen_step(&s, 1);
    assert_has(&s, "Once upon a time.\n212 tok");
    assert_has(&s, " loading");
    assert_has(&s, "waits: and then?");
    fake_ready(s.chat);
    screen_step(&s, 1);
    assert_has(&s, "> and then?\n");
    screen_close(&s);
    screen_open(&s, 30, 140, "");
    fake_attached(s.chat, 4711, "Tell me");
    screen_step(&s, 1);
    assert_has(&s, "| attached to ");
    assert_has(&s, " process 4711\n");
    screen_close(&s);
}

static void stop_keeps_the_part(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "Tell me\r");
    fake_text(s.chat, "Once upon");
    screen_keys(&s, "\x03");
    assert_false(ebb_chat_is_busy(s.chat));
    assert_has(&s, "Once upon\nstopped | 212 tok | 6.3/s");
    screen_keys(&s, "draft");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "\x03");
    assert_has(&s, "\n>\n");
    screen_keys(&s, "\x03");
    assert_has(&s, "Ctrl-D leaves");
    assert_false(s.app.frontend.quit);
    screen_keys(&s, "\x04");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

static void a_failed_load_is_said(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    fake_loading(s.chat, 1 << 20, 4 << 20);
    assert_has(&s, "loading [###-------] 25%");
    fake_fail(s.chat, "x.gguf: truncated: ends at byte 12");
    screen_step(&s, 1);
    assert_has(&s, "! x.gguf: truncated");
    assert_has(&s, "no model; /model FILE loads one");
    for (int i = 0; i < 10; i++)
        screen_step(&s, 1.1);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    screen_close(&s);
}

/* Enter looks for a remote engine again: on an empty line, with a question, and with questions that wait. */
static void enter_reconnects(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 100, "");
    strcpy(fake_remote(s.chat)->name, "box");
    screen_keys(&s, "first\r");                  /* typed before it was known */
    assert_has(&s, "waits: first");
    fake_fail(s.chat, "box: connection refused");
    screen_step(&s, 1);
    assert_has(&s, "not connected; Enter tries again");
    assert_has(&s, "waits: first");              /* it is not sent into the void */
    screen_keys(&s, "\r");
    screen_step(&s, 1);
    assert_has(&s, "connecting");
    assert_lacks(&s, "not connected");
    fake_fail(s.chat, "box: connection refused");
    screen_step(&s, 1);
    screen_keys(&s, "second\r");                 /* behind the first */
    screen_step(&s, 1);
    assert_has(&s, "connecting");
    fake_ready(s.chat);
    screen_step(&s, 1);
    assert_has(&s, "> first\n");
    assert_has(&s, "waits: second");
    screen_close(&s);
    screen_open(&s, 12, 100, "");
    strcpy(fake_remote(s.chat)->name, "box");
    fake_fail(s.chat, "box: connection refused");
    screen_step(&s, 1);
    screen_keys(&s, "Hello\r");                  /* nothing waits: the question itself does it */
    screen_answer(&s, "Hi");
    assert_has(&s, "> Hello\n\nHi\n");
    screen_close(&s);
}

static void idle_costs_nothing(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 120);
    for (int i = 0; i < 6; i++)
        screen_step(&s, 1.1);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    size_t before = ebb_term_mem_changes(s.term);
    screen_step(&s, 60);
    assert_int_equal(ebb_term_mem_changes(s.term), before);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    screen_close(&s);
}

static void busy_looks_twice_a_second(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 140);
    screen_keys(&s, "x\r");
    screen_step(&s, 0.01);
    int wait = ebb_app_timeout_ms(&s.app, s.now);
    assert_in_range(wait, 20, 501);
    fake_stats(s.chat)->phase = EBB_PHASE_PREFILL;
    fake_stats(s.chat)->prefill_done = 128;
    fake_stats(s.chat)->prefill_total = 512;
    fake_stats(s.chat)->prefill_tok_s = 41;
    screen_step(&s, 0.6);
    assert_has(&s, "reading          128/512 tok  25%");
    assert_has(&s, "left                        9.4 s");
    assert_has(&s, "\n  reading [###-------] 25% 9.4 s left - Esc stops");  /* and beside the input, where one looks */
    screen_close(&s);
    screen_open_ready(&s, 24, 80);
    assert_lacks(&s, "Esc stops");
    screen_keys(&s, "x\r");
    screen_step(&s, 1);
    assert_has(&s, " - Esc stops");
    screen_close(&s);
    screen_open_ready(&s, 24, 128);                     /* text before figures */
    assert_lacks(&s, "| Fake 8B\n");
    screen_close(&s);
}

static void small_terminals(void **state)
{
    static const int sizes[][2] = { { 1, 1 }, { 2, 3 }, { 3, 10 }, { 10, 40 }, { 5, 200 }, { 100, 20 } };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        screen_open_ready(&s, sizes[i][0], sizes[i][1]);
        screen_keys(&s, "hello \xE4\xBD\xA0\xE5\xA5\xBD\r/help\rabc");
        fake_text(s.chat, "an answer that is longer than a row");
        int row, col;
        assert_non_null(screen_text(&s));
        ebb_term_mem_cursor(s.term, &row, &col);
        assert_in_range(row, 0, sizes[i][0] - 1);
        assert_in_range(col, 0, sizes[i][1] - 1);
        screen_close(&s);
    }
}

static void ten_thousand_messages(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 40, 120);
    for (int i = 0; i < 10000; i++)
        fake_add(s.chat, i % 2 ? EBB_ROLE_ASSISTANT : EBB_ROLE_USER, "some words of a message that was said long ago");
    ebb_transcript_sync(&s.app.view);
    assert_has(&s, "> some words");
    for (int i = 0; i < 200; i++)
        screen_keys(&s, "\033[5~");
    assert_has(&s, "some words");
    size_t kept = 0;
    for (size_t i = 0; i < s.app.view.n_items; i++)
        kept += s.app.view.items[i].wrap.n_rows > 0;
    assert_true(kept < 300);
    screen_keys(&s, "\033[1;3H");
    assert_has(&s, "> some words");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn),
        cmocka_unit_test(attached),
        cmocka_unit_test(stop_keeps_the_part),
        cmocka_unit_test(a_failed_load_is_said),
        cmocka_unit_test(enter_reconnects),
        cmocka_unit_test(idle_costs_nothing),
        cmocka_unit_test(busy_looks_twice_a_second),
        cmocka_unit_test(small_terminals),
        cmocka_unit_test(ten_thousand_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
