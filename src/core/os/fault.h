/* os/fault.h - make the nth system call fail, so that tests can walk every
 * error path.  Every wrapper in core/os asks here before it calls the system. */
#ifndef EBB_OS_FAULT_H
#define EBB_OS_FAULT_H
#include <stdbool.h>

/* The nth guarded call from now (1 = the next one) fails.  Counts over all threads. */
void ebb_os_fail_nth(int n);
/* Back to normal; true if the failing call was reached. */
bool ebb_os_fail_off(void);

/* For the wrappers: true (and errno = sys_errno) if this call must fail. */
bool ebb_os_fault(int sys_errno);

#endif
