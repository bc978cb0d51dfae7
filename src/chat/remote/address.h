/* remote/address.h - where an engine is: what the user wrote, taken apart and judged.
 *
 *     https://host[:port][/base]      http://host[:port][/base]
 *     unix:/path/to/socket            exec:COMMAND, which speaks HTTP on its standard input
 *                                     and output
 *     ssh://[user@]host[:port]        the same of `ssh -T ... ebb serve --attach`
 *     shared:/path/to/model           the same of `ebb serve --attach` here, at a socket of this
 *                                     user's that is the model's own: the server is started if
 *                                     there is none, and ends a minute after its last client
 *
 * A base may end in /v1, as other programs want it; requests go to what is before it. */
#ifndef EBB_REMOTE_ADDRESS_H
#define EBB_REMOTE_ADDRESS_H
#include <stdbool.h>

#include "ebb/status.h"

typedef struct ebb_address {
    char   text[1024];           /* as it was given */
    char   url[1024];            /* for requests, without a / at its end; of a pipe or socket
                                  * http://127.0.0.1 */
    char   host[256];            /* who is asked, for messages */
    char   unix_path[108];       /* "": none */
    char   parts[1100];          /* of argv */
    char  *argv[14];             /* of exec:, ssh: and shared:, up to a NULL; argv[0] NULL: none.
                                  * Points into parts: do not copy */
    bool   is_here;              /* loopback, a socket or a pipe: the wire is this machine's, or
                                  * ssh's */
    bool   is_private;           /* nobody reads on the way: is_here, or TLS */
    bool   is_shared;            /* shared: */
} ebb_address;

/* Errors: USAGE, in one line, with the forms there are. */
EBB_MUST_CHECK
ebb_status ebb_address_parse(const char *text, ebb_address *out, ebb_error *err);
/* Of ssh:, the model that is wanted there, for the server that may have to begin; of others
 * nothing.  USAGE: a name that a shell would not leave as it is. */
EBB_MUST_CHECK
ebb_status ebb_address_set_model(ebb_address *a, const char *model, ebb_error *err);
/* Of shared:, where its server listens. */
const char *ebb_address_socket(const ebb_address *a);
/* Whether the text is an address rather than a name. */
bool ebb_address_is(const char *text);

#endif
