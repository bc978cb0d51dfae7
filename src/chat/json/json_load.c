/* JSON of somebody else (json_load.h). */
#include "json/json_load.h"

#include <stdio.h>
#include <string.h>

enum { MEMORY_FREE = 64 << 20, MEMORY_PER_BYTE = 8 };

/* The first byte of s[i..n) that is in no string and no quote of one; n: there is none.  s[i] is not inside of one. */
static size_t skip_strings(const char *s, size_t n, size_t i)
{
    while (i < n && s[i] == '"') {
        for (i++; i < n && s[i] != '"'; i++)
            i += s[i] == '\\';
        i++;
    }
    return i < n ? i : n;
}

size_t ebb_json_memory(const char *s, size_t n)
{
    enum { OBJECT = 300, ARRAY = 130, VALUE = 100 };
    size_t sum = n;

    for (size_t i = skip_strings(s, n, 0); i < n; i = skip_strings(s, n, i + 1))
        sum += s[i] == '{' ? OBJECT : s[i] == '[' ? ARRAY : s[i] == ',' || s[i] == ':' ? VALUE : 0;
    return sum;
}

size_t ebb_json_extent(const char *s, size_t n)
{
    size_t depth = 0;

    for (size_t i = skip_strings(s, n, 0); i < n; i = skip_strings(s, n, i + 1)) {
        if (s[i] == '{' || s[i] == '[')
            depth++;
        else if ((s[i] == '}' || s[i] == ']') && (depth == 0 || --depth == 0))
            return i + 1;
    }
    return n;
}

/* jansson names the flag of its own that would allow it: that is no word for who wrote the text. */
static void hide_flag(char *line)
{
    static const char flag[] = " without JSON_ALLOW_NUL";
    char *at = strstr(line, flag), *rest = at ? at + sizeof flag - 1 : NULL;

    if (at)
        memmove(at, rest, strlen(rest) + 1);
}

json_t *ebb_json_load(const char *s, size_t n, size_t flags, json_error_t *where)
{
    size_t most = MEMORY_FREE + MEMORY_PER_BYTE * n;
    json_t *o;

    if (ebb_json_memory(s, n) <= most) {
        o = json_loadb(s, n, flags, where);
        if (!o && where)
            hide_flag(where->text);
        return o;
    }
    if (where) {
        memset(where, 0, sizeof *where);
        where->line = 1;
        snprintf(where->text, sizeof where->text, "so many values that they would take more than %zu MiB", most >> 20);
    }
    return NULL;
}
