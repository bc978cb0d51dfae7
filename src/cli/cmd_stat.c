/* ebb stat: the figures of what runs, read from its sockets; ebb stop: answers end. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/grow.h"
#include "cli.h"
#include "json/json_load.h"
#include "json/json_text.h"
#include "os/paths.h"
#include "os/proc.h"

enum { MAX_ANSWER = 1 << 16, WAIT_MS = 2000, RETRY_MS = 20 };

/* In an object of ebb_cli_running: where it was said. */
static const char SOCKET[] = "socket";

/* A process that is asked at its socket. */
typedef struct asked {
    struct sockaddr_un at;
    int     fd;                  /* -1: it has said all, or nobody is there */
    bool    is_connected;
    bool    is_stopped;          /* it says nothing before it goes on: nobody waits for that */
    int     process;             /* a descriptor of that very process, since it answers after it was opened; or -1 */
    ebb_buf answer;
} asked;

static void hang_up(asked *q)
{
    if (q->fd >= 0)
        close(q->fd);
    q->fd = -1;
}

/* Whose socket this is, as this process sees it, even from another PID namespace.  False: of another user, who may say
 * what he likes: that he has a model, for instance, for which everybody then waits. */
static bool take_peer(asked *q)
{
    struct ucred peer;
    socklen_t n = sizeof peer;

    if (getsockopt(q->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.uid != geteuid())
        return false;
    if (peer.pid > 0)                            /* 0: not visible from here; 1: the only program of a container */
        q->process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    q->is_stopped = peer.pid > 0 && ebb_proc_is_stopped(peer.pid);
    return true;
}

static bool is_socket(const char *path)
{
    struct stat s;

    return lstat(path, &s) == 0 && S_ISSOCK(s.st_mode);
}

/* Where nobody is there any more the socket is removed.  EAGAIN: too many others are asking it, or
 * have asked since it was stopped; then there is only its name to know it by. */
static void connect_asked(asked *q)
{
    if (connect(q->fd, (struct sockaddr *)&q->at, sizeof q->at) == 0) {
        q->is_connected = take_peer(q);
        if (!q->is_connected)
            hang_up(q);
    } else if (errno == EAGAIN || errno == EINTR) {
        q->is_stopped = ebb_proc_is_stopped((pid_t)strtol(strrchr(q->at.sun_path, '/') + 1, NULL, 10));
    } else {
        if (errno == ECONNREFUSED && is_socket(q->at.sun_path))
            unlink(q->at.sun_path);
        hang_up(q);
    }
}

static void ask(asked *q, const char *path)
{
    *q = (asked){ .at.sun_family = AF_UNIX, .fd = -1, .process = -1, .answer.max = MAX_ANSWER };
    if (strlen(path) >= sizeof q->at.sun_path)
        return;
    strcpy(q->at.sun_path, path);
    q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (q->fd >= 0)
        connect_asked(q);
}

static void read_asked(asked *q)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(q->fd, bytes, sizeof bytes)) > 0)
        if (!ebb_buf_add(&q->answer, bytes, (size_t)got))
            break;
    if (got >= 0 || (errno != EAGAIN && errno != EINTR))
        hang_up(q);
}

/* Whether there is something to wait for. */
static bool is_awaited(const asked *q)
{
    return q->fd >= 0 && !q->is_stopped;
}

/* All of them at once: those that do not answer have one time limit together. */
static void hear_all(asked *q, int n)
{
    uint64_t end = ebb_clock_ns() + WAIT_MS * UINT64_C(1000000), now;
    struct pollfd *fds = calloc((size_t)n + 1, sizeof *fds);

    while (fds && (now = ebb_clock_ns()) < end) {
        int left_ms = (int)((end - now) / 1000000) + 1, n_open = 0;

        for (int i = 0; i < n; i++) {
            if (is_awaited(&q[i]) && !q[i].is_connected)
                connect_asked(&q[i]);
            if (is_awaited(&q[i]) && !q[i].is_connected && left_ms > RETRY_MS)
                left_ms = RETRY_MS;
            n_open += is_awaited(&q[i]);
            fds[i] = (struct pollfd){ .fd = q[i].is_connected ? q[i].fd : -1, .events = POLLIN };
        }
        if (n_open == 0 || (poll(fds, (nfds_t)n, left_ms) < 0 && errno != EINTR))
            break;
        for (int i = 0; i < n; i++)
            if (q[i].fd >= 0 && fds[i].revents)
                read_asked(&q[i]);
    }
    free(fds);
}

