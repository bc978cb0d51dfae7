/* cli/cmd_run.h - what `ebb run` prints and says, without waiting for a reader who takes nothing:
 * a pager that waits for a key, a terminal that is stopped, a link that stalls.  What he does not
 * take at once is kept; the answer goes on, is saved and can be stopped meanwhile. */
#ifndef EBB_CLI_CMD_RUN_H
#define EBB_CLI_CMD_RUN_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "conversation/chat.h"

typedef struct ebb_run_output {
    int     fd;
    bool    is_own;              /* fd is a descriptor of ours whose writes do not wait */
    bool    is_terminal;         /* it gets the visible text alone */
    bool    is_stuck;            /* it says that it has room, and takes nothing */
    ebb_buf kept;
    size_t  n_sent;              /* of it */
    int     error;               /* errno of what failed first; 0: none.  Then nothing is written */
} ebb_run_output;

/* To standard output or error; before the confinement, which would not let the terminal be opened a
 * second time. */
void ebb_run_output_open(ebb_run_output *o, int shared);
/* In order, now or later; what is added at once is one write, if there is room: a pipe takes a line
 * of it whole, where others write to it, too. */
void ebb_run_output_add(ebb_run_output *o, const char *text, size_t n);
/* The same with what is ours or was made visible: a terminal gets it as it is. */
void ebb_run_output_add_raw(ebb_run_output *o, const char *text, size_t n);
/* Something is kept: what would be old by then need not be added. */
bool ebb_run_output_is_behind(const ebb_run_output *o);
/* What is taken now of what is kept. */
void ebb_run_output_send(ebb_run_output *o);
/* To poll for room; -1: there is nothing to send. */
int ebb_run_output_fd(const ebb_run_output *o);
/* Send all that is kept of both, whose reader may be one and wait for either; drop the rest once
 * gives_up() says so, which a signal has it asked. */
void ebb_run_output_close(ebb_run_output *o, ebb_run_output *other, bool (*gives_up)(void));

/* -- cmd_run_json.c ---------------------------------------------------------------- */
/* All answers to the last question, in the order of their seeds; n: how many.  For free(); NULL
 * without memory. */
const ebb_message **ebb_run_list_answers(ebb_chat *c, size_t *n);
/* Append the line of JSON about the answer to the last question, or about all of them.  false: no
 * memory. */
EBB_MUST_CHECK
bool ebb_run_add_json(ebb_buf *out, ebb_chat *c, bool has_several);

#endif
