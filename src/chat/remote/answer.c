/* Reading answers (answer.h). */
#include "remote/answer.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "backend/figures.h"
#include "base/utf8.h"
#include "json/json_load.h"

void ebb_answer_fini(ebb_answer *a)
{
    ebb_buf_fini(&a->text);
    *a = (ebb_answer){ 0 };
}

/* -- JSON that may be anything ------------------------------------------------------------------ */

/* \uD83D and the like, half of a character: the first of a pair, or the second; 0: neither. */
static int half_at(const char *s, size_t n)
{
    if (n < 6 || s[0] != '\\' || s[1] != 'u' || (s[2] != 'd' && s[2] != 'D') || !isxdigit((unsigned char)s[3]) ||
        !isxdigit((unsigned char)s[4]) || !isxdigit((unsigned char)s[5]))
        return 0;
    return strchr("89abAB", s[3]) ? 1 : strchr("cdefCDEF", s[3]) ? 2 : 0;
}

/* Servers cut texts in UTF-16, between the two escapes of a pair: a half that stands alone becomes U+FFFD.  In JSON
 * there is no backslash outside of a string. */
static void replace_halves(char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int half = half_at(s + i, n - i);

        if (half == 1 && half_at(s + i + 6, n - i - 6) == 2)
            i += 11;
        else if (half)
            memcpy(s + i + 2, "FFFD", 4), i += 5;
        else if (s[i] == '\\')
            i++;
    }
}

/* Half a character is no reason to lose an answer.  NULL: no JSON. */
static json_t *parse_any(const char *s, size_t n)
{
    ebb_buf valid = { 0 };
    json_t *v = NULL;

    if (ebb_utf8_add_valid(&valid, s, n) && valid.len)
        replace_halves(valid.data, valid.len);
    if (!valid.failed)
        v = ebb_json_load(ebb_buf_text(&valid), valid.len, JSON_ALLOW_NUL, NULL);
    ebb_buf_fini(&valid);
    return v;
}

