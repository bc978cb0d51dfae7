/* What llama-server's clients know (serve_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "json/json_text.h"
#include "serve/serve_priv.h"

/* Bytes of text: a piece takes some thirty in a reply, more than its text in a question. */
enum { MAX_PIECES = 512 << 10 };

/* -- /completion ------------------------------------------------------------------------------------------- */

/* Under the server's lock: the ids may move. */
static json_t *ids_json(const ebb_served *a, size_t from, size_t end)
{
    json_t *list = json_array();

    for (size_t i = from; i < end && i < a->q.n_ids; i++)
        json_array_append_new(list, json_integer(a->q.ids[i]));
    return list;
}

static json_t *llama_piece(const ebb_serve *s, const ebb_served *a, bool is_first, const char *text, size_t n,
                           size_t ids_from, size_t ids_end, uint32_t flags)
{
    (void)s, (void)flags;
    if (is_first)
        return NULL;
    return json_pack("{s:i, s:o, s:o, s:b, s:i, s:i, s:i}",
                     "index", 0, "content", json_stringn(text, n), "tokens", ids_json(a, ids_from, ids_end),
                     "stop", 0, "id_slot", 0,
                     "tokens_predicted", (int)a->stats.n_generated, "tokens_evaluated", (int)a->n_prompt);
}

static json_t *settings_json(const ebb_serve *s, const ebb_sampler_params *p, uint32_t n_predict)
{
    return json_pack("{s:i, s:I, s:f, s:i, s:f, s:f, s:f, s:i, s:i}",
                     "n_ctx", (int)s->n_ctx, "seed", (json_int_t)p->seed, "temperature", (double)p->temp,
                     "top_k", (int)p->top_k, "top_p", (double)p->top_p, "min_p", (double)p->min_p,
                     "repeat_penalty", (double)p->repeat_penalty, "repeat_last_n", (int)p->repeat_last_n,
                     "n_predict", n_predict ? (int)n_predict : -1);
}

static json_t *llama_end(const ebb_serve *s, const ebb_served *a, const char *text, size_t n, json_t *tokens)
{
    const char *how = a->finish == EBB_FINISH_LENGTH ? "limit" : a->stop[0] ? "word" : "eos";
    json_t *o = json_pack("{s:i, s:o, s:o, s:b, s:i, s:s, s:i, s:i, s:b, s:s, s:s, s:i}",
                          "index", 0, "content", json_stringn(text, n), "tokens", tokens,
                          "stop", 1, "id_slot", 0, "model", s->name,
                          "tokens_predicted", (int)a->stats.n_generated, "tokens_evaluated", (int)a->n_prompt,
                          "truncated", 0, "stop_type", how, "stopping_word", a->stop,
                          "tokens_cached", (int)a->q.n_ids);

    json_object_set_new(o, "generation_settings", settings_json(s, &a->q.sampling, a->q.n_predict));
    ebb_serve_put_figures(o, a);
    return o;
}

static json_t *llama_last(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    (void)flags;
    return llama_end(s, a, "", 0, json_array());
}

static json_t *llama_whole(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *tokens = flags & SERVE_TOKENS ? ids_json(a, a->n_prompt, a->q.n_ids) : json_array();

    return llama_end(s, a, ebb_buf_text(&a->text), a->text.len, tokens);
}

static json_t *llama_progress(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = llama_piece(s, a, false, "", 0, a->n_prompt, a->n_prompt, flags);

    ebb_serve_put_progress(o, a);
    return o;
}

static const ebb_serve_form llama_form = { .piece = llama_piece, .last = llama_last, .whole = llama_whole,
                                           .progress = llama_progress };

ebb_status ebb_serve_completion(ebb_serve_waiting *who, const json_t *o, ebb_serve_asked *asked, ebb_error *err)
{
    ebb_status st = ebb_serve_read_prompt(who, json_object_get(o, "prompt"), &asked->q, err);

    asked->form = &llama_form;
    asked->streams = json_is_true(json_object_get(o, "stream"));
    asked->flags = (json_is_true(json_object_get(o, "return_tokens")) ? SERVE_TOKENS : 0) |
                   (json_is_true(json_object_get(o, "return_progress")) ? SERVE_PROGRESS : 0);
    return st == EBB_OK ? ebb_serve_read_settings(who, o, &asked->q, err) : st;
}

/* -- Text and ids ------------------------------------------------------------------------------------------------ */

static void refuse(ebb_serve *s, ebb_http_exchange *x, ebb_status code, const char *why)
{
    ebb_error err = { 0 };

    EBB_FAIL(&err, code, "%s", why);
    ebb_serve_reply_error(s, x, &err);
}

static void add_piece(const ebb_serve *s, ebb_token id, ebb_buf *out)
{
    char text[256];
    size_t n = ebb_model_piece(s->model, id, true, text, sizeof text);
    json_t *j = json_stringn(text, n < sizeof text ? n : sizeof text);
    char *quoted = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

    ebb_buf_addf(out, "{\"id\":%d,\"piece\":%s", (int)id, quoted ? quoted : "[");
    for (size_t i = 0; !quoted && i < n && i < sizeof text; i++)          /* no text by itself: its bytes */
        ebb_buf_addf(out, "%s%d", i ? "," : "", (unsigned char)text[i]);
    ebb_buf_adds(out, quoted ? "}" : "]}");
    free(quoted);
    json_decref(j);
}

