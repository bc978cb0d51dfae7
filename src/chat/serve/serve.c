/* The engine for others: its beginning and its end (serve.h). */
#include "serve/serve.h"

#include <unistd.h>

#include "os/limits.h"
#include "os/thread.h"
#include "serve/serve_priv.h"

/* One address may have half of the connections, and of the room for large bodies.  At a UNIX socket one process may
 * have all: it is the user's own, and could end the server as well. */
enum { MAX_CONNECTIONS = 256, LEAST_CONNECTIONS = 12, SILENCE_S = 60, OWN_SILENCE_S = 3600, MAX_BODY = 16 << 20,
       MAX_BODIES = 32 << 20, FILES_OF_ONE = 4 };

/* A connection takes two files, its socket and its reader's eventfd, and all of them half of what the process may
 * have: the engine needs the rest, and who cannot open one for whoever connects would try it again all the time. */
static ebb_status count_connections(unsigned *most, ebb_error *err)
{
    uint64_t n_files = ebb_limits_files(), n = n_files / FILES_OF_ONE;

    *most = n < MAX_CONNECTIONS ? (unsigned)n : MAX_CONNECTIONS;
    if (*most >= LEAST_CONNECTIONS)
        return EBB_OK;
    return EBB_FAIL(err, EBB_LIMIT, "this process may open %llu files, and a server needs %d; `ulimit -n %d` allows "
                    "%d connections", (unsigned long long)n_files, FILES_OF_ONE * LEAST_CONNECTIONS,
                    FILES_OF_ONE * MAX_CONNECTIONS, MAX_CONNECTIONS);
}

ebb_status ebb_serve_open(const ebb_serve_opts *opts, ebb_serve **out, ebb_error *err)
{
    ebb_http_server_opts http = { .listen_fd = opts->listen_fd, .name = "ebb/" EBB_VERSION,
                                  .silence_s = opts->is_unix ? OWN_SILENCE_S : SILENCE_S, .max_body = MAX_BODY,
                                  .max_bodies = MAX_BODIES, .is_owner_only = opts->is_unix,
                                  .may_ask = ebb_serve_may_ask, .on_request = ebb_serve_on_request };
    ebb_serve *s = ebb_serve_new(opts);
    ebb_status st = s ? count_connections(&http.max_connections, err)
                      : EBB_FAIL(err, EBB_NOMEM, "no memory for a server");

    *out = NULL;
    if (st != EBB_OK) {
        close(opts->listen_fd);
        ebb_serve_free(s);
        return st;
    }
    http.max_from_one = opts->is_unix ? 0 : http.max_connections / 2;
    http.max_bodies_of_one = opts->is_unix ? 0 : MAX_BODIES / 2;
    http.arg = s;
    st = ebb_http_server_open(&http, &s->http, err);
    if (st == EBB_OK && ebb_thread_start(&s->thread, ebb_serve_worker, s) != 0)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the engine's thread");
    if (st != EBB_OK) {
        ebb_http_server_close(s->http);
        ebb_serve_free(s);
        return st;
    }
    *out = s;
    return EBB_OK;
}

bool ebb_serve_goes_on(ebb_serve *s, ebb_error *err)
{
    bool goes_on;

    ebb_http_server_end_slow(s->http);
    pthread_mutex_lock(&s->lock);
    goes_on = !s->has_left && !s->has_failed;
    *err = s->error;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static bool is_loading(ebb_serve *s)
{
    return !s->is_ready && !s->has_failed;
}

/* Before there is an engine nobody waits for an answer, and nothing interrupts the reading of a model's file. */
static bool leave_loading(ebb_serve *s)
{
    bool is_orphan;

    ebb_http_server_close(s->http);
    s->http = NULL;
    pthread_mutex_lock(&s->lock);
    is_orphan = s->is_orphan = is_loading(s);
    pthread_mutex_unlock(&s->lock);
    return is_orphan;
}

/* Otherwise the worker first: it ends the answers, and so those who wait for them. */
void ebb_serve_close(ebb_serve *s)
{
    pthread_t thread;
    bool was_loading;

    if (!s)
        return;
    thread = s->thread;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    was_loading = is_loading(s);
    if (s->is_ready)
        ebb_engine_cancel(s->engine);
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (was_loading && leave_loading(s)) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    ebb_http_server_close(s->http);
    ebb_serve_free(s);
}
