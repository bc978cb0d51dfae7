/* The variants in a repository (variants.h). */
#include "pull/variants.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/suggestions.h"

#define SPLIT_SUFFIX 20u         /* strlen("-00001-of-00003.gguf") */
#define N_NEAR       3u          /* names that are told where none is meant */

/* -- Types in names -------------------------------------------------------------------------- */

/* Bits of a weight, all of a file counted; the longest prefix decides. */
static const struct { const char *type; double bits; } type_bits[] = {
    { "IQ1", 1.9 }, { "IQ2", 2.5 }, { "IQ3", 3.5 }, { "IQ4", 4.4 }, { "TQ1", 1.8 }, { "TQ2", 2.2 }, { "Q2_K", 3.0 },
    { "Q3_K_S", 3.6 },
    { "Q3_K", 4.0 }, { "Q3_K_L", 4.3 }, { "Q4", 4.6 }, { "Q4_K_M", 4.85 }, { "Q4_K_L", 5 }, { "Q4_1", 5.1 },
    { "Q5", 5.6 }, { "Q5_1", 6 },
    { "Q6", 6.6 }, { "Q8", 8.5 }, { "F16", 16 }, { "FP16", 16 }, { "BF16", 16 }, { "F32", 32 }, { "FP32", 32 },
    { "MXFP4", 4.5 }, { "NVFP4", 4.6 }, { "Q1_0", 1.2 }, { "Q2_0", 2.3 },
};

static double bits_of(const char *type)
{
    double bits = 0;
    size_t best = 0;

    for (size_t i = 0; i < sizeof type_bits / sizeof *type_bits; i++) {
        size_t n = strlen(type_bits[i].type);

        if (n > best && strncmp(type, type_bits[i].type, n) == 0) {
            bits = type_bits[i].bits;
            best = n;
        }
    }
    return bits;
}

/* How much of a name comes before ".gguf" or "-00001-of-00003.gguf". */
static size_t name_stem(const char *name)
{
    unsigned part, of;
    size_t n = strlen(name);

    return ebb_models_is_part(name, &part, &of) ? n - SPLIT_SUFFIX : n - 5;
}

void ebb_pull_type_in_name(const char *name, char out[24])
{
    size_t end = name_stem(name);

    while (end > 0) {
        size_t begin = end;

        while (begin > 0 && !strchr("-.", name[begin - 1]))
            begin--;
        if (end - begin > 0 && end - begin < 24) {
            for (size_t i = begin; i < end; i++)
                out[i - begin] = (char)toupper((unsigned char)name[i]);
            out[end - begin] = '\0';
            if (bits_of(out) > 0)
                return;
        }
        end = begin ? begin - 1 : 0;
    }
    out[0] = '\0';
}

/* -- Grouping -------------------------------------------------------------------------------- */

static bool is_next_part(const ebb_pull_variant *o, const ebb_hub_file *f)
{
    const ebb_hub_file *last = &o->parts[o->n_parts - 1];
    unsigned part, of, part0, of0;
    size_t n = strlen(f->path);

    return ebb_models_is_part(last->path, &part0, &of0) && ebb_models_is_part(f->path, &part, &of) &&
           part == part0 + 1 && of == of0 &&
           strlen(last->path) == n && memcmp(last->path, f->path, n - SPLIT_SUFFIX) == 0;
}

static void finish_variant(ebb_pull_variant *o)
{
    unsigned part = 1, of = 1;
    bool is_split = ebb_models_is_part(o->parts[0].path, &part, &of);

    o->is_whole = !is_split || (part == 1 && o->n_parts == of);
    for (unsigned i = 0; i < o->n_parts; i++)
        o->n_bytes += o->parts[i].n_bytes;
    ebb_pull_type_in_name(o->parts[0].name, o->type);
}

static int largest_first(const void *a, const void *b)
{
    const ebb_pull_variant *x = a, *y = b;

    if (x->n_bytes != y->n_bytes)
        return x->n_bytes < y->n_bytes ? 1 : -1;
    return strcmp(x->parts[0].path, y->parts[0].path);
}

