/* The settings of a session by name: /set, and what the store keeps of them. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sampling_range.h"
#include "base/utf8.h"
#include "conversation/chat_priv.h"
#include "conversation/template_choice.h"
#include "ebb/experimental/inspect.h"
#include "json/json_load.h"

typedef enum kind { FLOAT, UINT32, UINT64, CHOICE } kind;

typedef struct setting {
    const char *name, *help;
    kind        kind;
    size_t      at;              /* offset in ebb_chat_settings */
    double      min, max;        /* of numbers that have no range in backend/sampling_range.h; a whole
                                  * one above 2^53 - 1 would be rounded */
    const char *key;             /* where a model's file recommends a value; NULL: it cannot */
} setting;

#define AT(setting_field) offsetof(ebb_chat_settings, setting_field)
#define ADVICE(name) "general.sampling." name

/* EBB_SAMPLING_BIT_AT(AT(...)) is the bit of a field of ebb_sampler_params, or of n_predict. */
_Static_assert(AT(sampling) == 0 && AT(n_predict) == sizeof(ebb_sampler_params), "bits of sampling");

/* The enums of a CHOICE, which are all ints of this size. */
_Static_assert(sizeof(ebb_thinking) == sizeof(uint32_t) && sizeof(ebb_overflow_policy) == sizeof(uint32_t) &&
               sizeof(ebb_speculative_prefill) == sizeof(uint32_t), "a choice");

static const char *const thinking_names[] = {
    [EBB_THINKING_DEFAULT] = "default", [EBB_THINKING_ON] = "on", [EBB_THINKING_OFF] = "off", NULL,
};

static const setting settings[] = {
    { "temp", "how freely words are chosen; 0: always the likeliest", FLOAT, AT(sampling.temp), 0, 0,
      ADVICE("temp") },
    { "top-k", "choose among this many of the likeliest tokens; 0: no limit", UINT32, AT(sampling.top_k), 0, 0,
      ADVICE("top_k") },
    { "top-p", "choose among the likeliest tokens that together have this probability; 1: off", FLOAT,
      AT(sampling.top_p), 0, 0, ADVICE("top_p") },
    { "min-p", "leave out tokens below this share of the likeliest one's probability; 0: off", FLOAT,
      AT(sampling.min_p), 0, 0, ADVICE("min_p") },
    { "repeat-penalty", "above 1, recently used tokens become less likely; 1: off", FLOAT, AT(sampling.repeat_penalty),
      0, 0, ADVICE("penalty_repeat") },
    { "repeat-last", "how many tokens back the penalty looks", UINT32, AT(sampling.repeat_last_n), 0, 0,
      ADVICE("penalty_last_n") },
    { "seed", "the same seed gives the same answer; 0: a new one each time", UINT64, AT(sampling.seed), 0,
      9007199254740991.0, NULL },
    { "predict", "the most tokens of one answer; 0: until the context is full", UINT32, AT(n_predict), 0, 1e9, NULL },
    { "thinking", "whether the model thinks first, if its template offers the choice", CHOICE, AT(thinking), 0, 0,
      NULL },
    { "overflow", "when the context is full: ask you, forget the oldest turns, sum them up, make it larger, stop, or "
                  "let the oldest tokens slide out",
      CHOICE, AT(overflow), 0, 0, NULL },
    { "prefill", "whether the model reads your question while you type it", CHOICE, AT(prefill), 0, 0, NULL },
};

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

const char *ebb_chat_setting_name(size_t i)
{
    return i < N_SETTINGS ? settings[i].name : NULL;
}

/* What other programs and the command line call them. */
static const char *const setting_aliases[][2] = {
    { "temperature", "temp" }, { "t", "temp" }, { "top_k", "top-k" }, { "top_p", "top-p" }, { "min_p", "min-p" },
    { "repeat_penalty", "repeat-penalty" }, { "repeat_last_n", "repeat-last" }, { "repeat_last", "repeat-last" },
    { "num_predict", "predict" }, { "n_predict", "predict" }, { "n-predict", "predict" }, { "max_tokens", "predict" },
    { "think", "thinking" },
};

static const setting *find_setting(const char *name)
{
    for (size_t i = 0; i < sizeof setting_aliases / sizeof *setting_aliases; i++)
        if (strcmp(setting_aliases[i][0], name) == 0)
            name = setting_aliases[i][1];
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
}

