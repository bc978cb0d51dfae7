/* Connections that come byte by byte, or leave open where a request ends (net/http_server.h). */
#include "ebb_test.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/http_server.h"

enum { MAX_CONNECTIONS = 8, SILENCE_S = 1, STEP_MS = 50, STEPS = 600, PIECE = 10 << 10, PIECES = 60 };
/* More than the kernel takes from a server for a client that does not read, and less than twice of it. */
enum { MAX_BODIES = 16 << 20, LARGE_REPLY = 12 << 20 };
/* For bodies of which only parts come. */
enum { ROOM = 1 << 20 };

static atomic_bool holds_reply;
static atomic_uint n_forgotten;          /* bodies */
static atomic_uint n_released;           /* streams */

static ssize_t read_yes(void *arg, ebb_http_exchange *x, char *out, size_t cap)
{
    bool *is_read = arg;
    ssize_t n = *is_read ? 0 : 3;

    (void)x;
    assert_true(cap >= 3);
    memcpy(out, "yes", (size_t)n);
    *is_read = true;
    return n;
}

static void release_yes(void *arg)
{
    free(arg);
    atomic_fetch_add(&n_released, 1);
}

static void reply(void *arg, ebb_http_exchange *x)
{
    static const char large[LARGE_REPLY];
    size_t n;

    (void)arg;
    if (strcmp(ebb_http_path(x), "/stream") == 0) {
        ebb_http_stream(x, "text/plain", read_yes, release_yes, calloc(1, sizeof(bool)));
        return;
    }
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

/* As the n-th client: 127.0.0.n. */
static int call_as(unsigned n, const struct sockaddr_in *at, const char *text)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00) + n) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

