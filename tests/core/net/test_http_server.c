/* Connections that come byte by byte, or leave open where a request ends (net/http_server.h). */
#include "ebb_test.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/http_server.h"

enum { MAX_CONNECTIONS = 8, SILENCE_S = 1, STEP_MS = 50, STEPS = 600, PIECE = 10 << 10, PIECES = 60 };
/* More than the kernel takes from a server for a client that does not read, and less than twice of it. */
enum { MAX_BODIES = 16 << 20, LARGE_REPLY = 12 << 20 };

static atomic_bool holds_reply;
static atomic_uint n_forgotten;          /* bodies */

static void reply(void *arg, ebb_http_exchange *x)
{
    static const char large[LARGE_REPLY];
    size_t n;

    (void)arg;
    if (strcmp(ebb_http_path(x), "/large") == 0) {
        ebb_http_reply(x, 200, "text/plain", large, sizeof large, 0);
        return;
    }
    if (strcmp(ebb_http_path(x), "/forget") == 0) {
        ebb_http_forget_body(x);
        assert_string_equal(ebb_http_body(x, &n), "");
        assert_int_equal(n, 0);
        atomic_fetch_add(&n_forgotten, 1);
    }
    while (atomic_load(&holds_reply))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    ebb_http_reply(x, 200, "text/plain", "yes", 3, 0);
}

static ebb_http_server *begin_with(ebb_http_server_opts opts, struct sockaddr_in *at)
{
    socklen_t n = sizeof *at;
    ebb_http_server *s;
    ebb_error err = { 0 };

    *at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    opts.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(opts.listen_fd, (struct sockaddr *)at, n), 0);
    assert_int_equal(listen(opts.listen_fd, 64), 0);
    assert_int_equal(getsockname(opts.listen_fd, (struct sockaddr *)at, &n), 0);
    if (ebb_http_server_open(&opts, &s, &err) == EBB_UNSUPPORTED)
        skip();
    assert_int_equal(err.code, EBB_OK);
    return s;
}

static ebb_http_server *begin(struct sockaddr_in *at)
{
    return begin_with((ebb_http_server_opts){ .name = "test", .max_connections = MAX_CONNECTIONS,
                                              .silence_s = SILENCE_S, .max_body = LARGE_REPLY,
                                              .max_bodies = MAX_BODIES, .on_request = reply }, at);
}

static int call(const struct sockaddr_in *at, const char *text)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

/* Whether the other side has ended it. */
static bool has_ended(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char c;

    return poll(&p, 1, 0) > 0 && recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

/* One byte more, again and again, while slow callers are looked for; false: the connection stands after all that. */
static bool dribble(ebb_http_server *s, int fd, char byte)
{
    for (int i = 0; i < STEPS; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000L }, NULL);
        (void)send(fd, &byte, 1, MSG_NOSIGNAL);
        ebb_http_server_end_slow(s);
        if (has_ended(fd))
            return true;
    }
    return false;
}

static void read_reply(int fd)
{
    char text[1000];
    size_t n = 0;

    while (n < 3 || memcmp(text + n - 3, "yes", 3) != 0) {
        ssize_t got = recv(fd, text + n, sizeof text - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
    }
    assert_memory_equal(text, "HTTP/1.1 200", 12);
}

static void test_headers_without_end(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int fd = call(&at, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");

    (void)state;
    assert_true(dribble(s, fd, 'x'));
    close(fd);
    fd = call(&at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");           /* the second request of a connection, too */
    read_reply(fd);
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\nX-Slow: ", 25, MSG_NOSIGNAL), 25);
    assert_true(dribble(s, fd, 'x'));
    close(fd);
    ebb_http_server_close(s);
}

static void test_body_without_end(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");

    (void)state;
    assert_true(dribble(s, fd, 'x'));
    close(fd);
    fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nand some at once");
    assert_true(dribble(s, fd, 'x'));
    close(fd);
    ebb_http_server_close(s);
}

/* A body may take longer than silence, as long as it comes. */
static void test_slow_body(void **state)
{
    static const char piece[PIECE];
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    char head[100];
    int fd;

    (void)state;
    snprintf(head, sizeof head, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", PIECE * PIECES);
    fd = call(&at, head);
    for (int i = 0; i < PIECES; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000L }, NULL);
        ebb_http_server_end_slow(s);
        assert_int_equal(send(fd, piece, PIECE, MSG_NOSIGNAL), PIECE);
    }
    read_reply(fd);
    close(fd);
    ebb_http_server_close(s);
}

/* Nothing is awaited of who waits for his reply, however long it takes. */
static void test_slow_reply(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int fd;

    (void)state;
    atomic_store(&holds_reply, true);
    fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nyes");
    for (int i = 0; i < 3 * SILENCE_S * 1000 / STEP_MS; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000L }, NULL);
        ebb_http_server_end_slow(s);
    }
    assert_false(has_ended(fd));
    atomic_store(&holds_reply, false);
    read_reply(fd);
    close(fd);
    ebb_http_server_close(s);
}

