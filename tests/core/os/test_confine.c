/* What a process gives up is out of its reach, and what its broker does for it is what was settled: each in a child,
 * since nothing brings it back. */
#include "ebb_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "os/broker.h"
#include "os/confine.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/uring.h"
#include "support/own_folder.h"

/* Of a child. */
static void must(bool is, const char *what, int line)
{
    if (is)
        return;
    fprintf(stderr, "line %d: %s (%s)\n", line, what, strerror(errno));
    _exit(1);
}

#define MUST(x) must(x, #x, __LINE__)
#define FCHMODAT2 452            /* as of Linux 6.6, on all architectures */

static char root[64], home[80];

static void put(const char *name, const char *text)
{
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/%s", home, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void make_folder(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", home, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int make_home(void **state)
{
    (void)state;
    if (ebb_own_folder(root, sizeof root, "/tmp/ebb-confine-XXXXXX") != 0)
        return -1;
    snprintf(home, sizeof home, "%s/home", root);
    if (mkdir(home, 0700) != 0)
        return -1;
    make_folder(".ssh");
    make_folder("own");
    make_folder("docs");
    make_folder("docs/.git");
    put(".ssh/id", "secret");
    put(".profile", "profile");
    put("docs/plan.txt", "plan");
    put("docs/.git/config", "config");
    put("own/state", "state");
    return 0;
}

static int drop_home(void **state)
{
    (void)state;
    return ebb_own_folder_end(root);
}

/* errno of opening it, 0: it is open. */
static int try_open(const char *name, int flags)
{
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : home, name[0] == '/' ? "" : "/", name);
    fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void enter(ebb_connect connect)
{
    ebb_confinement c;
    char own[200];

    snprintf(own, sizeof own, "%s/own", home);
    ebb_confine_begin(&c, connect);
    ebb_confine_allow_all_but_hidden(&c, home);
    ebb_confine_allow(&c, own, EBB_REACH_WRITE);
    ebb_confine_allow(&c, "/dev/null", EBB_REACH_DEVICE);
    MUST(ebb_confine_enter(&c, NULL) == EBB_OK);
}

static void in_child(void (*what)(void))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        what();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool has_landlock(void)
{
    ebb_confinement c;

    ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
    ebb_file_close(c.ruleset);
    return c.landlock_abi > 0;
}

static bool has_filter(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        ebb_confinement c;
        ebb_confine_begin(&c, EBB_CONNECT_INTERNET);
        (void)!ebb_confine_enter(&c, NULL);
        _exit(ebb_confine_state()->has_filter ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* -- Files -------------------------------------------------------------------------------------------- */

static void reach_files(void)
{
    char from[256], to[256];

    enter(EBB_CONNECT_NOTHING);
    MUST(try_open("docs/plan.txt", O_RDONLY) == 0);
    MUST(try_open("docs/.git/config", O_RDONLY) == 0);   /* hidden in a folder that is not */
    MUST(try_open("/etc/passwd", O_RDONLY) == 0);
    MUST(try_open("own/state", O_RDWR | O_TRUNC) == 0);
    MUST(try_open("own/new", O_WRONLY | O_CREAT | O_EXCL) == 0);
    MUST(try_open("/dev/null", O_RDWR) == 0);

    MUST(try_open(".ssh/id", O_RDONLY) == EACCES);
    MUST(try_open(".profile", O_RDONLY) == EACCES);
    MUST(try_open("docs/plan.txt", O_WRONLY) == EACCES);
    MUST(try_open("docs/new", O_WRONLY | O_CREAT) == EACCES);
    MUST(try_open("new", O_WRONLY | O_CREAT) == EACCES);
    snprintf(from, sizeof from, "%s/docs/plan.txt", home);
    snprintf(to, sizeof to, "%s/own/plan.txt", home);
    MUST(unlink(from) != 0 && errno == EACCES);
    MUST(rename(from, to) != 0 && (errno == EACCES || errno == EXDEV));
    MUST(link(from, to) != 0 && (errno == EACCES || errno == EXDEV));
    MUST(truncate(from, 0) != 0 && (errno == EPERM || errno == EACCES));
    snprintf(to, sizeof to, "%s/own/link", home);
    MUST(symlink(from, to) != 0 && errno == EACCES);
    snprintf(from, sizeof from, "%s/own/given", home);
    MUST(rename(from, to) != 0 && errno == EACCES);      /* no link can take another's name */
    snprintf(from, sizeof from, "%s/.ssh/id", home);
    MUST(access(from, R_OK) == 0);               /* names and modes are no secret */
}

static void test_files(void **state)
{
    char given[256];

    (void)state;
    if (!has_landlock()) {
        print_message("the kernel has no Landlock\n");
        skip();
    }
    snprintf(given, sizeof given, "%s/own/given", home);
    assert_int_equal(symlink("state", given), 0);
    in_child(reach_files);
}

/* What is refused is told as what it is. */
static void read_hidden(void)
{
    char path[256];
    ebb_error err = { 0 };
    int fd;

    enter(EBB_CONNECT_NOTHING);
    snprintf(path, sizeof path, "%s/.ssh/id", home);
    MUST(ebb_file_open(path, EBB_FILE_READ, &fd, &err) == EBB_IO && strstr(err.msg, "out of ebb's reach"));
    snprintf(path, sizeof path, "%s/docs/plan.txt", home);
    MUST(ebb_file_open(path, EBB_FILE_UPDATE, &fd, &err) == EBB_IO && strstr(err.msg, "does not write there"));
}

static void test_is_told(void **state)
{
    (void)state;
    if (!has_landlock())
        skip();
    in_child(read_hidden);
}

/* -- Calls ----------------------------------------------------------------------------------------------- */

static void try_calls(void)
{
    char *const argv[] = { (char[]){ "/bin/true" }, NULL };
    struct io_uring_params p = { 0 };
    int fds[2];

    enter(EBB_CONNECT_NOTHING);
    execv(argv[0], argv);
    MUST(errno == EACCES);
    MUST(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EACCES);
    MUST(socket(AF_INET6, SOCK_DGRAM, 0) < 0 && errno == EACCES);
    MUST(socket(AF_UNIX, SOCK_DGRAM, 0) < 0 && errno == EACCES);
    MUST(syscall(SYS_io_uring_setup, 4, &p) < 0 && errno == EPERM);
    MUST(unshare(CLONE_NEWUSER) != 0 && errno == EPERM);
    MUST(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
    MUST(syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0) < 0 && errno == EPERM);
    MUST(syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
    MUST(syscall(SYS_keyctl, 0, -3, 0) < 0 && errno == EPERM);
    MUST(ioctl(0, TIOCSTI, "x") != 0 && errno == EPERM);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
}

/* What Landlock leaves: a file of the owner's, opened for reading, could be opened to all. */
static void try_modes(void)
{
    char path[300];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s/own/file", home);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    enter(EBB_CONNECT_INTERNET);
    MUST(fd >= 0 && chmod(path, 0644) != 0 && errno == EPERM);
    MUST(fchmod(fd, 0620) != 0 && errno == EPERM);
    MUST(fchmodat(AT_FDCWD, path, 04700, 0) != 0 && errno == EPERM);
    MUST(syscall(FCHMODAT2, AT_FDCWD, path, 0604, 0) < 0 && (errno == EPERM || errno == ENOSYS));
    MUST(chown(path, getuid(), getgid()) != 0 && errno == EPERM);
    MUST(setxattr(path, "user.x", "y", 1, 0) != 0 && errno == EPERM);
    MUST(fsetxattr(fd, "user.x", "y", 1, 0) != 0 && errno == EPERM);
    MUST(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600);
    MUST(fchmod(fd, 0400) == 0 && chmod(path, 0600) == 0);
    MUST(shmget(IPC_PRIVATE, 4096, 0600) < 0 && errno == EPERM);
    MUST(msgget(IPC_PRIVATE, 0600) < 0 && errno == EPERM);
    MUST(mq_open("/ebb", O_RDONLY) == (mqd_t)-1 && errno == EPERM);
}

static void connect_unix(ebb_connect how, bool may)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), fd;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/own/sock", home);
    unlink(at.sun_path);
    MUST(bind(listening, (struct sockaddr *)&at, sizeof at) == 0 && listen(listening, 1) == 0);
    enter(how);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(fd >= 0);
    MUST((connect(fd, (struct sockaddr *)&at, sizeof at) == 0) == may && (may || errno == EACCES));
    MUST(ebb_confine_may_connect(EBB_CONNECT_UNIX) == may && !ebb_confine_may_connect(EBB_CONNECT_INTERNET));
    MUST(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EACCES);
}

static void connect_to_nobody(void)
{
    connect_unix(EBB_CONNECT_NOTHING, false);
}

/* Saying yes is all: nobody is connected. */
static void connect_in_appearance(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), fd, pair[2];
    char c;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/own/sock", home);
    unlink(at.sun_path);
    MUST(bind(listening, (struct sockaddr *)&at, sizeof at) == 0 && listen(listening, 1) == 0);
    enter(EBB_CONNECT_GIVEN);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    MUST(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == ENOTCONN);
    MUST(accept(listening, NULL, NULL) < 0 && errno == EAGAIN);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && connect(pair[0], (struct sockaddr *)&at, sizeof at) == 0);
    MUST(write(pair[0], "y", 1) == 1 && read(pair[1], &c, 1) == 1 && c == 'y');
    MUST(ebb_confine_may_connect(EBB_CONNECT_GIVEN) && !ebb_confine_may_connect(EBB_CONNECT_UNIX));
    MUST(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EACCES);
}

