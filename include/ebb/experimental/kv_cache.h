/* ebb/experimental/kv_cache.h - the KV cache on disk, without an engine. */
#ifndef EBB_EXPERIMENTAL_KV_CACHE_H
#define EBB_EXPERIMENTAL_KV_CACHE_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/model.h"
#include "ebb/status.h"

/* Whether the cache file with the token ids [0..n), consecutive in some sequence, is kept. */
typedef bool ebb_kv_cache_keep_fn(void *arg, const ebb_token *ids, size_t n);

/* Calls `keep` for each file of the directory (NULL: $XDG_CACHE_HOME/ebb/kv) and removes those
 * for which it returns false; an engine computes again what it does not find.  Unfinished and
 * unreadable files are removed, too.  *n_removed counts all of them.  A directory that does not
 * exist is no error.  Cost: a small read for each file.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_cache_sweep(const char *dir, ebb_kv_cache_keep_fn *keep, void *arg,
                              size_t *n_removed, ebb_error *err);

#endif
