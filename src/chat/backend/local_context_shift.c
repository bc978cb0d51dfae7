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

void ebb_local_shift_context(ebb_local *l, const int32_t *ids, size_t n, const ebb_backend_gap *gap,
                             ebb_cache_salt *cache_salt)
{
    size_t end = gap->at + gap->n, n_old = n + gap->n, n_ctx = ebb_engine_n_ctx(l->engine), there;
    int32_t *old;
    ebb_error err;

    if (gap->n == 0 || gap->at >= n || ebb_session_cannot_shift(l->session) || !(old = malloc(n_old * sizeof *old)))
        return;
    memcpy(old, ids, gap->at * sizeof *old);
    memcpy(old + gap->at, gap->ids, gap->n * sizeof *old);
    memcpy(old + end, ids + gap->at, (n - gap->at) * sizeof *old);
    ebb_session_set_cache_salt(l->session, &gap->before);
    there = ebb_session_common_prefix(l->session, old, n_old < n_ctx ? n_old : n_ctx);
    if (there > end && ebb_session_sync(l->session, old, there, NULL, &err) == EBB_OK &&
        ebb_session_shift(l->session, (uint32_t)gap->at, (uint32_t)gap->n, &err) == EBB_OK)
        *cache_salt = ebb_session_get_cache_salt(l->session);
    free(old);
}
