/* System calls, by seccomp (confine.h): a list of what is refused.  What ebb and the libraries below it may call is too
 * much to be listed, and grows with every version of theirs; what only an attacker wants is a short list. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "os/confine.h"
#include "os/fault.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_WATCHED 1             /* a sanitizer looks into its own process with ptrace */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_WATCHED 1
#endif
#endif

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_removexattrat 466
#endif
#define X32 0x40000000u          /* x86-64's other numbers for the same calls begin here */
#define NEW_NAMESPACES \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

static const int refused[] = {
#ifndef IS_WATCHED
    SYS_ptrace, SYS_process_vm_readv,
#endif
    SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp, SYS_perf_event_open, SYS_userfaultfd,
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_acct,
    SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
    SYS_unshare, SYS_setns, SYS_open_by_handle_at, SYS_truncate,
    SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_setxattrat,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_removexattrat,
#ifdef SYS_chown
    SYS_chown, SYS_lchown,
#endif
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semctl,
    SYS_semtimedop, SYS_mq_open, SYS_mq_unlink,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname,
    SYS_bpf, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_syslog, SYS_personality, SYS_vhangup,
#ifdef SYS_iopl
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};

enum { MAX_STEPS = 384, FOR_OTHERS = 07077 };

typedef struct program {
    struct sock_filter step[MAX_STEPS];
    unsigned short     n;
} program;

static void add_step(program *p, struct sock_filter step)
{
    if (p->n < MAX_STEPS)
        p->step[p->n++] = step;
}

static void load(program *p, size_t offset)
{
    add_step(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* The low half of an argument: all that are looked at are ints, of which the kernel takes no more. */
static void load_argument(program *p, unsigned i)
{
    load(p, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t));
}

static void add_refusal(program *p, int with)
{
    add_step(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)with));
}

static void allow(program *p)
{
    add_step(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* The next step only if what was loaded is `k`. */
static void if_equal(program *p, unsigned k)
{
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1));
}

static void refuse_call(program *p, int call, int with)
{
    if_equal(p, (unsigned)call);
    add_refusal(p, with);
}

/* What follows, until end_call, only for `call`. */
static unsigned short begin_call(program *p, int call)
{
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 0));
    return (unsigned short)(p->n - 1);
}

/* Its arguments have taken the place of its number, so such a call ends here. */
static void end_call(program *p, unsigned short begun)
{
    allow(p);
    p->step[begun].jf = (unsigned char)(p->n - begun - 1);
}

/* socket(2): those of the kinds that are used. */
static void judge_socket(program *p, ebb_connect connect)
{
    static const unsigned families[] = { AF_INET, AF_INET6, AF_NETLINK };
    unsigned short begun = begin_call(p, SYS_socket);

    load_argument(p, 0);
    if (connect == EBB_CONNECT_INTERNET)
        for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
            if_equal(p, families[i]);
            allow(p);
        }
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
    add_refusal(p, EACCES);
    load_argument(p, 1);                         /* streams: others could be sent to without connect */
    add_step(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf));
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0));
    add_refusal(p, EACCES);
    end_call(p, begun);
}

/* chmod(2) and its like, which Landlock does not know: nothing is opened to others, whoever owns it. */
static void judge_mode(program *p, int call, unsigned i_mode)
{
    unsigned short begun = begin_call(p, call);

    load_argument(p, i_mode);
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FOR_OTHERS, 0, 1));
    add_refusal(p, EPERM);
    end_call(p, begun);
}

static void judge_ioctl(program *p)
{
    unsigned short begun = begin_call(p, SYS_ioctl);

    load_argument(p, 1);
    refuse_call(p, TIOCSTI, EPERM);
    refuse_call(p, TIOCLINUX, EPERM);
    end_call(p, begun);
}

/* glibc goes back to clone where there is no clone3, whose flags a filter cannot see. */
static void judge_clone(program *p)
{
    unsigned short begun;

    refuse_call(p, SYS_clone3, ENOSYS);
    begun = begin_call(p, SYS_clone);
    load_argument(p, 0);
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)NEW_NAMESPACES, 0, 1));
    add_refusal(p, EPERM);
    end_call(p, begun);
}

static bool build(program *p, ebb_connect connect, bool may_run)
{
#ifdef ARCHITECTURE
    load(p, offsetof(struct seccomp_data, arch));
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add_step(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add_step(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1));
    add_refusal(p, ENOSYS);
#endif
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse_call(p, refused[i], EPERM);
    refuse_call(p, SYS_io_uring_setup, EPERM);
    if (!may_run) {
        refuse_call(p, SYS_execve, EACCES);
        refuse_call(p, SYS_execveat, EACCES);
    }
    if (connect <= EBB_CONNECT_GIVEN)
        refuse_call(p, SYS_connect, connect == EBB_CONNECT_GIVEN ? 0 : EACCES);
    judge_socket(p, connect);
#ifdef SYS_chmod
    judge_mode(p, SYS_chmod, 1);
#endif
    judge_mode(p, SYS_fchmod, 1);
    judge_mode(p, SYS_fchmodat, 2);
    judge_mode(p, SYS_fchmodat2, 2);
    judge_ioctl(p);
    judge_clone(p);
    allow(p);
    return p->n < MAX_STEPS;
#else
    (void)p;
    (void)connect;
    (void)may_run;
    return false;
#endif
}

bool ebb_confine_filter(ebb_connect connect, bool may_run)
{
    static program p;
    struct sock_fprog whole = { .filter = p.step };

    p.n = 0;
    if (!build(&p, connect, may_run))
        return false;
    whole.len = p.n;
    return !ebb_os_fault(EINVAL) && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) == 0;
}
