/* sample/sampler.h - choosing as somebody else will (ebb/session.h has the sampler itself). */
#ifndef EBB_SAMPLER_H
#define EBB_SAMPLER_H
#include "ebb/session.h"
#include "grammar/constraint.h"

/* How a sampler chooses, at any position. */
typedef struct ebb_sampler_state {
    ebb_sampler_params p;
    uint64_t     key;            /* of the random numbers */
    ebb_constraint *constraint;  /* shared; NULL: none */
    ebb_constraint_state at;     /* where its text is */
} ebb_sampler_state;
#define EBB_SAMPLER_GREEDY ((ebb_sampler_state){ .p = { .top_p = 1, .repeat_penalty = 1 } })

/* Into *mark, which is all 0 or was filled before; for ebb_sampler_state_fini. */
void ebb_sampler_get_state(const ebb_sampler *s, ebb_sampler_state *mark);
void ebb_sampler_state_fini(ebb_sampler_state *mark);
/* s chooses from now on what the sampler of the mark will. */
void ebb_sampler_set_state(ebb_sampler *s, const ebb_sampler_state *mark);
/* From its next choice on s obeys c from its beginning; NULL: it is free.  c stays the caller's. */
void ebb_sampler_set_constraint(ebb_sampler *s, ebb_constraint *c);
/* ebb_sampler_sample, and how likely the token was: its share of what it was chosen from, in
 * *probability. */
ebb_token ebb_sampler_sample_probability(ebb_sampler *s, const float *logits,
                                         const ebb_token *ids, size_t n, double *probability);

#endif
