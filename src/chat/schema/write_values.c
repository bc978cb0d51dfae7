/* Values of enum and const, each in one spelling (schema_priv.h).
 *
 * What several have in common at their beginning is written once, as a tree: "bl" ("ack" | "ue").  So there are few
 * ways to go on at any place of an answer, however many values there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_priv.h"

enum { MOST_NESTED = 64 };       /* of a grammar's 200; deeper, common beginnings are written again */

typedef struct values {
    char  **texts;               /* in JSON, for free() */
    size_t  n;
} values;

/* -- Their texts ----------------------------------------------------------------------- */

/* Enough that the text gives this double again. */
static size_t count_real_digits(const json_t *v)
{
    size_t digits = 15;
    char text[40];

    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", (int)digits, json_real_value(v));
        if (strtod(text, NULL) == json_real_value(v))
            break;
    }
    return digits;
}

static bool add_text(ebb_buf *b, const json_t *v)
{
    size_t digits = json_is_real(v) ? count_real_digits(v) : 0;
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
    bool ok = text && ebb_buf_adds(b, text);

    free(text);
    return ok;
}

/* As json_dumps does it, but for reals: with as few digits as give the same again. */
static bool add_json(ebb_compiler *c, ebb_buf *b, const json_t *v)
{
    const char *name;
    json_t *part;
    size_t i, n_before;
    bool ok = true;

    if (!ebb_schema_spend(c, EBB_SCHEMA_COPY + json_string_length(v) / EBB_SCHEMA_COPIED_BYTES))
        return false;
    if (!json_is_object(v) && !json_is_array(v))
        return add_text(b, v);
    ebb_buf_addc(b, json_is_object(v) ? '{' : '[');
    n_before = b->len;
    json_object_foreach((json_t *)v, name, part) {
        json_t *text = json_string(name);

        ebb_buf_adds(b, b->len > n_before ? "," : "");
        ok = ok && ebb_schema_spend_name(c, name) && text && add_text(b, text) && ebb_buf_addc(b, ':') &&
             add_json(c, b, part);
        json_decref(text);
    }
    json_array_foreach(v, i, part) {
        ebb_buf_adds(b, i > 0 ? "," : "");
        ok = ok && add_json(c, b, part);
    }
    return ebb_buf_addc(b, json_is_object(v) ? '}' : ']') && ok;
}

/* For free(); NULL: no memory, or it failed. */
static char *json_of(ebb_compiler *c, const json_t *v)
{
    ebb_buf b = { 0 };
    char *text = add_json(c, &b, v) ? ebb_buf_take(&b) : NULL;

    ebb_buf_fini(&b);
    return text;
}

static bool add_value(ebb_compiler *c, const ebb_shape *s, const json_t *v, values *l)
{
    bool is_known = true, is_of = ebb_shape_admits(c, s, v, &is_known);

    if (c->st != EBB_OK)
        return false;
    if (!is_known)
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "enum or const beside keywords of a text, a list or an object");
    if (!is_of)
        return true;
    l->texts[l->n] = json_of(c, v);
    return l->texts[l->n++] || ebb_schema_fail_no_memory(c);
}

static void sort_values(values *l)
{
    size_t n = 0;

    qsort(l->texts, l->n, sizeof *l->texts, ebb_schema_compare_texts);
    for (size_t i = 0; i < l->n; i++) {
        if (n > 0 && strcmp(l->texts[n - 1], l->texts[i]) == 0)
            free(l->texts[i]);
        else
            l->texts[n++] = l->texts[i];
    }
    l->n = n;
}

/* Whether both go on with the same character behind the first `at` bytes, which they have in common. */
static bool go_on_alike(const char *a, const char *b, size_t at)
{
    size_t n = ebb_schema_char_bytes(a + at);

    return n > 0 && strncmp(a + at, b + at, n) == 0;
}

/* Texts in their order, which have the first `at` bytes in common. */
static void add_tree(ebb_compiler *c, ebb_buf *b, char *const *texts, size_t n, size_t at, unsigned depth)
{
    for (size_t i = 0, end; i < n && ebb_schema_has_room(c, b); i = end) {
        size_t fork = at;

        for (end = i + 1; depth < MOST_NESTED && end < n && go_on_alike(texts[i], texts[end], at);)
            end++;
        if (i > 0)
            ebb_buf_adds(b, " | ");
        if (end == i + 1) {
            ebb_schema_add_literal(b, texts[i] + at, strlen(texts[i] + at));
            continue;
        }
        while (go_on_alike(texts[i], texts[end - 1], fork))
            fork += ebb_schema_char_bytes(texts[i] + fork);
        ebb_schema_add_literal(b, texts[i] + at, fork - at);
        ebb_buf_adds(b, " (");
        add_tree(c, b, texts + i, end - i, fork, depth + 1);
        ebb_buf_addc(b, ')');
    }
}

void ebb_write_values(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    size_t n = json_array_size(s->values);
    values l = { .texts = calloc(n + 1, sizeof *l.texts) };
    bool ok = true;

    if (!l.texts) {
        ebb_schema_fail_no_memory(c);
        return;
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = add_value(c, s, json_array_get(s->values, i), &l);
    if (ok && l.n > 0) {
        sort_values(&l);
        ebb_write_way(b);
        add_tree(c, b, l.texts, l.n, 0, 0);
    }
    for (size_t i = 0; i < l.n; i++)
        free(l.texts[i]);
    free(l.texts);
}
