/* Direct reads by io_uring (reader.h): one thread keeps several under way.
 *
 * A virtual disk copies what it reads with the host's processor, half as fast again into memory that stands in
 * the processor's cache as into other memory (3.4 and 2.4 GB/s where this was written).  A ring stays there; what is
 * to be kept does not.  That may be read into a few pieces of memory that do, and copied on from there.  Which of the
 * two is faster depends on the disk, so it is measured all the time, while the queue is full: now and then some
 * pieces go the other way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/uring.h"
#include "residency/reader.h"

#define DEPTH       EBB_URING_DEPTH
#define PIECE_BYTES ((size_t)1 << 20)
#define WINDOW_BYTES ((uint64_t)24 << 20)        /* read one way before that is judged */
#define STAY_WINDOWS 24u         /* that the faster way keeps, before the other is tried again */
#define LEARN_OVER   4

typedef enum way { WAY_STRAIGHT, WAY_COPIED, N_WAYS } way;

typedef struct flight {
    ebb_piece piece;
    size_t    n_done;
    bool      is_busy;
    char     *to;                /* piece.to, or a place to copy from */
} flight;

/* What is known of the ways. */
typedef struct ways {
    way      now;
    double   bytes_s[N_WAYS];    /* 0: unknown */
    uint64_t n_bytes, ns;        /* of the window, while the queue was full ... */
    uint64_t last_ns;            /* ... when the last piece came; 0: the queue has not been full since */
    uint32_t n_skip;             /* pieces that were asked for the other way */
    uint32_t n_windows;
} ways;

typedef struct uring_state {
    ebb_uring *ring;
    ebb_map    near;             /* DEPTH pieces; empty: there is no memory for them */
} uring_state;

typedef struct serving {
    ebb_uring           *ring;
    char                *near;
    ways                 ways;
    const ebb_read_file *files;
    const ebb_source    *source;
    flight               flights[DEPTH];
    uint32_t             n_busy;
} serving;

static ebb_status open_uring(const ebb_read_file *files, uint32_t n_files, void **out, ebb_error *err)
{
    uring_state *s = calloc(1, sizeof *s);
    ebb_status st;

    (void)files;
    (void)n_files;
    *out = s;
    if (!s)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a reader");
    st = ebb_uring_open(DEPTH, &s->ring, err);
    if (st != EBB_OK)
        free(s);
    else if (ebb_map_anon(DEPTH * PIECE_BYTES, true, &s->near, NULL) != EBB_OK)
        s->near = (ebb_map){ 0 };
    return st;
}

static void close_uring(void *arg)
{
    uring_state *s = arg;

    ebb_uring_close(s->ring);
    ebb_map_fini(&s->near);
    free(s);
}

/* -- Two ways ------------------------------------------------------------------------- */

/* Behind a window: an unknown way is tried, the slower one now and then, else the faster. */
static void choose_way(ways *w)
{
    way other = w->now == WAY_STRAIGHT ? WAY_COPIED : WAY_STRAIGHT, next = w->now;
    double speed = (double)w->n_bytes * 1e9 / (double)w->ns;

    w->bytes_s[w->now] += w->bytes_s[w->now] > 0 ? (speed - w->bytes_s[w->now]) / LEARN_OVER : speed;
    w->n_windows++;
    if (w->bytes_s[other] <= 0 || w->bytes_s[other] > w->bytes_s[w->now] || w->n_windows % STAY_WINDOWS == 0)
        next = other;
    if (next != w->now)
        w->n_skip = DEPTH;
    w->now = next;
    w->n_bytes = w->ns = 0;
}

/* A piece has come; `is_full`: meanwhile as many as can be were under way. */
static void judge_ways(ways *w, const ebb_piece *p, bool is_full)
{
    uint64_t now = ebb_clock_ns();

    if (is_full && w->last_ns && w->n_skip == 0 && p->is_far) {
        w->n_bytes += p->n_bytes;
        w->ns += now - w->last_ns;
    }
    w->n_skip -= w->n_skip > 0;
    w->last_ns = is_full ? now : 0;
    if (w->n_bytes >= WINDOW_BYTES && w->ns > 0)
        choose_way(w);
}

