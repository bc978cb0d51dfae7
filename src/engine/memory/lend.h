/* memory/lend.h - memory of K and V that the context does not use yet, lent to layers.
 *
 * Where weights are streamed, the plan sets memory aside for K and V of the whole context, which a
 * conversation fills step by step.  Until then layers that would be read for each token stand in
 * it.  Before a block of K and V takes memory that is lent (kv.h), layers go back to the ring, one
 * by one.  So weights read at a full context are those of the plan, and fewer before.
 *
 *     taken by K and V + lent <= plan.kv_bytes        at every moment
 *
 * All from the thread that runs passes, between passes. */
#ifndef EBB_LEND_H
#define EBB_LEND_H
#include <stdbool.h>

#include "ebb/engine.h"

/* The plan's states are brought about: lend what there is. */
void ebb_lend_open(ebb_engine *e);
/* Another plan comes: all goes back, without a word. */
void ebb_lend_close(ebb_engine *e);
/* Whether a layer could be lent memory again: K and V have less, or layers had to go for others. */
bool ebb_lend_is_due(ebb_engine *e, uint64_t *n_bytes);
/* Lend one layer memory, and say so; behind ebb_lend_is_due. */
void ebb_lend_step(ebb_engine *e);

#endif
