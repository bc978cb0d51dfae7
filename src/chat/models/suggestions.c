/* The table of suggestions (suggestions.h). */
#include "models/suggestions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"

EBB_EMBED(ebb_suggestions_text, "models/suggestions.txt");

#define OTHER_BYTES  300e6       /* beside weights and context: buffers, the tokenizer, the program */
#define USUAL_CORE   10e9        /* bytes of weights per second that a core takes in, where nothing was measured */
#define USUAL_DISK   1e9
#define USEFUL_TOK_S 1.5         /* slower is not usable for a chat */
#define MIXTURE      (1 / 3.0)   /* a token takes less of the file than this: a mixture of experts */
#define LOCALITY     5           /* with a share s of it in memory a token misses (1 - s)^LOCALITY of what it takes: at
                                    eight sizes of four models, with routes as trained ones choose, mostly less */
#define FIELDS       6

/* Line i of the table proper. */
static bool find_row(size_t i, char line[320])
{
    for (const char *p = ebb_suggestions_text; p < ebb_suggestions_text_end; p += strcspn(p, "\n") + 1) {
        size_t n = strcspn(p, "\n");

        if (n == 0 || *p == '#' || strncmp(p, "date ", 5) == 0 || i-- > 0)
            continue;
        snprintf(line, 320, "%.*s", (int)n, p);
        return true;
    }
    return false;
}

bool ebb_suggestion_at(size_t i, ebb_suggestion *out)
{
    char line[320], *rest = line, *field[FIELDS];

    if (!find_row(i, line))
        return false;
    for (size_t k = 0; k < FIELDS; k++) {
        field[k] = rest;
        rest = rest ? strstr(rest, " | ") : NULL;
        if (rest) {
            *rest = '\0';
            rest += 3;
        }
        if (!field[k])
            return false;
    }
    *out = (ebb_suggestion){ .file_bytes = atof(field[2]), .pass_bytes = atof(field[3]),
                              .context_bytes = atof(field[4]) };
    snprintf(out->name, sizeof out->name, "%.31s", field[0]);
    snprintf(out->source, sizeof out->source, "%.95s", field[1]);
    snprintf(out->what, sizeof out->what, "%.95s", field[5]);
    return true;
}

const char *ebb_suggestions_date(char out[16])
{
    const char *date = strstr(ebb_suggestions_text, "\ndate ");

    snprintf(out, 16, "%.10s", date ? date + 6 : "");
    return out;
}

void ebb_suggestion_estimate(ebb_plan *p, double file_bytes, double pass_bytes, double context_bytes,
                             const ebb_machine *m)
{
    double have = (double)m->available_bytes - OTHER_BYTES, token = context_bytes;
    double memory = m->memory_bytes_s > 0 ? m->memory_bytes_s : USUAL_CORE * m->n_cpus;
    double disk = m->disk_bytes_s > 0 ? m->disk_bytes_s : USUAL_DISK, least = 4096 * token * 34 / 64, stays, read_s,
           taken_s = pass_bytes / memory;
    bool is_mixture = pass_bytes < file_bytes * MIXTURE;

    p->fits = true;
    p->n_ctx = file_bytes + 16384 * token <= have ? 16384 : file_bytes + 8192 * token <= have ? 8192 : 4096;
    p->tier = file_bytes + p->n_ctx * token <= have ? EBB_TIER_FULL
              : file_bytes + least <= have ? EBB_TIER_TIGHT : EBB_TIER_STREAMING;
    stays = p->tier < EBB_TIER_STREAMING ? 1 : have > least ? (have - least) / file_bytes * 0.9 : 0;
    if (stays < 0.03)
        p->tier = EBB_TIER_CRITICAL;
    read_s = pass_bytes * pow(1 - stays, is_mixture ? LOCALITY : 1) / disk;
    if (is_mixture)                              /* which experts to read is known late */
        p->predicted_decode_tok_s = 1 / (taken_s + read_s);
    else
        p->predicted_decode_tok_s = 1 / fmax(taken_s, read_s);
}

bool ebb_suggestion_best(const ebb_machine *machine, ebb_suggestion *out, ebb_plan *plan)
{
    double usual = USUAL_CORE * machine->n_cpus;
    ebb_suggestion row;

    for (size_t i = 0; ebb_suggestion_at(i, &row); i++) {
        *out = row;
        memset(plan, 0, sizeof *plan);
        ebb_suggestion_estimate(plan, row.file_bytes, row.pass_bytes, row.context_bytes, machine);
        if (plan->tier < EBB_TIER_STREAMING && usual / row.pass_bytes >= USEFUL_TOK_S)
            return true;
    }
    return false;
}
