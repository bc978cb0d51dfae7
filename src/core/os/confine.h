/* os/confine.h - this process gives up what it does not need, for good: files by Landlock, and
 * connections, programs and what only an attacker wants by seccomp, each where the kernel has it.
 *
 * It holds for this thread and all that begin later, so call it while there is only one.  Both are
 * asked of the kernel directly: what there is to say takes three system calls and a table.
 *
 *     ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
 *     ebb_confine_allow(&c, "/var/lib/x", EBB_REACH_WRITE);
 *     ebb_confine_enter(&c);
 *
 * What is given up:
 *  C1  opening, making, removing, renaming files but those allowed here.  Listing folders and
 *      asking for facts (stat) stay; so does what is open already
 *  C2  connections but those allowed; sockets of kinds that ebb does not use
 *  C3  execve
 *  C4  looking into other processes, mounts, modules, namespaces, keyrings, BPF, new rings of
 *      io_uring (uring.h keeps some), typing into the terminal (TIOCSTI), memory and messages
 *      shared by number or name (System V, mq_open)
 *  C5  modes of files that let others in, owners by path, extended attributes (so ACLs, too) */
#ifndef EBB_OS_CONFINE_H
#define EBB_OS_CONFINE_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/status.h"

typedef enum ebb_connect {
    EBB_CONNECT_NOTHING,         /* listening at a UNIX socket is all there is */
    EBB_CONNECT_GIVEN,           /* the same, and what is connected already: connect(2) says yes
                                  * and does nothing, for a library that takes no socket as it is */
    EBB_CONNECT_UNIX,            /* to UNIX sockets */
    EBB_CONNECT_INTERNET,        /* to anybody */
} ebb_connect;

typedef enum ebb_reach {
    EBB_REACH_READ,              /* a file, or all below a folder */
    EBB_REACH_DEVICE,            /* the same, and write to existing files */
    EBB_REACH_WRITE,             /* the same, and make, rename, remove */
    EBB_REACH_RUN,               /* read, and start programs, where only files are confined */
} ebb_reach;

typedef struct ebb_confinement {
    int         ruleset;         /* -1: no Landlock */
    uint64_t    handled;         /* rights that this kernel knows */
    unsigned    landlock_abi;
    ebb_connect connect;
} ebb_confinement;

/* Nothing may be reached yet but connections as `connect` says; nothing is given up before
 * ebb_confine_enter. */
void ebb_confine_begin(ebb_confinement *c, ebb_connect connect);
/* What is not there is passed over. */
void ebb_confine_allow(ebb_confinement *c, const char *path, ebb_reach reach);
/* Reading of the file that `fd` has open, when it is opened again. */
void ebb_confine_allow_open(ebb_confinement *c, int fd);
/* Reading of all that is there now, but what begins with a dot in the folder `home` (a real path).
 * Cost: 3 us for each name in `home` and in the folders above it, of which at most 4096 count. */
void ebb_confine_allow_all_but_hidden(ebb_confinement *c, const char *home);
/* From here on.  IO: neither Landlock nor seccomp took hold; nothing is given up. */
EBB_MUST_CHECK
ebb_status ebb_confine_enter(ebb_confinement *c, ebb_error *err);

/* The same for a child that becomes another program, which may start others: as far as the kernel
 * goes along.  Safe between clone (without shared memory) and exec. */
void ebb_confine_enter_child(ebb_confinement *c);

/* What holds in this process. */
typedef struct ebb_confined {
    unsigned    landlock_abi;    /* 0: files are not confined */
    bool        has_filter;      /* of system calls */
    ebb_connect connect;
} ebb_confined;
const ebb_confined *ebb_confine_state(void);
/* Whether this process may still connect so. */
bool ebb_confine_may_connect(ebb_connect how);

/* The filter of system calls (confine_calls.c); `may_run`: programs may be started.  false: the
 * kernel takes none. */
bool ebb_confine_filter(ebb_connect connect, bool may_run);

#endif
