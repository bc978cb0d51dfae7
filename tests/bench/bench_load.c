/* Ways to get a file into memory, cold and warm: GB/s and CPU seconds per GB, the walk over
 * every cache line included.
 *
 *     bench_load FILE [MIB]          a file that is as large as a model; MIB: no more of it
 *
 * Cold: the file's pages are dropped before.  A way that drops behind itself is cold again
 * afterwards, so it has no warm figure of its own but the one after another way. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/proc.h"

#define WINDOW ((size_t)8 << 20)
#define PIECE  ((size_t)4 << 20)
#define MAX_LANES 4

typedef struct bench_file {
    const char *path;
    int         fd;
    size_t      n;
} bench_file;

static uint64_t walk(const char *p, size_t n)
{
    uint64_t sum = 0, v;

    for (size_t i = 0; i + 8 <= n; i += 64) {
        memcpy(&v, p + i, 8);
        sum += v;
    }
    return sum;
}

static char *map(const bench_file *f, int flags)
{
    void *p = mmap(NULL, f->n, PROT_READ, MAP_SHARED | flags, f->fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* -- Ways: false with errno where the system refuses ----------------------------------- */

static volatile uint64_t sink;

static bool plain(const bench_file *f)
{
    char *p = map(f, 0);

    if (!p)
        return false;
    sink += walk(p, f->n);
    return munmap(p, f->n) == 0;
}

static bool populate_file(const bench_file *f)
{
    char *p = map(f, MAP_POPULATE);

    if (!p)
        return false;
    sink += walk(p, f->n);
    return munmap(p, f->n) == 0;
}

static bool locked(const bench_file *f)
{
    char *p = map(f, 0);
    bool ok = p && mlock(p, f->n) == 0;

    if (ok)
        sink += walk(p, f->n);
    if (p)
        munmap(p, f->n);
    return ok;
}

/* What was walked over is unmapped and dropped. */
static void drop_file(const bench_file *f, char *p, size_t at, size_t n)
{
    madvise(p + at, n, MADV_DONTNEED);
    posix_fadvise(f->fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
}

static bool by_windows(const bench_file *f, int advice)
{
    char *p = map(f, 0);

    if (!p || (advice == MADV_SEQUENTIAL && madvise(p, f->n, advice) != 0))
        return false;
    for (size_t at = 0; at < f->n; at += WINDOW) {
        size_t n = f->n - at < WINDOW ? f->n - at : WINDOW;

        if (advice != MADV_SEQUENTIAL && madvise(p + at, n, advice) != 0)
            return false;
        sink += walk(p + at, n);
        drop_file(f, p, at, n);
    }
    return munmap(p, f->n) == 0;
}

static bool sequential(const bench_file *f)
{
    return by_windows(f, MADV_SEQUENTIAL);
}

static bool populated(const bench_file *f)
{
    return by_windows(f, MADV_POPULATE_READ);
}

typedef struct lane {
    const bench_file *f;
    int         fd, i, n;
    bool        ok;
    pthread_t   thread;
} lane;

static void *run_lane(void *arg)
{
    lane *l = arg;
    char *to = aligned_alloc((size_t)2 << 20, PIECE);

    l->ok = to != NULL && madvise(to, PIECE, MADV_HUGEPAGE) == 0;
    for (size_t at = PIECE * (size_t)l->i; l->ok && at < l->f->n; at += PIECE * (size_t)l->n) {
        ssize_t got = pread(l->fd, to, PIECE, (off_t)at);

        l->ok = got > 0;
        sink += l->ok ? walk(to, (size_t)got) : 0;
    }
    free(to);
    return NULL;
}

static bool direct(const bench_file *f, int n)
{
    lane lanes[MAX_LANES];
    int fd = open(f->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    bool ok = fd >= 0;

    for (int i = 0; i < n && fd >= 0; i++) {
        lanes[i] = (lane){ .f = f, .fd = fd, .i = i, .n = n };
        pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]);
    }
    for (int i = 0; i < n && fd >= 0; i++) {
        pthread_join(lanes[i].thread, NULL);
        ok &= lanes[i].ok;
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool direct_1(const bench_file *f) { return direct(f, 1); }
static bool direct_2(const bench_file *f) { return direct(f, 2); }
static bool direct_4(const bench_file *f) { return direct(f, 4); }

/* -- Figures -------------------------------------------------------------------------- */

static void cool(const bench_file *f)
{
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void show(const bench_file *f, bool (*way)(const bench_file *f))
{
    double begin = ebb_clock_s(), cpu = ebb_proc_cpu_s(), gb = (double)f->n / 1e9;

    if (way(f))
        printf("| %5.2f %5.2f ", gb / (ebb_clock_s() - begin), (ebb_proc_cpu_s() - cpu) / gb);
    else
        printf("| %-11.11s ", strerror(errno));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; bool (*way)(const bench_file *f); bool is_warm; } ways[] = {
        { "plain mapping, page faults", plain, true },
        { "MAP_POPULATE", populate_file, true },
        { "mlock", locked, true },
        { "MADV_SEQUENTIAL, dropped behind", sequential, false },
        { "MADV_POPULATE_READ, 8 MiB, dropped behind", populated, false },
        { "direct reads of 4 MiB, one lane", direct_1, false },
        { "direct reads, two lanes", direct_2, false },
        { "direct reads, four lanes", direct_4, false },
    };
    bench_file f = { .path = argc > 1 ? argv[1] : NULL, .fd = -1 };
    struct stat st;

    if (!f.path) {
        puts("bench_load FILE [MIB]: ways to read a file that is as large as a model");
        return 0;
    }
    f.fd = open(f.path, O_RDONLY | O_CLOEXEC);
    if (f.fd < 0 || fstat(f.fd, &st) != 0) {
        fprintf(stderr, "%s: %s\n", f.path, strerror(errno));
        return 1;
    }
    f.n = (size_t)st.st_size & ~(size_t)4095;
    if (argc > 2 && (size_t)atol(argv[2]) << 20 < f.n)
        f.n = (size_t)atol(argv[2]) << 20;
    printf("%.2f GB; GB/s and CPU seconds per GB\n| way | cold | warm |\n", (double)f.n / 1e9);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        cool(&f);
        printf("| %-42s ", ways[i].name);
        show(&f, ways[i].way);
        if (ways[i].is_warm)
            show(&f, ways[i].way);
        else
            printf("| -           ");
        puts("|");
    }
    cool(&f);
    close(f.fd);
    return 0;
}
