/* How an answer was drawn, in the store (store_sql.h). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store_sql.h"

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

static json_t *draw_json(const ebb_draw *d)
{
    const ebb_sampling *s = &d->sampling;

    return json_pack("{s:I,s:I,s:I,s:f,s:I,s:f,s:f,s:f,s:I,s:s,s:I,s:b,s:o,s:o}", "from", (json_int_t)d->from, "n", (json_int_t)d->n, "seed",
                     (json_int_t)s->seed, "temp", (double)s->temp, "top_k", (json_int_t)s->top_k, "top_p", (double)s->top_p, "min_p",
                     (double)s->min_p, "repeat_penalty", (double)s->repeat_penalty, "repeat_last", (json_int_t)s->repeat_last,
                     "kv", d->kv, "ctx", (json_int_t)d->n_ctx, "moved", d->is_moved, "before", hex_json(d->before), "drawn",
                     hex_json(d->drawn));
}

char *ebb_draws_json(const ebb_message *m)
{
    json_t *list = m->n_draws ? json_array() : NULL;
    char *text;

    for (size_t i = 0; list && i < m->n_draws; i++)
        json_array_append_new(list, draw_json(&m->draws[i]));
    text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return text;
}

static uint32_t number(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));

    return n > 0 && n <= INT32_MAX ? (uint32_t)n : 0;
}

static float real(const json_t *o, const char *key)
{
    return (float)json_number_value(json_object_get(o, key));
}

static bool parse(const json_t *o, ebb_draw *d)
{
    const char *kv = json_string_value(json_object_get(o, "kv"));

    *d = (ebb_draw){ .from = number(o, "from"), .n = number(o, "n"), .n_ctx = number(o, "ctx"), .is_moved = json_is_true(json_object_get(o, "moved")) };
    d->sampling = (ebb_sampling){ .temp = real(o, "temp"), .top_k = number(o, "top_k"), .top_p = real(o, "top_p"), .min_p = real(o, "min_p"),
                                  .repeat_penalty = real(o, "repeat_penalty"), .repeat_last = number(o, "repeat_last"),
                                  .seed = (uint64_t)json_integer_value(json_object_get(o, "seed")) };
    snprintf(d->kv, sizeof d->kv, "%s", kv ? kv : "");
    return parse_hex(o, "before", d->before) && parse_hex(o, "drawn", d->drawn);
}

bool ebb_draws_parse(const char *json, ebb_message *m)
{
    json_t *list = json ? json_loads(json, 0, NULL) : NULL;
    bool ok = true;
    ebb_draw d;

    for (size_t i = 0; ok && i < json_array_size(list); i++)
        if (parse(json_array_get(list, i), &d))  /* else no order of ours */
            ok = ebb_message_add_draw(m, &d);
    json_decref(list);
    return ok;
}

void ebb_draw_name(const int32_t *ids, size_t n, uint8_t out[16])
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
