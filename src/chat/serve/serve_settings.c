/* Sampling, limits and stops, as requests name them (serve_priv.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sampling_range.h"
#include "conversation/chat.h"
#include "serve/serve_priv.h"

#define AT(field) offsetof(ebb_sampler_params, field)

/* Numbers in a request, and the parameter that they set.  If a request has two names of one parameter, the later row
 * counts. */
typedef struct number_row {
    const char *name;
    size_t      at;              /* offset in ebb_sampler_params; its range: backend/sampling_range.h */
} number_row;

static const number_row numbers[] = {
    { "temperature", AT(temp) }, { "top_p", AT(top_p) }, { "min_p", AT(min_p) }, { "top_k", AT(top_k) },
    { "repetition_penalty", AT(repeat_penalty) }, { "repeat_penalty", AT(repeat_penalty) },
    { "repeat_last_n", AT(repeat_last_n) },
};

/* Parameters that would change an answer and are not supported: refused, unless they have a value that switches them
 * off. */
static const struct { const char *name; double off_from, off_to; } refused_numbers[] = {
    { "frequency_penalty", 0, 0 }, { "presence_penalty", 0, 0 }, { "n", 1, 1 }, { "best_of", 1, 1 },
    { "logprobs", 0, 0 }, { "top_logprobs", 0, 0 }, { "n_probs", 0, 0 },
    { "dynatemp_range", 0, 0 }, { "mirostat", 0, 0 },
    { "xtc_probability", 0, 0 }, { "dry_multiplier", 0, 0 }, { "typical_p", 1, 1 }, { "min_tokens", 0, 0 },
    { "top_n_sigma", -1e9, 0 },
};
static const char *const refused_things[] = { "tools", "functions", "logit_bias", "suffix", "echo", "grammar_lazy" };

/* Switches, of the request or of an object in it.  A value that is none is refused, since "false" as a text would else
 * be what was meant at one place and its opposite at the next. */
static const struct { const char *in, *name; } switches[] = {
    { NULL, "stream" }, { NULL, "ignore_eos" }, { NULL, "return_progress" }, { NULL, "return_tokens" },
    { NULL, "add_special" }, { NULL, "parse_special" }, { NULL, "with_pieces" },
    { "stream_options", "include_usage" }, { "chat_template_kwargs", "enable_thinking" },
    { "ebb", "figures" }, { "ebb", "survives" }, { "ebb", "as_alone" },
};

ebb_status ebb_serve_check_switches(const json_t *o, ebb_error *err)
{
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        const char *in = switches[i].in;
        const json_t *parent = in ? json_object_get(o, in) : o;
        const json_t *v = json_object_get(parent, switches[i].name);

        if (parent && !json_is_null(parent) && !json_is_object(parent))
            return EBB_FAIL(err, EBB_USAGE, "%s is an object", in);
        if (v && !json_is_null(v) && !json_is_boolean(v))
            return EBB_FAIL(err, EBB_USAGE, "%s%s%s is true or false", in ? in : "", in ? "." : "", switches[i].name);
    }
    return EBB_OK;
}

static ebb_status read_number(const json_t *o, const number_row *row, ebb_sampler_params *p, ebb_error *err)
{
    const json_t *v = json_object_get(o, row->name);
    const ebb_sampling_range *r = ebb_sampling_range_at(row->at);
    double x = json_number_value(v);

    if (!v || json_is_null(v))
        return EBB_OK;
    if (r->is_whole && x == -1)                  /* elsewhere: no limit */
        x = row->at == AT(top_k) ? 0 : r->max;
    if (!json_is_number(v) || !ebb_sampling_range_has(r, x) || (r->is_whole && x != floor(x)))
        return EBB_FAIL(err, EBB_USAGE, "%s is a %s from %g to %g", row->name, r->is_whole ? "whole number" : "number",
                        r->min, r->max);
    if (r->is_whole)
        *(uint32_t *)((char *)p + row->at) = (uint32_t)x;
    else
        *(float *)((char *)p + row->at) = (float)x;
    return EBB_OK;
}

static ebb_status check_refused(const json_t *o, ebb_error *err)
{
    for (size_t i = 0; i < sizeof refused_numbers / sizeof *refused_numbers; i++) {
        const json_t *v = json_object_get(o, refused_numbers[i].name);
        double x = json_number_value(v);
        bool is_off = json_is_number(v) && x >= refused_numbers[i].off_from && x <= refused_numbers[i].off_to;

        if (v && !json_is_null(v) && !json_is_false(v) && !is_off)
            return EBB_FAIL(err, EBB_UNSUPPORTED, "%s is not supported; leave it out", refused_numbers[i].name);
    }
    for (size_t i = 0; i < sizeof refused_things / sizeof *refused_things; i++) {
        const json_t *v = json_object_get(o, refused_things[i]);
        bool is_empty = (json_is_array(v) || json_is_object(v) || json_is_string(v)) &&
                        json_array_size(v) + json_object_size(v) + json_string_length(v) == 0;
        if (v && !json_is_null(v) && !json_is_false(v) && !is_empty)
            return EBB_FAIL(err, EBB_UNSUPPORTED, "%s is not supported; leave it out", refused_things[i]);
    }
    return EBB_OK;
}

