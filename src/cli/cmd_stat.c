/* ebb stat: the figures of the running chats, read from their sockets; ebb stop: their answers end. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli.h"
#include "json/json_load.h"
#include "os/paths.h"

enum { MAX_ANSWER = 1 << 16, WAIT_S = 2 };

/* Whose socket this is, as this process sees it, even from another PID namespace. */
static int open_peer(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.pid <= 1 || peer.uid != geteuid())
        return -1;
    return (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

/* What the process at this socket says; NULL: nobody is there (then the socket is removed), or it is busy.
 * *process, if not NULL: a descriptor of that very process, since it answers after it was opened; or -1. */
static json_t *query_process(const char *path, int *process)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct timeval wait = { .tv_sec = WAIT_S };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ebb_buf answer = { .max = MAX_ANSWER };
    char bytes[4096];
    ssize_t got;
    json_t *o;

    if (fd < 0 || strlen(path) >= sizeof at.sun_path) {
        close(fd);
        return NULL;
    }
    strcpy(at.sun_path, path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
        if (process)
            *process = open_peer(fd);
        while ((got = read(fd, bytes, sizeof bytes)) > 0 && ebb_buf_add(&answer, bytes, (size_t)got))
            ;
    } else if (errno == ECONNREFUSED) {
        unlink(path);
    }
    close(fd);
    o = ebb_json_load(ebb_buf_text(&answer), answer.len, 0, NULL);
    ebb_buf_fini(&answer);
    return o;
}

json_t *ebb_cli_running(const char *dir, const char *pid)
{
    json_t *list = json_array(), *one;
    ebb_buf path = { 0 };
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n <= 5 || strcmp(e->d_name + n - 5, ".sock") != 0 || strspn(e->d_name, "0123456789") != n - 5 ||
            (pid && (strlen(pid) != n - 5 || memcmp(pid, e->d_name, n - 5) != 0)))
            continue;
        ebb_buf_clear(&path);
        ebb_buf_addf(&path, "%s/%s", dir, e->d_name);
        if ((one = query_process(ebb_buf_text(&path), NULL)) != NULL)
            json_array_append_new(list, one);
    }
    if (d)
        closedir(d);
    ebb_buf_fini(&path);
    return list;
}

bool ebb_cli_signal(const json_t *running, int number)
{
    ebb_buf path = { 0 };
    int process = -1;
    json_t *now = NULL;
    bool ok;

    if (ebb_path_run(&path, NULL) == EBB_OK &&
        ebb_buf_addf(&path, "/%lld.sock", (long long)json_integer_value(json_object_get(running, "pid"))))
        now = query_process(path.data, &process);
    ok = now && process >= 0 && syscall(SYS_pidfd_send_signal, process, number, NULL, 0) == 0;
    if (process >= 0)
        close(process);
    json_decref(now);
    ebb_buf_fini(&path);
    return ok;
}

static double json_number(json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static void print_json_text(json_t *o, const char *name)
{
    json_t *s = json_object_get(o, name);

    ebb_cli_print(json_is_string(s) ? json_string_value(s) : "-", json_is_string(s) ? json_string_length(s) : 1);
}

/* A server's answers are its clients' to end. */
static bool is_answering(json_t *o)
{
    const char *state = json_string_value(json_object_get(o, "state"));

    return !json_object_get(o, "clients") && state && (strcmp(state, "prefill") == 0 || strcmp(state, "decode") == 0);
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
           ebb_size_text((uint64_t)json_number(o, "anon_bytes"), own),
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
}

/* By its number, or by the name of its session. */
static bool is_meant(json_t *o, const char *word)
{
    const char *session = json_string_value(json_object_get(o, "session"));
    char pid[24];

    snprintf(pid, sizeof pid, "%.0f", json_number(o, "pid"));
    return !word || strcmp(word, pid) == 0 || (session && strcmp(word, session) == 0);
}

int ebb_cmd_stop(ebb_args *a)
{
    const char *word = a->n_words ? a->words[0] : NULL;
    ebb_error err = { 0 };
    ebb_buf dir = { 0 };
    json_t *list, *one;
    size_t i, n = 0;

    if (a->n_words > 1)
        EBB_FAIL(&err, EBB_USAGE, "usage: ebb stop [PID | SESSION]");
    else if (ebb_path_run(&dir, &err) != EBB_OK)
        ebb_buf_fini(&dir);
    if (err.code)
        return ebb_cli_fail(&err);
    list = ebb_cli_running(dir.data, NULL);
    ebb_buf_fini(&dir);
    json_array_foreach(list, i, one) {
        pid_t pid = (pid_t)json_number(one, "pid");
        if (!is_meant(one, word) || !is_answering(one) || !ebb_cli_signal(one, SIGUSR1))
            continue;
        n++;
        if (!a->quiet) {
            printf("%ld  stopped: \"", (long)pid);
            print_json_text(one, "session");
            puts("\"; what was written is kept");
        }
    }
    json_decref(list);
    if (n == 0)
        EBB_FAIL(&err, EBB_NOTFOUND, word ? "no answer is running in %.80s; `ebb stat` lists what is"
                                          : "no answer is running", word);
    return n == 0 ? ebb_cli_fail(&err) : EBB_EXIT_OK;
}

int ebb_cmd_stat(ebb_args *a)
{
    ebb_error err = { 0 };
    ebb_buf dir = { 0 };
    json_t *list;
    size_t n;

    if (a->n_words > 1)
        EBB_FAIL(&err, EBB_USAGE, "usage: ebb stat [PID] [--json]");
    else if (ebb_path_run(&dir, &err) != EBB_OK)
        ebb_buf_fini(&dir);
    if (err.code)
        return ebb_cli_fail(&err);
    list = ebb_cli_running(dir.data, a->n_words ? a->words[0] : NULL);
    ebb_buf_fini(&dir);
    n = json_array_size(list);
    for (size_t i = 0; i < n && !a->json; i++)
        print_process(json_array_get(list, i));
    if (a->json) {
        char *text = json_dumps(list, JSON_COMPACT);
        printf("{\"running\":%s}\n", text ? text : "[]");
        free(text);
    } else if (n == 0) {
        EBB_FAIL(&err, EBB_NOTFOUND, "no chat is running");
    }
    json_decref(list);
    return err.code ? ebb_cli_fail(&err) : EBB_EXIT_OK;
}
