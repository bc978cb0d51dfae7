/* Whose the bytes of a group are, and how that changes (residency.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "residency/residency_impl.h"

uint64_t ebb_res_group_bytes(ebb_res *r, uint32_t i)
{
    const ebb_res_group *g = &r->groups[i];
    uint64_t sum = 0;

    pthread_mutex_lock(&r->lock);
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        sum += r->resident[k] ? r->extents[k].n_bytes : 0;
    pthread_mutex_unlock(&r->lock);
    return sum;
}

ebb_layer_state ebb_res_state(ebb_res *r, uint32_t i)
{
    ebb_layer_state state;

    pthread_mutex_lock(&r->lock);
    state = r->groups[i].state;
    pthread_mutex_unlock(&r->lock);
    return state;
}

static uint32_t count_owned(const ebb_res *r, const ebb_res_group *g, ebb_layer_state owner)
{
    uint32_t n = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        n += r->owner[i] == owner;
    return n;
}

static bool is_loading(const ebb_res *r, const ebb_res_group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (r->home[i] && !ebb_res_is_loaded(r, i))
            return true;
    return false;
}

/* Of a file's own pages only those are in memory that the page cache has: by a page of each of some extents. */
static ebb_layer_state mapped_state(const ebb_res *r, const ebb_res_group *g)
{
    enum { LOOKS = 8 };
    uint32_t n = g->n < LOOKS ? g->n : LOOKS, n_there = 0;

    for (uint32_t i = 0; i < n; i++) {
        const ebb_res_extent *x = &r->extents[g->first + i * g->n / n];

        n_there += r->files[x->part].fd < 0 ||
                   ebb_map_is_cached((const char *)ebb_res_mapped_at(r, g->first + i * g->n / n) + x->n_bytes / 2);
    }
    return n_there == n ? EBB_LAYER_MAPPED : n_there > 0 ? EBB_LAYER_PARTLY : EBB_LAYER_DISK;
}

/* As far as the tables say; what is lent memory is there, too. */
static uint8_t shown_state(const ebb_res *r, const ebb_res_group *g)
{
    uint32_t n_disk = count_owned(r, g, EBB_LAYER_DISK), n_pinned = count_owned(r, g, EBB_LAYER_PINNED);

    if (g->n > 0 && n_pinned == g->n)
        return EBB_LAYER_PINNED;
    return (uint8_t)(n_disk > 0 && n_disk < g->n ? EBB_LAYER_PARTLY : g->state);
}

uint32_t ebb_res_states(ebb_res *r, uint8_t *out, uint32_t n)
{
    uint32_t n_cold = 0;

    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < n && i < r->n_groups; i++) {
        const ebb_res_group *g = &r->groups[i];

        out[i] = shown_state(r, g);
        if (out[i] == EBB_LAYER_MAPPED) {
            out[i] = (uint8_t)mapped_state(r, g);
            n_cold += out[i] != EBB_LAYER_MAPPED;
        }
        if (is_loading(r, g) || (out[i] <= EBB_LAYER_PARTLY && r->ring && ebb_ring_has(r->ring, g->first, g->n)))
            out[i] = EBB_LAYER_READING;
    }
    pthread_mutex_unlock(&r->lock);
    return n_cold;
}

static bool is_memory_model(const ebb_res *r, const ebb_res_group *g)
{
    return r->files[r->extents[g->first].part].fd < 0;
}

/* Extents of the group that stay, to `list`. */
static uint32_t list_resident(const ebb_res *r, const ebb_res_group *g, ebb_res_extent *list)
{
    uint32_t n = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (r->resident[i])
            list[n++] = r->extents[i];
    return n;
}

/* Memory for what stays of the group. */
static ebb_status make_copy(const ebb_res *r, const ebb_res_group *g, ebb_map *copy, ebb_error *err)
{
    uint64_t sum = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        sum += r->resident[i] ? ebb_pin_bytes(&r->extents[i]) : 0;
    return ebb_map_anon((size_t)sum, true, copy, err);
}

/* Read what stays of the group into *copy. */
static ebb_status pin_group(ebb_res *r, const ebb_res_group *g, ebb_map *copy, ebb_error *err)
{
    ebb_res_extent *list = malloc(g->n * sizeof *list);
    uint32_t n;
    char *to;
    ebb_status st;

    memset(copy, 0, sizeof *copy);
    if (!list)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %u tensors", g->n);
    n = list_resident(r, g, list);
    st = make_copy(r, g, copy, err);
    if (st == EBB_OK && !is_memory_model(r, g) && n > 0)
        st = ebb_pin_read(r->ops, r->files, r->n_files, list, n, copy->data, r->headroom, r->cancel, err);
    to = copy->data;
    for (uint32_t i = 0; i < n && st == EBB_OK && is_memory_model(r, g); i++) {
        memcpy((char *)(uintptr_t)ebb_pin_address(&list[i], to), r->bases[list[i].part] + list[i].offset,
               (size_t)list[i].n_bytes);
        to += ebb_pin_bytes(&list[i]);
    }
    if (st != EBB_OK)
        ebb_map_fini(copy);
    free(list);
    return st;
}