/* Of a CHOICE: the values of the enum, in order, up to a NULL. */
static const char *const *names_of(const setting *s)
{
    static const char *const on_off[] = { [EBB_SPECULATIVE_PREFILL_ON] = "on",
                                          [EBB_SPECULATIVE_PREFILL_OFF] = "off", NULL };

    return s->at == AT(overflow) ? ebb_overflow_policy_names : s->at == AT(prefill) ? on_off : thinking_names;
}

/* Of a number. */
static ebb_sampling_range range_of(const setting *s)
{
    const ebb_sampling_range *shared = ebb_sampling_range_at(s->at);

    return shared ? *shared : (ebb_sampling_range){ .min = s->min, .max = s->max };
}

static bool is_in_range(const setting *s, double x)
{
    ebb_sampling_range r = range_of(s);
    size_t n = 0;

    if (s->kind != CHOICE)
        return ebb_sampling_range_has(&r, x);
    while (names_of(s)[n])
        n++;
    return x >= 0 && x < (double)n;
}

static void *setting_field(const setting *s, ebb_chat_settings *v)
{
    return (char *)v + s->at;
}

static double get_setting(const setting *s, const ebb_chat_settings *v)
{
    const void *p = (const char *)v + s->at;

    switch (s->kind) {
    case FLOAT: return (double)*(const float *)p;
    case UINT32: return *(const uint32_t *)p;
    case UINT64: return (double)*(const uint64_t *)p;
    case CHOICE: return *(const int *)p;
    }
    return 0;
}

static void put_setting(const setting *s, ebb_chat_settings *v, double x)
{
    switch (s->kind) {
    case FLOAT: *(float *)setting_field(s, v) = (float)x; break;
    case UINT32: *(uint32_t *)setting_field(s, v) = (uint32_t)x; break;
    case UINT64: *(uint64_t *)setting_field(s, v) = (uint64_t)x; break;
    case CHOICE: *(int *)setting_field(s, v) = (int)x; break;
    }
    v->is_set |= 1u << (s - settings);
}

/* A seed of the command line may have more digits than a double. */
static void copy_setting(const setting *s, ebb_chat_settings *to, const ebb_chat_settings *from)
{
    size_t n = s->kind == UINT64 ? sizeof(uint64_t) : sizeof(uint32_t);

    memcpy(setting_field(s, to), (const char *)from + s->at, n);
}

/* A value as the user writes it; false: not one of this setting's. */
static bool parse_setting(const setting *s, const char *text, double *x)
{
    char *end;

    if (s->kind == CHOICE) {
        for (int i = 0; names_of(s)[i]; i++)
            if (strcmp(text, names_of(s)[i]) == 0) {
                *x = i;
                return true;
            }
        return false;
    }
    errno = 0;
    *x = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && is_in_range(s, *x) &&
           (s->kind == FLOAT || *x == floor(*x));
}

static void print_value(const setting *s, const ebb_chat_settings *v, char *out, size_t cap)
{
    if (s->kind == CHOICE)
        snprintf(out, cap, "%s", names_of(s)[(int)get_setting(s, v)]);
    else if (s->kind == UINT64)
        snprintf(out, cap, "%" PRIu64, *(const uint64_t *)((const char *)v + s->at));
    else
        snprintf(out, cap, s->kind == FLOAT ? "%.4g" : "%.0f", get_setting(s, v));
}

/* The server's protocol has none. */
static bool is_unsendable(const ebb_chat *c, const setting *s)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);

    if (facts && s->at == AT(thinking))
        return !facts->takes_thinking && c->settings.thinking != EBB_THINKING_DEFAULT;
    return facts && s->key && !(facts->sampling & EBB_SAMPLING_BIT_AT(s->at));
}

/* A server has defaults of its own for what nobody chose, and is sent nothing: it alone knows them. */
static bool is_left_to_server(const ebb_chat *c, const setting *s)
{
    return ebb_chat_engine(c) && !ebb_chat_engine_is_found(c) && s->key &&
           !(ebb_chat_settings_chosen(c) & EBB_SAMPLING_BIT_AT(s->at));
}

/* What holds; what was chosen and is not sent counts for other engines. */
static void print_now(const ebb_chat *c, const setting *s, char *out, size_t cap)
{
    size_t n;

    if (is_left_to_server(c, s)) {
        snprintf(out, cap, "the server's");
        return;
    }
    print_value(s, &c->settings, out, cap);
    n = strlen(out);
    if (is_unsendable(c, s))
        snprintf(out + n, cap - n, " for other engines; this one is not sent it");
}

