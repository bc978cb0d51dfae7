/* Speculative prefill: unsent text is computed while it is typed (local_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "backend/local_priv.h"
#include "ebb/experimental/cache_salt.h"

/* Columns of a pass: what a change of the draft may throw away. */
#define STEP 128

static size_t min_ids(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where a model has states, each call would leave checkpoints that push out better ones: one call for all. */
static size_t prefill_step(const ebb_local *l)
{
    return ebb_session_cannot_shift(l->session) ? SIZE_MAX / 2 : STEP;
}

/* Take the ids of the next speculative prefill; false: there are none. */
static bool begin_prefill(ebb_local *l, ebb_cache_salt *cache_salt, ebb_backend_gap *gap)
{
    bool any;

    pthread_mutex_lock(&l->lock);
    any = l->prefill_ids && !l->quit;
    if (any) {
        l->running_ids = l->prefill_ids;
        l->n_running = l->n_prefill_ids;
        l->running_done = l->running_end = 0;
        *cache_salt = l->prefill_salt;
        *gap = l->prefill_gap;
        l->prefill_gap = (ebb_backend_gap){ 0 };
        l->prefill_ids = NULL;
        l->is_prefilling = true;
    }
    pthread_mutex_unlock(&l->lock);
    return any;
}

/* Report `done` computed ids; false: a command or newer ids wait, or all are computed. */
static bool advance_prefill(ebb_local *l, size_t done, size_t step)
{
    bool goes_on;

    pthread_mutex_lock(&l->lock);
    l->running_done = done;
    goes_on = done < l->n_running && !ebb_local_is_wanted(l) && !l->prefill_ids;
    l->running_end = goes_on ? min_ids(l->n_running, done + step) : done;
    ebb_local_emit_locked(l, &(ebb_backend_event){ .kind = EBB_BACKEND_SPECULATIVE_PREFILL, .done = done,
                                                   .total = l->n_running,
                                                     .cache_salt = ebb_session_get_cache_salt(l->session) });
    pthread_mutex_unlock(&l->lock);
    return goes_on;
}

static void end_prefill(ebb_local *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_prefilling = false;
    if (!l->is_answering || !atomic_load(&l->stop))      /* the stop was for the prefill, not the answer */
        ebb_engine_cancel_clear(l->engine);
    free(l->running_ids);
    l->running_ids = NULL;
    pthread_mutex_unlock(&l->lock);
}

void ebb_local_speculative_prefill(ebb_local *l)
{
    size_t step = prefill_step(l), done;
    ebb_sync_result r = { 0 };
    ebb_backend_gap gap = { 0 };
    ebb_cache_salt cache_salt;
    ebb_error err;

    if (!begin_prefill(l, &cache_salt, &gap))
        return;
    ebb_local_shift_context(l, l->running_ids, l->n_running, &gap, &cache_salt);
    ebb_local_copy_gap(&gap, NULL);
    ebb_session_set_cache_salt(l->session, &cache_salt);
    done = ebb_session_common_prefix(l->session, l->running_ids, l->n_running);
    l->prefilled_from = min_ids(l->prefilled_from, done);
    while (advance_prefill(l, done, step)) {
        ebb_session_set_cache_salt(l->session, &cache_salt);
        if (ebb_session_sync(l->session, l->running_ids, l->running_end, &r, &err) != EBB_OK)
            break;
        done = l->running_end;
        l->prefilled_to = done;
    }
    end_prefill(l);
}

void ebb_local_stop_prefill(ebb_local *l, const int32_t *ids, size_t n)
{
    bool leads_there = l->is_prefilling && l->running_end <= n &&
                       memcmp(ids, l->running_ids, l->running_end * sizeof *ids) == 0;

    free(l->prefill_ids);
    l->prefill_ids = NULL;
    ebb_local_copy_gap(&l->prefill_gap, NULL);
    if (l->is_prefilling && !leads_there)
        ebb_engine_cancel(l->engine);
}

uint32_t ebb_local_count_prefilled(ebb_local *l, uint32_t n_reused)
{
    size_t to = min_ids(l->prefilled_to, n_reused), from = l->prefilled_from;

    l->prefilled_from = SIZE_MAX;
    l->prefilled_to = 0;
    return to > from ? (uint32_t)(to - from) : 0;
}

void ebb_local_set_speculative_prefill(ebb_backend *b, const int32_t *ids, size_t n, const ebb_cache_salt *cache_salt,
                                       const ebb_backend_gap *gap)
{
    ebb_local *l = (ebb_local *)b;
    int32_t *copy = n ? malloc(n * sizeof *copy) : NULL;

    if (copy)
        memcpy(copy, ids, n * sizeof *copy);
    pthread_mutex_lock(&l->lock);
    free(l->prefill_ids);
    l->prefill_ids = NULL;
    if (copy && !l->is_loading && l->session && !l->is_answering) {
        l->prefill_ids = copy;
        l->n_prefill_ids = n;
        l->prefill_salt = *cache_salt;
        ebb_local_copy_gap(&l->prefill_gap, gap);
        copy = NULL;
    }
    /* A pass whose ids are no longer wanted is stopped. */
    if (l->is_prefilling && l->running_end > 0 &&
        (n < l->running_end || memcmp(ids, l->running_ids, l->running_end * sizeof *ids) != 0))
        ebb_engine_cancel(l->engine);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    free(copy);
}
