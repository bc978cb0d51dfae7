/* How likely each expert is to be chosen next (worth.h). */
#include "residency/worth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OFTEN_COLS 256.0         /* half-lives */
#define LATE_COLS  8.0
#define LATE_SHARE 0.5
#define LN2        0.6931471805599453
#define UNIT_MAX   1e100

bool ebb_worth_init(ebb_worth *w, uint32_t n, uint32_t n_steps)
{
    *w = (ebb_worth){ .n = n, .n_steps = n_steps ? n_steps : 1, .often_unit = 1, .late_unit = 1 };
    w->often = calloc(n + 1, sizeof *w->often);
    w->late = calloc(n + 1, sizeof *w->late);
    ebb_worth_step(w, 0);
    return w->often && w->late;
}

void ebb_worth_fini(ebb_worth *w)
{
    free(w->often);
    free(w->late);
    memset(w, 0, sizeof *w);
}

/* Instead of letting all uses count less, the next one counts more. */
static void step(double *uses, double *unit, uint32_t n, double halves)
{
    *unit *= exp2(halves);
    if (*unit < UNIT_MAX)
        return;
    for (uint32_t i = 0; i < n; i++)
        uses[i] /= *unit;
    *unit = 1;
}

void ebb_worth_step(ebb_worth *w, uint32_t n_cols)
{
    step(w->often, &w->often_unit, w->n, n_cols / OFTEN_COLS / w->n_steps);
    step(w->late, &w->late_unit, w->n, n_cols / LATE_COLS / w->n_steps);
    w->often_by = (1 - LATE_SHARE) * LN2 / OFTEN_COLS / w->often_unit;
    w->late_by = LATE_SHARE * LN2 / LATE_COLS / w->late_unit;
}

/* Of many columns at once only the last few are late ones. */
void ebb_worth_use(ebb_worth *w, uint32_t e, uint32_t n_members, uint32_t n_cols)
{
    double late = LATE_COLS / LN2 / n_cols, often = OFTEN_COLS / LN2 / n_cols;

    w->often[e] += w->often_unit * n_members * (often < 1 ? often : 1);
    w->late[e] += w->late_unit * n_members * (late < 1 ? late : 1);
}

double ebb_worth_of(const ebb_worth *w, uint32_t e)
{
    return w->often_by * w->often[e] + w->late_by * w->late[e];
}

float ebb_worth_get_often(const ebb_worth *w, uint32_t e)
{
    return (float)(w->often[e] / w->often_unit);
}

void ebb_worth_set_often(ebb_worth *w, uint32_t e, float often)
{
    w->often[e] = often * w->often_unit;
}
