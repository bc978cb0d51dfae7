/* tui/command/pull_follow.h - a model that is fetched while the chat goes on: /pull. */
#ifndef EBB_TUI_PULL_FOLLOW_H
#define EBB_TUI_PULL_FOLLOW_H
#include "command/frontend.h"

/* Begin; said.  Errors: those of ebb_pull_process_start, and USAGE where this chat may not. */
EBB_MUST_CHECK
ebb_status ebb_pull_follow_start(ebb_frontend *f, const char *what, ebb_error *err);
/* End it, and keep what has come.  false: nothing is fetched. */
bool ebb_pull_follow_stop(ebb_frontend *f);
/* Say what has happened; never blocks.  true: how far it is has changed. */
bool ebb_pull_follow_poll(ebb_frontend *f);
/* Before leaving.  true: it is said that something is fetched, for the first time: not yet. */
bool ebb_pull_follow_holds(ebb_frontend *f);
/* "x-Q4_K_M.gguf 43 % 2.1 of 4.9 GiB": append how far it is, without a bar and the time. */
void ebb_pull_follow_figures(const ebb_pull_process *p, ebb_buf *out);

#endif
