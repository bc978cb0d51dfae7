/* The figures of a server as JSON: its engine's, and how many clients and answers there are (serve_priv.h). */
#include <string.h>
#include <unistd.h>

#include "backend/figures.h"
#include "ebb/experimental/plan.h"
#include "serve/serve_priv.h"

static const char *state_name(const ebb_serve *s, const ebb_stats *stats)
{
    static const char *const names[] = { "loading", "idle", "prefill", "decode" };

    return s->has_failed ? "failed" : s->is_ready ? names[stats->phase] : "loading";
}

/* Options that leave the engine less, or have it take more, than it would without. */
static bool is_limited(const ebb_engine_opts *o)
{
    return o->n_ctx || o->ram_bytes || o->mode != EBB_MODE_BALANCED;
}

/* A context that somebody has limited, below what an engine without options would have. */
static bool is_narrow(const ebb_serve *s)
{
    const ebb_engine_opts *o = &s->opts.engine;
    uint32_t n_train = ebb_model_get_info(s->model)->n_ctx_train, n_usual = EBB_CTX_USUAL;
    uint32_t n_ctx = s->n_ctx ? s->n_ctx : o->n_ctx;     /* 0: the plan is still to come */

    return is_limited(o) && n_ctx && n_ctx < (n_train < n_usual ? n_train : n_usual);
}

/* K and V of a type that somebody has named, or that the plan took to stay within what somebody has limited. */
static bool has_other_kv(const ebb_engine_opts *o, const ebb_stats *stats)
{
    bool is_named = o->has_kv && (o->kv_k != EBB_KV_F16 || o->kv_v != EBB_KV_F16);

    return is_named || (is_limited(o) && stats->kv_type[0] && strcmp(stats->kv_type, "f16") != 0);
}

/* Whether its engine has nothing that would make an answer another one than that of a process alone; or nobody knows
 * yet. */
static bool answers_as_alone(const ebb_serve *s, const ebb_stats *stats)
{
    const ebb_engine_opts *o = &s->opts.engine;

    return !o->is_forced && !has_other_kv(o, stats) && !(s->name && is_narrow(s));
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
    json_object_set_new(o, "as_alone", json_boolean(answers_as_alone(s, &stats)));
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
