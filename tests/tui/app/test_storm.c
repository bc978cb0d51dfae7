/* Random keys, resizes, events and texts on the whole screen: no crash, no caret
 * outside, nothing raw, and what streams in is not re-read. */
#include "ebb_test.h"

#include "tui/screen.h"

static uint32_t seed = 42;

static uint32_t roll(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void random_key(screen *s)
{
    static const char *const keys[] = {
        "a", "b ", "\r", "\n", "\t", "\x7F", "\x01", "\x05", "\x0B", "\x15", "\x17", "\x19", "\033y", "\x1F", "\x14",
        "\033[A", "\033[B", "\033[C", "\033[D", "\033[5~", "\033[6~", "\033[1;3H", "\033[1;3F", "\x03", "\x12",
        "\x07", "\x18", "\x0C", "\033", "/", "/set ", "/undo\r", "/redo\r", "/retry\r", "/help\r", "/theme mono\r",
        "/load trip\r", "/new\r", "/system be brief\r", "\xE4\xBD\xA0", "\xCC\x81",
        "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9",
        "\xFF", "\033[200~pasted\ntext\033[201~", "\033[200~1\n2\n3\n4\n5\n6\n7\n8\n9\n\033[201~", "\033[", "//x\r",
        "\x13", "n",
        "/editing vi\r", "/editing emacs\r", "dw", "2", "cw", "p", "u", ".", "/raw\r", "\x0F", "/find a\r", "\033OQ",
    };

    const char *key = keys[roll(sizeof keys / sizeof *keys)];
    ebb_term_mem_feed(s->term, key, strlen(key));
}

static void random_event(screen *s)
{
    static const char *const texts[] = { "word ", "\n", "**", "`", "```\n", "\xE4\xBD\xA0", "\033[2J", "- ", "\xF0\x9F",
                                         "supercalifragilisticexpialidocious", "\t" };

    if (!ebb_chat_is_ready(s->chat))
        fake_ready(s->chat);
    if (!ebb_chat_is_busy(s->chat))
        return;
    if (roll(20) == 0)
        fake_done(s->chat, EBB_FINISH_STOP);
    else
        fake_text(s->chat, texts[roll(sizeof texts / sizeof *texts)]);
}

static void check(screen *s)
{
    int rows, cols, row, col;
    const char *text = ebb_term_mem_screen(s->term);

    s->term->ops->size(s->term, &rows, &cols);
    ebb_term_mem_cursor(s->term, &row, &col);
    assert_in_range(row, 0, rows - 1);
    assert_in_range(col, 0, cols - 1);
    for (; *text; text++)
        assert_true((unsigned char)*text >= 0x20 || *text == '\n');
}

static void open_one(screen *s, bool is_inline)
{
    if (is_inline)
        screen_open_inline(s, 24, 80);
    else
        screen_open(s, 24, 80, "");
}

static void storm_on(bool is_inline)
{
    screen s;

    open_one(&s, is_inline);
    for (unsigned i = 0; i < (is_inline ? 40000 : 100000) / ebb_test_one_in(10); i++) {
        random_key(&s);
        if (roll(3) == 0)
            random_event(&s);
        if (roll(50) == 0)
            ebb_term_mem_resize(s.term, 1 + (int)roll(60), 1 + (int)roll(160));
        if (i % 4 == 0) {
            s.app.frame.is_urgent = roll(8) == 0;
            screen_step(&s, 0.002);
            screen_wait_editor(&s);
            if (i % 64 == 0) {
                s.app.frame.is_urgent = true;
                screen_step(&s, 0);
                screen_wait_editor(&s);
                check(&s);
            }
        }
        if (s.app.frontend.quit || ebb_chat_n_messages(s.chat) > 400 || s.app.view.n_items > 2000) {
            screen_close(&s);
            open_one(&s, is_inline);
        }
    }
    screen_close(&s);
}

static void storm(void **state)
{
    (void)state;
    storm_on(false);
}

static void storm_inline(void **state)
{
    (void)state;
    storm_on(true);
}

static void resizes(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 24, 80, "");
    fake_ready(s.chat);
    screen_keys(&s, "x\r");
    for (int i = 0; i < 2000; i++)
        fake_text(s.chat, "some words in a long answer ");
    for (int i = 0; i < 1000; i++) {
        ebb_term_mem_resize(s.term, 1 + (int)roll(60), 1 + (int)roll(200));
        screen_step(&s, 0.01);
        check(&s);
    }
    screen_close(&s);
}