static void print_range(const setting *s, char *out, size_t cap)
{
    ebb_sampling_range r = range_of(s);
    size_t n = 0;

    if (s->kind == CHOICE)
        for (int i = 0; names_of(s)[i]; i++)
            n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? ", " : "", names_of(s)[i]);
    else
        snprintf(out, cap, "%.16g to %.16g", r.min, r.max);
}

ebb_status ebb_chat_set(ebb_chat *c, const char *name, const char *value, char *text, size_t cap, ebb_error *err)
{
    const setting *s = find_setting(name);
    char now[80], range[64];
    double x;

    if (!s)
        return EBB_FAIL(err, EBB_USAGE, "there is no setting '%s'; /set lists all", name);
    print_range(s, range, sizeof range);
    if (value) {
        ebb_status st = ebb_chat_check_own(c, err);

        if (st != EBB_OK)
            return st;
        if (!parse_setting(s, value, &x))
            return EBB_FAIL(err, EBB_USAGE, "%s cannot be '%s': it takes %s", name, value, range);
        put_setting(s, &c->settings, x);
        c->overflow.cannot_grow &= strcmp(s->name, "overflow") != 0;
        ebb_chat_save(c, false);
    }
    print_now(c, s, now, sizeof now);
    if (text && value)
        snprintf(text, cap, "%s = %s", s->name, now);
    else if (text)
        snprintf(text, cap, "%s = %s (%s): %s", s->name, now, range, s->help);
    return EBB_OK;
}

/* -- In the store ---------------------------------------------------------------------- */

/* Digits of a real are limited to those of a float, which would cut a seed. */
static json_t *setting_json(const setting *s, const ebb_chat_settings *v)
{
    double x = get_setting(s, v);

    return s->kind == FLOAT ? json_real(x) : json_integer((json_int_t)x);
}

static void add_values(json_t *o, const ebb_chat_settings *v)
{
    for (size_t i = 0; o && i < N_SETTINGS; i++)
        if (v->is_set & (1u << i))
            json_object_set_new(o, settings[i].name, setting_json(&settings[i], v));
    if (o && v->template_name[0])
        json_object_set_new(o, "template", json_string(v->template_name));
}

char *ebb_chat_settings_json(const ebb_chat *c)
{
    const ebb_chat_settings *v = &c->settings;
    json_t *o = json_object();
    char *text = NULL;

    add_values(o, &c->overridden);
    add_values(o, v);                            /* what was chosen in this run takes their place */
    if (o && v->form.grammar)
        json_object_set_new(o, "form", ebb_form_choice_json(&v->form));
    if (o && v->away_tokens)
        json_object_set_new(o, "away", json_pack("{s:i,s:s}", "tokens", (int)v->away_tokens, "finish",
                                                 ebb_finish_name(v->away_finish)));
    if (o && json_object_size(o))
        text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    json_decref(o);
    return text;
}

/* Is the setting's bit in a mask of EBB_SAMPLING_BITs? */
static bool has_bit(uint32_t mask, const setting *s)
{
    return s->at / 4 < 32 && (mask & EBB_SAMPLING_BIT_AT(s->at));
}

/* Was the setting given on the command line, or is it not the default?  It then overrides advice
 * of the model. */
static bool is_from_command_line(const ebb_chat *c, const setting *s)
{
    ebb_chat_settings usual = { .sampling = c->ops.default_sampling };

    if (s->at == AT(overflow))
        return c->defaults.overflow_given;
    if (has_bit(c->defaults.sampling_given, s))
        return true;
    return !has_bit(c->defaults.sampling_config, s) && get_setting(s, &c->defaults.settings) != get_setting(s, &usual);
}

/* The value that the model's store recommends for a key, else the one in its file. */
static bool read_recommended(const ebb_chat *c, const char *key, double *x)
{
    return ebb_model_advice_number(&c->advice, key, x) ||
           (c->info && c->ops.number && c->ops.number(c->ops.arg, c->backend, key, x));
}

/* The same for a setting; false: nothing, or what is out of range. */
static bool model_advice(const ebb_chat *c, const setting *s, double *x)
{
    return s->key && read_recommended(c, s->key, x) && is_in_range(s, *x);
}

/* All steps of the sampler here (sample/sampler.c) in its order.  Samplers between them that drop no token by default
 * are allowed: no key sets their parameters, or a key that is checked by itself does. */
