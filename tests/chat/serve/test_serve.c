/* A server that is closed before its model is there, a large request whose client does not wait for its turn, and
 * answers that are stopped, that sit out, that wait for room, and whose forms are large; and a server that leaves when
 * nobody asks. */
#include "ebb_test.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/listen.h"
#include "prompt/prompt_render.h"
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

static in_addr_t address_of(unsigned client)
{
    return htonl((INADDR_LOOPBACK & 0xffffff00) + client);
}

static int send_text(unsigned client, unsigned short port, const ebb_buf *text)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = address_of(client) };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, text->data, text->len, MSG_NOSIGNAL), text->len);
    return fd;
}

static int send_request(unsigned client, unsigned short port, const char *path, const ebb_buf *body)
{
    ebb_buf request = { 0 };
    int fd;

    ebb_buf_addf(&request, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 path, body->len, body->data);
    fd = send_text(client, port, &request);
    ebb_buf_fini(&request);
    return fd;
}

static int send_get(unsigned short port, const char *path)
{
    ebb_buf request = { 0 };
    int fd;

    ebb_buf_addf(&request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    fd = send_text(1, port, &request);
    ebb_buf_fini(&request);
    return fd;
}

/* More JSON than is read beside that of others. */
static int send_large_request(unsigned client, unsigned short port)
{
    ebb_buf body = { 0 };
    int fd;

    ebb_buf_adds(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":1,\"values\":[{}");
    for (int i = 0; i < 5000; i++)
        ebb_buf_adds(&body, ",{}");
    ebb_buf_adds(&body, "]}");
    fd = send_request(client, port, "/v1/chat/completions", &body);
    ebb_buf_fini(&body);
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

/* With the guide, at a port that it finds; skips the test where there is no server. */
static ebb_serve *open_server_with(ebb_serve_opts o, unsigned short *port)
{
    ebb_serve *s;
    ebb_error err = { 0 };

    o.engine.no_kv_cache = true;
    o.engine.n_threads = 1;
    o.models.path = "guide";
    assert_int_equal(ebb_listen_tcp("127.0.0.1", port, &o.listen_fd, &err), EBB_OK);
    if (ebb_serve_open(&o, &s, &err) == EBB_UNSUPPORTED) {
        print_message("%s\n", err.msg);
        skip();
    }
    while (!is_ready(s))
        usleep(1000);
    return s;
}

static ebb_serve *open_server_for(unsigned leave_s, unsigned short *port)
{
    return open_server_with((ebb_serve_opts){ .leave_s = leave_s }, port);
}

static ebb_serve *open_server(unsigned short *port)
{
    return open_server_for(0, port);
}

/* A large request comes, on *fd, while another one is being read. */
static ebb_serve *open_reading_server(ebb_serve_place *place, int *fd)
{
    unsigned short port = 0;
    ebb_serve *s = open_server(&port);

    ebb_serve_begin_large(s, 0, place);
    *fd = send_large_request(1, port);
    return s;
}

static void test_large_request_of_who_left(void **state)
{
    ebb_serve_place place;
    ebb_serve *s;
    int fd;

    (void)state;
    s = open_reading_server(&place, &fd);
    usleep(100000);                              /* it waits by now; did it not, it would not be read either */
    close(fd);
    ebb_serve_end_large(s);
    while (ebb_http_server_n_connections(s->http) > 0)
        usleep(1000);
    pthread_mutex_lock(&s->lock);
    assert_int_equal(s->n_answers, 0);
    pthread_mutex_unlock(&s->lock);
    ebb_serve_close(s);
}

static size_t count_large(ebb_serve *s)
{
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (const ebb_serve_place *p = s->large; p; p = p->next)
        n++;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* The first of one client goes before the second of another, and what came first is not overtaken again and again. */
static void test_large_requests_take_turns(void **state)
{
    static const unsigned clients[] = { 2, 2, 2, 3, 3, 4 }, order[] = { 2, 3, 4, 2, 3, 2 };
    enum { N = sizeof clients / sizeof *clients };
    unsigned short port = 0;
    ebb_serve_place place, *p;
    int fds[N];
    ebb_serve *s;
    char reply[13] = "";

    (void)state;
    s = open_server(&port);
    ebb_serve_begin_large(s, 0, &place);
    for (size_t i = 0; i < N; i++) {
        fds[i] = send_large_request(clients[i], port);
        while (count_large(s) < i + 2)
            usleep(1000);
    }
    pthread_mutex_lock(&s->lock);
    p = s->large->next;
    for (size_t i = 0; i < N; i++, p = p->next)
        assert_int_equal(p->client, address_of(order[i]));
    pthread_mutex_unlock(&s->lock);
    ebb_serve_end_large(s);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(recv(fds[i], reply, sizeof reply - 1, MSG_WAITALL), sizeof reply - 1);
        assert_string_equal(reply, "HTTP/1.1 200");
        close(fds[i]);
    }
    ebb_serve_close(s);
}

/* -- Answers that are stopped ----------------------------------------------------------------- */

static const struct { const char *path, *question; bool streams; } asks[] = {
    { "/v1/chat/completions", "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]", true },
    { "/v1/chat/completions", "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]", false },
    { "/v1/completions", "\"prompt\":\"x\"", true },
    { "/v1/completions", "\"prompt\":\"x\"", false },
    { "/completion", "\"prompt\":\"x\"", true },
    { "/completion", "\"prompt\":\"x\"", false },
};
enum { N_ASKS = sizeof asks / sizeof *asks };

static int send_ask(unsigned short port, size_t i)
{
    ebb_buf body = { 0 };
    int fd;

    ebb_buf_addf(&body, "{%s,\"stream\":%s}", asks[i].question, asks[i].streams ? "true" : "false");
    fd = send_request(1, port, asks[i].path, &body);
    ebb_buf_fini(&body);
    return fd;
}

/* Answers that get no turn, so that they are still there when they are stopped. */
static void ask_for_all(ebb_serve *s, unsigned short port, int fds[N_ASKS])
{
    uint64_t before;

    pthread_mutex_lock(&s->lock);
    s->n_most = 0;
    before = s->n_answers;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < N_ASKS; i++) {
        fds[i] = send_ask(port, i);
        for (bool is_there = false; !is_there; usleep(1000)) {
            pthread_mutex_lock(&s->lock);
            is_there = s->n_answers == before + i + 1;
            pthread_mutex_unlock(&s->lock);
        }
    }
}

/* An error and its status; nothing says that the answer is complete. */
static void expect_stopped(int fd, bool streams, const char *status, const char *message)
{
    static const char *const ends[] = { "[DONE]", "finish_reason\":\"", "stop_type", NULL };
    ebb_buf reply = { 0 };
    char part[4096];
    ssize_t n;

    while ((n = recv(fd, part, sizeof part, 0)) > 0)
        ebb_buf_add(&reply, part, (size_t)n);
    close(fd);
    for (const char *const *end = ends; *end; end++)
        if (strstr(ebb_buf_text(&reply), *end))
            fail_msg("a stopped answer ends with %s:\n%s", *end, reply.data);
    if (strncmp(ebb_buf_text(&reply) + 9, streams ? "200" : status, 3) != 0 || !strstr(reply.data, message))
        fail_msg("of a stopped answer is said:\n%s", ebb_buf_text(&reply));
    ebb_buf_fini(&reply);
}

static void test_stopped_is_not_complete(void **state)
{
    unsigned short port = 0;
    int fds[N_ASKS];
    ebb_serve *s;

    (void)state;
    s = open_server(&port);
    ask_for_all(s, port, fds);
    pthread_mutex_lock(&s->lock);
    for (ebb_served *a = s->answers; a; a = a->next)
        a->is_canceled = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < N_ASKS; i++)
        expect_stopped(fds[i], asks[i].streams, "499", "the answer was stopped");
    ask_for_all(s, port, fds);
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < N_ASKS; i++)
        expect_stopped(fds[i], asks[i].streams, "503", "the server is shutting down");
    ebb_serve_close(s);
}