static int call(const struct sockaddr_in *at, const char *text)
{
    return call_as(1, at, text);
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

/* The head alone: what followed it would be read as the next reply. */
static void test_head_of_a_stream(void **state)
{
    char text[1000] = "";
    size_t n = 0;
    ssize_t got;
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int fd = call(&at, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");

    (void)state;
    atomic_store(&n_released, 0);
    while (n < sizeof text - 1 && (got = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0)
        n += (size_t)got;
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    assert_non_null(strstr(text, "text/plain"));
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    close(fd);
    ebb_http_server_close(s);
    assert_int_equal(atomic_load(&n_released), 1);
}

/* However much of it came at once. */
static void test_body_without_end(void **state)
{
    static char much[60 << 10];
    struct sockaddr_in at;
    ebb_http_server *s = begin(&at);
    int fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");

    (void)state;
    assert_true(dribble(s, fd, 'x'));
    close(fd);
    fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    assert_int_equal(send(fd, much, sizeof much, MSG_NOSIGNAL), sizeof much);
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

/* Room for ROOM bytes, half of it for one client. */
static ebb_http_server *begin_with_little_room(struct sockaddr_in *at)
{
    ebb_http_server_opts opts = { .name = "test", .max_connections = MAX_CONNECTIONS, .silence_s = 3600,
                                  .max_body = ROOM / 2, .max_bodies = ROOM, .max_bodies_of_one = ROOM / 2,
                                  .on_request = reply };

    return begin_with(opts, at);
}

static int call_with_body(const struct sockaddr_in *at, unsigned client, size_t n_body)
{
    char head[100];

    snprintf(head, sizeof head, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n_body);
    return call_as(client, at, head);
}

/* The server's end of a connection: it is in this process. */
static int server_end(int fd)
{
    struct sockaddr_in own, peer;
    socklen_t n = sizeof own;

    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
    for (int i = 0; i < 1024; i++) {
        n = sizeof peer;
        if (i != fd && getpeername(i, (struct sockaddr *)&peer, &n) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == own.sin_port && peer.sin_addr.s_addr == own.sin_addr.s_addr)
            return i;
    }
    return -1;
}

/* Nothing of what was sent is on its way any more. */
static void wait_until_read(int fd)
{
    int unsent, unread, end;

    do {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        assert_false(has_ended(fd));
        end = server_end(fd);
        assert_int_equal(ioctl(fd, SIOCOUTQ, &unsent), 0);
    } while (end < 0 || unsent || ioctl(end, FIONREAD, &unread) != 0 || unread);
}

/* So many bytes of a body, and all but the last one are kept when it returns: a thread reads once more when it has kept
 * what it read before. */
static void send_part(int fd, size_t n)
{
    static const char part[ROOM];

    assert_int_equal(send(fd, part, n - 1, MSG_NOSIGNAL), n - 1);
    wait_until_read(fd);
    assert_int_equal(send(fd, part, 1, MSG_NOSIGNAL), 1);
    wait_until_read(fd);
}

/* All room is taken by others, and the server waits for their ends. */
static void test_small_body_needs_no_room(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin_with_little_room(&at);
    int slow[2], fd;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        slow[i] = call_with_body(&at, 2 + i, ROOM / 2);
        send_part(slow[i], ROOM / 2 - 1);
    }
    fd = call(&at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nyes");
    read_reply(fd);
    for (unsigned i = 0; i < 2; i++) {           /* nor did it take any */
        assert_int_equal(send(slow[i], "x", 1, MSG_NOSIGNAL), 1);
        read_reply(slow[i]);
        close(slow[i]);
    }
    close(fd);
    ebb_http_server_close(s);
}

/* A client has half of the room: his next body costs his own slowest one. */
static void test_room_of_one_client(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin_with_little_room(&at);
    int slow[2], fd;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        slow[i] = call_with_body(&at, 2, ROOM / 2);
        send_part(slow[i], ROOM / 2 - 1);
    }
    fd = call_with_body(&at, 1, ROOM / 2);
    send_part(fd, ROOM / 2);
    read_reply(fd);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(send(slow[i], "x", 1, MSG_NOSIGNAL), 1);
    expect_status(slow[0], "HTTP/1.1 503");
    read_reply(slow[1]);
    close(slow[0]);
    close(slow[1]);
    close(fd);
    ebb_http_server_close(s);
}

/* Of all clients' bodies the slowest one makes room, and is told so. */
static void test_slowest_body_makes_room(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin_with_little_room(&at);
    int slow[2], fd;

    (void)state;
    slow[0] = call_with_body(&at, 2, ROOM / 2);
    slow[1] = call_with_body(&at, 3, ROOM / 2);
    send_part(slow[0], ROOM / 4);
    send_part(slow[1], ROOM / 2 - 1);            /* the slowest ... */
    send_part(slow[0], ROOM / 4 - 1);            /* ... now */
    fd = call_with_body(&at, 1, ROOM / 2);
    send_part(fd, ROOM / 2);
    read_reply(fd);
    assert_int_equal(send(slow[0], "x", 1, MSG_NOSIGNAL), 1);
    read_reply(slow[0]);
    assert_int_equal(send(slow[1], "x", 1, MSG_NOSIGNAL), 1);
    expect_status(slow[1], "HTTP/1.1 503");
    close(slow[0]);
    close(slow[1]);
    close(fd);
    ebb_http_server_close(s);
}

/* Requests that are complete make no room: who finds none is told so. */
static void test_no_room(void **state)
{
    struct sockaddr_in at;
    ebb_http_server *s = begin_with_little_room(&at);
    int waits[2], fd;

    (void)state;
    atomic_store(&holds_reply, true);
    for (unsigned i = 0; i < 2; i++) {
        waits[i] = call_with_body(&at, 2 + i, ROOM / 2);
        send_part(waits[i], ROOM / 2);
    }
    fd = call_with_body(&at, 1, ROOM / 2);
    send_part(fd, ROOM / 2);
    expect_status(fd, "HTTP/1.1 503");
    atomic_store(&holds_reply, false);
    read_reply(waits[0]);
    read_reply(waits[1]);
    close(waits[0]);
    close(waits[1]);
    close(fd);
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
        cmocka_unit_test(test_head_of_a_stream),
        cmocka_unit_test(test_body_without_end),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_slow_reply),
        cmocka_unit_test(test_two_ends),
        cmocka_unit_test(test_one_end),
        cmocka_unit_test(test_replies_nobody_reads),
        cmocka_unit_test(test_forgotten_body),
        cmocka_unit_test(test_small_body_needs_no_room),
        cmocka_unit_test(test_room_of_one_client),
        cmocka_unit_test(test_slowest_body_makes_room),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_silent_ones_make_room),
    };

    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
