/* net/listen.h - sockets that wait for connections. */
#ifndef EBB_NET_LISTEN_H
#define EBB_NET_LISTEN_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"

/* A UNIX socket at `path`, which nobody else may open (0600), in a folder that is made if need be
 * (0700).  What an ended server left there is replaced; BUSY: one, or another program, is at work
 * there.  *lock holds the place as long as it is open.  Errors: USAGE (too long), IO. */
EBB_MUST_CHECK
ebb_status ebb_listen_unix(const char *path, int *fd, int *lock, ebb_error *err);
/* TCP at a numeric address or "localhost"; port 0: any that is free.  *port: the one it is.
 * Errors: USAGE (no such address), BUSY, IO. */
EBB_MUST_CHECK
ebb_status ebb_listen_tcp(const char *host, unsigned short *port, int *fd, ebb_error *err);
/* Of a numeric address to listen at: every one of this machine. */
bool ebb_listen_is_everywhere(const char *host);
/* *fd: the socket that systemd has opened for this process (sd_listen_fds(3)); -1: none.  *is_unix:
 * of what kind; host: of TCP, the numeric address, else "".  Error: USAGE (what was handed over is
 * several, or does not listen). */
EBB_MUST_CHECK
ebb_status ebb_listen_inherited(int *fd, bool *is_unix, char *host, size_t cap, ebb_error *err);
/* Connect to the server at `path`, which has two seconds to take the connection.  Errors: NOTFOUND
 * (none is there), USAGE (the path is longer than a socket's can be), IO (it is another user's,
 * among others). */
EBB_MUST_CHECK
ebb_status ebb_connect_unix(const char *path, int *fd, ebb_error *err);

#endif
