/* An answer with another end, and on from there (chat.h). */
#include <stdlib.h>
#include <string.h>

#include "chat_priv.h"

static ebb_status check(const ebb_chat *c, const ebb_node *leaf, size_t n, ebb_error *err)
{
    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to cut");
    if (!c->info)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "nothing of the answer would stay; /retry asks for another one");
    return EBB_OK;
}

/* A sibling of `old` with these words and their ids. */
static ebb_node *plant(ebb_chat *c, const ebb_node *old, const ebb_respell *r)
{
    ebb_node *node = ebb_tree_add(&c->tree, old->parent, EBB_ROLE_ASSISTANT, r->text, r->n_text);

    if (!node)
        return NULL;
    node->m.model = strdup(c->info->name);
    if (node->m.model && ebb_node_set_ids(node, r->ids, r->n_ids, c->info->fingerprint) && ebb_tree_stand(&c->tree, node))
        return node;
    ebb_tree_drop_newest(&c->tree);
    return NULL;
}

ebb_status ebb_chat_respell(ebb_chat *c, const ebb_node *old, const char *text, size_t n, ebb_respell *r, ebb_error *err)
{
    const ebb_node *before = old->parent;

    *r = (ebb_respell){ .text = text, .n_text = n };
    if (before && ebb_chat_has_ids(c, &before->m)) {
        r->before = before->m.ids;
        r->n_before = before->m.n_ids;
    }
    if (ebb_chat_has_ids(c, &old->m)) {
        r->old = old->m.ids;
        r->n_old = old->m.n_ids;
    }
    return c->parts.respell(c->parts.arg, c->backend, r, err);
}

ebb_status ebb_chat_cut(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_respell r;
    ebb_status st = check(c, leaf, n, err);

    if (st != EBB_OK)
        return st;
    st = ebb_chat_respell(c, leaf, text, n, &r, err);
    if (st == EBB_OK && !plant(c, leaf, &r))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
    free(r.ids);
    if (st != EBB_OK)
        return st;
    c->n_respelt = r.n_ids - r.n_kept;
    st = ebb_chat_begin(c, true, err);
    c->n_respelt = 0;
    if (st == EBB_OK)
        return EBB_OK;
    ebb_tree_drop_newest(&c->tree);
    return ebb_tree_stand(&c->tree, leaf) ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
}
