/* What requests say, as ids (serve_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "prompt/prompt_render.h"
#include "serve/serve_priv.h"

enum { MAX_MESSAGES = 10000 };

static ebb_status check_text(size_t n, ebb_error *err)
{
    return n > SERVE_TEXT ? EBB_FAIL(err, EBB_USAGE, "the request has %zu bytes of text; %d at most are accepted", n,
                                     SERVE_TEXT) : EBB_OK;
}

/* -- Messages ---------------------------------------------------------------------------------------- */

typedef struct messages {
    ebb_message        *list;
    const ebb_message **pointers;
    ebb_prompt_thought *thoughts;        /* texts of the request */
    size_t              n;
} messages;

static void messages_fini(messages *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->list[i].text);
    free(m->list);
    free(m->pointers);
    free(m->thoughts);
    *m = (messages){ 0 };
}

static const struct { const char *name; ebb_role role; } roles[] = {
    { "user", EBB_ROLE_USER }, { "assistant", EBB_ROLE_ASSISTANT }, { "system", EBB_ROLE_SYSTEM },
        { "developer", EBB_ROLE_SYSTEM },
};

static ebb_status read_role(const json_t *o, ebb_role *role, ebb_error *err)
{
    const char *name = json_string_value(json_object_get(o, "role"));

    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].name, name) == 0) {
            *role = roles[i].role;
            return EBB_OK;
        }
    return EBB_FAIL(err, name ? EBB_UNSUPPORTED : EBB_USAGE, "a message has a role: user, assistant or system%s",
                    name ? "; others are not supported" : "");
}

/* A text, or a list of parts that are texts. */
static ebb_status read_content(const json_t *content, ebb_buf *out, ebb_error *err)
{
    if (json_is_string(content)) {
        ebb_buf_add(out, json_string_value(content), json_string_length(content));
        return EBB_OK;
    }
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));

        if (!type || strcmp(type, "text") != 0 || !json_is_string(text))
            return EBB_FAIL(err, EBB_UNSUPPORTED, "only text is supported as a part of a message");
        ebb_buf_add(out, json_string_value(text), json_string_length(text));
    }
    if (content && !json_is_null(content) && !json_is_array(content))
        return EBB_FAIL(err, EBB_USAGE, "the content of a message is a text or a list of parts");
    return EBB_OK;
}

static ebb_status read_thought(const json_t *o, ebb_role role, ebb_prompt_thought *out, ebb_error *err)
{
    const json_t *thought = json_object_get(o, "reasoning_content");

    if (thought && !json_is_null(thought) && !json_is_string(thought))
        return EBB_FAIL(err, EBB_USAGE, "the reasoning_content of a message is a text");
    if (role == EBB_ROLE_ASSISTANT && json_string_length(thought))
        *out = (ebb_prompt_thought){ json_string_value(thought), json_string_length(thought) };
    return EBB_OK;
}

static ebb_status read_message(const json_t *o, ebb_message *m, ebb_prompt_thought *thought, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = read_role(o, &m->role, err);

    m->finish = EBB_FINISH_STOP;
    if (st == EBB_OK)
        st = read_thought(o, m->role, thought, err);
    if (st == EBB_OK)
        st = read_content(json_object_get(o, "content"), &text, err);
    m->n_text = text.len;
    if (st == EBB_OK && (text.failed || !ebb_buf_reserve(&text, 1) || !(m->text = ebb_buf_take(&text))))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a message");
    ebb_buf_fini(&text);
    return st;
}

static ebb_status read_all_messages(const json_t *list, messages *m, ebb_error *err)
{
    size_t n = json_array_size(list), n_text = 0;
    ebb_status st = EBB_OK;

    if (!json_is_array(list) || n == 0 || n > MAX_MESSAGES)
        return EBB_FAIL(err, EBB_USAGE, "messages is a list of one message at least, and of %d at most", MAX_MESSAGES);
    m->list = calloc(n, sizeof *m->list);
    m->pointers = calloc(n, sizeof *m->pointers);
    m->thoughts = calloc(n, sizeof *m->thoughts);
    if (!m->list || !m->pointers || !m->thoughts)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for messages");
    for (size_t i = 0; i < n && st == EBB_OK; i++) {
        m->pointers[i] = &m->list[i];
        m->n = i + 1;
        st = read_message(json_array_get(list, i), &m->list[i], &m->thoughts[i], err);
        n_text += m->list[i].n_text + m->thoughts[i].n;
    }
    return st == EBB_OK ? check_text(n_text, err) : st;
}

