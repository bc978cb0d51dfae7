/* base/clock.h - what time it is. */
#ifndef EBB_BASE_CLOCK_H
#define EBB_BASE_CLOCK_H
#include <stdint.h>

uint64_t ebb_clock_ns(void);     /* CLOCK_MONOTONIC */
uint64_t ebb_clock_thread_ns(void);      /* what this thread has computed, whatever others did
                                            meanwhile */
double   ebb_clock_s(void);      /* the same in seconds */
int64_t  ebb_clock_unix_ms(void);        /* Unix time in milliseconds; may be set back */

#endif
