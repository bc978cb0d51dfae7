/* Starting programs (spawn.h). */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/broker.h"
#include "os/confine.h"

extern char **environ;

/* This process ignores or handles them, and a thread may have blocked some. */
static const int usual[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ, SIGHUP };
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

/* -- By clone(2): what the child does before it becomes the program, no thread of this process may disturb ---- */

/* Of a filter: it is given a file of strangers, and needs nothing but the libraries and data of its own program. */
static void confine_filter(void)
{
    static const char *const systems[] = { "/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/gnu" };
    const struct rlimit data = { 1 << 30, 1 << 30 }, seconds = { 60, 60 };
    ebb_confinement c;

    setrlimit(RLIMIT_DATA, &data);
    setrlimit(RLIMIT_CPU, &seconds);
    ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        ebb_confine_allow(&c, systems[i], EBB_REACH_RUN);
    ebb_confine_allow(&c, "/dev/null", EBB_REACH_DEVICE);
    ebb_confine_allow(&c, "/dev/urandom", EBB_REACH_READ);
    ebb_confine_allow_open(&c, 0);
    ebb_confine_enter_child(&c);
}

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
    if (!failed && (group == EBB_SPAWN_SESSION || group == EBB_SPAWN_FILTER))
        failed = setsid() < 0 ? errno : 0;
    else if (!failed)
        failed = setpgid(0, group == EBB_SPAWN_GROUP ? 0 : here) != 0 ? errno : 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!failed && group == EBB_SPAWN_FILTER)
        confine_filter();
    if (!failed) {
        execvp(argv[0], argv);
        failed = errno;
    }
    (void)!write(tell, &failed, sizeof failed);
    _exit(127);
}

static int spawn_cloned(unsigned long flags, char *const argv[], const int fds[3], ebb_spawn_group group, pid_t here,
                        pid_t *pid)
{
    int ends[2], failed = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    *pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
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

int ebb_spawn_sibling(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t here, pid_t *pid)
{
    return spawn_cloned(CLONE_PARENT, argv, fds, group, here, pid);
}

int ebb_spawn(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid)
{
    if (ebb_broker_is_there())
        return ebb_broker_spawn(argv, fds, group, pid);
    if (group != EBB_SPAWN_FILTER)
        return spawn_here(argv, fds, group, pid);
    return spawn_cloned(0, argv, fds, group, 0, pid);
}