/* -- Variables of the template ----------------------------------------------------------------------- */

/* What a template prints of it can be no mark of anything. */
static bool is_harmless(const json_t *v)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *s = json_string_value(v);

    return json_is_boolean(v) || json_is_number(v) || json_is_null(v) ||
           (s && strspn(s, letters) == json_string_length(v));
}

static ebb_status add_variable(const ebb_serve *s, const char *name, json_t *v, json_t *out, ebb_error *err)
{
    static const char *const own[] = { "messages", "bos_token", "eos_token", "tools", "documents",
                                       "add_generation_prompt" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0)
            return EBB_FAIL(err, EBB_UNSUPPORTED, "chat_template_kwargs: ebb sets %s itself; leave it out", name);
    if (!is_harmless(v))
        return EBB_FAIL(err, EBB_USAGE, "%.60s is a word, a number, true or false", name);
    if (!ebb_prompter_reads(s->prompter, name))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%.60s is unknown to this model's chat template; leave it out", name);
    return json_object_set(out, name, v) == 0 ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
}

/* *out: what a request sets in the template beside enable_thinking.  What the template does not read is refused: it
 * was to change the answer. */
static ebb_status read_variables(const ebb_serve *s, const json_t *o, json_t **out, ebb_error *err)
{
    json_t *kwargs = json_object_get(o, "chat_template_kwargs"), *effort = json_object_get(o, "reasoning_effort"), *v;
    ebb_status st = EBB_OK;
    const char *name;

    *out = json_object();
    if (!*out)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
    if (effort && !json_is_null(effort))
        st = add_variable(s, "reasoning_effort", effort, *out, err);
    json_object_foreach(kwargs, name, v) {
        if (st == EBB_OK && strcmp(name, "enable_thinking") != 0)
            st = add_variable(s, name, v, *out, err);
    }
    return st;
}

static ebb_prompt_opts opts_of(const json_t *o)
{
    const json_t *thinks = json_object_get(json_object_get(o, "chat_template_kwargs"), "enable_thinking");

    /* A thought is of no form. */
    if (ebb_serve_has_form(o))
        return (ebb_prompt_opts){ .thinking = EBB_THINKING_OFF };
    return (ebb_prompt_opts){ .thinking = json_is_true(thinks) ? EBB_THINKING_ON : json_is_false(thinks)
                              ? EBB_THINKING_OFF : EBB_THINKING_DEFAULT };
}

static ebb_status make_prompt(const ebb_serve *s, const messages *m, const ebb_prompt_opts *opts,
                              ebb_serve_question *q, ebb_error *err)
{
    bool continues = m->list[m->n - 1].role == EBB_ROLE_ASSISTANT;
    ebb_prompt p = { 0 };
    ebb_status st = ebb_prompt_delta(s->prompter, m->pointers, m->n, opts, &p, err);

    if (st == EBB_OK) {
        q->ids = p.ids;
        q->n_ids = p.n_ids;
        q->n_suffix = p.n_suffix;
        q->n_answer = continues ? p.n_ids_of[m->n - 1] : 0;
        p.ids = NULL;
    }
    ebb_prompt_fini(&p);
    return st;
}

/* What the prompt of a request is made of. */
typedef struct conversation {
    messages        m;
    json_t         *variables;
    ebb_prompt_opts opts;        /* that lead to them */
} conversation;

static ebb_status read_conversation(const ebb_serve *s, const json_t *o, conversation *c, ebb_error *err)
{
    ebb_status st = read_all_messages(json_object_get(o, "messages"), &c->m, err);

    if (st == EBB_OK)
        st = read_variables(s, o, &c->variables, err);
    c->opts = opts_of(o);
    c->opts.thoughts = c->m.thoughts;
    c->opts.variables = c->variables;
    return st;
}

