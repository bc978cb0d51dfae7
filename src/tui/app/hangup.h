/* tui/app/hangup.h - when the terminal is gone: what the front ends and `ebb run` do. */
#ifndef EBB_TUI_HANGUP_H
#define EBB_TUI_HANGUP_H
#include "app/stat_server.h"

/* Let an answer under way go on for at most linger_s seconds, or until SIGTERM or SIGUSR1; who asks
 * for the figures gets them.  The caller then closes the chat and leaves.  The process is killed
 * should it still be there half a minute later. */
void ebb_hangup(ebb_chat *chat, uint32_t linger_s, ebb_stat_server *stat);

#endif
