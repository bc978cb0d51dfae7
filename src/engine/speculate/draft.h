/* speculate/draft.h - guessing the next tokens from the text that stands.
 *
 * Prompt lookup (A. Saxena, "Prompt Lookup Decoding", 2023): the last tokens of a
 * timeline are looked for earlier in it, and what followed there is the guess.  It
 * costs no memory and no second model, and it is right where a text repeats
 * itself: code that is edited, quotations, lists, names.
 *
 * A guess is computed as further columns of the pass that computes its first token.
 * Where the time of a pass is spent on reading weights - from memory at n = 1, from
 * disk when layers stream - the further columns cost little.  How little is
 * measured: guessing pauses where it has not paid.
 *
 * A guess never changes an answer: its logits have the bits that a pass of one
 * column gives (run.h), and a token counts only if the sampler chose it. */
#ifndef EBB_DRAFT_H
#define EBB_DRAFT_H
#include <stdint.h>

#include "ebb/model.h"

typedef struct ebb_drafter {
    uint32_t n_most;             /* tokens of a guess, at most; 0: never guess */
    uint32_t n_now;              /* ... for the present: doubled by right guesses, cut back by wrong ones */
    uint32_t n_pause;            /* passes still to be made without a guess */
    uint32_t n_judged;           /* guesses in the sums below */
    double   alone_s;            /* a pass without a guess takes; 0: unknown */
    double   guessed_s, guessed_tokens;  /* time of passes with a guess, and the tokens they gave */
} ebb_drafter;

/* Nothing is known yet; at most n_most tokens are guessed for a pass. */
void ebb_drafter_init(ebb_drafter *d, uint32_t n_most);

/* What may follow ids[0..n): at most `max` tokens to out; returns how many.  0 where
 * nothing like the last tokens of ids (three of them, or n_alike if that is more) stands earlier, and while guessing
 * pauses.  Cost: one look at each id, a few microseconds for thousands. */
uint32_t ebb_drafter_guess(ebb_drafter *d, const ebb_token *ids, uint32_t n, uint32_t n_alike, ebb_token *out, uint32_t max);

/* A pass with a guess of n_guessed tokens (0: without one) took `seconds`; the first
 * n_right of them were chosen. */
void ebb_drafter_learn(ebb_drafter *d, uint32_t n_guessed, uint32_t n_right, double seconds);

#endif
