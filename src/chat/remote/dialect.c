/* Requests, by the kind of server (dialect.h). */
#include "remote/dialect.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sampling_bits.h"
#include "json/json_text.h"
#include "tree/thought.h"

#define CHAT "/v1/chat/completions"

enum {
    OF_OPENAI = EBB_SAMPLING_BIT(temp) | EBB_SAMPLING_BIT(top_p),
    OF_VLLM = OF_OPENAI | EBB_SAMPLING_BIT(top_k) | EBB_SAMPLING_BIT(min_p) | EBB_SAMPLING_BIT(repeat_penalty),
    ALL = OF_VLLM | EBB_SAMPLING_BIT(repeat_last_n),
};

static const ebb_dialect dialects[EBB_SERVER_COUNT] = {
    [EBB_SERVER_ANY] = { .name = "an OpenAI-style server", .path = CHAT, .sampling = OF_OPENAI },
    [EBB_SERVER_OPENAI] = { .name = "OpenAI", .path = CHAT, .sampling = OF_OPENAI },
    [EBB_SERVER_LLAMA] = { .name = "llama-server", .path = CHAT, .can_continue = true, .has_progress = true,
                           .sampling = ALL, .has_thinking = true, .has_grammar = true,
                           .thoughts = "reasoning_content" },
    [EBB_SERVER_VLLM] = { .name = "vLLM", .path = CHAT, .can_continue = true, .sampling = OF_VLLM,
                          .has_thinking = true,
                          .thoughts = "reasoning", .cached_hint = "--enable-prompt-tokens-details" },
    [EBB_SERVER_SGLANG] = { .name = "SGLang", .path = CHAT, .can_continue = true, .sampling = OF_VLLM,
                            .has_thinking = true,
                            .thoughts = "reasoning_content", .cached_hint = "--enable-cache-report" },
    [EBB_SERVER_OLLAMA] = { .name = "Ollama", .path = "/api/chat", .is_lines = true, .can_continue = true,
                            .sampling = ALL, .has_thinking = true, .thoughts = "thinking",
                            .context_hint = "context = N in the file of engines, or OLLAMA_CONTEXT_LENGTH" },
    [EBB_SERVER_LM_STUDIO] = { .name = "LM Studio", .path = CHAT, .sampling = ALL,
                               .thoughts = "reasoning_content" },
    [EBB_SERVER_EBB] = { .name = "ebb serve", .path = CHAT, .can_continue = true, .has_progress = true,
                         .sampling = ALL, .has_thinking = true, .has_grammar = true,
                         .continues_form = true, .finds_thoughts = true, .thoughts = "reasoning_content" },
};

/* As they are written in the file of engines. */
static const char *const kind_names[EBB_SERVER_COUNT] = {
    [EBB_SERVER_ANY] = "auto", [EBB_SERVER_OPENAI] = "openai", [EBB_SERVER_LLAMA] = "llama-server",
    [EBB_SERVER_VLLM] = "vllm",
    [EBB_SERVER_SGLANG] = "sglang", [EBB_SERVER_OLLAMA] = "ollama", [EBB_SERVER_LM_STUDIO] = "lm-studio",
    [EBB_SERVER_EBB] = "ebb",
};

const ebb_dialect *ebb_dialect_of(ebb_server_kind kind)
{
    return &dialects[kind < EBB_SERVER_COUNT ? kind : EBB_SERVER_ANY];
}

ebb_server_kind ebb_server_kind_parse(const char *name)
{
    for (int i = 0; i < EBB_SERVER_COUNT; i++)
        if (strcmp(kind_names[i], name) == 0)
            return (ebb_server_kind)i;
    return EBB_SERVER_COUNT;
}

/* -- Messages ------------------------------------------------------------------------------ */

/* Is the thought in the text with all its marks, as the model wrote it?  Where the prompt had opened it, it is not. */
static bool is_written_out(const ebb_prompt_message *m)
{
    ebb_thought t = ebb_thought_find(m->text, m->n_text, EBB_THOUGHT_UNOPENED, true);

    return !t.is_open && t.start == m->thought.start && t.end == m->thought.end && t.body == m->thought.body;
}

/* A thought is sent in a field of its own, or not at all: templates drop earlier thoughts.  An ebb gets the answer that
 * its template would get here; one that is to go on stands behind a prompt that may have opened the thought. */
static json_t *one_message(const ebb_dialect *d, const ebb_prompt_message *m, bool goes_on)
{
    ebb_thought t = m->thought;
    json_t *o = json_object();

    if (d->finds_thoughts && !goes_on && is_written_out(m))
        t = (ebb_thought){ 0 };
    if (t.end > t.start && m->text[t.end - 1] == '\n')
        t.end--;                                 /* the mark has a line of its own */
    json_object_set_new(o, "role", json_string(ebb_role_name(m->role)));
    json_object_set_new(o, "content", ebb_json_text(m->text + t.body, m->n_text - t.body));
    if (t.end > t.start && d->thoughts)
        json_object_set_new(o, d->thoughts, ebb_json_text(m->text + t.start, t.end - t.start));
    return o;
}

