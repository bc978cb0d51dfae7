/* How far ahead to guess (pace.h). */
#include "speculate/pace.h"

#define SMOOTH       0.2         /* weight of the newest time in a mean */
#define MEMORY       0.98        /* of older guesses, with each new one */
#define ASSUMED      8.0         /* guesses that the assumed share counts for ... */
#define ASSUMED_BIN  2.0         /* ... and the draft's own probability */
#define MARGIN       1.02        /* by which drafting must be faster */
#define TRIES        4u
#define TRY_GUESSES  2u
#define PAUSE        32u         /* passes of the first rest ... */
#define PAUSE_MOST   512u        /* ... and of the longest */
#define REFRESH      64u         /* every so many rounds a pass goes alone: what it takes changes with depth and disk */
#define FEW          2u          /* columns that take as long as one */
#define CATCH_SHARE  0.25        /* of a guess's time, for a column of text: before it was measured */
#define ANSWER       128.0       /* tokens of a usual answer */
#define TRY_PASSES   8.0         /* catching up may take so many for a try */

void ebb_pace_init(ebb_pace *p, double right, double column_share, double draft_share)
{
    *p = (ebb_pace){ .column_share = column_share, .draft_share = draft_share, .right = right * ASSUMED, .tried = ASSUMED,
                     .pause = PAUSE, .n_tries = TRIES };
}

static double mean_right(const ebb_pace *p)
{
    return p->right / p->tried;
}

uint32_t ebb_pace_best(const ebb_pace *p, uint32_t n_most, double *rate)
{
    double a = mean_right(p), chance = 1, tokens = 1, seconds = p->alone_s;
    uint32_t best = 0;

    *rate = p->alone_s > 0 ? 1 / p->alone_s : 0;
    for (uint32_t k = 1; k <= n_most && p->alone_s > 0; k++) {
        chance *= a;
        tokens += chance;
        seconds += p->column_s + p->draft_s;
        if (tokens / seconds > *rate * (best ? 1 : MARGIN)) {
            *rate = tokens / seconds;
            best = k;
        }
    }
    return best;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* One that pays at all pays with as many as are likely, so n_most is left to the chances. */
uint32_t ebb_pace_begin(ebb_pace *p, uint32_t n_most)
{
    double rate;

    if (p->n_fixed)
        return least(p->n_fixed, n_most);
    if (p->alone_s <= 0 || ++p->n_rounds % REFRESH == 0)
        return 0;
    if (p->n_pause > 0) {
        p->n_pause--;
        return 0;
    }
    if (p->n_tries > 0)
        return least(TRY_GUESSES, n_most);
    if (ebb_pace_best(p, n_most, &rate) > 0) {
        p->pause = PAUSE;
        return n_most;
    }
    p->n_pause = p->pause;
    p->pause = least(2 * p->pause, PAUSE_MOST);
    p->n_tries = TRIES;
    return 0;
}

bool ebb_pace_catches_up(const ebb_pace *p, uint32_t n_behind)
{
    double rate, gain, catch_s = p->catch_s > 0 ? p->catch_s : p->draft_s * CATCH_SHARE;

    if (p->n_fixed || n_behind <= FEW)
        return true;
    (void)ebb_pace_best(p, UINT8_MAX, &rate);
    gain = ANSWER * (p->alone_s - 1 / rate);
    if (p->n_tries > 0 && gain < TRY_PASSES * p->alone_s)
        gain = TRY_PASSES * p->alone_s;
    return n_behind * catch_s <= gain;
}

static uint32_t bin_of(double probability)
{
    return least((uint32_t)(probability * EBB_PACE_BINS), EBB_PACE_BINS - 1);
}

double ebb_pace_chance(const ebb_pace *p, double probability)
{
    uint32_t i = bin_of(probability);

    return (p->bin_right[i] + ASSUMED_BIN * probability) / (p->bin_tried[i] + ASSUMED_BIN);
}

static bool is_decided(const ebb_pace *p)
{
    return p->n_fixed || p->n_tries > 0;
}

bool ebb_pace_is_worth(const ebb_pace *p, double chance)
{
    double rate;

    (void)ebb_pace_best(p, UINT8_MAX, &rate);
    return is_decided(p) || chance > rate * p->column_s;
}

bool ebb_pace_goes_on(const ebb_pace *p, double chance)
{
    double rate;

    (void)ebb_pace_best(p, UINT8_MAX, &rate);
    return is_decided(p) || chance * mean_right(p) > rate * (p->column_s + p->draft_s);
}

/* -- Learning ----------------------------------------------------------------------- */

static void smooth(double *mean, double value)
{
    *mean = *mean > 0 ? *mean + SMOOTH * (value - *mean) : value;
}

/* More columns never take less: then one takes less than was thought. */
void ebb_pace_learn_pass(ebb_pace *p, uint32_t n_cols, double seconds)
{
    bool is_first = p->alone_s <= 0;
    double further_s;

    if (n_cols == 1)
        smooth(&p->alone_s, seconds);
    else if (is_first || seconds < p->alone_s)
        p->alone_s = seconds;
    if (is_first) {
        p->column_s = p->column_share * p->alone_s;
        p->draft_s = p->draft_s > 0 ? p->draft_s : p->draft_share * p->alone_s;
    } else if (n_cols > 1) {
        further_s = (seconds - p->alone_s) / (n_cols - 1);
        p->column_s += SMOOTH * (further_s - p->column_s);
    }
}

void ebb_pace_learn_draft(ebb_pace *p, uint32_t n_cols, double seconds)
{
    if (n_cols <= FEW)
        smooth(&p->draft_s, seconds);
    else
        smooth(&p->catch_s, seconds / n_cols);
}

void ebb_pace_learn_guess(ebb_pace *p, double probability, bool is_right)
{
    uint32_t i = bin_of(probability);

    p->right = p->right * MEMORY + is_right;
    p->tried = p->tried * MEMORY + 1;
    p->bin_right[i] = p->bin_right[i] * MEMORY + is_right;
    p->bin_tried[i] = p->bin_tried[i] * MEMORY + 1;
}

void ebb_pace_end(ebb_pace *p)
{
    if (p->n_tries > 0)
        p->n_tries--;
}
