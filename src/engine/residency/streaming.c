/* Where streamed weights come from (residency_impl.h): the reader, its ring, the cache of experts, and how fast they
 * are. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "residency/read_speed.h"
#include "residency/residency_impl.h"

void ebb_res_add_counts(ebb_expert_counts *to, const ebb_expert_counts *c)
{
    to->n_chosen += c->n_chosen;
    to->n_hits += c->n_hits;
    to->n_prefetch_hits += c->n_prefetch_hits;
    to->n_prefetched += c->n_prefetched;
    to->n_tokens += c->n_tokens;
    to->read_bytes += c->read_bytes;
    to->decode_read_bytes += c->decode_read_bytes;
}

void ebb_res_close_expert_cache(ebb_res *r)
{
    pthread_mutex_lock(&r->lock);
    ebb_res_add_counts(&r->counts, &r->cache.counts);
    ebb_expert_cache_close(&r->cache);
    pthread_mutex_unlock(&r->lock);
}

static void log_choice(ebb_res *r, const char *text)
{
    snprintf(r->io_reason, sizeof r->io_reason, "%.159s", text);
    ebb_log("reader", "%s", text);
}

/* What has come in the background by now needs the ring no more. */
static void settle_loaded(ebb_res *r)
{
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->home[i] && ebb_ring_is_loaded(r->ring, i)) {
            r->at[i] = ebb_pin_address(&r->extents[i], r->home[i]);
            r->home[i] = NULL;
        }
}

static void close_ring(ebb_res *r)
{
    ebb_ring_stats s;

    if (!r->ring)
        return;
    ebb_res_close_expert_cache(r);
    pthread_mutex_lock(&r->lock);
    settle_loaded(r);
    ebb_ring_get_stats(r->ring, &s);
    r->read_bytes += s.read_bytes;
    r->stall_ns += s.stall_ns;
    ebb_ring_close(r->ring);
    r->ring = NULL;
    pthread_mutex_unlock(&r->lock);
}

static ebb_status open_ring(ebb_res *r, uint64_t ring_bytes, ebb_error *err)
{
    ebb_ring *ring;
    ebb_status st = ebb_ring_open(r->ops, r->files, r->n_files, r->extents, r->n_extents, ring_bytes, r->headroom,
                                  &ring, err);

    if (st != EBB_OK)
        return st;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->home[i])
            (void)ebb_ring_load(ring, i, r->home[i], EBB_LOAD_BACKGROUND);
        else if (!r->at[i])
            ebb_ring_stream(ring, i, true);
    r->ring = ring;
    pthread_mutex_unlock(&r->lock);
    return EBB_OK;
}

/* The reader of `want` if the system allows it, else pread, which needs nothing. */
static void choose_reader(ebb_res *r, ebb_io want)
{
    ebb_io tries[] = { want, EBB_IO_PREAD };
    char text[320];
    ebb_error why = { 0 };

    for (uint32_t i = 0; i < 2; i++) {
        pthread_mutex_lock(&r->lock);            /* the figures' reader asks for its name */
        r->ops = ebb_reader_get(tries[i]);
        pthread_mutex_unlock(&r->lock);
        if (ebb_reader_try(r->ops, r->files, r->n_files, &why) == EBB_OK)
            return;
        if (tries[i] == EBB_IO_PREAD)            /* reads through the page cache, whose pages are dropped behind */
            snprintf(text, sizeof text, "reader pread without direct reads: %.200s", why.msg);
        else
            snprintf(text, sizeof text, "reader pread, because %s is not available: %.200s", r->ops->name, why.msg);
        log_choice(r, text);
        if (tries[i] == EBB_IO_PREAD)
            return;
    }
}

static void log_speeds(ebb_res *r, const ebb_read_speed *s)
{
    char text[160];

    snprintf(text, sizeof text, "reader %s, by measurement: uring %.2f, pread %.2f, mmap %.2f GB/s", r->ops->name,
             s[EBB_IO_URING].bytes_s / 1e9, s[EBB_IO_PREAD].bytes_s / 1e9, s[EBB_IO_MMAP].bytes_s / 1e9);
    log_choice(r, text);
}

ebb_status ebb_res_set_reader(ebb_res *r, ebb_io io, const ebb_read_speed *speeds, uint64_t ring_bytes, ebb_error *err)
{
    ebb_status st = EBB_OK;

    r->io_reason[0] = '\0';
    close_ring(r);
    choose_reader(r, io != EBB_IO_AUTO ? io : speeds ? ebb_read_speed_best(speeds) : EBB_IO_PREAD);
    if (io == EBB_IO_AUTO && speeds && !r->io_reason[0])
        log_speeds(r, speeds);
    if (ring_bytes > 0)
        st = open_ring(r, ring_bytes, err);
    pthread_mutex_lock(&r->lock);
    if (!r->ring)
        ebb_res_map_unread_locked(r);
    for (uint32_t i = 0; i < r->n_groups && !r->ring; i++)
        if (r->groups[i].state == EBB_LAYER_DISK)
            r->groups[i].state = EBB_LAYER_MAPPED;
    pthread_mutex_unlock(&r->lock);
    return st;
}

ebb_status ebb_res_set_expert_cache(ebb_res *r, uint64_t n_bytes, ebb_error *err)
{
    ebb_status st = EBB_OK;

    ebb_res_close_expert_cache(r);
    pthread_mutex_lock(&r->lock);
    if (r->ring)
        st = ebb_expert_cache_open(&r->cache, r->ring, r->extents, r->n_extents, &r->lrfu, n_bytes, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

void ebb_res_resize_expert_cache(ebb_res *r, uint64_t n_bytes)
{
    pthread_mutex_lock(&r->lock);
    ebb_expert_cache_resize(&r->cache, n_bytes);
    pthread_mutex_unlock(&r->lock);
}

const char *ebb_res_io_name(ebb_res *r)
{
    const char *name;

    pthread_mutex_lock(&r->lock);
    name = r->ops->name;
    pthread_mutex_unlock(&r->lock);
    return name;
}

const char *ebb_res_io_reason(const ebb_res *r)
{
    return r->io_reason;
}

/* The file of the last layers, and its weights. */
static bool find_stretch(const ebb_res *r, uint32_t *file, uint64_t *from, uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    *file = 0;
    for (uint32_t i = 0; i < r->n_extents; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->files[x->part].fd < 0)
            return false;
        if (x->part != *file)
            *from = UINT64_MAX, *to = 0;
        *file = x->part;
        *from = x->offset < *from ? x->offset : *from;
        *to = x->offset + x->n_bytes > *to ? x->offset + x->n_bytes : *to;
    }
    return *to > *from;
}

void ebb_res_measure_readers(ebb_res *r, ebb_io only, double seconds, ebb_read_speed *speeds)
{
    uint64_t from, to;
    uint32_t file;

    memset(speeds, 0, (EBB_IO_MMAP + 1) * sizeof *speeds);
    if (find_stretch(r, &file, &from, &to))
        ebb_read_speed_measure(r->files, r->n_files, file, from, to - from, only, seconds, speeds);
}

double ebb_res_read_speed(ebb_res *r, uint64_t n_bytes)
{
    uint64_t from, to;
    uint32_t file;

    if (!r->ring || !find_stretch(r, &file, &from, &to))
        return 0;
    if (r->cache.n_slots > 0)
        return ebb_expert_cache_read_speed(&r->cache, r->owner, n_bytes, r->cancel);
    return ebb_read_speed_of(r->files, r->n_files, file, from, n_bytes < to - from ? n_bytes : to - from, r->ops);
}