/* What it said; NULL: nobody is there, or it is busy.  *process, if not NULL, is the caller's. */
static json_t *take_answer(asked *q, int *process)
{
    json_t *o = ebb_json_load(ebb_buf_text(&q->answer), q->answer.len, 0, NULL);

    hang_up(q);
    ebb_buf_fini(&q->answer);
    if (process)
        *process = q->process;
    else if (q->process >= 0)
        close(q->process);
    return o;
}

static void add_silent(ebb_buf *silent, const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    ebb_buf_addf(silent, "%s%.*s", silent->len ? ", " : "", (int)strspn(name, "0123456789"), name);
}

/* PID.sock, or PID-N.sock where another PID namespace has that one (tui/app/stat_server.c); of `pid` alone unless it is
 * NULL. */
static bool is_name_of(const char *name, const char *pid)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(name, digits);
    const char *rest = name + n;

    if (n == 0 || (pid && (strlen(pid) != n || memcmp(pid, name, n) != 0)))
        return false;
    if (*rest == '-')
        rest += 1 + strspn(rest + 1, digits);
    return strcmp(rest, ".sock") == 0;
}

json_t *ebb_cli_running(const char *dir, const char *pid, ebb_buf *silent)
{
    json_t *list = json_array();
    ebb_buf path = { 0 };
    asked *q = NULL, *more;
    DIR *d = opendir(dir);
    size_t n_asked = 0, cap = 0;

    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (!is_name_of(e->d_name, pid))
            continue;
        ebb_buf_clear(&path);
        ebb_buf_addf(&path, "%s/%s", dir, e->d_name);
        if ((more = ebb_grow(q, n_asked, &cap, sizeof *q)) == NULL)
            break;
        q = more;
        ask(&q[n_asked], ebb_buf_text(&path));
        n_asked += q[n_asked].fd >= 0;
    }
    hear_all(q, (int)n_asked);
    for (size_t i = 0; i < n_asked; i++) {
        json_t *one;

        if (silent && q[i].fd >= 0)
            add_silent(silent, q[i].at.sun_path);
        if ((one = take_answer(&q[i], NULL)) != NULL) {
            json_object_set_new(one, SOCKET, ebb_json_text_or_null(q[i].at.sun_path));
            json_array_append_new(list, one);
        }
    }
    if (d)
        closedir(d);
    free(q);
    ebb_buf_fini(&path);
    return list;
}

bool ebb_cli_signal(const json_t *running, int number)
{
    const char *path = json_string_value(json_object_get(running, SOCKET));
    int process = -1;
    json_t *now = NULL;
    asked q;
    bool ok;

    if (path) {
        ask(&q, path);
        hear_all(&q, 1);
        now = take_answer(&q, &process);
    }
    ok = now && process >= 0 && syscall(SYS_pidfd_send_signal, process, number, NULL, 0) == 0;
    if (process >= 0)
        close(process);
    json_decref(now);
    return ok;
}

/* What is no size, count or number of any machine is 0, since who answers may say anything. */
static double json_number(json_t *o, const char *name)
{
    double v = json_number_value(json_object_get(o, name));

    return v >= 0 && v <= 9e15 ? v : 0;
}

static void print_json_text(json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    ebb_cli_print_name(s ? s : "-");
}

/* A server's answers are its clients' to end. */
static bool is_answering(json_t *o)
{
    const char *state = json_string_value(json_object_get(o, "state"));

    return !json_object_get(o, "clients") && state && (strcmp(state, "prefill") == 0 || strcmp(state, "decode") == 0);
}

/* A question of `ebb run` that waits until another process has written its answer. */
static bool is_waiting(json_t *o)
{
    const char *state = json_string_value(json_object_get(o, "state"));

    return state && strcmp(state, "waiting") == 0;
}