/* As text at once: as values of JSON, ids would take twenty times their bytes. */
static void reply_ids(const ebb_serve *s, ebb_http_exchange *x, const ebb_token *ids, size_t n, bool has_pieces)
{
    ebb_buf out = { 0 };

    ebb_buf_adds(&out, "{\"tokens\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ebb_buf_addc(&out, ',');
        if (has_pieces)
            add_piece(s, ids[i], &out);
        else
            ebb_buf_addf(&out, "%d", (int)ids[i]);
    }
    if (ebb_buf_adds(&out, "]}"))
        ebb_http_reply(x, 200, "application/json", out.data, out.len, 0);
    else
        ebb_serve_reply_json(x, 500, NULL);
    ebb_buf_fini(&out);
}

void ebb_serve_tokenize(ebb_serve *s, ebb_http_exchange *x, const json_t *o)
{
    const json_t *content = json_object_get(o, "content");
    ebb_serve_waiting who = { s, x };
    ebb_tokenize_opts how = { .flags = (json_is_true(json_object_get(o, "add_special")) ? EBB_TOK_BOS : 0) |
                                       (json_is_false(json_object_get(o, "parse_special")) ? 0 : EBB_TOK_SPECIAL),
                              .stop = ebb_serve_stops_waiting, .stop_arg = &who };
    bool has_pieces = json_is_true(json_object_get(o, "with_pieces"));
    size_t n_text = json_string_length(content), cap = n_text + 8, n = 0;
    ebb_token *ids = malloc(cap * sizeof *ids);
    ebb_error err = { 0 };

    if (!json_is_string(content))
        EBB_FAIL(&err, EBB_USAGE, "content must be the text to tokenize");
    else if (n_text > (has_pieces ? MAX_PIECES : SERVE_TEXT))
        EBB_FAIL(&err, EBB_USAGE, "content has %zu bytes; %d at most are accepted%s", n_text,
                 has_pieces ? MAX_PIECES : SERVE_TEXT, has_pieces ? " with_pieces" : "");
    else if (!ids || (ebb_model_tokenize_with(s->model, json_string_value(content), n_text, &how, ids, cap, &n,
                                              &err) == EBB_OK && n > cap))
        EBB_FAIL(&err, EBB_NOMEM, "no memory for the tokens");
    if (err.code)
        ebb_serve_reply_error(s, x, &err);
    else
        reply_ids(s, x, ids, n, has_pieces);
    free(ids);
}

void ebb_serve_detokenize(ebb_serve *s, ebb_http_exchange *x, const json_t *o)
{
    const json_t *list = json_object_get(o, "tokens");
    json_int_t n_vocab = ebb_model_get_info(s->model)->n_vocab;
    ebb_detok *d = ebb_detok_new(s->model, true);
    ebb_buf text = { 0 };
    bool ok = json_is_array(list) && d;
    const char *part;
    size_t n;

    for (size_t i = 0; ok && text.len <= SERVE_TEXT && i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        ok = json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < n_vocab;
        part = ok ? ebb_detok_push(d, (ebb_token)json_integer_value(id), &n) : "";
        if (ok)
            ebb_buf_add(&text, part, n);
    }
    if (text.len > SERVE_TEXT) {
        refuse(s, x, EBB_USAGE, "tokens make more than 4 MiB of text, the most that is accepted");
    } else if (ok) {
        part = ebb_detok_flush(d, &n);
        ebb_buf_add(&text, part, n);
        ebb_serve_reply_json(x, 200, json_pack("{s:o}", "content", json_stringn(ebb_buf_text(&text), text.len)));
    } else {
        refuse(s, x, EBB_USAGE, "tokens must be a list of token ids of this model");
    }
    ebb_detok_free(d);
    ebb_buf_fini(&text);
}

void ebb_serve_apply_template(ebb_serve *s, ebb_http_exchange *x, const json_t *o)
{
    ebb_buf text = { 0 };
    ebb_error err = { 0 };

    if (ebb_serve_render(s, o, &text, &err) == EBB_OK)
        ebb_serve_reply_json(x, 200, json_pack("{s:o}", "prompt", json_stringn(ebb_buf_text(&text), text.len)));
    else
        ebb_serve_reply_error(s, x, &err);
    ebb_buf_fini(&text);
}

/* -- What it is ---------------------------------------------------------------------------------------------------- */

void ebb_serve_props(ebb_serve *s, ebb_http_exchange *x)
{
    const char *template = ebb_model_template(s->model, NULL);
    json_t *settings = json_pack("{s:i, s:o}", "n_ctx", (int)s->n_ctx, "params", settings_json(s, &s->sampling, 0));
    json_t *o = json_pack("{s:o, s:i, s:s, s:o, s:s}",
                          "default_generation_settings", settings, "total_slots", SERVE_SESSIONS,
                          "model_alias", s->name,
                          "chat_template", template ? ebb_json_text_or_null(template) : json_string(""),
                          "build_info", "ebb " EBB_VERSION);

    json_object_set_new(o, "ebb", ebb_serve_stats_json(s));
    ebb_serve_reply_json(x, 200, o);
}

void ebb_serve_slots(ebb_serve *s, ebb_http_exchange *x)
{
    json_t *list = json_array();
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (const ebb_served *a = s->answers; a; a = a->next)
        if ((a->state == SERVED_PREFILL || a->state == SERVED_DECODE) && !a->is_paused)
            json_array_append_new(list, json_pack("{s:i, s:i, s:b, s:i, s:i}",
                                                  "id", (int)n++, "n_ctx", (int)s->n_ctx, "is_processing", 1,
                                                  "n_prompt", (int)a->n_prompt, "n_decoded",
                                                  (int)a->stats.n_generated));
    pthread_mutex_unlock(&s->lock);
    for (; n < SERVE_SESSIONS; n++)
        json_array_append_new(list, json_pack("{s:i, s:i, s:b}", "id", (int)n, "n_ctx", (int)s->n_ctx, "is_processing",
                                              0));
    ebb_serve_reply_json(x, 200, list);
}
