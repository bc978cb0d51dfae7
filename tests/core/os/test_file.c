/* Files that are written as a whole: the old content or the new, and errors that name what was asked for. */
#include "ebb_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/fault.h"
#include "os/file.h"

static char dir[64];

/* Why names cannot be exchanged, or kept, at once; 0: they can. */
static int lacks_flags;

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (flags && lacks_flags) {
        errno = lacks_flags;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "build/test_file.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    unlink(path);
    return rmdir(dir);
}

static size_t count_files(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;                                /* . and .. */
}

static void assert_holds(const char *path, const char *want)
{
    ebb_buf text = { 0 };

    assert_int_equal(ebb_file_slurp(path, 100, &text, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&text), want);
    ebb_buf_fini(&text);
}

static void test_old_or_new(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(ebb_file_replace(path, "old", 3, NULL), EBB_OK);
    for (int n = 1;; n++) {
        ebb_status st;
        bool reached;

        ebb_os_fail_nth(n);
        st = ebb_file_replace(path, "new", 3, NULL);
        reached = ebb_os_fail_off();
        assert_int_equal(count_files(), 1);      /* nothing is left beside it */
        if (!reached) {
            assert_true(n > 3);                  /* opened, written, synced, renamed */
            assert_int_equal(st, EBB_OK);
            break;
        }
        assert_int_not_equal(st, EBB_OK);
        assert_holds(path, "old");
    }
    assert_holds(path, "new");
}

static void test_the_folder_is_not_there(void **state)
{
    char path[128];
    ebb_error err = { 0 };

    (void)state;
    snprintf(path, sizeof path, "%s/none/a.md", dir);
    assert_int_equal(ebb_file_replace(path, "x", 1, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "none/a.md: its folder does not exist"));
}

/* A new file is never written over another one. */
static void test_only_new(void **state)
{
    char path[128];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    unlink(path);
    for (int n = 1;; n++) {
        ebb_status st;
        bool reached;

        ebb_os_fail_nth(n);
        st = ebb_file_create(path, "mine", 4, &err);
        reached = ebb_os_fail_off();
        if (!reached) {
            assert_int_equal(st, EBB_OK);
            break;
        }
        assert_int_equal(st, EBB_IO);
        assert_int_equal(count_files(), 0);
    }
    assert_int_equal(ebb_file_create(path, "other", 5, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "already exists"));
    assert_holds(path, "mine");
    assert_int_equal(count_files(), 1);
}

/* Nor where the file system (EINVAL), or what stands between ebb and a kernel (ENOSYS), has no rename for that. */
static void test_only_new_without_flags(void **state)
{
    static const int lacks[] = { EINVAL, ENOSYS };
    char path[128];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    for (int i = 0; i < 2; i++) {
        unlink(path);
        lacks_flags = lacks[i];
        assert_int_equal(ebb_file_create(path, "mine", 4, &err), EBB_OK);
        assert_int_equal(ebb_file_create(path, "other", 5, &err), EBB_USAGE);
        lacks_flags = 0;
        assert_holds(path, "mine");
        assert_int_equal(count_files(), 1);
    }
}

/* A read that ends early goes on where it ended, at a block's beginning. */
static void test_short_reads(void **state)
{
    enum { N = 5 * 4096 + 100 };
    char path[128], data[N], got[6 * 4096];
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    for (int i = 0; i < N; i++)
        data[i] = (char)(i * 7 + i / 4096);
    assert_int_equal(ebb_file_replace(path, data, N, NULL), EBB_OK);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
    for (int nth = 1; nth <= 3; nth++) {
        memset(got, 0, sizeof got);
        ebb_os_short_nth(nth);
        assert_int_equal(ebb_file_read_range(fd, path, got, sizeof got, N, 0, NULL), EBB_OK);
        assert_memory_equal(got, data, N);
        ebb_os_short_nth(nth);
        assert_int_equal(ebb_file_read_range(fd, path, got, 4096, 4096, 4096, NULL), EBB_OK);
        assert_memory_equal(got, data + 4096, 4096);
    }
    ebb_os_short_nth(0);
    assert_int_equal(ebb_file_read_range(fd, path, got, sizeof got, N + 1, 0, NULL), EBB_FORMAT);
    ebb_file_close(fd);
}

