/* tui/commands_priv.h - the commands of the table: for commands*.c, and completion of files. */
#ifndef EBB_TUI_COMMANDS_PRIV_H
#define EBB_TUI_COMMANDS_PRIV_H
#include "commands.h"

typedef ebb_status ebb_cmd_fn(ebb_front *f, const char *arg, ebb_error *err);

/* -- commands_sessions.c -- */
ebb_cmd_fn ebb_cmd_new, ebb_cmd_save, ebb_cmd_load, ebb_cmd_list, ebb_cmd_search, ebb_cmd_title, ebb_cmd_delete,
           ebb_cmd_undelete, ebb_cmd_export, ebb_cmd_import;
void ebb_complete_session(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- commands_tree.c -- */
ebb_cmd_fn ebb_cmd_edit, ebb_cmd_branch, ebb_cmd_tree, ebb_cmd_go, ebb_cmd_pin, ebb_cmd_unpin, ebb_cmd_forget, ebb_cmd_compact, ebb_cmd_grow;
void ebb_complete_node(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- commands_cut.c -- */
ebb_cmd_fn ebb_cmd_cut;
void ebb_complete_cut(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);
/* Where `text` ends when `what` is taken away: a number with or without words, lines, sentences, or a
 * text (quoted or not) behind which all goes.  Blanks at the new end go, too.  false: there is no such thing. */
bool ebb_cut_at(const char *text, size_t n, const char *what, size_t *end);

/* -- commands_view.c -- */
ebb_cmd_fn ebb_cmd_raw, ebb_cmd_bare, ebb_cmd_find, ebb_cmd_editing;
void ebb_complete_editing(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- commands_memory.c -- */
ebb_cmd_fn ebb_cmd_mem, ebb_cmd_plan;
void ebb_complete_mem(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- commands_draft.c -- */
ebb_cmd_fn ebb_cmd_draft;
void ebb_complete_draft(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- commands_why.c -- */
ebb_cmd_fn ebb_cmd_why;

/* -- commands_settings.c -- */
ebb_cmd_fn ebb_cmd_set, ebb_cmd_theme, ebb_cmd_model;
void ebb_complete_set(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_theme(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_model(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_file(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg);

#endif
