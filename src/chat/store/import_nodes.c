/* Trees of messages by id: ChatGPT's conversations.json, and lists whose messages name their parents
 * (import_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/head_line.h"
#include "store/import_priv.h"
#include "store/title.h"

/* A node of the file whose children wait, and the message of ours above them. */
typedef struct waiting {
    const char *id;
    json_t     *node;
    ebb_node   *above;
} waiting;

typedef struct reader {
    json_t   *nodes;
    ebb_import_reader *read;
    ebb_tree *t;
    waiting  *stack;
    size_t    n, cap;
    bool      is_rest;           /* what no beginning leads to is read: it may lead to what was read */
    bool      has_circle;
    const char *current;         /* id of the conversation's leaf; NULL: unknown */
    ebb_node *leaf;
    ebb_import_said said;
    int64_t   changed_ms;        /* the newest date in it; 0: none */
} reader;

/* mark a node that was read, one whose lister was looked up, and say which other one lists it; no keys of the imported
 * formats */
static const char seen[] = "ebb:seen", climbed[] = "ebb:climbed", lister[] = "ebb:lister";

/* Each node is pushed only once, so that a circular file is read in finite time. */
static bool push_waiting(reader *r, const char *id, json_t *node, ebb_node *above)
{
    waiting *p;

    if (!json_is_object(node))
        return true;
    if (json_object_get(node, seen)) {
        r->has_circle = r->has_circle || !r->is_rest;
        return true;
    }
    p = ebb_grow(r->stack, r->n, &r->cap, sizeof *p);
    if (!p)
        return false;
    r->stack = p;
    if (json_object_set_new(node, seen, json_true()) != 0)
        return false;
    r->stack[r->n++] = (waiting){ id, node, above };
    return true;
}

/* Add a node's message below w->above, to *here; w->above itself if it has none, or a system prompt that comes late,
 * which is a note of that program to itself. */
static ebb_status add_node(reader *r, const waiting *w, ebb_node **here, ebb_error *err)
{
    const char *fault = r->read(w->node, &r->said);

    *here = w->above;
    if (fault)
        return EBB_FAIL(err, EBB_FORMAT, "a message %s", fault);
    if (!r->said.has_place || (r->said.role == EBB_ROLE_SYSTEM && w->above))
        return EBB_OK;
    *here = ebb_import_add(r->t, w->above, &r->said, w->node);
    if (!*here)
        return ebb_import_fail(r->t, err);
    r->changed_ms = r->said.created_ms > r->changed_ms ? r->said.created_ms : r->changed_ms;
    return EBB_OK;
}

static bool push_children(reader *r, json_t *node, ebb_node *above)
{
    json_t *children = json_object_get(node, "children");

    for (size_t i = json_array_size(children); i-- > 0 && !r->has_circle;) {
        const char *id = json_string_value(json_array_get(children, i));
        json_t *child = id ? json_object_get(r->nodes, id) : NULL;
        if (child && !push_waiting(r, id, child, above))
            return false;
    }
    return true;
}

static ebb_status read_all(reader *r, ebb_error *err)
{
    ebb_status st = EBB_OK;

    while (st == EBB_OK && r->n && !r->has_circle) {
        waiting w = r->stack[--r->n];
        ebb_node *here;

        st = add_node(r, &w, &here, err);
        if (st == EBB_OK && !push_children(r, w.node, here))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
        if (here && r->current && strcmp(w.id, r->current) == 0)
            r->leaf = here;
    }
    return r->has_circle ? EBB_FAIL(err, EBB_FORMAT, "its messages go in a circle") : st;
}

/* Note of each one of the rest which other one of it lists it.  false: no memory. */
static bool note_listers(const reader *r)
{
    json_t *node, *child;
    const char *id;
    size_t i;

    json_object_foreach(r->nodes, id, node) {
        if (json_object_get(node, seen))
            continue;
        json_array_foreach(json_object_get(node, "children"), i, child) {
            json_t *there = json_is_string(child) ? json_object_get(r->nodes, json_string_value(child)) : NULL;
            if (json_is_object(there) && there != node && json_object_set_new(there, lister, json_string(id)) != 0)
                return false;
        }
    }
    return true;
}

/* Push what the branch of a node begins with: the one above it that no other lists, or, in a circle, one of that.  What
 * is climbed is read from there, so that it is climbed once. */
static bool push_beginning(reader *r, const char *id, json_t *node)
{
    const char *above;

    if (json_object_get(node, seen))
        return true;
    while ((above = json_string_value(json_object_get(node, lister))) != NULL && !json_object_get(node, climbed)) {
        if (json_object_set_new(node, climbed, json_true()) != 0)
            return false;
        id = above;
        node = json_object_get(r->nodes, above);
    }
    return push_waiting(r, id, node, NULL);
}

