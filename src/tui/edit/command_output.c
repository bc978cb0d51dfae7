/* The output of a command (command_output.h). */
#include "edit/command_output.h"

#include <string.h>

#include "base/utf8.h"
#include "edit/attach.h"

/* The environment switches pagers and colours off: no user sees the command's terminal. */
static char shell[] = "/bin/sh", option[] = "-c", name[] = "ebb";
static char script[] = "TERM=dumb PAGER=cat GIT_PAGER=cat NO_COLOR=1; export TERM PAGER GIT_PAGER NO_COLOR; "
                       "eval \"$1\"";

char *const *ebb_command_output_words(void)
{
    static char *const words[] = { shell, option, script, name, NULL };

    return words;
}

ebb_status ebb_command_output_start(ebb_command_output *o, const char *command, double now_s, ebb_error *err)
{
    char *argv[] = { shell, option, script, name, NULL, NULL };

    command += strspn(command, " \t");
    if (!*command || strchr(command, '\n'))
        return EBB_FAIL(err, EBB_USAGE, "a command is one line, as in !git diff");
    if (ebb_command_output_is_running(o))
        return EBB_FAIL(err, EBB_BUSY, "a command is already running: %.80s", ebb_buf_text(&o->command));
    ebb_command_output_fini(o);
    if (!ebb_buf_adds(&o->command, command))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the command");
    argv[4] = o->command.data;
    return ebb_piped_start(&o->run, argv, -1, EBB_SPAWN_SESSION, true, now_s, err);
}

bool ebb_command_output_is_running(const ebb_command_output *o)
{
    return ebb_piped_is_running(&o->run);
}

void ebb_command_output_stop(ebb_command_output *o)
{
    ebb_piped_stop(&o->run);
}

void ebb_command_output_fini(ebb_command_output *o)
{
    ebb_piped_fini(&o->run);
    ebb_buf_fini(&o->command);
}

static void add_end(const ebb_command_output *o, int status, ebb_buf *out)
{
    ebb_buf end = { 0 };

    ebb_piped_add_end(&o->run, status, &end);
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        ebb_buf_addc(out, '\n');
    if (end.len > 0)
        ebb_buf_addf(out, "[%s]\n", ebb_buf_text(&end));
    ebb_buf_fini(&end);
}

bool ebb_command_output_poll(ebb_command_output *o, double now_s, ebb_buf *out)
{
    ebb_buf text = { 0 };
    int status = 0;

    if (!ebb_piped_poll(&o->run, now_s, &status))
        return false;
    ebb_utf8_add_visible(&text, ebb_buf_text(&o->run.text), o->run.text.len, false);
    add_end(o, status, &text);
    ebb_attach_add_output(out, ebb_buf_text(&o->command), &text);
    ebb_buf_fini(&text);
    ebb_command_output_fini(o);
    return true;
}
