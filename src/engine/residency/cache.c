/* Experts in places that they take in turn (cache.h). */
#include "residency/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "residency/pin.h"

#define NONE      UINT32_MAX
#define STRIDE    7919u          /* a prime */
#define GUESS_PART  4u           /* of the places, at most, are for guesses */
#define CLASS_LEAST 64u          /* places of a size, at least: else all are of the largest */

struct ebb_cache_place {
    uint32_t expert;             /* NONE: free */
    uint32_t n_held;
    uint8_t  size;               /* class */
    bool     is_closed;          /* its memory was given back */
    bool     is_guess;           /* since the last settle */
    uint64_t used;               /* clock of the last use */
    char    *at;
    size_t   n_bytes;
};

struct ebb_cache_expert {
    uint32_t first, n;           /* extents */
    uint32_t place;              /* or NONE */
    uint8_t  size;
    size_t   n_bytes;            /* of a place that holds it */
};

/* -- Birth and death ---------------------------------------------------------------- */

static bool list_experts(ebb_cache *c)
{
    for (uint32_t i = 0; i < c->n_extents; i++)
        if (c->extents[i].expert > c->n_experts)
            c->n_experts = c->extents[i].expert;
    c->experts = calloc(c->n_experts + 1, sizeof *c->experts);
    for (uint32_t i = 0; i < c->n_extents && c->experts; i++) {
        ebb_cache_expert *x = c->experts + c->extents[i].expert - 1;

        if (c->extents[i].expert == 0)
            continue;
        x->first = x->n++ ? x->first : i;
        x->place = NONE;
        x->n_bytes += ebb_pin_bytes(&c->extents[i]);
    }
    return c->experts != NULL;
}

/* The largest size below `below`; 0: there is none. */
static size_t next_size(const ebb_cache *c, size_t below)
{
    size_t size = 0;

    for (uint32_t e = 0; e < c->n_experts; e++)
        if (c->experts[e].n_bytes < below && c->experts[e].n_bytes > size)
            size = c->experts[e].n_bytes;
    return size;
}

/* A size serves all that take 15/16 of it or more.  How many experts each has, and how many sizes there are. */
static uint32_t make_sizes(ebb_cache *c, uint32_t n_most, size_t size[EBB_CACHE_CLASSES], uint32_t count[EBB_CACHE_CLASSES])
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

/* How many places of each size n_bytes hold: the same share of the experts of each, and no more than there are; false: too few of some. */
static bool share_out(uint32_t n_sizes, const size_t *size, const uint32_t *count, uint64_t n_bytes, uint32_t *n_places)
{
    double all = 0;
    bool enough = true;

    for (uint32_t i = 0; i < n_sizes; i++)
        all += (double)size[i] * count[i];
    for (uint32_t i = 0; i < n_sizes; i++) {
        double share = all > 0 ? (double)n_bytes / all : 0;

        n_places[i] = share >= 1 ? count[i] : (uint32_t)(share * count[i]);
        enough &= n_places[i] >= CLASS_LEAST || n_places[i] == count[i];
    }
    return enough;
}

static void place_all(ebb_cache *c, uint32_t n_sizes, const size_t *size, const uint32_t *n_places)
{
    char *at = c->memory.data;
    uint32_t i = 0;

    for (uint32_t k = 0; k < n_sizes; k++)
        for (uint32_t n = 0; n < n_places[k]; n++, at += size[k])
            c->places[i++] = (ebb_cache_place){ .expert = NONE, .size = (uint8_t)k, .at = at, .n_bytes = size[k] };
}

static ebb_status alloc(ebb_cache *c, uint64_t n_bytes, ebb_error *err)
{
    size_t size[EBB_CACHE_CLASSES], total = 0;
    uint32_t count[EBB_CACHE_CLASSES], n_places[EBB_CACHE_CLASSES], n_sizes;

    if (!list_experts(c))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of experts");
    n_sizes = make_sizes(c, EBB_CACHE_CLASSES, size, count);
    if (!share_out(n_sizes, size, count, n_bytes, n_places)) {
        n_sizes = make_sizes(c, 1, size, count);
        (void)share_out(n_sizes, size, count, n_bytes, n_places);
    }
    for (uint32_t i = 0; i < n_sizes; i++) {
        c->n_places += n_places[i];
        total += n_places[i] * size[i];
    }
    if (c->n_places == 0)
        return EBB_OK;
    c->places = calloc(c->n_places, sizeof *c->places);
    c->waiting = calloc(c->n_experts, sizeof *c->waiting);
    if (!c->places || !c->waiting || ebb_map_anon(total, true, &c->memory, NULL) != EBB_OK)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu bytes of experts", (unsigned long long)total);
    place_all(c, n_sizes, size, n_places);
    c->n_open = c->n_places;
    c->open_bytes = total;
    return EBB_OK;
}

