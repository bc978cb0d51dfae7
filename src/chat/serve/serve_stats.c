/* The figures of a server as JSON: its engine's, and how many clients and answers there are (serve_priv.h). */
#include <unistd.h>

#include "backend/figures.h"
#include "serve/serve_priv.h"

static const char *state_name(const ebb_serve *s, const ebb_stats *stats)
{
    static const char *const names[] = { "loading", "idle", "prefill", "decode" };

    return s->has_failed ? "failed" : s->is_ready ? names[stats->phase] : "loading";
}

json_t *ebb_serve_stats_locked(ebb_serve *s)
{
    json_t *o = json_object();
    ebb_stats stats = { 0 };
    size_t n_waiting, n_running;
    unsigned n_connections = ebb_http_server_n_connections(s->http);

    if (s->is_ready)
        ebb_engine_stats(s->engine, &stats);
    ebb_serve_hide_folders(stats.memory_event.detail);           /* that of K and V, on a full disk */
    n_waiting = ebb_served_n_waiting(s, &n_running);
    json_object_set_new(o, "pid", json_integer(getpid()));
    json_object_set_new(o, "session", json_string("ebb serve"));
    json_object_set_new(o, "model", s->name ? json_string(s->name) : json_null());
    json_object_set_new(o, "state", json_string(state_name(s, &stats)));
    json_object_set_new(o, "file", json_string(s->file));
    json_object_set_new(o, "clients", json_integer(n_connections));
    json_object_set_new(o, "running", json_integer((json_int_t)n_running));
    json_object_set_new(o, "waiting", json_integer((json_int_t)n_waiting));
    json_object_set_new(o, "answers", json_integer((json_int_t)s->n_answers));
    ebb_figures_put(o, &stats);
    return o;
}

json_t *ebb_serve_stats_json(ebb_serve *s)
{
    json_t *o;

    pthread_mutex_lock(&s->lock);
    o = ebb_serve_stats_locked(s);
    pthread_mutex_unlock(&s->lock);
    return o;
}