static void test_slurp(void **state)
{
    enum { N = 150000 };
    ebb_buf text = { 0 };
    char path[128], *data = malloc(N);
    ebb_error err;

    (void)state;
    assert_non_null(data);
    for (int i = 0; i < N; i++)
        data[i] = (char)(i % 251);
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(ebb_file_replace(path, data, N, NULL), EBB_OK);
    assert_true(ebb_buf_adds(&text, "head"));
    assert_int_equal(ebb_file_slurp(path, N, &text, NULL), EBB_OK);      /* behind what is there */
    assert_int_equal(text.len, N + 4);
    assert_memory_equal(text.data, "head", 4);
    assert_memory_equal(text.data + 4, data, N);
    ebb_buf_clear(&text);
    assert_int_equal(ebb_file_slurp(path, N - 1, &text, &err), EBB_LIMIT);
    assert_int_equal(ebb_file_slurp("/nowhere/at/all", 10, &text, &err), EBB_NOTFOUND);
    ebb_buf_fini(&text);
    free(data);
}

/* What says what to run is this user's own, or root's. */
static void test_trusted(void **state)
{
    char path[128];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    unlink(path);
    assert_int_equal(ebb_file_expect_trusted(path, &err), EBB_IO);
    assert_int_equal(ebb_file_replace(path, "x", 1, NULL), EBB_OK);
    assert_int_equal(ebb_file_expect_trusted(path, &err), EBB_OK);
    assert_int_equal(ebb_file_expect_trusted("/etc/passwd", &err), EBB_OK);
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(ebb_file_expect_trusted(path, &err), EBB_OK);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(ebb_file_expect_trusted(path, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "chmod o-w"));
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() != 0 || chown(path, 65534, 65534) != 0)
        return;
    assert_int_equal(ebb_file_expect_trusted(path, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "another user"));
}

/* Without /proc the name is taken, if it still names that file. */
static void test_reopen(void **state)
{
    char path[128], text[4] = "";
    ebb_error err;
    int fd, again;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(ebb_file_replace(path, "old", 3, NULL), EBB_OK);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
    ebb_os_fail_nth(1);
    assert_int_equal(ebb_file_reopen(fd, path, EBB_FILE_READ, &again, NULL), EBB_OK);
    assert_true(ebb_os_fail_off());
    ebb_file_close(again);
    assert_int_equal(ebb_file_replace(path, "new", 3, NULL), EBB_OK);
    assert_int_equal(ebb_file_reopen(fd, path, EBB_FILE_READ, &again, NULL), EBB_OK);
    assert_int_equal(ebb_file_read_at(again, path, text, 3, 0, NULL), EBB_OK);
    assert_string_equal(text, "old");
    ebb_file_close(again);
    ebb_os_fail_nth(1);
    assert_int_equal(ebb_file_reopen(fd, path, EBB_FILE_READ, &again, &err), EBB_UNSUPPORTED);
    assert_true(ebb_os_fail_off());
    assert_int_equal(again, -1);
    assert_non_null(strstr(err.msg, "a different file"));
    ebb_file_close(fd);
}