/* A large request that waits for its turn when the server leaves is for its next one. */
static void test_large_request_when_it_leaves(void **state)
{
    ebb_serve_place place;
    ebb_serve *s;
    int fd;

    (void)state;
    s = open_reading_server(&place, &fd);
    while (count_large(s) < 2)
        usleep(1000);
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_mutex_unlock(&s->lock);
    ebb_serve_end_large(s);
    expect_stopped(fd, false, "503", "the server is shutting down");
    ebb_serve_close(s);
}

/* -- Leaving when nobody asks ------------------------------------------------------------------- */

enum { LEAVE_S = 3600 };

static double used_s(ebb_serve *s)
{
    double at;

    pthread_mutex_lock(&s->lock);
    at = s->used_s;
    pthread_mutex_unlock(&s->lock);
    return at;
}

/* The time to leave has come, as the clock has it: whether the server leaves. */
static bool leaves(ebb_serve *s)
{
    double long_ago = ebb_clock_s() - 2.0 * LEAVE_S;
    ebb_error err = { 0 };

    pthread_mutex_lock(&s->lock);
    s->used_s = long_ago;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    while (ebb_serve_goes_on(s, &err) && used_s(s) <= long_ago)
        usleep(1000);
    return !ebb_serve_goes_on(s, &err);
}

