/* os/psi.h - notice of tasks that wait for memory (Linux's pressure stall information). */
#ifndef EBB_OS_PSI_H
#define EBB_OS_PSI_H
#include <stdbool.h>

/* A descriptor that becomes ready (POLLPRI) when some task has waited for memory for 200 ms within
 * 2 s; -1 where the kernel has no PSI or does not permit it. */
int  ebb_psi_open(void);
/* Whether that has happened since the last call.  Costs a microsecond.  -1 is fine: never. */
bool ebb_psi_poll(int fd);
void ebb_psi_close(int fd);

#endif