/* All that comes until the other side ends it; a request that was not read to its end ends with a reset. */
static size_t read_to_end(int fd, char *text, size_t cap)
{
    ssize_t got;
    size_t n = 0;

    while (n < cap - 1 && (got = recv(fd, text + n, cap - 1 - n, 0)) > 0)
        n += (size_t)got;
    text[n] = 0;
    return n;
}

static unsigned n_answered(const char *text)
{
    unsigned n = 0;

    for (; (text = strstr(text, "HTTP/1.1 200 ")); text++)
        n++;
    return n;
}

/* What a proxy may take for the body of a request must not be answered as the next one. */
static void test_two_ends(void **state)
{
    static const char *const heads[] = {
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 40\r\n\r\nyes",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nContent-Length: 3\r\n\r\nyes",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nyes",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: Keep-Alive\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding\t: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nyes",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nyes",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
    };
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char request[400], reply[2000];
        int fd;

        snprintf(request, sizeof request, "%sGET /next HTTP/1.1\r\nHost: x\r\n\r\n", heads[i]);
        fd = call(&at, request);
        read_to_end(fd, reply, sizeof reply);
        if (n_answered(reply) || strncmp(reply, "HTTP/1.1 400", 12) != 0 || !strstr(reply, "\r\nConnection: close\r\n"))
            fail_msg("%s\n is answered with\n%s", request, reply);
        close(fd);
    }
    ebb_http_server_close(s);
}

static void test_one_end(void **state)
{
    static const char requests[] =
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nyes"
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n"
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    char reply[2000];
    int fd = call(&at, requests);

    (void)state;
    read_to_end(fd, reply, sizeof reply);
    assert_int_equal(n_answered(reply), 4);
    close(fd);
    ebb_http_server_close(s);
}

static void expect_status(int fd, const char *status)
{
    char text[12];

    assert_int_equal(recv(fd, text, sizeof text, MSG_WAITALL), sizeof text);
    assert_memory_equal(text, status, sizeof text);
}

/* Replies that nobody reads are counted with the bodies; small ones go out all the same. */
static void test_replies_nobody_reads(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int first = call(&at, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"), second, third;

    (void)state;
    expect_status(first, "HTTP/1.1 200");
    second = call(&at, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(second, "HTTP/1.1 503");
    third = call(&at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    read_reply(third);
    close(first);
    close(second);
    close(third);
    ebb_http_server_close(s);
}

static int call_with_large_body(const struct sockaddr_in *at, const char *path)
{
    static const char body[LARGE_REPLY];
    char head[100];
    int fd;

    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path, LARGE_REPLY);
    fd = call(at, head);
    assert_int_equal(send(fd, body, sizeof body, MSG_NOSIGNAL), sizeof body);
    return fd;
}

/* Who waits for his reply keeps nobody's body out. */
static void test_forgotten_body(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int first, second;

    (void)state;
    atomic_store(&holds_reply, true);
    first = call_with_large_body(&at, "/forget");
    while (!atomic_load(&n_forgotten))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    second = call_with_large_body(&at, "/forget");
    atomic_store(&holds_reply, false);
    read_reply(first);
    read_reply(second);
    close(first);
    close(second);
    ebb_http_server_close(s);
}

/* Who comes when all connections are taken gets a reply: the first of those who say nothing is ended for it, and nobody
 * who waits for a reply. */
static void check_room(unsigned max_connections, unsigned max_from_one)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin_with((ebb_http_server_opts){ .name = "test", .max_connections = max_connections,
                                                            .max_from_one = max_from_one, .silence_s = 3600,
                                                            .max_body = LARGE_REPLY, .max_bodies = MAX_BODIES,
                                                            .on_request = reply }, &at);
    int waits, silent[MAX_CONNECTIONS - 1], fd = -1;
    unsigned n = atomic_load(&n_forgotten);
    char c;

    atomic_store(&holds_reply, true);
    waits = call(&at, "POST /forget HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    while (atomic_load(&n_forgotten) == n)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    for (int i = 0; i < MAX_CONNECTIONS - 1; i++)
        silent[i] = call(&at, i % 2 ? "GET / HTTP/1.1\r\n" : "");
    atomic_store(&holds_reply, false);
    for (int i = 0; i < STEPS; i++) {            /* the thread of who leaves takes a moment */
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        fd = call(&at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        if (recv(fd, &c, 1, MSG_PEEK) == 1)
            break;
        close(fd);
    }
    read_reply(fd);
    read_reply(waits);
    assert_true(has_ended(silent[0]));
    assert_false(has_ended(silent[MAX_CONNECTIONS - 2]));
    for (int i = 0; i < MAX_CONNECTIONS - 1; i++)
        close(silent[i]);
    close(fd);
    close(waits);
    ebb_http_server_close(s);
}

static void test_silent_ones_make_room(void **state)
{
    (void)state;
    check_room(MAX_CONNECTIONS, 0);
    check_room(4 * MAX_CONNECTIONS, MAX_CONNECTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_without_end),
        cmocka_unit_test(test_body_without_end),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_slow_reply),
        cmocka_unit_test(test_two_ends),
        cmocka_unit_test(test_one_end),
        cmocka_unit_test(test_replies_nobody_reads),
        cmocka_unit_test(test_forgotten_body),
        cmocka_unit_test(test_silent_ones_make_room),
    };

    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
