/* UNIX sockets: whose place is taken, and how long a server is waited for (net/listen.h). */
#include "ebb_test.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/listen.h"
#include "support/own_folder.h"

static char folder[64], path[80];

static int set_up(void **state)
{
    (void)state;
    if (ebb_own_folder(folder, sizeof folder, "/tmp/ebb-listen-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/a.sock", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return ebb_own_folder_end(folder);
}

/* A program that is no ebb, and has no lock beside its socket. */
static int begin_other_program(int backlog)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(at.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void test_other_programs_stay(void **state)
{
    int other = begin_other_program(4), fd, lock;
    struct stat before, after;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(ebb_listen_unix(path, &fd, &lock, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "another program listens"));
    assert_int_equal(fd, -1);
    assert_int_equal(lock, -1);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    close(other);
}

/* What it left when it ended is replaced. */
static void test_left_sockets_go(void **state)
{
    int fd, lock, client;
    ebb_error err = { 0 };
    struct stat s;

    (void)state;
    close(begin_other_program(4));
    assert_int_equal(ebb_listen_unix(path, &fd, &lock, &err), EBB_OK);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_int_equal(ebb_connect_unix(path, &client, &err), EBB_OK);
    close(client);
    close(fd);
    close(lock);
}

/* That nobody can be asked does not mean that somebody is there. */
static void test_no_descriptor_left(void **state)
{
    int free_one = dup(0), fd, lock;
    struct rlimit usual, few;
    ebb_error err = { 0 };

    (void)state;
    assert_true(free_one >= 0);
    close(free_one);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = (struct rlimit){ (rlim_t)free_one + 1, usual.rlim_max };       /* for the lock */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(ebb_listen_unix(path, &fd, &lock, &err), EBB_IO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_non_null(strstr(err.msg, strerror(EMFILE)));
    assert_int_equal(fd, -1);
    assert_int_equal(lock, -1);
}

/* It hangs, and as many wait for it as may. */
static void test_full_backlog(void **state)
{
    int other = begin_other_program(0), first, fd;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(ebb_connect_unix(path, &first, &err), EBB_OK);
    assert_int_equal(ebb_connect_unix(path, &fd, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "takes no connections"));
    assert_int_equal(fd, -1);
    close(first);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_other_programs_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_left_sockets_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_descriptor_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_backlog, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
