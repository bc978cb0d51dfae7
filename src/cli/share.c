/* A model in memory once: the server of this user that has it answers, or a chat that has it hands it over to one
 * (cli.h). */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli.h"
#include "cmd_serve.h"
#include "json/json_get.h"
#include "json/json_load.h"
#include "models/models.h"
#include "net/dynlib.h"
#include "net/listen.h"
#include "os/file.h"
#include "os/paths.h"
#include "remote/address.h"

/* a chat that begins is found within the product */
enum { BEGIN_TRIES = 100, BEGIN_MS = 20 };
enum { REPLY_MS = 2000, REPLY_BYTES = 1 << 20, TRY_MS = 100 };
/* of a chat that is asked to hand over its model: looks, their distance, looks between two requests, and at one that
 * is idle, which only has to hear of it */
enum { TAKE_TRIES = 6000, TAKE_MS = 100, TAKE_AGAIN = 20, TAKE_IDLE = 100 };

/* -- A server -------------------------------------------------------------------------------------------------- */

/* What there is of the reply by ebb_clock_ns() `end`; false: that was all. */
static bool read_more(int fd, uint64_t end, ebb_buf *reply)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t now = ebb_clock_ns();
    char bytes[4096];
    ssize_t got;

    if (now >= end || poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0)
        return false;
    got = read(fd, bytes, sizeof bytes);
    return got > 0 && ebb_buf_add(reply, bytes, (size_t)got);
}

static uint64_t reply_end(void)
{
    return ebb_clock_ns() + REPLY_MS * UINT64_C(1000000);
}

/* Without libcurl: most probes find no server, and those that do are repeated through remote/. */
static json_t *query_server(const char *path, uint64_t end)
{
    static const char request[] = "GET /ebb/v1/stats HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ebb_buf reply = { .max = REPLY_BYTES };
    const char *body;
    json_t *o = NULL;
    int fd;

    if (ebb_connect_unix(path, &fd, NULL) != EBB_OK)
        return NULL;
    if (write(fd, request, sizeof request - 1) == (ssize_t)sizeof request - 1)
        while (read_more(fd, end, &reply))
            ;
    close(fd);
    body = strstr(ebb_buf_text(&reply), "\r\n\r\n");
    if (body && strncmp(ebb_buf_text(&reply), "HTTP/1.", 7) == 0)
        o = ebb_json_load(body + 4, strlen(body + 4), 0, NULL);
    ebb_buf_fini(&reply);
    return o;
}

/* One that has just begun does not know its model yet; it is not waited for longer than one that says nothing. */
static json_t *ask_server(const char *path)
{
    const struct timespec wait = { .tv_nsec = TRY_MS * 1000000L };
    uint64_t end = reply_end();

    do {
        json_t *o = query_server(path, end);

        if (!o || strcmp(ebb_json_get_text(o, "state"), "loading") != 0 || *ebb_json_get_text(o, "file"))
            return o;
        json_decref(o);
        nanosleep(&wait, NULL);
    } while (ebb_clock_ns() < end);
    return NULL;
}

/* -- What is wanted -------------------------------------------------------------------------------------------- */

/* Where a server for several listens, or would. */
static bool find_socket(const char *path, char *address, size_t cap, ebb_address *at)
{
    return (size_t)snprintf(address, cap, "shared:%s", path) < cap && ebb_address_parse(address, at, NULL) == EBB_OK;
}

static bool is_reachable(const ebb_address *at)
{
    return access(ebb_address_socket(at), R_OK | W_OK) == 0;
}

static bool names_file(const ebb_args *a)
{
    return a->model && strcmp(a->model, EBB_MODELS_GUIDE) != 0 && strcmp(a->model, EBB_MODELS_AUTO) != 0;
}

/* A name is looked for once, for stores are large: what is found is the model from here on. */
static void resolve_model(ebb_args *a)
{
    static char *path;                           /* for as long as the program runs, as all arguments are */

    if (!path && names_file(a) && ebb_models_resolve(a->model, &path, NULL) == EBB_OK)
        a->model = path;
}