/* A megabyte at some thousand tokens a second, drawn at every frame. */
static void a_megabyte_at_full_speed(void **state)
{
    screen s;
    double begin = ebb_test_cpu_s(), took;
    size_t n = 0;

    (void)state;
    screen_open(&s, 40, 120, "");
    fake_ready(s.chat);
    screen_keys(&s, "write a book\r");
    for (; n < 1 << 20; n += 5) {
        fake_text(s.chat, n % 400 == 0 ? "\n\n## H" : n % 65 == 0 ? "**b**" : "word ");
        screen_step(&s, 1.0 / 5000);
    }
    took = ebb_test_cpu_s() - begin;
    print_message("1 MB in %zu tokens: %.2f s, %.0f tok/s\n", n / 5, took, (double)n / 5 / took);
    assert_true((double)n / 5 / took > 5000 / 4.0);          /* under sanitizers, too */
    screen_close(&s);
}

static void ten_megabytes_pasted(void **state)
{
    screen s;
    ebb_buf paste = { 0 };
    double begin;

    (void)state;
    screen_open(&s, 40, 120, "");
    fake_ready(s.chat);
    ebb_buf_adds(&paste, "\033[200~");
    while (paste.len < 10 << 20)
        ebb_buf_adds(&paste, "a line of a very long file\r\n");
    ebb_buf_adds(&paste, "\033[201~");
    begin = ebb_test_cpu_s();
    for (size_t at = 0; at < paste.len; at += 65536) {
        ebb_term_mem_feed(s.term, paste.data + at, paste.len - at < 65536 ? paste.len - at : 65536);
        screen_step(&s, 0);
    }
    for (int i = 0; i < 1000; i++)
        screen_keys(&s, "x");
    print_message("10 MB pasted and 1,000 keys: %.2f s\n", ebb_test_cpu_s() - begin);
    assert_true(ebb_test_cpu_s() - begin < 20);
    ebb_buf_fini(&paste);
    screen_close(&s);
}

/* Seconds for so many bytes of text as keys, as a terminal without bracketed paste sends what is pasted. */
static double type_pieces(const char *piece, size_t n)
{
    ebb_buf text = { 0 };
    double begin;
    screen s;

    screen_open(&s, 24, 80, "");
    fake_ready(s.chat);
    while (text.len < n)
        ebb_buf_adds(&text, piece);
    begin = ebb_test_cpu_s();
    for (size_t at = 0; at < text.len; at += 4096) {
        ebb_term_mem_feed(s.term, text.data + at, text.len - at < 4096 ? text.len - at : 4096);
        screen_step(&s, 0.01);
    }
    begin = ebb_test_cpu_s() - begin;
    ebb_buf_fini(&text);
    screen_close(&s);
    return begin;
}

/* A word is not read anew for each of its letters. */
static void a_word_without_end(void **state)
{
    double words = type_pieces("ab ", 200000), word, paths;

    (void)state;
    word = type_pieces("ab", 200000);
    paths = type_pieces("@a", 200000);
    print_message("200,000 keys: words %.2f s, one word %.2f, paths %.2f\n", words, word, paths);
    assert_true(word < 30 * words);
    assert_true(paths < 30 * words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm),
        cmocka_unit_test(storm_inline),
        cmocka_unit_test(resizes),
        cmocka_unit_test(a_megabyte_at_full_speed),
        cmocka_unit_test(ten_megabytes_pasted),
        cmocka_unit_test(a_word_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