static void connect_to_sockets(void)
{
    connect_unix(EBB_CONNECT_UNIX, true);
}

static void connect_to_all(void)
{
    enter(EBB_CONNECT_INTERNET);
    MUST(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    MUST(socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || errno == EAFNOSUPPORT);
    MUST(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EACCES);
    MUST(ebb_confine_may_connect(EBB_CONNECT_INTERNET));
}

static void test_calls(void **state)
{
    (void)state;
    if (!has_filter()) {
        print_message("the kernel takes no filter of system calls\n");
        skip();
    }
    in_child(try_calls);
    in_child(try_modes);
    in_child(connect_to_nobody);
    in_child(connect_in_appearance);
    in_child(connect_to_sockets);
    in_child(connect_to_all);
}

/* Rings are made before; they read, and are lent again when they were given back. */
static void read_by_kept_rings(void)
{
    ebb_uring *u = NULL, *more[8] = { NULL };
    char path[256], text[5] = "";
    uint32_t tag = 0;
    int64_t got = 0;
    int fd, n = 0;

    ebb_uring_keep();
    enter(EBB_CONNECT_NOTHING);
    snprintf(path, sizeof path, "%s/docs/plan.txt", home);
    fd = open(path, O_RDONLY);
    for (int i = 0; i < 3; i++) {
        if (ebb_uring_open(4, &u, NULL) != EBB_OK)
            _exit(77);
        MUST(ebb_uring_read(u, fd, text, 4, 0, 7, NULL) == EBB_OK);
        ebb_uring_wait(u, &tag, &got);
        MUST(tag == 7 && got == 4 && memcmp(text, "plan", 4) == 0);
        ebb_uring_close(u);
    }
    while (n < 8 && ebb_uring_open(4, &more[n], NULL) == EBB_OK)
        n++;
    MUST(n > 1 && n < 8);                        /* no others can be made */
}

static void test_rings(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    if (!has_filter())
        skip();
    pid = fork();
    if (pid == 0) {
        read_by_kept_rings();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("the kernel makes no rings with limits\n");
        skip();
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* -- The broker -------------------------------------------------------------------------------------------- */

static char drafts[200];

static void start_broker(void)
{
    static char sh[] = "/bin/sh", c[] = "-c", script[] = "exit 7", ssh[] = "echo", host[] = "host", cat[] = "cat",
                pull[] = "pull", filter[] = "cat /dev/stdin; echo no >new; cat own/state .ssh/id /etc/passwd";
    static char *exact[] = { sh, c, script, NULL }, *plain[] = { ssh, host, NULL }, *draft[] = { cat, NULL },
                *repository[] = { ssh, pull, NULL }, *filters[] = { sh, c, filter, NULL };
    static const ebb_broker_command commands[] = {
        { exact, EBB_BROKER_NOTHING }, { plain, EBB_BROKER_A_MODEL }, { draft, EBB_BROKER_A_DRAFT },
        { repository, EBB_BROKER_A_REPOSITORY }, { filters, EBB_BROKER_A_FILTER },
    };

    snprintf(drafts, sizeof drafts, "%s/own", home);
    MUST(ebb_broker_start(&(ebb_broker_opts){ .commands = commands, .n_commands = 5, .home = home, .drafts = drafts },
                          NULL) == EBB_OK);
    MUST(ebb_broker_is_there());
    enter(EBB_CONNECT_NOTHING);
}

/* Its exit status; or -errno where it was not started. */
static int run(char *const argv[], int out)
{
    int status = 0, failed;
    pid_t pid = 0;

    failed = ebb_spawn(argv, (int[]){ 0, out, 2 }, EBB_SPAWN_GROUP, &pid);
    if (failed)
        return -failed;
    MUST(getpgid(pid) == pid || errno == ESRCH);
    MUST(waitpid(pid, &status, 0) == pid);       /* it is our child, though the broker made it */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

#define RUN(...) run((char *[]){ __VA_ARGS__, NULL }, 2)
#define W(x) (char[]){ x }

static void start_programs(void)
{
    char draft[256], hidden[256], odd[256];

    start_broker();
    snprintf(draft, sizeof draft, "%s/state", drafts);
    snprintf(odd, sizeof odd, "%s/../.ssh/id", drafts);
    snprintf(hidden, sizeof hidden, "%s/.ssh/id", home);
    MUST(RUN(W("/bin/sh"), W("-c"), W("exit 7")) == 7);
    MUST(RUN(W("/bin/sh"), W("-c"), W("exit 7"), W("more")) == -EACCES);
    MUST(RUN(W("/bin/sh"), W("-c"), W("exit 8")) == -EACCES);
    MUST(RUN(W("/bin/sh"), W("-c")) == -EACCES);
    MUST(RUN(W("/bin/true")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-m"), W("some/model:4")) == 0);
    MUST(RUN(W("echo"), W("host")) == 0);
    MUST(RUN(W("echo"), W("host"), W("a;b")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-m")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-m"), W("a b")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-m"), W("--trace=file")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-m"), W("x"), W("--trace=file")) == -EACCES);
    MUST(RUN(W("echo"), W("host"), W("-oProxyCommand=own/state")) == -EACCES);
    MUST(RUN(W("echo"), W("other")) == -EACCES);
    MUST(RUN(W("cat"), draft) == 0);
    MUST(RUN(W("cat"), hidden) == -EACCES);
    MUST(RUN(W("cat"), odd) == -EACCES);
    MUST(RUN(W("cat")) == -EACCES);
    MUST(RUN(W("echo"), W("pull"), W("0"), W("owner/x-GGUF:Q4_K_M")) == 0);
    MUST(RUN(W("echo"), W("pull"), W("12a"), W("owner/x-GGUF")) == -EACCES);
    MUST(RUN(W("echo"), W("pull"), W(""), W("owner/x-GGUF")) == -EACCES);
    MUST(RUN(W("echo"), W("pull"), W("0"), W("https://host/x.gguf")) == -EACCES);
    MUST(RUN(W("echo"), W("pull"), W("0"), W("owner/x"), W("more")) == -EACCES);
    MUST(RUN(W("echo"), W("pull"), W("owner/x")) == -EACCES);
}

static void open_and_make(void)
{
    char path[256], to[256], text[8] = "";
    ebb_error err = { 0 };
    int fd;

    start_broker();
    /* an export: new, of a kind, in no hidden folder */
    snprintf(path, sizeof path, "%s/talk.md", home);
    MUST(ebb_file_create(path, "talk", 4, &err) == EBB_OK);
    MUST(ebb_file_create(path, "other", 5, &err) == EBB_USAGE && strstr(err.msg, "already exists"));
    MUST(try_open("talk.md", O_RDONLY) == EACCES);       /* the rules know no name that is newer than they are */
    MUST(ebb_file_open(path, EBB_FILE_READ, &fd, &err) == EBB_OK);       /* the broker does */
    MUST(read(fd, text, sizeof text) == 4 && memcmp(text, "talk", 4) == 0);
    close(fd);
    for (int i = 0; i < 4; i++) {
        static const char *const bad[] = { ".ssh/x.md", "talk.sh", "docs/.hidden.md", "no/such/folder.md" };
        snprintf(path, sizeof path, "%s/%s", home, bad[i]);
        MUST(ebb_file_create(path, "talk", 4, &err) != EBB_OK);
        MUST(access(path, F_OK) != 0);
    }
    /* hidden, by any name; and what is the kernel's */
    for (int i = 0; i < 4; i++) {
        static const char *const bad[] = { ".ssh/id", "docs/../.ssh/id", "own/../.profile", ".ssh/../.ssh/id" };
        snprintf(path, sizeof path, "%s/%s", home, bad[i]);
        MUST(ebb_broker_open(path, false) < 0 && errno == EACCES);
    }
    MUST(ebb_broker_open("/proc/self/environ", false) < 0 && errno == EACCES);
    MUST(ebb_broker_open("/proc/self/root/etc/passwd", false) >= 0);     /* its real path is what counts */
    snprintf(to, sizeof to, "%s/none", home);
    MUST(ebb_broker_open(to, false) < 0 && errno == ENOENT);
    ebb_broker_end();
    MUST(!ebb_broker_is_there());
}

/* A filter has the file that it was given, as often as it opens it, and the system's; nothing of the home. */
static void run_filter(void)
{
    static char script[] = "cat /dev/stdin; echo no >new; cat own/state .ssh/id /etc/passwd";
    char *argv[] = { W("/bin/sh"), W("-c"), script, NULL }, path[256], said[4096] = "";
    int ends[2], status = 0, in, n = 0, got;
    pid_t pid = 0;

    snprintf(path, sizeof path, "%s/docs/plan.txt", home);
    MUST(chdir(home) == 0 && pipe(ends) == 0);
    for (int is_broker = 0; is_broker < 2; is_broker++) {
        if (is_broker)
            start_broker();
        in = open(path, O_RDONLY | O_CLOEXEC);
        MUST(in >= 0);
        if (is_broker)                           /* never with more rights than a filter's */
            MUST(ebb_spawn(argv, (int[]){ in, ends[1], 2 }, EBB_SPAWN_SESSION, &pid) == EACCES);
        MUST(ebb_spawn(argv, (int[]){ in, ends[1], ends[1] }, EBB_SPAWN_FILTER, &pid) == 0);
        MUST(waitpid(pid, &status, 0) == pid);
        got = (int)read(ends[0], said, sizeof said - 1);
        MUST(got > 0);
        said[got] = '\0';
        MUST(strncmp(said, "plan", 4) == 0 && strstr(said, "root:"));
        MUST(!strstr(said, "secret") && access("new", F_OK) != 0);
        for (const char *at = said; (at = strstr(at, "ermission denied")) != NULL; at++)
            n++;
        MUST(lseek(in, 0, SEEK_SET) == 0);
        close(in);
    }
    MUST(n == 6);                                /* twice: a new file, another file, a hidden one */
}

/* What becomes a filter connects nowhere (Landlock knows no UNIX sockets), and can still start a program. */
static void enter_as_child(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/run/none" };
    char *const argv[] = { W("/bin/true"), NULL };
    ebb_confinement c;
    int fd;

    ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
    ebb_confine_allow(&c, "/", EBB_REACH_RUN);
    ebb_confine_enter_child(&c);
    MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 && errno == EACCES);
    MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0 && errno == EACCES);
    MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0 && errno == EACCES);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno == EACCES);
    execv(argv[0], argv);
    MUST(false);
}

