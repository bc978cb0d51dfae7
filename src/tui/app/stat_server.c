/* Figures on a socket (stat_server.h). */
#include "app/stat_server.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/json_text.h"
#include "models/models.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/random.h"
#include "backend/figures.h"

/* -- The object ------------------------------------------------------------------------ */

static const char *phase_name(const ebb_stat_server *s, const ebb_chat *chat, ebb_phase phase)
{
    static const char *const names[] = { "loading", "idle", "prefill", "decode" };

    if (s->is_waiting)
        return "waiting";
    if (ebb_chat_writer_pid(chat))
        return "attached";
    return ebb_chat_is_ready(chat) ? names[phase] : "loading";
}

static json_t *stats_json(const ebb_stat_server *server, const ebb_chat *chat)
{
    const ebb_model_info *m = ebb_chat_model(chat);
    json_t *o = json_object();
    const char *path;
    char file[EBB_MODELS_FILE_ID];
    ebb_stats s;

    ebb_chat_stats(chat, &s);
    json_object_set_new(o, "pid", json_integer(getpid()));
    if ((path = ebb_chat_offers_model(chat, file)) != NULL) {    /* SIGUSR2 has it handed over */
        json_object_set_new(o, "shares", json_string(file));
        json_object_set_new(o, "path", ebb_json_text_or_null(path));
    }
    json_object_set_new(o, "session", ebb_json_text_or_null(ebb_chat_session_name(chat)));
    json_object_set_new(o, "model", m ? ebb_json_text_or_null(m->name) : json_null());
    if (ebb_chat_engine(chat))
        json_object_set_new(o, "engine", ebb_json_text_or_null(ebb_chat_engine(chat)));
    json_object_set_new(o, "state", json_string(phase_name(server, chat, s.phase)));
    json_object_set_new(o, "unseen", json_boolean(server->is_unseen));
    ebb_figures_put(o, &s);
    return o;
}

/* -- The socket ------------------------------------------------------------------------- */

/* Another PID namespace with the same folder, as containers with one home have it, has a process of our number, too:
 * each is the first one of its own.  A name that is there may be its; what a killed process left goes when somebody
 * looks (cmd_stat.c). */
static bool make_address(ebb_stat_server *s)
{
    ebb_buf path = { 0 };
    uint32_t random = 0;
    int n = -1;

    s->at.sun_family = AF_UNIX;
    if (ebb_path_run(&path, NULL) == EBB_OK && ebb_file_mkdirs(path.data, NULL) == EBB_OK)
        n = snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/%ld.sock", path.data, (long)getpid());
    if (n > 0 && (size_t)n < sizeof s->at.sun_path && access(s->at.sun_path, F_OK) == 0)
        n = ebb_random(&random, sizeof random, NULL) == EBB_OK
              ? snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/%ld-%u.sock", path.data, (long)getpid(), random)
              : -1;
    ebb_buf_fini(&path);
    return n > 0 && (size_t)n < sizeof s->at.sun_path;
}

/* Under its name only when it listens: whoever is refused there takes the socket for that of a dead process, and
 * removes it (cmd_stat.c). */
static bool begin_listening(const ebb_stat_server *s)
{
    struct sockaddr_un begun = s->at;
    bool ok;

    strcpy(begun.sun_path + strlen(begun.sun_path) - strlen(".sock"), ".new");
    unlink(begun.sun_path);                      /* of a process that had our number and was killed */
    ok = fchmod(s->fd, 0600) == 0 && bind(s->fd, (struct sockaddr *)&begun, sizeof begun) == 0 &&
         chmod(begun.sun_path, 0600) == 0 && listen(s->fd, 8) == 0 && rename(begun.sun_path, s->at.sun_path) == 0;
    if (!ok)
        unlink(begun.sun_path);
    return ok;
}

void ebb_stat_server_open(ebb_stat_server *s)
{
    *s = (ebb_stat_server){ .fd = -1 };
    if (!make_address(s))
        return;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd >= 0 && !begin_listening(s))
        ebb_stat_server_close(s);
}

void ebb_stat_server_unlock(int lock)
{
    if (lock <= 0)
        return;
    (void)flock(lock, LOCK_UN);
    close(lock);
}

void ebb_stat_server_close(ebb_stat_server *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    unlink(s->at.sun_path);
    s->fd = -1;
}

void ebb_stat_server_reply(ebb_stat_server *s, const json_t *o)
{
    char *out = json_dumps(o, JSON_COMPACT);
    int peer;

    while (s->fd >= 0 && (peer = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (out)
            (void)send(peer, out, strlen(out), MSG_NOSIGNAL | MSG_DONTWAIT);     /* who has left gets nothing */
        close(peer);
    }
    free(out);
}

void ebb_stat_server_serve(ebb_stat_server *s, const ebb_chat *chat)
{
    json_t *o = stats_json(s, chat);

    ebb_stat_server_reply(s, o);
    json_decref(o);
}
