/* Opening and closing a chat, and what it knows (chat.h). */
#include "conversation/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/models.h"
#include "turn/overflow.h"

static char *copy_or_null(const char *s, bool *ok)
{
    char *copy = s ? strdup(s) : NULL;

    *ok &= !s || copy;
    return copy;
}

/* -- The model --------------------------------------------------------------------------- */

void ebb_chat_close_model(ebb_chat *c)
{
    if (c->backend)
        c->backend->ops->close(c->backend);
    c->backend = NULL;
    if (c->answer)
        ebb_chat_handle_backend_events(c);       /* what it wrote until now is kept */
    ebb_chat_drop_backend_events(c);
    if (c->prompter)
        c->ops.unready(c->ops.arg, c->prompter);
    c->prompter = NULL;
    c->info = NULL;
    ebb_model_advice_fini(&c->advice);
    c->awaits_budget = c->awaits_plan = false;
}

ebb_status ebb_chat_open_model(ebb_chat *c, const char *path, ebb_error *err)
{
    const ebb_backend_models models = { .path = c->engine ? c->engine_model : path, .draft = c->draft_path,
                                        .draft_is_optional = c->draft_is_optional, .engine = c->engine };
    ebb_status st;

    ebb_chat_close_model(c);
    c->state = EBB_CHAT_LOADING;
    c->is_chosen = !c->engine && path && strcmp(path, "auto") != 0 && strcmp(path, EBB_MODELS_GUIDE) != 0;
    st = c->ops.open(c->ops.arg, &models, &c->engine_opts, ebb_chat_sink, c, &c->backend, err);
    if (st != EBB_OK)
        c->state = EBB_CHAT_FAILED;
    return st;
}

/* -- The session ---------------------------------------------------------------------------- */

static void open_store(ebb_chat *c)
{
    ebb_error err;

    if (ebb_store_open(c->store_path, &c->store, &err) != EBB_OK) {
        ebb_chat_notice(c, "%s; this chat is kept in memory only (/save ./NAME.json writes a file)", err.msg);
        ebb_chat_set_unsaved(c, &err);
    } else if (ebb_store_is_readonly(c->store)) {
        ebb_chat_notice(c, "%s is read-only; this chat is kept in memory only (/save ./NAME.json writes a file)",
                        ebb_store_path(c->store));
        EBB_FAIL(&err, EBB_IO, "%s is read-only", ebb_store_path(c->store));
        ebb_chat_set_unsaved(c, &err);
    }
}

ebb_status ebb_chat_reload_session(ebb_chat *c, int64_t session, ebb_error *err)
{
    ebb_session_facts facts = { 0 };
    ebb_tree tree = { 0 };
    ebb_status st = ebb_store_load(c->store, session, &facts, &tree, err);

    if (st != EBB_OK)
        return st;
    ebb_overflow_reset(c);
    c->n_given_up = 0;
    c->is_path_changed = true;
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    c->facts = facts;
    c->tree = tree;
    ebb_chat_settings_load(c, facts.settings);
    return EBB_OK;
}

void ebb_chat_report_interrupted(ebb_chat *c)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);

    if (leaf && leaf->m.role == EBB_ROLE_ASSISTANT && leaf->m.finish == EBB_FINISH_NONE)
        ebb_chat_notice(c, "the last answer was cut off; /continue goes on with it");
}

