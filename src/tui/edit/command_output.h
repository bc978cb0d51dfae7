/* tui/edit/command_output.h - the output of a shell command, to go with a message.
 *
 * The command runs beside ebb, in a session of its own without a terminal and without input, so it
 * can neither ask nor draw; both outputs are read as they come.  It is ended when it has said
 * EBB_ATTACH_BYTES or has run for EBB_COMMAND_S.  What it says passes the display filter. */
#ifndef EBB_TUI_COMMAND_OUTPUT_H
#define EBB_TUI_COMMAND_OUTPUT_H
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "ebb/status.h"

#define EBB_COMMAND_S 60.0

typedef struct ebb_command_output {
    pid_t   pid;                 /* 0: none runs */
    int     fd;                  /* of what it says */
    double  started_s;           /* as the caller counts */
    bool    is_cut, is_late, is_stopped;
    ebb_buf command, text;
} ebb_command_output;

/* Run `command`, one line.  A zeroed *o is ready; fini ends what runs.  Errors: USAGE (no line, or
 * more than one), BUSY (another one runs), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_command_output_start(ebb_command_output *o, const char *command, double now_s,
                                    ebb_error *err);
void ebb_command_output_fini(ebb_command_output *o);
bool ebb_command_output_is_running(const ebb_command_output *o);
void ebb_command_output_stop(ebb_command_output *o);     /* it ends, with what it has said */

/* The words in front of a command as it is started, for a broker (os/broker.h): up to a NULL. */
char *const *ebb_command_output_words(void);

/* Read what there is; never blocks.  true: it has ended, and *out has what goes with a message: the
 * command, its output in a fence, and how it ended where that was not well (ebb_attach_next). */
bool ebb_command_output_poll(ebb_command_output *o, double now_s, ebb_buf *out);

#endif