/* An order of samplers, as llama-server has it: another one than that of the sampler here would change an answer. */
static ebb_status check_order(const json_t *list, ebb_error *err)
{
    ebb_buf order = { 0 };
    bool is_own;

    if (!list || json_is_null(list) || (json_is_array(list) && json_array_size(list) == 0) ||
        (json_is_string(list) && json_string_length(list) == 0))
        return EBB_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        ebb_buf_addf(&order, "%s%s", i ? ";" : "", name ? name : "?");
    }
    is_own = ebb_chat_is_sampler_order(ebb_buf_text(&order));
    ebb_buf_fini(&order);
    if (is_own)
        return EBB_OK;
    return EBB_FAIL(err, EBB_UNSUPPORTED, "samplers: only penalties, top_k, top_p, min_p, temperature, in this order, "
                    "are supported; leave it out");
}

/* Exact to the last bit: not by way of a double. */
static ebb_status read_seed(const json_t *o, ebb_sampler_params *p, ebb_error *err)
{
    const json_t *v = json_object_get(o, "seed");
    json_int_t seed = json_integer_value(v);

    if (!v || json_is_null(v))
        return EBB_OK;
    if (!json_is_integer(v) || seed < -1)
        return EBB_FAIL(err, EBB_USAGE, "seed is a whole number, 0 or -1: one from the clock");
    p->seed = seed > 0 ? (uint64_t)seed : 0;
    return EBB_OK;
}

static ebb_status read_limit(const json_t *o, ebb_serve_question *q, ebb_error *err)
{
    static const char *const names[] = { "max_tokens", "max_completion_tokens", "n_predict" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *v = json_object_get(o, names[i]);
        json_int_t n = json_integer_value(v);

        if (!v || json_is_null(v))
            continue;
        if (!json_is_integer(v) || n < -1 || n > 100000000)
            return EBB_FAIL(err, EBB_USAGE, "%s is a whole number of tokens", names[i]);
        q->n_predict = n > 0 ? (uint32_t)n : 0;
        q->predicts_nothing = n == 0;
    }
    q->ignores_end = json_is_true(json_object_get(o, "ignore_eos"));
    return EBB_OK;
}

static ebb_status add_stop(const json_t *v, ebb_serve_question *q, ebb_error *err)
{
    size_t n = json_string_length(v);

    if (!json_is_string(v) || n >= SERVE_STOP_BYTES || strlen(json_string_value(v)) != n)
        return EBB_FAIL(err, EBB_USAGE, "stop is a text of less than %d bytes, or a list of such", SERVE_STOP_BYTES);
    if (n == 0)
        return EBB_OK;
    if (q->n_stops == SERVE_STOPS)
        return EBB_FAIL(err, EBB_USAGE, "stop: at most %d", SERVE_STOPS);
    q->stops[q->n_stops] = strdup(json_string_value(v));
    return q->stops[q->n_stops++] ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
}

static ebb_status read_stops(const json_t *stop, ebb_serve_question *q, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (!stop || json_is_null(stop))
        return EBB_OK;
    if (!json_is_array(stop))
        return add_stop(stop, q, err);
    for (size_t i = 0; i < json_array_size(stop) && st == EBB_OK; i++)
        st = add_stop(json_array_get(stop, i), q, err);
    return st;
}

ebb_status ebb_serve_read_settings(ebb_serve_waiting *who, const json_t *o, ebb_serve_question *q, ebb_error *err)
{
    bool is_as_alone = json_is_true(json_object_get(json_object_get(o, "ebb"), "as_alone"));
    ebb_status st = check_refused(o, err);

    q->sampling = is_as_alone ? who->s->sampling_alone : who->s->sampling;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && st == EBB_OK; i++)
        st = read_number(o, &numbers[i], &q->sampling, err);
    if (st == EBB_OK)
        st = check_order(json_object_get(o, "samplers"), err);
    if (st == EBB_OK)
        st = read_seed(o, &q->sampling, err);
    if (st == EBB_OK)
        st = read_limit(o, q, err);
    if (st == EBB_OK)
        st = read_stops(json_object_get(o, "stop"), q, err);
    if (st == EBB_OK)
        st = ebb_serve_read_form(who, o, &q->grammar, err);
    q->survives = json_is_true(json_object_get(json_object_get(o, "ebb"), "survives"));
    return st;
}
