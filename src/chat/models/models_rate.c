/* Which model to take when none is named (models.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "ebb/experimental/kv_cache.h"
#include "models/guide.h"
#include "models/models.h"
#include "models/plan_text.h"
#include "os/file.h"
#include "os/paths.h"

#define USEFUL_TOK_S 1.5         /* slower is not usable for a chat */
#define SURE_TOK_S   3.0         /* of one that streams: the disk may be slower another day */
#define CONTEXT_POWER 0.25       /* half the context is worth 0.84 of all */
#define HALF_TOK_S   1.0         /* at this speed a model has half the score that it would have at unlimited speed */
#define FELT         0.75        /* a full context that makes a model so much slower is told */
#define CHOSEN_FILE  "model"     /* in the state folder: the path of what the user chose last */

/* -- Worth ------------------------------------------------------------------------- */

double ebb_models_quality(double bits)
{
    static const double points[][2] = { { 1.5, 0.25 }, { 2, 0.4 }, { 2.6, 0.6 }, { 3.4, 0.8 }, { 4, 0.9 },
                                        { 4.8, 0.95 }, { 5.5, 0.98 }, { 6.5, 0.99 }, { 8, 1 } };
    const size_t n = sizeof points / sizeof *points;
    size_t i = 1;

    if (bits <= points[0][0])
        return points[0][1];
    while (i < n && bits > points[i][0])
        i++;
    if (i == n)
        return 1;
    return points[i - 1][1] +
           (points[i][1] - points[i - 1][1]) * (bits - points[i - 1][0]) / (points[i][0] - points[i - 1][0]);
}

/* Of a mixture of experts a token uses a part: it is worth as much as a dense model of a size between. */
static double model_score(const ebb_model *m, const ebb_plan *p)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    double params = (double)info->n_params, n_expert = 0;
    char key[64];

    if (info->n_params == 0 || info->weight_bytes == 0)
        return 0;
    snprintf(key, sizeof key, "%.40s.expert_count", info->arch);
    if (ebb_model_meta_number(m, key, &n_expert) && n_expert > 1)
        params *= sqrt((double)p->pass_bytes / (double)info->weight_bytes);
    return params / 1e9 * ebb_models_quality((double)info->weight_bytes * 8 / (double)info->n_params);
}

/* A context that was asked for is the same for every model, so nothing differs; else the mode decides what matters. */
static double worth_of_context(const ebb_plan *p, const ebb_engine_opts *opts)
{
    static const double wished[] = { [EBB_MODE_BALANCED] = 8192, [EBB_MODE_MAX_TPS] = 4096,
                                     [EBB_MODE_MAX_CONTEXT] = 131072 };
    double wish = wished[opts ? opts->mode : EBB_MODE_BALANCED];

    return (opts && opts->n_ctx) || p->n_ctx >= wish ? 1 : pow(p->n_ctx / wish, CONTEXT_POWER);
}

/* Nobody can talk with a model whose tokenizer is not known. */
static ebb_status check_reads_text(const ebb_model *m, ebb_error *err)
{
    size_t n;

    return ebb_model_tokenize(m, "", 0, 0, NULL, 0, &n, err);
}

static void rate_open(ebb_model_rating *r, const ebb_model *m, const ebb_engine_opts *opts, const ebb_machine *machine)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    ebb_error err = { 0 };

    snprintf(r->name, sizeof r->name, "%.*s", (int)ebb_utf8_cut(info->name, strlen(info->name), sizeof r->name - 1),
             info->name);
    snprintf(r->quantization, sizeof r->quantization, "%.15s", info->quantization);
    r->n_params = info->n_params;
    r->has_template = ebb_model_template(m, NULL) != NULL;
    if (ebb_plan_make(m, opts, machine, &r->plan, &err) != EBB_OK)
        snprintf(r->why_not, sizeof r->why_not, "%.199s", err.msg);
    else if (!r->plan.fits)
        snprintf(r->why_not, sizeof r->why_not, "%.199s", r->plan.why);
    else if (check_reads_text(m, &err) != EBB_OK)
        snprintf(r->why_not, sizeof r->why_not, "%.199s", err.msg);
    r->score = model_score(m, &r->plan);
    r->context_worth = worth_of_context(&r->plan, opts);
}

static void rate_model(ebb_model_rating *r, const ebb_engine_opts *opts, ebb_machine *machine, bool measures)
{
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    ebb_status st = ebb_model_open(r->file.path, &m, &err);

    if (st == EBB_OK && measures)
        st = ebb_machine_measure(machine, m, opts, false, &err);
    if (st == EBB_OK)
        rate_open(r, m, opts, machine);
    if (st == EBB_OK && measures && r->plan.stream_bytes > 0 && machine->disk_bytes_s <= 0) {
        st = ebb_machine_measure(machine, m, opts, true, &err);      /* only now the disk matters */
        rate_open(r, m, opts, machine);
    }
    if (st != EBB_OK)
        snprintf(r->why_not, sizeof r->why_not, "%.199s", err.msg);
    ebb_model_close(m);
}