bool ebb_chat_is_sampler_order(const char *list)
{
    static const char *const own[] = { "penalties", "top_k", "top_p", "min_p", "temperature" };
    static const char *const idle[] = { "dry", "top_n_sigma", "typ_p", "xtc" };
    enum { N_OWN = sizeof own / sizeof own[0], N_IDLE = sizeof idle / sizeof idle[0] };
    size_t next = 0, len, i;

    for (;; list += len + 1) {
        len = strcspn(list, ";");
        for (i = 0; i < N_IDLE && !(strlen(idle[i]) == len && memcmp(idle[i], list, len) == 0); i++)
            ;
        if (next < N_OWN && strlen(own[next]) == len && memcmp(own[next], list, len) == 0)
            next++;
        else if (i == N_IDLE)
            return false;
        if (list[len] == '\0')
            return next == N_OWN;
    }
}

/* Where recommended numbers are looked up, as in read_recommended. */
typedef struct advice_source {
    bool      (*number)(const void *arg, const char *key, double *x);
    const void *arg;
    const char *(*key)(const void *arg, size_t i);       /* of the file's metadata, raw; NULL: past the last */
    const char *order;          /* of the samplers, raw; NULL: none is recommended */
} advice_source;

/* of the two figures of a sampler that is not here, the one that switches it on */
static const struct { const char *key; double off; } unknown_samplers[] = { { ADVICE("xtc_probability"), 0 },
                                                                            { ADVICE("mirostat"), 0 } };
enum { N_UNKNOWN_SAMPLERS = sizeof unknown_samplers / sizeof *unknown_samplers };

/* Whether anything here knows what the key asks for. */
static bool is_known_advice(const char *key)
{
    static const char *const tuning[] = { ADVICE("sequence"), ADVICE("xtc_threshold"), ADVICE("mirostat_tau"),
                                          ADVICE("mirostat_eta") };

    for (size_t i = 0; i < sizeof tuning / sizeof *tuning; i++)
        if (strcmp(key, tuning[i]) == 0)
            return true;
    for (size_t i = 0; i < N_UNKNOWN_SAMPLERS; i++)
        if (strcmp(key, unknown_samplers[i].key) == 0)
            return true;
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (settings[i].key && strcmp(key, settings[i].key) == 0)
            return true;
    return false;
}

static size_t list_unknown_keys(const advice_source *from, char *out, size_t cap, size_t n)
{
    const char *key;

    for (size_t i = 0; from->key && (key = from->key(from->arg, i)) != NULL && n < cap; i++) {
        ebb_buf shown = { 0 };

        if (strncmp(key, ADVICE(""), strlen(ADVICE(""))) != 0 || is_known_advice(key))
            continue;
        ebb_utf8_add_line(&shown, key, strlen(key), false);
        n += (size_t)snprintf(out + n, cap - n, "%s%.100s", n ? ", " : "", ebb_buf_text(&shown));
        ebb_buf_fini(&shown);
    }
    return n;
}

static bool list_unfollowed(const advice_source *from, char *out, size_t cap)
{
    size_t n = 0;
    double x;

    out[0] = '\0';
    if (from->order && !ebb_chat_is_sampler_order(from->order)) {
        ebb_buf shown = { 0 };

        ebb_utf8_add_line(&shown, from->order, strlen(from->order), false);
        n += (size_t)snprintf(out, cap, "%s = %.100s", ADVICE("sequence"), ebb_buf_text(&shown));
        ebb_buf_fini(&shown);
    }
    for (size_t i = 0; i < N_UNKNOWN_SAMPLERS; i++)
        if (from->number(from->arg, unknown_samplers[i].key, &x) && x != unknown_samplers[i].off && n < cap)
            n += (size_t)snprintf(out + n, cap - n, "%s%s = %g", n ? ", " : "", unknown_samplers[i].key, x);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (settings[i].key && from->number(from->arg, settings[i].key, &x) &&
            !is_in_range(&settings[i], x) && n < cap)
            n += (size_t)snprintf(out + n, cap - n, "%s%s = %g", n ? ", " : "", settings[i].key, x);
    return list_unknown_keys(from, out, cap, n) > 0;
}

static bool chat_number(const void *arg, const char *key, double *x)
{
    return read_recommended(arg, key, x);
}

static const char *chat_key(const void *arg, size_t i)
{
    const ebb_chat *c = arg;

    return c->info && c->ops.key ? c->ops.key(c->ops.arg, c->backend, i) : NULL;
}

