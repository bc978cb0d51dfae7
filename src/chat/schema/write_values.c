/* Values of enum and const, each in one spelling (schema_priv.h).
 *
 * What several have in common at their beginning is written once, as a tree: "bl" ("ack" | "ue").  So there are few
 * ways to go on at any place of an answer, however many values there are. */
#include <stdlib.h>
#include <string.h>

#include "schema/schema_priv.h"

enum { MOST_NESTED = 64 };       /* of a grammar's 200; deeper, common beginnings are written again */

typedef struct values {
    char  **texts;               /* in JSON, for free() */
    size_t  n;
} values;

static bool add_value(ebb_compiler *c, const ebb_shape *s, const json_t *v, values *l)
{
    bool is_known = true, is_of = ebb_shape_admits(s, v, &is_known);

    if (!is_known)
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "enum or const beside keywords of a text, a list or an object");
    if (!is_of)
        return true;
    l->texts[l->n] = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
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
static void add_tree(ebb_buf *b, char *const *texts, size_t n, size_t at, unsigned depth)
{
    for (size_t i = 0, end; i < n; i = end) {
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
        add_tree(b, texts + i, end - i, fork, depth + 1);
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
        add_tree(b, l.texts, l.n, 0, 0);
    }
    for (size_t i = 0; i < l.n; i++)
        free(l.texts[i]);
    free(l.texts);
}
