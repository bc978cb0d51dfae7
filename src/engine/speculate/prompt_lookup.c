/* Prompt lookup (prompt_lookup.h). */
#include "speculate/prompt_lookup.h"

#define MIN_MATCH 3u             /* tokens that must be alike: two are alike by chance in any prose */
#define MAX_MATCH 16u
#define FIRST     2u             /* draft tokens before anything is known */
#define JUDGED    4u             /* passes with a draft before their cost is judged */
#define PAUSE     48u            /* passes until drafting is tried again */
#define SMOOTH    0.1            /* weight of the newest pass in the mean */

void ebb_prompt_lookup_init(ebb_prompt_lookup *d, uint32_t n_most)
{
    *d = (ebb_prompt_lookup){ .n_most = n_most, .n_now = n_most < FIRST ? n_most : FIRST };
}

/* How many tokens before `end` are those before n, at most MAX_MATCH. */
static uint32_t match_length(const ebb_token *ids, uint32_t end, uint32_t n)
{
    uint32_t m = 0;

    while (m < end && m < MAX_MATCH && ids[end - 1 - m] == ids[n - 1 - m])
        m++;
    return m;
}

/* The position behind the longest match of the end of ids, the latest of equals; 0: none of n_alike. */
static uint32_t find_match(const ebb_token *ids, uint32_t n, uint32_t n_alike)
{
    uint32_t best = 0, longest = n_alike - 1;

    for (uint32_t end = n - 1; end >= MIN_MATCH && longest < MAX_MATCH; end--) {
        uint32_t m = ids[end - 1] == ids[n - 1] ? match_length(ids, end, n) : 0;

        if (m > longest) {
            longest = m;
            best = end;
        }
    }
    return best;
}

uint32_t ebb_prompt_lookup_draft(ebb_prompt_lookup *d, const ebb_token *ids, uint32_t n, uint32_t n_alike,
                                 ebb_token *out, uint32_t max)
{
    uint32_t from, n_out = d->n_now < max ? d->n_now : max;

    if (n_out == 0 || n <= MIN_MATCH)
        return 0;
    if (d->n_pause > 0) {
        d->n_pause--;
        return 0;
    }
    from = find_match(ids, n, n_alike > MIN_MATCH ? n_alike : MIN_MATCH);
    if (from == 0)
        return 0;
    for (uint32_t i = 0; i < n_out; i++)         /* where the match runs into its own end, the draft repeats itself */
        out[i] = from + i < n ? ids[from + i] : out[from + i - n];
    return n_out;
}

/* Drafting pauses if passes with a draft yielded fewer tokens a second than passes without. */
static void judge_lookup(ebb_prompt_lookup *d)
{
    if (d->n_measured < JUDGED || d->alone_s <= 0)
        return;
    if (d->draft_pass_tokens * d->alone_s < d->draft_pass_s)
        d->n_pause = PAUSE;
    d->draft_pass_s = d->draft_pass_tokens = 0;
    d->n_measured = 0;
}

void ebb_prompt_lookup_learn(ebb_prompt_lookup *d, uint32_t n_drafted, uint32_t n_accepted, double seconds)
{
    if (n_drafted == 0) {
        d->alone_s = d->alone_s > 0 ? d->alone_s + SMOOTH * (seconds - d->alone_s) : seconds;
        return;
    }
    if (n_accepted == n_drafted)
        d->n_now = 2 * d->n_now < d->n_most ? 2 * d->n_now : d->n_most;
    else
        d->n_now = n_accepted + 1;
    d->draft_pass_s += seconds;
    d->draft_pass_tokens += n_accepted + 1;
    d->n_measured++;
    judge_lookup(d);
}
