/* What the user types is computed while he types (local_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "local_priv.h"

/* Columns of a pass: what a change of the draft may throw away. */
#define STEP 128

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where a model has states, each call would leave checkpoints that push out better ones: one call for all. */
static size_t step_of(const ebb_local *l)
{
    return ebb_session_cannot_forget(l->session) ? SIZE_MAX / 2 : STEP;
}

/* Take what is to be computed; false: nothing is. */
static bool take(ebb_local *l, ebb_shift *shift, ebb_backend_gap *gap)
{
    bool any;

    pthread_mutex_lock(&l->lock);
    any = l->ahead_ids && !l->quit;
    if (any) {
        l->now_ids = l->ahead_ids;
        l->n_now = l->n_ahead_ids;
        l->now_done = l->now_end = 0;
        *shift = l->ahead_shift;
        *gap = l->ahead_gap;
        l->ahead_gap = (ebb_backend_gap){ 0 };
        l->ahead_ids = NULL;
        l->is_ahead = true;
    }
    pthread_mutex_unlock(&l->lock);
    return any;
}

/* So much stands; false: something else is to be done now, or all of it stands. */
static bool advance(ebb_local *l, size_t done, size_t step)
{
    bool goes_on;

    pthread_mutex_lock(&l->lock);
    l->now_done = done;
    goes_on = done < l->n_now && !ebb_local_is_wanted(l) && !l->ahead_ids;
    l->now_end = goes_on ? smaller(l->n_now, done + step) : done;
    ebb_local_emit_locked(l, &(ebb_backend_event){ .kind = EBB_BACKEND_AHEAD, .done = done, .total = l->n_now,
                                                     .shift = ebb_session_shift(l->session) });
    pthread_mutex_unlock(&l->lock);
    return goes_on;
}

static void leave(ebb_local *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_ahead = false;
    if (!l->is_answering || !atomic_load(&l->stop))      /* that was for us, not for the answer that waits */
        ebb_engine_cancel_clear(l->engine);
    free(l->now_ids);
    l->now_ids = NULL;
    pthread_mutex_unlock(&l->lock);
}

void ebb_local_ahead(ebb_local *l)
{
    size_t step = step_of(l), done;
    ebb_receipt r = { 0 };
    ebb_backend_gap gap = { 0 };
    ebb_shift shift;
    ebb_error err;

    if (!take(l, &shift, &gap))
        return;
    ebb_local_close_gap(l, l->now_ids, l->n_now, &gap, &shift);
    ebb_local_copy_gap(&gap, NULL);
    ebb_session_expect(l->session, &shift);
    done = ebb_session_common(l->session, l->now_ids, l->n_now);
    l->ahead_from = smaller(l->ahead_from, done);
    while (advance(l, done, step)) {
        ebb_session_expect(l->session, &shift);
        if (ebb_session_sync(l->session, l->now_ids, l->now_end, &r, &err) != EBB_OK)
            break;
        done = l->now_end;
        l->ahead_to = done;
    }
    leave(l);
}

void ebb_local_leave_ahead(ebb_local *l, const int32_t *ids, size_t n)
{
    bool leads_there = l->is_ahead && l->now_end <= n && memcmp(ids, l->now_ids, l->now_end * sizeof *ids) == 0;

    free(l->ahead_ids);
    l->ahead_ids = NULL;
    if (l->is_ahead && !leads_there)
        ebb_engine_cancel(l->engine);
}

uint32_t ebb_local_count_ahead(ebb_local *l, uint32_t n_reused)
{
    size_t to = smaller(l->ahead_to, n_reused), from = l->ahead_from;

    l->ahead_from = SIZE_MAX;
    l->ahead_to = 0;
    return to > from ? (uint32_t)(to - from) : 0;
}

void ebb_local_set_ahead(ebb_backend *b, const int32_t *ids, size_t n, const ebb_shift *shift, const ebb_backend_gap *gap)
{
    ebb_local *l = (ebb_local *)b;
    int32_t *copy = n ? malloc(n * sizeof *copy) : NULL;

    if (copy)
        memcpy(copy, ids, n * sizeof *copy);
    pthread_mutex_lock(&l->lock);
    free(l->ahead_ids);
    l->ahead_ids = NULL;
    if (copy && !l->is_loading && l->session && !l->is_answering) {
        l->ahead_ids = copy;
        l->n_ahead_ids = n;
        l->ahead_shift = *shift;
        ebb_local_copy_gap(&l->ahead_gap, gap);
        copy = NULL;
    }
    /* What is under way and leads nowhere need not go on. */
    if (l->is_ahead && l->now_end > 0 && (n < l->now_end || memcmp(ids, l->now_ids, l->now_end * sizeof *ids) != 0))
        ebb_engine_cancel(l->engine);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    free(copy);
}