static void read_all(int fd)
{
    char part[4096];

    while (recv(fd, part, sizeof part, 0) > 0)
        ;
    close(fd);
}

static void expect_status(int fd, const char *status)
{
    char reply[13] = "";

    assert_int_equal(recv(fd, reply, sizeof reply - 1, MSG_WAITALL), sizeof reply - 1);
    assert_string_equal(reply + 9, status);
    read_all(fd);
}

static void test_a_request_keeps_it(void **state)
{
    static const char text[] = "{\"content\":\"x\"}";
    ebb_buf body = { .data = (char *)text, .len = sizeof text - 1 };
    unsigned short port = 0;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    ebb_serve *s;
    double before;
    int fd, silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    s = open_server_for(LEAVE_S, &port);
    before = used_s(s);
    expect_status(send_request(1, port, "/tokenize", &body), "200");
    assert_true(used_s(s) > before);             /* it need not be one for an answer */
    body.len += 1;                               /* of which the last byte is still to come */
    fd = send_request(1, port, "/tokenize", &body);
    while (ebb_http_server_n_requests(s->http) == 0)
        usleep(1000);
    assert_false(leaves(s));
    assert_int_equal(send(fd, " ", 1, MSG_NOSIGNAL), 1);
    expect_status(fd, "200");
    at.sin_port = htons(port);                   /* who asks nothing may keep his connection */
    assert_int_equal(connect(silent, (struct sockaddr *)&at, sizeof at), 0);
    while (ebb_http_server_n_requests(s->http) > 0 || ebb_http_server_n_connections(s->http) != 1)
        usleep(1000);
    assert_true(leaves(s));
    ebb_serve_close(s);
    close(silent);
}

/* Who watches the server, every few seconds and with no key, does not keep it; who asks what it has does. */
static void test_watching_keeps_nothing(void **state)
{
    static const char *const paths[] = { "/health", "/v1/health", "/slots", "/metrics", "/ebb/v1/stats" };
    unsigned short port = 0;
    double before;
    ebb_serve *s;

    (void)state;
    s = open_server_for(LEAVE_S, &port);
    before = used_s(s);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        expect_status(send_get(port, paths[i]), "200");
        if (used_s(s) > before)
            fail_msg("%s keeps it", paths[i]);
    }
    expect_status(send_get(port, "/v1/models"), "200");
    assert_true(used_s(s) > before);
    ebb_serve_close(s);
}

