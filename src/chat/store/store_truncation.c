/* What a note leaves out, in the store (store/store_sql.h). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_get.h"
#include "json/json_load.h"
#include "store/store_sql.h"

static json_t *salt_json(const uint8_t salt[16])
{
    char hex[33];

    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", salt[i]);
    return json_string(hex);
}

char *ebb_truncation_json(const ebb_truncation *l)
{
    json_t *o, *kept;
    char *text;

    if (l->how == EBB_OVERFLOW_ASK)
        return NULL;
    kept = json_array();
    for (uint32_t i = 0; i < l->n_kept; i++)
        json_array_append_new(kept, json_integer(l->kept[i]));
    o = json_pack("{s:s,s:i,s:i,s:i,s:o}", "how", ebb_overflow_policy_names[l->how], "first", (int)l->first, "turns",
                  (int)l->n_turns, "tokens", (int)l->n_tokens, "kept", kept);
    if (o && l->has_cache_salt) {
        json_object_set_new(o, "shift", json_integer(l->salt_pos));
        json_object_set_new(o, "salt", salt_json(l->salt));
    }
    text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(o);
    return text;
}

static void parse_kept(const json_t *list, ebb_truncation *l)
{
    size_t n = json_array_size(list);

    l->kept = n ? calloc(n, sizeof *l->kept) : NULL;
    for (size_t i = 0; l->kept && i < n; i++) {
        json_int_t at = json_integer_value(json_array_get(list, i));
        if (at < 0 || at >= l->first || (l->n_kept && (uint32_t)at <= l->kept[l->n_kept - 1]))
            continue;                            /* no order of ours */
        l->kept[l->n_kept++] = (uint32_t)at;
    }
}

static void parse_cache_salt(const json_t *o, ebb_truncation *l)
{
    const char *hex = json_string_value(json_object_get(o, "salt"));
    unsigned byte;

    if (!hex || strlen(hex) != 32)
        return;
    for (int i = 0; i < 16; i++) {
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return;
        l->salt[i] = (uint8_t)byte;
    }
    l->salt_pos = ebb_json_get_count(o, "shift");
    l->has_cache_salt = true;
}

void ebb_truncation_parse(const char *json, ebb_truncation *out)
{
    json_t *o = json ? ebb_json_load(json, strlen(json), 0, NULL) : NULL;
    const char *how = json_string_value(json_object_get(o, "how"));

    *out = (ebb_truncation){ 0 };
    for (int i = 0; how && ebb_overflow_policy_names[i]; i++)
        if (strcmp(how, ebb_overflow_policy_names[i]) == 0)
            out->how = (ebb_overflow_policy)i;
    if (out->how != EBB_OVERFLOW_ASK) {
        out->first = ebb_json_get_count(o, "first");
        out->n_turns = ebb_json_get_count(o, "turns");
        out->n_tokens = ebb_json_get_count(o, "tokens");
        parse_kept(json_object_get(o, "kept"), out);
        parse_cache_salt(o, out);
    }
    json_decref(o);
}
