#include "os/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int countdown;     /* 0: off; 1: the next call fails; -1: it has failed */
static atomic_bool is_here_only;
static _Thread_local bool is_here;
static atomic_int short_countdown;
static atomic_uint slow_us;
static atomic_bool reads_held;

void ebb_os_fail_nth(int n)
{
    atomic_store(&is_here_only, false);
    atomic_store(&countdown, n);
}

void ebb_os_fail_nth_here(int n)
{
    is_here = true;
    atomic_store(&is_here_only, true);
    atomic_store(&countdown, n);
}

bool ebb_os_fail_off(void)
{
    is_here = false;
    return atomic_exchange(&countdown, 0) < 0;
}

bool ebb_os_fault(int sys_errno)
{
    if (atomic_load_explicit(&countdown, memory_order_relaxed) <= 0)
        return false;
    if (atomic_load_explicit(&is_here_only, memory_order_relaxed) && !is_here)
        return false;
    if (atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_store(&countdown, -1);
    errno = sys_errno;
    return true;
}

void ebb_os_short_nth(int n)
{
    atomic_store(&short_countdown, n);
}

void ebb_os_slow_reads(unsigned us)
{
    atomic_store(&slow_us, us);
}

void ebb_os_hold_reads(bool are_held)
{
    atomic_store(&reads_held, are_held);
}

static void sleep_us(unsigned us)
{
    nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 }, NULL);
}

long ebb_os_short(long n)
{
    unsigned us = atomic_load_explicit(&slow_us, memory_order_relaxed);

    if (us)
        sleep_us(us);
    while (atomic_load_explicit(&reads_held, memory_order_relaxed))
        sleep_us(1000);
    if (atomic_load_explicit(&short_countdown, memory_order_relaxed) <= 0 || atomic_fetch_sub(&short_countdown, 1) != 1)
        return n;
    return n <= 4096 ? n : n < 8192 ? 4096 : n / 2 & ~4095L;     /* a read ends at a block, or at the file's end */
}
