/* tokenizer/budget.h - a bound of the work on one text, and its end before if somebody stops it.
 *
 * A vocabulary can make it quadratic: by tokens of 64 KiB that a text almost has, at every byte,
 * or that grow in it byte by byte.  Those that people use spend less than 16 steps on a byte. */
#ifndef EBB_TOKENIZER_BUDGET_H
#define EBB_TOKENIZER_BUDGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ebb_tok_budget {
    uint64_t left;               /* steps; spent, the work ends */
    uint64_t ask_at;             /* when so many are left, `stop` is asked */
    bool   (*stop)(void *arg);   /* true: nothing more is to be spent; NULL: nobody stops it */
    void    *arg;
    bool     is_stopped;
} ebb_tok_budget;

enum { EBB_TOK_ASK_STEPS = 1 << 16 };            /* some milliseconds */

/* Steps, of 30 ns or less, for a text of n bytes. */
static inline ebb_tok_budget ebb_tok_budget_of(size_t n, bool (*stop)(void *arg), void *arg)
{
    uint64_t left = ((uint64_t)1 << 26) + 32 * (uint64_t)n;

    return (ebb_tok_budget){ .left = left, .ask_at = left - EBB_TOK_ASK_STEPS, .stop = stop,
                             .arg = arg };
}

static inline void ebb_tok_budget_ask(ebb_tok_budget *b)
{
    b->ask_at = b->left > EBB_TOK_ASK_STEPS ? b->left - EBB_TOK_ASK_STEPS : 0;
    b->is_stopped = b->stop && b->left > 0 && b->stop(b->arg);
    if (b->is_stopped)
        b->left = 0;
}

/* Take n steps off; false, now and from now on: there were not as many, or it was stopped. */
static inline bool ebb_tok_spend(ebb_tok_budget *b, uint64_t n)
{
    if (b->left == 0)
        return false;
    b->left = b->left > n ? b->left - n : 0;
    if (b->left <= b->ask_at)
        ebb_tok_budget_ask(b);
    return b->left > 0;
}

#endif
