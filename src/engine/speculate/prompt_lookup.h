/* speculate/prompt_lookup.h - draft tokens from the text itself.
 *
 * Prompt lookup (A. Saxena, "Prompt Lookup Decoding", 2023): the last tokens of a
 * sequence are looked for earlier in it, and what followed there is the guess.  It
 * costs no memory and no second model, and it is right where a text repeats
 * itself: code that is edited, quotations, lists, names.
 *
 * A guess is computed as further columns of the pass that computes its first token.
 * Where the time of a pass is spent on reading weights - from memory at n = 1, from
 * disk when layers stream - the further columns cost little.  How little is
 * measured: guessing pauses where it has not paid.
 *
 * A guess never changes an answer: its logits have the bits that a pass of one
 * column gives (forward.h), and a token counts only if the sampler chose it. */
#ifndef EBB_PROMPT_LOOKUP_H
#define EBB_PROMPT_LOOKUP_H
#include <stdint.h>

#include "ebb/model.h"

typedef struct ebb_prompt_lookup {
    uint32_t n_most;             /* tokens of a guess, at most; 0: never guess */
    uint32_t n_now;              /* ... for the present: doubled by right guesses, cut back by wrong
                                    ones */
    uint32_t n_pause;            /* passes still to be made without a guess */
    uint32_t n_measured;         /* guesses in the sums below */
    double   alone_s;            /* a pass without a guess takes; 0: unknown */
    double   draft_pass_s, draft_pass_tokens; /* time of passes with a guess, and the tokens they
                                                 gave */
} ebb_prompt_lookup;

/* Nothing is known yet; at most n_most tokens are guessed for a pass. */
void ebb_prompt_lookup_init(ebb_prompt_lookup *d, uint32_t n_most);

/* What may follow ids[0..n): at most `max` tokens to out; returns how many.  0 where
 * nothing like the last tokens of ids (three of them, or n_alike if that is more) stands earlier,
 * and while guessing pauses.  Cost: one look at each id, a few microseconds for thousands. */
uint32_t ebb_prompt_lookup_draft(ebb_prompt_lookup *d, const ebb_token *ids, uint32_t n,
                                 uint32_t n_alike, ebb_token *out, uint32_t max);

/* A pass with a guess of n_drafted tokens (0: without one) took `seconds`; the first
 * n_accepted of them were chosen. */
void ebb_prompt_lookup_learn(ebb_prompt_lookup *d, uint32_t n_drafted, uint32_t n_accepted,
                             double seconds);

#endif
