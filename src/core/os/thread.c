/* Threads (thread.h). */
#include "os/thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fault.h"

#define BACKGROUND_NICE 10

int ebb_thread_start(pthread_t *out, void *(*run)(void *), void *arg)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF };
    sigset_t others, before;
    int failed;

    if (ebb_os_fault(EAGAIN))
        return EAGAIN;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_BLOCK, &others, &before);
    failed = pthread_create(out, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

void ebb_thread_background(void)
{
    if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), BACKGROUND_NICE) != 0)
        return;
}
