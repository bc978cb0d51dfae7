/* chat/models.h - the model files on this machine. */
#ifndef EBB_CHAT_MODELS_H
#define EBB_CHAT_MODELS_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

typedef struct ebb_model_file {
    char    *path;               /* first part of a split model */
    uint64_t n_bytes;            /* of all parts */
    int64_t  changed_ms;         /* Unix time */
} ebb_model_file;

/* All *.gguf of the places in $EBB_MODELS (directories or files, separated by
 * colons) and of $XDG_DATA_HOME/ebb/models, two directories deep; newest first, the
 * larger of two of the same time.  A place that is not there is no error.
 * Error: NOMEM.  Cost: lists directories, opens no model. */
EBB_MUST_CHECK
ebb_status ebb_models_find(ebb_model_file **out, size_t *n, ebb_error *err);
void ebb_models_free(ebb_model_file *files, size_t n);

/* The model to use when none is named: the newest; NULL: the embedded guide. */
EBB_MUST_CHECK
ebb_status ebb_models_choose(char **path, ebb_error *err);

#endif
