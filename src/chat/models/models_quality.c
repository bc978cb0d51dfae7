/* A better file of the same network (models.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ebb/experimental/kv_cache.h"
#include "models/models.h"

#define MOST_BITS 17.0           /* for each weight: beyond f16 nothing is gained */

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The same network, vocabulary and template: then ids of the one are ids of the other. */
static bool is_same_network(const ebb_model *a, const ebb_model *b)
{
    const ebb_machine boundless = { .available_bytes = UINT64_MAX / 4, .n_cpus = 1 };
    const ebb_engine_opts opts = { .n_ctx = 512, .draft = a };           /* which compares the vocabularies */
    const ebb_model_info *x = ebb_model_get_info(a), *y = ebb_model_get_info(b);
    ebb_plan p;

    return strcmp(x->arch, y->arch) == 0 && x->n_layers == y->n_layers && x->n_embd == y->n_embd &&
           x->n_ff == y->n_ff &&
           x->n_head == y->n_head && x->n_head_kv == y->n_head_kv && x->n_vocab == y->n_vocab &&
           x->n_params == y->n_params && is_same_text(ebb_model_template(a, NULL), ebb_model_template(b, NULL)) &&
           ebb_plan_make(b, &opts, &boundless, &p, NULL) == EBB_OK;
}

static double bits_of(const ebb_model *m)
{
    const ebb_model_info *info = ebb_model_get_info(m);

    return info->n_params ? 8.0 * (double)info->weight_bytes / (double)info->n_params : 0;
}

/* Open a better file of the same network, for the caller to close; NULL: another network, or no
 * better. */
static ebb_model *open_better(const char *path, const ebb_model *everyday)
{
    ebb_model *m;

    if (strcmp(path, ebb_model_get_info(everyday)->path) == 0 || ebb_model_open(path, &m, NULL) != EBB_OK)
        return NULL;
    if (bits_of(m) > bits_of(everyday) * 1.2 && bits_of(m) < MOST_BITS && is_same_network(everyday, m))
        return m;
    ebb_model_close(m);
    return NULL;
}

static int largest_first(const void *a, const void *b)
{
    const ebb_model_file *x = a, *y = b;

    return x->n_bytes != y->n_bytes ? (x->n_bytes < y->n_bytes ? 1 : -1) : strcmp(x->path, y->path);
}

/* With this one's figures, measured where they are not known. */
static ebb_status plan_better(const ebb_model *m, const ebb_engine_opts *opts, uint64_t freed_bytes, uint32_t n_tokens,
                              ebb_better_model *out, ebb_error *err)
{
    const ebb_engine_opts o = ebb_kv_cache_opts_for_plan(opts);
    ebb_machine machine;
    ebb_status st = ebb_machine_probe(ebb_model_get_info(m)->path, false, &machine, err);

    if (st == EBB_OK)
        st = ebb_machine_measure(&machine, m, &o, true, err);
    machine.available_bytes += freed_bytes;
    if (st == EBB_OK)
        st = ebb_plan_make(m, &o, &machine, &out->plan, err);
    if (st == EBB_OK)
        out->first_token_s = out->plan.predicted_load_s +
                             ebb_plan_first_prompt_s(m, &o, &machine, &out->plan, n_tokens);
    return st;
}

static ebb_status take_better(const ebb_model *m, const ebb_engine_opts *opts, uint64_t freed_bytes,
                              uint32_t n_tokens, ebb_better_model *out, ebb_error *err)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    ebb_status st = opts ? plan_better(m, opts, freed_bytes, n_tokens, out, err) : EBB_OK;

    if (st == EBB_OK && opts && !out->plan.fits)
        st = EBB_FAIL(err, EBB_BUDGET, "the better file does not fit: %s", out->plan.why);
    out->path = st == EBB_OK ? strdup(info->path) : NULL;
    if (st == EBB_OK && !out->path)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    snprintf(out->quantization, sizeof out->quantization, "%.15s", info->quantization);
    memcpy(out->fingerprint, info->fingerprint, sizeof out->fingerprint);
    out->n_bytes = info->weight_bytes;
    return st;
}

static ebb_status find_named(const char *name, const ebb_model *everyday, const ebb_engine_opts *opts,
                             uint64_t freed_bytes, uint32_t n_tokens, ebb_better_model *out, ebb_error *err)
{
    char *path = NULL;
    ebb_model *m = NULL;
    ebb_status st = ebb_models_resolve(name, &path, err);

    if (st == EBB_OK)
        m = open_better(path, everyday);
    if (st == EBB_OK && !m)
        st = EBB_FAIL(err, EBB_USAGE, "%.100s is not a better file of this model (%s %s): layers, vocabulary "
                                      "and template must be the same",
                      name, ebb_model_get_info(everyday)->arch, ebb_model_get_info(everyday)->quantization);
    if (st == EBB_OK)
        st = take_better(m, opts, freed_bytes, n_tokens, out, err);
    ebb_model_close(m);
    free(path);
    return st;
}

ebb_status ebb_models_find_better(const char *name, const ebb_model *everyday, const ebb_engine_opts *opts,
                                  uint64_t freed_bytes, uint32_t n_tokens, ebb_better_model *out, ebb_error *err)
{
    ebb_model_file *files;
    size_t n;
    bool is_found = false;
    ebb_status st;

    memset(out, 0, sizeof *out);
    if (name)
        return find_named(name, everyday, opts, freed_bytes, n_tokens, out, err);
    st = ebb_models_find_chat(&files, &n, err);
    if (st != EBB_OK)
        return st;
    if (n)
        qsort(files, n, sizeof *files, largest_first);
    for (size_t i = 0; i < n && !is_found; i++) {
        ebb_model *m = open_better(files[i].path, everyday);

        if (!m)
            continue;
        /* too large for the memory: the next smaller one */
        st = take_better(m, opts, freed_bytes, n_tokens, out, err);
        is_found = st == EBB_OK;
        ebb_model_close(m);
    }
    ebb_models_free(files, n);
    if (!is_found && st == EBB_OK)
        st = EBB_FAIL(err, EBB_NOTFOUND, "no better file of %.80s was found here (F16 or Q8_0, say): get one with "
                                         "`ebb pull`, or name one with --quality FILE",
                      ebb_model_get_info(everyday)->name);
    return st;
}
