/* Pressure stall information (psi.h). */
#include "os/psi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "os/fault.h"

#define PATH    "/proc/pressure/memory"
#define TRIGGER "some 200000 2000000"            /* microseconds; without privilege windows are whole pairs of
                                                    seconds */

int ebb_psi_open(void)
{
    int fd = ebb_os_fault(EACCES) ? -1 : open(PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && write(fd, TRIGGER, strlen(TRIGGER) + 1) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool ebb_psi_poll(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLPRI };

    return fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLPRI);
}

void ebb_psi_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
