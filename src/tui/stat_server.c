/* Figures on a socket (stat_server.h). */
#include "stat_server.h"

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

static json_t *text(const char *s)
{
    ebb_buf valid = { 0 };
    json_t *j = ebb_utf8_add_valid(&valid, s, strlen(s)) ? json_stringn(ebb_buf_text(&valid), valid.len) : NULL;

    ebb_buf_fini(&valid);
    return j ? j : json_null();
}

static void put(json_t *o, const char *name, uint64_t n)
{
    json_object_set_new(o, name, json_integer((json_int_t)n));
}

static const char *phase_name(const ebb_chat *chat, ebb_phase phase)
{
    static const char *const names[] = { "loading", "idle", "prefill", "decode" };

    if (ebb_chat_writer(chat))
        return "attached";
    return ebb_chat_is_ready(chat) ? names[phase] : "loading";
}

static void put_figures(json_t *o, const ebb_stats *s)
{
    json_object_set_new(o, "tier", json_string(ebb_tier_name(s->tier)));
    put(o, "context", s->n_ctx);
    put(o, "used", s->n_used);
    json_object_set_new(o, "prefill_tok_s", json_real(s->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", json_real(s->decode_tok_s));
    put(o, "prefill_done", s->prefill_done);
    put(o, "prefill_total", s->prefill_total);
    put(o, "generated", s->generated_tok);
    put(o, "reused", s->reused_tok);
    put(o, "anon_bytes", s->rss_anon_bytes);
    put(o, "file_bytes", s->rss_file_bytes);
    put(o, "peak_bytes", s->rss_peak_bytes);
    put(o, "budget_bytes", s->budget_bytes);
    put(o, "kv_bytes", s->kv_bytes);
    put(o, "layers", s->n_layers);
    put(o, "resident", s->n_resident);
    put(o, "read_bytes", s->read_bytes);
    put(o, "threads", s->n_threads);
    json_object_set_new(o, "cpu", json_string(s->cpu));
    json_object_set_new(o, "io", json_string(s->io));
    json_object_set_new(o, "kv_type", json_string(s->kv_type));
    put(o, "drafted", s->drafted);
    put(o, "accepted", s->accepted);
    put(o, "draft_bytes", s->draft_bytes);
    json_object_set_new(o, "disk_bytes_s", json_real(s->disk_bytes_s));
    json_object_set_new(o, "stall_share", json_real(s->stall_share));
    if (s->experts_chosen > 0)
        json_object_set_new(o, "expert_hits", json_real((double)s->experts_here / (double)s->experts_chosen));
    json_object_set_new(o, "decision", text(s->decision));
}

static char *figures(const ebb_chat *chat)
{
    const ebb_model_info *m = ebb_chat_model(chat);
    json_t *o = json_object();
    ebb_stats s;
    char *out;

    ebb_chat_stats(chat, &s);
    put(o, "pid", (uint64_t)getpid());
    json_object_set_new(o, "session", text(ebb_chat_session_name(chat)));
    json_object_set_new(o, "model", m ? text(m->name) : json_null());
    json_object_set_new(o, "state", json_string(phase_name(chat, s.phase)));
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

void ebb_stat_open(ebb_stat_server *s, const char *dir)
{
    *s = (ebb_stat_server){ .fd = -1 };
    if (!make_address(s, dir))
        return;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(s->at.sun_path);                      /* of a process that had our number and was killed */
    if (s->fd >= 0 && (fchmod(s->fd, 0600) != 0 || bind(s->fd, (struct sockaddr *)&s->at, sizeof s->at) != 0 ||
                       chmod(s->at.sun_path, 0600) != 0 || listen(s->fd, 8) != 0))
        ebb_stat_close(s);
}

void ebb_stat_close(ebb_stat_server *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    unlink(s->at.sun_path);
    s->fd = -1;
}

void ebb_stat_serve(ebb_stat_server *s, const ebb_chat *chat)
{
    int peer;

    while (s->fd >= 0 && (peer = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        char *out = figures(chat);
        if (out)
            (void)send(peer, out, strlen(out), MSG_NOSIGNAL | MSG_DONTWAIT);     /* who has left gets nothing */
        free(out);
        close(peer);
    }
}