ebb_status ebb_pull_group_variants(const ebb_hub_list *l, ebb_pull_variant **out, size_t *n, ebb_error *err)
{
    ebb_pull_variant *o = calloc(l->n + 1, sizeof *o);

    *out = o;
    *n = 0;
    if (!o)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %zu models", l->n);
    for (size_t i = 0; i < l->n; i++)
        if (*n && is_next_part(&o[*n - 1], &l->files[i]))
            o[*n - 1].n_parts++;
        else
            o[(*n)++] = (ebb_pull_variant){ .parts = &l->files[i], .n_parts = 1 };
    for (size_t i = 0; i < *n; i++)
        finish_variant(&o[i]);
    qsort(o, *n, sizeof *o, largest_first);
    return EBB_OK;
}

/* -- By name --------------------------------------------------------------------------------- */

static bool variant_has_name(const ebb_pull_variant *o, const char *want)
{
    for (unsigned i = 0; i < o->n_parts; i++)
        if (strcasecmp(o->parts[i].name, want) == 0 || strcasecmp(o->parts[i].path, want) == 0)
            return true;
    return strlen(want) == name_stem(o->parts[0].name) && strncasecmp(o->parts[0].name, want, strlen(want)) == 0;
}

static bool variant_has_type(const ebb_pull_variant *o, const char *want)
{
    return strcasecmp(o->type, want) == 0;
}

/* Behind a hyphen or a dot. */
static bool variant_ends_with(const ebb_pull_variant *o, const char *want)
{
    const char *name = o->parts[0].name;
    size_t n = name_stem(name), k = strlen(want);

    return k && n > k && strchr("-._", name[n - k - 1]) && strncasecmp(name + n - k, want, k) == 0;
}

/* How many letters to change, add or drop; both of at most 63. */
static unsigned type_distance(const char *a, const char *b)
{
    unsigned row[64], n = (unsigned)strnlen(b, 63);

    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 0; a[i] && i < 63; i++) {
        unsigned before = row[0];

        row[0] = i + 1;
        for (unsigned j = 0; j < n; j++) {
            unsigned change = before + (toupper((unsigned char)a[i]) != toupper((unsigned char)b[j]));

            before = row[j + 1];
            row[j + 1] = row[j + 1] < row[j] ? row[j + 1] + 1 : row[j] + 1;
            row[j + 1] = change < row[j + 1] ? change : row[j + 1];
        }
    }
    return row[n];
}

static ebb_status fail_no_such_variant(const ebb_pull_variant *o, size_t n, const char *want, ebb_error *err)
{
    const char *near[N_NEAR + 1] = { NULL };     /* the nearest first; the last one is for what is pushed out */
    unsigned far[N_NEAR + 1];
    ebb_buf like = { 0 };
    ebb_status st;

    for (size_t i = 0; i < n; i++) {
        const char *name = ebb_pull_variant_spec(o, n, i);
        unsigned its = type_distance(want, name), at = N_NEAR;

        for (; at > 0 && (!near[at - 1] || its < far[at - 1]); at--) {
            near[at] = near[at - 1];
            far[at] = far[at - 1];
        }
        near[at] = name;
        far[at] = its;
    }
    for (unsigned i = 0; i < N_NEAR && near[i]; i++)
        ebb_buf_addf(&like, "%s%s", i ? ", " : "", near[i]);
    st = EBB_FAIL(err, EBB_NOTFOUND, "%.60s: not in this repository; it has %s%s", want, ebb_buf_text(&like),
                  n > N_NEAR ? " ..." : "");
    ebb_buf_fini(&like);
    return st;
}

