/* Experts in slots that they share over time (expert_cache.h). */
#include "residency/expert_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "residency/pin.h"

#define NONE      UINT32_MAX
#define STRIDE    7919u          /* a prime */
#define GOLDEN    2654435769u    /* 2^32 / golden ratio: multiples of it fall evenly (Knuth, TAOCP 3, 6.4) */
#define PREFETCH_PART 4u         /* of the slots, at most, are for prefetched experts */
#define SIZE_LEAST 64u           /* slots of a size, at least: else all are of the largest */

struct ebb_expert_slot {
    uint32_t expert;             /* NONE: free */
    uint32_t n_held;
    uint8_t  size;               /* class */
    bool     is_closed;          /* its memory was given back */
    bool     is_prefetched;      /* since the last settle */
    uint64_t used;               /* clock of the last use */
    char    *at;
    size_t   n_bytes;
};

struct ebb_cached_expert {
    uint32_t first, n;           /* extents */
    uint32_t slot;               /* or NONE */
    uint8_t  size;
    size_t   n_bytes;            /* of a slot that holds it */
};

/* -- Birth and death ---------------------------------------------------------------- */

static bool list_experts(ebb_expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_extents; i++)
        if (c->extents[i].expert > c->n_experts)
            c->n_experts = c->extents[i].expert;
    c->experts = calloc(c->n_experts + 1, sizeof *c->experts);
    for (uint32_t i = 0; i < c->n_extents && c->experts; i++) {
        ebb_cached_expert *x = c->experts + c->extents[i].expert - 1;

        if (c->extents[i].expert == 0)
            continue;
        x->first = x->n++ ? x->first : i;
        x->slot = NONE;
        x->n_bytes += ebb_pin_bytes(&c->extents[i]);
    }
    return c->experts != NULL;
}

/* The largest size below `below`; 0: there is none. */
static size_t next_size(const ebb_expert_cache *c, size_t below)
{
    size_t size = 0;

    for (uint32_t e = 0; e < c->n_experts; e++)
        if (c->experts[e].n_bytes < below && c->experts[e].n_bytes > size)
            size = c->experts[e].n_bytes;
    return size;
}

/* A size serves all that take 15/16 of it or more.  How many experts each has, and how many sizes there are. */
static uint32_t make_sizes(ebb_expert_cache *c, uint32_t n_most, size_t size[EBB_EXPERT_SLOT_SIZES],
                           uint32_t count[EBB_EXPERT_SLOT_SIZES])
{
    uint32_t n = 0;

    for (size_t below = SIZE_MAX; n < n_most && (size[n] = next_size(c, below)) > 0; n++) {
        below = n + 1 == n_most ? 0 : size[n] / 16 * 15;
        count[n] = 0;
        for (uint32_t e = 0; e < c->n_experts; e++)
            if (c->experts[e].n_bytes >= below && c->experts[e].n_bytes <= size[n]) {
                c->experts[e].size = (uint8_t)n;
                count[n]++;
            }
    }
    return n;
}

/* How many slots of each size n_bytes hold: the same share of the experts of each, and no more than there are; false:
 * too few of some. */
static bool share_slots(uint32_t n_sizes, const size_t *size, const uint32_t *count, uint64_t n_bytes,
                        uint32_t *n_slots)
{
    double all = 0;
    bool enough = true;

    for (uint32_t i = 0; i < n_sizes; i++)
        all += (double)size[i] * count[i];
    for (uint32_t i = 0; i < n_sizes; i++) {
        double share = all > 0 ? (double)n_bytes / all : 0;

        n_slots[i] = share >= 1 ? count[i] : (uint32_t)(share * count[i]);
        enough &= n_slots[i] >= SIZE_LEAST || n_slots[i] == count[i];
    }
    return enough;
}

static void lay_out_slots(ebb_expert_cache *c, uint32_t n_sizes, const size_t *size, const uint32_t *n_slots)
{
    char *at = c->memory.data;
    uint32_t i = 0;

    for (uint32_t k = 0; k < n_sizes; k++)
        for (uint32_t n = 0; n < n_slots[k]; n++, at += size[k])
            c->slots[i++] = (ebb_expert_slot){ .expert = NONE, .size = (uint8_t)k, .at = at, .n_bytes = size[k] };
}

