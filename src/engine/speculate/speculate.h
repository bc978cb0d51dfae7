/* speculate/speculate.h - speculative decoding: appending a token computes draft tokens behind it
 * in the same pass (speculate.c); verify.c accepts or discards them. */
#ifndef EBB_SPECULATE_H
#define EBB_SPECULATE_H
#include <stdbool.h>

#include "ebb/session.h"

/* Prepares a new session's drafting.  false: no memory. */
bool ebb_speculate_init(ebb_session *s);
/* s is about to be synced to ids[0..n): what was indexed of other ids is forgotten. */
void ebb_speculate_keep(ebb_session *s, const ebb_token *ids, size_t n);
/* true: id is the next draft token, or the first of a branch that leaves here; it is part of the
 * sequence now, and its logits are the session's. */
bool ebb_speculate_accept(ebb_session *s, ebb_token id);
/* Computes id, which is not the next draft token, with new draft tokens behind it.
 * Errors: as ebb_session_append. */
EBB_MUST_CHECK
ebb_status ebb_speculate_append(ebb_session *s, ebb_token id, ebb_error *err);
/* Drops the draft tokens: the block table holds the sequence and no more.  `sampled`: the token
 * that was sampled in place of the next of them; EBB_TOKEN_NONE: not known. */
void ebb_speculate_discard(ebb_session *s, ebb_token sampled);

#endif
