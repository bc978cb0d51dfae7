#include "os/fault.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_int countdown;     /* 0: off; 1: the next call fails; -1: it has failed */

void ebb_os_fail_nth(int n)
{
    atomic_store(&countdown, n);
}

bool ebb_os_fail_off(void)
{
    return atomic_exchange(&countdown, 0) < 0;
}

bool ebb_os_fault(int sys_errno)
{
    if (atomic_load_explicit(&countdown, memory_order_relaxed) <= 0)
        return false;
    if (atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_store(&countdown, -1);
    errno = sys_errno;
    return true;
}
