/* What `ebb run --json` prints: an answer, or several, and what they took (cmd_run.h). */
#include "cmd_run.h"

#include <jansson.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "json/json_text.h"

/* The engine's figures during the answer; keys as in bench and stat. */
static void put_engine(json_t *o, const ebb_stats *s)
{
    json_object_set_new(o, "tier", json_string(ebb_tier_name(s->tier)));
    json_object_set_new(o, "kv_type", json_string(s->kv_type));
    json_object_set_new(o, "layers", json_integer(s->n_layers));
    json_object_set_new(o, "resident_layers", json_integer(s->n_resident));
    json_object_set_new(o, "cpu", json_string(s->cpu));
    json_object_set_new(o, "io", json_string(s->io));
    json_object_set_new(o, "threads", json_integer(s->n_threads));
    json_object_set_new(o, "disk_bytes_s", json_real(s->disk_bytes_s));
    json_object_set_new(o, "stall_share", json_real(s->stall_share));
    if (s->experts_selected > 0)
        json_object_set_new(o, "expert_hits", json_real((double)s->experts_resident / (double)s->experts_selected));
}

/* Those of the engine in this process, which is this answer's alone. */
static void put_own_engine(json_t *o, const ebb_stats *s)
{
    json_object_set_new(o, "drafted", json_integer((json_int_t)s->n_drafted));
    json_object_set_new(o, "accepted", json_integer((json_int_t)s->n_accepted));
    json_object_set_new(o, "peak_rss_bytes", json_integer((json_int_t)s->rss_peak_bytes));
    put_engine(o, s);
}

/* Of an engine elsewhere only what it sent is known: an `ebb serve` sends its figures, others none. */
static void put_engine_elsewhere(json_t *o, const ebb_chat *c)
{
    ebb_remote_figures r;

    if (ebb_chat_remote(c, &r) && r.server.taken_ms)
        put_engine(o, &r.server.stats);
}

/* Of a remote engine: its name, the seed that it was sent, and whether the token counts are the server's. */
static void put_remote(json_t *o, const ebb_chat *c, const ebb_message *m)
{
    if (ebb_chat_seed(c))
        json_object_set_new(o, "seed", json_integer((json_int_t)ebb_chat_seed(c)));
    json_object_set_new(o, "engine", ebb_json_text_or_null(m->engine));
    json_object_set_new(o, "about",
                        json_boolean((m->turn_stats.about & (EBB_ABOUT_PROMPT | EBB_ABOUT_GENERATED)) != 0));
    json_object_set_new(o, "cached_known", json_boolean(!(m->turn_stats.about & EBB_ABOUT_REUSED)));
    json_object_set_new(o, "first_word_s", json_real(m->turn_stats.first_s));
}

/* An answer and its turn stats. */
static json_t *answer_json(const ebb_message *m)
{
    const ebb_turn_stats *t = &m->turn_stats;
    json_t *text = json_stringn(m->text, m->n_text), *o;

    o = json_pack("{s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f}", "text", text ? text : json_string(""),
                  "finish", ebb_finish_name(m->finish), "prompt_tokens", (int)t->n_prompt, "reused_tokens",
                  (int)t->n_reused, "reused_disk_tokens", (int)t->n_reused_disk,
                  "computed_tokens", (int)t->n_computed, "generated_tokens", (int)t->n_generated, "prefill_s",
                  t->prefill_s, "decode_tok_s", t->decode_s > 0 ? t->n_generated / t->decode_s : 0.0);
    if (o && m->n_sample_records)
        json_object_set_new(o, "seed",
                            json_integer((json_int_t)m->sample_records[m->n_sample_records - 1].sampling.seed));
    return o;
}

const ebb_message **ebb_run_list_answers(ebb_chat *c, size_t *n)
{
    const ebb_message *first = ebb_chat_message(c, ebb_chat_n_messages(c) - 1), **all;
    ebb_branch *rows;
    size_t n_rows;

    *n = 0;
    if (ebb_chat_branches(c, &rows, &n_rows, NULL) != EBB_OK)
        return NULL;
    all = calloc(n_rows + 1, sizeof *all);
    for (size_t i = 0; all && i < n_rows; i++)
        if (rows[i].message->role == EBB_ROLE_ASSISTANT && rows[i].message->parent == first->parent)
            all[(*n)++] = rows[i].message;
    free(rows);
    return all;
}

/* Of several answers: what they are together, and each. */
static json_t *answers_json(ebb_chat *c)
{
    size_t n;
    const ebb_message **all = ebb_run_list_answers(c, &n);
    json_t *list = json_array(), *root;
    int n_generated = 0;
    double most_s = 0;

    for (size_t i = 0; i < n; i++) {
        const ebb_turn_stats *t = &all[i]->turn_stats;

        n_generated += (int)t->n_generated;
        most_s = t->decode_s > most_s ? t->decode_s : most_s;
        json_array_append_new(list, answer_json(all[i]));
    }
    root = json_pack("{s:o, s:i, s:f}", "answers", list, "generated_tokens", n_generated, "decode_tok_s",
                     most_s > 0 ? n_generated / most_s : 0.0);
    free(all);
    return root;
}

bool ebb_run_add_json(ebb_buf *out, ebb_chat *c, bool has_several)
{
    static const ebb_message stopped = { .finish = EBB_FINISH_CANCELED };
    const ebb_message *last = ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
    /* Stopped before the first token, the last message is the question. */
    const ebb_message *m = last->role == EBB_ROLE_ASSISTANT ? last : &stopped;
    json_t *root = has_several && m == last ? answers_json(c) : answer_json(m);
    ebb_stats s;
    char *text;
    bool is_whole;

    ebb_chat_stats(c, &s);
    if (root && ebb_chat_model(c)) {
        json_object_set_new(root, "model", ebb_json_text_or_null(ebb_chat_model(c)->name));
        json_object_set_new(root, "model_file", ebb_json_text_or_null(ebb_chat_model(c)->path));
    }
    if (root && m->engine)
        put_remote(root, c, m);
    json_object_set_new(root, "ctx", json_integer(s.n_ctx));
    if (root && ebb_chat_engine(c))
        put_engine_elsewhere(root, c);
    else if (root)
        put_own_engine(root, &s);
    text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    is_whole = text && ebb_buf_adds(out, text) && ebb_buf_addc(out, '\n');
    free(text);
    json_decref(root);
    return is_whole;
}
