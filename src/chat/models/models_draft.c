/* Which model can be a draft model for another one (models.h). */
#include <stdlib.h>
#include <string.h>

#include "models/models.h"

/* Has it the same vocabulary, and layers whose tokens can be undone? */
static ebb_status check_draft_pair(const ebb_model *host, const ebb_model *draft, ebb_error *err)
{
    const ebb_machine boundless = { .available_bytes = UINT64_MAX / 4, .n_cpus = 1 };
    const ebb_engine_opts opts = { .n_ctx = 512, .draft = draft };
    ebb_plan p;

    return ebb_plan_make(host, &opts, &boundless, &p, err);
}

/* By the plan: it gets memory, and drafting is predicted to be faster. */
static bool draft_pays(const ebb_model *host, const ebb_model *draft, const ebb_engine_opts *opts,
                       const ebb_machine *machine)
{
    ebb_engine_opts o = opts ? *opts : (ebb_engine_opts){ 0 };
    ebb_plan p;

    o.draft = draft;
    return ebb_plan_make(host, &o, machine, &p, NULL) == EBB_OK && p.draft_bytes > 0 && p.draft_length > 0;
}

static int smallest_first(const void *a, const void *b)
{
    const ebb_model_file *x = a, *y = b;

    return x->n_bytes != y->n_bytes ? (x->n_bytes > y->n_bytes ? 1 : -1) : strcmp(x->path, y->path);
}

ebb_status ebb_models_best_draft(const ebb_model *host, const ebb_engine_opts *opts, const ebb_machine *machine,
                                 ebb_model **out, ebb_buf *why, ebb_error *err)
{
    const ebb_model_info *info = ebb_model_get_info(host);
    ebb_model_file *files;
    size_t n, n_like = 0;
    ebb_status st = ebb_models_find(&files, &n, err);

    *out = NULL;
    if (st != EBB_OK)
        return st;
    if (n)
        qsort(files, n, sizeof *files, smallest_first);
    for (size_t i = 0; i < n && !*out && files[i].n_bytes < info->weight_bytes; i++) {
        ebb_model *m;
        if (files[i].kind != EBB_KIND_CHAT || strcmp(files[i].path, info->path) == 0 ||
            ebb_model_open(files[i].path, &m, NULL) != EBB_OK)
            continue;
        if (check_draft_pair(host, m, NULL) == EBB_OK && ++n_like && draft_pays(host, m, opts, machine))
            *out = m;
        else
            ebb_model_close(m);
    }
    ebb_models_free(files, n);
    if (!*out && n_like)
        ebb_buf_addf(why, "no draft model: %zu here could draft for %.80s, but the plan expects no gain from %s",
                     n_like, info->name, n_like == 1 ? "it" : "any");
    else if (!*out)
        ebb_buf_addf(why, "no draft model: no smaller model here has the vocabulary of %.80s", info->name);
    return EBB_OK;
}

static ebb_status open_best(const ebb_model *host, const ebb_engine_opts *opts, ebb_model **out, ebb_buf *why,
                            ebb_error *err)
{
    ebb_machine machine;
    ebb_status st = ebb_machine_probe(ebb_model_get_info(host)->path, false, &machine, err);

    if (st == EBB_OK)
        st = ebb_machine_measure(&machine, host, opts, true, err);
    return st == EBB_OK ? ebb_models_best_draft(host, opts, &machine, out, why, err) : st;
}

static ebb_status open_named(const char *name, const ebb_model *host, bool may_go, ebb_model **out, ebb_error *err)
{
    char *path = NULL;
    ebb_status st = ebb_models_resolve(name, &path, err);

    if (st == EBB_OK && may_go && strcmp(path, ebb_model_get_info(host)->path) == 0)
        st = EBB_FAIL(err, EBB_USAGE, "%.100s is the model itself", name);
    if (st == EBB_OK)
        st = ebb_model_open(path, out, err);
    free(path);
    if (st == EBB_OK && may_go)
        st = check_draft_pair(host, *out, err);
    return st;
}

ebb_status ebb_models_open_draft(const char *name, const ebb_model *host, const ebb_engine_opts *opts, bool may_go,
                                 ebb_model **out,
                            ebb_buf *why, ebb_error *err)
{
    ebb_error no = { 0 };
    ebb_status st;

    *out = NULL;
    if (strcmp(name, EBB_MODELS_AUTO) == 0)
        return open_best(host, opts, out, why, err);
    st = open_named(name, host, may_go, out, may_go ? &no : err);
    if (st == EBB_OK || !may_go)
        return st;
    ebb_model_close(*out);
    *out = NULL;
    ebb_buf_addf(why, "no draft model: %s", no.msg);
    return EBB_OK;
}