ebb_status ebb_cache_open(ebb_cache *c, ebb_ring *ring, const ebb_res_extent *extents, uint32_t n_extents,
                          ebb_worth *worth, uint64_t n_bytes, ebb_error *err)
{
    ebb_status st;

    *c = (ebb_cache){ .ring = ring, .extents = extents, .n_extents = n_extents, .worth = worth, .clock = 1, .begun = 1, .n_cols = 1 };
    st = alloc(c, n_bytes, err);
    if (st != EBB_OK)
        ebb_cache_close(c);
    return st;
}

static void empty(ebb_cache *c, ebb_cache_place *p)
{
    ebb_cache_expert *x = c->experts + p->expert;

    for (uint32_t i = 0; p->expert != NONE && i < x->n; i++)
        ebb_ring_unload(c->ring, x->first + i);
    if (p->expert != NONE)
        x->place = NONE;
    p->expert = NONE;
    p->is_guess = false;
    p->used = 0;
}

void ebb_cache_close(ebb_cache *c)
{
    for (uint32_t i = 0; i < c->n_places && c->places; i++)
        empty(c, &c->places[i]);
    ebb_map_fini(&c->memory);
    free(c->experts);
    free(c->places);
    free(c->waiting);
    memset(c, 0, sizeof *c);
}

/* -- Places ------------------------------------------------------------------------- */

static bool is_spoken_for(const ebb_cache *c, const ebb_cache_place *p)
{
    return p->n_held > 0 || p->is_closed || (p->expert != NONE && (p->is_guess || p->used >= c->begun));
}

/* A free place of that size, or the one that is worth least; NULL: all are spoken for.  size NONE: any that has something. */
static ebb_cache_place *find_least(const ebb_cache *c, uint32_t size)
{
    ebb_cache_place *least = NULL;
    double least_worth = 0;

    for (uint32_t i = 0; i < c->n_places; i++) {
        ebb_cache_place *p = &c->places[i];
        double worth;

        if (is_spoken_for(c, p) || (size != NONE && p->size != size))
            continue;
        worth = p->expert == NONE ? -1 : ebb_worth_of(c->worth, p->expert);
        if (!least || worth < least_worth) {
            least = p;
            least_worth = worth;
        }
    }
    return least;
}

void ebb_cache_resize(ebb_cache *c, uint64_t n_bytes)
{
    ebb_cache_place *p;

    ebb_cache_settle(c);
    c->begun = ++c->clock;                       /* nothing is expected any more */
    while (c->open_bytes > n_bytes && (p = find_least(c, NONE)) != NULL) {
        empty(c, p);
        p->is_closed = true;
        ebb_map_advise(p->at, p->n_bytes, EBB_ADVISE_DONTNEED);
        c->open_bytes -= p->n_bytes;
        c->n_open--;
    }
    for (uint32_t i = 0; i < c->n_places; i++) {
        p = &c->places[i];
        if (!p->is_closed || c->open_bytes + p->n_bytes > n_bytes)
            continue;
        p->is_closed = false;
        c->open_bytes += p->n_bytes;
        c->n_open++;
    }
}

static void count_read(ebb_cache *c, uint32_t id, bool is_more)
{
    uint64_t n = is_more ? c->extents[id].n_bytes : -c->extents[id].n_bytes;

    c->counts.read_bytes += n;
    c->counts.one_read_bytes += c->n_cols == 1 ? n : 0;
}

