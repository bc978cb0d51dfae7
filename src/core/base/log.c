/* The trace file (log.h). */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static atomic_int log_fd = -1;
static atomic_uint n_lost;       /* lines since the last that was written */
static atomic_int why_lost;      /* an errno; 0: none is */

ebb_status ebb_log_open(const char *path, ebb_error *err)
{
    /* a pipe that nobody reads is not waited for, neither here nor at each line */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);

    if (fd < 0 && errno == ENXIO)
        return EBB_FAIL(err, EBB_IO, "trace file %s is a pipe that nobody reads", path);
    if (fd < 0)
        return EBB_FAIL(err, EBB_IO, "trace file %s cannot be opened: %s", path, strerror(errno));
    ebb_log_close();
    atomic_store(&n_lost, 0);
    atomic_store(&why_lost, 0);
    atomic_store(&log_fd, fd);
    return EBB_OK;
}

void ebb_log_close(void)
{
    int fd = atomic_exchange(&log_fd, -1);

    if (fd >= 0)
        close(fd);
}

/* Part of it is as good as nothing: for the rest there was no space. */
static bool write_whole(int fd, const char *bytes, size_t n)
{
    ssize_t written = write(fd, bytes, n);

    if (written >= 0 && (size_t)written < n)
        errno = ENOSPC;
    return written == (ssize_t)n;
}

/* A full disk must not stop a chat: the trace then has a gap, which the next line that fits begins with. */
static void write_line(int fd, const char *line, size_t n)
{
    unsigned lost = atomic_exchange(&n_lost, 0);
    char gap[64];
    int n_gap = lost ? snprintf(gap, sizeof gap, "\n%.6f trace: %u lines are missing here\n", ebb_clock_s(), lost) : 0;

    if ((n_gap == 0 || write_whole(fd, gap, (size_t)n_gap)) && write_whole(fd, line, n))
        return;
    atomic_store(&why_lost, errno);
    atomic_fetch_add(&n_lost, lost + 1);
}

int ebb_log_gap_errno(void)
{
    return atomic_load(&why_lost);
}

void ebb_log(const char *module, const char *fmt, ...)
{
    int fd = atomic_load_explicit(&log_fd, memory_order_relaxed);
    char line[512];
    int n, m;
    va_list ap;

    if (fd < 0)
        return;
    n = snprintf(line, sizeof line, "%.6f %s: ", ebb_clock_s(), module);
    va_start(ap, fmt);
    m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    n += m < 0 ? 0 : m;
    if ((size_t)n > sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    write_line(fd, line, (size_t)n);
}
