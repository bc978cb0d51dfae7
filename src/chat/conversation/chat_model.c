/* The backend that answers: opened, closed (chat_model.h). */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/models.h"

void ebb_chat_close_backend(ebb_chat *c)
{
    if (c->backend)
        c->backend->ops->close(c->backend);
    c->backend = NULL;
    ebb_chat_drop_backend_events(c);
    if (c->prompter)
        c->ops.unready(c->ops.arg, c->prompter);
    c->prompter = NULL;
    c->info = NULL;
    ebb_chat_reset_reference(c);
    ebb_model_advice_fini(&c->advice);
    c->awaits_budget = c->awaits_plan = false;
}

ebb_status ebb_chat_open_backend(ebb_chat *c, const char *path, ebb_error *err)
{
    char *asked = c->remote.name || !path ? NULL : strdup(path);
    const ebb_backend_models models = { .path = c->remote.name ? c->remote.model : path, .draft = c->opening.draft_path,
                                        .draft_is_optional = c->opening.draft_is_optional, .engine = c->remote.name,
                                        .engine_is_found = ebb_chat_engine_is_found(c) };

    free(c->opening.asked);
    c->opening.asked = asked;                    /* without memory: as if it were the default */
    ebb_chat_close_backend(c);
    c->opening.is_chosen = c->remote.name ? c->remote.is_found && c->remote.here_is_chosen
                                          : path && strcmp(path, "auto") != 0 && strcmp(path, EBB_MODELS_GUIDE) != 0 &&
                                            !c->opening.is_unnamed;
    c->opening.is_unnamed = false;
    return c->ops.open(c->ops.arg, &models, &c->opening.opts, ebb_chat_sink, c, &c->backend, err);
}

ebb_status ebb_chat_check_model(const ebb_chat *c, const char *name, ebb_error *err)
{
    char *found = NULL;
    ebb_status st;

    if (strcmp(name, EBB_MODELS_GUIDE) == 0 || strcmp(name, EBB_MODELS_AUTO) == 0)
        return EBB_OK;
    st = ebb_models_resolve(name, &found, err);
    if (st == EBB_OK && c->ops.check)
        st = c->ops.check(c->ops.arg, found, &c->opening.opts, err);
    free(found);
    return st;
}

static const char *path_at_hand(const ebb_chat *c)
{
    return c->info->path ? c->info->path : EBB_MODELS_GUIDE;
}

ebb_status ebb_chat_check_file_at_hand(const ebb_chat *c, ebb_error *err)
{
    const char *path = path_at_hand(c);

    if (strcmp(path, EBB_MODELS_GUIDE) == 0 || ebb_models_is_file(path))
        return EBB_OK;
    return EBB_FAIL(err, EBB_NOTFOUND, "%.150s is gone: the open model goes on as it is, but cannot be opened again "
                                       "(/model FILE loads another)", path);
}

ebb_status ebb_chat_model_path(const ebb_chat *c, char **out, ebb_error *err)
{
    ebb_status st = ebb_chat_check_file_at_hand(c, err);

    *out = st == EBB_OK ? strdup(path_at_hand(c)) : NULL;
    return st != EBB_OK || *out ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for the model's path");
}
