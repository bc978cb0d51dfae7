/* /cut: an answer is cut or edited, and continued from there (chat.h). */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

static ebb_status check_cut(const ebb_chat *c, const ebb_node *leaf, size_t n, ebb_error *err)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);

    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to cut");
    if (!c->info)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "nothing of the answer would stay; /retry asks for another one");
    if (facts && !facts->can_continue)
        return ebb_chat_need_ids(c, "a server of its kind starts each answer from the beginning", err);
    return EBB_OK;
}

/* A sibling of `old` with these words and their ids. */
static ebb_node *add_cut_answer(ebb_chat *c, const ebb_node *old, const ebb_retokenization *r)
{
    ebb_node *node = ebb_tree_add(&c->tree, old->parent, EBB_ROLE_ASSISTANT, r->text, r->n_text);

    if (!node)
        return NULL;
    node->m.finish = EBB_FINISH_CANCELED;        /* more of this text does not come by itself */
    node->m.model = strdup(c->info->name);
    node->m.engine = ebb_chat_facts(c) ? strdup(ebb_chat_facts(c)->name) : NULL;
    if (node->m.model && ebb_message_copy_begin(&node->m, &old->m) &&
        ebb_node_set_ids(node, r->ids, r->n_ids, c->info->fingerprint) &&
        ebb_tree_set_leaf(&c->tree, node))
        return node;
    ebb_tree_drop_newest(&c->tree);
    return NULL;
}

ebb_status ebb_chat_retokenize(ebb_chat *c, const ebb_node *old, const char *text, size_t n, ebb_retokenization *r,
                               ebb_error *err)
{
    const ebb_node *before = old->parent;

    *r = (ebb_retokenization){ .text = text, .n_text = n };
    if (before && ebb_chat_has_ids(c, &before->m)) {
        r->before = before->m.ids;
        r->n_before = before->m.n_ids;
    }
    if (ebb_chat_has_ids(c, &old->m)) {
        r->old = old->m.ids;
        r->n_old = old->m.n_ids;
        r->old_text = old->m.text;
        r->n_old_text = old->m.n_text;
    }
    return c->ops.retokenize(c->ops.arg, c->backend, r, err);
}

ebb_status ebb_chat_cut(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_retokenization r;
    ebb_status st = check_cut(c, leaf, n, err);

    if (st != EBB_OK)
        return st;
    r = (ebb_retokenization){ .text = text, .n_text = n };
    if (!ebb_chat_facts(c))
        st = ebb_chat_retokenize(c, leaf, text, n, &r, err);
    if (st == EBB_OK && !add_cut_answer(c, leaf, &r))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
    free(r.ids);
    if (st != EBB_OK)
        return st;
    c->turn.n_retokenized = r.n_ids - r.n_kept;
    st = ebb_chat_begin_answer(c, true, err);
    c->turn.n_retokenized = 0;
    if (st == EBB_OK)
        return EBB_OK;
    ebb_tree_drop_newest(&c->tree);
    return ebb_tree_set_leaf(&c->tree, leaf) ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
}
