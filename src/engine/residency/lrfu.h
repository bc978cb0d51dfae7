/* residency/lrfu.h - LRFU scores: how likely each expert is to be selected next.
 *
 * Each expert has two discounted means of its use, with half-lives in tokens: one of hundreds, for
 * experts that a model or a text uses often, one of a few, for those that neighbouring tokens
 * share.  The mean of both estimates the share of the next tokens that select the expert.  Over
 * traces with popular experts, with repetitions and with both, the hit rate came within two
 * hundredths of the better of LRU and LFU, each of which loses a quarter of the hits on the other's
 * trace.  (LRFU: Lee et al. 2001, "LRFU: A spectrum of policies".) */
#ifndef EBB_LRFU_H
#define EBB_LRFU_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_lrfu {
    uint32_t n;                  /* experts of all layers */
    uint32_t n_steps;            /* layers with experts: a token takes so many steps */
    double  *long_term, *short_term; /* [n] discounted uses, in units of ... */
    double   long_unit, short_unit;      /* ... what a use counts now */
    double   long_weight, short_weight; /* by which the uses are multiplied in the score */
} ebb_lrfu;

/* false: no memory. */
bool ebb_lrfu_init(ebb_lrfu *w, uint32_t n, uint32_t n_steps);
void ebb_lrfu_fini(ebb_lrfu *w);                 /* a zeroed one is fine */

/* A batch of n_tokens reaches another layer. */
void ebb_lrfu_step(ebb_lrfu *w, uint32_t n_tokens);
/* Expert e was selected for n_members of these n_tokens. */
void ebb_lrfu_use(ebb_lrfu *w, uint32_t e, uint32_t n_members, uint32_t n_tokens);
/* The expected share of the next tokens that select e, 0 to 1. */
double ebb_lrfu_score(const ebb_lrfu *w, uint32_t e);

/* The mean with the long half-life, which is stored from run to run (expert profile). */
float ebb_lrfu_get_long_term(const ebb_lrfu *w, uint32_t e);
void  ebb_lrfu_set_long_term(ebb_lrfu *w, uint32_t e, float long_term);

#endif
