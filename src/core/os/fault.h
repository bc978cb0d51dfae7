/* os/fault.h - make the nth system call fail, so that tests can walk every
 * error path.  Every wrapper in core/os asks here before it calls the system. */
#ifndef EBB_OS_FAULT_H
#define EBB_OS_FAULT_H
#include <stdbool.h>

/* The nth guarded call from now (1 = the next one) fails.  Counts over all threads. */
void ebb_os_fail_nth(int n);
/* The same, but only calls of this thread count and fail: which call that is does not depend on
 * what others do meanwhile. */
void ebb_os_fail_nth_here(int n);
/* Back to normal; true if the failing call was reached. */
bool ebb_os_fail_off(void);

/* The nth guarded read from now ends early: it returns the first half of its blocks (0: normal
 * again). */
void ebb_os_short_nth(int n);
/* Every guarded read takes so many microseconds more. */
void ebb_os_slow_reads(unsigned us);
/* No guarded read returns while they are held. */
void ebb_os_hold_reads(bool are_held);
/* For the wrappers: what a read that got n bytes returns. */
long ebb_os_short(long n);

/* For the wrappers: true (and errno = sys_errno) if this call must fail. */
bool ebb_os_fault(int sys_errno);

#endif
