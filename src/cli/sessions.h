/* cli/sessions.h - the parts of `ebb sessions`: sessions.c lists and changes,
 * sessions_files.c shows, exports and imports.  Each returns the exit status. */
#ifndef EBB_CLI_SESSIONS_H
#define EBB_CLI_SESSIONS_H
#include "cli.h"
#include "store.h"

int ebb_sessions_show(ebb_store *s, const ebb_args *a, ebb_error *err);
int ebb_sessions_export(ebb_store *s, const ebb_args *a, ebb_error *err);
int ebb_sessions_import(ebb_store *s, const ebb_args *a, ebb_error *err);

#endif