/* Messages in a circle, or whose parents do not list them, are somebody's words. */
static ebb_status read_rest(reader *r, ebb_error *err)
{
    ebb_status st = EBB_OK;
    const char *id;
    json_t *node;

    r->is_rest = true;
    if (!note_listers(r))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
    json_object_foreach(r->nodes, id, node) {
        if (!push_beginning(r, id, node))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
        st = read_all(r, err);
        if (st != EBB_OK)
            break;
    }
    return st;
}

ebb_status ebb_import_nodes(json_t *nodes, const char *current, ebb_import_reader *read, ebb_tree *t,
                            int64_t *changed_ms, ebb_error *err)
{
    reader r = { .nodes = nodes, .read = read, .t = t, .current = current };
    const char *id, *parent;
    ebb_status st = EBB_OK;
    json_t *node;

    json_object_foreach(nodes, id, node) {
        parent = json_string_value(json_object_get(node, "parent"));
        if ((!parent || !json_object_get(nodes, parent)) && !push_waiting(&r, id, node, NULL))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
    }
    if (st == EBB_OK)
        st = read_all(&r, err);
    if (st == EBB_OK)
        st = read_rest(&r, err);
    if (st == EBB_OK && t->n_nodes &&
        !ebb_tree_set_leaf(t, r.leaf ? r.leaf : ebb_tree_deepest(t->nodes[0])))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
    *changed_ms = r.changed_ms;
    free(r.stack);
    ebb_buf_fini(&r.said.text);
    return st;
}

/* -- ChatGPT's ----------------------------------------------------------------------------- */

/* What is no message of somebody (a tool's, a thought's) has no text here. */
static const char *read_mapped(json_t *node, ebb_import_said *out)
{
    json_t *m = json_object_get(node, "message"), *parts = json_object_get(json_object_get(m, "content"), "parts");
    json_t *as_list = json_pack("{s:O*, s:O*, s:O*}", "role", json_object_get(json_object_get(m, "author"), "role"),
                                "content", parts, "timestamp", json_object_get(m, "create_time"));
    const char *fault = NULL;

    out->has_place = false;
    if (json_is_string(json_object_get(as_list, "role")))
        fault = ebb_import_message(as_list, out);
    out->has_place = !fault && out->has_place && out->text.len > 0;
    json_decref(as_list);
    return NULL;
}

ebb_status ebb_import_mapping(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    const char *title = json_string_value(json_object_get(o, "title"));

    if (title)
        ebb_title_read(title, strlen(title), f->title, sizeof f->title);
    return ebb_import_nodes(json_object_get(o, "mapping"), json_string_value(json_object_get(o, "current_node")),
                            read_mapped, t, &f->changed_ms, err);
}

/* -- Lists --------------------------------------------------------------------------------- */

/* An id of text or, of older files, of a number; NULL: it is none. */
static const char *id_text(json_t *id, char number[static 24])
{
    if (!json_is_integer(id))
        return json_string_value(id);
    snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return number;
}

/* Which of the nodes m names as its parent; NULL: none. */
static json_t *parent_of(json_t *nodes, json_t *m, char number[static 24], const char **id)
{
    *id = id_text(ebb_import_either(m, "parent", "parent_message_uuid"), number);
    return *id ? json_object_get(nodes, *id) : NULL;
}

/* By their ids; NULL: not each one has an id of its own, or memory lacks. */
static json_t *nodes_of(json_t *list)
{
    json_t *nodes = json_object(), *m;
    char number[24];
    size_t i;

    json_array_foreach(list, i, m) {
        const char *id = id_text(ebb_import_either(m, "id", "uuid"), number);

        if (!id || json_object_get(nodes, id) || json_object_set(nodes, id, m) != 0) {
            json_decref(nodes);
            return NULL;
        }
    }
    return nodes;
}

/* Name it in the terms of import_priv.h, in the order of the list. */
static bool link_node(json_t *nodes, const char *id, json_t *m)
{
    char number[24];
    const char *parent_id;
    json_t *parent = parent_of(nodes, m, number, &parent_id);

    if (!parent) {
        json_object_del(m, "parent");
        return true;
    }
    return json_object_set_new(m, "parent", json_string(parent_id)) == 0 &&
           json_array_append_new(json_object_get(parent, "children"), json_string(id)) == 0;
}

static bool link_nodes(json_t *nodes)
{
    const char *id;
    bool ok = true;
    json_t *m;

    json_object_foreach(nodes, id, m)
        ok = ok && json_object_set_new(m, "children", json_array()) == 0;
    json_object_foreach(nodes, id, m)
        ok = ok && link_node(nodes, id, m);
    return ok;
}

json_t *ebb_import_list_nodes(json_t *list)
{
    json_t *nodes = nodes_of(list), *m;
    bool has_parents = false;
    char number[24];
    const char *id;
    size_t i;

    json_array_foreach(list, i, m)
        has_parents = has_parents || (nodes && parent_of(nodes, m, number, &id));
    if (!has_parents || !link_nodes(nodes)) {
        json_decref(nodes);
        return NULL;
    }
    return nodes;
}
