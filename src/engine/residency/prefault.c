/* Mapped weights are read before they are used (residency_impl.h).
 *
 * Plain faults would read a cold file at a fifth of the disk's speed.  A thread of low priority goes through the mapped
 * extents once, in the order of use, and asks for some more of them ahead; so what a plan says is in memory is there
 * soon after opening, also experts that no pass has selected yet. */
#include "os/thread.h"
#include "residency/residency_impl.h"

#define AHEAD_BYTES ((uint64_t)32 << 20)
#define PIECE_BYTES ((size_t)4 << 20)            /* populated at a time: so long it may go on after it is stopped */

/* false: it is not mapped, or no more. */
static bool advise_mapped(ebb_res *r, uint32_t id, uint64_t from, size_t n, ebb_advice advice)
{
    const ebb_res_extent *x = &r->extents[id];
    bool is_mapped;

    pthread_mutex_lock(&r->lock);
    is_mapped = r->owner[id] == EBB_LAYER_MAPPED && r->files[x->part].fd >= 0;
    pthread_mutex_unlock(&r->lock);
    return is_mapped && !atomic_load(&r->prefault.stop) &&
           ebb_map_advise((char *)r->files[x->part].map.data + x->offset + from, n, advice);
}

static void populate_extent(ebb_res *r, uint32_t id)
{
    uint64_t n_bytes = r->extents[id].n_bytes;
    bool ok = true;

    for (uint64_t at = 0; at < n_bytes && ok; at += PIECE_BYTES)
        ok = advise_mapped(r, id, at, n_bytes - at < PIECE_BYTES ? (size_t)(n_bytes - at) : PIECE_BYTES,
                           EBB_ADVISE_POPULATE);
}

static void *prefault_thread(void *arg)
{
    ebb_res *r = arg;
    uint64_t done = 0, asked = 0;
    uint32_t next = 0;

    ebb_thread_background();
    for (uint32_t id = 0; id < r->n_extents && !atomic_load(&r->prefault.stop); id++) {
        for (; next < r->n_extents && asked < done + AHEAD_BYTES; next++) {
            (void)advise_mapped(r, next, 0, (size_t)r->extents[next].n_bytes, EBB_ADVISE_WILLNEED);
            asked += r->extents[next].n_bytes;
        }
        populate_extent(r, id);
        done += r->extents[id].n_bytes;
    }
    atomic_store(&r->prefault.is_running, false);
    return NULL;
}

void ebb_res_prefault(ebb_res *r)
{
    ebb_res_prefault_stop(r);
    atomic_store(&r->prefault.stop, false);
    atomic_store(&r->prefault.is_running, true);
    r->prefault.has_thread = ebb_thread_start(&r->prefault.thread, prefault_thread, r) == 0;
    if (!r->prefault.has_thread)                 /* then by faults */
        atomic_store(&r->prefault.is_running, false);
}

void ebb_res_prefault_stop(ebb_res *r)
{
    if (!r->prefault.has_thread)
        return;
    atomic_store(&r->prefault.stop, true);
    pthread_join(r->prefault.thread, NULL);
    r->prefault.has_thread = false;
}

void ebb_res_prefault_expert(ebb_res *r, uint32_t id)
{
    uint32_t expert = r->extents[id].expert;

    for (; atomic_load(&r->prefault.is_running) && id < r->n_extents && r->extents[id].expert == expert; id++)
        (void)advise_mapped(r, id, 0, (size_t)r->extents[id].n_bytes, EBB_ADVISE_WILLNEED);
}
