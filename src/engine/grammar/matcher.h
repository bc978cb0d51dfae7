/* grammar/matcher.h - following a grammar byte by byte.
 *
 * A state is all that can follow: a set of pairs of a step that reads bytes and the stack of steps
 * that its rule's callers go on with, and whether the text may end.  Stacks share what they have
 * in common, equal stacks and equal states exist once, and where a byte leads from a state is found
 * once.  So states are numbers, and following a text that stays within known states is looking up
 * a table. */
#ifndef EBB_GRAMMAR_MATCHER_H
#define EBB_GRAMMAR_MATCHER_H
#include "grammar/automaton.h"

typedef struct ebb_matcher ebb_matcher;

#define EBB_STATE_NONE 0u                        /* nothing can follow, and the text may not end */

/* Of g, which it shares.  NULL: no memory. */
ebb_matcher *ebb_matcher_new(const ebb_grammar *g);
void ebb_matcher_free(ebb_matcher *m);           /* NULL is fine */

/* Where a text begins.  NONE: it failed. */
uint32_t ebb_matcher_start(ebb_matcher *m);
/* Where `byte` leads.  NONE: nowhere, or it failed.  Cost: a look at a table, or where the pair was
 * not met before, about the number of steps that can follow. */
uint32_t ebb_matcher_next(ebb_matcher *m, uint32_t state, uint8_t byte);
bool ebb_matcher_may_end(const ebb_matcher *m, uint32_t state);

size_t ebb_matcher_n_states(const ebb_matcher *m);       /* states are less than this */
size_t ebb_matcher_bytes(const ebb_matcher *m);  /* of what it remembers */
/* From now on so much work, at some 10 ns: a step that is looked at, or as much time or memory as
 * it takes to sort and keep what was found.  Then nothing more is found, which is LIMIT.  One that
 * has failed so goes on; without a call there is no limit. */
void ebb_matcher_limit(ebb_matcher *m, uint64_t work);
/* Forget all states but this one, and return its new number.  NONE: it failed. */
uint32_t ebb_matcher_forget(ebb_matcher *m, uint32_t state);

/* OK, or how it failed: LIMIT (too much can follow; until the next ebb_matcher_limit), NOMEM (for
 * good). */
EBB_MUST_CHECK
ebb_status ebb_matcher_check(const ebb_matcher *m, ebb_error *err);

#endif
