/* cli/cmd_pull.h - what `ebb pull` shows: a list to choose from, a line that moves, a plan. */
#ifndef EBB_CLI_CMD_PULL_H
#define EBB_CLI_CMD_PULL_H
#include "cli.h"
#include "pull/pull.h"

/* The line of progress on standard error: rewritten in place on a terminal, without escape
 * sequences, or with -v a line every ten seconds elsewhere. */
typedef struct ebb_pull_line {
    bool     is_on, is_terminal;
    bool     is_json;            /* --json-lines: events instead */
    bool     is_unread;          /* ... which nobody reads any more */
    unsigned n_shown;            /* columns that stand there now */
    double   said_at;
    double   share;              /* of the last file, 0..1; below 0: unknown */
} ebb_pull_line;

/* Begin, show how far it is, and take the line away again. */
void ebb_pull_line_begin(ebb_pull_line *l, const ebb_args *a);
void ebb_pull_line_move(ebb_pull_line *l, const char *name, unsigned i_file, unsigned n_files,
                        const ebb_download_progress *p);
void ebb_pull_line_clear(ebb_pull_line *l);
/* A line of its own, where progress is shown. */
void ebb_pull_line_say(ebb_pull_line *l, const char *text);

/* The models of a repository as a table, the one that suits marked, and what to type. */
void ebb_pull_print_list(const ebb_pull *p);
/* --suggest: the table of models/suggestions.h with what each would do on this machine.  Returns an
 * exit status. */
int ebb_pull_print_suggestions(const ebb_machine *machine, bool as_json);
int ebb_pull_print_list_json(const ebb_pull *p);
/* The plan in two lines; for people alone where progress is shown. */
void ebb_pull_say_plan(ebb_pull_line *l, const ebb_model *m, const ebb_plan *plan);
/* --json-lines (cmd_pull_lines.c): each an event of pull/pull_events.h.  false: nobody reads them
 * any more. */
bool ebb_pull_lines_notice(const char *text);
bool ebb_pull_lines_error(const ebb_error *err);
bool ebb_pull_lines_progress(const char *name, unsigned i_file, unsigned n_files,
                             const ebb_download_progress *p);
bool ebb_pull_lines_done(const ebb_pull_done *d);
/* What has come, for people or for a pipe: there the path alone. */
int ebb_pull_print_done(const ebb_args *a, const ebb_pull_done *d);

#endif
