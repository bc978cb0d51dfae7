/* The tree of messages (tree.h). */
#include "tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text.h"

/* Grow the list's capacity to at least n + 1 pointers. */
static bool grow_list(ebb_node ***list, size_t n, size_t *cap)
{
    ebb_node **p = ebb_grow(*list, n, cap, sizeof *p);

    if (p)
        *list = p;
    return p != NULL;
}

static void node_free(ebb_node *node)
{
    if (!node)
        return;
    free(node->m.text);
    free(node->m.ids);
    free(node->m.model);
    free(node->m.engine);
    free(node->m.truncation.kept);
    while (node->m.n_sample_records > 0)
        ebb_message_drop_sample_record(&node->m);
    free(node->m.sample_records);
    free(node);
}

void ebb_tree_fini(ebb_tree *t)
{
    for (size_t i = 0; i < t->n_nodes; i++)
        node_free(t->nodes[i]);
    free(t->nodes);
    free(t->path);
    free(t->undone);
    *t = (ebb_tree){ 0 };
}

static void link_below(ebb_node *node, ebb_node *parent)
{
    node->parent = parent;
    node->m.parent = parent->m.id;
    if (parent->last_child)
        parent->last_child->next_sibling = node;
    else
        parent->first_child = node;
    parent->last_child = node;
}

ebb_node *ebb_tree_add(ebb_tree *t, ebb_node *parent, ebb_role role, const char *text, size_t n_text)
{
    ebb_node *node = calloc(1, sizeof *node);

    if (!node || !grow_list(&t->nodes, t->n_nodes, &t->cap_nodes) || !ebb_node_set_text(node, text, n_text)) {
        node_free(node);
        return NULL;
    }
    node->m.id = --t->last_memory_id;
    node->m.role = role;
    node->m.finish = role == EBB_ROLE_ASSISTANT ? EBB_FINISH_NONE : EBB_FINISH_STOP;
    node->m.created_ms = ebb_clock_unix_ms();
    node->is_dirty = true;
    if (parent)
        link_below(node, parent);
    t->nodes[t->n_nodes++] = node;
    return node;
}

bool ebb_node_set_text(ebb_node *node, const char *text, size_t n)
{
    char *copy = ebb_text_copy(text, n);

    if (!copy)
        return false;
    free(node->m.text);
    node->m.text = copy;
    node->m.n_text = n;
    node->is_dirty = true;
    return true;
}

/* Capacities are the next power of two of the length, so they need no field. */
static size_t round_capacity(size_t n)
{
    size_t cap = 64;

    while (cap < n)
        cap *= 2;
    return cap;
}

bool ebb_node_add_text(ebb_node *node, const char *text, size_t n)
{
    size_t len = node->m.n_text;
    char *p = realloc(node->m.text, round_capacity(len + n + 1));

    if (!p)
        return false;
    if (n)
        memcpy(p + len, text, n);
    p[len + n] = '\0';
    node->m.text = p;
    node->m.n_text = len + n;
    node->is_dirty = true;
    return true;
}

bool ebb_node_set_ids(ebb_node *node, const int32_t *ids, size_t n, const uint8_t model[16])
{
    int32_t *copy = malloc(round_capacity(n) * sizeof *copy);

    if (!copy)
        return false;
    if (n)
        memcpy(copy, ids, n * sizeof *copy);
    free(node->m.ids);
    node->m.ids = copy;
    node->m.n_ids = n;
    memcpy(node->m.ids_model, model, sizeof node->m.ids_model);
    node->is_dirty = true;
    return true;
}

bool ebb_node_add_id(ebb_node *node, int32_t id)
{
    int32_t *p = realloc(node->m.ids, round_capacity(node->m.n_ids + 1) * sizeof *p);

    if (!p)
        return false;
    p[node->m.n_ids++] = id;
    node->m.ids = p;
    node->is_dirty = true;
    return true;
}

