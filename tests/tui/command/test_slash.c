#include "ebb_test.h"

#include "base/buf.h"
#include "command/slash_impl.h"
#include "os/file.h"
#include "panel/panel.h"
#include "text/render.h"

/* The manual page and /help say the same. */
static void manual_has_all(void **state)
{
    ebb_buf page = { 0 }, want = { 0 };

    (void)state;
    assert_int_equal(ebb_file_slurp("docs/ebb.1", 1 << 20, &page, NULL), EBB_OK);
    for (const ebb_slash_command *c = ebb_slash_commands; c->name; c++) {
        ebb_buf_clear(&want);
        ebb_buf_addf(&want, "\n.It Ic /%s", c->name);
        if (!strstr(page.data, want.data) || !strstr(page.data, c->help))
            fail_msg("docs/ebb.1 lacks /%s: %s", c->name, c->help);
    }
    for (size_t i = 0; ebb_key_help[i][0]; i++)
        if (!strstr(page.data, ebb_key_help[i][1]))
            fail_msg("docs/ebb.1 lacks the key %s: %s", ebb_key_help[i][0], ebb_key_help[i][1]);
    for (size_t i = 0; ebb_panel_help[i][0]; i++)
        if (!strstr(page.data, ebb_panel_help[i][1]))
            fail_msg("docs/ebb.1 lacks the panel's %s: %s", ebb_panel_help[i][0], ebb_panel_help[i][1]);
    ebb_buf_fini(&page);
    ebb_buf_fini(&want);
}

static void what_is_a_command(void **state)
{
    (void)state;
    assert_true(ebb_slash_command_is("/x"));
    assert_true(ebb_slash_command_is("/"));
    assert_false(ebb_slash_command_is("//x"));
    assert_false(ebb_slash_command_is("a /x"));
    assert_false(ebb_slash_command_is(""));
}

static void code_blocks(void **state)
{
    static const char text[] = "a\n```c\nint x;\n```\nb\n~~~~\n```\ninner\n```\n~~~~\n  ```\ncut off";
    static const char quoted[] = "- a\n\n  > ```\n  > x\n  > ```\n";
    static const char *const want[] = { "int x;\n", "```\ninner\n```\n", "cut off\n" };
    ebb_buf block = { 0 };

    (void)state;
    for (unsigned long i = 0; i < 3; i++) {
        ebb_buf_clear(&block);
        assert_true(ebb_render_code_block(text, sizeof text - 1, i + 1, &block));
        assert_string_equal(ebb_buf_text(&block), want[i]);
    }
    assert_false(ebb_render_code_block(text, sizeof text - 1, 4, &block));
    assert_false(ebb_render_code_block("", 0, 1, &block));
    ebb_buf_clear(&block);
    assert_true(ebb_render_code_block(quoted, sizeof quoted - 1, 1, &block));
    assert_string_equal(ebb_buf_text(&block), "x\n");
    ebb_buf_fini(&block);
}

static void where_an_answer_is_cut(void **state)
{
    static const char text[] = "One is here. Two\nare there.\n\nThree: x  ";
    static const struct { const char *what, *left; } cases[] = {
        { "1", "One is here. Two\nare there.\n\nThree:" },
        { "2 words", "One is here. Two\nare there." },
        { "1 line", "One is here. Two\nare there." },
        { "2 l", "One is here. Two" },
        { "1 sentence", "One is here. Two\nare there.\n\nThree:" },
        { "2 s", "One is here. Two\nare there." },
        { "99 words", "" },
        { "Two", "One is here. Two" },
        { "\"One is\"", "One is" },
        { "here. T", "One is here. T" },
    };
    size_t end;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(ebb_cut_at(text, sizeof text - 1, cases[i].what, &end));
        if (end != strlen(cases[i].left) || memcmp(text, cases[i].left, end) != 0)
            fail_msg("%s leaves '%.*s'", cases[i].what, (int)end, text);
    }
    assert_false(ebb_cut_at(text, sizeof text - 1, "0 words", &end));
    assert_false(ebb_cut_at(text, sizeof text - 1, "nowhere", &end));
    assert_false(ebb_cut_at(text, sizeof text - 1, "x", &end));      /* nothing is behind it */
    assert_false(ebb_cut_at(text, sizeof text - 1, "", &end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_has_all),
        cmocka_unit_test(what_is_a_command),
        cmocka_unit_test(code_blocks),
        cmocka_unit_test(where_an_answer_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
