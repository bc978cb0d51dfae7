/* ebb/experimental/kv_cache.h - the KV cache on disk, without an engine. */
#ifndef EBB_EXPERIMENTAL_KV_CACHE_H
#define EBB_EXPERIMENTAL_KV_CACHE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "ebb/model.h"
#include "ebb/session.h"
#include "ebb/status.h"

/* Encryption of the files, by whoever has a key (authenticated, from any thread). */
typedef struct ebb_kv_seal {
    void   *arg;
    uint8_t name_key[16];        /* what the names of files depend on */
    /* n random bytes. */
    void  (*random)(void *arg, void *out, size_t n);
    /* out[0..n) = in[0..n) sealed under a nonce that never comes again, and its tag. */
    void  (*seal)(void *arg, const uint8_t nonce[24], const void *in, size_t n, void *out,
                  uint8_t tag[16]);
    /* data[0..n) opened in place; false: it was not sealed so, and is no data. */
    bool  (*open)(void *arg, const uint8_t nonce[24], void *data, size_t n,
                  const uint8_t tag[16]);
} ebb_kv_seal;

/* Whether an engine with `opts` could spill K and V to a file there.  Makes and writes nothing.
 * Errors, which say why not: UNSUPPORTED (no_kv_cache, or encrypted), IO, NOTFOUND, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_cache_check_spill(const ebb_engine_opts *opts, ebb_error *err);

/* `opts` (NULL: all defaults) as a plan for this machine (ebb_plan_make) wants them: with
 * no_kv_cache where nothing can be spilled, so that K and V take memory. */
ebb_engine_opts ebb_kv_cache_opts_for_plan(const ebb_engine_opts *opts);

/* As ebb_session_persist, also if there was a sweep since the last ebb_session_sync: the caller
 * knows that what the sequence says is kept all the same. */
void ebb_session_persist_kept(ebb_session *s);

/* Whether the cache file with the token ids [0..n), consecutive in some sequence, is kept. */
typedef bool ebb_kv_cache_keep_fn(void *arg, const ebb_token *ids, size_t n);

/* Calls `keep` for each file of the directory (NULL: $XDG_CACHE_HOME/ebb/kv) and removes those
 * for which it returns false; an engine computes again what it does not find.  Unfinished and
 * unreadable files are removed, too, which for `seal` (NULL: none) are those that it does not open.
 * *n_removed counts all of them.  What was computed before, by this process or another, and is not
 * written yet, is not written any more: ebb_session_sync begins anew.
 * With `overwrites` they are overwritten before, down to the disk, as far as it writes in place: a
 * second or a few for each gigabyte on an SSD.  A directory that does not exist is no error.
 * Cost else: a small read for each file.  Errors: IO, also if one that is to go stays; NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_cache_sweep(const char *dir, const ebb_kv_seal *seal,
                              ebb_kv_cache_keep_fn *keep, void *arg, bool overwrites,
                              size_t *n_removed, ebb_error *err);

#endif
