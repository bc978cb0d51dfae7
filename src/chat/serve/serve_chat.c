/* Answers as OpenAI's clients know them (serve_priv.h). */
#include <stdio.h>
#include <time.h>

#include "serve/serve_priv.h"

/* -- What the forms share ------------------------------------------------------------------------ */

static const char *finish_of(const ebb_served *a)
{
    return a->finish == EBB_FINISH_LENGTH ? "length" : "stop";
}

static json_t *begin_object(const ebb_serve *s, const ebb_served *a, const char *object)
{
    char id[48];

    snprintf(id, sizeof id, "%s-%llu", object[0] == 't' ? "cmpl" : "chatcmpl", (unsigned long long)a->number);
    return json_pack("{s:s, s:s, s:I, s:s}", "id", id, "object", object, "created", (json_int_t)time(NULL), "model",
                     s->name);
}

/* What a stream ends with if its client asked for the usage. */
static json_t *usage_chunk(const ebb_serve *s, const ebb_served *a, const char *object)
{
    json_t *o = begin_object(s, a, object);

    json_object_set_new(o, "choices", json_array());
    json_object_set_new(o, "usage", ebb_serve_usage(a));
    return o;
}

/* -- Chat completions ---------------------------------------------------------------------------- */

static json_t *chat_chunk(const ebb_serve *s, const ebb_served *a, json_t *delta, const char *finish)
{
    json_t *o = begin_object(s, a, "chat.completion.chunk");

    json_object_set_new(o, "choices",
                        json_pack("[{s:i, s:o, s:s?}]", "index", 0, "delta", delta, "finish_reason", finish));
    return o;
}

static json_t *chat_piece(const ebb_serve *s, const ebb_served *a, bool is_first, const char *text, size_t n,
                          size_t ids_from, size_t ids_end, uint32_t flags)
{
    json_t *delta = json_object();

    (void)ids_from, (void)ids_end, (void)flags;
    if (is_first)
        json_object_set_new(delta, "role", json_string("assistant"));
    json_object_set_new(delta, "content", json_stringn(text, n));
    return chat_chunk(s, a, delta, NULL);
}

static json_t *chat_last(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = chat_chunk(s, a, json_object(), finish_of(a));

    (void)flags;
    ebb_serve_put_figures(o, a);
    return o;
}

static json_t *chat_usage(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    (void)flags;
    return usage_chunk(s, a, "chat.completion.chunk");
}

static json_t *chat_progress(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = begin_object(s, a, "chat.completion.chunk");

    (void)flags;
    json_object_set_new(o, "choices", json_pack("[{s:i, s:{}, s:n}]", "index", 0, "delta", "finish_reason"));
    ebb_serve_put_progress(o, a);
    return o;
}

static json_t *chat_whole(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = begin_object(s, a, "chat.completion");
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content",
                                json_stringn(ebb_buf_text(&a->text), a->text.len));

    (void)flags;
    json_object_set_new(o, "choices", json_pack("[{s:i, s:o, s:n, s:s}]", "index", 0, "message", message, "logprobs",
                                                "finish_reason", finish_of(a)));
    json_object_set_new(o, "usage", ebb_serve_usage(a));
    ebb_serve_put_figures(o, a);
    return o;
}

static const ebb_serve_form chat_form = {
    .piece = chat_piece, .last = chat_last, .usage = chat_usage, .whole = chat_whole, .progress = chat_progress,
    .has_done = true,
};

/* -- Completions of a text ----------------------------------------------------------------------- */

static json_t *text_object(const ebb_serve *s, const ebb_served *a, const char *text, size_t n, const char *finish)
{
    json_t *o = begin_object(s, a, "text_completion");

    json_object_set_new(o, "choices", json_pack("[{s:i, s:o, s:n, s:s?}]", "index", 0, "text", json_stringn(text, n),
                                                "logprobs", "finish_reason", finish));
    return o;
}

static json_t *text_piece(const ebb_serve *s, const ebb_served *a, bool is_first, const char *text, size_t n,
                          size_t ids_from, size_t ids_end, uint32_t flags)
{
    (void)ids_from, (void)ids_end, (void)flags;
    return is_first ? NULL : text_object(s, a, text, n, NULL);
}

static json_t *text_last(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = text_object(s, a, "", 0, finish_of(a));

    (void)flags;
    ebb_serve_put_figures(o, a);
    return o;
}

static json_t *text_usage(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    (void)flags;
    return usage_chunk(s, a, "text_completion");
}

static json_t *text_whole(const ebb_serve *s, const ebb_served *a, uint32_t flags)
{
    json_t *o = text_object(s, a, ebb_buf_text(&a->text), a->text.len, finish_of(a));

    (void)flags;
    json_object_set_new(o, "usage", ebb_serve_usage(a));
    ebb_serve_put_figures(o, a);
    return o;
}

static const ebb_serve_form text_form = { .piece = text_piece, .last = text_last, .usage = text_usage,
                                          .whole = text_whole, .has_done = true };

/* -- Requests ------------------------------------------------------------------------------------ */

static uint32_t flags_of(const json_t *o)
{
    const json_t *own = json_object_get(o, "ebb");

    return (json_is_true(json_object_get(own, "figures")) ? SERVE_FIGURES : 0) |
           (json_is_true(json_object_get(json_object_get(o, "stream_options"), "include_usage")) ? SERVE_USAGE : 0) |
           (json_is_true(json_object_get(o, "return_progress")) ? SERVE_PROGRESS : 0);
}

/* What all forms have beside their question. */
static ebb_status read_rest(ebb_serve_waiting *who, const json_t *o, const ebb_serve_form *form,
                            ebb_serve_asked *asked, ebb_error *err)
{
    asked->form = form;
    asked->streams = json_is_true(json_object_get(o, "stream"));
    asked->flags = flags_of(o);
    return ebb_serve_read_settings(who, o, &asked->q, err);
}

ebb_status ebb_serve_chat_completions(ebb_serve_waiting *who, const json_t *o, ebb_serve_asked *asked, ebb_error *err)
{
    ebb_status st = ebb_serve_read_messages(who, o, &asked->q, err);

    return st == EBB_OK ? read_rest(who, o, &chat_form, asked, err) : st;
}

ebb_status ebb_serve_completions(ebb_serve_waiting *who, const json_t *o, ebb_serve_asked *asked, ebb_error *err)
{
    ebb_status st = ebb_serve_read_prompt(who, json_object_get(o, "prompt"), &asked->q, err);

    return st == EBB_OK ? read_rest(who, o, &text_form, asked, err) : st;
}

void ebb_serve_resume(ebb_serve *s, ebb_http_exchange *x, uint64_t number, size_t from)
{
    ebb_serve_follow(s, x, number, from, &chat_form, SERVE_USAGE | SERVE_PROGRESS | SERVE_FIGURES);
}