/* Drops pages that the mapping read into the page cache. */
static void unmap_pages(ebb_res *r, const ebb_res_group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->owner[i] != EBB_LAYER_MAPPED)
            continue;
        ebb_map_advise((char *)r->files[x->part].map.data + x->offset, (size_t)x->n_bytes, EBB_ADVISE_DONTNEED);
        ebb_file_drop_cache(r->files[x->part].fd, x->offset, x->n_bytes);
    }
}

static void count_bytes(ebb_res *r, uint32_t id, bool more)
{
    uint64_t *sum = r->owner[id] == EBB_LAYER_PINNED ? &r->pinned_bytes : &r->mapped_bytes;
    uint64_t n = r->owner[id] == EBB_LAYER_PINNED ? ebb_pin_bytes(&r->extents[id]) : r->extents[id].n_bytes;

    if (r->owner[id] != EBB_LAYER_DISK)
        *sum = more ? *sum + n : *sum - n;
}

static void set_lent(ebb_res *r, uint32_t id, bool is_lent)
{
    uint64_t n = ebb_pin_bytes(&r->extents[id]), n_read = r->extents[id].n_bytes;

    if (r->is_lent[id] == is_lent)
        return;
    r->is_lent[id] = is_lent;
    r->lent_bytes = is_lent ? r->lent_bytes + n : r->lent_bytes - n;
    r->lent_read_bytes = is_lent ? r->lent_read_bytes + n_read : r->lent_read_bytes - n_read;
}

/* Sets the owner and address of an extent; the lock is held. */
static void set_owner(ebb_res *r, uint32_t id, ebb_layer_state owner, const char *at)
{
    set_lent(r, id, false);
    count_bytes(r, id, false);
    if (r->owner[id] == EBB_LAYER_DISK && owner != EBB_LAYER_DISK)
        ebb_expert_cache_evict(&r->cache, id);
    if (r->home[id] && r->ring)
        ebb_ring_unload(r->ring, id);
    r->home[id] = NULL;
    if (r->owner[id] == EBB_LAYER_DISK && owner != EBB_LAYER_DISK && r->ring)
        ebb_ring_stream(r->ring, id, false);
    if (r->owner[id] != EBB_LAYER_DISK && owner == EBB_LAYER_DISK)
        ebb_ring_stream(r->ring, id, true);
    r->owner[id] = (uint8_t)owner;
    r->at[id] = at;
    count_bytes(r, id, true);
}

/* The address space stays, as that of a group that is let go. */
static void drop_lent_pages(ebb_res_group *g)
{
    if (g->lent.data)
        ebb_map_advise(g->lent.data, g->lent.n_bytes, EBB_ADVISE_DONTNEED);
}

/* `is_async`: the copy is still to be read. */
static void enter_state(ebb_res *r, ebb_res_group *g, ebb_layer_state state, ebb_map copy, bool is_async)
{
    char *to = copy.data;

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        if (state == EBB_LAYER_DISK || !r->resident[i]) {
            set_owner(r, i, EBB_LAYER_DISK, NULL);
        } else if (state == EBB_LAYER_MAPPED) {
            set_owner(r, i, EBB_LAYER_MAPPED, ebb_res_mapped_at(r, i));
        } else {
            set_owner(r, i, EBB_LAYER_PINNED, is_async ? NULL : ebb_pin_address(&r->extents[i], to));
            r->home[i] = is_async ? to : NULL;
            if (is_async)
                (void)ebb_ring_load(r->ring, i, to, EBB_LOAD_BACKGROUND);
            to += ebb_pin_bytes(&r->extents[i]);
        }
    }
    ebb_map_fini(&g->copy);
    g->copy = copy;
    g->state = state;
    drop_lent_pages(g);
}

/* Whether part of the group is left to the ring in that state. */
static bool is_partly_streamed(const ebb_res *r, const ebb_res_group *g, ebb_layer_state state)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (state == EBB_LAYER_DISK || !r->resident[i])
            return true;
    return false;
}

