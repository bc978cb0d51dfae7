/* Remote engines, as the user handles them: another one, a look at one, and what they cannot do (chat.h). */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/models.h"
#include "os/thread.h"
#include "remote/probe.h"
#include "remote/secret.h"

/* -- Changing the engine ---------------------------------------------------------------------- */

/* All that can be known of a link without connecting.  A key that someone has to give first is asked for later, where
 * nobody waits for it. */
static ebb_status check_link(const char *name, ebb_error *err)
{
    ebb_engine_entry entry = { 0 };
    ebb_engine_link link = { 0 };
    ebb_status st = ebb_engines_find(name, &entry, err);

    if (st == EBB_OK)
        st = ebb_engine_link_init(&link, &entry, err);
    if (st == EBB_OK && !ebb_secret_waits(&entry))
        st = ebb_engine_link_unlock(&link, err);
    ebb_engine_link_fini(&link);
    ebb_engine_entry_fini(&entry);
    return st;
}

/* What cannot be had must not close the open engine: a slip, or what this process may not, or has no key for. */
static ebb_status check_engine(const ebb_chat *c, const char *name, const char *model, ebb_error *err)
{
    ebb_status st = c->turn.answer || c->follow.session ? ebb_chat_check_idle(c, err) : EBB_OK;

    if (st == EBB_OK && strcmp(name, EBB_ENGINE_HERE) != 0)
        st = check_link(name, err);
    else if (st == EBB_OK && (model || (model = c->remote.here_model)))
        st = ebb_chat_check_model(c, model, err);
    return st;
}

/* Remember the open local model, for the way back from a server.  Its file may be gone by now: who wants to go back is
 * told. */
static ebb_status remember_here(ebb_chat *c, ebb_error *err)
{
    char *path;

    if (c->remote.name || !c->info)
        return EBB_OK;
    path = strdup(c->info->path ? c->info->path : EBB_MODELS_GUIDE);
    if (!path)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the model's path");
    free(c->remote.here_model);
    c->remote.here_model = path;
    c->remote.here_is_chosen = c->opening.is_chosen;
    return EBB_OK;
}

ebb_status ebb_chat_set_engine(ebb_chat *c, const char *name, const char *model, ebb_error *err)
{
    bool is_here = strcmp(name, EBB_ENGINE_HERE) == 0;
    char *engine = NULL, *engine_model = NULL;
    ebb_status st = check_engine(c, name, model, err);

    if (st == EBB_OK && is_here && !c->remote.name && !model)
        st = EBB_FAIL(err, EBB_USAGE, "the engine in this process is already answering");
    if (st == EBB_OK)
        st = remember_here(c, err);
    if (st != EBB_OK)
        return st;
    if (!is_here && (!(engine = strdup(name)) || (model && !(engine_model = strdup(model))))) {
        free(engine);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    }
    c->sharing.is_refused |= is_here;            /* who takes it here wants it for this one alone */
    ebb_quality_forget(c);
    free(c->remote.name);
    free(c->remote.model);
    c->remote.name = engine;
    c->remote.is_found = false;
    c->remote.model = engine_model;
    return ebb_chat_open_model(c, is_here ? model ? model : c->remote.here_model : NULL, err);
}

bool ebb_chat_can_reconnect(const ebb_chat *c)
{
    return c->remote.name && c->turn.state == EBB_TURN_NO_MODEL;
}

ebb_status ebb_chat_reconnect(ebb_chat *c, ebb_error *err)
{
    return ebb_chat_open_model(c, NULL, err);
}

const char *ebb_chat_engine_model(const ebb_chat *c, size_t i)
{
    const ebb_backend_facts *f = ebb_chat_facts(c);

    if (!c->remote.name || ebb_chat_is_shared(c))
        return NULL;
    return f && f->server && i < f->server->n_models ? f->server->models[i] : "";
}

ebb_status ebb_chat_check_engine_model(const ebb_chat *c, const char *name, ebb_error *err)
{
    const ebb_backend_facts *f = ebb_chat_facts(c);

    if (!f || !f->server || ebb_server_may_have(f->server, name))
        return EBB_OK;
    return EBB_FAIL(err, EBB_NOTFOUND,
                    "%.60s had no model %.60s when it was connected, but %.60s%s; /engine here %.60s loads it on this "
                    "machine, /engine %.60s %.60s asks again",
                    f->name, name, f->server->models[0], f->server->n_models > 1 ? " and others" : "", name,
                    c->remote.name, name);
}

/* -- One for several (chat_share.c) ----------------------------------------------------------------- */

