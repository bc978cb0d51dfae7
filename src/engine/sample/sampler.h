/* sample/sampler.h - choosing as somebody else will (ebb/session.h has the sampler itself). */
#ifndef EBB_SAMPLER_H
#define EBB_SAMPLER_H
#include "ebb/session.h"

/* How a sampler chooses and the random numbers that come next. */
typedef struct ebb_sampler_mark {
    ebb_sampling p;
    uint64_t     state;
} ebb_sampler_mark;
#define EBB_SAMPLER_LIKELIEST ((ebb_sampler_mark){ .p = { .top_p = 1, .repeat_penalty = 1 } })

ebb_sampler_mark ebb_sampler_get_mark(const ebb_sampler *s);
/* s chooses from now on what the sampler of the mark will. */
void ebb_sampler_set_mark(ebb_sampler *s, const ebb_sampler_mark *mark);
/* ebb_sampler_pick, and how likely the token was: its share of what it was chosen from, in *probability. */
ebb_token ebb_sampler_pick_likely(ebb_sampler *s, const float *logits, const ebb_token *recent, size_t n, double *probability);

#endif
