/* The tree of a conversation as the user sees it, and moving in it (chat.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* -- Labels ----------------------------------------------------------------------------- */

/* A node's depth, and its number among the nodes of that depth, in the order of their making. */
typedef struct node_position {
    const ebb_node *node;
    uint32_t        depth, nth;
} node_position;

static int compare_nodes(const void *a, const void *b)
{
    const ebb_node *x = ((const node_position *)a)->node, *y = ((const node_position *)b)->node;

    return (x > y) - (x < y);
}

/* Of a node that is there, as all nodes of the tree are. */
static node_position *find_position(node_position *places, size_t n, const ebb_node *node)
{
    node_position key = { .node = node }, *found = bsearch(&key, places, n, sizeof *places, compare_nodes);

    if (!found)
        abort();                                 /* what comes next would be somebody's data */
    return found;
}

/* Places of all nodes, sorted by address; width[d] becomes the number at depth d (from 1). */
static node_position *list_positions(const ebb_tree *t, uint32_t *width)
{
    node_position *places = malloc((t->n_nodes + 1) * sizeof *places);

    if (!places)
        return NULL;
    for (size_t i = 0; i < t->n_nodes; i++)
        places[i] = (node_position){ .node = t->nodes[i] };
    qsort(places, t->n_nodes, sizeof *places, compare_nodes);
    for (size_t i = 0; i < t->n_nodes; i++) {    /* parents come before children */
        node_position *p = find_position(places, t->n_nodes, t->nodes[i]);
        const node_position *up = p->node->parent ? find_position(places, t->n_nodes, p->node->parent) : NULL;
        p->depth = up ? up->depth + 1 : 1;
        p->nth = width[p->depth]++;
    }
    return places;
}

/* "5" for the only node at its depth, else "5a", "5b", ... "5z", "5aa". */
static void make_branch_label(const node_position *p, uint32_t width, char out[EBB_BRANCH_LABEL])
{
    char letters[8];
    size_t at = sizeof letters - 1;

    letters[at] = '\0';
    if (width > 1)
        for (uint32_t n = p->nth + 1; n > 0; n = (n - 1) / 26)
            letters[--at] = (char)('a' + (n - 1) % 26);
    snprintf(out, EBB_BRANCH_LABEL, "%u%s", p->depth, letters + at);
}

/* -- The list ------------------------------------------------------------------------------ */

/* The first root from nodes[i] on; n_nodes or more: there is none. */
static size_t find_root(const ebb_tree *t, size_t i)
{
    while (i < t->n_nodes && t->nodes[i]->parent)
        i++;
    return i;
}

/* Roots have no common parent: behind one of them comes nodes[next_root]. */
static const ebb_node *next_of(const ebb_tree *t, const ebb_node *node, size_t next_root)
{
    if (node->parent)
        return node->next_sibling;
    return next_root < t->n_nodes ? t->nodes[next_root] : NULL;
}

/* Rows in the order in which they are read: a message, then all below it. */
static size_t list_rows(const ebb_tree *t, ebb_branch *rows, const ebb_node **nodes)
{
    size_t n = 0, up = SIZE_MAX;                 /* up: row of the parent */
    size_t first = find_root(t, 0), next_root = find_root(t, first + 1);
    const ebb_node *node = first < t->n_nodes ? t->nodes[first] : NULL;

    while (node) {
        rows[n] = (ebb_branch){ .message = &node->m, .parent = up, .has_next = next_of(t, node, next_root) != NULL };
        rows[n].is_only = !rows[n].has_next && (node->parent ? node->parent->first_child : t->nodes[first]) == node;
        nodes[n++] = node;
        if (node->first_child) {
            up = n - 1;
            node = node->first_child;
            continue;
        }
        while (node && !next_of(t, node, next_root)) {
            node = node->parent;
            up = up == SIZE_MAX ? up : rows[up].parent;
        }
        node = node ? next_of(t, node, next_root) : NULL;
        if (node && !node->parent)
            next_root = find_root(t, next_root + 1);
    }
    return n;
}