/* Whoever can write to a folder can put links and pipes there, under any name he can guess. */
static void test_links_and_pipes(void **state)
{
    char victim[128], link[128];
    ebb_buf beside = { 0 };
    ebb_error err;
    int fd;

    (void)state;
    snprintf(victim, sizeof victim, "%s/a", dir);
    snprintf(link, sizeof link, "%s/l", dir);
    assert_int_equal(ebb_file_replace(victim, "mine", 4, NULL), EBB_OK);
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(ebb_file_open(link, EBB_FILE_CREATE, &fd, &err), EBB_IO);
    assert_int_equal(ebb_file_open(victim, EBB_FILE_CREATE, &fd, &err), EBB_IO);
    assert_int_equal(ebb_file_open(link, EBB_FILE_UPDATE_HERE, &fd, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "is a symbolic link"));
    assert_int_equal(ebb_file_replace(link, "other", 5, NULL), EBB_OK);         /* the link goes, not what it names */
    assert_holds(victim, "mine");
    assert_holds(link, "other");
    unlink(link);
    assert_int_equal(ebb_file_begin_beside(victim, &beside, &fd, &err), EBB_OK);
    ebb_file_close(fd);
    unlink(beside.data);
    ebb_buf_clear(&beside);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_int_equal(ebb_file_slurp(link, 100, &beside, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "is a pipe"));
    assert_int_equal(ebb_file_open(link, EBB_FILE_READ, &fd, &err), EBB_OK);    /* at once: nobody writes into it */
    ebb_file_close(fd);
    unlink(link);
    ebb_buf_fini(&beside);
}

/* What calls itself an empty file and has neither text nor an end; it takes root. */
static void test_a_file_without_end(void **state)
{
    ebb_buf text = { 0 };
    ebb_error err;
    int fd;

    (void)state;
    if (ebb_file_open("/proc/kmsg", EBB_FILE_READ, &fd, NULL) != EBB_OK)
        skip();
    ebb_file_close(fd);
    assert_int_equal(ebb_file_slurp("/proc/kmsg", 64 << 20, &text, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "has no end"));
    ebb_buf_clear(&text);
    assert_int_equal(ebb_file_slurp("/proc/self/status", 1 << 20, &text, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&text), "Threads:"));
    ebb_buf_fini(&text);
}

/* What is typed stays for whoever reads the keys. */
static void test_a_terminal_is_no_file(void **state)
{
    ebb_buf text = { 0 };
    char name[64], typed[8];
    ebb_error err;
    int ends[2];

    (void)state;
    assert_int_equal(openpty(&ends[0], &ends[1], name, NULL, NULL), 0);
    assert_int_equal(write(ends[0], "keys\n\004", 6), 6);
    assert_int_equal(ebb_file_slurp(name, 100, &text, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "is a terminal"));
    assert_int_equal(read(ends[1], typed, sizeof typed), 5);
    close(ends[0]);
    close(ends[1]);
    ebb_buf_fini(&text);
}

/* A pipe is refused with all that is in it. */
static void test_a_kept_file_is_no_pipe(void **state)
{
    char path[96], got[8];
    ebb_buf text = { 0 };
    ebb_error err;
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/kept", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "text", 4), 4);
    assert_int_equal(ebb_file_slurp_kept(path, 100, &text, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "/kept is a named pipe, not a file"));
    assert_int_equal(read(fd, got, sizeof got), 4);
    assert_int_equal(close(fd) + unlink(path), 0);
    assert_int_equal(ebb_file_slurp_kept(path, 100, &text, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_file_slurp_kept("/dev/null", 100, &text, &err), EBB_OK);
    assert_int_equal(ebb_file_slurp_kept("/dev/zero", 100, &text, &err), EBB_FORMAT);
    assert_int_equal(text.len, 0);
    assert_int_equal(ebb_file_replace(path, "text", 4, NULL), EBB_OK);
    assert_int_equal(ebb_file_slurp_kept(path, 100, &text, &err), EBB_OK);
    assert_string_equal(text.data, "text");
    assert_int_equal(unlink(path), 0);
    ebb_buf_fini(&text);
}

/* It would fill all the memory that a file may; what has nothing to say is as good as an empty file. */
static void test_a_device_is_no_file(void **state)
{
    ebb_buf text = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_file_slurp("/dev/zero", 64 << 20, &text, &err), EBB_IO);
    assert_string_equal(err.msg, "/dev/zero: is a device, not a file; name a file, or a pipe");
    assert_int_equal(text.len, 0);
    assert_int_equal(ebb_file_slurp("/dev/null", 64 << 20, &text, &err), EBB_OK);
    assert_int_equal(text.len, 0);
    ebb_buf_fini(&text);
}

