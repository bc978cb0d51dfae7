/* Direct reads by io_uring (reader.h): one thread keeps several under way. */
#include <errno.h>
#include <string.h>

#include "os/uring.h"
#include "residency/reader.h"

#define DEPTH       8u
#define PIECE_BYTES ((size_t)1 << 20)

typedef struct flight {
    ebb_piece piece;
    size_t    n_done;
    bool      is_busy;
} flight;

typedef struct serving {
    ebb_uring           *ring;
    const ebb_read_file *files;
    const ebb_source    *source;
    flight               flights[DEPTH];
    uint32_t             n_busy;
} serving;

static ebb_status open_ring(const ebb_read_file *files, uint32_t n_files, void **state, ebb_error *err)
{
    ebb_uring *u;
    ebb_status st = ebb_uring_open(DEPTH, &u, err);

    (void)files;
    (void)n_files;
    *state = u;
    return st;
}

static void close_ring(void *state)
{
    ebb_uring_close(state);
}

static void finish(serving *v, flight *f, ebb_status st, const ebb_error *err)
{
    f->is_busy = false;
    v->n_busy--;
    v->source->done(v->source->self, &f->piece, st, err);
}

/* Ask for what is still missing of a piece. */
static void submit(serving *v, flight *f)
{
    const ebb_piece *p = &f->piece;
    ebb_error err = { 0 };
    ebb_status st = ebb_uring_read(v->ring, v->files[p->file].direct_fd, p->to + f->n_done, p->n_bytes - f->n_done,
                                   p->offset + f->n_done, (uint32_t)(f - v->flights), &err);

    if (st != EBB_OK)
        finish(v, f, st, &err);
}

static void begin(serving *v, const ebb_piece *p)
{
    flight *f = v->flights;

    while (f->is_busy)
        f++;
    *f = (flight){ .piece = *p, .is_busy = true };
    v->n_busy++;
    submit(v, f);
}

static void take(serving *v, flight *f, int64_t result)
{
    const ebb_piece *p = &f->piece;
    const char *path = v->files[p->file].path;
    size_t end = f->n_done + (size_t)(result > 0 ? result : 0);
    ebb_error err = { 0 };

    if (result == -EINTR || result == -EAGAIN) {
        submit(v, f);
        return;
    }
    if (result < 0) {
        errno = (int)-result;
        finish(v, f, EBB_FAIL(&err, EBB_IO, "%s: read at byte %llu failed: %s", path,
                              (unsigned long long)(p->offset + f->n_done), strerror((int)-result)), &err);
        return;
    }
    if (end >= p->n_must) {
        finish(v, f, EBB_OK, NULL);
        return;
    }
    end &= ~(size_t)(EBB_READ_ALIGN - 1);        /* a short read goes on at a block's beginning */
    if (end <= f->n_done) {
        finish(v, f, EBB_FAIL(&err, EBB_FORMAT, "%s: truncated: ends before byte %llu", path,
                              (unsigned long long)(p->offset + p->n_must)), &err);
        return;
    }
    f->n_done = end;
    submit(v, f);
}

static void run(void *state, const ebb_read_file *files, const ebb_source *source)
{
    serving v = { .ring = state, .files = files, .source = source };
    ebb_error err = { 0 };
    ebb_piece p;
    uint32_t tag;
    int64_t result;

    for (;;) {
        while (v.n_busy < DEPTH && source->next(source->self, v.n_busy == 0, &p))
            begin(&v, &p);
        if (v.n_busy == 0)
            return;
        if (ebb_uring_wait(v.ring, &tag, &result, &err) == EBB_OK) {
            take(&v, &v.flights[tag], result);
            continue;
        }
        for (uint32_t i = 0; i < DEPTH; i++)     /* the ring is lost, and with it all that was under way */
            if (v.flights[i].is_busy)
                finish(&v, &v.flights[i], err.code, &err);
    }
}

const ebb_reader_ops ebb_reader_uring = {
    .name = "uring", .is_direct = true, .n_threads = 1, .piece_bytes = PIECE_BYTES,
    .open = open_ring, .close = close_ring, .run = run,
};