static void test_child(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    if (!has_filter())
        skip();
    pid = fork();
    if (pid == 0)
        enter_as_child();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_filters(void **state)
{
    (void)state;
    if (!has_landlock() || !has_filter())
        skip();
    in_child(run_filter);
}

static void test_broker_programs(void **state)
{
    (void)state;
    if (!has_landlock() || !has_filter())
        skip();
    in_child(start_programs);
}

static void test_broker_files(void **state)
{
    (void)state;
    if (!has_landlock() || !has_filter())
        skip();
    in_child(open_and_make);
}

/* A link that leads to something hidden is that thing. */
static void follow_link(void)
{
    char path[256];

    start_broker();
    snprintf(path, sizeof path, "%s/shown", home);
    MUST(ebb_broker_open(path, false) < 0 && errno == EACCES);
}

static void test_broker_links(void **state)
{
    char link[256], to[256];

    (void)state;
    if (!has_landlock() || !has_filter())
        skip();
    snprintf(link, sizeof link, "%s/shown", home);
    snprintf(to, sizeof to, "%s/.ssh/id", home);
    assert_int_equal(symlink(to, link), 0);
    in_child(follow_link);
    unlink(link);
}

/* Exports into a folder that is a link to a hidden one at every other moment, as a neighbour may arrange it. */
static void export_to_both(void)
{
    enum { N_EXPORTS = 1000 };
    char path[256];
    int n_made = 0;

    start_broker();
    for (int i = 0; i < N_EXPORTS; i++) {
        snprintf(path, sizeof path, "%s/own/now/%d.md", home, i);
        n_made += ebb_broker_create(path, "talk", 4, NULL) == EBB_OK;
    }
    MUST(n_made > 0);
}

static void test_broker_swapped_folders(void **state)
{
    char folder[200], link[200], hidden[200];
    struct dirent *entry;
    DIR *d;
    pid_t pid;
    int n = 0;

    (void)state;
    if (!has_landlock() || !has_filter())
        skip();
    snprintf(folder, sizeof folder, "%s/own/now", home);
    snprintf(link, sizeof link, "%s/own/then", home);
    snprintf(hidden, sizeof hidden, "%s/.ssh", home);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(hidden, link), 0);
    pid = fork();
    assert_true(pid >= 0);
    while (pid == 0)
        if (renameat2(AT_FDCWD, folder, AT_FDCWD, link, RENAME_EXCHANGE) != 0)
            _exit(1);
    in_child(export_to_both);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    d = opendir(hidden);
    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        n += strstr(entry->d_name, ".md") != NULL;
    closedir(d);
    assert_int_equal(n, 0);
}

