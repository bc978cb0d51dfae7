/* residency/lrfu.h - how likely each expert is to be chosen next.
 *
 * Two means of its use, each with a half-life in columns (tokens): one over hundreds, for what a
 * model or a text uses often, one over a few, for what tokens that stand side by side share.  Their
 * mean estimates the share of the next columns that choose the expert.  Over traces with popular
 * experts, with repetitions and with both, it came within two hundredths of the better of LRU and
 * LFU, each of which loses a quarter of the hits on the other's.  (Such a mean of discounted uses
 * is LRFU: Lee et al. 2001, "LRFU: A spectrum of policies".) */
#ifndef EBB_LRFU_H
#define EBB_LRFU_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_lrfu {
    uint32_t n;                  /* experts of all layers */
    uint32_t n_steps;            /* layers with experts: a column takes so many steps */
    double  *long_term, *short_term; /* [n] discounted uses, in units of ... */
    double   long_unit, short_unit;      /* ... what a use counts now */
    double   long_weight, short_weight; /* times the uses: their parts of what is expected */
} ebb_lrfu;

/* false: no memory. */
bool ebb_lrfu_init(ebb_lrfu *w, uint32_t n, uint32_t n_steps);
void ebb_lrfu_fini(ebb_lrfu *w);                 /* a zeroed one is fine */

/* n_tokens columns come to another layer. */
void ebb_lrfu_step(ebb_lrfu *w, uint32_t n_tokens);
/* n_members of these n_tokens have chosen expert e. */
void ebb_lrfu_use(ebb_lrfu *w, uint32_t e, uint32_t n_members, uint32_t n_tokens);
/* The share of the next columns that are expected to choose e. */
double ebb_lrfu_score(const ebb_lrfu *w, uint32_t e);

/* What is kept from run to run: the long mean. */
float ebb_lrfu_get_long_term(const ebb_lrfu *w, uint32_t e);
void  ebb_lrfu_set_long_term(ebb_lrfu *w, uint32_t e, float long_term);

#endif
