/* What an action would cost, before it is done (chat.h). */
#include <stdlib.h>

#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"

/* A path that is not the tree's own: root first. */
typedef struct node_path {
    ebb_node **nodes;
    size_t     n;
} node_path;

static bool collect_path(ebb_node *leaf, node_path *p)
{
    size_t depth = 0;

    for (ebb_node *n = leaf; n; n = n->parent)
        depth++;
    p->n = depth;
    p->nodes = calloc(depth + 1, sizeof *p->nodes);
    for (ebb_node *n = p->nodes ? leaf : NULL; n; n = n->parent)
        p->nodes[--depth] = n;
    return p->nodes != NULL;
}

/* The path up to leaf, and a question behind it (NULL: none). */
static bool cost_at(ebb_chat *c, ebb_node *leaf, const ebb_message *question, ebb_chat_cost *out)
{
    node_path at = { 0 };
    ebb_prompt p = { 0 };
    bool ok = collect_path(leaf, &at);
    ebb_cache_salt cache_salt = ebb_chat_cache_salt(ok ? ebb_context_view_note(at.nodes, at.n) : NULL);

    if (ok && at.n + (question != NULL) == 0)
        return free(at.nodes), true;             /* an empty path: no tokens, no cost */
    ok = ok && ebb_chat_prompt(c, at.nodes, at.n, question, &p, NULL) == EBB_OK;
    if (ok) {
        out->n_tokens = (uint32_t)p.n_ids;
        out->n_new = (uint32_t)(p.n_ids - (p.n_old < p.n_ids ? p.n_old : p.n_ids));
        out->is_about = p.messages != NULL;      /* a server says only afterwards what it had cached */
        out->n_compute = out->is_about ? out->n_new
                                       : (uint32_t)(p.n_ids -
                                                    c->backend->ops->common_prefix(c->backend, p.ids, p.n_ids,
                                                                                   &cache_salt));
    }
    ebb_prompt_fini(&p);
    free(at.nodes);
    return ok;
}

static bool cost_of_load(ebb_chat *c, const char *name, ebb_chat_cost *out)
{
    ebb_session_facts facts = { 0 };
    ebb_tree tree = { 0 };
    int64_t id, pinned_ms = c->facts.pinned_ms;
    bool ok = c->store && ebb_store_find(c->store, name, &id, NULL) == EBB_OK &&
              ebb_store_load(c->store, id, &facts, &tree, NULL) == EBB_OK;

    if (ok) {
        c->facts.pinned_ms = facts.pinned_ms;    /* the date in its prompt is its own */
        ok = cost_at(c, ebb_tree_leaf(&tree), NULL, out);
        c->facts.pinned_ms = pinned_ms;
    }
    ebb_session_facts_fini(&facts);
    ebb_tree_fini(&tree);
    return ok;
}

static bool cost_of_cut(ebb_chat *c, const char *text, size_t n, ebb_chat_cost *out)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_retokenization r;

    if (ebb_chat_facts(c) || !leaf || ebb_chat_retokenize(c, leaf, text, n, &r, NULL) != EBB_OK)
        return false;
    out->n_tokens = out->n_before - (uint32_t)r.n_old + (uint32_t)r.n_ids;
    out->n_new = out->n_compute = (uint32_t)(r.n_ids - r.n_kept);
    free(r.ids);
    return true;
}

bool ebb_chat_preview(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n, ebb_chat_cost *out)
{
    ebb_message question = { .role = EBB_ROLE_USER, .text = (char *)text, .n_text = n };
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *node;

    *out = (ebb_chat_cost){ 0 };
    if (!c->info || ebb_chat_is_busy(c))
        return false;
    out->n_before = ebb_chat_n_tokens(c);
    switch (act) {
    case EBB_ACT_SEND: return n > 0 && cost_at(c, ebb_tree_above_question(leaf), &question, out);
    case EBB_ACT_EDIT:
        return n > 0 && i < c->tree.n_path && c->tree.path[i]->m.role == EBB_ROLE_USER &&
               cost_at(c, c->tree.path[i]->parent, &question, out);
    case EBB_ACT_CUT: return n > 0 && cost_of_cut(c, text, n, out);
    case EBB_ACT_UNDO:
        for (node = leaf; node && node->m.role != EBB_ROLE_USER;)
            node = node->parent;
        return node && cost_at(c, node->parent, NULL, out);
    case EBB_ACT_GO: return ebb_chat_find_label(c, text, &node, NULL) == EBB_OK && cost_at(c, node, NULL, out);
    case EBB_ACT_LOAD: return cost_of_load(c, text, out);
    }
    return false;
}