ebb_status ebb_chat_enter_session(ebb_chat *c, int64_t session, ebb_error *err)
{
    ebb_status st = ebb_chat_check_switch(c, err);
    bool follows = st == EBB_OK && ebb_chat_follow(c, session);

    if (st == EBB_OK)
        st = ebb_chat_reload_session(c, session, err);
    if (st != EBB_OK) {
        c->follow.session = 0;
        return st;
    }
    c->generation++;
    if (follows) {
        ebb_chat_notice(c, "process %ld is at this answer still: it is shown as it is written, and Ctrl-C stops it",
                        ebb_chat_writer_pid(c));
    } else {
        ebb_chat_report_interrupted(c);
        ebb_chat_report_away(c);
    }
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* -s: the session of that name, else a new one that will have it. */
static ebb_status enter_named(ebb_chat *c, const char *name, ebb_error *err)
{
    int64_t id;
    ebb_status st = c->store ? ebb_store_find(c->store, name, &id, err) : EBB_NOTFOUND;

    if (st == EBB_OK)
        return ebb_chat_enter_session(c, id, err);
    if (st != EBB_NOTFOUND)
        return st;
    if (strlen(name) >= sizeof c->facts.name)
        return EBB_FAIL(err, EBB_USAGE, "a session's name has at most %zu bytes", sizeof c->facts.name - 1);
    strcpy(c->facts.name, name);
    return EBB_OK;
}

static ebb_status enter_last(ebb_chat *c, ebb_error *err)
{
    int64_t id;
    ebb_status st = c->store ? ebb_store_last(c->store, &id, err) : EBB_NOTFOUND;

    if (st == EBB_NOTFOUND) {
        ebb_chat_notice(c, "there is no session to continue; this is a new one");
        return EBB_OK;
    }
    return st == EBB_OK ? ebb_chat_enter_session(c, id, err) : st;
}

/* A session that cannot be read is no reason not to talk. */
static void open_session(ebb_chat *c, const ebb_chat_opts *o)
{
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;

    open_store(c);
    if (o->session_name)
        st = enter_named(c, o->session_name, &err);
    else if (o->continue_last)
        st = enter_last(c, &err);
    if (st != EBB_OK)
        ebb_chat_notice(c, "%s; this is a new session", err.msg);
    if (o->system && ebb_chat_replace_system(c, o->system, &err) != EBB_OK)
        ebb_chat_notice(c, "%s", err.msg);
}

/* -- Opening and closing ------------------------------------------------------------------------ */

static ebb_status chat_init(ebb_chat *c, const ebb_chat_opts *o, const ebb_chat_ops *ops, ebb_error *err)
{
    bool ok = true;

    pthread_mutex_init(&c->lock, NULL);
    c->epoll = c->wake = c->timer = c->writer_lock = -1;
    c->ops = *ops;
    c->base = (ebb_chat_settings){ .sampling = o->sampling, .n_predict = o->n_predict };
    c->sampling_given = o->sampling_given;
    c->sampling_config = o->sampling_config;
    c->base.overflow = o->overflow;
    c->overflow_given = o->overflow_given;
    c->is_unattended = o->is_unattended;
    c->settings = c->base;
    c->engine_opts = o->engine;
    c->engine_opts.kv_cache_dir = copy_or_null(o->engine.kv_cache_dir, &ok);
    c->draft_path = copy_or_null(o->draft_path, &ok);
    c->engine = copy_or_null(o->engine_name, &ok);
    c->engine_model = o->engine_name ? copy_or_null(o->model_path, &ok) : NULL;
    c->store_path = copy_or_null(o->store_path, &ok);
    c->system = copy_or_null(o->system, &ok);
    if (!ok)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a chat");
    return ebb_chat_events_init(c, err);
}

/* Where another process still writes in this session, the memory is its own until it has ended. */
static ebb_status open_first_model(ebb_chat *c, const char *path, ebb_error *err)
{
    bool ok = true;

    if (!c->follow.session)
        return ebb_chat_open_model(c, path, err);
    c->wanted_model = copy_or_null(path, &ok);
    c->is_load_deferred = true;
    return ok ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a chat");
}

ebb_status ebb_chat_open_with(const ebb_chat_opts *opts, const ebb_chat_ops *ops, ebb_chat **out, ebb_error *err)
{
    ebb_chat *c = calloc(1, sizeof *c);
    ebb_status st;

    *out = NULL;
    if (!c)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a chat");
    st = chat_init(c, opts, ops, err);
    if (st == EBB_OK)
        open_session(c, opts);
    if (st == EBB_OK)
        st = open_first_model(c, opts->model_path, err);
    if (st != EBB_OK) {
        ebb_chat_close(c);
        return st;
    }
    *out = c;
    return EBB_OK;
}

void ebb_chat_end(ebb_chat *c)
{
    ebb_chat_end_test(c);
    ebb_chat_close_model(c);
    if (c->is_unsaved)                           /* the disk may have room by now */
        ebb_chat_save(c, false);
}

void ebb_chat_close(ebb_chat *c)
{
    if (!c)
        return;
    ebb_chat_end(c);
    ebb_chat_unlock_writer(c);
    ebb_buf_fini(&c->writer_lock_path);
    ebb_store_close(c->store);
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    ebb_chat_free_deleted(c);
    ebb_chat_events_fini(c);
    pthread_mutex_destroy(&c->lock);
    free((char *)c->engine_opts.kv_cache_dir);
    free(c->draft_path);
    free(c->engine);
    free(c->engine_model);
    free(c->here_model);
    free(c->store_path);
    free(c->wanted_model);
    free(c->system);
    free((int32_t *)c->overflow.gap.ids);
    free(c->overflow.path);
    free(c);
}
