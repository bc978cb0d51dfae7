/* speculate/draft_head.h - draft tokens from the draft head of the model's own file (model/net.h).
 *
 * Every pass leaves the head's K and V of its positions in the same blocks as the others', so they
 * are found, cut, shifted and kept on disk with them.  A guess is a pass of one column through the
 * head alone: a layer and the output.  The next guess goes on from the head's own hidden state
 * (draft_head_guess.c).  Whatever it guesses, the text is that of the net: guesses are verified as
 * all are. */
#ifndef EBB_DRAFT_HEAD_H
#define EBB_DRAFT_HEAD_H
#include "ebb/engine.h"
#include "ebb/session.h"
#include "sample/sampler.h"
#include "speculate/draft_length.h"
#include "speculate/draft_rows.h"

#define EBB_ACCEPT_RATE_HEAD 0.75        /* share of right guesses that is assumed: published ones
                                            are 0.6 .. 0.9 */
#define EBB_DRAFT_HEAD_MOST  7u          /* tokens of a guess */

typedef struct ebb_head_drafter {
    ebb_sampler *sampler;        /* NULL: there is no head, or it is not used */
    float       *hidden;         /* [E] of the chain of guesses */
    ebb_draft_length draft_length;
    ebb_draft_rows rows;         /* of the output, that guesses look at */
    double       probability[EBB_DRAFT_HEAD_MOST];       /* of the guesses under way, by the head */
} ebb_head_drafter;

/* If the net has a head.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_draft_head_open(ebb_engine *e, ebb_error *err);
void ebb_draft_head_close(ebb_engine *e);
bool ebb_draft_head_is_open(const ebb_engine *e);

/* What may follow ids[0..n) in s, whose last one is not computed yet: at most `max` tokens to out;
 * 0 where it does not pay or the hidden state before it is not known. */
uint32_t ebb_draft_head_draft(ebb_session *s, ebb_token *ids, uint32_t n, ebb_token *out,
                              uint32_t max);
/* Of the n guesses of the last call n_accepted were chosen; the next was not, if is_rejected, else
 * that is not known. */
void ebb_draft_head_learn(ebb_engine *e, uint32_t n, uint32_t n_accepted, bool is_rejected);
/* A pass with n_tokens columns took so long. */
void ebb_draft_head_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds);

/* Logits of what follows `id` at pos, where hidden[E] is that of pos - 1 and becomes that of pos;
 * the table is grown to pos + 1. */
EBB_MUST_CHECK
ebb_status ebb_draft_head_step(ebb_session *s, ebb_token id, uint32_t pos, float *hidden,
                               float *logits, ebb_error *err);

/* A pass of n columns was done, the last n_pending as a guess: the hidden state of the last certain
 * one. */
void ebb_hidden_follow_pass(ebb_session *s, uint32_t n, uint32_t n_pending);
/* A guess was accepted. */
void ebb_hidden_follow_accept(ebb_session *s);
/* s shall hold ids[0..n): what is known of other ids is not of these. */
void ebb_hidden_keep(ebb_session *s, const ebb_token *ids, size_t n);
/* That before position pos; NULL: unknown. */
const float *ebb_hidden_before(const ebb_session *s, uint32_t pos);

#endif