static ebb_status change_state(ebb_res *r, uint32_t i, ebb_layer_state state, bool is_async, ebb_error *err)
{
    ebb_res_group *g = &r->groups[i];
    ebb_map copy = { 0 };
    ebb_status st = EBB_OK;

    if (g->n == 0 || ebb_res_state(r, i) == state)
        return EBB_OK;
    if (state == EBB_LAYER_READING || state == EBB_LAYER_PARTLY ||
        (is_partly_streamed(r, g, state) && (!r->ring || is_memory_model(r, g))))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "weights can only be streamed from a file, through a ring");
    if (state == EBB_LAYER_PINNED)
        st = is_async ? make_copy(r, g, &copy, err) : pin_group(r, g, &copy, err);
    if (st != EBB_OK)
        return st;
    pthread_mutex_lock(&r->lock);
    assert(g->n_acquired == 0);
    if (!is_memory_model(r, g))
        unmap_pages(r, g);
    enter_state(r, g, state, copy, is_async);
    EBB_INVARIANT(ebb_res_check_rules_locked(r));
    pthread_mutex_unlock(&r->lock);
    return EBB_OK;
}

ebb_status ebb_res_set_state(ebb_res *r, uint32_t i, ebb_layer_state state, ebb_error *err)
{
    return change_state(r, i, state, false, err);
}

ebb_status ebb_res_pin_async(ebb_res *r, uint32_t i, ebb_error *err)
{
    return change_state(r, i, EBB_LAYER_PINNED, r->ring && r->groups[i].n > 0 && !is_memory_model(r, &r->groups[i]),
                        err);
}

static bool is_in_memory(const ebb_res *r, const ebb_res_group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (!r->at[i])
            return false;
    return true;
}

void ebb_res_map_unread_locked(ebb_res *r)
{
    for (uint32_t k = 0; k < r->n_groups; k++) {
        ebb_res_group *g = &r->groups[k];

        if (g->n == 0 || is_in_memory(r, g))
            continue;
        for (uint32_t i = g->first; i < g->first + g->n; i++)
            set_owner(r, i, EBB_LAYER_MAPPED, ebb_res_mapped_at(r, i));
        drop_lent_pages(g);
        if (g->copy.data)
            ebb_map_advise(g->copy.data, g->copy.n_bytes, EBB_ADVISE_DONTNEED);
        g->state = EBB_LAYER_MAPPED;
    }
}

/* The address space stays until the group is placed again: a late thread may still read there, zeroes by then. */
static uint64_t evict_group(ebb_res *r, ebb_res_group *g)
{
    ebb_map copy = g->copy;

    g->copy = (ebb_map){ 0 };
    enter_state(r, g, EBB_LAYER_DISK, copy, false);
    ebb_map_advise(copy.data, copy.n_bytes, EBB_ADVISE_DONTNEED);
    return copy.n_bytes;
}

static bool can_evict(const ebb_res *r, const ebb_res_group *g)
{
    return r->ring && g->n > 0 && g->state == EBB_LAYER_PINNED && g->copy.data && g->n_acquired == 0 &&
           !is_memory_model(r, g);
}

static uint64_t count_lent(const ebb_res *r, const ebb_res_group *g)
{
    uint64_t sum = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        sum += r->is_lent[i] ? ebb_pin_bytes(&r->extents[i]) : 0;
    return sum;
}

static uint64_t take_back_lent(ebb_res *r, ebb_res_group *g)
{
    uint64_t had = count_lent(r, g);

    if (had == 0)
        return 0;
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (r->is_lent[i])
            set_owner(r, i, EBB_LAYER_DISK, NULL);
    drop_lent_pages(g);
    EBB_INVARIANT(ebb_res_check_rules_locked(r));
    return had;
}

/* What is lent goes before what stays; what is being read is waited for, at a disk's speed, so in the first rounds that
 * stays. */
uint64_t ebb_res_evict(ebb_res *r, uint64_t n_bytes, uint32_t *n_groups)
{
    uint64_t freed = 0;

    *n_groups = 0;
    for (uint32_t k = 4 * r->n_groups; k-- > 0 && freed < n_bytes;) {
        ebb_res_group *g = &r->groups[k % r->n_groups];
        uint32_t round = 3 - k / r->n_groups;    /* lent, staying; the same of what is being read */
        uint64_t n = 0;

        pthread_mutex_lock(&r->lock);            /* anew for each: a pass waits for one at most */
        if (r->ring && (round >= 2 || !ebb_ring_is_in_flight(r->ring, g->first, g->n)) && g->n_acquired == 0)
            n = round % 2 == 0 ? take_back_lent(r, g) : can_evict(r, g) ? evict_group(r, g) : 0;
        EBB_INVARIANT(ebb_res_check_rules_locked(r));
        pthread_mutex_unlock(&r->lock);
        *n_groups += n > 0;
        freed += n;
    }
    return freed;
}

