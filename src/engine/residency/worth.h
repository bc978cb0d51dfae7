/* residency/worth.h - how likely each expert is to be chosen next.
 *
 * Two means of its use, each with a half-life in columns (tokens): one over hundreds, for what a model or a text
 * uses often, one over a few, for what tokens that stand side by side share.  Their mean estimates the share
 * of the next columns that choose the expert.  Over traces with popular experts, with repetitions and with both, it came
 * within two hundredths of the better of LRU and LFU, each of which loses a quarter of the hits on the other's.
 * (Such a mean of discounted uses is LRFU: Lee et al. 2001, "LRFU: A spectrum of policies".) */
#ifndef EBB_WORTH_H
#define EBB_WORTH_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_worth {
    uint32_t n;                  /* experts of all layers */
    uint32_t n_steps;            /* layers with experts: a column takes so many steps */
    double  *often, *late;       /* [n] discounted uses, in units of ... */
    double   often_unit, late_unit;      /* ... what a use counts now */
    double   often_by, late_by;  /* times the uses: their parts of what is expected */
} ebb_worth;

/* false: no memory. */
bool ebb_worth_init(ebb_worth *w, uint32_t n, uint32_t n_steps);
void ebb_worth_fini(ebb_worth *w);               /* a zeroed one is fine */

/* n_cols columns come to another layer. */
void ebb_worth_step(ebb_worth *w, uint32_t n_cols);
/* n_members of these n_cols have chosen expert e. */
void ebb_worth_use(ebb_worth *w, uint32_t e, uint32_t n_members, uint32_t n_cols);
/* The share of the next columns that are expected to choose e. */
double ebb_worth_of(const ebb_worth *w, uint32_t e);

/* What is kept from run to run: the long mean. */
float ebb_worth_get_often(const ebb_worth *w, uint32_t e);
void  ebb_worth_set_often(ebb_worth *w, uint32_t e, float often);

#endif
