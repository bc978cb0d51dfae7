/* os/spawn.h - another program is started: by this process, or by its broker where it is
 * confined. */
#ifndef EBB_OS_SPAWN_H
#define EBB_OS_SPAWN_H
#include <sys/types.h>

typedef enum ebb_spawn_group {
    EBB_SPAWN_HERE,              /* in the process group of whoever asks */
    EBB_SPAWN_GROUP,             /* in one of its own */
    EBB_SPAWN_SESSION,           /* in a session of its own: it cannot touch the terminal */
    EBB_SPAWN_FILTER,            /* the same; where the kernel has Landlock it reads its standard
                                  * input and what is the system's, and writes to fds alone; where
                                  * it has seccomp it connects nowhere.  1 GiB of data, a minute of
                                  * processor time */
} ebb_spawn_group;

/* Start argv[0], found as a shell would find it, with fds for its descriptors 0, 1, 2 and no
 * others; they stay the caller's.  It is a child of this process in either case, for waitpid and
 * SIGCHLD.  Signals are as a program expects them.  0, or errno: EACCES where the broker may not
 * start such a command. */
int ebb_spawn(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid);

/* For the broker: the same by clone(2), as a child of its parent. */
int ebb_spawn_sibling(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t here,
                      pid_t *pid);

#endif
