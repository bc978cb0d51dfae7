/* tokenizer/budget.h - a bound of the work on one text.
 *
 * A vocabulary can make it quadratic: by tokens of 64 KiB that a text almost has, at every byte,
 * or that grow in it byte by byte.  Those that people use spend less than 8 steps on a byte. */
#ifndef EBB_TOKENIZER_BUDGET_H
#define EBB_TOKENIZER_BUDGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps, of 10 ns or less, for a text of n bytes. */
static inline uint64_t ebb_tok_budget(size_t n)
{
    return ((uint64_t)1 << 26) + 32 * (uint64_t)n;
}

/* Take n steps off; false, now and from now on: there were not as many. */
static inline bool ebb_tok_spend(uint64_t *budget, uint64_t n)
{
    bool is_enough = *budget > n;

    *budget = is_enough ? *budget - n : 0;
    return is_enough;
}

#endif