/* -- Order -------------------------------------------------------------------------- */

static bool is_streaming(const ebb_model_rating *r)
{
    return r->plan.tier >= EBB_TIER_STREAMING;
}

/* Smaller is better: useful, slow, read from disk and slow; the same without a chat template; not at all. */
static int rating_rank(const ebb_model_rating *r)
{
    double tok_s = r->plan.predicted_decode_tok_s;
    int n = is_streaming(r) ? (tok_s < SURE_TOK_S ? 2 : 0) : tok_s < USEFUL_TOK_S ? 1 : 0;

    return r->why_not[0] ? 6 : r->has_template ? n : 3 + n;
}

static int compare_descending(double a, double b)
{
    return a < b ? 1 : a > b ? -1 : 0;
}

/* What the user gets of a model: its quality, lowered for a short context and a low speed. */
static double rating_gain(const ebb_model_rating *r)
{
    double context = r->context_worth > 0 ? r->context_worth : 1;

    return r->score * context * r->plan.predicted_decode_tok_s / (r->plan.predicted_decode_tok_s + HALF_TOK_S);
}

/* Among those that are fast enough the best, among others the fastest. */
int ebb_models_compare(const void *a, const void *b)
{
    const ebb_model_rating *x = a, *y = b;
    int by_rank = rating_rank(x) - rating_rank(y), by_gain = compare_descending(rating_gain(x), rating_gain(y));
    int by_speed = compare_descending(x->plan.predicted_decode_tok_s, y->plan.predicted_decode_tok_s);
    int first = rating_rank(x) % 3 == 0 ? by_gain : by_speed, second = rating_rank(x) % 3 == 0 ? by_speed : by_gain;

    return by_rank ? by_rank : first ? first : second ? second : strcmp(x->file.path, y->file.path);
}

ebb_status ebb_models_rate(ebb_model_file *files, size_t n, const ebb_engine_opts *opts, ebb_machine *machine,
                           bool measures, double until_s, ebb_model_rating **out, ebb_error *err)
{
    *out = calloc(n + 1, sizeof **out);
    if (!*out) {
        ebb_models_free(files, n);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %zu models", n);
    }
    for (size_t i = 0; i < n; i++) {
        (*out)[i].file = files[i];
        if (until_s > 0 && ebb_clock_s() > until_s)
            snprintf((*out)[i].why_not, sizeof (*out)[i].why_not, "not rated: there are too many");
        else
            rate_model(&(*out)[i], opts, machine, measures);
    }
    free(files);                                 /* the paths are owned by the list now */
    qsort(*out, n, sizeof **out, ebb_models_compare);
    return EBB_OK;
}

void ebb_models_rating_free(ebb_model_rating *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(r[i].file.path);
        free(r[i].file.name);
        ebb_buf_fini(&r[i].file.more_names);
    }
    free(r);
}

/* -- What the user chose --------------------------------------------------------------- */

/* The path from the root on.  A link at its end stays one: it has the name by which the parts of a model find each
 * other. */
static char *absolute_path(const char *path)
{
    const char *slash = memrchr(path, '/', ebb_model_path_file(path)), *base = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(base - path)) : strdup("."),
        *real = folder ? realpath(folder, NULL) : NULL, *whole = NULL;

    if (real && ebb_models_is_file(path) && asprintf(&whole, "%s/%s", strcmp(real, "/") ? real : "", base) < 0)
        whole = NULL;
    free(folder);
    free(real);
    return whole;
}

ebb_status ebb_models_remember(const char *path, ebb_error *err)
{
    ebb_buf dir = { 0 }, name = { 0 };
    char *whole = path ? absolute_path(path) : NULL;
    ebb_status st = path && !whole ? EBB_FAIL(err, EBB_NOTFOUND, "%s: no longer there", path)
                                   : ebb_path_in(EBB_DIR_STATE, NULL, &dir, err);

    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_STATE, CHOSEN_FILE, &name, err);
    if (st == EBB_OK)
        st = ebb_file_mkdirs(dir.data, err);
    if (st == EBB_OK)
        st = ebb_file_replace(name.data, whole ? whole : "", whole ? strlen(whole) : 0, err);
    ebb_buf_fini(&dir);
    ebb_buf_fini(&name);
    free(whole);
    return st;
}

bool ebb_models_remembered(ebb_buf *out)
{
    ebb_buf name = { 0 };
    bool ok = ebb_path_in(EBB_DIR_STATE, CHOSEN_FILE, &name, NULL) == EBB_OK &&
              ebb_file_slurp_kept(name.data, 4096, out, NULL) == EBB_OK && out->len > 0;

    ebb_buf_fini(&name);
    return ok;
}

