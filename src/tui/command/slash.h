/* tui/command/slash.h - everything that begins with a slash: one table for both
 * front ends, /help, completion and the manual page. */
#ifndef EBB_TUI_SLASH_H
#define EBB_TUI_SLASH_H
#include "command/frontend.h"

/* Called with one candidate. */
typedef void ebb_candidate_fn(void *arg, const char *text);

typedef struct ebb_slash_command {
    const char *name, *args, *help;
    /* arg: what follows the name, without blanks around; "" if nothing does. */
    ebb_status (*run)(ebb_frontend *f, const char *arg, ebb_error *err);
    /* NULL: nothing to complete.  Candidates need not begin with what was typed. */
    void (*complete)(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
} ebb_slash_command;

extern const ebb_slash_command ebb_slash_commands[]; /* ends with a NULL name */

/* A line is a command if it begins with a slash and not with two. */
bool ebb_slash_command_is(const char *line);
/* A message of one word that somebody types who wants the command *name. */
bool ebb_slash_command_is_meant(const char *line, const char **name);
/* Append what to type for the command that is being typed, or the commands that begin so. */
void ebb_slash_command_usage(const char *text, ebb_buf *out);
/* Run the command in `line`.  Errors are said, too.  False: there is no such command. */
bool ebb_slash_command_run(ebb_frontend *f, const char *line);

/* What the command in `line` would cost.  False: it costs nothing, or nobody can say. */
bool ebb_slash_command_preview(ebb_frontend *f, const char *line, ebb_chat_cost *out);

/* Complete the command line `text` up to its end.  Candidates, whole words in the place of
 * text[*at..), go to fn in order. */
void ebb_slash_command_complete(ebb_frontend *f, const char *text, size_t *at, ebb_candidate_fn *fn, void *arg);

/* The keys, for /help; a pair of strings each, ends with NULL. */
extern const char *const ebb_key_help[][2];

#endif
