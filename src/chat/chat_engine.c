/* The parts of a real chat: the engine of this process and the model's template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat_priv.h"
#include "models.h"

static ebb_status open_local(void *arg, const char *path, const ebb_engine_opts *opts, ebb_backend_sink *sink,
                             void *sink_arg, ebb_backend **out, ebb_error *err)
{
    char *chosen = NULL;
    ebb_status st = EBB_OK;

    (void)arg;
    if (!path)
        st = ebb_models_choose(&chosen, err);
    if (st == EBB_OK)
        st = ebb_backend_local(path ? path : chosen, opts, sink, sink_arg, out, err);
    free(chosen);
    return st;
}

static ebb_status ready(void *arg, ebb_backend *b, const ebb_model_info **info, ebb_prompter **p, char notice[256],
                        ebb_error *err)
{
    const ebb_model *m = b->ops->model(b);
    ebb_status st = ebb_prompter_new(m, p, err);

    (void)arg;
    *info = NULL;
    if (st != EBB_OK)
        return st;
    *info = ebb_model_get_info(m);
    if (strcmp(ebb_prompter_origin(*p), "the file's own template") != 0)
        snprintf(notice, 256, "chat template: %s", ebb_prompter_origin(*p));
    return EBB_OK;
}

static void unready(void *arg, ebb_prompter *p)
{
    (void)arg;
    ebb_prompter_free(p);
}

static bool number(void *arg, const ebb_backend *b, const char *key, double *out)
{
    (void)arg;
    return ebb_model_meta_number(b->ops->model(b), key, out);
}

static ebb_status prompt(void *arg, const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                         const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err)
{
    (void)arg;
    return ebb_prompt_delta(p, messages, n, opts, out, err);
}

ebb_status ebb_chat_open(const ebb_chat_opts *opts, ebb_chat **out, ebb_error *err)
{
    const ebb_chat_parts parts = {
        .default_sampling = ebb_sampling_default(),
        .open = open_local,
        .ready = ready,
        .unready = unready,
        .number = number,
        .prompt = prompt,
    };

    return ebb_chat_open_with(opts, &parts, out, err);
}
