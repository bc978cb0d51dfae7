/* os/paths.h - where the program's files live: the XDG base directories.
 *
 * A base variable that is unset, empty or no absolute path counts as absent,
 * as its specification wants; then the default below $HOME is used. */
#ifndef EBB_OS_PATHS_H
#define EBB_OS_PATHS_H
#include <stdbool.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef enum ebb_dir {
    EBB_DIR_CONFIG,              /* $XDG_CONFIG_HOME, ~/.config */
    EBB_DIR_STATE,               /* $XDG_STATE_HOME,  ~/.local/state */
    EBB_DIR_CACHE,               /* $XDG_CACHE_HOME,  ~/.cache */
    EBB_DIR_DATA,                /* $XDG_DATA_HOME,   ~/.local/share */
} ebb_dir;

/* Replace *out by "<base>/ebb", or "<base>/ebb/<name>" if name is not NULL.  Makes
 * nothing on disk.  Errors: NOTFOUND (no base variable and no $HOME), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_path_in(ebb_dir dir, const char *name, ebb_buf *out, ebb_error *err);

/* Replace *out by the folder of this run's sockets: $XDG_RUNTIME_DIR/ebb, and "run" in the state
 * folder where that variable leads to no folder of this user.  Makes $XDG_RUNTIME_DIR, if it can,
 * and nothing else.  Errors: as ebb_path_in. */
EBB_MUST_CHECK
ebb_status ebb_path_run(ebb_buf *out, ebb_error *err);

/* Replace *out by `path` with ~/ at its beginning as $HOME/.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_path_expand(const char *path, ebb_buf *out, ebb_error *err);

/* Replace *out by "$VARIABLE/below", by $VARIABLE alone where `below` is NULL.  false: that is no
 * absolute path, or no memory. */
bool ebb_path_below(const char *variable, const char *below, ebb_buf *out);

/* $EBB_MODELS: directories or files, separated by colons; NULL if unset or empty. */
const char *ebb_path_models(void);
/* Replace *out by the next path of such a list (NULL: an empty one), which *list is moved behind;
 * empty ones are passed over.  false: there is none, or no memory (out->failed). */
bool ebb_path_next(const char **list, ebb_buf *out);

#endif
