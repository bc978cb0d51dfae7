/* How many tokens to draft (draft_length.h). */
#include "speculate/draft_length.h"

#include <math.h>

#include "base/log.h"

#define SMOOTH       0.2         /* weight of the newest time in a mean */
#define STALL        4.0         /* times the mean: what a value counts at most, or one stall would be a pace */
#define MEMORY       0.98        /* weight of earlier draft tokens, with each new one */
#define ASSUMED      8.0         /* draft tokens that the assumed acceptance rate counts for ... */
#define ASSUMED_BIN  2.0         /* ... and the drafter's own probability */
#define ASSUMED_RANK 4.0         /* rejected ones, of which the second choice was sampled in this share: */
#define RANK_SHARE   0.3
#define MARGIN       1.02        /* by which drafting must be faster */
#define TRIES        4u
#define TRY_SHARE    0.25        /* of a pass that a try may cost: several tokens where the disk sets the pace */
#define TRY_MOST     8.0         /* tokens of a try; its costs may be no more than predicted */
#define JUDGED       8u          /* rounds of drafting in which it has to bring something */
#define RISK         1.0         /* passes that drafting may lose before it pauses, if it has paid; ... */
#define RISK_NEW     0.75        /* ... if it is new; half as many after each pause, ... */
#define RISK_LEAST   0.125       /* ... but so many */
#define PAUSE        64u         /* passes of the first pause ... */
#define PAUSE_MOST   512u        /* ... and of the longest */
#define REFRESH      64u         /* every so many passes one has no draft: t changes with the context and the disk */
#define FEW          2u          /* tokens that take as long as one */
#define CATCH_SHARE  0.25        /* of a draft token's time, for a token of the sequence: before it was measured */
#define ANSWER       128.0       /* tokens of a usual answer */
#define LOST         2u          /* losses in a row, or ... */
#define LEARNED      64u         /* ... draft tokens that say what a drafter is worth */
#define TRY_PASSES   8.0         /* catching up may take as long as so many passes, for a try */

void ebb_draft_length_init(ebb_draft_length *p, double accept_rate, double token_share, double draft_share)
{
    *p = (ebb_draft_length){ .token_share = token_share, .draft_share = draft_share, .accepted = accept_rate * ASSUMED,
                             .proposed = ASSUMED, .rejected = ASSUMED_RANK,
                             .rank_sampled = { [1] = ASSUMED_RANK * RANK_SHARE }, .risk = RISK_NEW, .pause = PAUSE,
                             .n_tries = TRIES };
}

static double accept_rate_of(const ebb_draft_length *p)
{
    return p->accepted / p->proposed;
}