static void conversation_fini(conversation *c)
{
    json_decref(c->variables);
    messages_fini(&c->m);
}

ebb_status ebb_serve_read_messages(ebb_serve_waiting *who, const json_t *o, ebb_serve_question *q, ebb_error *err)
{
    conversation c = { 0 };
    ebb_status st = read_conversation(who->s, o, &c, err);

    c.opts.stop = ebb_serve_stops_waiting;
    c.opts.stop_arg = who;
    if (st == EBB_OK)
        st = make_prompt(who->s, &c.m, &c.opts, q, err);
    conversation_fini(&c);
    return st;
}

/* The last message, if it is an answer that goes on: its text stands behind the prompt, in no frame (prompt.c).  One
 * whose thought came apart is printed as the template has it. */
static const ebb_message *open_answer(const messages *m)
{
    const ebb_message *last = m->pointers[m->n - 1];

    return last->role == EBB_ROLE_ASSISTANT && m->thoughts[m->n - 1].n == 0 ? last : NULL;
}

ebb_status ebb_serve_render(ebb_serve *s, const json_t *o, ebb_buf *out, ebb_error *err)
{
    conversation c = { 0 };
    const ebb_message *open = NULL;
    ebb_rendering r = { 0 };
    ebb_status st = read_conversation(s, o, &c, err);
    ebb_render_job job;

    if (st == EBB_OK)
        open = open_answer(&c.m);
    job = (ebb_render_job){ .messages = c.m.pointers, .n = c.m.n - (open != NULL), .opts = &c.opts };
    if (st == EBB_OK)
        st = ebb_prompt_render_or_merge(s->prompter, &job, &r, err);
    if (st == EBB_OK && (!ebb_buf_add(out, ebb_buf_text(&r.text), r.text.len) ||
                         (open && !ebb_buf_add(out, open->text, open->n_text))))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    ebb_rendering_fini(&r);
    conversation_fini(&c);
    return st;
}

/* -- Prompts ------------------------------------------------------------------------------------------- */

static ebb_status tokenize_prompt(ebb_serve_waiting *who, const json_t *text, ebb_serve_question *q, ebb_error *err)
{
    ebb_tokenize_opts how = { .flags = EBB_TOK_BOS | EBB_TOK_SPECIAL, .stop = ebb_serve_stops_waiting,
                              .stop_arg = who };
    size_t n_text = json_string_length(text), cap = n_text + 8;
    ebb_status st = check_text(n_text, err);

    if (st != EBB_OK)
        return st;
    q->ids = malloc(cap * sizeof *q->ids);
    if (!q->ids)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    st = ebb_model_tokenize_with(who->s->model, json_string_value(text), n_text, &how, q->ids, cap, &q->n_ids, err);
    return st == EBB_OK && q->n_ids > cap ? EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt") : st;
}

ebb_status ebb_serve_read_prompt(ebb_serve_waiting *who, const json_t *prompt, ebb_serve_question *q, ebb_error *err)
{
    json_int_t n_vocab = ebb_model_get_info(who->s->model)->n_vocab;
    size_t n = json_array_size(prompt);

    if (n == 1 && (json_is_string(json_array_get(prompt, 0)) || json_is_array(json_array_get(prompt, 0))))
        return ebb_serve_read_prompt(who, json_array_get(prompt, 0), q, err);
    if (json_is_string(prompt))
        return tokenize_prompt(who, prompt, q, err);
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "prompt is a text, or a list of token ids");
    q->ids = malloc(n * sizeof *q->ids);
    if (!q->ids)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(prompt, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= n_vocab)
            return EBB_FAIL(err, EBB_USAGE, "prompt is one text, or a list of token ids from 0 to %lld",
                            (long long)n_vocab - 1);
        q->ids[q->n_ids++] = (int32_t)json_integer_value(id);
    }
    return EBB_OK;
}
