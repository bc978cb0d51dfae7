/* JSON strings (json_text.h). */
#include "json/json_text.h"

#include <string.h>

#include "base/utf8.h"

json_t *ebb_json_text(const char *text, size_t n)
{
    ebb_buf valid = { 0 };
    json_t *j = ebb_utf8_add_valid(&valid, text, n) ? json_stringn(ebb_buf_text(&valid), valid.len) : NULL;

    ebb_buf_fini(&valid);
    return j;
}

json_t *ebb_json_text_or_null(const char *text)
{
    json_t *j = ebb_json_text(text, strlen(text));

    return j ? j : json_null();
}
