/* tui/app/stat_server.h - the figures of a running chat, or of `ebb run`, for `ebb stat`: a UNIX
 * socket, one per process, for this user only.  Whoever connects gets one JSON object and
 * the end; nothing is read.  It costs nothing while nobody asks. */
#ifndef EBB_TUI_STAT_SERVER_H
#define EBB_TUI_STAT_SERVER_H
#include <jansson.h>
#include <sys/un.h>

#include "tui.h"

typedef struct ebb_stat_server {
    int                fd;       /* to poll for reading; -1: there is no socket */
    struct sockaddr_un at;
    bool               is_unseen;    /* the terminal is gone */
    bool               is_waiting;   /* of a question that waits for its turn in the session */
} ebb_stat_server;

/* Listen in the folder of ebb_path_run.  Where that cannot be had, there is no socket, and the chat
 * goes on. */
void ebb_stat_server_open(ebb_stat_server *s);
/* The lock of ebb_tui_opts is let go; for whoever has inherited it, too. */
void ebb_stat_server_unlock(int lock);
void ebb_stat_server_close(ebb_stat_server *s);
/* Answer all who wait; never blocks. */
void ebb_stat_server_serve(ebb_stat_server *s, const ebb_chat *chat);
/* The same with an object of the caller's. */
void ebb_stat_server_reply(ebb_stat_server *s, const json_t *o);

#endif
