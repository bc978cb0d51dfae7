/* Pinned copies (pin.h): a source of pieces that any reader serves. */
#include "residency/pin.h"

#include <pthread.h>
#include <string.h>

#include "os/file.h"

typedef struct pin_job {
    pthread_mutex_t       lock;
    const ebb_reader_ops *ops;
    const ebb_res_extent *x;
    uint32_t              i, n;  /* extent under way, of n */
    uint64_t              at;    /* in its range */
    char                 *to;    /* its place */
    ebb_headroom          headroom;
    const atomic_bool    *cancel;
    ebb_status            st;    /* the first failure */
    ebb_error             err;
} pin_job;

static uint64_t range_begin(const ebb_res_extent *x)
{
    return x->offset & ~(EBB_READ_ALIGN - 1);
}

uint64_t ebb_pin_bytes(const ebb_res_extent *x)
{
    return ((x->offset + x->n_bytes + EBB_READ_ALIGN - 1) & ~(EBB_READ_ALIGN - 1)) - range_begin(x);
}

const char *ebb_pin_address(const ebb_res_extent *x, const char *at)
{
    return at + (x->offset - range_begin(x));
}

static bool next_pin_piece(void *self, bool wait, ebb_piece *out)
{
    pin_job *j = self;
    bool found = false;

    (void)wait;                                  /* what has no room ends it */
    pthread_mutex_lock(&j->lock);
    if (j->st == EBB_OK && j->cancel && atomic_load_explicit(j->cancel, memory_order_relaxed))
        j->st = EBB_FAIL(&j->err, EBB_CANCELED, "stopped while %s was being read", j->x[0].name);
    if (j->st == EBB_OK && j->i < j->n && j->headroom.has && !j->headroom.has(j->headroom.arg, j->ops->piece_bytes))
        j->st = EBB_FAIL(&j->err, EBB_NOMEM, "memory ran short while %s was being read", j->x[0].name);
    if (j->st == EBB_OK && j->i < j->n) {
        const ebb_res_extent *x = &j->x[j->i];
        uint64_t n = ebb_pin_bytes(x) - j->at, must;

        if (n > j->ops->piece_bytes)
            n = j->ops->piece_bytes;
        must = x->offset + x->n_bytes - (range_begin(x) + j->at);
        *out = (ebb_piece){ .file = x->part, .offset = range_begin(x) + j->at, .n_bytes = (size_t)n,
                            .n_must = (size_t)(must < n ? must : n), .to = j->to };
        j->to += n;
        j->at += n;
        if (j->at == ebb_pin_bytes(x)) {
            j->at = 0;
            j->i++;
        }
        found = true;
    }
    pthread_mutex_unlock(&j->lock);
    return found;
}

static void pin_piece_done(void *self, const ebb_piece *p, ebb_status st, const ebb_error *err)
{
    pin_job *j = self;

    (void)p;
    if (st == EBB_OK)
        return;
    pthread_mutex_lock(&j->lock);
    if (j->st == EBB_OK) {
        j->st = st;
        j->err = *err;
    }
    pthread_mutex_unlock(&j->lock);
}

/* Pages of the extents that somebody has read through the page cache. */
static void drop_pages(const ebb_read_file *files, const ebb_res_extent *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const ebb_read_file *f = &files[x[i].part];

        ebb_map_advise((char *)f->map.data + x[i].offset, (size_t)x[i].n_bytes, EBB_ADVISE_DONTNEED);
        ebb_file_drop_cache(f->fd, range_begin(&x[i]), ebb_pin_bytes(&x[i]));
    }
}

ebb_status ebb_pin_read(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                        const ebb_res_extent *x, uint32_t n, char *to, ebb_headroom headroom, const atomic_bool *cancel,
                        ebb_error *err)
{
    pin_job j = { .ops = ops, .x = x, .n = n, .to = to, .headroom = headroom, .cancel = cancel };
    ebb_source source = { .next = next_pin_piece, .done = pin_piece_done, .self = &j };
    ebb_reader *r;
    ebb_status st;

    pthread_mutex_init(&j.lock, NULL);
    st = ebb_reader_start(ops, files, n_files, &source, &r, err);
    if (st == EBB_OK) {
        ebb_reader_stop(r);
        st = j.st;
        if (st != EBB_OK && err)
            *err = j.err;
    }
    pthread_mutex_destroy(&j.lock);
    if (st == EBB_OK)
        drop_pages(files, x, n);
    return st;
}
