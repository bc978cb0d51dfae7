/* Measuring the readers (read_speed.h). */
#include "residency/read_speed.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "os/file.h"
#include "os/proc.h"

#define N_ROUNDS 3
#define TIME_LIMIT_S 30.0
#define PATH_S   0.3
#define N_SLOTS  8u                              /* as many pieces as a reader has under way */
#define STRETCH_MAX ((uint64_t)512 << 20)        /* more than any disk reads in a round */
#define GB       1e9
#define CACHED_RATIO 4.0                         /* faster than direct reads by more than that is no disk */
#define NOISE    0.1                             /* measured for so short a time, readers differ by that without a
                                                    reason */

typedef struct probe {
    pthread_mutex_t lock;
    uint32_t file;
    uint64_t at, end;
    size_t   piece_bytes;
    char    *memory;             /* N_SLOTS pieces; NULL: mapped */
    bool     is_busy[N_SLOTS];
    double   until;
    uint64_t n_read;
    bool     has_drop;           /* of the mapping: give back what was populated before */
    ebb_piece drop;
    bool     is_failed;
} probe;

static bool next_probe_piece(void *self, bool wait, ebb_piece *out)
{
    probe *p = self;
    uint32_t tag = 0;
    bool found = false;

    (void)wait;                                  /* a slot is free whenever a reader asks */
    pthread_mutex_lock(&p->lock);
    while (tag + 1 < N_SLOTS && p->is_busy[tag])
        tag++;
    if (p->has_drop) {
        *out = p->drop;
        p->has_drop = false;
        found = true;
    } else if (!p->is_failed && p->at + p->piece_bytes <= p->end && ebb_clock_s() < p->until) {
        *out = (ebb_piece){ .file = p->file, .tag = tag, .offset = p->at, .n_bytes = p->piece_bytes,
                            .n_must = p->piece_bytes, .to = p->memory ? p->memory + tag * p->piece_bytes : NULL };
        p->is_busy[tag] = true;
        p->at += p->piece_bytes;
        found = true;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static void probe_piece_done(void *self, const ebb_piece *piece, ebb_status st, const ebb_error *err)
{
    probe *p = self;

    (void)err;
    pthread_mutex_lock(&p->lock);
    if (!piece->is_drop) {
        p->is_busy[piece->tag] = false;
        p->is_failed |= st != EBB_OK;
        p->n_read += st == EBB_OK ? piece->n_bytes : 0;
        p->has_drop = !piece->to;
        p->drop = *piece;
        p->drop.is_drop = true;
    }
    pthread_mutex_unlock(&p->lock);
}

/* One reader on [from, to); what it read and took is added up. */
static void run_probe(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files, probe *p,
                     double seconds, double sum[3])
{
    ebb_source source = { .next = next_probe_piece, .done = probe_piece_done, .self = p };
    double begin, cpu;
    ebb_reader *r;

    ebb_map_advise((char *)files[p->file].map.data + p->at, (size_t)(p->end - p->at), EBB_ADVISE_DONTNEED);
    ebb_file_drop_cache(files[p->file].fd, p->at, p->end - p->at);
    begin = ebb_clock_s();                       /* dropping gigabytes of cache may take longer than the measurement */
    cpu = ebb_proc_cpu_s();
    p->until = begin + seconds;
    if (ebb_reader_start(ops, files, n_files, &source, &r, NULL) != EBB_OK)
        return;
    ebb_reader_stop(r);
    sum[0] += (double)p->n_read;
    sum[1] += ebb_clock_s() - begin;
    sum[2] += ebb_proc_cpu_s() - cpu;
}

static void measure_round(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files, uint32_t i_file,
                          uint64_t from, uint64_t to, double seconds, double sum[3])
{
    probe p = { .file = i_file, .at = from & ~(EBB_READ_ALIGN - 1), .end = to & ~(EBB_READ_ALIGN - 1),
                .piece_bytes = ops->piece_bytes };
    ebb_map memory = { 0 };

    if (p.end - p.at < p.piece_bytes)
        p.piece_bytes = (size_t)(p.end - p.at);
    if (p.piece_bytes == 0 || (!ops->is_mapped && ebb_map_anon(N_SLOTS * p.piece_bytes, true, &memory, NULL) != EBB_OK))
        return;
    if (memory.data)                             /* the first touch is not the disk's time */
        memset(memory.data, 0, memory.n_bytes);
    p.memory = memory.data;
    pthread_mutex_init(&p.lock, NULL);
    run_probe(ops, files, n_files, &p, seconds, sum);
    pthread_mutex_destroy(&p.lock);
    ebb_map_fini(&memory);
}

/* Whoever else uses the disk makes a round slower and never faster: the best one is the reader's. */
static void keep_better(const double sum[3], ebb_read_speed *out)
{
    double bytes_s = sum[1] > 0 ? sum[0] / sum[1] : 0;

    if (bytes_s <= out->bytes_s)
        return;
    out->bytes_s = bytes_s;
    out->cpu_s_per_gb = sum[2] / (sum[0] / GB);
}

/* Pages that another process has mapped cannot be dropped from the cache: populating them says nothing of the disk. */
static void distrust_cache(ebb_read_speed out[EBB_IO_MMAP + 1])
{
    double direct = out[EBB_IO_URING].bytes_s;

    if (out[EBB_IO_PREAD].bytes_s > direct)
        direct = out[EBB_IO_PREAD].bytes_s;
    if (direct > 0 && out[EBB_IO_MMAP].bytes_s > CACHED_RATIO * direct)
        out[EBB_IO_MMAP].bytes_s = 0;
}

void ebb_read_speed_measure(ebb_read_file *files, uint32_t n_files, uint32_t i_file, uint64_t from, uint64_t n,
                      ebb_io only, double seconds, ebb_read_speed out[EBB_IO_MMAP + 1])
{
    uint64_t stretch = n / (N_ROUNDS * 3) < STRETCH_MAX ? n / (N_ROUNDS * 3) : STRETCH_MAX;
    uint32_t turn = 0;

    memset(out, 0, (EBB_IO_MMAP + 1) * sizeof *out);
    for (int io = EBB_IO_URING; io <= EBB_IO_MMAP; io++) {
        ebb_error err = { 0 };

        out[io].is_allowed = ebb_reader_try(ebb_reader_get((ebb_io)io), files, n_files, &err) == EBB_OK;
        snprintf(out[io].why_not, sizeof out[io].why_not, "%.95s", err.msg);
    }
    for (int round = 0; round < N_ROUNDS; round++)
        for (int io = EBB_IO_URING; io <= EBB_IO_MMAP; io++, turn++)
            if (out[io].is_allowed && (only == EBB_IO_AUTO || only == (ebb_io)io)) {
                double sum[3] = { 0 };

                measure_round(ebb_reader_get((ebb_io)io), files, n_files, i_file, from + turn * stretch,
                              from + (turn + 1) * stretch, seconds / (N_ROUNDS * 3), sum);
                keep_better(sum, &out[io]);
            }
    distrust_cache(out);
}

double ebb_read_speed_of(ebb_read_file *files, uint32_t n_files, uint32_t i_file, uint64_t from, uint64_t n,
                     const ebb_reader_ops *ops)
{
    double sum[3] = { 0 };

    if (ebb_reader_try(ops, files, n_files, NULL) == EBB_OK)
        measure_round(ops, files, n_files, i_file, from, from + n, TIME_LIMIT_S, sum);
    return sum[1] > 0 ? sum[0] / sum[1] : 0;
}

ebb_io ebb_read_speed_best(const ebb_read_speed speeds[EBB_IO_MMAP + 1])
{
    ebb_io best = EBB_IO_PREAD;
    double least = 0;

    for (int io = EBB_IO_URING; io <= EBB_IO_MMAP; io++) {
        double cost = speeds[io].bytes_s > 0 ? GB / speeds[io].bytes_s + speeds[io].cpu_s_per_gb / 2 : 0;

        if (cost > 0 && (least <= 0 || cost < (1 - NOISE) * least)) {
            least = cost;
            best = (ebb_io)io;
        }
    }
    return best;
}

ebb_status ebb_read_speed_measure_path(const char *path, ebb_io only, ebb_read_speed out[EBB_IO_MMAP + 1],
                                       ebb_error *err)
{
    ebb_read_file f = { .path = path, .fd = -1, .direct_fd = -1 };
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &f.fd, err);

    memset(out, 0, (EBB_IO_MMAP + 1) * sizeof *out);
    if (st == EBB_OK)
        st = ebb_file_size(f.fd, path, &f.n_bytes, err);
    if (st == EBB_OK)
        st = ebb_map_file(f.fd, path, (size_t)f.n_bytes, &f.map, err);
    if (st == EBB_OK)
        ebb_read_speed_measure(&f, 1, 0, f.n_bytes / 10, f.n_bytes - f.n_bytes / 10, only, PATH_S, out);
    ebb_map_fini(&f.map);
    ebb_file_close(f.direct_fd);
    ebb_file_close(f.fd);
    return st;
}
