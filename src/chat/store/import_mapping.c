/* ChatGPT's conversations.json: a tree of messages by id (import_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/head_line.h"
#include "store/import_priv.h"
#include "store/title.h"

/* A node of the file whose children wait, and the message of ours above them. */
typedef struct waiting {
    json_t   *node;
    ebb_node *above;
} waiting;

typedef struct reader {
    json_t   *mapping;
    ebb_tree *t;
    waiting  *stack;
    size_t    n, cap;
    bool      has_circle;        /* a node was listed twice */
    const char *current;         /* id of the conversation's leaf; NULL: unknown */
    ebb_node *leaf;
    ebb_buf   text;
    int64_t   changed_ms;        /* the newest date in it; 0: none */
} reader;

/* marks a visited node; no key of the imported format */
static const char seen[] = "ebb:seen";

/* Each node is pushed only once, so that a circular file is read in finite time. */
static bool push_waiting(reader *r, json_t *node, ebb_node *above)
{
    waiting *p;

    if (!json_is_object(node))
        return true;
    r->has_circle = r->has_circle || json_object_get(node, seen);
    if (r->has_circle)
        return true;
    p = ebb_grow(r->stack, r->n, &r->cap, sizeof *p);
    if (!p)
        return false;
    r->stack = p;
    if (json_object_set_new(node, seen, json_true()) != 0)
        return false;
    r->stack[r->n++] = (waiting){ node, above };
    return true;
}

/* Add a node's message below `above`; `above` itself if the node has no message. */
static ebb_node *read_message(reader *r, json_t *node, ebb_node *above)
{
    json_t *m = json_object_get(node, "message"), *content = json_object_get(m, "content");
    const char *role_name = json_string_value(json_object_get(json_object_get(m, "author"), "role"));
    json_t *parts = json_object_get(content, "parts"), *when = json_object_get(m, "create_time");
    ebb_role role;
    ebb_node *made;

    ebb_buf_clear(&r->text);
    if (!role_name || !ebb_import_role(role_name, strlen(role_name), &role) || !ebb_import_content(parts, &r->text) ||
        r->text.len == 0)
        return above;
    if (role == EBB_ROLE_SYSTEM && above)        /* notes of that program to itself */
        return above;
    made = ebb_tree_add(r->t, above, role, r->text.data, r->text.len);
    if (!made)
        return NULL;
    made->m.finish = EBB_FINISH_STOP;
    if (ebb_import_date(when) > 0)
        made->m.created_ms = ebb_import_date(when);
    r->changed_ms = ebb_import_date(when) > r->changed_ms ? ebb_import_date(when) : r->changed_ms;
    return made;
}

static bool push_children(reader *r, json_t *node, ebb_node *above)
{
    json_t *children = json_object_get(node, "children");

    for (size_t i = json_array_size(children); i-- > 0 && !r->has_circle;) {
        const char *id = json_string_value(json_array_get(children, i));
        json_t *child = id ? json_object_get(r->mapping, id) : NULL;
        if (child && !push_waiting(r, child, above))
            return false;
    }
    return true;
}

static ebb_status read_all(reader *r, ebb_error *err)
{
    while (r->n && !r->has_circle) {
        waiting w = r->stack[--r->n];
        const char *id = json_string_value(json_object_get(w.node, "id"));
        ebb_node *here;

        if (r->t->n_nodes >= EBB_IMPORT_MESSAGES)
            return ebb_import_fail(r->t, err);
        here = read_message(r, w.node, w.above);
        if ((!here && (w.above || r->text.len)) || !push_children(r, w.node, here))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
        if (here && id && r->current && strcmp(id, r->current) == 0)
            r->leaf = here;
    }
    return r->has_circle ? EBB_FAIL(err, EBB_FORMAT, "its messages go in a circle") : EBB_OK;
}

ebb_status ebb_import_mapping(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    reader r = { .mapping = json_object_get(o, "mapping"), .t = t,
                 .current = json_string_value(json_object_get(o, "current_node")) };
    const char *title = json_string_value(json_object_get(o, "title")), *id, *parent;
    ebb_status st = EBB_OK;
    json_t *node;

    if (title)
        ebb_title_read(title, strlen(title), f->title, sizeof f->title);
    json_object_foreach(r.mapping, id, node) {
        parent = json_string_value(json_object_get(node, "parent"));
        if ((!parent || !json_object_get(r.mapping, parent)) && !push_waiting(&r, node, NULL))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
    }
    if (st == EBB_OK)
        st = read_all(&r, err);
    if (st == EBB_OK && t->n_nodes &&
        !ebb_tree_set_leaf(t, r.leaf ? r.leaf : ebb_tree_deepest(t->nodes[0])))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
    f->changed_ms = r.changed_ms;
    free(r.stack);
    ebb_buf_fini(&r.text);
    return st;
}
