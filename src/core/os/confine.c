/* Files, by Landlock (confine.h).  Rights and numbers: include/uapi/linux/landlock.h of Linux 6.12. */
#include "os/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/fault.h"

/* The three calls have the same numbers on all architectures. */
enum { LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF };
enum { ASK_ABI = 1, PATH_BENEATH = 1, MAX_NAMES = 4096 };

enum {
    EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, REMOVE_DIR = 1 << 4, REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6, MAKE_DIR = 1 << 7, MAKE_REG = 1 << 8, MAKE_SOCK = 1 << 9, MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11, MAKE_SYM = 1 << 12, REFER = 1 << 13, TRUNCATE = 1 << 14,
    OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE,
};
enum { BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };
enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0 };

static const uint64_t rights[] = {
    [EBB_REACH_READ] = READ_FILE,
    [EBB_REACH_DEVICE] = READ_FILE | WRITE_FILE,
    [EBB_REACH_WRITE] = READ_FILE | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK |
                        REFER,
    [EBB_REACH_RUN] = READ_FILE | EXECUTE,
};

/* As the kernel has them; one that is older takes fewer bytes. */
struct ruleset_attr {
    uint64_t fs, net, scoped;
};
struct __attribute__((packed)) path_attr {
    uint64_t allowed;
    int32_t  parent_fd;
};

static ebb_confined state = { .connect = EBB_CONNECT_INTERNET };

const ebb_confined *ebb_confine_state(void)
{
    return &state;
}

bool ebb_confine_may_connect(ebb_connect how)
{
    return how <= state.connect;
}

void ebb_confine_begin(ebb_confinement *c, ebb_connect connect)
{
    long abi = ebb_os_fault(ENOSYS) ? -1 : syscall(LANDLOCK_CREATE_RULESET, NULL, (size_t)0, ASK_ABI);
    struct ruleset_attr attr = { .fs = EXECUTE | WRITE_FILE | READ_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR |
                                       MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | MAKE_SYM };
    size_t n_attr = sizeof attr.fs;

    *c = (ebb_confinement){ .ruleset = -1, .connect = connect };
    if (abi < 1)
        return;
    attr.fs |= abi >= 2 ? REFER : 0;
    attr.fs |= abi >= 3 ? TRUNCATE : 0;
    if (abi >= 4) {
        n_attr = sizeof attr.fs + sizeof attr.net;
        attr.net = BIND_TCP | (connect < EBB_CONNECT_INTERNET ? CONNECT_TCP : 0);
    }
    if (abi >= 6) {
        n_attr = sizeof attr;
        attr.scoped = connect < EBB_CONNECT_UNIX ? SCOPE_ABSTRACT_SOCKETS : 0;
    }
    c->handled = attr.fs;
    c->ruleset = (int)syscall(LANDLOCK_CREATE_RULESET, &attr, n_attr, 0);
    c->landlock_abi = c->ruleset >= 0 ? (unsigned)abi : 0;
}

/* Passes over what cannot be looked at: nothing is allowed then. */
static void add_rule(ebb_confinement *c, int fd, ebb_reach reach)
{
    struct path_attr path = { .allowed = rights[reach] & c->handled, .parent_fd = fd };
    struct stat st;

    if (c->ruleset < 0 || fstat(fd, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode))
        path.allowed &= OF_A_FILE;
    (void)syscall(LANDLOCK_ADD_RULE, c->ruleset, PATH_BENEATH, &path, 0);
}

/* Passes over what is not there. */
static void allow_at(ebb_confinement *c, int folder, const char *name, ebb_reach reach)
{
    int fd = c->ruleset < 0 ? -1 : openat(folder, name, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return;
    add_rule(c, fd, reach);
    close(fd);
}

void ebb_confine_allow(ebb_confinement *c, const char *path, ebb_reach reach)
{
    allow_at(c, AT_FDCWD, path, reach);
}

void ebb_confine_allow_open(ebb_confinement *c, int fd)
{
    add_rule(c, fd, EBB_REACH_READ);
}

/* All names in `folder` but `except`, and those with a dot if it is the home. */
static void allow_names(ebb_confinement *c, const char *folder, const char *except, size_t n_except, unsigned *n_left)
{
    bool is_home = n_except == 0;
    DIR *d = opendir(folder);
    const struct dirent *e;

    while (d && *n_left > 0 && (e = readdir(d))) {
        bool is_dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        bool is_next = strlen(e->d_name) == n_except && memcmp(e->d_name, except, n_except) == 0;

        if (is_dots || is_next || (is_home && e->d_name[0] == '.'))
            continue;
        --*n_left;
        allow_at(c, dirfd(d), e->d_name, EBB_REACH_READ);
    }
    if (d)
        closedir(d);
}

void ebb_confine_allow_all_but_hidden(ebb_confinement *c, const char *home)
{
    unsigned n_left = MAX_NAMES;
    ebb_buf folder = { 0 };

    for (const char *at = home; c->ruleset >= 0 && ebb_buf_adds(&folder, "/"); ) {
        size_t n;

        at += strspn(at, "/");
        n = strcspn(at, "/");
        allow_names(c, folder.data, at, n, &n_left);
        if (n == 0)
            break;
        ebb_buf_add(&folder, at, n);
        at += n;
    }
    ebb_buf_fini(&folder);
}

void ebb_confine_enter_child(ebb_confinement *c)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        if (c->ruleset >= 0)
            (void)syscall(LANDLOCK_RESTRICT_SELF, c->ruleset, 0);
        (void)ebb_confine_filter(c->connect, true);      /* Landlock lets UNIX sockets be connected to */
    }
    if (c->ruleset >= 0)
        close(c->ruleset);
    c->ruleset = -1;
}

ebb_status ebb_confine_enter(ebb_confinement *c, ebb_error *err)
{
    bool ok = !ebb_os_fault(EPERM) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;

    if (c->ruleset >= 0 && (!ok || syscall(LANDLOCK_RESTRICT_SELF, c->ruleset, 0) != 0))
        c->landlock_abi = 0;
    if (c->ruleset >= 0)
        close(c->ruleset);
    c->ruleset = -1;
    state.landlock_abi = c->landlock_abi;
    state.has_filter = ok && ebb_confine_filter(c->connect, false);
    if (state.has_filter)
        state.connect = c->connect;
    if (state.has_filter || state.landlock_abi)
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "the kernel has neither Landlock nor seccomp for this process");
}
