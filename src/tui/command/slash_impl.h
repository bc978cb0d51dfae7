/* tui/command/slash_impl.h - the commands of the table: for slash*.c, and completion of files. */
#ifndef EBB_TUI_SLASH_IMPL_H
#define EBB_TUI_SLASH_IMPL_H
#include "command/slash.h"

typedef ebb_status ebb_slash_fn(ebb_frontend *f, const char *arg, ebb_error *err);

/* -- slash_explain.c -- */
/* Append "usage    help" as /help aligns them, and a line end. */
void ebb_slash_explain(ebb_buf *out, const char *usage, const char *help);

/* -- slash_talk.c -- */
ebb_slash_fn ebb_slash_retry, ebb_slash_undo, ebb_slash_redo, ebb_slash_continue, ebb_slash_system,
    ebb_slash_prompt, ebb_slash_copy;
void ebb_complete_prompt(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_sessions.c -- */
ebb_slash_fn ebb_slash_new, ebb_slash_save, ebb_slash_load, ebb_slash_list, ebb_slash_search,
    ebb_slash_title, ebb_slash_delete, ebb_slash_undelete, ebb_slash_export, ebb_slash_import;
void ebb_complete_session(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
/* Whether it is the number that lists show of a session. */
bool ebb_slash_is_session_number(ebb_frontend *f, const char *typed);

/* -- slash_tree.c -- */
ebb_slash_fn ebb_slash_edit, ebb_slash_branch, ebb_slash_tree, ebb_slash_go, ebb_slash_pin,
    ebb_slash_unpin, ebb_slash_forget, ebb_slash_compact, ebb_slash_grow;
void ebb_complete_node(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_cut.c -- */
ebb_slash_fn ebb_slash_cut;
void ebb_complete_cut(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
/* Where `text` ends when `what` is taken away: a number with or without words, lines, sentences, or
 * a text (quoted or not) behind which all goes.  Blanks at the new end go, too.  false: there is no
 * such thing. */
bool ebb_cut_at(const char *text, size_t n, const char *what, size_t *end);

/* -- slash_view.c -- */
ebb_slash_fn ebb_slash_raw, ebb_slash_bare, ebb_slash_find, ebb_slash_editing;
void ebb_complete_editing(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_memory.c -- */
ebb_slash_fn ebb_slash_mem, ebb_slash_plan;
/* All layers are in memory, and the output matrix, which memory was too short for, is not. */
bool ebb_slash_reads_output(const ebb_stats *s);
void ebb_complete_mem(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_draft.c -- */
ebb_slash_fn ebb_slash_best, ebb_slash_draft;
void ebb_complete_draft(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_engine.c -- */
ebb_slash_fn ebb_slash_engine;
void ebb_complete_engine(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_pull.c -- */
ebb_slash_fn ebb_slash_pull;
void ebb_complete_pull(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_form.c -- */
ebb_slash_fn ebb_slash_schema, ebb_slash_grammar;
void ebb_complete_form(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

/* -- slash_why.c -- */
ebb_slash_fn ebb_slash_why;

/* -- slash_settings.c -- */
ebb_slash_fn ebb_slash_set, ebb_slash_theme, ebb_slash_model;
/* Is s[0..n) the name of a setting, or what another program calls it? */
bool ebb_slash_is_setting(ebb_frontend *f, const char *s, size_t n);
void ebb_complete_set(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_theme(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_model(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);
void ebb_complete_file(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg);

#endif
