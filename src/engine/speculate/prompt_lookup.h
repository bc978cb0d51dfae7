/* speculate/prompt_lookup.h - draft tokens from the text itself, or from another one.
 *
 * Prompt lookup (A. Saxena, "Prompt Lookup Decoding", 2023): the last tokens of a sequence are
 * looked for earlier in it (suffix_index.h), and what mostly followed them there is the draft.  It
 * needs no second model, and is accepted where a text repeats itself: code that is edited,
 * quotations, lists, names.  Texts that were said elsewhere are searched in the same way
 * (reference_text.h), and judged by themselves.
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

/* Looks in `text` for the last tokens of ids[0..n), at least three of them and n_alike.  false:
 * they are not there, or drafting pauses.  The index is that of the text; ids' own (text == ids)
 * takes in those before the last.  Cost: some 50 ns, at most a few microseconds, however long the
 * text. */
bool ebb_prompt_lookup_find(ebb_prompt_lookup *d, ebb_suffix_index *index, const ebb_token *text,
                            const ebb_token *ids, uint32_t n, uint32_t n_alike,
                            ebb_suffix_match *out);
/* Writes what followed there in text[0..n), at most `max` draft tokens, to out; returns how
 * many. */
uint32_t ebb_prompt_lookup_draft(const ebb_prompt_lookup *d, const ebb_token *text, uint32_t n,
                                 ebb_suffix_match *match, ebb_token *out, uint32_t max);

/* A pass with n_drafted draft tokens (0: without) took `seconds`; the first n_accepted of them were
 * accepted. */
void ebb_prompt_lookup_learn(ebb_prompt_lookup *d, uint32_t n_drafted, uint32_t n_accepted,
                             double seconds);

#endif
