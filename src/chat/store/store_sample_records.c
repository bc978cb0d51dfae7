/* How an answer was drawn, in the store (store/store_sql.h). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "json/json_get.h"
#include "json/json_load.h"
#include "store/store_sql.h"

enum { NAME = 16 };

static json_t *hex_json(const uint8_t name[NAME])
{
    char hex[2 * NAME + 1];

    for (int i = 0; i < NAME; i++)
        snprintf(hex + 2 * i, 3, "%02x", name[i]);
    return json_string(hex);
}

static bool parse_hex(const json_t *o, const char *key, uint8_t name[NAME])
{
    const char *hex = json_string_value(json_object_get(o, key));
    unsigned byte;

    if (!hex || strlen(hex) != 2 * NAME)
        return false;
    for (int i = 0; i < NAME; i++) {
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return false;
        name[i] = (uint8_t)byte;
    }
    return true;
}

static json_t *begin_json(ebb_thought_begin begin)
{
    return begin == EBB_THOUGHT_UNSURE ? NULL : json_boolean(begin == EBB_THOUGHT_OPENED);
}

static ebb_thought_begin parse_begin(const json_t *o)
{
    return json_is_true(o) ? EBB_THOUGHT_OPENED : json_is_false(o) ? EBB_THOUGHT_UNOPENED : EBB_THOUGHT_UNSURE;
}

static json_t *sample_record_json(const ebb_sample_record *d)
{
    const ebb_sampler_params *s = &d->sampling;

    return json_pack("{s:I,s:I,s:I,s:I,s:f,s:I,s:f,s:f,s:f,s:I,s:s,s:I,s:b,s:o,s:o,s:s*,s:o*}",
                     "from", (json_int_t)d->from, "n", (json_int_t)d->n, "sampler", (json_int_t)d->sampler,
                     "seed", (json_int_t)s->seed, "temp", (double)s->temp, "top_k", (json_int_t)s->top_k,
                     "top_p", (double)s->top_p, "min_p", (double)s->min_p,
                     "repeat_penalty", (double)s->repeat_penalty, "repeat_last", (json_int_t)s->repeat_last_n,
                     "kv", d->kv, "ctx", (json_int_t)d->n_ctx, "moved", d->is_shifted, "before",
                     hex_json(d->context_hash), "drawn", hex_json(d->ids_hash), "grammar", d->grammar,
                     "thinks", begin_json(d->begin));
}

char *ebb_sample_records_json(const ebb_message *m)
{
    json_t *list = m->n_sample_records ? json_array() : NULL;
    char *text;

    for (size_t i = 0; list && i < m->n_sample_records; i++)
        json_array_append_new(list, sample_record_json(&m->sample_records[i]));
    text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return text;
}

static float json_float(const json_t *o, const char *key)
{
    return (float)json_number_value(json_object_get(o, key));
}

static bool parse_sample_record(const json_t *o, ebb_sample_record *d)
{
    const char *kv = json_string_value(json_object_get(o, "kv"));
    const char *grammar = json_string_value(json_object_get(o, "grammar"));

    *d = (ebb_sample_record){ .from = ebb_json_get_count(o, "from"), .n = ebb_json_get_count(o, "n"),
                              .n_ctx = ebb_json_get_count(o, "ctx"),
                              .is_shifted = json_is_true(json_object_get(o, "moved")),
                              .begin = parse_begin(json_object_get(o, "thinks")) };
    /* the first one had no number */
    d->sampler = json_object_get(o, "sampler") ? ebb_json_get_count(o, "sampler") : 1;
    d->sampling = (ebb_sampler_params){ .temp = json_float(o, "temp"), .top_k = ebb_json_get_count(o, "top_k"),
                                        .top_p = json_float(o, "top_p"), .min_p = json_float(o, "min_p"),
                                  .repeat_penalty = json_float(o, "repeat_penalty"),
                                  .repeat_last_n = ebb_json_get_count(o, "repeat_last"),
                                  .seed = (uint64_t)json_integer_value(json_object_get(o, "seed")) };
    snprintf(d->kv, sizeof d->kv, "%s", kv ? kv : "");
    if (!parse_hex(o, "before", d->context_hash) || !parse_hex(o, "drawn", d->ids_hash))
        return false;
    d->grammar = grammar ? strdup(grammar) : NULL;
    return !grammar || d->grammar;
}

bool ebb_sample_records_parse(const char *json, ebb_message *m)
{
    json_t *list = json ? ebb_json_load(json, strlen(json), 0, NULL) : NULL;
    bool ok = true;
    ebb_sample_record d;

    for (size_t i = 0; ok && i < json_array_size(list); i++)
        if (parse_sample_record(json_array_get(list, i), &d)) /* else no order of ours */
            if (!(ok = ebb_message_add_sample_record(m, &d)))
                free(d.grammar);
    json_decref(list);
    return ok;
}

void ebb_token_ids_hash(const int32_t *ids, size_t n, uint8_t out[16])
{
    enum { CHUNK = 256 };
    uint8_t bytes[4 * CHUNK];

    memset(out, 0, NAME);
    for (size_t at = 0; at < n; at += CHUNK) {   /* little-endian everywhere, as the ids are */
        size_t k = n - at < CHUNK ? n - at : CHUNK;
        for (size_t i = 0; i < 4 * k; i++)
            bytes[i] = (uint8_t)((uint32_t)ids[at + i / 4] >> 8 * (i % 4));
        ebb_hash128(bytes, 4 * k, out, out);
    }
}
