/* speculate/speculate.h - speculative decoding: appending a token computes what may come next in
 * the same pass (speculate.c); what came of it is verify.c. */
#ifndef EBB_SPECULATE_H
#define EBB_SPECULATE_H
#include <stdbool.h>

#include "ebb/session.h"

/* One more session of the engine that may draft. */
void ebb_speculate_init(ebb_session *s);
/* If id was drafted: it stands, and so do its logits. */
bool ebb_speculate_accept(ebb_session *s, ebb_token id);
/* Compute id, which is none of the draft tokens under way, with new ones behind it. */
EBB_MUST_CHECK
ebb_status ebb_speculate_append(ebb_session *s, ebb_token id, ebb_error *err);
/* Forget the draft tokens: the table holds the sequence and no more.  is_rejected: what comes
 * instead is another token. */
void ebb_speculate_discard(ebb_session *s, bool is_rejected);

#endif
