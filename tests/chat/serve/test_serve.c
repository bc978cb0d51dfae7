/* A server that is closed before its model is there. */
#include "ebb_test.h"

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "net/listen.h"
#include "serve/serve.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_closed_while_loading) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