/* What is not here of an expert that has a place is read; false: something was not. */
static bool load(ebb_cache *c, const ebb_cache_expert *x, ebb_load_state how)
{
    char *at = c->places[x->place].at;
    bool is_here = true;

    for (uint32_t id = x->first; id < x->first + x->n; at += ebb_pin_bytes(&c->extents[id++])) {
        ebb_load_state before = ebb_ring_load(c->ring, id, at, how);

        is_here &= before == EBB_LOAD_HERE;
        if (before == EBB_LOAD_NONE)
            count_read(c, id, true);
    }
    return is_here;
}

/* Give the expert a place; false: there is none. */
static bool claim(ebb_cache *c, uint32_t e)
{
    ebb_cache_expert *x = c->experts + e;
    ebb_cache_place *p;

    if (x->place != NONE)
        return true;
    p = find_least(c, x->size);
    if (!p)
        return false;
    empty(c, p);
    p->expert = e;
    x->place = (uint32_t)(p - c->places);
    return true;
}

/* -- A layer ------------------------------------------------------------------------ */

void ebb_cache_begin(ebb_cache *c, uint32_t n_cols)
{
    if (c->n_places == 0)
        return;
    c->begun = ++c->clock;
    c->n_cols = n_cols;
    c->n_waiting = c->i_waiting = 0;
    c->counts.n_cols += n_cols == 1;
    ebb_worth_step(c->worth, n_cols);
}

/* A place, and its reads go out at once; false: there is no place. */
static bool take(ebb_cache *c, uint32_t e, bool is_counted)
{
    ebb_cache_expert *x = c->experts + e;
    bool was_guess, had = x->place != NONE, is_here;
    ebb_cache_place *p;

    if (!claim(c, e))
        return false;
    p = &c->places[x->place];
    was_guess = p->is_guess;
    p->is_guess = false;
    p->used = ++c->clock;
    is_here = load(c, x, EBB_LOAD_URGENT);
    c->counts.n_here += is_counted && had && !was_guess && is_here;
    c->counts.n_ahead += is_counted && had && was_guess;
    return true;
}

void ebb_cache_expect(ebb_cache *c, uint32_t e, uint32_t n_members, bool is_streamed)
{
    if (c->n_places == 0)
        return;
    ebb_worth_use(c->worth, e, n_members, c->n_cols);
    c->counts.n_chosen += c->n_cols == 1;
    if (!is_streamed)
        c->counts.n_here += c->n_cols == 1;
    else if (!take(c, e, c->n_cols == 1))
        c->waiting[c->n_waiting++] = e;
}

static void give_up(ebb_cache *c, ebb_cache_place *p)
{
    const ebb_cache_expert *x = c->experts + p->expert;
    bool any = false;

    p->is_guess = false;
    p->used = c->begun;                          /* what still comes of it is not waited for in this layer */
    for (uint32_t id = x->first; id < x->first + x->n; id++) {
        if (ebb_ring_load_state(c->ring, id) < EBB_LOAD_COMING)
            count_read(c, id, false);
        ebb_ring_abandon(c->ring, id);
        any |= ebb_ring_load_state(c->ring, id) != EBB_LOAD_NONE;
    }
    if (!any)
        empty(c, p);
}

void ebb_cache_settle(ebb_cache *c)
{
    for (uint32_t i = 0; i < c->n_places && c->n_guesses > 0; i++)
        if (c->places[i].is_guess)
            give_up(c, &c->places[i]);
    c->n_guesses = 0;
}

void ebb_cache_guess(ebb_cache *c, uint32_t e)
{
    ebb_cache_expert *x = c->experts + e;

    if (c->n_places == 0 || c->n_guesses >= c->n_open / GUESS_PART || c->n_waiting > 0 || x->place != NONE || !claim(c, e))
        return;
    c->places[x->place].is_guess = true;
    c->n_guesses++;
    c->counts.n_guessed += c->n_cols == 1;
    (void)load(c, x, EBB_LOAD_SOON);
}

void ebb_cache_done(ebb_cache *c, uint32_t e)
{
    if (c->n_places == 0)
        return;
    if (c->experts[e].place != NONE)
        c->places[c->experts[e].place].used = c->begun - 1;      /* it may go now */
    if (c->i_waiting < c->n_waiting && take(c, c->waiting[c->i_waiting], false))
        c->i_waiting++;
}

