/* How likely each expert is to be chosen next (lrfu.h). */
#include "residency/lrfu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONG_TOKENS 256.0        /* half-lives */
#define SHORT_TOKENS 8.0
#define SHORT_SHARE 0.5
#define LN2        0.6931471805599453
#define UNIT_MAX   1e100

bool ebb_lrfu_init(ebb_lrfu *w, uint32_t n, uint32_t n_steps)
{
    *w = (ebb_lrfu){ .n = n, .n_steps = n_steps ? n_steps : 1, .long_unit = 1, .short_unit = 1 };
    w->long_term = calloc(n + 1, sizeof *w->long_term);
    w->short_term = calloc(n + 1, sizeof *w->short_term);
    ebb_lrfu_step(w, 0);
    return w->long_term && w->short_term;
}

void ebb_lrfu_fini(ebb_lrfu *w)
{
    free(w->long_term);
    free(w->short_term);
    memset(w, 0, sizeof *w);
}

/* Instead of letting all uses count less, the next one counts more. */
static void age_uses(double *uses, double *unit, uint32_t n, double halves)
{
    *unit *= exp2(halves);
    if (*unit < UNIT_MAX)
        return;
    for (uint32_t i = 0; i < n; i++)
        uses[i] /= *unit;
    *unit = 1;
}

void ebb_lrfu_step(ebb_lrfu *w, uint32_t n_tokens)
{
    age_uses(w->long_term, &w->long_unit, w->n, n_tokens / LONG_TOKENS / w->n_steps);
    age_uses(w->short_term, &w->short_unit, w->n, n_tokens / SHORT_TOKENS / w->n_steps);
    w->long_weight = (1 - SHORT_SHARE) * LN2 / LONG_TOKENS / w->long_unit;
    w->short_weight = SHORT_SHARE * LN2 / SHORT_TOKENS / w->short_unit;
}

/* Of many columns at once only the last few are late ones. */
void ebb_lrfu_use(ebb_lrfu *w, uint32_t e, uint32_t n_members, uint32_t n_tokens)
{
    double short_term = SHORT_TOKENS / LN2 / n_tokens, long_term = LONG_TOKENS / LN2 / n_tokens;

    w->long_term[e] += w->long_unit * n_members * (long_term < 1 ? long_term : 1);
    w->short_term[e] += w->short_unit * n_members * (short_term < 1 ? short_term : 1);
}

double ebb_lrfu_score(const ebb_lrfu *w, uint32_t e)
{
    return w->long_weight * w->long_term[e] + w->short_weight * w->short_term[e];
}

float ebb_lrfu_get_long_term(const ebb_lrfu *w, uint32_t e)
{
    return (float)(w->long_term[e] / w->long_unit);
}

void ebb_lrfu_set_long_term(ebb_lrfu *w, uint32_t e, float long_term)
{
    w->long_term[e] = long_term * w->long_unit;
}