static ebb_status alloc_slots(ebb_expert_cache *c, uint64_t n_bytes, ebb_error *err)
{
    size_t size[EBB_EXPERT_SLOT_SIZES], total = 0;
    uint32_t count[EBB_EXPERT_SLOT_SIZES], n_slots[EBB_EXPERT_SLOT_SIZES], n_sizes;

    if (!list_experts(c))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of experts");
    n_sizes = make_sizes(c, EBB_EXPERT_SLOT_SIZES, size, count);
    if (!share_slots(n_sizes, size, count, n_bytes, n_slots)) {
        n_sizes = make_sizes(c, 1, size, count);
        (void)share_slots(n_sizes, size, count, n_bytes, n_slots);
    }
    for (uint32_t i = 0; i < n_sizes; i++) {
        c->n_slots += n_slots[i];
        total += n_slots[i] * size[i];
    }
    if (c->n_slots == 0)
        return EBB_OK;
    c->slots = calloc(c->n_slots, sizeof *c->slots);
    c->waiting = calloc(c->n_experts, sizeof *c->waiting);
    if (!c->slots || !c->waiting || ebb_map_anon(total, true, &c->memory, NULL) != EBB_OK)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu bytes of experts", (unsigned long long)total);
    if (ebb_map_is_huge(&c->memory) && ebb_ring_set_home_region(c->ring, &c->memory, err) != EBB_OK)
        return EBB_NOMEM;
    lay_out_slots(c, n_sizes, size, n_slots);
    c->n_open = c->n_slots;
    c->open_bytes = total;
    return EBB_OK;
}

ebb_status ebb_expert_cache_open(ebb_expert_cache *c, ebb_ring *ring, const ebb_res_extent *extents, uint32_t n_extents,
                          ebb_lrfu *lrfu, uint64_t n_bytes, ebb_error *err)
{
    ebb_status st;

    *c = (ebb_expert_cache){ .ring = ring, .extents = extents, .n_extents = n_extents, .lrfu = lrfu, .clock = 1,
                             .layer_clock = 1, .n_tokens = 1 };
    st = alloc_slots(c, n_bytes, err);
    if (st != EBB_OK)
        ebb_expert_cache_close(c);
    return st;
}

static void empty_slot(ebb_expert_cache *c, ebb_expert_slot *p)
{
    ebb_cached_expert *x = c->experts + p->expert;

    for (uint32_t i = 0; p->expert != NONE && i < x->n; i++)
        ebb_ring_unload(c->ring, x->first + i);
    if (p->expert != NONE)
        x->slot = NONE;
    p->expert = NONE;
    p->is_prefetched = false;
    p->used = 0;
}

/* Nothing more is begun for the slots: of many that are still to be read only those are waited for whose reads are in
 * flight. */
static void cancel_loads(ebb_expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_slots && c->slots; i++) {
        const ebb_cached_expert *x = c->slots[i].expert == NONE ? NULL : c->experts + c->slots[i].expert;

        for (uint32_t k = 0; x && k < x->n; k++)
            ebb_ring_cancel_load(c->ring, x->first + k);
    }
}

void ebb_expert_cache_close(ebb_expert_cache *c)
{
    cancel_loads(c);
    for (uint32_t i = 0; i < c->n_slots && c->slots; i++)
        empty_slot(c, &c->slots[i]);
    if (c->memory.data)
        (void)!ebb_ring_set_home_region(c->ring, NULL, NULL);
    ebb_map_fini(&c->memory);
    free(c->experts);
    free(c->slots);
    free(c->waiting);
    memset(c, 0, sizeof *c);
}

/* -- Places ------------------------------------------------------------------------- */

static bool is_in_use(const ebb_expert_cache *c, const ebb_expert_slot *p)
{
    return p->n_held > 0 || p->is_closed || (p->expert != NONE && (p->is_prefetched || p->used >= c->layer_clock));
}

#define SCORE_FREE   (-2.0)
#define SCORE_UNREAD (-1.0)

