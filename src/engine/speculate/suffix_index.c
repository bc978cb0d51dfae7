/* An index of a text by its last tokens (suffix_index.h). */
#include "speculate/suffix_index.h"

#include <stdlib.h>

#define MIN_BITS 8u
#define MAX_BITS 20u

bool ebb_suffix_index_init(ebb_suffix_index *x, uint32_t cap)
{
    *x = (ebb_suffix_index){ .cap = cap, .n_bits = MIN_BITS };
    while (x->n_bits < MAX_BITS && (1u << x->n_bits) < cap)
        x->n_bits++;
    x->heads = calloc((size_t)1 << x->n_bits, sizeof *x->heads);
    x->before = calloc((size_t)cap + 1, sizeof *x->before);
    x->hashes = calloc((size_t)cap + 1, sizeof *x->hashes);
    if (x->heads && x->before && x->hashes)
        return true;
    ebb_suffix_index_fini(x);
    return false;
}

void ebb_suffix_index_fini(ebb_suffix_index *x)
{
    free(x->heads);
    free(x->before);
    free(x->hashes);
    *x = (ebb_suffix_index){ 0 };
}

/* Of the tokens before a place; multiplicative hashing (Knuth, TAOCP 6.4). */
static uint32_t hash_before(const ebb_suffix_index *x, const ebb_token *end)
{
    uint64_t h = 0;

    for (uint32_t i = 1; i <= EBB_SUFFIX_MIN; i++)
        h = (h + (uint32_t)end[-(int)i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> (64 - x->n_bits));
}

/* The latest place is the head of its chain, so it is taken out as it was put in. */
void ebb_suffix_index_truncate(ebb_suffix_index *x, uint32_t n)
{
    for (; x->n > n; x->n--)
        if (x->n >= EBB_SUFFIX_MIN)
            x->heads[x->hashes[x->n]] = x->before[x->n];
}

void ebb_suffix_index_follow(ebb_suffix_index *x, const ebb_token *ids, uint32_t n)
{
    ebb_suffix_index_truncate(x, n);
    while (x->n < n) {
        uint32_t place = ++x->n, h;

        if (place < EBB_SUFFIX_MIN)
            continue;
        h = hash_before(x, ids + place);
        x->hashes[place] = h;
        x->before[place] = x->heads[h];
        x->heads[h] = place;
    }
}

/* How many tokens before `place` of text are the last of ids[0..n). */
static uint32_t match_length(const ebb_token *text, uint32_t place, const ebb_token *ids, uint32_t n)
{
    uint32_t most = place < n ? place : n, m = 0;

    while (m < most && m < EBB_SUFFIX_MAX && text[place - 1 - m] == ids[n - 1 - m])
        m++;
    return m;
}

bool ebb_suffix_index_search(const ebb_suffix_index *x, const ebb_token *text, const ebb_token *ids, uint32_t n,
                             uint32_t n_alike, ebb_suffix_match *out)
{
    uint32_t longest = n_alike > EBB_SUFFIX_MIN ? n_alike : EBB_SUFFIX_MIN, n_tried = 0;

    out->n_alike = out->n_places = 0;
    if (n < EBB_SUFFIX_MIN || x->n == 0)
        return false;
    for (uint32_t place = x->heads[hash_before(x, ids + n)]; place > 0 && n_tried < EBB_SUFFIX_TRIED; n_tried++) {
        uint32_t m = text != ids || place < n ? match_length(text, place, ids, n) : 0;

        if (m > longest)
            out->n_places = 0;
        if (m >= longest) {
            out->n_alike = longest = m;
            out->places[out->n_places++] = place;
        }
        place = x->before[place];
    }
    return out->n_places > 0;
}

/* Token i behind an occurrence; from n on it is what was drafted already. */
static ebb_token behind(const ebb_token *text, uint32_t n, uint32_t place, uint32_t i, const ebb_token *out)
{
    return place + i < n ? text[place + i] : out[place + i - n];
}

/* The token i behind most of the places. */
static ebb_token most_frequent(const ebb_token *text, uint32_t n, const uint32_t *places, uint32_t n_places,
                               uint32_t i, const ebb_token *out)
{
    ebb_token best = behind(text, n, places[0], i, out);
    uint32_t most = 0;

    for (uint32_t k = 0; k < n_places && most < n_places - k; k++) {
        ebb_token id = behind(text, n, places[k], i, out);
        uint32_t count = 0;

        for (uint32_t j = k; j < n_places; j++)
            count += behind(text, n, places[j], i, out) == id;
        if (count > most) {
            most = count;
            best = id;
        }
    }
    return best;
}

uint32_t ebb_suffix_index_continue(const ebb_token *text, uint32_t n, ebb_suffix_match *match, ebb_token *out,
                                   uint32_t n_out)
{
    uint32_t *places = match->places;

    for (uint32_t i = 0; i < n_out; i++) {
        uint32_t n_agree = 0;

        out[i] = most_frequent(text, n, places, match->n_places, i, out);
        if (out[i] < 0)
            return i;
        for (uint32_t k = 0; k < match->n_places; k++)
            if (behind(text, n, places[k], i, out) == out[i])
                places[n_agree++] = places[k];
        match->n_places = n_agree;
    }
    return n_out;
}
