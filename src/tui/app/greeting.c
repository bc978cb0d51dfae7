/* The first lines anybody sees (greeting.h). */
#include "app/greeting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "models/plan_text.h"
#include "models/suggestions.h"
#include "os/thread.h"

void ebb_greeting_machine(ebb_buf *out, const ebb_machine *machine)
{
    double have = (double)machine->available_bytes / 1e9;
    ebb_suggestion s;
    ebb_plan plan;
    char speed[16];

    ebb_buf_addf(out, have < 9.95 ? "%.1f GB free, %u core%s: " : "%.0f GB free, %u core%s: ", have, machine->n_cpus,
                 machine->n_cpus == 1 ? "" : "s");
    if (!ebb_suggestion_best(machine, &s, &plan)) {
        ebb_buf_adds(out, "only the smallest models fit; larger ones are read from disk as they go");
        return;
    }
    ebb_buf_addf(out, "%s (%s) fits with %uk of context", s.name, s.what, plan.n_ctx / 1024);
    if (machine->memory_bytes_s > 0)
        ebb_buf_addf(out, ", about %s tok/s", ebb_speed_text(plan.predicted_decode_tok_s, speed));
    ebb_buf_adds(out, "; larger ones are read from disk as they go");
}

/* How one comes to a model of one's own. */
static void add_way(ebb_buf *out, const ebb_machine *machine, bool is_private)
{
    ebb_suggestion s;
    ebb_plan plan;

    (void)ebb_suggestion_best(machine, &s, &plan);       /* else the smallest */
    ebb_buf_addf(out, "\n\nTo get %s (%.1f GB), type%s:\n  %s %s\n\n"
                 "Other models: ebb pull --suggest. A .gguf file of yours: /model FILE.",
                 s.name, s.file_bytes / 1e9, is_private ? " in another terminal" : "",
                 is_private ? "ebb pull" : "/pull", s.source);
}

/* The same in a line, for who has a model. */
static void add_short_way(ebb_buf *out, const ebb_machine *machine, bool is_private)
{
    ebb_suggestion s;
    ebb_plan plan;

    if (ebb_suggestion_best(machine, &s, &plan))
        ebb_buf_addf(out, "\nTo get %s: %s %s", s.name, is_private ? "ebb pull" : "/pull", s.source);
}

/* It has weights of which nothing is known here. */
static bool is_elsewhere(const ebb_model_info *model)
{
    return model && model->n_layers == 0 && model->weight_bytes == 0;
}

static bool is_guide_model(const ebb_model_info *model)
{
    return model && strcmp(model->path, EBB_MODELS_GUIDE) == 0;
}

void ebb_greeting_text(ebb_buf *out, const ebb_machine *machine, const ebb_model_info *model, bool is_first,
                       bool has_keys, bool is_private)
{
    bool is_guide = is_guide_model(model);

    if (is_guide)
        ebb_buf_adds(out, "This is ebb, a chat with models on your own machine.\nIts built-in guide answers for now: "
                          "it is small, and knows ebb alone.");
    else if (is_elsewhere(model))
        ebb_buf_addf(out, "This is ebb, a chat with models.\n%s answers, from a remote engine (%s).", model->name,
                     model->arch);
    else if (model)
        ebb_buf_addf(out, "This is ebb, a chat with models on your own machine.\n%s answers.", model->name);
    else
        ebb_buf_adds(out, "This is ebb, a chat with models on your own machine.\nThe model is being loaded; you can "
                          "type your question already.");
    if (is_first && !is_elsewhere(model)) {
        ebb_buf_adds(out, "\n\n");
        ebb_greeting_machine(out, machine);
        ebb_buf_addc(out, '.');
    }
    if (is_first && model && !is_elsewhere(model) && !is_guide)
        add_short_way(out, machine, is_private);
    if (is_guide)
        add_way(out, machine, is_private);
    else if (is_first)
        ebb_buf_addf(out, "\n\nType a question and press Enter.%s", has_keys ? " F1 shows all keys and commands." : "");
}

/* -- Measuring ------------------------------------------------------------------------------ */

/* Bytes.  With less memory available no speed is measured: neither buffers nor most models fit. */
#define MEASURE_FROM ((uint64_t)1 << 30)

bool ebb_greeting_measures(const ebb_machine *machine, const ebb_model_info *model)
{
    return is_guide_model(model) && machine->memory_bytes_s <= 0 && machine->available_bytes >= MEASURE_FROM;
}

struct ebb_greeting_meter {
    atomic_int  n_users;         /* the thread and whoever started it: the last one frees */
    atomic_bool is_done;
    bool        has_measured, is_delivered;
    ebb_machine machine;
};

void ebb_greeting_meter_drop(ebb_greeting_meter *m)
{
    if (m && atomic_fetch_sub(&m->n_users, 1) == 1)
        free(m);
}

static void *greeting_meter_thread(void *arg)
{
    ebb_greeting_meter *m = arg;

    m->has_measured = ebb_machine_probe(NULL, true, &m->machine, NULL) == EBB_OK;
    atomic_store(&m->is_done, true);
    ebb_greeting_meter_drop(m);
    return NULL;
}

ebb_greeting_meter *ebb_greeting_meter_start(void)
{
    ebb_greeting_meter *m = calloc(1, sizeof *m);
    pthread_t thread;

    if (!m)
        return NULL;
    atomic_store(&m->n_users, 2);
    if (ebb_thread_start(&thread, greeting_meter_thread, m) != 0) {
        free(m);
        return NULL;
    }
    pthread_detach(thread);
    return m;
}

bool ebb_greeting_meter_is_busy(const ebb_greeting_meter *m)
{
    return m && !m->is_delivered;
}

bool ebb_greeting_meter_result(ebb_greeting_meter *m, ebb_machine *out)
{
    if (!ebb_greeting_meter_is_busy(m) || !atomic_load(&m->is_done))
        return false;
    m->is_delivered = true;
    if (m->has_measured)
        *out = m->machine;
    return m->has_measured;
}