/* -- Answers whose choices take long ---------------------------------------------------------- */

static int send_body(unsigned client, unsigned short port, const char *text)
{
    ebb_buf body = { 0 };
    int fd;

    ebb_buf_adds(&body, text);
    fd = send_request(client, port, "/completion", &body);
    ebb_buf_fini(&body);
    return fd;
}

static void wait_for_answers(ebb_serve *s, uint64_t n)
{
    for (bool are_there = false; !are_there; usleep(1000)) {
        pthread_mutex_lock(&s->lock);
        are_there = s->n_answers == n;
        pthread_mutex_unlock(&s->lock);
    }
}

/* One that has taken much of the others' time sits out, though it came first and is shorter; alone it goes on. */
static void test_long_choices_wait(void **state)
{
    unsigned short port = 0;
    ebb_served *owing, *free_one;
    ebb_serve *s;
    int fds[2];

    (void)state;
    s = open_server(&port);
    pthread_mutex_lock(&s->lock);
    s->n_most = 0;                               /* no turn for anybody yet */
    pthread_mutex_unlock(&s->lock);
    fds[0] = send_body(1, port, "{\"prompt\":\"x\",\"n_predict\":4,\"grammar\":\"root ::= [a-z]+\","
                                "\"ebb\":{\"survives\":true}}");
    wait_for_answers(s, 1);
    fds[1] = send_body(1, port, "{\"prompt\":\"y\",\"n_predict\":40,\"ignore_eos\":true,\"ebb\":{\"survives\":true}}");
    wait_for_answers(s, 2);
    pthread_mutex_lock(&s->lock);
    owing = s->answers;
    free_one = owing->next;
    owing->owed_s = 1e6;
    s->n_most = 2;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    read_all(fds[0]);
    read_all(fds[1]);
    pthread_mutex_lock(&s->lock);
    assert_int_equal(owing->stats.n_generated, 4);
    assert_int_equal(free_one->stats.n_generated, 40);
    assert_true(owing->ended_s > free_one->ended_s);
    pthread_mutex_unlock(&s->lock);
    ebb_serve_close(s);
}

/* -- Answers for which there is no room ------------------------------------------------------- */

#define LONG_ANSWER "{\"prompt\":\"x\",\"n_predict\":40,\"ignore_eos\":true,\"ebb\":{\"survives\":true}}"
#define SHORT_ANSWER "{\"prompt\":\"x\",\"n_predict\":4,\"ignore_eos\":true,\"ebb\":{\"survives\":true}}"

/* There is room for one at first: the other client's comes before all that wait but that one. */
static void test_many_keep_nobody_out(void **state)
{
    enum { MANY = 5 };
    unsigned short port = 0;
    uint64_t ends[MANY + 1];
    int fds[MANY + 1];
    size_t n = 0;
    ebb_serve *s;

    (void)state;
    s = open_server(&port);
    pthread_mutex_lock(&s->lock);
    s->n_most = 0;                               /* no turn for anybody yet */
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i <= MANY; i++) {
        fds[i] = i < MANY ? send_body(2, port, LONG_ANSWER) : send_body(1, port, SHORT_ANSWER);
        wait_for_answers(s, i + 1);
    }
    pthread_mutex_lock(&s->lock);
    s->n_most = 1;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i <= MANY; i++)
        read_all(fds[i]);
    pthread_mutex_lock(&s->lock);
    for (const ebb_served *a = s->answers; a; a = a->next)
        ends[n++] = a->turn;                     /* its last; as they were asked for */
    pthread_mutex_unlock(&s->lock);
    assert_true(ends[0] < ends[MANY]);
    for (size_t i = 1; i < MANY; i++)
        assert_true(ends[MANY] < ends[i]);
    ebb_serve_close(s);
}

/* -- Prompts ------------------------------------------------------------------------------------------------------- */

