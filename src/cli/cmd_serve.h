/* cli/cmd_serve.h - what `ebb serve` and those who look for a server share. */
#ifndef EBB_CLI_CMD_SERVE_H
#define EBB_CLI_CMD_SERVE_H
#include "args.h"
#include "base/buf.h"

/* Replace *path by where the server of this user listens: --socket, else serve.sock in the folder
 * of sockets.  Errors: NOTFOUND
 * (no home), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_serve_socket_path(const ebb_args *a, ebb_buf *path, ebb_error *err);

/* --attach: standard input and output to that server, which is started if need be, until one of
 * them ends.  The exit status. */
int ebb_cmd_serve_attach(const ebb_args *a);

#endif