static volatile sig_atomic_t was_asked;

static void on_asked(int number)
{
    (void)number;
    was_asked = 1;
}

/* A signal goes to whoever holds the lock, and to nobody once it is free. */
static void test_signal_to_the_holder(void **state)
{
    char path[128], byte;
    int fd, ends[2], status;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sigset_t usr1, before;

        sigemptyset(&usr1);
        sigaddset(&usr1, SIGUSR1);
        sigprocmask(SIG_BLOCK, &usr1, &before);
        signal(SIGUSR1, on_asked);
        if (ebb_file_open(path, EBB_FILE_UPDATE, &fd, NULL) != EBB_OK || ebb_file_lock(fd, path, NULL) != EBB_OK ||
            write(ends[1], "x", 1) != 1)
            _exit(2);
        while (!was_asked)
            sigsuspend(&before);
        _exit(0);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
    if (!ebb_file_signal_holder(fd, SIGUSR1)) {  /* a kernel without: nobody was hit */
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        skip();
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_false(ebb_file_signal_holder(fd, SIGUSR1));
    ebb_file_close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* The bytes a file has that is open as `fd`. */
static bool is_all_zero(int fd, size_t n)
{
    char bytes[256];

    assert_true(n <= sizeof bytes);
    assert_int_equal(ebb_file_read_at(fd, "", bytes, n, 0, NULL), EBB_OK);
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* What is removed so is overwritten, but for what somebody has linked to keep. */
static void test_wiped(void **state)
{
    char path[128], copy[128];
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    snprintf(copy, sizeof copy, "%s/b", dir);
    for (int n_names = 1; n_names <= 2; n_names++) {
        assert_int_equal(ebb_file_replace(path, "secret text", 11, NULL), EBB_OK);
        assert_true(n_names == 1 || link(path, copy) == 0);
        assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
        ebb_file_wipe(path);
        assert_int_not_equal(access(path, F_OK), 0);
        assert_int_equal(is_all_zero(fd, 11), n_names == 1);
        ebb_file_close(fd);
    }
    assert_int_equal(ebb_file_open(copy, EBB_FILE_UPDATE, &fd, NULL), EBB_OK);
    ebb_file_overwrite(fd);                      /* it still has its name */
    assert_false(is_all_zero(fd, 11));
    assert_int_equal(unlink(copy), 0);
    ebb_file_overwrite(fd);
    assert_true(is_all_zero(fd, 11));
    ebb_file_close(fd);
    ebb_file_wipe(path);                         /* there is none */
}

/* Until it is overwritten, what was there has a name, by which a kill leaves it to be found. */
/* As /dev/null, to which links of users lead: it stays what it is. */
static void test_no_device_is_replaced(void **state)
{
    char path[128], from[128];
    struct stat st;
    ebb_error err = { 0 };

    (void)state;
    snprintf(path, sizeof path, "%s/pipe", dir);
    snprintf(from, sizeof from, "%s/from", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ebb_file_replace(from, "x", 1, NULL), EBB_OK);
    assert_int_equal(ebb_file_replace(path, "x", 1, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "pipe: is no file"));
    assert_int_equal(ebb_file_replace_wiping(path, "x", 1, &err), EBB_USAGE);
    assert_int_equal(ebb_file_rename_wiping(from, path, &err), EBB_USAGE);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unlink(path) + unlink(from), 0);
}

static void test_replaced_and_wiped(void **state)
{
    char path[128], events[4096];
    bool was_named = false;
    int fd, watch = inotify_init1(IN_NONBLOCK);
    ssize_t n;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(ebb_file_replace(path, "secret text", 11, NULL), EBB_OK);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
    assert_true(watch >= 0 && inotify_add_watch(watch, dir, IN_MODIFY | IN_DELETE) >= 0);
    assert_int_equal(ebb_file_replace_wiping(path, "news", 4, NULL), EBB_OK);
    assert_true(is_all_zero(fd, 11));
    n = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < n;) {
        struct inotify_event e;

        memcpy(&e, events + at, sizeof e);
        at += (ssize_t)sizeof e;
        was_named = was_named || ((e.mask & IN_DELETE) && strstr(events + at, ".new"));
        at += (ssize_t)e.len;
    }
    assert_true(was_named);
    ebb_file_close(fd);
    close(watch);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, NULL), EBB_OK);
    assert_int_equal(read(fd, events, sizeof events), 4);
    ebb_file_close(fd);
    assert_int_equal(unlink(path), 0);
}

