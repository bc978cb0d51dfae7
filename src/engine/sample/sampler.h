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
/* A token, and its share of the weights of what it was chosen from. */
typedef struct ebb_choice {
    ebb_token id;
    double    probability;
} ebb_choice;
#define EBB_SAMPLER_CHOICES 4u
/* What ebb_sampler_sample would choose at position n, then what it would choose if the ones before
 * were not there: at most n_most <= EBB_SAMPLER_CHOICES of them to out; returns how many.  The
 * sampler stays where it is. */
uint32_t ebb_sampler_rank(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n,
                          ebb_choice *out, uint32_t n_most);
/* A drafter's text goes on with `id`.  false: the grammar does not allow it. */
bool ebb_sampler_follow(ebb_sampler *s, ebb_token id);

#endif
