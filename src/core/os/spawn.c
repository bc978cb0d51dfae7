/* Starting programs (spawn.h). */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/broker.h"

extern char **environ;

/* This process ignores or handles them, and a thread may have blocked some. */
static const int usual[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGHUP };
enum { N_USUAL = sizeof usual / sizeof *usual };

/* -- By this process ------------------------------------------------------------------------------- */

static int set_attributes(posix_spawnattr_t *attr, ebb_spawn_group group)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t defaults, none;
    int failed;

    sigemptyset(&none);
    sigemptyset(&defaults);
    for (int i = 0; i < N_USUAL; i++)
        sigaddset(&defaults, usual[i]);
    if (group == EBB_SPAWN_GROUP)
        flags |= POSIX_SPAWN_SETPGROUP;
    if (group == EBB_SPAWN_SESSION)
        flags |= POSIX_SPAWN_SETSID;
    failed = posix_spawnattr_setsigmask(attr, &none);
    if (!failed)
        failed = posix_spawnattr_setsigdefault(attr, &defaults);
    if (!failed)
        failed = posix_spawnattr_setpgroup(attr, 0);
    return failed ? failed : posix_spawnattr_setflags(attr, flags);
}

static int spawn_here(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int failed;

    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    failed = set_attributes(&attr, group);
    for (int i = 0; i < 3 && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(&files, fds[i], i);
    if (!failed)
        failed = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

int ebb_spawn(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid)
{
    return ebb_broker_is_there() ? ebb_broker_spawn(argv, fds, group, pid) : spawn_here(argv, fds, group, pid);
}

/* -- By the broker ---------------------------------------------------------------------------------- */

/* Of the child: never returns.  Descriptors 0, 1, 2 may themselves be among fds, so they are copied away first. */
static void become(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t here, int tell)
{
    struct sigaction by_default = { .sa_handler = SIG_DFL };
    sigset_t none;
    int copies[3], failed = 0;

    for (int i = 0; i < N_USUAL; i++)
        sigaction(usual[i], &by_default, NULL);
    sigaction(SIGUSR1, &by_default, NULL);
    for (int i = 0; i < 3 && !failed; i++) {
        copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        failed = copies[i] < 0 ? errno : 0;
    }
    for (int i = 0; i < 3 && !failed; i++)
        failed = dup2(copies[i], i) < 0 ? errno : 0;
    if (!failed && group == EBB_SPAWN_SESSION)
        failed = setsid() < 0 ? errno : 0;
    else if (!failed)
        failed = setpgid(0, group == EBB_SPAWN_GROUP ? 0 : here) != 0 ? errno : 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!failed) {
        execvp(argv[0], argv);
        failed = errno;
    }
    (void)!write(tell, &failed, sizeof failed);
    _exit(127);
}

int ebb_spawn_sibling(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t here, pid_t *pid)
{
    int ends[2], failed = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    *pid = (pid_t)syscall(SYS_clone, (unsigned long)(CLONE_PARENT | SIGCHLD), 0, 0, 0, 0);
    if (*pid == 0)
        become(argv, fds, group, here, ends[1]);
    if (*pid < 0)
        failed = errno;
    close(ends[1]);
    do {
        got = *pid > 0 ? read(ends[0], &failed, sizeof failed) : 0;
    } while (got < 0 && errno == EINTR);
    close(ends[0]);
    return failed;
}