/* The lowest goes first.  Experts that nobody has selected yet are read into free slots by chance: those whose reads
 * have not begun go before those that are here. */
static double slot_score(const ebb_expert_cache *c, const ebb_expert_slot *p)
{
    const ebb_cached_expert *x;
    double score;

    if (p->expert == NONE)
        return SCORE_FREE;
    x = c->experts + p->expert;
    score = ebb_lrfu_score(c->lrfu, p->expert);
    return score == 0 && ebb_ring_load_state(c->ring, x->first + x->n - 1) < EBB_LOAD_IN_FLIGHT ? SCORE_UNREAD : score;
}

/* A free slot of that size, or the one of the lowest score; NULL: all are spoken for.  size NONE: any that has
 * something. */
static ebb_expert_slot *find_victim(const ebb_expert_cache *c, uint32_t size)
{
    ebb_expert_slot *least = NULL;
    double least_score = 0;

    for (uint32_t i = 0; i < c->n_slots && least_score > SCORE_FREE; i++) {
        ebb_expert_slot *p = &c->slots[i];
        double score;

        if (is_in_use(c, p) || (size != NONE && p->size != size) ||
            (p->expert != NONE && least_score <= SCORE_UNREAD))
            continue;
        score = slot_score(c, p);
        if (!least || score < least_score) {
            least = p;
            least_score = score;
        }
    }
    return least;
}

void ebb_expert_cache_resize(ebb_expert_cache *c, uint64_t n_bytes)
{
    ebb_expert_slot *p;

    ebb_expert_cache_drop_mispredicted(c);
    c->layer_clock = ++c->clock;                 /* nothing is expected any more */
    while (c->open_bytes > n_bytes && (p = find_victim(c, NONE)) != NULL) {
        empty_slot(c, p);
        p->is_closed = true;
        ebb_ring_give_home_back(c->ring, p->at, p->n_bytes);
        c->open_bytes -= p->n_bytes;
        c->n_open--;
    }
    for (uint32_t i = 0; i < c->n_slots; i++) {
        p = &c->slots[i];
        if (!p->is_closed || c->open_bytes + p->n_bytes > n_bytes)
            continue;
        p->is_closed = false;
        c->open_bytes += p->n_bytes;
        c->n_open++;
    }
}

static void count_read(ebb_expert_cache *c, uint32_t id, bool is_more)
{
    uint64_t n = is_more ? c->extents[id].n_bytes : -c->extents[id].n_bytes;

    c->counts.read_bytes += n;
    c->counts.decode_read_bytes += c->n_tokens == 1 ? n : 0;
}

/* What is missing of an expert that has a slot is read; false: something was not. */
static bool load_expert(ebb_expert_cache *c, const ebb_cached_expert *x, ebb_load_state how)
{
    char *at = c->slots[x->slot].at;
    bool is_here = true;

    for (uint32_t id = x->first; id < x->first + x->n; at += ebb_pin_bytes(&c->extents[id++])) {
        ebb_load_state before = ebb_ring_load(c->ring, id, at, how);

        is_here &= before == EBB_LOAD_LOADED;
        if (before == EBB_LOAD_NONE)
            count_read(c, id, true);
    }
    return is_here;
}

/* Give the expert a slot; false: there is none. */
static bool claim_slot(ebb_expert_cache *c, uint32_t e)
{
    ebb_cached_expert *x = c->experts + e;
    ebb_expert_slot *p;

    if (x->slot != NONE)
        return true;
    p = find_victim(c, x->size);
    if (!p)
        return false;
    empty_slot(c, p);
    p->expert = e;
    x->slot = (uint32_t)(p - c->slots);
    return true;
}

/* -- A layer ------------------------------------------------------------------------ */

void ebb_expert_cache_begin_layer(ebb_expert_cache *c, uint32_t n_tokens)
{
    if (c->n_slots == 0)
        return;
    c->layer_clock = ++c->clock;
    c->n_tokens = n_tokens;
    c->n_waiting = c->i_waiting = 0;
    c->counts.n_tokens += n_tokens == 1;
    ebb_lrfu_step(c->lrfu, n_tokens);
}

