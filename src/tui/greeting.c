/* The first lines anybody sees (greeting.h). */
#include "greeting.h"

#include <string.h>

#include "os/paths.h"
#include "text.h"

/* Usual shapes: file size in Q4_K_M, and what a token of context takes in f16. */
static const struct { const char *article, *name; double weight_bytes, token_bytes; } sizes[] = {
    { "a", "70B", 42.5e9, 327680 }, { "a", "32B", 19.9e9, 262144 }, { "a", "14B", 9.0e9, 196608 },
    { "an", "8B", 4.92e9, 131072 }, { "a", "3B", 2.02e9, 114688 }, { "a", "1B", 0.81e9, 32768 },
};
/* What is not weights or context: buffers, the tokenizer, the program. */
static const double other_bytes = 300e6;

void ebb_greeting_machine(ebb_buf *out, const ebb_machine *machine)
{
    static const unsigned contexts[] = { 32, 16, 8, 4 };
    double have = (double)machine->available_bytes;

    ebb_buf_addf(out, "%.0f GB free, %u core%s: ", have / 1e9, machine->n_cpus, machine->n_cpus == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof contexts / sizeof *contexts; k++)
            if (sizes[i].weight_bytes + contexts[k] * 1024 * sizes[i].token_bytes + other_bytes <= have) {
                ebb_buf_addf(out, "%s %s model in Q4_K_M fits with %uk of context; larger ones read from disk as they go",
                             sizes[i].article, sizes[i].name, contexts[k]);
                return;
            }
    ebb_buf_adds(out, "only the smallest models fit; larger ones read from disk as they go");
}

/* Where model files are looked for. */
static void add_models_dir(ebb_buf *out)
{
    ebb_buf dir = { 0 };

    ebb_buf_adds(out, ebb_path_in(EBB_DIR_DATA, "models", &dir, NULL) == EBB_OK ? ebb_buf_text(&dir) : "the folder of models");
    ebb_buf_fini(&dir);
}

void ebb_greeting_text(ebb_buf *out, const ebb_machine *machine, const ebb_model_info *model, bool is_first)
{
    bool is_guide = model && strcmp(model->path, "guide") == 0;

    if (is_guide)
        ebb_buf_adds(out, "This is ebb, a chat with models on your own machine. Its built-in guide answers: small, and it knows ebb.");
    else
        ebb_buf_addf(out, "This is ebb, a chat with models on your own machine. %s answers.", model ? model->name : "The model is being loaded; it");
    if (!is_first)
        return;
    ebb_buf_addc(out, '\n');
    ebb_greeting_machine(out, machine);
    if (is_guide) {
        ebb_buf_adds(out, "\nA larger model: put any .gguf file into ");
        add_models_dir(out);
        ebb_buf_adds(out, ", or name it with ebb -m FILE or /model FILE.");
    } else
        ebb_buf_adds(out, "\nType a question and press Enter. F1 shows all keys and commands.");
}