void ebb_chat_share_if_idle(ebb_chat *c)
{
    ebb_error err = { 0 };
    char file[40];

    if (!c->sharing.is_wanted || c->turn.answer || c->follow.session)
        return;
    c->sharing.is_wanted = false;
    if (!ebb_chat_offers_model(c, file))
        return;
    ebb_chat_notice(c, "another ebb wants this model too: it is being loaded once for both");
    if (!c->remote.here_model && !c->info) {     /* set_engine has no path of it yet */
        c->remote.here_model = strdup(ebb_chat_opening_path(c));
        c->remote.here_is_chosen = c->opening.is_chosen;
    }
    if (ebb_chat_set_engine(c, c->sharing.address, NULL, &err) != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
}

void ebb_chat_share_model(ebb_chat *c)
{
    c->sharing.is_wanted = true;
    ebb_chat_share_if_idle(c);
}

/* -- A look at one --------------------------------------------------------------------------------- */

/* On a thread of its own: a server may let wait, and the end of a connection, too. */
struct ebb_engine_tester {
    struct ebb_engine_tester *next;              /* an older one, which is about to end */
    ebb_chat        *chat;
    pthread_t        thread;
    ebb_engine_entry entry;
    ebb_engine_link  link;
    pthread_mutex_t  lock;
    bool             is_closing;                 /* under the lock: nobody stops link.client any more */
    atomic_bool      has_run;                    /* the thread can be joined at once */
};

static void probe_and_report(struct ebb_engine_tester *t)
{
    ebb_server server = { 0 };
    ebb_buf text = { 0 };
    ebb_error err = { 0 };
    bool may_retry;
    ebb_status st = ebb_engine_link_unlock(&t->link, &err);

    if (st == EBB_OK)
        st = ebb_server_probe(&t->link, &server, &may_retry, &err);
    if (st == EBB_OK)
        ebb_server_report(&t->link, &server, &text);
    else
        ebb_buf_adds(&text, err.msg);
    if (!ebb_client_is_stopped(t->link.client))
        ebb_chat_sink(t->chat, &(ebb_backend_event){ .kind = EBB_BACKEND_REPORT, .text = ebb_buf_text(&text),
                                                     .n_text = text.len });
    ebb_server_fini(&server);
    ebb_buf_fini(&text);
}

static void *run_test(void *arg)
{
    struct ebb_engine_tester *t = arg;

    probe_and_report(t);
    pthread_mutex_lock(&t->lock);
    t->is_closing = true;
    pthread_mutex_unlock(&t->lock);
    ebb_engine_link_fini(&t->link);
    atomic_store(&t->has_run, true);
    return NULL;
}

static void stop_tests(ebb_chat *c)
{
    for (struct ebb_engine_tester *t = c->remote.testers; t; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (!t->is_closing)
            ebb_client_stop(t->link.client);
        pthread_mutex_unlock(&t->lock);
    }
}

/* What a test has beside its thread. */
static void free_tester(struct ebb_engine_tester *t)
{
    ebb_engine_link_fini(&t->link);
    ebb_engine_entry_fini(&t->entry);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Those that have ended, or all. */
static void join_tests(ebb_chat *c, bool waits)
{
    struct ebb_engine_tester **at = &c->remote.testers;

    while (*at) {
        struct ebb_engine_tester *t = *at;

        if (!waits && !atomic_load(&t->has_run)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        pthread_join(t->thread, NULL);
        free_tester(t);
    }
}

void ebb_chat_end_tests(ebb_chat *c)
{
    stop_tests(c);
    join_tests(c, true);
}

ebb_status ebb_chat_test_engine(ebb_chat *c, const char *name, ebb_error *err)
{
    struct ebb_engine_tester *t;
    ebb_status st;

    name = name ? name : c->remote.name;
    if (!name || strcmp(name, EBB_ENGINE_HERE) == 0)
        return EBB_FAIL(err, EBB_USAGE, "the engine in this process needs no test; /plan shows what it does");
    t = calloc(1, sizeof *t);
    if (!t)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a test");
    pthread_mutex_init(&t->lock, NULL);
    t->chat = c;
    st = ebb_engines_find(name, &t->entry, err);
    if (st == EBB_OK)
        st = ebb_engine_link_init(&t->link, &t->entry, err);
    if (st == EBB_OK && ebb_thread_start(&t->thread, run_test, t) != 0)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a test");
    if (st != EBB_OK) {
        free_tester(t);
        return st;
    }
    stop_tests(c);                               /* it takes their place; nobody waits for their end */
    join_tests(c, false);
    t->next = c->remote.testers;
    c->remote.testers = t;
    c->awaits_plan = true;                       /* a report is to come */
    return EBB_OK;
}