static json_t *parse_object(const char *s, size_t n)
{
    json_t *o = parse_any(s, n);

    if (!json_is_object(o)) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static bool get_count(const json_t *o, const char *name, uint32_t *out)
{
    const json_t *j = json_object_get(o, name);
    double v = json_number_value(j);

    if (!json_is_number(j) || !(v >= 0 && v <= UINT32_MAX))
        return false;
    *out = (uint32_t)v;
    return true;
}

/* A duration in seconds from a field in 1/unit s; 0 for values that no answer can take. */
static double get_seconds(const json_t *o, const char *name, double unit)
{
    double v = json_number_value(json_object_get(o, name)) / unit;

    return v > 0 && v < 1e7 ? v : 0;
}

static const char *get_text(const json_t *o, const char *name, size_t *n)
{
    const json_t *j = json_object_get(o, name);

    *n = json_is_string(j) ? json_string_length(j) : 0;
    return *n ? json_string_value(j) : NULL;
}

/* -- Text ------------------------------------------------------------------------------------------ */

/* A 0 would end texts elsewhere. */
static bool add_words(ebb_answer *a, const char *s, size_t n)
{
    bool ok = true;

    for (size_t at = 0, len; ok && at < n; at += len) {
        len = strnlen(s + at, n - at);
        ok = ebb_buf_add(&a->text, s + at, len);
        if (ok && at + len < n)
            ok = ebb_buf_adds(&a->text, "\uFFFD"), len++;
    }
    return ok;
}

/* Behind a part of another kind, as that ends and this one begins; behind words, too, some models think again. */
static ebb_status append_text(ebb_answer *a, const char *s, size_t n, ebb_answer_part part, ebb_error *err)
{
    static const char *const begins[] = {
        [EBB_IN_THOUGHT] = EBB_THOUGHT_BEFORE, [EBB_IN_BODY] = "", [EBB_IN_REFUSAL] = "The engine refuses: ",
    };
    bool ok = true;

    if (n == 0)
        return EBB_OK;
    a->n_text += n;
    if (a->n_text > EBB_ANSWER_BYTES)
        return EBB_FAIL(err, EBB_LIMIT, "the answer has more than %d MiB, the most that is accepted",
                        EBB_ANSWER_BYTES >> 20);
    if (a->in != part)
        ok = ebb_buf_adds(&a->text, a->in == EBB_IN_THOUGHT ? EBB_THOUGHT_BEHIND
                                    : a->in == EBB_IN_NOTHING ? "" : "\n\n") &&
             ebb_buf_adds(&a->text, begins[part]);
    a->in = part;
    return ok && add_words(a, s, n) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
}

/* What is there and cannot be read would be an answer with words left out. */
static ebb_status check_content(const json_t *content, ebb_error *err)
{
    if (!content || json_is_string(content) || json_is_null(content) ||
        (json_is_array(content) && json_array_size(content) == 0))
        return EBB_OK;
    return EBB_FAIL(err, EBB_FORMAT, "the answer's content is %s, and ebb reads text alone",
                    json_is_array(content) ? "a list of parts" : "no text");
}

static bool has_call(const json_t *message)
{
    return json_array_size(json_object_get(message, "tool_calls")) > 0 ||
           json_object_size(json_object_get(message, "function_call")) > 0;
}

/* Whichever of them the message has. */
static ebb_status add_message(ebb_answer *a, const json_t *message, ebb_error *err)
{
    static const char *const names[] = { "reasoning_content", "reasoning", "thinking" };
    const char *thought = NULL, *text, *refusal;
    size_t n_thought = 0, n_text, n_refusal;
    ebb_status st = check_content(json_object_get(message, "content"), err);

    a->has_message = a->has_message || json_is_object(message);
    a->calls_tool = a->calls_tool || has_call(message);
    for (int i = 0; i < 3 && !thought; i++)
        thought = get_text(message, names[i], &n_thought);
    text = get_text(message, "content", &n_text);
    refusal = get_text(message, "refusal", &n_refusal);
    if (st == EBB_OK && thought)
        st = append_text(a, thought, n_thought, EBB_IN_THOUGHT, err);
    if (st == EBB_OK && text)
        st = append_text(a, text, n_text, EBB_IN_BODY, err);
    if (st == EBB_OK && refusal)
        st = append_text(a, refusal, n_refusal, EBB_IN_REFUSAL, err);
    a->n_pieces += thought || text || refusal;
    return st;
}

/* -- Usage and timings ------------------------------------------------------------------------------- */

static void take_usage(ebb_answer *a, const json_t *usage)
{
    const json_t *details = json_object_get(usage, "prompt_tokens_details");

    if (!get_count(usage, "prompt_tokens", &a->n_prompt))
        return;
    a->has_usage = get_count(usage, "completion_tokens", &a->n_generated);
    a->has_cached = get_count(details, "cached_tokens", &a->n_cached) && a->n_cached <= a->n_prompt;
}

/* llama-server's `timings`, which are also sent where there is no `usage`. */
static void take_timings(ebb_answer *a, const json_t *t)
{
    uint32_t cached, computed, generated;

    a->prefill_s = get_seconds(t, "prompt_ms", 1e3);
    a->decode_s = get_seconds(t, "predicted_ms", 1e3);
    if (!get_count(t, "cache_n", &cached) || !get_count(t, "prompt_n", &computed) ||
        !get_count(t, "predicted_n", &generated) || cached > UINT32_MAX - computed)
        return;
    a->n_prompt = cached + computed;
    a->n_cached = cached;
    a->n_generated = generated;
    a->has_usage = a->has_cached = true;
}

/* What only ebb says. */
static void take_ebb(ebb_answer *a, const json_t *o)
{
    const json_t *number = json_object_get(o, "answer"), *next = json_object_get(o, "next");

    get_count(o, "reused_disk", &a->n_reused_disk);
    a->has_figures = ebb_figures_get(json_object_get(o, "figures"), &a->figures) || a->has_figures;
    if (json_integer_value(number) <= 0 || !json_is_integer(next) || json_integer_value(next) < 0)
        return;
    a->number = (uint64_t)json_integer_value(number);
    a->next = (uint64_t)json_integer_value(next);
}

static void take_progress(ebb_answer *a, const json_t *p)
{
    uint32_t total, cached = 0, done;

    if (!get_count(p, "total", &total) || !get_count(p, "processed", &done))
        return;
    get_count(p, "cache", &cached);
    if (cached > total || done > total)
        return;
    a->progress_total = total - cached;
    a->progress_done = done > cached ? done - cached : 0;
}

static bool is_one_of(const char *word, const char *const words[])
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

static void take_finish(ebb_answer *a, const char *word, size_t n)
{
    static const char *const usual[] = { "stop", NULL }, *const limits[] = { "length", "max_tokens", "model_length",
                                                                             NULL };

    if (!word)
        return;
    a->has_finish = true;
    snprintf(a->why, sizeof a->why, "%.*s", (int)(n < 40 ? n : 40), word);
    a->finish = is_one_of(a->why, limits) ? EBB_FINISH_LENGTH : EBB_FINISH_STOP;
    if (a->finish == EBB_FINISH_LENGTH || is_one_of(a->why, usual))
        a->why[0] = '\0';
}

/* -- Errors -------------------------------------------------------------------------------------------- */

/* {"error":{"message":...}}, {"error":"..."}, {"message":...}, {"detail":...}, {"detail":[{"msg":...}]},
 * {"base_resp":{"status_msg":...}} */
static const char *error_message(const json_t *o, size_t *n)
{
    const json_t *e = json_object_get(o, "error");
    const char *s = json_is_object(e) ? get_text(e, "message", n) : get_text(o, "error", n);

    if (!s)
        s = get_text(o, "message", n);
    if (!s)
        s = get_text(o, "detail", n);
    if (!s)
        s = get_text(json_array_get(json_object_get(o, "detail"), 0), "msg", n);
    return s ? s : get_text(json_object_get(o, "base_resp"), "status_msg", n);
}

/* Some have a list around it. */
void ebb_answer_error_text(const char *body, size_t n, char out[240], uint32_t *n_ctx)
{
    json_t *all = parse_any(body, n), *o = json_is_array(all) ? json_array_get(all, 0) : all;
    size_t len = 0;
    const char *s = error_message(o, &len);

    out[0] = '\0';
    *n_ctx = 0;
    if (s)
        snprintf(out, 240, "%.*s", (int)ebb_utf8_cut(s, len, 230), s);
    get_count(json_object_get(o, "error"), "n_ctx", n_ctx);
    json_decref(all);
}

uint32_t ebb_answer_error_tokens(const char *body, size_t n)
{
    json_t *o = parse_object(body, n), *e = json_object_get(o, "error");
    uint32_t n_ctx = 0, n_tokens = 0;

    get_count(e, "n_ctx", &n_ctx);
    get_count(e, "n_prompt_tokens", &n_tokens);
    json_decref(o);
    return n_ctx && n_tokens > n_ctx ? n_tokens : n_ctx;
}

static ebb_status check_error(const json_t *o, ebb_error *err)
{
    size_t n = 0;
    const char *s;

    if (!json_object_get(o, "error") && json_object_get(o, "object") == NULL)
        return EBB_OK;
    if (!json_object_get(o, "error")) {          /* SGLang's has no object around it */
        const char *kind = get_text(o, "object", &n);
        if (!kind || n != 5 || memcmp(kind, "error", 5) != 0)
            return EBB_OK;
    }
    if (json_is_null(json_object_get(o, "error")))
        return EBB_OK;
    s = error_message(o, &n);
    return EBB_FAIL(err, EBB_IO, "the server reports: %.*s", (int)(s ? n < 230 ? n : 230 : 8), s ? s : "an error");
}

/* -- Events ---------------------------------------------------------------------------------------------- */

static ebb_status no_answer(const char *s, size_t n, ebb_error *err)
{
    return EBB_FAIL(err, EBB_FORMAT, "the reply is not an answer: %.*s", (int)(n < 80 ? n : 80), s);
}

static ebb_status add_choice(ebb_answer *a, const json_t *choice, ebb_error *err)
{
    const json_t *delta = json_object_get(choice, "delta");
    size_t n;
    const char *finish;
    ebb_status st = add_message(a, json_is_object(delta) ? delta : json_object_get(choice, "message"), err);

    finish = get_text(choice, "finish_reason", &n);
    if (st == EBB_OK)
        take_finish(a, finish, n);
    return st;
}

ebb_status ebb_answer_add_chunk(ebb_answer *a, const char *event, size_t n, ebb_error *err)
{
    json_t *o, *choices;
    ebb_status st;

    if (a->is_done)
        return EBB_OK;
    while (n && strchr(" \t\r\n", event[n - 1]))
        n--;
    if (n == 6 && memcmp(event, "[DONE]", 6) == 0) {
        a->is_done = true;
        return EBB_OK;
    }
    o = parse_object(event, n);
    if (!o)
        return no_answer(event, n, err);
    st = check_error(o, err);
    choices = json_object_get(o, "choices");
    if (st == EBB_OK && json_array_size(choices))
        st = add_choice(a, json_array_get(choices, 0), err);
    if (st == EBB_OK) {
        take_usage(a, json_object_get(o, "usage"));
        if (json_is_object(json_object_get(o, "timings")))
            take_timings(a, json_object_get(o, "timings"));
        take_progress(a, json_object_get(o, "prompt_progress"));
        take_ebb(a, json_object_get(o, "ebb"));
    }
    json_decref(o);
    return st;
}

ebb_status ebb_answer_add_line(ebb_answer *a, const char *line, size_t n, ebb_error *err)
{
    json_t *o;
    size_t len;
    ebb_status st;

    if (a->is_done)
        return EBB_OK;
    o = parse_object(line, n);
    if (!o)
        return no_answer(line, n, err);
    st = check_error(o, err);
    if (st == EBB_OK)
        st = add_message(a, json_object_get(o, "message"), err);
    if (st == EBB_OK && json_is_true(json_object_get(o, "done"))) {
        const char *why = get_text(o, "done_reason", &len);
        take_finish(a, why ? why : "stop", why ? len : 4);
        a->has_usage = get_count(o, "eval_count", &a->n_generated) && get_count(o, "prompt_eval_count", &a->n_prompt);
        a->prefill_s = get_seconds(o, "prompt_eval_duration", 1e9);
        a->decode_s = get_seconds(o, "eval_duration", 1e9);
        a->is_done = true;
    }
    json_decref(o);
    return st;
}

ebb_status ebb_answer_check_finish(const ebb_answer *a, ebb_error *err)
{
    static const char *const filters[] = { "content_filter", NULL }, *const tools[] = { "tool_calls", "function_call",
                                                                                       NULL },
                      *const failures[] = { "error", "insufficient_system_resource", NULL };

    if (is_one_of(a->why, filters))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "its filter has cut the answer off (%s)", a->why);
    if (is_one_of(a->why, tools) || (a->calls_tool && a->finish != EBB_FINISH_LENGTH))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the model calls a tool, and ebb has none for it (%s)",
                        a->why[0] ? a->why : tools[0]);
    if (is_one_of(a->why, failures))
        return EBB_FAIL(err, EBB_IO, "the server could not go on with the answer (%s)", a->why);
    return EBB_OK;
}

void ebb_answer_end(ebb_answer *a)
{
    if (a->in == EBB_IN_THOUGHT && a->has_finish)
        ebb_buf_adds(&a->text, EBB_THOUGHT_BEHIND), a->in = EBB_IN_BODY;
}