void ebb_node_set_id(ebb_node *node, int64_t id)
{
    node->m.id = id;
    for (ebb_node *c = node->first_child; c; c = c->next_sibling)
        c->m.parent = id;
}

void ebb_tree_forget_ids(ebb_tree *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        ebb_node_set_id(t->nodes[i], --t->last_memory_id);
        t->nodes[i]->is_dirty = true;
    }
}

static void unlink_node(ebb_node *node)
{
    ebb_node *parent = node->parent, *before = NULL;

    if (!parent)
        return;
    for (ebb_node *c = parent->first_child; c != node; c = c->next_sibling)
        before = c;
    if (before)
        before->next_sibling = NULL;
    else
        parent->first_child = NULL;
    parent->last_child = before;
}

void ebb_tree_drop_newest(ebb_tree *t)
{
    ebb_node *node = t->nodes[t->n_nodes - 1];

    if (t->n_path > 0 && t->path[t->n_path - 1] == node)
        t->n_path--;
    for (size_t i = 0; i < t->n_undone; i++)
        if (t->undone[i] == node)
            t->undone[i] = node->parent;
    unlink_node(node);
    t->n_nodes--;
    node_free(node);
}

ebb_node *ebb_tree_find(const ebb_tree *t, int64_t id)
{
    size_t lo = 0, hi = t->n_nodes;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->nodes[mid]->m.id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < t->n_nodes && t->nodes[lo]->m.id == id)
        return t->nodes[lo];
    for (size_t i = 0; i < t->n_nodes; i++)      /* not in order of ids: some were made here */
        if (t->nodes[i]->m.id == id)
            return t->nodes[i];
    return NULL;
}

ebb_node *ebb_tree_leaf(const ebb_tree *t)
{
    return t->n_path ? t->path[t->n_path - 1] : NULL;
}

/* The path down to `leaf`; keeps what undo left. */
static bool set_path(ebb_tree *t, ebb_node *leaf)
{
    size_t depth = 0;

    if (leaf && leaf->parent == ebb_tree_leaf(t) && grow_list(&t->path, t->n_path, &t->cap_path)) {
        t->path[t->n_path++] = leaf;             /* one step on: the usual case */
        return true;
    }
    for (ebb_node *n = leaf; n; n = n->parent)
        depth++;
    while (depth > t->cap_path)
        if (!grow_list(&t->path, t->cap_path, &t->cap_path))
            return false;
    t->n_path = depth;
    for (ebb_node *n = leaf; n; n = n->parent)
        t->path[--depth] = n;
    return true;
}

bool ebb_tree_set_leaf(ebb_tree *t, ebb_node *leaf)
{
    if (!set_path(t, leaf))
        return false;
    t->n_undone = 0;
    return true;
}

bool ebb_tree_undo(ebb_tree *t)
{
    ebb_node *leaf = ebb_tree_leaf(t), *question = leaf;

    while (question && question->m.role != EBB_ROLE_USER)
        question = question->parent;
    if (!question || !grow_list(&t->undone, t->n_undone, &t->cap_undone) || !set_path(t, question->parent))
        return false;
    t->undone[t->n_undone++] = leaf;
    return true;
}

bool ebb_tree_redo(ebb_tree *t)
{
    if (t->n_undone == 0 || !set_path(t, t->undone[t->n_undone - 1]))
        return false;
    t->n_undone--;
    return true;
}

bool ebb_tree_is_question_open(const ebb_node *leaf)
{
    while (leaf && leaf->m.role == EBB_ROLE_NOTE)
        leaf = leaf->parent;
    return leaf && leaf->m.role == EBB_ROLE_USER;
}

ebb_node *ebb_tree_above_question(ebb_node *leaf)
{
    ebb_node *node = leaf;

    while (node && node->m.role == EBB_ROLE_NOTE)
        node = node->parent;
    return node && node->m.role == EBB_ROLE_USER ? node->parent : leaf;
}

ebb_node *ebb_tree_deepest(ebb_node *node)
{
    while (node && node->last_child)
        node = node->last_child;
    return node;
}
