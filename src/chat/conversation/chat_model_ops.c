/* The parts of a real chat: the engine of this process and the model's template. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conversation/chat_priv.h"
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/kv_cache.h"
#include "models/models.h"

static ebb_status open_local_backend(void *arg, const ebb_backend_models *models, const ebb_engine_opts *opts,
                                     ebb_backend_sink *sink,
                             void *sink_arg, ebb_backend **out, ebb_error *err)
{
    ebb_backend_models of = *models;
    ebb_error ignored;

    (void)arg;
    if (models->engine)
        return ebb_backend_remote(models, opts->n_ctx == EBB_CTX_MAX ? 0 : opts->n_ctx, sink, sink_arg, out, err);
    if (of.path && strcmp(of.path, EBB_MODELS_AUTO) == 0) {
        if (ebb_models_remember(NULL, &ignored) != EBB_OK)
            ebb_log("models", "%s", ignored.msg);        /* without a folder for K and V nothing was persisted */
        of.path = NULL;
    }
    return ebb_backend_local(&of, opts, sink, sink_arg, out, err);
}

static ebb_status check_model_file(void *arg, const char *path, const ebb_engine_opts *opts, ebb_error *err)
{
    (void)arg;
    return ebb_models_check(path, opts, err);
}

static ebb_status model_ready(void *arg, ebb_backend *b, const char *template_name, const ebb_model_info **info,
                              ebb_prompter **p, char notice[256], ebb_error *err)
{
    const ebb_backend_facts *facts = b->ops->facts ? b->ops->facts(b) : NULL;
    const ebb_model *m = b->ops->model(b);
    ebb_status st;

    (void)arg;
    *info = NULL;
    if (facts) {                                 /* the template is the server's */
        *info = &facts->info;
        snprintf(notice, 256, "%s", facts->notice);
        return EBB_OK;
    }
    st = ebb_prompter_new_named(m, template_name, p, err);
    if (st != EBB_OK)
        return st;
    *info = ebb_model_get_info(m);
    if (strcmp(ebb_prompter_origin(*p), "the file's own template") != 0)
        snprintf(notice, 256, "chat template: %s", ebb_prompter_origin(*p));
    return EBB_OK;
}

static void model_unready(void *arg, ebb_prompter *p)
{
    (void)arg;
    ebb_prompter_free(p);
}

static bool model_number(void *arg, const ebb_backend *b, const char *key, double *out)
{
    (void)arg;
    return b->ops->model(b) && ebb_model_meta_number(b->ops->model(b), key, out);
}

static const char *model_string(void *arg, const ebb_backend *b, const char *key)
{
    (void)arg;
    return b->ops->model(b) ? ebb_model_meta_string(b->ops->model(b), key) : NULL;
}

static const char *model_key(void *arg, const ebb_backend *b, size_t i)
{
    const ebb_model *m = b->ops->model(b);

    (void)arg;
    return m && i < ebb_model_n_meta(m) ? ebb_model_meta(m, i, NULL, 0) : NULL;
}

/* The plan of an engine that replaces the open one, whose memory counts as free. */
static ebb_status model_plan(void *arg, const ebb_backend *b, const ebb_engine_opts *opts, ebb_plan *out,
                             ebb_error *err)
{
    const ebb_model *m = b->ops->model(b);
    const ebb_engine_opts o = ebb_kv_cache_opts_for_plan(opts);
    ebb_machine machine;
    ebb_stats now;
    ebb_status st = ebb_machine_probe(ebb_model_get_info(m)->path, false, &machine, err);

    (void)arg;
    b->ops->stats((ebb_backend *)b, &now);
    machine.available_bytes += now.rss_anon_bytes;
    return st == EBB_OK ? ebb_plan_make(m, &o, &machine, out, err) : st;
}

static ebb_status model_better(void *arg, const ebb_backend *b, const char *name, const ebb_engine_opts *opts,
                               uint32_t n_tokens, ebb_better_model *out, ebb_error *err)
{
    const ebb_model *m = b->ops->model(b);
    ebb_engine_opts o = opts ? *opts : (ebb_engine_opts){ 0 };
    ebb_stats now;

    (void)arg;
    b->ops->stats((ebb_backend *)b, &now);
    o.draft = o.no_speculation ? NULL : m;
    return ebb_models_find_better(name, m, opts ? &o : NULL, now.rss_anon_bytes, n_tokens, out, err);
}

static ebb_status model_prompt(void *arg, const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                         const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err)
{
    (void)arg;
    return ebb_prompt_delta(p, messages, n, opts, out, err);
}

static ebb_status retokenize(void *arg, const ebb_backend *b, ebb_retokenization *r, ebb_error *err)
{
    (void)arg;
    return ebb_retokenize(b->ops->model(b), r, err);
}

ebb_status ebb_chat_open(const ebb_chat_opts *opts, ebb_chat **out, ebb_error *err)
{
    const ebb_chat_ops ops = {
        .default_sampling = ebb_sampler_params_default(),
        .open = open_local_backend,
        .check = check_model_file,
        .ready = model_ready,
        .unready = model_unready,
        .number = model_number,
        .string = model_string,
        .key = model_key,
        .prompt = model_prompt,
        .plan = model_plan,
        .better = model_better, .retokenize = retokenize,
    };

    return ebb_chat_open_with(opts, &ops, out, err);
}