/* A server's removes its socket, and does nothing that others do. */
static void start_servers_broker(void)
{
    static char sh[] = "/bin/sh", c[] = "-c", script[] = "exit 7";
    static char *exact[] = { sh, c, script, NULL };
    static const ebb_broker_command commands[] = { { exact, EBB_BROKER_NOTHING } };
    char socket_path[200], export[200];
    pid_t pid;
    int fd;

    snprintf(socket_path, sizeof socket_path, "%s/docs/sock", home);
    snprintf(export, sizeof export, "%s/docs/servers.md", home);
    fd = open(socket_path, O_WRONLY | O_CREAT, 0600);
    MUST(fd >= 0);
    close(fd);
    MUST(ebb_broker_start(&(ebb_broker_opts){ .commands = commands, .n_commands = 1, .home = home,
                                              .socket = socket_path }, NULL) == EBB_OK);
    MUST(ebb_broker_spawn(exact, (int[]){ 0, 1, 2 }, EBB_SPAWN_GROUP, &pid) == EACCES);
    MUST(ebb_broker_create(export, "x", 1, NULL) != EBB_OK && access(export, F_OK) != 0);
    MUST(ebb_broker_open(socket_path, false) < 0 && errno == EACCES && access(socket_path, F_OK) == 0);
    ebb_broker_remove_socket();
    MUST(access(socket_path, F_OK) != 0 && errno == ENOENT);
}