static json_t *all_messages(const ebb_dialect *d, const ebb_ask *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < a->n_messages; i++)
        json_array_append_new(list, one_message(d, &a->messages[i], a->continues && i + 1 == a->n_messages));
    return list;
}

/* -- Numbers ------------------------------------------------------------------------------- */

/* 0.7 and not the float's own digits. */
static json_t *real_of(float x)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", (double)x);
    return json_real(strtod(text, NULL));
}

/* The same numbers have other names at Ollama and vLLM. */
static void put_sampling(json_t *o, const ebb_ask *a, const ebb_dialect *d)
{
    const ebb_sampler_params *s = &a->sampling;
    uint32_t sent = a->chosen & d->sampling;
    bool is_vllm = a->kind == EBB_SERVER_VLLM || a->kind == EBB_SERVER_SGLANG;

    if (sent & EBB_SAMPLING_BIT(temp))
        json_object_set_new(o, "temperature", real_of(s->temp));
    if (sent & EBB_SAMPLING_BIT(top_p))
        json_object_set_new(o, "top_p", real_of(s->top_p));
    if (s->seed)                                 /* with ebb the text is that of this process */
        json_object_set_new(o, "seed", json_integer((json_int_t)(a->kind == EBB_SERVER_EBB ? s->seed
                                                                                         : s->seed & INT32_MAX)));
    if (sent & EBB_SAMPLING_BIT(top_k))
        json_object_set_new(o, "top_k", json_integer(is_vllm && !s->top_k ? -1 : (json_int_t)s->top_k));
    if (sent & EBB_SAMPLING_BIT(min_p))
        json_object_set_new(o, "min_p", real_of(s->min_p));
    if (sent & EBB_SAMPLING_BIT(repeat_penalty))
        json_object_set_new(o, is_vllm ? "repetition_penalty" : "repeat_penalty", real_of(s->repeat_penalty));
    if (sent & EBB_SAMPLING_BIT(repeat_last_n))
        json_object_set_new(o, "repeat_last_n", json_integer(s->repeat_last_n));
}

static void put_chat(json_t *o, const ebb_ask *a, const ebb_dialect *d)
{
    bool is_vllm = a->kind == EBB_SERVER_VLLM || a->kind == EBB_SERVER_SGLANG;

    if (!a->no_usage)
        json_object_set_new(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    if (a->n_predict)
        json_object_set_new(o, a->kind == EBB_SERVER_OPENAI ? "max_completion_tokens" : "max_tokens",
                            json_integer(a->n_predict));
    put_sampling(o, a, d);
    if (d->has_progress)
        json_object_set_new(o, "return_progress", json_true());
    if (d->has_thinking && a->thinking != EBB_THINKING_DEFAULT)
        json_object_set_new(o, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", a->thinking == EBB_THINKING_ON));
    if (a->grammar)
        json_object_set_new(o, "grammar", ebb_json_text(a->grammar, strlen(a->grammar)));
    if (a->kind == EBB_SERVER_EBB)
        json_object_set_new(o, "ebb", json_pack("{s:b, s:b, s:b}", "survives", (int)a->survives, "figures", 1,
                                                "as_alone", (int)a->as_alone));
    if (a->continues && is_vllm) {
        json_object_set_new(o, "continue_final_message", json_true());
        json_object_set_new(o, "add_generation_prompt", json_false());
    }
}

/* Without truncate and shift, what does not fit is an error instead of a gap nobody hears of. */
static void put_ollama(json_t *o, const ebb_ask *a, const ebb_dialect *d)
{
    json_t *options = json_object();

    put_sampling(options, a, d);
    if (a->n_predict)
        json_object_set_new(options, "num_predict", json_integer(a->n_predict));
    if (a->n_ctx)
        json_object_set_new(options, "num_ctx", json_integer(a->n_ctx));
    json_object_set_new(o, "options", options);
    json_object_set_new(o, "truncate", json_false());
    json_object_set_new(o, "shift", json_false());
    if (a->thinking != EBB_THINKING_DEFAULT)
        json_object_set_new(o, "think", json_boolean(a->thinking == EBB_THINKING_ON));
}

ebb_status ebb_ask_json(const ebb_ask *a, ebb_buf *out, ebb_error *err)
{
    const ebb_dialect *d = ebb_dialect_of(a->kind);
    json_t *o = json_object();
    char *text;

    if (a->model && *a->model)
        json_object_set_new(o, "model", ebb_json_text(a->model, strlen(a->model)));
    json_object_set_new(o, "messages", all_messages(d, a));
    json_object_set_new(o, "stream", json_true());
    if (a->kind == EBB_SERVER_OLLAMA)
        put_ollama(o, a, d);
    else
        put_chat(o, a, d);
    text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(o);
    if (!text || !ebb_buf_adds(out, text)) {
        free(text);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
    }
    free(text);
    return EBB_OK;
}
