/* tui/edit/command_output.h - the output of a shell command, to go with a message.
 *
 * The command runs beside ebb without input (piped.h); both of its outputs pass the display
 * filter. */
#ifndef EBB_TUI_COMMAND_OUTPUT_H
#define EBB_TUI_COMMAND_OUTPUT_H
#include <stdbool.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "edit/piped.h"

typedef struct ebb_command_output {
    ebb_piped run;
    ebb_buf   command;
} ebb_command_output;

/* Run `command`, one line.  A zeroed *o is ready; fini ends what runs.  Errors: USAGE (no line, or
 * more than one), BUSY (another one runs), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_command_output_start(ebb_command_output *o, const char *command, double now_s,
                                    ebb_error *err);
void ebb_command_output_fini(ebb_command_output *o);
bool ebb_command_output_is_running(const ebb_command_output *o);
void ebb_command_output_stop(ebb_command_output *o);     /* it ends; what it has printed stays */

/* The words in front of a command as it is started, for a broker (os/broker.h): up to a NULL. */
char *const *ebb_command_output_words(void);

/* Read what there is; never blocks.  true: it has ended, and *out has what goes with a message: the
 * command, its output in a fence, and how it ended where that was not well (tree/attachment.h). */
bool ebb_command_output_poll(ebb_command_output *o, double now_s, ebb_buf *out);

#endif