static void test_broker_of_a_server(void **state)
{
    (void)state;
    in_child(start_servers_broker);
}

/* It ends with its owner, also with one that was killed: the pipe that it would hold is closed. */
static void test_broker_ends(void **state)
{
    int ends[2], status;
    char byte;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        if (ebb_broker_start(&(ebb_broker_opts){ .home = home }, NULL) == EBB_OK)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

/* -- Without a kernel ------------------------------------------------------------------------------------------ */

static void fail_each(void)
{
    ebb_error err = { 0 };

    for (int n = 1;; n++) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            ebb_confinement c;
            ebb_status st;

            ebb_os_fail_nth(n);
            ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
            ebb_confine_allow(&c, "/", EBB_REACH_READ);
            st = ebb_confine_enter(&c, &err);
            if (!ebb_os_fail_off())
                _exit(77);
            MUST(st == EBB_OK ? ebb_confine_state()->landlock_abi || ebb_confine_state()->has_filter
                              : !ebb_confine_state()->landlock_abi && !ebb_confine_state()->has_filter);
            MUST(ebb_confine_may_connect(EBB_CONNECT_INTERNET) == !ebb_confine_state()->has_filter);
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            _exit(n > 3 ? 0 : 1);
        MUST(WEXITSTATUS(status) == 0);
    }
}

