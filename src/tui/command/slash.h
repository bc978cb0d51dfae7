/* tui/command/slash.h - everything that begins with a slash: one table for both
 * front ends, /help, completion and the manual page. */
#ifndef EBB_TUI_SLASH_H
#define EBB_TUI_SLASH_H
#include "command/frontend.h"

/* Called with one candidate: what is put in the place of what was typed, and a word or two on it,
 * "" for none. */
typedef void ebb_candidate_fn(void *arg, const char *text, const char *note);

typedef struct ebb_slash_command {
    const char *name, *args, *help;
    /* arg: what follows the name, without blanks around; "" if nothing does. */
    ebb_status (*run)(ebb_frontend *f, const char *arg, ebb_error *err);
    /* NULL: nothing to complete.  Candidates need not fit what was typed. */
    void (*complete)(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
    bool picks;                  /* alone it asks which: where there is a menu, that opens
                                  * instead */
} ebb_slash_command;

extern const ebb_slash_command ebb_slash_commands[]; /* ends with a NULL name */

/* A line is a command if it begins with a slash and not with two. */
bool ebb_slash_command_is(const char *line);
/* A message of one word that somebody types who wants the command *name. */
bool ebb_slash_command_is_meant(const char *line, const char **name);
/* The command that s[0..n) names, also as other programs call it; NULL: none does. */
const ebb_slash_command *ebb_slash_command_find(const char *s, size_t n);
/* Append what to type for the command that is being typed, or the commands that begin so. */
void ebb_slash_command_usage(const char *text, ebb_buf *out);
/* Run the command in `line`.  Errors are said, too.  False: there is no such command. */
bool ebb_slash_command_run(ebb_frontend *f, const char *line);

/* What the command in `line` would cost.  False: it costs nothing, or nobody can say. */
bool ebb_slash_command_preview(ebb_frontend *f, const char *line, ebb_chat_cost *out);

/* Complete the command line `text` up to its end.  All candidates, whole words in the place of
 * text[*at..), go to fn in order, whether they match the text there or not. */
void ebb_slash_command_complete(ebb_frontend *f, const char *text, size_t *at,
                                ebb_candidate_fn *fn, void *arg);

/* The keys, for /help; a pair of strings each, ends with NULL. */
extern const char *const ebb_key_help[][2];

#endif