/* The prompt of this request to a model with this template. */
static void assert_rendered(ebb_serve *s, const char *source, const char *request, const char *want)
{
    json_t *o = json_loads(request, 0, NULL);
    ebb_buf text = { 0 };
    ebb_error err = { 0 };

    assert_non_null(o);
    ebb_prompter_free(s->prompter);
    assert_int_equal(ebb_prompter_new_with(s->model, source, strlen(source), &s->prompter, &err), EBB_OK);
    if (ebb_serve_render(s, o, &text, &err) != EBB_OK)
        ebb_buf_adds(&text, err.msg);
    assert_string_equal(ebb_buf_text(&text), want);
    ebb_buf_fini(&text);
    json_decref(o);
}

static void test_thoughts_of_requests(void **state)
{
    static const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\","
                                  "\"reasoning_content\": \"Hm\", \"content\": \"Yes\"}, {\"role\": \"user\","
                                  "\"content\": \"b\"}]}";
    unsigned short port = 0;
    ebb_serve *s;

    (void)state;
    s = open_server(&port);
    assert_rendered(s, "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }};{% endfor %}", request,
                    "|a;Hm|Yes;|b;");
    assert_rendered(s, "{% for m in messages %}{{ m.content.replace('</think>', '/') }};{% endfor %}", request,
                    "a;<think>\nHm\n/\n\nYes;b;");
    assert_rendered(s, "{% for m in messages %}{{ m.content }};{% endfor %}", request, "a;Yes;b;");
    /* The last one, too, and once. */
    assert_rendered(s, "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }};{% endfor %}",
                    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\","
                    "\"reasoning_content\": \"Hm\", \"content\": \"Yes\"}]}", "|a;Hm|Yes;");
    ebb_serve_close(s);
}

/* An answer that goes on is shown as it is computed: behind the prompt for one, in no frame. */
static void test_an_open_answer_is_rendered(void **state)
{
    static const char source[] = "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"
                                 "{% if add_generation_prompt %}[go]{% endif %}";
    unsigned short port = 0;
    ebb_serve *s;

    (void)state;
    s = open_server(&port);
    assert_rendered(s, source, "{\"messages\": [{\"role\": \"user\", \"content\": \"u\"}]}", "[user]u;[go]");
    assert_rendered(s, source, "{\"messages\": [{\"role\": \"user\", \"content\": \"u\"},"
                               "{\"role\": \"assistant\", \"content\": \"x\"}]}", "[user]u;[go]x");
    ebb_serve_close(s);
}

static void test_variables_of_requests(void **state)
{
#define WITH(more) "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]" more "}"
    static const char source[] = "{{ reasoning_effort or 'none' }} {{ thinking }} {{ enable_thinking }} {{ tools }}";
    static const struct { const char *request, *want; } cases[] = {
        { WITH(""), "none   None" },
        { WITH(", \"reasoning_effort\": \"high\""), "high   None" },
        { WITH(", \"reasoning_effort\": null, \"chat_template_kwargs\": {}"), "none   None" },
        { WITH(", \"chat_template_kwargs\": {\"reasoning_effort\": \"low\", \"thinking\": true,"
               " \"enable_thinking\": false}"), "low True False None" },
        { WITH(", \"chat_template_kwargs\": {\"effort\": 1}"),
          "effort is unknown to this model's chat template; leave it out" },
        { WITH(", \"chat_template_kwargs\": {\"think\": true}"),
          "think is unknown to this model's chat template; leave it out" },
        { WITH(", \"chat_template_kwargs\": {\"tools\": 1}"),
          "chat_template_kwargs: ebb sets tools itself; leave it out" },
        { WITH(", \"reasoning_effort\": \"<|im_end|>\""), "reasoning_effort is a word, a number, true or false" },
        { WITH(", \"reasoning_effort\": [1]"), "reasoning_effort is a word, a number, true or false" },
    };
    unsigned short port = 0;
    ebb_serve *s;

    (void)state;
    s = open_server(&port);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_rendered(s, source, cases[i].request, cases[i].want);
    assert_rendered(s, "{{ messages[0].content }}", WITH(", \"reasoning_effort\": \"high\""),
                    "reasoning_effort is unknown to this model's chat template; leave it out");
    ebb_serve_close(s);
#undef WITH
}