/* What was begun goes with all that it held; what has another name by now is somebody's. */
static void test_begun_and_removed(void **state)
{
    static const char begun[] = ".0123456789abcdef.new";
    char path[128], beside[160];
    int fd, kept;

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    snprintf(beside, sizeof beside, "%s%s", path, begun);
    assert_int_equal(ebb_file_replace(beside, "secret text", 11, NULL), EBB_OK);
    assert_int_equal(ebb_file_open(beside, EBB_FILE_READ, &fd, NULL), EBB_OK);
    ebb_file_remove_begun(path);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_true(is_all_zero(fd, 11));
    ebb_file_close(fd);
    assert_int_equal(ebb_file_replace(beside, "secret text", 11, NULL), EBB_OK);
    assert_int_equal(link(beside, path), 0);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &kept, NULL), EBB_OK);
    ebb_file_remove_begun(path);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_false(is_all_zero(kept, 11));
    ebb_file_close(kept);
    assert_int_equal(unlink(path), 0);
}

/* Beside the link that was named, and beside what it leads to. */
static void test_begun_behind_a_link(void **state)
{
    static const char *const names[] = { "link.0123456789abcdef.new", "real.0123456789abcdef.new" };
    char real[128], path[128], beside[160];

    (void)state;
    snprintf(real, sizeof real, "%s/real", dir);
    snprintf(path, sizeof path, "%s/link", dir);
    assert_int_equal(ebb_file_replace(real, "text", 4, NULL), EBB_OK);
    assert_int_equal(symlink("real", path), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s/%s", dir, names[i]);
        assert_int_equal(ebb_file_replace(beside, "begun", 5, NULL), EBB_OK);
    }
    ebb_file_wipe_begun(path);
    for (int i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s/%s", dir, names[i]);
        assert_int_not_equal(access(beside, F_OK), 0);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(real), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_or_new),
        cmocka_unit_test(test_the_folder_is_not_there),
        cmocka_unit_test(test_only_new), cmocka_unit_test(test_only_new_without_flags),
        cmocka_unit_test(test_no_device_is_replaced),
        cmocka_unit_test(test_short_reads),
        cmocka_unit_test(test_slurp), cmocka_unit_test(test_a_kept_file_is_no_pipe),
        cmocka_unit_test(test_trusted),
        cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_links_and_pipes),
        cmocka_unit_test(test_a_terminal_is_no_file),
        cmocka_unit_test(test_a_device_is_no_file),
        cmocka_unit_test(test_a_file_without_end),
        cmocka_unit_test(test_signal_to_the_holder),
        cmocka_unit_test(test_wiped),
        cmocka_unit_test(test_replaced_and_wiped), cmocka_unit_test(test_begun_and_removed),
        cmocka_unit_test(test_begun_behind_a_link),
    };

    return cmocka_run_group_tests_name("file", tests, setup, teardown);
}
