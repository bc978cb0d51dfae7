/* cli/sessions.h - the parts of `ebb sessions`: sessions.c lists and changes,
 * sessions_files.c shows, exports and imports, sessions_replay.c computes
 * again.  Each returns the exit status. */
#ifndef EBB_CLI_SESSIONS_H
#define EBB_CLI_SESSIONS_H
#include "cli.h"
#include "store.h"

int ebb_sessions_show(ebb_store *s, ebb_args *a, ebb_error *err);
int ebb_sessions_export(ebb_store *s, ebb_args *a, ebb_error *err);
int ebb_sessions_import(ebb_store *s, ebb_args *a, ebb_error *err);
/* Needs a model; the exit status is 0 only where something was compared and nothing differs. */
int ebb_sessions_replay(ebb_store *s, ebb_args *a, ebb_error *err);

#endif