/* All that is in memory of it, mapped weights too, as the panel and /mem have it. */
static double resident_bytes(json_t *o)
{
    double rss = json_number(o, "rss_bytes");

    return rss > 0 ? rss : json_number(o, "anon_bytes") + json_number(o, "file_bytes");
}

static void print_process(json_t *o)
{
    char own[16], budget[16], kv[16], file[16], room[16];

    printf("%.0f  ", json_number(o, "pid"));
    print_json_text(o, "state");
    fputs("  ", stdout);
    print_json_text(o, "model");
    fputs("  \"", stdout);
    print_json_text(o, "session");
    printf("\"\n    context %.0f/%.0f  prefill %.1f tok/s  decode %.1f tok/s  layers %.0f/%.0f  memory %s of %s\n",
           json_number(o, "used"), json_number(o, "context"), json_number(o, "prefill_tok_s"),
           json_number(o, "decode_tok_s"),
           json_number(o, "resident"), json_number(o, "layers"),
           ebb_size_text((uint64_t)resident_bytes(o), own),
           ebb_size_text((uint64_t)json_number(o, "budget_bytes"), budget));
    printf("    KV %s in memory, %s in a file, %s free\n",
           ebb_size_text((uint64_t)json_number(o, "kv_memory_bytes"), kv),
           ebb_size_text((uint64_t)json_number(o, "kv_file_bytes"), file),
           ebb_size_text((uint64_t)json_number(o, "kv_free_bytes"), room));
    if (json_object_get(o, "clients"))           /* ebb serve */
        printf("    %.0f connections, %.0f answers under way, %.0f waiting, %.0f so far\n", json_number(o, "clients"),
               json_number(o, "running"), json_number(o, "waiting"), json_number(o, "answers"));
    if (is_answering(o) && json_is_true(json_object_get(o, "unseen")))
        printf("    its terminal is gone; `ebb -c` shows the answer, `ebb stop %.0f` ends it\n", json_number(o, "pid"));
    else if (is_answering(o))
        printf("    `ebb stop %.0f` ends the answer\n", json_number(o, "pid"));
    else if (is_waiting(o))
        printf("    its question waits for the answer before it; `ebb stop %.0f` takes it back\n",
               json_number(o, "pid"));
}

static bool is_number_of(json_t *o, const char *word)
{
    char pid[24];

    snprintf(pid, sizeof pid, "%.0f", json_number(o, "pid"));
    return word && strcmp(word, pid) == 0;
}

/* By its number, or by the name of its session.  Who has only a question is meant by its number: the others' answer
 * is that of the session. */
static bool is_to_stop(json_t *o, const char *word)
{
    const char *session = json_string_value(json_object_get(o, "session"));
    bool is_one = is_number_of(o, word);

    return (is_answering(o) && (!word || is_one || (session && strcmp(word, session) == 0))) ||
           (is_waiting(o) && is_one);
}

static void say_stopped(json_t *o)
{
    printf("%.0f  stopped: \"", json_number(o, "pid"));
    print_json_text(o, "session");
    puts(is_waiting(o) ? "\"; its question was not asked" : "\"; what was written is kept");
}

