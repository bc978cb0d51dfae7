/* Opening and closing a chat (chat.h). */
#include "conversation/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conversation/chat_priv.h"

static ebb_status chat_init(ebb_chat *c, const ebb_chat_opts *o, const ebb_chat_ops *ops, ebb_error *err)
{
    bool ok = true;

    pthread_mutex_init(&c->queues.lock, NULL);
    c->queues.epoll = c->queues.wake = c->queues.timer = c->writer_lock.fd = c->name_lock.fd = -1;
    c->ops = *ops;
    c->stop = o->stop;
    c->stop_arg = o->stop_arg;
    c->defaults.settings = (ebb_chat_settings){ .sampling = o->sampling, .n_predict = o->n_predict };
    c->defaults.sampling_given = o->sampling_given;
    c->defaults.sampling_config = o->sampling_config;
    c->defaults.settings.overflow = o->overflow;
    c->defaults.overflow_given = o->overflow_given;
    c->overflow.is_unattended = o->is_unattended;
    c->turn.grammar = ebb_text_copy_or_null(o->grammar, &ok);
    if (o->grammar)                              /* a grammar does not allow for a thought */
        c->defaults.settings.thinking = EBB_THINKING_OFF;
    c->settings = c->defaults.settings;
    c->opening.opts = o->engine;
    c->opening.opts.kv_cache_dir = ebb_text_copy_or_null(o->engine.kv_cache_dir, &ok);
    c->opening.draft_path = ebb_text_copy_or_null(o->draft_path, &ok);
    c->quality.named = ebb_text_copy_or_null(o->quality_path, &ok);
    c->remote.name = ebb_text_copy_or_null(o->engine_name, &ok);
    c->remote.model = o->engine_name ? ebb_text_copy_or_null(o->model_path, &ok) : NULL;
    c->saving.path = ebb_text_copy_or_null(o->store_path, &ok);
    c->system = ebb_text_copy_or_null(o->system, &ok);
    c->system_given = o->system && o->system_given;
    c->template_name = ebb_text_copy_or_null(o->template_name, &ok);
    c->template_given = o->template_given;
    if (!ok || !ebb_chat_sharing_init(c, o))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a chat");
    return ebb_chat_events_init(c, err);
}

/* While another process still answers in this session, opening the model waits: that process needs
 * the memory. */
static ebb_status open_first_model(ebb_chat *c, const char *path, ebb_error *err)
{
    bool ok = true;

    if (ebb_chat_leave_found_engine(c))
        path = c->remote.here_model;
    if (!c->follow.session)
        return ebb_chat_open_model(c, path, err);
    c->opening.wanted = ebb_text_copy_or_null(path, &ok);
    c->opening.is_deferred = true;
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
        st = ebb_chat_open_session(c, opts, err);
    if (st == EBB_OK)
        st = open_first_model(c, opts->model_path, err);
    if (st == EBB_OK && opts->first_notice && (c->remote.name || !opts->engine_name))
        ebb_chat_notice(c, "%s", opts->first_notice);
    if (st != EBB_OK) {
        ebb_chat_close(c);
        return st;
    }
    *out = c;
    return EBB_OK;
}

void ebb_chat_end(ebb_chat *c)
{
    ebb_chat_end_tests(c);
    ebb_chat_job_drop(c);
    ebb_quality_forget(c);                       /* the everyday file is not opened again */
    if (c->turn.answer) {                        /* the answer so far is saved */
        c->backend->ops->close(c->backend);
        c->backend = NULL;
        ebb_chat_handle_backend_events(c);
    }
    ebb_chat_close_backend(c);
    if (c->saving.is_unsaved)                           /* the disk may have space by now */
        ebb_chat_save(c, false);
}

void ebb_chat_close(ebb_chat *c)
{
    if (!c)
        return;
    ebb_chat_end(c);
    ebb_chat_unlock_name(c);
    ebb_chat_unlock_writer(c);
    ebb_buf_fini(&c->name_lock.path);
    ebb_buf_fini(&c->writer_lock.path);
    ebb_store_close(c->store);
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    ebb_chat_free_deleted(c);
    ebb_chat_events_fini(c);
    pthread_mutex_destroy(&c->queues.lock);
    free((char *)c->opening.opts.kv_cache_dir);
    free(c->opening.draft_path);
    ebb_quality_fini(&c->quality);
    free(c->remote.name);
    free(c->remote.model);
    free(c->remote.here_model);
    ebb_chat_sharing_fini(c);
    free(c->saving.path);
    free(c->opening.wanted);
    free(c->opening.asked);
    free(c->system);
    free(c->template_name);
    free(c->turn.grammar);
    ebb_form_choice_fini(&c->settings.form);
    free((int32_t *)c->overflow.gap.ids);
    free(c->overflow.path);
    free(c);
}