/* -- The choice -------------------------------------------------------------------------- */

/* Its name and the store it belongs to, for a terminal. */
static void add_base(ebb_buf *out, const ebb_model_rating *r)
{
    const char *name = ebb_models_name(&r->file);

    ebb_utf8_add_line(out, name, strlen(name), false);
    if (r->file.store)
        ebb_buf_addf(out, " (%s's)", r->file.store);
}

/* Why the chosen model is not the largest of those with a higher score; of several of that size,
 * the best rated one is named. */
static void add_passed_over(ebb_buf *out, const ebb_model_rating *r, size_t n)
{
    const ebb_model_rating *over = NULL;
    char speed[16];

    for (size_t i = 1; i < n; i++)
        if (r[i].score > r[0].score && (!over || r[i].n_params > over->n_params))
            over = &r[i];
    if (!over)
        return;
    ebb_buf_adds(out, "; ");
    add_base(out, over);
    if (over->why_not[0])
        ebb_buf_adds(out, " cannot run here");
    else if (is_streaming(over) && over->plan.predicted_decode_tok_s < SURE_TOK_S)
        ebb_buf_addf(out, " would be read from disk: %s tok/s",
                     ebb_speed_text(over->plan.predicted_decode_tok_s, speed));
    else if (!over->has_template)
        ebb_buf_adds(out, " has no chat template");
    else
        ebb_buf_addf(out, " would do %s tok/s", ebb_speed_text(over->plan.predicted_decode_tok_s, speed));
}

/* Alternatives to the chosen model: one with a longer context, one with more speed. */
static void add_alternatives(ebb_buf *out, const ebb_model_rating *r, size_t n)
{
    const ebb_model_rating *longer = NULL, *faster = NULL;
    char speed[16];

    for (size_t i = 1; i < n; i++) {
        const ebb_plan *p = &r[i].plan;
        if (r[i].why_not[0] || !r[i].has_template || p->predicted_decode_tok_s < USEFUL_TOK_S)
            continue;
        if (p->n_ctx >= 2 * r[0].plan.n_ctx && (!longer || p->n_ctx > longer->plan.n_ctx))
            longer = &r[i];
        if (p->predicted_decode_tok_s >= 2 * r[0].plan.predicted_decode_tok_s && !faster)
            faster = &r[i];                      /* the best of them: the list is sorted */
    }
    for (int i = 0; i < 2; i++) {
        const ebb_model_rating *other = i ? faster : longer;
        if (!other || (i && other == longer))
            continue;
        ebb_buf_adds(out, "; or ");
        add_base(out, other);
        ebb_buf_addf(out, ": context %u, %s tok/s", other->plan.n_ctx,
                     ebb_speed_text(other->plan.predicted_decode_tok_s, speed));
    }
}

/* Layers that stay until the context needs their memory. */
static void add_lent(ebb_buf *out, const ebb_plan *p)
{
    char first[16], full[16];

    ebb_buf_addf(out, "begins with %u of %u layers in memory, about %s tok/s; they make room for its context: about "
                      "%s tok/s after %u tokens",
                 p->n_resident_first, p->n_layers, ebb_speed_text(p->predicted_decode_tok_s, first),
                 ebb_speed_text(p->predicted_full_tok_s, full), p->n_ctx);
}

/* None can be used.  "Does not fit" is said only of models that were read, and planned. */
static void explain_guide(const ebb_model_rating *r, size_t n, ebb_buf *out)
{
    size_t n_too_large = 0;

    for (size_t i = 0; i < n; i++)
        n_too_large += r[i].plan.total_bytes > 0 && !r[i].plan.fits;
    ebb_buf_adds(out, "took the built-in guide: ");
    if (n == 0)
        ebb_buf_adds(out, "there is no model file");
    else if (n_too_large == n)
        ebb_buf_adds(out, "no model fits; ebb plan says why");
    else if (n == 1)
        ebb_buf_adds(out, r[0].why_not);
    else
        ebb_buf_addf(out, "none of the %zu model files can be used; ebb plan says why", n);
}

