/* speculate/prompt_lookup.h - draft tokens from the text itself.
 *
 * Prompt lookup (A. Saxena, "Prompt Lookup Decoding", 2023): the last tokens of a sequence are
 * looked for earlier in it (suffix_index.h), and what mostly followed them there is the draft.  It
 * needs no second model, and is accepted where a text repeats itself: code that is edited,
 * quotations, lists, names.
 *
 * Draft tokens are computed in the pass that computes the token before them.  Where the time of a
 * pass is spent on reading weights - from memory at n = 1, from disk when layers stream - they cost
 * little.  How little is measured: drafting pauses where it has not paid, twice as long each time.
 *
 * Draft tokens never change an answer: their logits have the bits that passes of one token give
 * (forward.h), and one counts only if the sampler chooses it. */
#ifndef EBB_PROMPT_LOOKUP_H
#define EBB_PROMPT_LOOKUP_H
#include <stdint.h>

#include "ebb/model.h"
#include "speculate/suffix_index.h"

typedef struct ebb_prompt_lookup {
    uint32_t n_most;             /* draft tokens of a pass, at most; 0: never draft */
    uint32_t n_now;              /* ... at present: doubled when all were accepted, else cut to one
                                    more than were */
    uint32_t n_pause, pause;     /* passes left without a draft; length of the next pause */
    uint32_t n_measured;         /* passes in the sums below */
    double   alone_s;            /* seconds of a pass without a draft; 0: unknown */
    double   draft_pass_s, draft_pass_tokens; /* time of passes with a draft, and the tokens they
                                                 yielded */
} ebb_prompt_lookup;

/* Nothing is known yet; at most n_most tokens are drafted for a pass. */
void ebb_prompt_lookup_init(ebb_prompt_lookup *d, uint32_t n_most);

/* Writes at most `max` draft tokens behind ids[0..n) to out; returns how many.  0: the last three
 * tokens of ids (n_alike, if more) were not found earlier, or drafting pauses.  The index is
 * that of ids, and takes in those before the last.  Cost: some 50 ns, at most a few microseconds,
 * however long the text. */
uint32_t ebb_prompt_lookup_draft(ebb_prompt_lookup *d, ebb_suffix_index *index,
                                 const ebb_token *ids, uint32_t n, uint32_t n_alike,
                                 ebb_token *out, uint32_t max);

/* A pass with n_drafted draft tokens (0: without) took `seconds`; the first n_accepted of them were
 * accepted. */
void ebb_prompt_lookup_learn(ebb_prompt_lookup *d, uint32_t n_drafted, uint32_t n_accepted,
                             double seconds);

#endif
