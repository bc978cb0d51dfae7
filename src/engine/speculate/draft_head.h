/* speculate/draft_head.h - draft tokens from the draft head of the model's own file (model/net.h).
 *
 * Every pass computes the head's K and V of its positions, too; they are in the same blocks as
 * those of the other layers, and are found, truncated, shifted and persisted with them.  A draft
 * token is a pass of one token through the head alone: a layer and the output.  The next one goes
 * on from the head's own hidden state (draft_head_chain.c).  Draft tokens are verified like any
 * others, so they never change the text. */
#ifndef EBB_DRAFT_HEAD_H
#define EBB_DRAFT_HEAD_H
#include "ebb/engine.h"
#include "ebb/session.h"
#include "sample/sampler.h"
#include "speculate/draft_length.h"
#include "speculate/draft_rows.h"

#define EBB_ACCEPT_RATE_HEAD 0.75        /* acceptance rate that is assumed before any was measured:
                                            published ones are 0.6 .. 0.9 */
#define EBB_DRAFT_HEAD_MOST  7u          /* draft tokens of a pass */

typedef struct ebb_head_drafter {
    ebb_sampler *sampler;        /* NULL: there is no head, or it is not used */
    float       *hidden;         /* [EBB_DRAFT_HEAD_MOST + 1][n_embd] in front of the tokens of the
                                    path that is drafted: the first is the sequence's */
    ebb_draft_length draft_length;
    ebb_draft_rows rows;         /* of the output matrix that drafting multiplies by */
} ebb_head_drafter;

/* If the net has a head.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_draft_head_open(ebb_engine *e, ebb_error *err);
void ebb_draft_head_close(ebb_engine *e);
bool ebb_draft_head_is_open(const ebb_engine *e);

/* Drafts behind s->ids[0..n), whose last token is not computed yet, paths of at most `max` tokens,
 * to s->drafts.tree, which is empty.  It stays so where drafting does not pay now, or the hidden
 * state of position n - 2 is not known. */
void ebb_draft_head_draft(ebb_session *s, uint32_t n, uint32_t max);
/* What became of the draft tokens of the last call. */
void ebb_draft_head_learn(ebb_engine *e, const ebb_draft_outcome *o);
/* A pass over n_tokens took so many seconds. */
void ebb_draft_head_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds);

/* The head's logits behind `id` at pos.  hidden[n_embd] is the hidden state of pos - 1 and becomes
 * that of pos; the block table is grown to pos + 1. */
EBB_MUST_CHECK
ebb_status ebb_draft_head_step(ebb_session *s, ebb_token id, uint32_t pos, float *hidden,
                               float *logits, ebb_error *err);

/* After a pass over n tokens, the last n_pending of them draft tokens: keeps the hidden state of
 * the last that is none, row `row` of those of the pass. */
void ebb_hidden_follow_pass(ebb_session *s, uint32_t n, uint32_t n_pending, uint32_t row);
/* A draft token was accepted: its hidden state is kept instead. */
void ebb_hidden_follow_accept(ebb_session *s);
/* s is about to be synced to ids[0..n): a hidden state of other ids is dropped. */
void ebb_hidden_keep(ebb_session *s, const ebb_token *ids, size_t n);
/* The reference text is another one: the rows are chosen by that and by the sequences that there
 * are. */
void ebb_draft_head_recount(ebb_engine *e);
/* The hidden state [n_embd] of position pos - 1; NULL: unknown. */
const float *ebb_hidden_before(const ebb_session *s, uint32_t pos);

#endif
