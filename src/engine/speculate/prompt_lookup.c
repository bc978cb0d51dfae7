/* Prompt lookup (prompt_lookup.h). */
#include "speculate/prompt_lookup.h"

#define FIRST     2u             /* draft tokens before anything is known */
#define JUDGED    4u             /* passes with a draft before their cost is judged */
#define PAUSE     48u            /* passes until drafting is tried again ... */
#define PAUSE_MOST 384u          /* ... and at last */
#define SMOOTH    0.1            /* weight of the newest pass in the mean */

void ebb_prompt_lookup_init(ebb_prompt_lookup *d, uint32_t n_most)
{
    *d = (ebb_prompt_lookup){ .n_most = n_most, .n_now = n_most < FIRST ? n_most : FIRST,
                               .pause = PAUSE };
}

bool ebb_prompt_lookup_find(ebb_prompt_lookup *d, ebb_suffix_index *index, const ebb_token *text, const ebb_token *ids,
                            uint32_t n, uint32_t n_alike, ebb_suffix_match *out)
{
    out->n_alike = out->n_places = 0;
    if (d->n_now == 0 || n < EBB_SUFFIX_MIN)
        return false;
    if (d->n_pause > 0) {
        d->n_pause--;
        return false;
    }
    if (text == ids)
        ebb_suffix_index_follow(index, ids, n - 1);
    return ebb_suffix_index_search(index, text, ids, n, n_alike, out);
}

uint32_t ebb_prompt_lookup_draft(const ebb_prompt_lookup *d, const ebb_token *text, uint32_t n,
                                 ebb_suffix_match *match, ebb_token *out, uint32_t max)
{
    return ebb_suffix_index_continue(text, n, match, out, d->n_now < max ? d->n_now : max);
}

/* Drafting pauses if passes with a draft yielded fewer tokens a second than passes without. */
static void judge_lookup(ebb_prompt_lookup *d)
{
    if (d->n_measured < JUDGED || d->alone_s <= 0)
        return;
    if (d->draft_pass_tokens * d->alone_s < d->draft_pass_s) {
        d->n_pause = d->pause;
        d->pause = 2 * d->pause < PAUSE_MOST ? 2 * d->pause : PAUSE_MOST;
    } else {
        d->pause = PAUSE;
    }
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