bool ebb_chat_settings_unfollowed(const ebb_chat *c, char *out, size_t cap)
{
    advice_source from = { .number = chat_number, .arg = c, .key = chat_key };

    if (c->info && c->ops.string)
        from.order = c->ops.string(c->ops.arg, c->backend, ADVICE("sequence"));
    return list_unfollowed(&from, out, cap);
}

static bool file_number(const void *arg, const char *key, double *x)
{
    return ebb_model_meta_number(arg, key, x);
}

static const char *file_key(const void *arg, size_t i)
{
    return i < ebb_model_n_meta(arg) ? ebb_model_meta(arg, i, NULL, 0) : NULL;
}

bool ebb_chat_unfollowed_sampling(const ebb_model *m, char *out, size_t cap)
{
    advice_source from = { .number = file_number, .arg = m, .key = file_key,
                           .order = ebb_model_meta_string(m, ADVICE("sequence")) };

    return list_unfollowed(&from, out, cap);
}

void ebb_chat_settings_apply_model(ebb_chat *c)
{
    uint32_t is_set = c->settings.is_set;
    double x;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const setting *s = &settings[i];

        if (is_set & 1u << i)
            continue;
        if (is_from_command_line(c, s) || has_bit(c->defaults.sampling_config, s) || !model_advice(c, s, &x))
            copy_setting(s, &c->settings, &c->defaults.settings);
        else
            put_setting(s, &c->settings, x);
    }
    c->settings.is_set = is_set;
}

void ebb_chat_advise_sampling(const ebb_model *m, uint32_t given, ebb_sampler_params *p)
{
    ebb_chat_settings v = { .sampling = *p };
    double x;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const setting *s = &settings[i];

        if (s->key && !has_bit(given, s) && ebb_model_meta_number(m, s->key, &x) && is_in_range(s, x))
            put_setting(s, &v, x);
    }
    *p = v.sampling;
}

uint32_t ebb_chat_settings_chosen(const ebb_chat *c)
{
    uint32_t chosen = 0;
    double x;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const setting *s = &settings[i];

        if (s->at / 4 < 32 && ((c->settings.is_set & 1u << i) || is_from_command_line(c, s) ||
                               has_bit(c->defaults.sampling_config, s) ||
                               (ebb_chat_engine_is_found(c) && model_advice(c, s, &x))))
            chosen |= EBB_SAMPLING_BIT_AT(s->at);
    }
    return chosen;
}

bool ebb_chat_settings_unsent(const ebb_chat *c, bool configured, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const setting *s = &settings[i];

        if (is_unsendable(c, s) && n < cap &&
            ((c->settings.is_set & 1u << i) || is_from_command_line(c, s) ||
             (configured && has_bit(c->defaults.sampling_config, s))))
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", s->name);
    }
    return n > 0;
}

static void read_away(ebb_chat_settings *v, json_t *away)
{
    json_int_t n = json_integer_value(json_object_get(away, "tokens"));
    const char *name = json_string_value(json_object_get(away, "finish"));

    v->away_tokens = n > 0 && n < INT32_MAX ? (uint32_t)n : 0;
    if (name)
        ebb_finish_parse(name, &v->away_finish);
}

void ebb_chat_settings_load(ebb_chat *c, const char *json)
{
    json_t *o = json ? ebb_json_load(json, strlen(json), 0, NULL) : NULL, *value;
    const char *name, *template_name = json_string_value(json_object_get(o, "template"));
    ebb_chat_settings *with_template = c->template_name ? &c->overridden : &c->settings;

    ebb_form_choice_fini(&c->settings.form);
    c->settings = c->defaults.settings;
    c->overridden = (ebb_chat_settings){ 0 };
    ebb_form_choice_read(&c->settings.form, json_object_get(o, "form"));
    if (template_name)
        snprintf(with_template->template_name, sizeof with_template->template_name, "%s", template_name);
    json_object_foreach(o, name, value) {
        const setting *s = find_setting(name);
        double x = json_number_value(value);
        if (s && json_is_number(value) && is_in_range(s, x))
            put_setting(s, is_from_command_line(c, s) ? &c->overridden : &c->settings, x);
    }
    ebb_chat_settings_apply_model(c);
    read_away(&c->settings, json_object_get(o, "away"));
    json_decref(o);
    ebb_template_choice_apply(c);
}

void ebb_chat_settings_begin(ebb_chat *c)
{
    c->overridden = (ebb_chat_settings){ 0 };
    ebb_template_choice_begin(c);
}
