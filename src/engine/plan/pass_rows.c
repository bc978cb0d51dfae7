/* Rows of passes (pass_rows.h). */
#include "plan/pass_rows.h"

#include <math.h>

#define ROW_S     0.1            /* so long at least, for the clock of processor time */
#define OWN_SHARE 0.85           /* of the processors' time in a row, at least, that was ours */

void ebb_pass_rows_clear(ebb_pass_rows *r)
{
    *r = (ebb_pass_rows){ 0 };
}

void ebb_pass_rows_break(ebb_pass_rows *r)
{
    r->n = 0;
    r->s = r->predicted_s = 0;
}

bool ebb_pass_rows_add(ebb_pass_rows *r, double seconds, double predicted_s, uint32_t n_least)
{
    r->n++;
    r->s += seconds;
    r->predicted_s += predicted_s;
    return r->n >= n_least && r->s >= ROW_S;
}

void ebb_pass_rows_end(ebb_pass_rows *r, double own_share, double contention, bool is_judged)
{
    double lost = is_judged ? fmin(fmax(1 - own_share, 0), contention) : 0;
    double factor = r->predicted_s / (r->s * (1 - lost));

    ebb_pass_rows_break(r);
    if (is_judged && own_share < OWN_SHARE)
        return;
    r->second = fmax(r->second, fmin(factor, r->best));
    r->best = fmax(r->best, factor);
}

double ebb_pass_rows_factor(const ebb_pass_rows *r)
{
    return r->second > 0 ? r->second : r->best;
}
