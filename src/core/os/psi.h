/* os/psi.h - to be told when tasks wait for memory (pressure stall information). */
#ifndef EBB_OS_PSI_H
#define EBB_OS_PSI_H
#include <stdbool.h>

/* A descriptor that is told when some task has waited for memory for a tenth of
 * two seconds; -1 where the kernel has no such thing or does not let us. */
int  ebb_psi_open(void);
/* Whether that has happened since the last call.  Costs a microsecond.  -1 is fine: never. */
bool ebb_psi_poll(int fd);
void ebb_psi_close(int fd);

#endif
