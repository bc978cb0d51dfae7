/* plan/pass_rows.h - what the passes of a turn say of this machine's speed.
 *
 * Passes are taken in rows, long enough for the clock of processor time.  A row counts if our
 * threads had their processors nearly all the time; what others took meanwhile is taken off its
 * time.  Of the rows that count the second best speaks for the turn: two that are alike are no
 * accident.  Whether it was quiet is a matter of the whole turn. */
#ifndef EBB_PASS_ROWS_H
#define EBB_PASS_ROWS_H
#include <stdbool.h>
#include <stdint.h>

#include "plan/contention.h"

typedef struct ebb_pass_rows {
    uint32_t n;                  /* passes of the row under way, ... */
    double   s, predicted_s;     /* ... what they took and should take */
    double   best, second;       /* predicted to undisturbed time, of the rows since
                                    ebb_pass_rows_clear; 0: none */
} ebb_pass_rows;

void ebb_pass_rows_clear(ebb_pass_rows *r);
/* The row under way is none: other passes came in between. */
void ebb_pass_rows_break(ebb_pass_rows *r);
/* A pass.  true: there are n_least of them, and the row is long enough to end. */
bool ebb_pass_rows_add(ebb_pass_rows *r, double seconds, double predicted_s, uint32_t n_least);
/* The row has ended.  own_share: of n_threads processors, what this process had; contention: the
 * share of the machine's that others had.  is_judged: a row with less than its share does not
 * count. */
void ebb_pass_rows_end(ebb_pass_rows *r, double own_share, double contention, bool is_judged);
/* How much faster passes were than predicted; 0: no row counts. */
double ebb_pass_rows_factor(const ebb_pass_rows *r);

#endif