ebb_status ebb_pull_find_variant(const ebb_pull_variant *o, size_t n, const char *want, size_t *i, ebb_error *err)
{
    static bool (*const means[])(const ebb_pull_variant *, const char *) = { variant_has_name, variant_has_type,
                                                                             variant_ends_with };

    for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
        size_t found = 0;

        for (size_t j = n; j-- > 0;)
            if (means[k](&o[j], want)) {
                *i = j;
                found++;
            }
        if (found > 1)
            return EBB_FAIL(err, EBB_LIMIT, "%.60s: %zu files match; name one, for example %.150s", want, found,
                            o[*i].parts[0].path);
        if (found && !o[*i].is_whole)
            return EBB_FAIL(err, EBB_NOTFOUND, "%.150s: some of its parts are missing from the repository",
                            o[*i].parts[0].name);
        if (found)
            return EBB_OK;
    }
    return fail_no_such_variant(o, n, want, err);
}

const char *ebb_pull_variant_spec(const ebb_pull_variant *o, size_t n, size_t i)
{
    size_t same = 0;

    for (size_t j = 0; j < n && same < 2; j++)
        same += o[i].type[0] && strcmp(o[i].type, o[j].type) == 0;
    return same == 1 ? o[i].type : o[i].n_parts > 1 ? o[i].parts[0].path : o[i].parts[0].name;
}

/* -- For this machine -------------------------------------------------------------------------- */

/* The number before a 'B' that ends a part of a name: 8 of "Llama-3.1-8B-Instruct"; with `prefix` before it: 3 of
 * "A3B". */
static double billions(const char *name, char prefix)
{
    for (const char *p = name; *p; p++) {
        bool begins = p == name || strchr("-_.", p[-1]);
        const char *digits = p + (prefix != '\0');
        char *end;
        double v;

        if (!begins || (prefix && toupper((unsigned char)*p) != prefix) || !isdigit((unsigned char)*digits))
            continue;
        v = strtod(digits, &end);
        if (toupper((unsigned char)*end) == 'B' && (end[1] == '\0' || strchr("-_.", end[1])) && v > 0 && v < 1e5)
            return v;
    }
    return 0;
}

/* In 10^9: as its name says, else by the bits of its type. */
static double params_of(const ebb_pull_variant *o)
{
    double named = billions(o->parts[0].name, '\0'), bits = bits_of(o->type);

    return named > 0 ? named : (double)o->n_bytes * 8 / (bits > 0 ? bits : 4.85) / 1e9;
}

/* Estimated bytes of K and V of a token in f16, for a model of `params` * 10^9 parameters. */
static double token_bytes(double params)
{
    double x = params < 0.1 ? 0.1 : params, root = x;

    for (int i = 0; i < 30; i++)                 /* Heron's method: the square root */
        root = (root + x / root) / 2;
    return 50000 * root;
}

static void rate_variant(ebb_pull_variant *o, const ebb_machine *machine)
{
    double params = params_of(o), active = billions(o->parts[0].name, 'A'), share = active > 0 &&
                    active < params ? active / params : 1;
    double bytes = o->n_bytes > 0 ? (double)o->n_bytes : 1;

    o->rating = (ebb_model_rating){ .has_template = true, .n_params = (uint64_t)(params * 1e9) };
    o->rating.file.n_bytes = o->n_bytes;
    snprintf(o->rating.quantization, sizeof o->rating.quantization, "%.15s", o->type);
    if (!o->is_whole)
        snprintf(o->rating.why_not, sizeof o->rating.why_not, "some of its parts are missing");
    ebb_suggestion_estimate(&o->rating.plan, bytes, bytes * share, token_bytes(params), machine);
    o->rating.score = params * ebb_models_quality(bytes * 8 / (params * 1e9));
    o->rating.file.path = o->parts[0].path;      /* the last criterion of the order */
}

void ebb_pull_rate_variants(ebb_pull_variant *o, size_t n, const ebb_machine *machine)
{
    size_t best = 0;

    for (size_t i = 0; i < n; i++)
        rate_variant(&o[i], machine);
    for (size_t i = 1; i < n; i++)
        if (ebb_models_compare(&o[i].rating, &o[best].rating) < 0)
            best = i;
    if (n && !o[best].rating.why_not[0])
        o[best].is_recommended = true;
}
