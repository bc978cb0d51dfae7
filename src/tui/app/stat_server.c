/* Figures on a socket (stat_server.h). */
#include "app/stat_server.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "os/file.h"
#include "os/paths.h"

/* -- The object ------------------------------------------------------------------------ */

static json_t *json_from_text(const char *s)
{
    ebb_buf valid = { 0 };
    json_t *j = ebb_utf8_add_valid(&valid, s, strlen(s)) ? json_stringn(ebb_buf_text(&valid), valid.len) : NULL;

    ebb_buf_fini(&valid);
    return j ? j : json_null();
}

static void put_count(json_t *o, const char *name, uint64_t n)
{
    json_object_set_new(o, name, json_integer((json_int_t)n));
}

static const char *phase_name(const ebb_chat *chat, ebb_phase phase)
{
    static const char *const names[] = { "loading", "idle", "prefill", "decode" };

    if (ebb_chat_writer_pid(chat))
        return "attached";
    return ebb_chat_is_ready(chat) ? names[phase] : "loading";
}

static void put_figures(json_t *o, const ebb_stats *s)
{
    char decision[EBB_MEMORY_EVENT_TEXT];

    json_object_set_new(o, "tier", json_string(ebb_tier_name(s->tier)));
    put_count(o, "context", s->n_ctx);
    put_count(o, "used", s->n_ctx_used);
    json_object_set_new(o, "prefill_tok_s", json_real(s->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", json_real(s->decode_tok_s));
    put_count(o, "prefill_done", s->prefill_done);
    put_count(o, "prefill_total", s->prefill_total);
    put_count(o, "generated", s->generated_tok);
    put_count(o, "reused", s->reused_tok);
    put_count(o, "anon_bytes", s->rss_anon_bytes);
    put_count(o, "file_bytes", s->rss_file_bytes);
    put_count(o, "peak_bytes", s->rss_peak_bytes);
    put_count(o, "budget_bytes", s->budget_bytes);
    put_count(o, "kv_bytes", s->kv_bytes);
    put_count(o, "layers", s->n_layers);
    put_count(o, "resident", s->n_resident);
    put_count(o, "read_bytes", s->read_bytes);
    put_count(o, "threads", s->n_threads);
    json_object_set_new(o, "cpu", json_string(s->cpu));
    json_object_set_new(o, "io", json_string(s->io));
    json_object_set_new(o, "kv_type", json_string(s->kv_type));
    put_count(o, "drafted", s->n_drafted);
    put_count(o, "accepted", s->n_accepted);
    put_count(o, "draft_bytes", s->draft_bytes);
    json_object_set_new(o, "disk_bytes_s", json_real(s->disk_bytes_s));
    json_object_set_new(o, "stall_share", json_real(s->stall_share));
    if (s->experts_selected > 0)
        json_object_set_new(o, "expert_hits", json_real((double)s->experts_resident / (double)s->experts_selected));
    json_object_set_new(o, "decision", json_from_text(ebb_memory_event_text(&s->memory_event, decision, sizeof decision)));
}

static char *stats_json(const ebb_chat *chat, bool is_unseen)
{
    const ebb_model_info *m = ebb_chat_model(chat);
    json_t *o = json_object();
    ebb_stats s;
    char *out;

    ebb_chat_stats(chat, &s);
    put_count(o, "pid", (uint64_t)getpid());
    json_object_set_new(o, "session", json_from_text(ebb_chat_session_name(chat)));
    json_object_set_new(o, "model", m ? json_from_text(m->name) : json_null());
    if (ebb_chat_engine(chat))
        json_object_set_new(o, "engine", json_from_text(ebb_chat_engine(chat)));
    json_object_set_new(o, "state", json_string(phase_name(chat, s.phase)));
    json_object_set_new(o, "unseen", json_boolean(is_unseen));
    put_figures(o, &s);
    out = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return out;
}

/* -- The socket ------------------------------------------------------------------------- */

static bool make_address(ebb_stat_server *s, const char *dir)
{
    ebb_buf path = { 0 };
    int n = -1;

    s->at.sun_family = AF_UNIX;
    if (dir ? ebb_buf_adds(&path, dir) : ebb_path_run(&path, NULL) == EBB_OK)
        if (ebb_file_mkdirs(path.data, NULL) == EBB_OK)
            n = snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/%ld.sock", path.data, (long)getpid());
    ebb_buf_fini(&path);
    return n > 0 && (size_t)n < sizeof s->at.sun_path;
}

void ebb_stat_server_open(ebb_stat_server *s, const char *dir)
{
    *s = (ebb_stat_server){ .fd = -1 };
    if (!make_address(s, dir))
        return;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(s->at.sun_path);                      /* of a process that had our number and was killed */
    if (s->fd >= 0 && (fchmod(s->fd, 0600) != 0 || bind(s->fd, (struct sockaddr *)&s->at, sizeof s->at) != 0 ||
                       chmod(s->at.sun_path, 0600) != 0 || listen(s->fd, 8) != 0))
        ebb_stat_server_close(s);
}

void ebb_stat_server_close(ebb_stat_server *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    unlink(s->at.sun_path);
    s->fd = -1;
}

void ebb_stat_server_serve(ebb_stat_server *s, const ebb_chat *chat)
{
    int peer;

    while (s->fd >= 0 && (peer = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        char *out = stats_json(chat, s->is_unseen);
        if (out)
            (void)send(peer, out, strlen(out), MSG_NOSIGNAL | MSG_DONTWAIT);     /* who has left gets nothing */
        free(out);
        close(peer);
    }
}