static void flag_path_rows(const ebb_tree *t, ebb_branch *rows, const ebb_node *const *nodes, size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < n && at < t->n_path; i++)
        if (nodes[i] == t->path[at]) {
            rows[i].is_on_path = true;
            rows[i].is_leaf = ++at == t->n_path;
        }
}

ebb_status ebb_chat_branches(ebb_chat *c, ebb_branch **out, size_t *n, ebb_error *err)
{
    const ebb_tree *t = &c->tree;
    ebb_branch *rows = calloc(t->n_nodes + 1, sizeof *rows);
    const ebb_node **nodes = calloc(t->n_nodes + 1, sizeof *nodes);
    uint32_t *width = calloc(t->n_nodes + 2, sizeof *width);
    node_position *places = width ? list_positions(t, width) : NULL;

    *out = NULL;
    *n = 0;
    if (rows && nodes && places) {
        *n = list_rows(t, rows, nodes);
        flag_path_rows(t, rows, nodes, *n);
        for (size_t i = 0; i < *n; i++) {
            const node_position *p = find_position(places, t->n_nodes, nodes[i]);
            make_branch_label(p, width[p->depth], rows[i].label);
        }
        *out = rows;
        rows = NULL;
    }
    free(rows);
    free(nodes);
    free(width);
    free(places);
    return *out ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to list the messages");
}

/* -- Moving -------------------------------------------------------------------------------- */

static ebb_status go_to_node(ebb_chat *c, ebb_node *node, ebb_error *err)
{
    if (!ebb_tree_set_leaf(&c->tree, node))
        return EBB_FAIL(err, EBB_NOMEM, "no memory to go there");
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}

ebb_status ebb_chat_find_label(ebb_chat *c, const char *label, ebb_node **out, ebb_error *err)
{
    ebb_branch *rows = NULL;
    bool is_on_path = false;
    size_t n = 0;
    ebb_status st = ebb_chat_branches(c, &rows, &n, err);

    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].label, label) == 0) {
            *out = ebb_tree_find(&c->tree, rows[i].message->id);
            is_on_path = rows[i].is_on_path;
        }
    free(rows);
    if (st != EBB_OK)
        return st;
    if (!*out)
        return EBB_FAIL(err, EBB_USAGE, "there is no message %s; /tree shows them all", label);
    *out = is_on_path ? *out : ebb_tree_deepest(*out);
    return EBB_OK;
}

ebb_status ebb_chat_go(ebb_chat *c, const char *label, ebb_error *err)
{
    ebb_node *node;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = ebb_chat_find_label(c, label, &node, err);
    return st == EBB_OK ? go_to_node(c, node, err) : st;
}

ebb_status ebb_chat_branch(ebb_chat *c, size_t i, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    ebb_node *node = i < c->tree.n_path ? c->tree.path[i] : NULL;

    if (st != EBB_OK)
        return st;
    if (!node)
        return EBB_FAIL(err, EBB_USAGE, "there is no message %zu; /tree shows them all", i + 1);
    return go_to_node(c, node->m.role == EBB_ROLE_USER ? node->parent : node, err);
}

ebb_status ebb_chat_pin(ebb_chat *c, size_t i, bool is_pinned, ebb_error *err)
{
    ebb_node *node = i < c->tree.n_path ? c->tree.path[i] : NULL;
    ebb_status st = ebb_chat_check_own(c, err);

    if (st != EBB_OK)
        return st;
    if (!node)
        return EBB_FAIL(err, EBB_USAGE, "there is no message %zu; /tree shows them all", i + 1);
    if (node->m.role == EBB_ROLE_NOTE)
        return EBB_FAIL(err, EBB_USAGE, "message %zu is a note of ebb; questions and answers can be pinned", i + 1);
    node->m.pinned = is_pinned;
    node->is_dirty = true;
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}
