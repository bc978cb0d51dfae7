/* Context shift: tokens are dropped in the middle of a sequence (local_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "backend/local_priv.h"
#include "ebb/experimental/cache_salt.h"

void ebb_local_copy_gap(ebb_backend_gap *to, const ebb_backend_gap *from)
{
    int32_t *copy = from && from->n ? malloc(from->n * sizeof *copy) : NULL;

    free((int32_t *)to->ids);
    *to = (ebb_backend_gap){ 0 };
    if (!copy)
        return;
    memcpy(copy, from->ids, from->n * sizeof *copy);
    *to = *from;
    to->ids = copy;
}

static bool is_same_salt(const ebb_cache_salt *a, const ebb_cache_salt *b)
{
    return a->is_on == b->is_on && (!a->is_on || (a->pos == b->pos && memcmp(a->salt, b->salt, sizeof a->salt) == 0));
}

/* Of these ids, how many are cached with this salt, which the next sync then keeps. */
static size_t count_cached(ebb_local *l, const int32_t *ids, size_t n, const ebb_cache_salt *cache_salt)
{
    size_t n_ctx = ebb_engine_n_ctx(l->engine);

    ebb_session_set_cache_salt(l->session, cache_salt);
    return ebb_session_common_prefix(l->session, ids, n < n_ctx ? n : n_ctx);
}

/* Who asks may not have heard yet that it was done ahead. */
static bool was_moved(const ebb_local *l, const int32_t *ids, size_t n, const ebb_backend_gap *gap)
{
    const ebb_backend_gap *last = &l->moved_gap;

    return last->n == gap->n && last->at == gap->at && is_same_salt(&last->before, &gap->before) &&
           memcmp(last->ids, gap->ids, gap->n * sizeof *gap->ids) == 0 &&
           l->n_moved <= n && memcmp(l->moved_ids, ids, l->n_moved * sizeof *ids) == 0;
}

/* Without memory the same is computed, if it is asked for again. */
static void remember_move(ebb_local *l, const int32_t *ids, size_t n, const ebb_backend_gap *gap)
{
    int32_t *copy = realloc(l->moved_ids, n * sizeof *copy);

    ebb_local_copy_gap(&l->moved_gap, copy ? gap : NULL);
    if (!copy)
        return;
    memcpy(copy, ids, n * sizeof *copy);
    l->moved_ids = copy;
    l->n_moved = n;
    l->moved_salt = ebb_session_get_cache_salt(l->session);
}

void ebb_local_shift_context(ebb_local *l, const int32_t *ids, size_t n, const ebb_backend_gap *gap,
                             ebb_cache_salt *cache_salt)
{
    size_t end = gap->at + gap->n, n_old = n + gap->n, there, moved;
    int32_t *old;
    ebb_error err;

    if (gap->n == 0 || gap->at >= n || ebb_session_cannot_shift(l->session) || !(old = malloc(n_old * sizeof *old)))
        return;
    memcpy(old, ids, gap->at * sizeof *old);
    memcpy(old + gap->at, gap->ids, gap->n * sizeof *old);
    memcpy(old + end, ids + gap->at, (n - gap->at) * sizeof *old);
    moved = was_moved(l, ids, n, gap) ? count_cached(l, ids, n, &l->moved_salt) : 0;
    there = count_cached(l, old, n_old, &gap->before);
    if (moved > gap->at && moved + gap->n >= there) {    /* they are still there */
        *cache_salt = l->moved_salt;
    } else if (there > end && ebb_session_sync(l->session, old, there, NULL, &err) == EBB_OK &&
               ebb_session_shift(l->session, (uint32_t)gap->at, (uint32_t)gap->n, &err) == EBB_OK) {
        *cache_salt = ebb_session_get_cache_salt(l->session);
        remember_move(l, ids, there - gap->n, gap);
    }
    free(old);
}
