/* remote/secret.h - the key of an engine, from where the user keeps it. */
#ifndef EBB_REMOTE_SECRET_H
#define EBB_REMOTE_SECRET_H
#include "remote/engines_file.h"

enum { EBB_SECRET_BYTES = 8192 };

/* The first line of the file (which others must not be able to read), the variable or the output of
 * the command, or the key in the file of engines; "" if there is none.  A command may ask its user:
 * it has until *is_stopped.  The caller overwrites out.  Errors name where it should be, never what
 * it is: NOTFOUND, IO, USAGE, LIMIT (it is too long), CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_secret_get(const ebb_engine_entry *e, bool (*is_stopped)(void *arg), void *arg,
                          char out[EBB_SECRET_BYTES], ebb_error *err);
/* Would it wait for someone: a command's user, or who writes into a pipe, which is read once? */
bool ebb_secret_waits(const ebb_engine_entry *e);

#endif
