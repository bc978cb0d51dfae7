/* ebb/experimental/kv_cache.h - what stays on disk of K and V, seen from outside an engine. */
#ifndef EBB_EXPERIMENTAL_KV_CACHE_H
#define EBB_EXPERIMENTAL_KV_CACHE_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/model.h"
#include "ebb/status.h"

/* Whether a file with these token ids, which follow each other in some sequence, stays. */
typedef bool ebb_kv_cache_keep_fn(void *arg, const ebb_token *ids, size_t n);

/* Ask for each file of the folder (NULL: $XDG_CACHE_HOME/ebb/kv), and remove those that are not
 * kept: an engine that wants one again computes.  What was begun and never finished goes, and what
 * cannot be read.  *n_removed counts.  No such folder: nothing to do.  Cost: a small read for each
 * file.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_cache_sweep(const char *dir, ebb_kv_cache_keep_fn *keep, void *arg,
                              size_t *n_removed, ebb_error *err);

#endif