static void finish_piece(serving *v, flight *f, ebb_status st, const ebb_error *err)
{
    if (st == EBB_OK && f->to != f->piece.to)
        memcpy(f->piece.to, f->to, f->piece.n_must);
    f->is_busy = false;
    v->n_busy--;
    v->source->done(v->source->self, &f->piece, st, err);
}

/* What is still missing of a piece, without the ring. */
static void read_at_once(serving *v, flight *f)
{
    const ebb_piece *p = &f->piece;
    const ebb_read_file *file = &v->files[p->file];
    ebb_error err = { 0 };
    ebb_status st = ebb_file_read_range(file->direct_fd, file->path, f->to + f->n_done, p->n_bytes - f->n_done,
                                        p->n_must - f->n_done, p->offset + f->n_done, &err);

    finish_piece(v, f, st, &err);
}

/* Ask for what is still missing of a piece.  The kernel refuses where it has no memory for a request, as on a machine
 * that is full of weights: that ends no answer. */
static void submit_piece(serving *v, flight *f)
{
    const ebb_piece *p = &f->piece;
    ebb_error err = { 0 };

    if (ebb_uring_read(v->ring, v->files[p->file].direct_fd, f->to + f->n_done, p->n_bytes - f->n_done,
                       p->offset + f->n_done, (uint32_t)(f - v->flights), &err) == EBB_OK)
        return;
    ebb_log("reader", "%s; read by pread", err.msg);
    read_at_once(v, f);
}

static void begin_piece(serving *v, const ebb_piece *p)
{
    flight *f = v->flights;

    while (f->is_busy)
        f++;
    *f = (flight){ .piece = *p, .is_busy = true, .to = p->to };
    if (p->is_far && v->near && v->ways.now == WAY_COPIED)
        f->to = v->near + (size_t)(f - v->flights) * PIECE_BYTES;
    v->n_busy++;
    submit_piece(v, f);
}

static void take_result(serving *v, flight *f, int64_t result)
{
    const ebb_piece *p = &f->piece;
    const char *path = v->files[p->file].path;
    size_t end = f->n_done + (size_t)(result > 0 ? result : 0);
    ebb_error err = { 0 };

    if (result == -EINTR || result == -EAGAIN) { /* perhaps each time */
        read_at_once(v, f);
        return;
    }
    if (result < 0) {
        errno = (int)-result;
        finish_piece(v, f, EBB_FAIL(&err, EBB_IO, "%s: read at byte %llu failed: %s", path,
                              (unsigned long long)(p->offset + f->n_done), strerror((int)-result)), &err);
        return;
    }
    if (end >= p->n_must) {
        finish_piece(v, f, EBB_OK, NULL);
        return;
    }
    end &= ~(size_t)(EBB_READ_ALIGN - 1);        /* a short read goes on at a block's beginning */
    if (end <= f->n_done) {
        finish_piece(v, f, EBB_FAIL(&err, EBB_FORMAT, "%s: truncated: ends before byte %llu", path,
                              (unsigned long long)(p->offset + p->n_must)), &err);
        return;
    }
    f->n_done = end;
    submit_piece(v, f);
}

static void serve_uring(void *arg, const ebb_read_file *files, const ebb_source *source)
{
    const uring_state *s = arg;
    serving v = { .ring = s->ring, .near = s->near.data, .files = files, .source = source };
    ebb_piece p;
    uint32_t tag;
    int64_t result;
    bool is_full;

    for (;;) {
        while (v.n_busy < DEPTH && source->next(source->self, v.n_busy == 0, &p))
            begin_piece(&v, &p);
        if (v.n_busy == 0)
            return;
        is_full = v.n_busy == DEPTH;
        ebb_uring_wait(v.ring, &tag, &result);
        judge_ways(&v.ways, &v.flights[tag].piece, is_full);
        take_result(&v, &v.flights[tag], result);
    }
}

const ebb_reader_ops ebb_reader_uring = {
    .name = "uring", .is_direct = true, .n_threads = 1, .piece_bytes = PIECE_BYTES,
    .open = open_uring, .close = close_uring, .run = serve_uring,
};
