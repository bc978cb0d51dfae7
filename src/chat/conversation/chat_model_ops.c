/* The parts of a real chat: the engine of this process and the model's template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conversation/chat_priv.h"
#include "ebb/experimental/inspect.h"
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
    ebb_machine machine;
    ebb_stats now;
    ebb_status st = ebb_machine_probe(ebb_model_get_info(m)->path, false, &machine, err);

    (void)arg;
    b->ops->stats((ebb_backend *)b, &now);
    machine.available_bytes += now.rss_anon_bytes;
    return st == EBB_OK ? ebb_plan_make(m, opts, &machine, out, err) : st;
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

/* -- Other words for an answer ---------------------------------------------------------- */

#define PRIMING 4                /* ids before an answer that may end in half a character */

/* Where in the answer's text its ids end: ends[i] is the text of the first i. */
static void find_token_ends(ebb_detok *d, const ebb_retokenization *r, size_t *ends)
{
    size_t n;

    ebb_detok_flush(d, &n);
    for (size_t i = r->n_before > PRIMING ? r->n_before - PRIMING : 0; i < r->n_before; i++)
        ebb_detok_push(d, r->before[i], &n);
    ends[0] = 0;
    for (size_t i = 0; i < r->n_old; i++) {
        const char *s = ebb_detok_push(d, r->old[i], &n);
        size_t at = ends[i];

        /* Behind the first difference nothing counts. */
        ends[i + 1] = at <= r->n_text && n <= r->n_text - at && memcmp(s, r->text + at, n) == 0 ? at + n : SIZE_MAX;
    }
}

/* Do these ids spell r->text[0..n)? */
static bool ids_spell_text(ebb_detok *d, const ebb_retokenization *r, const int32_t *ids, size_t n_ids, size_t n)
{
    size_t at = 0, len;
    const char *s;
    bool same = true;

    ebb_detok_flush(d, &len);
    for (size_t i = r->n_before > PRIMING ? r->n_before - PRIMING : 0; i < r->n_before; i++)
        ebb_detok_push(d, r->before[i], &len);
    for (size_t i = 0; same && i <= n_ids; i++, at += len) {
        s = i < n_ids ? ebb_detok_push(d, ids[i], &len) : ebb_detok_flush(d, &len);
        same = len <= n - at && memcmp(s, r->text + at, len) == 0;
    }
    return same && at == n;
}

/* The first k old ids and new ids of the rest of the text; false: they spell another text. */
static bool retokenize_from(const ebb_model *m, ebb_detok *d, ebb_retokenization *r, size_t k, size_t at)
{
    const ebb_text_range all = { 0, r->n_text - at };
    const ebb_tokenize_opts typed = { .quoted = &all, .n_quoted = 1 };
    size_t n = 0, capacity = r->n_old + r->n_text + 8;

    memcpy(r->ids, r->old, k * sizeof *r->ids);
    if (at < r->n_text && ebb_model_tokenize_with(m, r->text + at, r->n_text - at, &typed, r->ids + k, capacity - k, &n,
                                                  NULL) != EBB_OK)
        return false;
    r->n_kept = k;
    r->n_ids = k + n;
    return r->n_ids <= capacity && ids_spell_text(d, r, r->ids, r->n_ids, r->n_text);
}

/* Few tries: a character in pieces has no more than four. */
static ebb_status retokenize_text(const ebb_model *m, ebb_detok *d, ebb_retokenization *r, size_t *ends, ebb_error *err)
{
    size_t k = 0, last;

    find_token_ends(d, r, ends);
    while (k < r->n_old && ends[k + 1] != SIZE_MAX)
        k++;
    last = k;
    for (size_t i = 0; i <= PRIMING && i <= last; i++)
        if (retokenize_from(m, d, r, last - i, ends[last - i]))
            return EBB_OK;
    for (; k > 0; k--)                           /* no ids for the rest: up to the last token that fits */
        if (ids_spell_text(d, r, r->old, k, ends[k])) {
            memcpy(r->ids, r->old, k * sizeof *r->ids);
            r->n_ids = r->n_kept = k;
            r->n_text = ends[k];
            return EBB_OK;
        }
    return retokenize_from(m, d, r, 0, 0) || r->n_ids > 0 ? EBB_OK
                                                       : EBB_FAIL(err, EBB_USAGE,
                                                                  "the model has no tokens for these words");
}

static ebb_status retokenize(void *arg, const ebb_backend *b, ebb_retokenization *r, ebb_error *err)
{
    const ebb_model *m = b->ops->model(b);
    ebb_detok *d = ebb_detok_new(m, false);
    size_t *ends = calloc(r->n_old + 1, sizeof *ends);
    ebb_status st;

    (void)arg;
    r->ids = malloc((r->n_old + r->n_text + 8) * sizeof *r->ids);
    if (d && ends && r->ids)
        st = retokenize_text(m, d, r, ends, err);
    else
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to cut the answer");
    ebb_detok_free(d);
    free(ends);
    return st;
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