/* -- Memory that is lent ------------------------------------------------------------ */

static bool can_be_lent(const ebb_res *r, uint32_t id)
{
    return r->owner[id] == EBB_LAYER_DISK && !r->resident[id] && r->extents[id].is_certain;
}

uint64_t ebb_res_lendable_bytes(ebb_res *r, uint32_t i)
{
    const ebb_res_group *g = &r->groups[i];
    uint64_t sum = 0;

    pthread_mutex_lock(&r->lock);
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        sum += can_be_lent(r, k) ? ebb_pin_bytes(&r->extents[k]) : 0;
    pthread_mutex_unlock(&r->lock);
    return sum;
}

/* As many as fit, and what they take with what is lent already. */
static uint32_t count_fitting(const ebb_res *r, const ebb_res_group *g, uint64_t n_bytes, uint64_t *sum)
{
    uint32_t n = 0;

    *sum = 0;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        if (!can_be_lent(r, i))
            continue;
        if (*sum + ebb_pin_bytes(&r->extents[i]) > n_bytes)
            break;
        *sum += ebb_pin_bytes(&r->extents[i]);
        n++;
    }
    return n;
}

ebb_status ebb_res_lend(ebb_res *r, uint32_t i_group, uint64_t n_bytes, uint64_t *lent, ebb_error *err)
{
    ebb_res_group *g = &r->groups[i_group];
    ebb_map copy = { 0 };
    uint32_t n;
    char *to;
    ebb_status st;

    *lent = 0;
    if (!r->ring || g->n == 0 || is_memory_model(r, g))
        return EBB_OK;
    (void)ebb_res_take_back(r, i_group);         /* one copy for all of it */
    n = count_fitting(r, g, n_bytes, lent);
    st = n > 0 ? ebb_map_anon((size_t)*lent, true, &copy, err) : EBB_OK;
    if (st != EBB_OK || n == 0)
        return st;
    pthread_mutex_lock(&r->lock);
    assert(g->n_acquired == 0);
    to = copy.data;
    for (uint32_t i = g->first; n > 0; i++) {
        if (!can_be_lent(r, i))
            continue;
        set_owner(r, i, EBB_LAYER_PINNED, NULL);
        r->home[i] = to;
        set_lent(r, i, true);
        (void)ebb_ring_load(r->ring, i, to, EBB_LOAD_BACKGROUND);
        to += ebb_pin_bytes(&r->extents[i]);
        n--;
    }
    ebb_map_fini(&g->lent);
    g->lent = copy;
    EBB_INVARIANT(ebb_res_check_rules_locked(r));
    pthread_mutex_unlock(&r->lock);
    return EBB_OK;
}

uint64_t ebb_res_take_back(ebb_res *r, uint32_t i_group)
{
    uint64_t had;

    pthread_mutex_lock(&r->lock);
    assert(r->groups[i_group].n_acquired == 0);
    had = take_back_lent(r, &r->groups[i_group]);
    pthread_mutex_unlock(&r->lock);
    return had;
}

uint64_t ebb_res_lent_bytes(ebb_res *r, uint32_t i_group)
{
    uint64_t sum;

    pthread_mutex_lock(&r->lock);
    sum = count_lent(r, &r->groups[i_group]);
    pthread_mutex_unlock(&r->lock);
    return sum;
}

uint64_t ebb_res_lent_read_bytes(ebb_res *r)
{
    uint64_t sum;

    pthread_mutex_lock(&r->lock);
    sum = r->lent_read_bytes;
    pthread_mutex_unlock(&r->lock);
    return sum;
}

double ebb_res_missing_bytes(ebb_res *r, double expert_share)
{
    double sum = 0;

    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->resident[i] && r->owner[i] == EBB_LAYER_DISK)
            sum += (double)r->extents[i].n_bytes * (r->extents[i].is_certain ? 1 : expert_share);
    pthread_mutex_unlock(&r->lock);
    return sum;
}

ebb_status ebb_res_set_resident(ebb_res *r, const bool *resident, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < r->n_groups && st == EBB_OK; i++) {
        ebb_res_group *g = &r->groups[i];
        bool is_new = false;

        pthread_mutex_lock(&r->lock);            /* other threads count them */
        for (uint32_t k = g->first; k < g->first + g->n; k++) {
            bool will = !resident || resident[k];

            is_new |= r->resident[k] != will;
            r->resident[k] = will;
        }
        pthread_mutex_unlock(&r->lock);
        if (is_new && r->ring && !is_memory_model(r, g))
            st = ebb_res_set_state(r, i, EBB_LAYER_DISK, err);
    }
    return st;
}
