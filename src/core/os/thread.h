/* os/thread.h - threads that leave signals alone.
 *
 * A process handles its signals in the threads that it chose for that, those which do not block
 * them: these are not of them.  What a thread brings about itself (SIGBUS, SIGSEGV ...) is not
 * blocked, nor is a profiler's clock. */
#ifndef EBB_OS_THREAD_H
#define EBB_OS_THREAD_H
#include <pthread.h>

/* Like pthread_create: 0, or an error's number, and then nothing runs. */
int  ebb_thread_start(pthread_t *out, void *(*run)(void *), void *arg);
/* The calling thread's work can wait for that of the others. */
void ebb_thread_background(void);

#endif
