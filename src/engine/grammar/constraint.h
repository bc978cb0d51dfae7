/* grammar/constraint.h - a grammar applied to a vocabulary: which tokens may come next.
 *
 * What may follow a state of the grammar is a mask, a bit for each token, found by going through
 * the trie of the vocabulary as far as the grammar goes along, and kept.  A state of a text is a
 * number, so drafting ahead of a sampler copies it and disturbs nothing. */
#ifndef EBB_GRAMMAR_CONSTRAINT_H
#define EBB_GRAMMAR_CONSTRAINT_H
#include "ebb/grammar.h"
#include "grammar/token_trie.h"

typedef struct ebb_constraint ebb_constraint;

/* Where a text is.  Old ones may be forgotten: then nothing follows them (a drafter's, behind whose
 * back the sampler went on). */
typedef struct ebb_constraint_state {
    uint32_t state;
    uint32_t epoch;
} ebb_constraint_state;

/* Shares g and `trie`.  For ebb_constraint_free.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_constraint_new(const ebb_grammar *g, ebb_token_trie *trie, ebb_constraint **out,
                              ebb_error *err);
ebb_constraint *ebb_constraint_share(ebb_constraint *c); /* another owner; NULL is fine */
void ebb_constraint_free(ebb_constraint *c);     /* NULL is fine */

/* A choice begins: the functions below may do the work of one until the next call, some 20 ms.
 * Beyond it they find nothing, and ebb_constraint_check is LIMIT until then. */
void ebb_constraint_begin_choice(ebb_constraint *c);
/* The same for a text of n tokens that is there, with less for each. */
void ebb_constraint_begin_text(ebb_constraint *c, size_t n);
/* Where every text begins. */
ebb_constraint_state ebb_constraint_begin(const ebb_constraint *c);
/* Bit id % 64 of word id / 64 is set if token id may come next; *n_tokens of bits.  Valid until the
 * next call.  NULL: none may, or it failed. */
const uint64_t *ebb_constraint_mask(ebb_constraint *c, ebb_constraint_state at, size_t *n_tokens);
/* Whether a mask pays: there is one, or the state was asked about before and so comes again, and
 * its mask was not too much work.  Else asking for the few likeliest tokens costs less. */
bool ebb_constraint_wants_mask(ebb_constraint *c, ebb_constraint_state at);
/* One bit of the mask. */
bool ebb_constraint_allows(ebb_constraint *c, ebb_constraint_state at, ebb_token id);
/* Token id comes next.  false: it may not, and *at is as before. */
bool ebb_constraint_accept(ebb_constraint *c, ebb_constraint_state *at, ebb_token id);
/* The text is known to be there: now is the time to forget what led to it.  If it is, the choice
 * has ended. */
void ebb_constraint_settle(ebb_constraint *c, ebb_constraint_state *at);
/* OK if the text may end here; else why it cannot go on, as ebb_sampler_check. */
EBB_MUST_CHECK
ebb_status ebb_constraint_check(const ebb_constraint *c, ebb_constraint_state at, ebb_error *err);

#endif
