/* tui/app/hangup.h - when the terminal is gone: what both front ends do. */
#ifndef EBB_TUI_HANGUP_H
#define EBB_TUI_HANGUP_H
#include "app/stat_server.h"
#include "tui.h"

/* Let an answer under way go on for at most opts->linger_s seconds, or until SIGTERM; who asks for
 * the figures gets them.  The caller then closes the chat and leaves.  The process is killed should
 * it still be there half a minute later. */
void ebb_hangup(ebb_chat *chat, const ebb_tui_opts *opts, ebb_stat_server *stat);

#endif
