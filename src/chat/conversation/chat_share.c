/* The model of this process, handed over to a server for several when another process wants it, too (chat.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conversation/chat_priv.h"

/* What is smaller each process loads for itself: sharing costs counts of tokens and speculative prefill. */
#define LEAST_BYTES (256 << 20)

bool ebb_chat_sharing_init(ebb_chat *c, const ebb_chat_opts *o)
{
    const char *path = o->shared_address ? o->shared_address + strlen(EBB_SHARED_PREFIX) : NULL;

    c->remote.is_found = o->engine_name && o->here_model;
    c->remote.here_is_chosen = o->here_is_chosen;
    if (o->here_model && !(c->remote.here_model = strdup(o->here_model)))
        return false;
    if (!path || !ebb_models_file_id(path, c->sharing.file))
        return true;
    c->sharing.address = strdup(o->shared_address);
    return c->sharing.address != NULL;
}

void ebb_chat_sharing_fini(ebb_chat *c)
{
    free(c->sharing.address);
}

static bool has_own_template(const ebb_chat *c)
{
    return strcmp(ebb_chat_template(c), "auto") != 0;
}

/* The engine that is left for its model here, where nobody named that one either. */
static void leave_engine(ebb_chat *c)
{
    c->opening.is_unnamed = !c->remote.here_is_chosen;
    free(c->remote.name);
    c->remote.name = NULL;
    c->remote.is_found = false;
}

bool ebb_chat_leave_found_engine(ebb_chat *c)
{
    ebb_error err = { 0 };

    if (!ebb_chat_engine_is_found(c) || !c->remote.here_model || !has_own_template(c))
        return false;
    if (ebb_chat_check_model(c, c->remote.here_model, &err) != EBB_OK) {
        ebb_chat_notice(c, "the server goes on with its own chat template, without the chosen '%.100s', as its model "
                           "cannot be opened here: %s", ebb_chat_template(c), err.msg);
        return false;
    }
    ebb_chat_notice(c, "the chosen chat template is '%.100s', and a server has its own: the model is opened here",
                    ebb_chat_template(c));
    leave_engine(c);
    return true;
}

ebb_status ebb_chat_fit_engine(ebb_chat *c, ebb_error *err)
{
    if (c->follow.session || !ebb_chat_leave_found_engine(c))
        return EBB_OK;
    return ebb_chat_open_model(c, c->remote.here_model, err);
}

bool ebb_chat_engine_is_usual(const ebb_engine_opts *e)
{
    static const ebb_engine_opts usual;

    return e->n_ctx == usual.n_ctx && e->ram_bytes == usual.ram_bytes && e->mode == usual.mode && !e->has_resident &&
           !e->has_kv && e->n_threads == usual.n_threads && e->cpu == usual.cpu && e->io == usual.io &&
           e->placement == usual.placement && e->n_batch == usual.n_batch && e->n_draft == usual.n_draft &&
           !e->is_forced && !e->no_speculation && !e->no_kv_cache;
}

bool ebb_chat_is_worth_sharing(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size >= LEAST_BYTES;
}

const char *ebb_chat_opening_path(const ebb_chat *c)
{
    if (c->opening.asked)
        return c->opening.asked;
    return c->sharing.address ? c->sharing.address + strlen(EBB_SHARED_PREFIX) : NULL;
}

const char *ebb_chat_offers_model(const ebb_chat *c, char file[40])
{
    const char *path = c->info ? c->info->path : ebb_chat_opening_path(c);
    bool is_offered = c->sharing.address && !c->sharing.is_refused && c->backend && !c->remote.name && !c->is_away &&
                      !has_own_template(c) && !c->quality.is_open && !c->opening.draft_path &&
                      ebb_chat_engine_is_usual(&c->opening.opts) && path && ebb_chat_is_worth_sharing(path) &&
                      ebb_models_file_id(path, file) && strcmp(file, c->sharing.file) == 0;

    return is_offered ? path : NULL;
}

bool ebb_chat_share_failed(ebb_chat *c, const char *why)
{
    ebb_error err = { 0 };

    if (!ebb_chat_is_shared(c) || !c->remote.here_model)
        return false;
    ebb_chat_notice(c, "%s; the model is opened here", why);
    c->sharing.is_refused = true;
    leave_engine(c);
    return ebb_chat_open_backend(c, c->remote.here_model, &err) == EBB_OK;
}
