/* ebb serve: the engine for other programs (serve/serve.h). */
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/stat_server.h"
#include "cli.h"
#include "cmd_serve.h"
#include "confinement.h"
#include "json/json_text.h"
#include "net/listen.h"
#include "os/broker.h"
#include "os/file.h"
#include "os/paths.h"
#include "remote/engines_file.h"
#include "remote/secret.h"
#include "serve/serve.h"
#include "unlock.h"

enum { LOOK_MS = 1000, HOST_BYTES = 64 };

static volatile sig_atomic_t stop_signal;

static void on_serve_signal(int sig)
{
    stop_signal = sig;
}

static void tell_line(void *arg, const char *line)
{
    ebb_cli_tell(arg, line);
}

/* -- Where it listens ---------------------------------------------------------------------------------------- */

ebb_status ebb_serve_socket_path(const ebb_args *a, ebb_buf *path, ebb_error *err)
{
    ebb_status st;

    if (a->socket_path)
        return ebb_path_expand(a->socket_path, path, err);
    st = ebb_path_run(path, err);
    if (st == EBB_OK && !ebb_buf_adds(path, "/serve.sock"))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    return st;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* An address that other machines can reach needs a key, and a line says so. */
static ebb_status check_exposure(const ebb_args *a, const char *host, ebb_error *err)
{
    if (is_loopback(host)) {
        if (!a->key_file && !a->quiet)
            fprintf(stderr, "without --key-file every user of this machine can use it\n");
        return EBB_OK;
    }
    if (!a->key_file)
        return EBB_FAIL(err, EBB_USAGE,
                        "%.100s: other machines could ask; --key-file FILE names the key they need", host);
    if (!a->quiet)
        fprintf(stderr, "the conversation with %.100s, and the key, can be read on the way (http); "
                "ssh or a TLS proxy hides it\n", host);
    return EBB_OK;
}

static ebb_status listen_tcp(const ebb_args *a, ebb_serve_opts *o, ebb_error *err)
{
    const char *host = a->host ? a->host : "127.0.0.1";
    unsigned short port = (unsigned short)a->port;
    ebb_status st = a->port > 65535 ? EBB_FAIL(err, EBB_USAGE, "--port: give a number up to 65535") : check_exposure(a,
        host, err);

    if (st == EBB_OK)
        st = ebb_listen_tcp(host, &port, &o->listen_fd, err);
    o->host = a->host;
    if (st == EBB_OK && !a->quiet)
        fprintf(stderr, strchr(host, ':') ? "listening at http://[%s]:%u\n" : "listening at http://%s:%u\n", host,
                port);
    return st;
}

/* host[]: where systemd's socket is, which its requests may name.  --host is another name for it: that it could be
 * reached under any is said by the socket alone, which then wants a key. */
static ebb_status open_socket(const ebb_args *a, ebb_serve_opts *o, ebb_buf *path, char host[HOST_BYTES], int *lock,
                              ebb_error *err)
{
    ebb_status st = ebb_listen_inherited(&o->listen_fd, &o->is_unix, host, HOST_BYTES, err);

    if (st != EBB_OK)
        return st;
    if (o->listen_fd >= 0) {
        o->host = a->host && !ebb_listen_is_everywhere(a->host) ? a->host : host;
        return o->is_unix ? EBB_OK : check_exposure(a, host, err);
    }
    if (a->has_port || a->host)
        return listen_tcp(a, o, err);
    o->is_unix = true;
    st = ebb_serve_socket_path(a, path, err);
    if (st == EBB_OK)
        st = ebb_listen_unix(path->data, &o->listen_fd, lock, err);
    if (st == EBB_OK && !a->quiet)
        fprintf(stderr, "listening at unix:%s\n", path->data);
    return st;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static ebb_status read_key(const ebb_args *a, char key[EBB_SECRET_BYTES], ebb_error *err)
{
    ebb_engine_entry from = { .name = "serve", .key_file = (char *)a->key_file };

    key[0] = '\0';
    return a->key_file ? ebb_secret_get(&from, never, NULL, key, err) : EBB_OK;
}

/* Each connection is a thread, and would get one of many heaps, each of which keeps what its busiest moment took. */
static void use_one_heap(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

/* -- The command --------------------------------------------------------------------------------------------- */

/* Until a signal comes, or it has ended by itself. */
static ebb_status run_server(ebb_serve *s, const ebb_args *a, ebb_error *err)
{
    ebb_stat_server stat;

    ebb_stat_server_open(&stat);
    while (!stop_signal && ebb_serve_goes_on(s, err)) {
        struct pollfd p = { .fd = stat.fd, .events = POLLIN };
        json_t *o;

        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        o = ebb_serve_stats_json(s);
        if (a->model && a->model[0] == '/')      /* of this user alone, who may look for it */
            json_object_set_new(o, "path", ebb_json_text_or_null(a->model));
        ebb_stat_server_reply(&stat, o);
        json_decref(o);
    }
    ebb_stat_server_close(&stat);
    return err->code;
}

int ebb_cmd_serve(ebb_args *a)
{
    struct sigaction act = { .sa_handler = on_serve_signal };
    ebb_serve_opts opts = { .models = { .draft = ebb_cli_draft_model_name(a), .draft_is_optional = true },
                            .engine = a->engine,
                            .sampling = a->sampling, .sampling_given = a->sampling_given | a->sampling_config,
                                .listen_fd = -1,
                            .leave_s = a->idle_s, .tell = tell_line, .arg = a };
    char key[EBB_SECRET_BYTES], host[HOST_BYTES];
    ebb_serve *s = NULL;
    ebb_buf path = { 0 };
    ebb_error err = { 0 };
    int lock = -1;
    bool wants_no_kv = a->engine.no_kv_cache;
    ebb_status st = ebb_cli_only_model(a, &err);

    if (st == EBB_OK && a->attaches)
        return ebb_cmd_serve_attach(a);
    if (a->key_file && strcmp(a->key_file, "none") == 0)
        a->key_file = NULL;
    use_one_heap();
    opts.models.path = a->model;
    if (st == EBB_OK)
        st = ebb_cli_unlock(a, false, &err);
    opts.engine = a->engine;
    if (st == EBB_OK && a->engine.no_kv_cache && !wants_no_kv && !a->quiet)
        fprintf(stderr, "sessions are encrypted: without --unlock FILE no K and V are kept\n");
    if (st == EBB_OK)
        st = read_key(a, key, &err);
    opts.key = a->key_file ? key : NULL;
    sigaction(SIGINT, &act, NULL);               /* before there is a socket that would be left behind */
    sigaction(SIGTERM, &act, NULL);
    ebb_cli_catch_hangup(on_serve_signal);
    signal(SIGUSR1, SIG_IGN);                    /* it would stop a chat's answer */
    if (st == EBB_OK)
        st = open_socket(a, &opts, &path, host, &lock, &err);
    if (st == EBB_OK)
        ebb_cli_take_over(a, a->model, &stop_signal);
    if (st == EBB_OK && !stop_signal) {
        ebb_cli_confine(a, EBB_CLI_SERVE, NULL);
        st = ebb_serve_open(&opts, &s, &err);
    }
    explicit_bzero(key, sizeof key);
    if (s)
        st = run_server(s, a, &err);
    if (lock >= 0 && unlink(path.data) != 0)
        /* before the engine closes: who comes now finds none, instead of one that leaves */
        ebb_broker_remove_socket();
    ebb_serve_close(s);
    ebb_file_close(lock);
    ebb_buf_fini(&path);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(&err);
}