/* -- Between passes ----------------------------------------------------------------- */

typedef struct rank {
    double   worth;
    uint32_t e;
} rank;

static int by_worth(const void *a, const void *b)
{
    const rank *x = a, *y = b;

    return (x->worth < y->worth) - (x->worth > y->worth);
}

void ebb_cache_fill(ebb_cache *c, const uint8_t *owner)
{
    rank *list = malloc((c->n_experts + 1) * sizeof *list);
    uint32_t n = 0, n_free = 0;

    for (uint32_t i = 0; i < c->n_places; i++)
        n_free += c->places[i].expert == NONE && !c->places[i].is_closed;
    for (uint32_t e = 0; e < c->n_experts && n_free > 0 && list; e++)
        if (c->experts[e].place == NONE && owner[c->experts[e].first] == EBB_LAYER_DISK && ebb_worth_of(c->worth, e) > 0)
            list[n++] = (rank){ ebb_worth_of(c->worth, e), e };
    if (n > 0)
        qsort(list, n, sizeof *list, by_worth);
    for (uint32_t i = 0; i < n && n_free > 0; i++) {
        const ebb_cache_place *p = find_least(c, c->experts[list[i].e].size);

        if (!p || p->expert != NONE)
            continue;
        (void)claim(c, list[i].e);
        (void)load(c, c->experts + list[i].e, EBB_LOAD_WANTED);
        n_free--;
    }
    free(list);
}

/* Every few experts, so that all layers take part. */
double ebb_cache_read_speed(ebb_cache *c, const uint8_t *owner, uint64_t n_bytes, const atomic_bool *cancel)
{
    uint32_t n_most = c->n_open / 2, n = 0;
    uint64_t before = c->counts.read_bytes, sum;
    uint32_t *list = malloc((n_most + 1) * sizeof *list);
    double begin = ebb_clock_s();
    const void *ptr;
    bool ok = list != NULL;

    ebb_cache_settle(c);
    c->begun = ++c->clock;
    c->n_cols = 0;                               /* of no pass */
    for (uint32_t i = 0; i < c->n_experts && n < n_most && c->counts.read_bytes - before < n_bytes && ok; i++) {
        uint32_t e = (uint32_t)((uint64_t)i * STRIDE % c->n_experts);

        if (c->experts[e].place == NONE && owner[c->experts[e].first] == EBB_LAYER_DISK && take(c, e, false))
            list[n++] = e;
    }
    sum = c->counts.read_bytes - before;
    for (uint32_t i = 0; i < n && ok; i++)
        for (uint32_t k = 0; k < c->experts[list[i]].n && ok; k++)
            ok = ebb_ring_acquire(c->ring, c->experts[list[i]].first + k, cancel, &ptr, NULL) == EBB_OK;
    free(list);
    c->counts.read_bytes = before;
    c->begun = ++c->clock;
    return ok && sum > 0 ? (double)sum / (ebb_clock_s() - begin) : 0;
}

/* -- Use ---------------------------------------------------------------------------- */

ebb_status ebb_cache_acquire(ebb_cache *c, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err)
{
    uint32_t e = c->extents[id].expert - 1;
    ebb_cache_place *p;
    ebb_status st;

    if (c->n_places == 0 || !claim(c, e))
        return EBB_LIMIT;
    p = &c->places[c->experts[e].place];
    p->is_guess = false;
    if (p->used < c->begun)
        p->used = ++c->clock;
    (void)load(c, c->experts + e, EBB_LOAD_URGENT);
    st = ebb_ring_acquire(c->ring, id, cancel, ptr, err);
    p->n_held += st == EBB_OK;
    return st;
}

bool ebb_cache_release(ebb_cache *c, uint32_t id)
{
    uint32_t e = c->n_places ? c->extents[id].expert : 0, place = e ? c->experts[e - 1].place : NONE;

    if (place == NONE || c->places[place].n_held == 0)
        return false;
    c->places[place].n_held--;
    return true;
}

void ebb_cache_forget(ebb_cache *c, uint32_t id)
{
    uint32_t e = c->n_places ? c->extents[id].expert : 0, place = e ? c->experts[e - 1].place : NONE;

    if (place != NONE)
        empty(c, &c->places[place]);
}
