/* Choosing a token (ebb/session.h, ebb/grammar.h).
 *
 * Order: repeat penalty, the grammar, top-k, top-p, min-p, temperature.  Candidates are in
 * a heap whose root is the best one, so that of 150,000 tokens only the few
 * that can be chosen are ever sorted.  Ties go to the lower id.
 *
 * Chance is a race: token i arrives at a time that is exponentially distributed with rate w_i, its weight, and the
 * first one is chosen; so each is with probability w_i / sum w (the Gumbel-max trick, Gumbel 1954, in other units).
 * The times are made of a hash of seed, position and token (counter-based random numbers, Salmon et al. 2011), so a
 * drafter that knows the seed runs the same race with weights of its own, and mostly sees the same token win. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ebb/grammar.h"
#include "sample/sampler.h"

enum { MOST_REFUSED = 6 };       /* tokens refused one by one beyond those allowed: then a mask is quicker */

typedef struct candidate {
    float     logit;
    ebb_token id;
} candidate;

struct ebb_sampler {
    ebb_sampler_params p;
    size_t       n_vocab;
    candidate   *heap;           /* [n_vocab], n_heap of them candidates */
    size_t       n_heap;
    candidate   *best;           /* [n_vocab] in order, as far as they were taken out */
    uint64_t     key;            /* of the random numbers: the seed, mixed */
    ebb_constraint *constraint;  /* NULL: none */
    ebb_constraint_state at;
};

