/* Arrays: prefixItems, items, minItems and maxItems (schema_priv.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/schema_priv.h"

enum { MOST_ITEMS = 10000 };

typedef struct items {
    int     *rules;              /* of the first n; -2: anything */
    uint64_t n;
    int      behind;             /* of all others; -1: none may come */
    uint64_t least, most;
} items;

enum { ANYTHING = -2, NOTHING = -1 };

static int rule_of_item(ebb_compiler *c, const json_t *schema, const char *keyword, size_t i)
{
    char number[24];
    size_t path;
    int rule;

    if (!schema || json_is_true(schema))
        return ANYTHING;
    snprintf(number, sizeof number, "%zu", i);
    path = ebb_schema_enter(c, keyword, *keyword == 'p' ? number : NULL);
    rule = ebb_schema_rule_of(c, schema);
    ebb_schema_leave(c, path);
    return rule;
}

static void add_item(ebb_buf *b, int rule)
{
    ebb_schema_add_call(b, rule == ANYTHING ? -1 : rule);
}

/* The items that must or may follow item i - 1. */
static void add_rest(ebb_compiler *c, ebb_buf *b, const items *l, uint64_t i)
{
    uint64_t n_open = 0;

    for (; i < l->n && i < l->most && ebb_schema_has_room(c, b); i++) {
        bool is_optional = i >= l->least;
        n_open += is_optional;
        ebb_buf_adds(b, is_optional ? " (\",\" ws " : " \",\" ws ");
        add_item(b, l->rules[i]);
    }
    if (l->behind != NOTHING && i < l->most) {
        ebb_buf_adds(b, " (\",\" ws ");
        add_item(b, l->behind);
        if (l->most == EBB_NO_LIMIT)
            ebb_buf_addf(b, "){%" PRIu64 ",}", l->least > i ? l->least - i : 0);
        else
            ebb_buf_addf(b, "){%" PRIu64 ",%" PRIu64 "}", l->least > i ? l->least - i : 0, l->most - i);
    }
    for (; n_open > 0; n_open--)
        ebb_buf_adds(b, ")?");
}

static void write_items(ebb_compiler *c, ebb_buf *b, const items *l)
{
    bool has_first = l->most > 0 && (l->n > 0 || l->behind != NOTHING);

    ebb_write_way(b);
    ebb_buf_adds(b, "\"[\" ws ");
    if (has_first) {
        ebb_buf_adds(b, l->least == 0 ? "(" : "");
        add_item(b, l->n > 0 ? l->rules[0] : l->behind);
        add_rest(c, b, l, 1);
        ebb_buf_adds(b, l->least == 0 ? ")? " : " ");
    }
    ebb_buf_adds(b, "ws \"]\"");
}

/* No value is valid for item i: the array has at most i items. */
static void end_before(items *l, uint64_t i)
{
    l->n = i;
    l->behind = NOTHING;
}

void ebb_write_array(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    items l = { .n = json_array_size(s->prefix), .least = s->min_items, .most = s->max_items };

    if (l.least > MOST_ITEMS || (l.most != EBB_NO_LIMIT && l.most > MOST_ITEMS)) {
        ebb_schema_fail(c, EBB_LIMIT, "minItems and maxItems are followed up to %d", MOST_ITEMS);
        return;
    }
    l.rules = ebb_schema_spend(c, l.n * EBB_SCHEMA_ITEM) ? calloc(l.n + 1, sizeof *l.rules) : NULL;
    if (!l.rules) {
        ebb_schema_fail_no_memory(c);
        return;
    }
    l.behind = l.most > l.n ? rule_of_item(c, s->items, "items", 0) : NOTHING;
    for (uint64_t i = 0; i < l.n && i < l.most; i++) {
        l.rules[i] = rule_of_item(c, json_array_get(s->prefix, i), "prefixItems", i);
        if (l.rules[i] == NOTHING)
            end_before(&l, i);
    }
    if (l.behind == NOTHING && l.most > l.n)
        l.most = l.n;
    if (c->st == EBB_OK && l.least <= l.most)
        write_items(c, b, &l);
    free(l.rules);
}
