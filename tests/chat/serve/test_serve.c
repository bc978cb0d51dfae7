/* A server that is closed before its model is there, and a large request whose client does not wait for its turn. */
#include "ebb_test.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "serve/serve_priv.h"

/* What is said of the model is said while it is loading, and whoever listens takes his time. */
typedef struct slow_reader {
    sem_t has_line, may_go_on;
} slow_reader;

static void hear(void *arg, const char *line)
{
    slow_reader *r = arg;

    (void)line;
    sem_post(&r->has_line);
    while (sem_wait(&r->may_go_on) != 0)
        ;
}

static size_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t n = 0;

    assert_non_null(tasks);
    for (struct dirent *d; (d = readdir(tasks)) != NULL;)
        n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static void *end_at_once(void *arg)
{
    return arg;
}

static void test_closed_while_loading(void **state)
{
    slow_reader reader;
    size_t n_before;
    pthread_t thread;
    unsigned short port = 0;
    ebb_serve_opts o = { .engine = { .no_kv_cache = true, .n_threads = 1 }, .tell = hear, .arg = &reader };
    ebb_serve *s;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    pthread_join(thread, NULL);
    n_before = count_threads();                  /* with a sanitizer's own, which the first one brings along */
    sem_init(&reader.has_line, 0, 0);
    sem_init(&reader.may_go_on, 0, 0);
    o.models.path = "guide";
    assert_int_equal(ebb_listen_tcp("127.0.0.1", &port, &o.listen_fd, &err), EBB_OK);
    if (ebb_serve_open(&o, &s, &err) == EBB_UNSUPPORTED) {
        print_message("%s\n", err.msg);
        skip();
    }
    while (sem_wait(&reader.has_line) != 0)
        ;
    alarm(60);                                   /* one that waits for its model would do so for ever */
    ebb_serve_close(s);
    sem_post(&reader.may_go_on);
    while (count_threads() > n_before)           /* what was left to itself frees all of it */
        usleep(1000);
    alarm(0);
}

/* More JSON than is read beside that of others. */
static int send_large_request(unsigned short port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ebb_buf body = { 0 }, request = { 0 };

    ebb_buf_adds(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":1,\"values\":[{}");
    for (int i = 0; i < 5000; i++)
        ebb_buf_adds(&body, ",{}");
    ebb_buf_adds(&body, "]}");
    ebb_buf_addf(&request, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                 body.len, body.data);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, request.data, request.len, MSG_NOSIGNAL), request.len);
    ebb_buf_fini(&body);
    ebb_buf_fini(&request);
    return fd;
}

static bool is_ready(ebb_serve *s)
{
    bool is;

    pthread_mutex_lock(&s->lock);
    is = s->is_ready;
    pthread_mutex_unlock(&s->lock);
    return is;
}

static void test_large_request_of_who_left(void **state)
{
    unsigned short port = 0;
    ebb_serve_opts o = { .engine = { .no_kv_cache = true, .n_threads = 1 }, .models.path = "guide" };
    ebb_serve *s;
    ebb_error err = { 0 };
    int fd;

    (void)state;
    assert_int_equal(ebb_listen_tcp("127.0.0.1", &port, &o.listen_fd, &err), EBB_OK);
    if (ebb_serve_open(&o, &s, &err) == EBB_UNSUPPORTED) {
        print_message("%s\n", err.msg);
        skip();
    }
    while (!is_ready(s))
        usleep(1000);
    pthread_mutex_lock(&s->large);               /* another one is being read */
    fd = send_large_request(port);
    usleep(100000);                              /* it waits by now; did it not, it would not be read either */
    close(fd);
    pthread_mutex_unlock(&s->large);
    while (ebb_http_server_n_connections(s->http) > 0)
        usleep(1000);
    pthread_mutex_lock(&s->lock);
    assert_int_equal(s->n_answers, 0);
    pthread_mutex_unlock(&s->lock);
    ebb_serve_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_closed_while_loading),
                                        cmocka_unit_test(test_large_request_of_who_left) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
