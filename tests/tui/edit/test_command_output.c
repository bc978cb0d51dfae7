/* The output of real commands: what comes, how they end, and what they cannot do. */
#include "ebb_test.h"

#include <unistd.h>

#include "edit/attach.h"
#include "edit/command_output.h"
#include "tree/attachment.h"

static void run_to_end(ebb_command_output *o, ebb_buf *out)
{
    while (!ebb_command_output_poll(o, 0, out))
        usleep(2000);
    assert_false(ebb_command_output_is_running(o));
}

static void outputs(void **state)
{
    static const struct { const char *command, *block; } rows[] = {
        { "echo hello", "$ echo hello:\n```\nhello\n```\n\n" },
        { " echo out; echo err >&2", "$ echo out; echo err >&2:\n```\nout\nerr\n```\n\n" },
        { "printf 'no end'", "$ printf 'no end':\n```\nno end\n```\n\n" }, { "true", "$ true:\n```\n```\n\n" },
        { "false", "$ false:\n```\n[exit status 1]\n```\n\n" },
        { "kill -9 $$", "$ kill -9 $$:\n```\n[ended by signal 9]\n```\n\n" },
        { "cat", "$ cat:\n```\n```\n\n" },       /* there is no input */
        { "echo '```'", "$ echo '```':\n````\n```\n````\n\n" },
        { "echo $TERM $PAGER", "$ echo $TERM $PAGER:\n```\ndumb cat\n```\n\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_command_output o = { 0 };
        ebb_attachment file;
        ebb_buf out = { 0 };
        ebb_error err;

        assert_int_equal(ebb_command_output_start(&o, rows[i].command, 0, &err), EBB_OK);
        run_to_end(&o, &out);
        assert_string_equal(ebb_buf_text(&out), rows[i].block);
        assert_int_equal(ebb_attachment_next(out.data, out.len, 0, &file), out.len);
        ebb_buf_fini(&out);
    }
}

static void ends(void **state)
{
    ebb_command_output o = { 0 };
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_command_output_start(&o, "", 0, &err), EBB_USAGE);
    assert_int_equal(ebb_command_output_start(&o, "echo a\necho b", 0, &err), EBB_USAGE);
    assert_int_equal(ebb_command_output_start(&o, "echo begun; sleep 1000", 0, &err), EBB_OK);
    assert_int_equal(ebb_command_output_start(&o, "echo b", 0, &err), EBB_BUSY);
    while (o.run.text.len < 6)
        assert_false(ebb_command_output_poll(&o, 0, &out));
    ebb_command_output_stop(&o);
    run_to_end(&o, &out);
    assert_string_equal(ebb_buf_text(&out), "$ echo begun; sleep 1000:\n```\nbegun\n[stopped]\n```\n\n");
    ebb_buf_clear(&out);
    assert_int_equal(ebb_command_output_start(&o, "sleep 1000", 5, &err), EBB_OK);
    while (!ebb_command_output_poll(&o, 5 + EBB_PIPED_S + 1, &out))
        usleep(2000);
    assert_non_null(strstr(ebb_buf_text(&out), "[stopped after 60 s]"));
    ebb_buf_clear(&out);
    assert_int_equal(ebb_command_output_start(&o, "yes", 0, &err), EBB_OK);     /* never ends by itself */
    run_to_end(&o, &out);
    assert_non_null(strstr(ebb_buf_text(&out), "[cut off after 1 MiB]"));
    assert_true(out.len < EBB_ATTACH_BYTES + 200);
    ebb_buf_clear(&out);
    assert_int_equal(ebb_command_output_start(&o, "sleep 1000", 0, &err), EBB_OK);
    ebb_command_output_fini(&o);                 /* we leave: it goes, too */
    assert_false(ebb_command_output_is_running(&o));
    ebb_buf_fini(&out);
}

/* Neither the terminal nor a control character is to be had. */
static void reaches_no_terminal(void **state)
{
    ebb_command_output o = { 0 };
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_command_output_start(&o, "printf '\\033]0;x\\007\\033[2Ja\\r\\tb\\n'; "
                                                  "(echo raw >/dev/tty) 2>/dev/null || echo none", 0, &err), EBB_OK);
    run_to_end(&o, &out);
    for (size_t i = 0; i < out.len; i++)
        assert_true((unsigned char)out.data[i] >= ' ' || out.data[i] == '\n' || out.data[i] == '\t');
    assert_non_null(strstr(out.data, "\nnone\n"));
    ebb_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(outputs), cmocka_unit_test(ends),
                                        cmocka_unit_test(reaches_no_terminal) };

    return cmocka_run_group_tests_name("command_output", tests, NULL, NULL);
}