/* The model that this process would take: the one named, else the one named last.  *path is a real one, for free();
 * NULL: another one, or none yet. */
static void find_wanted(const ebb_args *a, char **path)
{
    ebb_buf remembered = { 0 };
    char *found = NULL;

    *path = NULL;
    if (names_file(a) && ebb_models_resolve(a->model, &found, NULL) == EBB_OK)
        *path = realpath(found, NULL);
    else if (!a->model && ebb_models_remembered(&remembered))
        *path = realpath(ebb_buf_text(&remembered), NULL);
    free(found);
    ebb_buf_fini(&remembered);
}

static bool has_wanted_model(const ebb_args *a, const char *path, const json_t *o)
{
    const char *file = ebb_json_get_text(o, "file");
    char id[EBB_MODELS_FILE_ID];

    if (strcmp(ebb_json_get_text(o, "state"), "failed") == 0)
        return false;
    if (a->model && strcmp(a->model, EBB_MODELS_GUIDE) == 0)
        return !*file && strcmp(ebb_json_get_text(o, "model"), EBB_MODELS_GUIDE) == 0;
    if (path)
        return ebb_models_file_id(path, id) && strcmp(id, file) == 0;
    return !a->model && *file;
}

/* Options of the engine need an engine of one's own; a server renders with the model's own template; a private chat
 * stays out of another process's K and V. */
static bool may_share(const ebb_args *a)
{
    return !a->is_engine_given && !a->is_private && !ebb_cli_draft_model_name(a) &&
           (!a->template_name || strcmp(a->template_name, "auto") == 0) && ebb_chat_engine_is_usual(&a->engine);
}

/* -- No model is named -------------------------------------------------------------------------------------- */

/* Of a model that a chat hands over, or that a server has for several: what is in memory already is chosen before
 * what would suit the memory that is left beside it. */
static void find_shared(char **path)
{
    ebb_buf dir = { 0 };
    json_t *list = ebb_path_run(&dir, NULL) == EBB_OK ? ebb_cli_running(dir.data, NULL, NULL) : NULL, *one;
    char address[sizeof ((ebb_args *)0)->shared_address];
    ebb_address at;
    size_t i;

    json_array_foreach(list, i, one) {
        const char *p = ebb_json_get_text(one, "path");

        if (!*path && *p && find_socket(p, address, sizeof address, &at) &&
            (*ebb_json_get_text(one, "shares") || is_reachable(&at)))
            *path = strdup(p);
    }
    json_decref(list);
    ebb_buf_fini(&dir);
}

/* The one that the chat will choose, to be offered to others. */
static void find_choice(const ebb_args *a, char **path)
{
    ebb_buf ignored = { 0 };
    char *choice = NULL;

    if (ebb_models_choose(&a->engine, &choice, &ignored, NULL) == EBB_OK && choice)
        *path = realpath(choice, NULL);
    free(choice);
    ebb_buf_fini(&ignored);
}

/* Where a server's model is, which says so to this user alone, for free(); NULL: it is no file, or that is not told. */
static char *find_path_of(json_int_t pid)
{
    ebb_buf dir = { 0 };
    json_t *list = ebb_path_run(&dir, NULL) == EBB_OK ? ebb_cli_running(dir.data, NULL, NULL) : NULL, *one;
    char *path = NULL;
    size_t i;

    json_array_foreach(list, i, one)
        if (!path && json_integer_value(json_object_get(one, "pid")) == pid && *ebb_json_get_text(one, "path"))
            path = strdup(ebb_json_get_text(one, "path"));
    json_decref(list);
    ebb_buf_fini(&dir);
    return path;
}

/* -- A chat that has it ------------------------------------------------------------------------------------- */

/* Its object of `ebb stat`; NULL: no chat hands over the file with this id. */
static json_t *find_offer(const char *id)
{
    ebb_buf dir = { 0 };
    json_t *list = ebb_path_run(&dir, NULL) == EBB_OK ? ebb_cli_running(dir.data, NULL, NULL) : NULL;
    json_t *one, *found = NULL;
    size_t i;

    json_array_foreach(list, i, one)
        if (!found && strcmp(ebb_json_get_text(one, "shares"), id) == 0)
            found = json_incref(one);
    json_decref(list);
    ebb_buf_fini(&dir);
    return found;
}

