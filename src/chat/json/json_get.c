/* Members of an object (json_get.h). */
#include "json/json_get.h"

const char *ebb_json_get_text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

uint32_t ebb_json_get_count(const json_t *o, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(o, name));

    return n > 0 && n <= INT32_MAX ? (uint32_t)n : 0;
}
