/* store/kept.h - what the sessions that are kept have said: by it files of K and V and lines of
 * the input's history are told from those of sessions that were deleted. */
#ifndef EBB_CHAT_KEPT_H
#define EBB_CHAT_KEPT_H
#include "store/store.h"

/* Runs of eight token ids as hashes, in order; questions likewise.  8 bytes for a token. */
typedef struct ebb_kept {
    uint64_t *runs, *questions;
    size_t    n_runs, cap_runs, n_questions, cap_questions;
} ebb_kept;

/* Read all sessions; *out is to be freed by ebb_kept_fini whatever comes of it.  Errors: those of
 * a store, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kept_read(ebb_store *s, ebb_kept *out, ebb_error *err);
void ebb_kept_fini(ebb_kept *k);

/* Whether that is a question of some session, with the files that went with it or without. */
bool ebb_kept_has_question(const ebb_kept *k, const char *text, size_t n);

/* Remove the K and V of sessions that are no more, from the usual folder. */
EBB_MUST_CHECK
ebb_status ebb_kept_sweep_kv(const ebb_kept *k, size_t *n_removed, ebb_error *err);

#endif