/* A slot, and its reads are queued at once; false: there is no slot. */
static bool request_expert(ebb_expert_cache *c, uint32_t e, bool is_counted)
{
    ebb_cached_expert *x = c->experts + e;
    bool was_prefetched, had = x->slot != NONE, is_here;
    ebb_expert_slot *p;

    if (!claim_slot(c, e))
        return false;
    p = &c->slots[x->slot];
    was_prefetched = p->is_prefetched;
    p->is_prefetched = false;
    p->used = ++c->clock;
    is_here = load_expert(c, x, EBB_LOAD_URGENT);
    c->counts.n_hits += is_counted && had && !was_prefetched && is_here;
    c->counts.n_prefetch_hits += is_counted && had && was_prefetched;
    return true;
}

void ebb_expert_cache_announce(ebb_expert_cache *c, uint32_t e, uint32_t n_members, bool is_streamed)
{
    if (c->n_slots == 0)
        return;
    ebb_lrfu_use(c->lrfu, e, n_members, c->n_tokens);
    c->counts.n_chosen += c->n_tokens == 1;
    if (!is_streamed)
        c->counts.n_hits += c->n_tokens == 1;
    else if (!request_expert(c, e, c->n_tokens == 1))
        c->waiting[c->n_waiting++] = e;
}

static void cancel_prefetch(ebb_expert_cache *c, ebb_expert_slot *p)
{
    const ebb_cached_expert *x = c->experts + p->expert;
    bool any = false;

    p->is_prefetched = false;
    p->used = c->layer_clock;                    /* what still comes of it is not waited for in this layer */
    for (uint32_t id = x->first; id < x->first + x->n; id++) {
        if (ebb_ring_load_state(c->ring, id) < EBB_LOAD_IN_FLIGHT)
            count_read(c, id, false);
        ebb_ring_cancel_load(c->ring, id);
        any |= ebb_ring_load_state(c->ring, id) != EBB_LOAD_NONE;
    }
    if (!any)
        empty_slot(c, p);
}

void ebb_expert_cache_drop_mispredicted(ebb_expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_slots && c->n_prefetched_slots > 0; i++)
        if (c->slots[i].is_prefetched)
            cancel_prefetch(c, &c->slots[i]);
    c->n_prefetched_slots = 0;
}

void ebb_expert_cache_prefetch(ebb_expert_cache *c, uint32_t e)
{
    ebb_cached_expert *x = c->experts + e;

    if (c->n_slots == 0 || c->n_prefetched_slots >= c->n_open / PREFETCH_PART || c->n_waiting > 0 || x->slot != NONE ||
        !claim_slot(c, e))
        return;
    c->slots[x->slot].is_prefetched = true;
    c->n_prefetched_slots++;
    c->counts.n_prefetched += c->n_tokens == 1;
    (void)load_expert(c, x, EBB_LOAD_PREFETCH);
}

void ebb_expert_cache_finish(ebb_expert_cache *c, uint32_t e)
{
    if (c->n_slots == 0)
        return;
    if (c->experts[e].slot != NONE)
        c->slots[c->experts[e].slot].used = c->layer_clock - 1;  /* it may go now */
    if (c->i_waiting < c->n_waiting && request_expert(c, c->waiting[c->i_waiting], false))
        c->i_waiting++;
}

/* -- Between passes ----------------------------------------------------------------- */

typedef struct ranked_expert {
    double   score;
    uint32_t order, e;           /* of equal scores, all layers take part */
} ranked_expert;

static int by_score(const void *a, const void *b)
{
    const ranked_expert *x = a, *y = b;

    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->order > y->order) - (x->order < y->order);
}

/* Those that have no slot, the likeliest ones first. */
static uint32_t rank_uncached(const ebb_expert_cache *c, const uint8_t *owner, ranked_expert *list)
{
    uint32_t n = 0;

    for (uint32_t e = 0; e < c->n_experts; e++)
        if (c->experts[e].slot == NONE && owner[c->experts[e].first] == EBB_LAYER_DISK)
            list[n++] = (ranked_expert){ ebb_lrfu_score(c->lrfu, e), e * GOLDEN, e };
    if (n > 0)
        qsort(list, n, sizeof *list, by_score);
    return n;
}

