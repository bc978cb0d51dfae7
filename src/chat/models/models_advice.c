/* What a store recommends for a model (models.h): the parameters and the system prompt of Ollama's manifests. */
#include <stdlib.h>
#include <string.h>

#include "json/json_load.h"
#include "models/finding.h"

/* Ollama's names, and the keys under which a model's own file would say the same. */
static const char *const parameter_keys[EBB_ADVICE_NUMBERS][2] = {
    { "temperature", "general.sampling.temp" },
    { "top_k", "general.sampling.top_k" },
    { "top_p", "general.sampling.top_p" },
    { "min_p", "general.sampling.min_p" },
    { "repeat_penalty", "general.sampling.penalty_repeat" },
    { "repeat_last_n", "general.sampling.penalty_last_n" },
};

static void read_parameters(const ebb_ollama_model *m, ebb_model_advice *out)
{
    ebb_buf text = { 0 };
    json_t *o = ebb_ollama_read_layer(m, ".params", &text) ? ebb_json_load(ebb_buf_text(&text), text.len, 0, NULL)
                                                           : NULL;

    for (size_t i = 0; i < EBB_ADVICE_NUMBERS; i++) {
        json_t *value = json_object_get(o, parameter_keys[i][0]);

        out->has_number[i] = json_is_number(value);
        out->numbers[i] = json_number_value(value);
    }
    json_decref(o);
    ebb_buf_fini(&text);
}

typedef struct wanted_advice {
    const char       *path;
    ebb_model_advice *out;
} wanted_advice;

/* Several manifests may name the same weights: the one whose name is shown to users counts. */
static void read_advice(const ebb_ollama_model *m, void *arg)
{
    const wanted_advice *w = arg;
    ebb_model_advice *a = w->out;
    ebb_buf system = { 0 };

    if (strcmp(m->path, w->path) != 0 || (a->name && !ebb_models_is_better_name(m->name, a->name)))
        return;
    ebb_model_advice_fini(a);
    a->name = strdup(m->name);
    read_parameters(m, a);
    if (ebb_ollama_read_layer(m, ".system", &system) && system.len)
        a->system = strdup(ebb_buf_text(&system));
    ebb_buf_fini(&system);
}

void ebb_models_read_advice(const char *path, ebb_model_advice *out)
{
    wanted_advice w = { NULL, out };
    ebb_model_finding f = { 0 };
    char *real = realpath(path, NULL), *blobs = real ? strstr(real, "/blobs/sha256-") : NULL, *root;

    *out = (ebb_model_advice){ 0 };
    w.path = real;
    root = blobs ? strndup(real, (size_t)(blobs - real)) : NULL;
    if (root)
        ebb_ollama_each(&f, root, read_advice, &w);
    free(root);
    free(real);
}

bool ebb_model_advice_number(const ebb_model_advice *a, const char *key, double *out)
{
    for (size_t i = 0; i < EBB_ADVICE_NUMBERS; i++)
        if (a->has_number[i] && strcmp(parameter_keys[i][1], key) == 0) {
            *out = a->numbers[i];
            return true;
        }
    return false;
}

void ebb_model_advice_fini(ebb_model_advice *a)
{
    free(a->name);
    free(a->system);
    *a = (ebb_model_advice){ 0 };
}