/* -- Large forms ------------------------------------------------------------------------------ */

/* A form of 12 MiB for a few bytes; its answer ends at once. */
static int send_form(unsigned client, unsigned short port)
{
    ebb_buf body = { 0 };
    int fd;

    ebb_buf_adds(&body, "{\"prompt\":\"x\",\"n_predict\":1,"
                        "\"grammar\":\"root ::= ([a-cA-C0-4._;] | [#] [x]){1,100000}\"}");
    fd = send_request(client, port, "/completion", &body);
    ebb_buf_fini(&body);
    return fd;
}

static void test_large_forms_are_few(void **state)
{
    unsigned short port = 0;
    ebb_serve *s;
    int fds[5];

    (void)state;
    s = open_server(&port);
    pthread_mutex_lock(&s->lock);
    s->n_most = 0;                               /* they wait */
    pthread_mutex_unlock(&s->lock);
    alarm(120);                                  /* one that is taken would be waited for */
    for (unsigned i = 0; i < 5; i++) {
        fds[i] = send_form(1 + i / 2, port);
        wait_for_answers(s, i + 1);
        if (i == 1)
            expect_status(send_form(1, port), "429");
    }
    expect_status(send_form(4, port), "429");
    pthread_mutex_lock(&s->lock);
    s->n_most = 1;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < 5; i++)
        expect_status(fds[i], "200");
    expect_status(send_form(1, port), "200");    /* what has ended takes nothing */
    alarm(0);
    ebb_serve_close(s);
}

static bool answers_as_alone(ebb_serve *s)
{
    json_t *o = ebb_serve_stats_json(s);
    bool is = json_is_true(json_object_get(o, "as_alone"));

    json_decref(o);
    return is;
}

/* K and V that are not f16 are another engine's where an option led to them, and any engine's where memory is short.
 * The plan's choice is had by naming it, and forgetting that it was named. */
static void test_kv_of_another_type_is_not_as_alone(void **state)
{
    ebb_serve_opts q8_0 = { .engine = { .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0 } };
    ebb_engine_opts *o;
    unsigned short port = 0;
    ebb_serve *s;

    (void)state;
    s = open_server_with(q8_0, &port);
    o = &s->opts.engine;
    assert_false(answers_as_alone(s));
    o->has_kv = false;
    assert_true(answers_as_alone(s));
    o->ram_bytes = UINT64_C(1) << 40;
    assert_false(answers_as_alone(s));
    o->ram_bytes = 0;
    o->mode = EBB_MODE_MAX_CONTEXT;
    assert_false(answers_as_alone(s));
    ebb_serve_close(s);
    port = 0;
    s = open_server(&port);
    s->opts.engine.ram_bytes = UINT64_C(1) << 40;        /* there was room for all of it in f16 */
    assert_true(answers_as_alone(s));
    ebb_serve_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_closed_while_loading),
                                        cmocka_unit_test(test_large_request_of_who_left),
                                        cmocka_unit_test(test_large_requests_take_turns),
                                        cmocka_unit_test(test_stopped_is_not_complete),
                                        cmocka_unit_test(test_large_request_when_it_leaves),
                                        cmocka_unit_test(test_a_request_keeps_it),
                                        cmocka_unit_test(test_watching_keeps_nothing),
                                        cmocka_unit_test(test_long_choices_wait),
                                        cmocka_unit_test(test_many_keep_nobody_out),
                                        cmocka_unit_test(test_thoughts_of_requests),
                                        cmocka_unit_test(test_an_open_answer_is_rendered),
                                        cmocka_unit_test(test_variables_of_requests),
                                        cmocka_unit_test(test_large_forms_are_few),
                                        cmocka_unit_test(test_kv_of_another_type_is_not_as_alone) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