void ebb_expert_cache_fill(ebb_expert_cache *c, const uint8_t *owner)
{
    ranked_expert *list = malloc((c->n_experts + 1) * sizeof *list);
    uint32_t n = list ? rank_uncached(c, owner, list) : 0, next[EBB_EXPERT_SLOT_SIZES] = { 0 };

    for (uint32_t i = 0; i < c->n_slots; i++) {
        ebb_expert_slot *p = &c->slots[i];
        uint32_t k = next[p->size];

        if (p->expert != NONE || p->is_closed)
            continue;
        while (k < n && c->experts[list[k].e].size != p->size)
            k++;
        next[p->size] = k + 1;
        if (k >= n)
            continue;
        p->expert = list[k].e;
        c->experts[p->expert].slot = i;
        (void)load_expert(c, c->experts + p->expert, EBB_LOAD_BACKGROUND);
    }
    free(list);
}

/* Every few experts, so that all layers take part. */
double ebb_expert_cache_read_speed(ebb_expert_cache *c, const uint8_t *owner, uint64_t n_bytes,
                                   const atomic_bool *cancel)
{
    uint32_t n_most = c->n_open / 2, n = 0;
    uint64_t before = c->counts.read_bytes, sum;
    uint32_t *list = malloc((n_most + 1) * sizeof *list);
    double begin = ebb_clock_s();
    const void *ptr;
    bool ok = list != NULL;

    ebb_expert_cache_drop_mispredicted(c);
    c->layer_clock = ++c->clock;
    c->n_tokens = 0;                             /* of no pass */
    for (uint32_t i = 0; i < c->n_experts && n < n_most && c->counts.read_bytes - before < n_bytes && ok; i++) {
        uint32_t e = (uint32_t)((uint64_t)i * STRIDE % c->n_experts);

        if (c->experts[e].slot == NONE && owner[c->experts[e].first] == EBB_LAYER_DISK && request_expert(c, e, false))
            list[n++] = e;
    }
    sum = c->counts.read_bytes - before;
    for (uint32_t i = 0; i < n && ok; i++)
        for (uint32_t k = 0; k < c->experts[list[i]].n && ok; k++)
            ok = ebb_ring_acquire(c->ring, c->experts[list[i]].first + k, cancel, &ptr, NULL) == EBB_OK;
    free(list);
    c->counts.read_bytes = before;
    c->layer_clock = ++c->clock;
    return ok && sum > 0 ? (double)sum / (ebb_clock_s() - begin) : 0;
}

/* -- Use ---------------------------------------------------------------------------- */

ebb_status ebb_expert_cache_acquire(ebb_expert_cache *c, uint32_t id, const atomic_bool *cancel, const void **ptr,
                                    ebb_error *err)
{
    ebb_expert_slot *p;
    ebb_status st;
    uint32_t e;

    if (c->n_slots == 0)                         /* perhaps never opened: all experts are to stay, and are still read */
        return EBB_LIMIT;
    e = c->extents[id].expert - 1;
    if (!claim_slot(c, e))
        return EBB_LIMIT;
    p = &c->slots[c->experts[e].slot];
    p->is_prefetched = false;
    if (p->used < c->layer_clock)
        p->used = ++c->clock;
    (void)load_expert(c, c->experts + e, EBB_LOAD_URGENT);
    st = ebb_ring_acquire(c->ring, id, cancel, ptr, err);
    p->n_held += st == EBB_OK;
    return st;
}

bool ebb_expert_cache_release(ebb_expert_cache *c, uint32_t id)
{
    uint32_t e = c->n_slots ? c->extents[id].expert : 0, slot = e ? c->experts[e - 1].slot : NONE;

    if (slot == NONE || c->slots[slot].n_held == 0)
        return false;
    c->slots[slot].n_held--;
    return true;
}

void ebb_expert_cache_evict(ebb_expert_cache *c, uint32_t id)
{
    uint32_t e = c->n_slots ? c->extents[id].expert : 0, slot = e ? c->experts[e - 1].slot : NONE;

    if (slot != NONE)
        empty_slot(c, &c->slots[slot]);
}