/* Of a list of numbers, the one that was asked for, or none; another word may be any one's. */
static void keep_meant(ebb_buf *silent, const char *word)
{
    size_t n = word ? strlen(word) : 0;
    const char *at;
    bool is_there;

    if (n == 0 || word[strspn(word, "0123456789")])
        return;
    at = ebb_buf_text(silent);
    while (*at && (strcspn(at, ",") != n || memcmp(at, word, n) != 0)) {
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    is_there = *at;
    ebb_buf_clear(silent);
    if (is_there)
        ebb_buf_adds(silent, word);
}

/* Of what says nothing it is not known whether it answers a question, or which. */
static void fail_silent(const ebb_buf *silent, ebb_error *err)
{
    EBB_FAIL(err, EBB_IO, "process %.200s does not reply: if it was stopped, fg or `kill -CONT` lets it go on",
             silent->data);
}

/* Beside this PID namespace, or gone by now. */
static void fail_unreachable(const json_t *unreachable, ebb_error *err)
{
    ebb_buf list = { 0 };
    const json_t *pid;
    size_t i;

    json_array_foreach(unreachable, i, pid)
        ebb_buf_addf(&list, "%s%lld", i ? ", " : "", (long long)json_integer_value(pid));
    EBB_FAIL(err, EBB_IO, "process %.200s cannot be reached from here: it has just ended, or is in another container; "
             "stop it there", ebb_buf_text(&list));
    ebb_buf_fini(&list);
}

int ebb_cmd_stop(ebb_args *a)
{
    const char *word = a->n_words ? a->words[0] : NULL;
    ebb_error err = { 0 };
    ebb_buf dir = { 0 }, silent = { 0 };
    json_t *list, *one, *stopped = json_array(), *unreachable = json_array();
    size_t i, n = 0;
    int status = EBB_EXIT_OK;

    if (a->n_words > 1)
        EBB_FAIL(&err, EBB_USAGE, "usage: ebb stop [PID | SESSION]");
    else if (ebb_path_run(&dir, &err) != EBB_OK)
        ebb_buf_fini(&dir);
    if (err.code) {
        json_decref(stopped);
        json_decref(unreachable);
        return ebb_cli_fail(&err);
    }
    list = ebb_cli_running(ebb_buf_text(&dir), NULL, &silent);
    ebb_buf_fini(&dir);
    json_array_foreach(list, i, one) {
        if (!is_to_stop(one, word))
            continue;
        if (!ebb_cli_signal(one, SIGUSR1)) {
            json_array_append(unreachable, json_object_get(one, "pid"));
            continue;
        }
        n++;
        json_array_append_new(stopped, json_pack("{s:O*, s:O*}", "pid", json_object_get(one, "pid"), "session",
                                                 json_object_get(one, "session")));
        if (!a->quiet && !a->json)
            say_stopped(one);
    }
    json_decref(list);
    if (a->json)
        status = ebb_cli_print_json(json_pack("{s:O}", "stopped", stopped));
    json_decref(stopped);
    keep_meant(&silent, word);
    if (silent.len && (n == 0 || !word))
        fail_silent(&silent, &err);
    else if (json_array_size(unreachable) && (n == 0 || !word))
        fail_unreachable(unreachable, &err);
    else if (n == 0)
        EBB_FAIL(&err, EBB_NOTFOUND, word ? "no answer is running in %.80s; `ebb stat` lists what is"
                                          : "no answer is running", word);
    json_decref(unreachable);
    ebb_buf_fini(&silent);
    return err.code ? ebb_cli_fail(&err) : status;
}

int ebb_cmd_stat(ebb_args *a)
{
    ebb_error err = { 0 };
    ebb_buf dir = { 0 }, silent = { 0 };
    int status = EBB_EXIT_OK;
    json_t *list;
    size_t n;

    if (a->n_words > 1)
        EBB_FAIL(&err, EBB_USAGE, "usage: ebb stat [PID] [--json]");
    else if (ebb_path_run(&dir, &err) != EBB_OK)
        ebb_buf_fini(&dir);
    if (err.code)
        return ebb_cli_fail(&err);
    list = ebb_cli_running(ebb_buf_text(&dir), a->n_words ? a->words[0] : NULL, &silent);
    ebb_buf_fini(&dir);
    n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        json_object_del(json_array_get(list, i), SOCKET);
        if (!a->json)
            print_process(json_array_get(list, i));
    }
    if (a->json) {
        status = ebb_cli_print_json(json_pack("{s:O}", "running", list));
    } else if (n == 0 && a->n_words) {
        EBB_FAIL(&err, EBB_NOTFOUND, "no ebb runs as process %.40s; `ebb stat` lists those that do", a->words[0]);
    } else if (n == 0) {
        EBB_FAIL(&err, EBB_NOTFOUND, "no chat is running");
    }
    if (silent.len)
        fail_silent(&silent, &err);
    ebb_buf_fini(&silent);
    json_decref(list);
    return err.code ? ebb_cli_fail(&err) : status;
}