uint32_t ebb_draft_length_best(const ebb_draft_length *p, uint32_t n_most, double *rate)
{
    double a = accept_rate_of(p), chance = 1, tokens = 1, seconds = p->alone_s;
    uint32_t best = 0;

    *rate = p->alone_s > 0 ? 1 / p->alone_s : 0;
    for (uint32_t k = 1; k <= n_most && p->alone_s > 0; k++) {
        chance *= a;
        tokens += chance;
        seconds += p->token_s + p->draft_s;
        if (tokens / seconds > *rate * (best ? 1 : MARGIN)) {
            *rate = tokens / seconds;
            best = k;
        }
    }
    return best;
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Drafting has lost what it may: it pauses, unless a pause costs as much. */
static void take_loss(ebb_draft_length *p)
{
    p->n_lost++;
    if (!p->takes_layers || p->n_lost >= LOST) {
        p->n_pause = p->pause;
        p->pause = min_of(2 * p->pause, PAUSE_MOST);
    }
    p->risk = p->risk / 2 > RISK_LEAST ? p->risk / 2 : RISK_LEAST;
    p->n_tries = TRIES;
    p->n_judged = 0;
    p->gain_s = 0;
}

/* A try has one token, or as many as cost little. */
static uint32_t tokens_of_try(const ebb_draft_length *p)
{
    double each_s = p->token_s + p->draft_s, n = each_s > 0 ? TRY_SHARE * p->alone_s / each_s : 1;

    return n < 1 ? 1 : (uint32_t)fmin(n, TRY_MOST);
}

/* Where drafting pays at all, the tokens' own probabilities end a draft, so n_most is not cut. */
uint32_t ebb_draft_length_begin(ebb_draft_length *p, uint32_t n_most)
{
    double rate;

    if (p->n_fixed)
        return min_of(p->n_fixed, n_most);
    if (p->alone_s <= 0 || ++p->n_rounds % REFRESH == 0)
        return 0;
    if (p->n_pause > 0) {
        p->n_pause--;
        return 0;
    }
    if (p->n_tries > 0)
        return min_of(tokens_of_try(p), n_most);
    if (ebb_draft_length_best(p, n_most, &rate) > 0)
        return n_most;
    take_loss(p);
    return 0;
}

bool ebb_draft_length_is_sync_worth(const ebb_draft_length *p, uint32_t n_behind)
{
    double rate, gain, catch_s = p->catch_s > 0 ? p->catch_s : p->draft_s * CATCH_SHARE;

    if (p->n_fixed || n_behind <= FEW)
        return true;
    (void)ebb_draft_length_best(p, UINT8_MAX, &rate);
    gain = ANSWER * (p->alone_s - 1 / rate);
    if (p->n_tries > 0 && gain < TRY_PASSES * p->alone_s)
        gain = TRY_PASSES * p->alone_s;
    return n_behind * catch_s <= gain;
}

bool ebb_draft_length_is_known(const ebb_draft_length *p)
{
    return !p->n_fixed && p->alone_s > 0 && (p->n_lost >= LOST || p->n_learned >= LEARNED);
}

bool ebb_draft_length_is_memory_worth(const ebb_draft_length *p, double share)
{
    double rate;

    (void)ebb_draft_length_best(p, UINT8_MAX, &rate);
    if (p->n_lost >= LOST)                       /* the best of what it promises is not what it brings */
        rate = 1 / p->alone_s;
    return rate * p->alone_s * share * MARGIN >= 1;
}

static uint32_t probability_bin(double probability)
{
    return min_of((uint32_t)(probability * EBB_DRAFT_LENGTH_BINS), EBB_DRAFT_LENGTH_BINS - 1);
}

double ebb_draft_length_accept_chance(const ebb_draft_length *p, double probability)
{
    uint32_t i = probability_bin(probability);

    return (p->bin_accepted[i] + ASSUMED_BIN * probability) / (p->bin_proposed[i] + ASSUMED_BIN);
}

static bool is_length_forced(const ebb_draft_length *p)
{
    return p->n_fixed || p->n_tries > 0;
}

bool ebb_draft_length_is_token_worth(const ebb_draft_length *p, double chance)
{
    double rate;

    (void)ebb_draft_length_best(p, UINT8_MAX, &rate);
    return is_length_forced(p) || chance > rate * p->token_s;
}

bool ebb_draft_length_is_next_worth(const ebb_draft_length *p, double chance)
{
    double rate;

    (void)ebb_draft_length_best(p, UINT8_MAX, &rate);
    return is_length_forced(p) || chance * accept_rate_of(p) > rate * (p->token_s + p->draft_s);
}

double ebb_draft_length_rank_chance(const ebb_draft_length *p, uint32_t rank)
{
    return p->rank_sampled[rank] / p->rejected;
}

bool ebb_draft_length_is_branch_worth(const ebb_draft_length *p, double chance, uint32_t n_branches)
{
    double rate;

    if (p->n_fixed)
        return n_branches < p->n_fixed_branches;
    (void)ebb_draft_length_best(p, UINT8_MAX, &rate);
    return p->n_tries == 0 && chance > rate * p->token_s;
}

/* -- Learning ----------------------------------------------------------------------- */

static void smooth_mean(double *mean, double value)
{
    *mean = *mean > 0 ? *mean + SMOOTH * (value - *mean) : value;
}

/* Where the time is that of a disk or of a processor that others use, too, some values say nothing of the next. */
static double without_stall(double mean, double value)
{
    return mean > 0 ? fmin(value, STALL * mean) : value;
}

/* More tokens never take less: if they did, one token alone takes less than was measured.  Nor does a further token
 * take longer than one alone: what is beyond that is a stall. */
void ebb_draft_length_learn_pass(ebb_draft_length *p, uint32_t n_tokens, double seconds)
{
    bool is_first = p->alone_s <= 0;
    double further_s;

    if (n_tokens == 1)
        smooth_mean(&p->alone_s, without_stall(p->alone_s, seconds));
    else if (is_first || seconds < p->alone_s)
        p->alone_s = seconds;
    if (is_first) {
        p->token_s = p->token_share * p->alone_s;
        p->draft_s = p->draft_s > 0 ? p->draft_s : p->draft_share * p->alone_s;
    } else if (n_tokens > 1) {
        further_s = fmin((seconds - p->alone_s) / (n_tokens - 1), p->alone_s);
        p->token_s += SMOOTH * (further_s - p->token_s);
    }
}

void ebb_draft_length_learn_draft(ebb_draft_length *p, uint32_t n_tokens, double seconds)
{
    if (n_tokens <= FEW)
        smooth_mean(&p->draft_s, without_stall(p->draft_s, seconds));
    else
        smooth_mean(&p->catch_s, without_stall(p->catch_s, seconds / n_tokens));
}

void ebb_draft_length_learn_token(ebb_draft_length *p, double probability, bool is_accepted)
{
    uint32_t i = probability_bin(probability);

    p->n_learned++;
    p->accepted = p->accepted * MEMORY + is_accepted;
    p->proposed = p->proposed * MEMORY + 1;
    p->bin_accepted[i] = p->bin_accepted[i] * MEMORY + is_accepted;
    p->bin_proposed[i] = p->bin_proposed[i] * MEMORY + 1;
}

/* A round of drafting saved so many seconds. */
static void judge_drafting(ebb_draft_length *p, double gain_s)
{
    p->n_judged++;
    p->gain_s += gain_s;
    if (p->n_fixed || (p->n_judged < JUDGED && p->gain_s >= -p->risk * p->alone_s))
        return;
    if (p->gain_s < 0) {
        take_loss(p);
        return;
    }
    p->pause = PAUSE;
    p->risk = RISK;
    p->n_lost = 0;
    p->n_judged = 0;
    p->gain_s = 0;
}

void ebb_draft_length_learn_waste(ebb_draft_length *p)
{
    if (p->n_tries > 0)
        p->n_tries--;
    judge_drafting(p, -p->draft_s);
}

/* What was sampled in place of a draft token. */
static void learn_rank(ebb_draft_length *p, uint32_t rank)
{
    p->rejected = p->rejected * MEMORY + 1;
    for (uint32_t i = 1; i < EBB_DRAFT_RANKS; i++)
        p->rank_sampled[i] = p->rank_sampled[i] * MEMORY + (i == rank);
}

void ebb_draft_length_learn(ebb_draft_length *p, const ebb_draft_outcome *o, const char *drafter)
{
    for (uint32_t i = 0; i < o->n_accepted; i++)
        ebb_draft_length_learn_token(p, o->probabilities[i], true);
    if (o->is_rejected && o->n_accepted < o->n) {
        ebb_draft_length_learn_token(p, o->probabilities[o->n_accepted], false);
        learn_rank(p, o->rank);
    }
    p->n_tries -= min_of(p->n_tries, o->n_accepted + (o->n_accepted < o->n));
    if (o->n > 0)
        judge_drafting(p, o->n_gained * p->alone_s - o->n_columns * p->token_s - o->n_steps * p->draft_s);
    ebb_log("draft", "%s: a pass %.1f ms, a further token %.2f, a draft token %.2f; %.0f %% accepted", drafter,
            1e3 * p->alone_s, 1e3 * p->token_s, 1e3 * p->draft_s, 100 * p->accepted / p->proposed);
}