static bool is_answering(const json_t *o)
{
    const char *at = ebb_json_get_text(o, "state");

    return strcmp(at, "prefill") == 0 || strcmp(at, "decode") == 0;
}

/* The server for several can be started, and asked. */
static bool has_libraries(void)
{
    const ebb_curl *curl;
    const ebb_mhd *mhd;

    return ebb_curl_load(&curl, NULL) == EBB_OK && ebb_mhd_load(&mhd, NULL) == EBB_OK;
}

void ebb_cli_take_over(const ebb_args *a, const char *path, const volatile sig_atomic_t *stop)
{
    char id[EBB_MODELS_FILE_ID], *real = NULL;
    ebb_args of = { .model = path };
    json_t *o;

    find_wanted(&of, &real);
    for (int i = 0, n_idle = 0; real && ebb_models_file_id(real, id) && i < TAKE_TRIES && n_idle < TAKE_IDLE &&
                                !*stop && has_libraries() && (o = find_offer(id)) != NULL; i++) {
        const struct timespec wait = { .tv_nsec = TAKE_MS * 1000000L };
        pid_t pid = (pid_t)json_integer_value(json_object_get(o, "pid"));

        if (i == 0 && !a->quiet)
            fprintf(stderr, "process %ld has this model and hands it over%s\n", (long)pid,
                    is_answering(o) ? " as soon as its answer has ended" : "");
        if (i % TAKE_AGAIN == 0)
            (void)!ebb_cli_signal(o, SIGUSR2);
        n_idle = strcmp(ebb_json_get_text(o, "state"), "idle") == 0 ? n_idle + 1 : 0;
        if (n_idle == TAKE_IDLE && !a->quiet)
            fprintf(stderr, "process %ld keeps it, so the model is in memory twice\n", (long)pid);
        json_decref(o);
        nanosleep(&wait, NULL);
    }
    free(real);
}

/* -- Sharing ------------------------------------------------------------------------------------------------------ */

static void tell_sharing(const json_t *o)
{
    const char *model = ebb_json_get_text(o, "model");
    ebb_buf line = { 0 };

    ebb_utf8_add_line(&line, model, strlen(model), false);
    fprintf(stderr, "ebb serve (process %lld) has %s in memory and answers; -e here loads a copy\n",
            (long long)json_integer_value(json_object_get(o, "pid")), *model ? ebb_buf_text(&line) : "the model");
    ebb_buf_fini(&line);
}

/* The engine at that address takes the place of the model, which is opened here if need be: the one that was named,
 * else the one at that path (NULL: what would be chosen). */
static void use_found(ebb_args *a, const char *address, const char *path)
{
    static char *kept;                           /* for as long as the program runs, as all arguments are */

    free(kept);
    kept = path ? strdup(path) : NULL;
    a->here_is_chosen = names_file(a);
    a->here_model = a->model ? a->model : kept ? kept : EBB_MODELS_AUTO;
    a->engine_name = address;
    a->model = NULL;
}

/* One whose options would make other answers is for those who name it.  is_any: no model is wanted in particular, so
 * the one that is loaded here may be another. */
static void tell_passed_over(ebb_args *a, const json_t *o, const char *address, bool is_any, bool tells)
{
    snprintf(a->first_notice, sizeof a->first_notice, "ebb serve (process %lld) has %s model, with options that "
             "change answers (--ctx, --kv ...); %s here.  -e %.100s asks that one",
             (long long)json_integer_value(json_object_get(o, "pid")), is_any ? "a" : "this",
             is_any ? "one is chosen" : "it is loaded", address);
    if (tells && ebb_cli_progress(a))
        fprintf(stderr, "%s\n", a->first_notice);
    if (tells)
        a->first_notice[0] = '\0';
}

