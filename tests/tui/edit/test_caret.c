/* The caret is where the text says: after whatever was typed or pasted, an x stands in the cell before it,
 * in the editor and in what was sent. */
#include "ebb_test.h"

#include "base/utf8.h"
#include "os/file.h"
#include "term/width.h"
#include "tui/screen.h"

static const char *read_shared(const char *name, ebb_buf *out)
{
    char path[200];
    ebb_error err;

    snprintf(path, sizeof path, "data/unicode/%s", name);
    assert_int_equal(ebb_file_slurp(ebb_test_shared_path(path), 4 << 20, out, &err), EBB_OK);
    ebb_buf_addc(out, '\0');
    return out->data;
}

/* In the cell, perhaps with marks in front of it that have no columns of their own. */
static bool is_x(const screen *s, int row, int col)
{
    const char *cell = ebb_term_mem_cell(s->term, row, col);

    return *cell && cell[strlen(cell) - 1] == 'x';
}

static void assert_x_before_caret(screen *s, const char *what, size_t n)
{
    int row, col;

    screen_text(s);
    ebb_term_mem_cursor(s->term, &row, &col);
    if (col < 1 || !is_x(s, row, col - 1))
        fail_msg("before the caret at %d stands '%s' after '%.*s'", col,
                 col > 0 ? ebb_term_mem_cell(s->term, row, col - 1) : "", (int)n, what);
}

/* The last x of the row that begins with "> " in the transcript stands after `columns`. */
static void assert_row(screen *s, int columns, const char *what, size_t n)
{
    if (!is_x(s, 0, 2 + columns))
        fail_msg("no x in column %d of the row with '%.*s'", 2 + columns, (int)n, what);
}

static void try_text(screen *s, const char *text, size_t n, bool sends)
{
    ebb_buf shown = { 0 };
    char first = n > 0 ? text[0] : '\0';

    if (n == 0 || n > 180 || first == '/' || memchr(text, '\n', n) || memchr(text, '\t', n) || memchr(text, '\r', n) ||
        memchr(text, ' ', n))
        return;
    screen_keys(s, "\x15\x0B");
    ebb_app_input(&s->app, &(ebb_input){ .kind = EBB_INPUT_PASTE, .text = text, .n = n });
    screen_keys(s, "x");
    assert_x_before_caret(s, text, n);
    screen_keys(s, "\x02\x06");                  /* back over it and forth */
    assert_x_before_caret(s, text, n);
    if (!sends || first == '@' || memchr(text, '@', n))
        return;
    screen_keys(s, "\r");
    fake_done(s->chat, EBB_FINISH_STOP);
    screen_text(s);
    ebb_utf8_add_valid(&shown, text, n);
    for (char *nul; (nul = memchr(shown.data, '\0', shown.len)) != NULL;) {      /* a message has none */
        memcpy(nul, "\xEF", 1);
        ebb_buf_insert(&shown, (size_t)(nul - shown.data) + 1, "\xBF\xBD", 2);
    }
    ebb_buf visible = { 0 };
    ebb_utf8_add_visible(&visible, shown.data, shown.len, false);
    ebb_buf_addc(&visible, 'x');
    assert_row(s, ebb_width_text(visible.data, visible.len) - 1, text, n);
    ebb_buf_fini(&visible);
    ebb_buf_fini(&shown);
    screen_keys(s, "/new\r");
}

static void open_wide(screen *s)
{
    screen_open(s, 10, 400, "");
    s->app.layout = EBB_LAYOUT_OFF;
    fake_ready(s->chat);
    screen_step(s, 1);
}

/* Code points in hexadecimal, up to `end`, as these files have them; marks between them are skipped. */
static size_t parse_points(const char *p, char end, char *out)
{
    size_t len = 0;

    while (*p && *p != end && *p != '#') {
        char *after;
        unsigned long cp = strtoul(p, &after, 16);
        if (after == p) {
            p++;
            continue;
        }
        len += ebb_utf8_encode((uint32_t)cp, out + len);
        p = after;
    }
    return len;
}

static void points_of_file(const char *name, char end, unsigned every)
{
    ebb_buf file = { 0 };
    char text[256], *save = NULL;
    unsigned i = 0;
    screen s;

    read_shared(name, &file);
    open_wide(&s);
    for (char *line = strtok_r(file.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        try_text(&s, text, parse_points(line, end, text), i++ % every == 0);
    }
    assert_true(i > 700);
    screen_close(&s);
    ebb_buf_fini(&file);
}

static void emoji(void **state)
{
    (void)state;
    points_of_file("emoji-test.txt", ';', 40);
}

static void grapheme_breaks(void **state)
{
    (void)state;
    points_of_file("GraphemeBreakTest.txt", '#', 10);
}

static bool is_typed_as_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return false;
    return n > 0 && text[0] != '/';
}

static void type_in_front(screen *s, const char *front, const char *text, size_t n)
{
    ebb_buf want = { 0 };

    ebb_buf_adds(&want, front);
    ebb_buf_add(&want, text, n);
    screen_keys(s, "\x15\x0B");
    ebb_app_input(&s->app, &(ebb_input){ .kind = EBB_INPUT_PASTE, .text = text, .n = n });
    screen_keys(s, "\x01");
    screen_keys(s, front);
    assert_string_equal(ebb_buf_text(&s->app.editor.text), ebb_buf_text(&want));
    ebb_buf_fini(&want);
}

/* Its code points come one after the other; some join what stands behind them for a while, some for good. */
static void typed_in_front(void **state)
{
    static const char *const names[] = { "emoji-test.txt", "GraphemeBreakTest.txt" };
    ebb_buf file = { 0 };
    char text[256], front[257] = "\u0915\u094D\u0930";
    screen s;

    (void)state;
    open_wide(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned n_lines = 0;
        char *save = NULL;

        ebb_buf_clear(&file);
        read_shared(names[i], &file);
        for (char *line = strtok_r(file.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            size_t n = line[0] == '#' || n_lines++ % 4 > 0 ? 0 : parse_points(line, ";#"[i], text);
            if (!is_typed_as_text(text, n))
                continue;
            type_in_front(&s, front, text, n);
            memcpy(front, text, n);
            front[n] = '\0';
        }
    }
    screen_close(&s);
    ebb_buf_fini(&file);
}

static void broken_utf8(void **state)
{
    static const char *const names[] = { "UTF-8-test.txt", "blns.txt", "UTF-8-demo.txt" };
    ebb_buf file = { 0 };
    screen s;

    (void)state;
    open_wide(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ebb_buf_clear(&file);
        const char *p = read_shared(names[i], &file);
        for (size_t n; p < file.data + file.len; p += n + 1) {
            n = strcspn(p, " \n\t\r");
            try_text(&s, p, n, false);
        }
    }
    screen_close(&s);
    ebb_buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emoji),
        cmocka_unit_test(grapheme_breaks),
        cmocka_unit_test(typed_in_front),
        cmocka_unit_test(broken_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
