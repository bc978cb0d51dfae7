/* Random bytes (random.h). */
#include "os/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "os/fault.h"

ebb_status ebb_random(void *out, size_t n, ebb_error *err)
{
    if (ebb_os_fault(EIO) || getrandom(out, n, 0) != (ssize_t)n)
        return EBB_FAIL(err, EBB_IO, "the kernel provides no random numbers: %s", strerror(errno));
    return EBB_OK;
}
