/* Sleep until memory gets short (alarm.h). */
#include "os/alarm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/fault.h"
#include "os/file.h"
#include "os/psi.h"

struct ebb_alarm {
    int  bell;                   /* ebb_alarm_ring; v1 writes its events to it, too */
    int  level;                  /* v1: memory.pressure_level, open as long as events are wanted */
    int  events;                 /* v2: memory.events */
    int  psi;
    bool has_events;
};

static int open_in(const char *dir, const char *name, ebb_file_mode mode)
{
    char path[sizeof ((ebb_limits_gauge *)0)->dir + 32];
    int fd = -1;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return ebb_file_open(path, mode, &fd, NULL) == EBB_OK ? fd : -1;
}

static bool write_control(int control, const char *line)
{
    return !ebb_os_fault(EACCES) && write(control, line, strlen(line)) == (ssize_t)strlen(line);
}

/* Version 1: one event for use that passes the mark, one for reclaim of the gentlest kind: at the limit use does not
 * change any more while a neighbour's memory takes the place of page cache. */
static bool open_v1(ebb_alarm *a, const ebb_limits_gauge *g, uint64_t near_bytes)
{
    int control = open_in(g->dir, "cgroup.event_control", EBB_FILE_UPDATE);
    uint64_t mark = g->limit_bytes > near_bytes ? g->limit_bytes - near_bytes : 0;
    char line[80];
    bool ok;

    a->level = open_in(g->dir, "memory.pressure_level", EBB_FILE_READ);
    snprintf(line, sizeof line, "%d %d %llu", a->bell, g->fd, (unsigned long long)mark);
    ok = control >= 0 && a->level >= 0 && write_control(control, line);
    snprintf(line, sizeof line, "%d %d low", a->bell, a->level);
    ok = ok && write_control(control, line);
    ebb_file_close(control);
    return ok;
}

ebb_status ebb_alarm_open(const ebb_limits_gauge *g, uint64_t near_bytes, ebb_alarm **out, ebb_error *err)
{
    ebb_alarm *a = calloc(1, sizeof *a);

    *out = NULL;
    if (!a)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an alarm");
    a->level = a->events = -1;
    a->psi = ebb_psi_open();
    a->bell = ebb_os_fault(EMFILE) ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->bell < 0) {
        ebb_psi_close(a->psi);
        free(a);
        return EBB_FAIL(err, EBB_NOMEM, "no descriptor for an alarm: %s", strerror(errno));
    }
    if (g->fd >= 0 && g->is_v2) {
        a->events = open_in(g->dir, "memory.events", EBB_FILE_READ);
        a->has_events = a->events >= 0;
    } else {
        a->has_events = g->fd >= 0 ? open_v1(a, g, near_bytes) : a->psi >= 0;
    }
    *out = a;
    return EBB_OK;
}

void ebb_alarm_close(ebb_alarm *a)
{
    if (!a)
        return;
    ebb_file_close(a->bell);
    ebb_file_close(a->level);
    ebb_file_close(a->events);
    ebb_psi_close(a->psi);
    free(a);
}

bool ebb_alarm_has_events(const ebb_alarm *a)
{
    return a->has_events;
}

void ebb_alarm_wait(ebb_alarm *a, int timeout_ms)
{
    struct pollfd fds[] = {              /* a descriptor of -1 is passed over */
        { .fd = a->bell,
          .events = POLLIN }, { .fd = a->psi, .events = POLLPRI }, { .fd = a->events, .events = POLLPRI },
    };
    uint64_t n;
    char text[512];

    if (poll(fds, sizeof fds / sizeof *fds, timeout_ms) <= 0)
        return;
    if (fds[0].revents && read(a->bell, &n, sizeof n) < 0 && errno != EAGAIN)
        a->has_events = false;
    if (fds[2].revents && pread(a->events, text, sizeof text, 0) <= 0) {         /* reading it is the answer to it */
        ebb_file_close(a->events);
        a->events = -1;
        a->has_events = false;
    }
    if (fds[1].revents & (POLLERR | POLLNVAL)) {
        ebb_psi_close(a->psi);
        a->psi = -1;
    }
}

void ebb_alarm_ring(ebb_alarm *a)
{
    uint64_t one = 1;
    ssize_t n = write(a->bell, &one, sizeof one);

    (void)n;                                     /* full: it rings already */
}