static void test_each_fault(void **state)
{
    (void)state;
    in_child(fail_each);
}

static void test_repositories(void **state)
{
    static const char *const good[] = { "a/b", "owner/Name-1.5B_x.GGUF", "o/n:Q4_K_M", "o/n:dir/x.gguf", "o/n@main",
                                        "o/n:Q8_0@v1" };
    static const char *const bad[] = { "", "a", "a/", "/b", "a/b/c", "-a/b", "a/-b", ".a/b", "a/.b", "../b", "a/..",
                                       "a/b c", "a/b:x\n", "a/b;c", "a/b:$x", "http://a/b", "a:b/c", "a@b/c",
                                       "a/b:\xc3\xa4" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!ebb_broker_is_repository(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ebb_broker_is_repository(bad[i]))
            fail_msg("%s is let through", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_is_told),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_broker_programs),
        cmocka_unit_test(test_filters), cmocka_unit_test(test_child),
        cmocka_unit_test(test_repositories),
        cmocka_unit_test(test_broker_files),
        cmocka_unit_test(test_broker_links),
        cmocka_unit_test(test_broker_swapped_folders),
        cmocka_unit_test(test_broker_of_a_server),
        cmocka_unit_test(test_broker_ends),
        cmocka_unit_test(test_each_fault),
    };

    return cmocka_run_group_tests(tests, make_home, drop_home);
}