/* The server of this user at its usual place, if it has the model and answers as this process alone would. */
static bool use_server(ebb_args *a, const char *path, bool tells)
{
    ebb_buf at = { 0 };
    json_t *o = NULL;
    bool is_there = false, has_it;

    if (ebb_serve_socket_path(a, &at, NULL) == EBB_OK && access(at.data, R_OK | W_OK) == 0)
        o = ask_server(at.data);
    has_it = o && has_wanted_model(a, path, o) &&
             (size_t)snprintf(a->shared, sizeof a->shared, "unix:%s", at.data) < sizeof a->shared;
    if (has_it && json_is_false(json_object_get(o, "as_alone"))) {
        tell_passed_over(a, o, a->shared, !path && !a->model, tells);
    } else if (has_it) {
        char *told = path || a->model ? NULL : find_path_of(json_integer_value(json_object_get(o, "pid")));

        is_there = true;
        use_found(a, a->shared, path ? path : told);
        free(told);
        if (tells && ebb_cli_progress(a))
            tell_sharing(o);
    }
    json_decref(o);
    ebb_buf_fini(&at);
    return is_there;
}

/* Of chats that begin at the same instant each looks for the others, and none can be found yet: so they look one
 * after the other.  A lock that is held until this chat can be found; -1: who holds it takes too long, or it cannot be
 * had. */
static int wait_for_beginners(const char *socket)
{
    const struct timespec wait = { .tv_nsec = BEGIN_MS * 1000000L };
    ebb_buf path = { 0 };
    int fd = -1;

    if (ebb_path_run(&path, NULL) == EBB_OK && ebb_file_mkdirs(path.data, NULL) == EBB_OK) {
        ebb_buf_clear(&path);
        if (ebb_buf_addf(&path, "%s.begin", socket))
            fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        if (i < BEGIN_TRIES) {
            nanosleep(&wait, NULL);
        } else {
            close(fd);
            fd = -1;
        }
    ebb_buf_fini(&path);
    return fd;
}

/* The server for several that has taken over already, or does so now. */
static void join_others(ebb_args *a, const char *path, bool tells)
{
    ebb_address at;
    char id[EBB_MODELS_FILE_ID];
    json_t *o = NULL;
    bool is_there;
    int lock;

    if (!find_socket(path, a->shared_address, sizeof a->shared_address, &at) || !ebb_models_file_id(path, id)) {
        a->shared_address[0] = '\0';
        return;
    }
    lock = wait_for_beginners(ebb_address_socket(&at));
    is_there = is_reachable(&at) && (o = query_server(ebb_address_socket(&at), reply_end())) != NULL;
    if (!is_there)
        o = find_offer(id);
    if (o && (is_there || has_libraries())) {
        bool waits = !is_there && is_answering(o);

        use_found(a, a->shared_address, path);
        snprintf(a->first_notice, sizeof a->first_notice, "%s (process %lld) has this model%s; it is loaded once for "
                 "both%s.  %s loads it for this one alone%s", is_there ? "ebb serve" : "another ebb",
                 (long long)json_integer_value(json_object_get(o, "pid")), waits ? " and is answering" : "",
                 waits ? " when that answer has ended" : "", tells ? "-e here" : "/engine here", waits ? ", now" : "");
        if (tells && ebb_cli_progress(a))
            fprintf(stderr, "%s\n", a->first_notice);
        if (tells)
            a->first_notice[0] = '\0';
    }
    if (a->engine_name || tells) {
        ebb_file_close(lock);
        lock = -1;
    }
    a->begin_lock = lock > 0 ? lock : 0;
    json_decref(o);
}

void ebb_cli_share(ebb_args *a, bool tells)
{
    char *path = NULL;

    if (!may_share(a))
        return;
    resolve_model(a);
    find_wanted(a, &path);
    if (use_server(a, path, tells)) {
        free(path);
        return;
    }
    if (!path && !a->model)
        find_shared(&path);
    if (!path && !a->model)
        find_choice(a, &path);
    if (path && ebb_chat_is_worth_sharing(path))
        join_others(a, path, tells);
    free(path);
}