ebb_sampler_params ebb_sampler_params_default(void)
{
    return (ebb_sampler_params){
        .temp = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1.0f, .repeat_last_n = 64,
    };
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix_bits(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

ebb_sampler *ebb_sampler_new(const ebb_sampler_params *p, size_t n_vocab)
{
    ebb_sampler *s = n_vocab ? calloc(1, sizeof *s) : NULL;

    if (!s)
        return NULL;
    s->p = p ? *p : ebb_sampler_params_default();
    s->n_vocab = n_vocab;
    s->key = mix_bits(s->p.seed ? s->p.seed : ebb_clock_ns());
    s->heap = calloc(n_vocab, sizeof *s->heap);
    s->best = calloc(n_vocab, sizeof *s->best);
    if (!s->heap || !s->best) {
        ebb_sampler_free(s);
        return NULL;
    }
    return s;
}

void ebb_sampler_free(ebb_sampler *s)
{
    if (!s)
        return;
    ebb_constraint_free(s->constraint);
    free(s->heap);
    free(s->best);
    free(s);
}

void ebb_sampler_get_state(const ebb_sampler *s, ebb_sampler_state *mark)
{
    ebb_constraint *before = mark->constraint;

    *mark = (ebb_sampler_state){ .p = s->p, .key = s->key, .constraint = ebb_constraint_share(s->constraint),
                                 .at = s->at };
    ebb_constraint_free(before);
}

void ebb_sampler_state_fini(ebb_sampler_state *mark)
{
    ebb_constraint_free(mark->constraint);
    mark->constraint = NULL;
}

void ebb_sampler_set_state(ebb_sampler *s, const ebb_sampler_state *mark)
{
    ebb_constraint *before = s->constraint;

    s->p = mark->p;
    s->key = mark->key;
    s->constraint = ebb_constraint_share(mark->constraint);
    s->at = mark->at;
    ebb_constraint_free(before);
}

/* -- The grammar ---------------------------------------------------------------- */

void ebb_sampler_set_constraint(ebb_sampler *s, ebb_constraint *c)
{
    ebb_constraint *before = s->constraint;

    s->constraint = ebb_constraint_share(c);
    if (c)
        s->at = ebb_constraint_begin(c);
    ebb_constraint_free(before);
}

/* A token was not accepted: where the grammar was not followed to it, it may well be of it. */
static ebb_status fail_to_accept(const ebb_sampler *s, ebb_error *err)
{
    ebb_status st = ebb_sampler_check(s, err);

    if (st == EBB_LIMIT || st == EBB_NOMEM)
        return st;
    return EBB_FAIL(err, EBB_USAGE, "the text so far does not follow the grammar");
}

ebb_status ebb_sampler_accept(ebb_sampler *s, const ebb_token *ids, size_t n, ebb_error *err)
{
    ebb_constraint_state at = s->at;

    if (!s->constraint)
        return EBB_OK;
    ebb_constraint_begin_text(s->constraint, n);
    for (size_t i = 0; i < n; i++)
        if (!ebb_constraint_accept(s->constraint, &at, ids[i]))
            return fail_to_accept(s, err);
    ebb_constraint_settle(s->constraint, &at);
    s->at = at;
    return EBB_OK;
}

ebb_status ebb_sampler_check(const ebb_sampler *s, ebb_error *err)
{
    return s->constraint ? ebb_constraint_check(s->constraint, s->at, err) : EBB_OK;
}

/* Leave those that may come next; false: none may. */
static bool keep_allowed(ebb_sampler *s)
{
    size_t n_known, n_kept = 0;
    const uint64_t *mask = ebb_constraint_mask(s->constraint, s->at, &n_known);

    if (n_known > s->n_vocab)
        n_known = s->n_vocab;
    for (size_t word = 0; mask && word < (n_known + 63) / 64; word++)
        for (uint64_t bits = mask[word]; bits; bits &= bits - 1) {
            size_t id = 64 * word + (size_t)__builtin_ctzll(bits);
            if (id < n_known)
                s->heap[n_kept++] = s->heap[id];
        }
    s->n_heap = n_kept;
    return n_kept > 0;
}

/* -- The heap ----------------------------------------------------------------- */

static bool is_better(candidate a, candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sift_down(candidate *heap, size_t n, size_t i)
{
    candidate moved = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_better(heap[child + 1], heap[child]))
            child++;
        if (!is_better(heap[child], moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static candidate pop_candidate(candidate *heap, size_t *n)
{
    candidate root = heap[0];

    heap[0] = heap[--*n];
    sift_down(heap, *n, 0);
    return root;
}

/* -- Choosing ------------------------------------------------------------------ */

static void penalize_repeats(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n)
{
    size_t n_penalized = n < s->p.repeat_last_n ? n : s->p.repeat_last_n;

    for (size_t i = n - n_penalized; i < n; i++) {
        ebb_token id = ids[i];
        candidate *c;

        if (id < 0 || (size_t)id >= s->n_vocab)
            continue;
        c = &s->heap[id];
        if (c->logit == logits[id])              /* once, however often the token occurs */
            c->logit = c->logit > 0 ? c->logit / s->p.repeat_penalty : c->logit * s->p.repeat_penalty;
    }
}

static candidate best_candidate(const ebb_sampler *s)
{
    candidate best = s->heap[0];

    for (size_t i = 1; i < s->n_heap; i++)
        if (is_better(s->heap[i], best))
            best = s->heap[i];
    return best;
}

static double sum_weights(const candidate *c, size_t n, float top)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += exp((double)c[i].logit - top);
    return sum;
}

static void order_heap(ebb_sampler *s)
{
    for (size_t i = s->n_heap / 2; i-- > 0;)
        sift_down(s->heap, s->n_heap, i);
}

/* Of the candidates in order, of which the n_most best are taken out if is_cut, take until top-p or min-p ends it;
 * returns how many.  Top-p is a share of what top-k leaves. */
static size_t cut_candidates(ebb_sampler *s, bool is_cut, size_t n_most)
{
    size_t left = s->n_heap, n;
    float top = is_cut ? s->best[0].logit : s->heap[0].logit;
    double all, sum = 0;

    all = sum_weights(is_cut ? s->best : s->heap, n_most, top);
    for (n = 0; n < n_most; n++) {
        double w;

        if (!is_cut)
            s->best[n] = pop_candidate(s->heap, &left);
        w = exp((double)s->best[n].logit - top);
        if (n > 0 && (w < (double)s->p.min_p || sum >= (double)s->p.top_p * all))
            break;
        sum += w;
    }
    return n;
}

static size_t take_candidates(ebb_sampler *s)
{
    size_t n_most = s->n_heap;
    /* With a grammar in the order of take_allowed also where top-k leaves all: the same sums, to the bit. */
    bool is_cut = s->p.top_k > 0 && (s->p.top_k < n_most || (s->constraint && s->p.top_k == n_most));

    order_heap(s);
    if (is_cut)
        for (n_most = 0; n_most < s->p.top_k; n_most++)
            s->best[n_most] = pop_candidate(s->heap, &s->n_heap);
    return cut_candidates(s, is_cut, n_most);
}

/* The n best of those that the grammar allows, asking about each: the same as by a mask, and quicker where most of
 * the likely ones are allowed.  How many: less than n if most_refused more are refused than that, or all were asked. */
static size_t take_allowed(ebb_sampler *s, size_t n, size_t most_refused)
{
    size_t n_taken = 0, n_refused = 0;

    order_heap(s);
    while (n_taken < n && n_refused <= n_taken + most_refused && s->n_heap > 0) {
        candidate next = pop_candidate(s->heap, &s->n_heap);
        if (ebb_constraint_allows(s->constraint, s->at, next.id))
            s->best[n_taken++] = next;
        else
            n_refused++;
    }
    return n_taken;
}

/* All candidates are in the heap, not yet sorted. */
static void fill_candidates(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n)
{
    for (size_t i = 0; i < s->n_vocab; i++)
        s->heap[i] = (candidate){ .logit = isnan(logits[i]) ? -INFINITY : logits[i], .id = (ebb_token)i };
    if (s->p.repeat_penalty != 1.0f)
        penalize_repeats(s, logits, ids, n);
    s->n_heap = s->n_vocab;
}

/* Exponentially distributed with rate 1, by the position's key and the token: never 0 or infinite. */
static double arrival(uint64_t key, ebb_token id)
{
    double uniform = ((double)(mix_bits(key + (uint64_t)id) >> 12) + 0.5) * 0x1p-52;

    return -log(uniform);
}

/* Of the best the first n to arrive at position pos, and their shares of all weights; how many did. */
static uint32_t race_candidates(ebb_sampler *s, size_t n_best, size_t pos, ebb_choice *out, uint32_t n)
{
    uint64_t key = mix_bits(s->key + pos);
    double sum = 0, when[EBB_SAMPLER_CHOICES];
    uint32_t n_out = 0;

    for (size_t i = 0; i < n_best; i++) {
        double weight = exp(((double)s->best[i].logit - s->best[0].logit) / s->p.temp);
        double arrives = arrival(key, s->best[i].id) / weight;
        uint32_t at = n_out;

        sum += weight;
        if (!(arrives < INFINITY))
            continue;
        for (; at > 0 && arrives < when[at - 1]; at--)
            if (at < n) {
                when[at] = when[at - 1];
                out[at] = out[at - 1];
            }
        if (at == n)
            continue;
        when[at] = arrives;
        out[at] = (ebb_choice){ s->best[i].id, weight };
        n_out += n_out < n;
    }
    for (uint32_t i = 0; i < n_out; i++)
        out[i].probability /= sum;
    return n_out;
}

static ebb_token sample_candidate(ebb_sampler *s, size_t n_best, size_t pos)
{
    ebb_choice first;

    return race_candidates(s, n_best, pos, &first, 1) > 0 ? first.id : s->best[0].id;
}

/* The n likeliest, in a heap not yet sorted, and their shares of the weights at temperature 1. */
static uint32_t rank_candidates(ebb_sampler *s, ebb_choice *out, uint32_t n)
{
    float top = best_candidate(s).logit;
    double sum = sum_weights(s->heap, s->n_heap, top);
    uint32_t n_out = 0;

    order_heap(s);
    while (n_out < n && s->n_heap > 0 && s->heap[0].logit > -INFINITY) {
        candidate next = pop_candidate(s->heap, &s->n_heap);

        out[n_out++] = (ebb_choice){ next.id, exp((double)next.logit - top) / sum };
    }
    return n_out;
}

/* Of the n_best that were taken out, in order. */
static ebb_token choose_taken(ebb_sampler *s, size_t n_best, size_t pos)
{
    return s->p.temp > 0 ? sample_candidate(s, cut_candidates(s, true, n_best), pos) : s->best[0].id;
}

static bool is_too_much_work(const ebb_sampler *s)
{
    return ebb_constraint_check(s->constraint, s->at, NULL) == EBB_LIMIT;
}

/* One of those that the grammar allows.  Where their mask is too much work, the likeliest may still be found. */
static ebb_token choose_allowed(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n)
{
    size_t n_wanted = s->p.temp > 0 ? s->p.top_k : 1, n_taken;

    if (n_wanted > 0 && !ebb_constraint_wants_mask(s->constraint, s->at)) {
        n_taken = take_allowed(s, n_wanted, MOST_REFUSED);
        if (n_taken == n_wanted && s->n_heap > 0 && !is_too_much_work(s))
            return choose_taken(s, n_taken, n);
        fill_candidates(s, logits, ids, n);
    }
    if (keep_allowed(s))
        return s->p.temp > 0 ? sample_candidate(s, take_candidates(s), n) : best_candidate(s).id;
    if (n_wanted == 0 || !is_too_much_work(s))
        return EBB_TOKEN_NONE;
    ebb_constraint_begin_choice(s->constraint);
    fill_candidates(s, logits, ids, n);
    n_taken = take_allowed(s, n_wanted, s->n_vocab);
    return n_taken > 0 && !is_too_much_work(s) ? choose_taken(s, n_taken, n) : EBB_TOKEN_NONE;
}

/* A drafter may have been ahead meanwhile: what it left behind is forgotten before the choice, too. */
static ebb_token sample_allowed(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n)
{
    ebb_token id;

    ebb_constraint_settle(s->constraint, &s->at);
    ebb_constraint_begin_choice(s->constraint);
    id = choose_allowed(s, logits, ids, n);
    if (id != EBB_TOKEN_NONE && !ebb_constraint_accept(s->constraint, &s->at, id))
        id = EBB_TOKEN_NONE;
    if (id != EBB_TOKEN_NONE)                    /* else ebb_sampler_check has to know why */
        ebb_constraint_settle(s->constraint, &s->at);
    return id;
}

ebb_token ebb_sampler_sample(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n)
{
    fill_candidates(s, logits, ids, n);
    if (s->constraint)
        return sample_allowed(s, logits, ids, n);
    return s->p.temp > 0 ? sample_candidate(s, take_candidates(s), n) : best_candidate(s).id;
}

uint32_t ebb_sampler_rank(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n, ebb_choice *out,
                          uint32_t n_most)
{
    fill_candidates(s, logits, ids, n);
    if (s->constraint)
        ebb_constraint_begin_choice(s->constraint);
    if (s->constraint && !keep_allowed(s))
        return 0;
    /* None of a drafter's candidates may be allowed by the grammar. */
    if (s->constraint && best_candidate(s).logit == -INFINITY)
        return 0;
    return s->p.temp > 0 ? race_candidates(s, take_candidates(s), n, out, n_most) : rank_candidates(s, out, n_most);
}

bool ebb_sampler_follow(ebb_sampler *s, ebb_token id)
{
    if (!s->constraint)
        return true;
    ebb_constraint_begin_choice(s->constraint);
    return ebb_constraint_accept(s->constraint, &s->at, id);
}
