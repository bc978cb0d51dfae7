/* cli/cmd_sessions.h - the parts of `ebb sessions`: cmd_sessions.c lists and changes,
 * cmd_sessions_files.c shows, exports and imports, cmd_sessions_replay.c computes
 * again, cmd_sessions_encrypt.c encrypts.  Each returns the exit status. */
#ifndef EBB_CLI_CMD_SESSIONS_H
#define EBB_CLI_CMD_SESSIONS_H
#include "cli.h"
#include "store/store.h"

int ebb_cmd_sessions_show(ebb_store *s, ebb_args *a, ebb_error *err);
int ebb_cmd_sessions_export(ebb_store *s, ebb_args *a, ebb_error *err);
int ebb_cmd_sessions_import(ebb_store *s, ebb_args *a, ebb_error *err);
/* Says which files with a message an editor has left in the clear: one may be all that there is of
 * it, so they stay. */
void ebb_cmd_sessions_tell_left(const char *state_dir);
/* Needs a model; the exit status is 0 only where something was compared and nothing differs. */
int ebb_cmd_sessions_replay(ebb_store *s, ebb_args *a, ebb_error *err);
/* Without an open store. */
int ebb_cmd_sessions_encrypt(ebb_args *a, ebb_error *err);
int ebb_cmd_sessions_decrypt(ebb_args *a, ebb_error *err);
int ebb_cmd_sessions_rekey(ebb_args *a, ebb_error *err);

#endif