void ebb_models_explain(const ebb_model_rating *r, size_t n, ebb_buf *out)
{
    char speed[16];

    if (n == 0 || r[0].why_not[0]) {
        explain_guide(r, n, out);
        return;
    }
    ebb_buf_adds(out, "took ");
    add_base(out, &r[0]);
    if (r[0].n_params >= 100000000)
        ebb_buf_addf(out, ": %.1fB %s ", (double)r[0].n_params / 1e9, r[0].quantization);
    else
        ebb_buf_addf(out, ": %.1fM %s ", (double)r[0].n_params / 1e6, r[0].quantization);
    if (is_streaming(&r[0]) && r[0].plan.predicted_decode_tok_s < SURE_TOK_S)
        ebb_buf_addf(out, "is partly read from disk, because nothing better fits; about %s tok/s",
                     ebb_speed_text(r[0].plan.predicted_decode_tok_s, speed));
    else if (r[0].plan.lent_bytes > 0 && r[0].plan.predicted_full_tok_s < FELT * r[0].plan.predicted_decode_tok_s)
        add_lent(out, &r[0].plan);
    else if (is_streaming(&r[0]))
        ebb_buf_addf(out, "has %u of %u layers in memory, and still does about %s tok/s", r[0].plan.n_resident,
                     r[0].plan.n_layers, ebb_speed_text(r[0].plan.predicted_decode_tok_s, speed));
    else
        ebb_buf_addf(out, "fits with a context of %u, about %s tok/s", r[0].plan.n_ctx,
                     ebb_speed_text(r[0].plan.predicted_decode_tok_s, speed));
    add_passed_over(out, r, n);
    add_alternatives(out, r, n);
}

/* The one that the user chose, if it still can run. */
static bool take_remembered(const ebb_engine_opts *opts, char **path, ebb_buf *why)
{
    ebb_model_rating r = { 0 };
    ebb_buf chosen = { 0 };
    ebb_machine machine;
    bool ok = ebb_models_remembered(&chosen) && ebb_machine_probe(NULL, false, &machine, NULL) == EBB_OK;

    if (ok) {
        r.file.path = chosen.data;
        rate_model(&r, opts, &machine, false);
        if (!r.why_not[0])
            ebb_buf_adds(why, "took ");
        add_base(why, &r);
        if (r.why_not[0])
            ebb_buf_addf(why, ", which was chosen last, is not used: %s", r.why_not);
        else
            ebb_buf_adds(why, ", as last time; -m auto chooses again");
        *path = r.why_not[0] ? NULL : strdup(chosen.data);
    }
    ebb_buf_fini(&chosen);
    return ok && *path;
}

ebb_status ebb_models_choose(const ebb_engine_opts *opts, char **path, ebb_buf *why, ebb_error *err)
{
    const ebb_engine_opts o = ebb_kv_cache_opts_for_plan(opts);
    ebb_model_rating *r = NULL;
    ebb_model_file *files;
    ebb_machine machine;
    size_t n;
    ebb_status st;

    *path = NULL;
    if (take_remembered(&o, path, why))
        return EBB_OK;
    st = ebb_models_find_chat(&files, &n, err);
    if (st != EBB_OK || n == 0)
        return st;
    st = ebb_machine_probe(NULL, false, &machine, err);
    if (st == EBB_OK)
        st = ebb_models_rate(files, n, &o, &machine, n > 1, 0, &r, err);
    else
        ebb_models_free(files, n);
    if (st != EBB_OK)
        return st;
    if (n > 1 || r[0].why_not[0]) {
        ebb_buf_adds(why, why->len ? "; " : "");
        ebb_models_explain(r, n, why);
    }
    if (!r[0].why_not[0]) {
        *path = r[0].file.path;
        r[0].file.path = NULL;
    }
    ebb_models_rating_free(r, n);
    return EBB_OK;
}

ebb_status ebb_models_check(const char *path, const ebb_engine_opts *opts, ebb_error *err)
{
    const ebb_machine any = { .available_bytes = UINT64_MAX / 2, .n_cpus = 1 };  /* whether it fits is no question */
    ebb_model *m;
    ebb_plan plan;
    ebb_status st = ebb_model_open(path, &m, err);

    if (st == EBB_OK)
        st = check_reads_text(m, err);
    if (st == EBB_OK)
        st = ebb_plan_make(m, &(ebb_engine_opts){ .is_forced = opts->is_forced }, &any, &plan, err);
    ebb_model_close(m);
    return st;
}

ebb_status ebb_models_open(const ebb_engine_opts *opts, char **path, ebb_model **out, ebb_buf *why, ebb_error *err)
{
    bool is_guide = *path && strcmp(*path, EBB_MODELS_GUIDE) == 0;
    char *found = NULL;
    ebb_status st = EBB_OK;

    *out = NULL;
    if (*path && !is_guide) {
        st = ebb_models_resolve(*path, &found, err);
        free(*path);
        *path = found;
    } else if (!*path) {
        st = ebb_models_choose(opts, path, why, err);
    }
    if (st != EBB_OK)
        return st;
    if (*path && !is_guide)
        st = ebb_model_open(*path, out, err);
    else
        st = ebb_model_open_memory(ebb_guide_data, ebb_guide_bytes, EBB_MODELS_GUIDE, out, err);
    if (st == EBB_OK)
        st = check_reads_text(*out, err);
    if (st != EBB_OK) {
        ebb_model_close(*out);
        *out = NULL;
    }
    return st;
}
