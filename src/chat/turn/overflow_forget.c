/* The oldest turns are left out of what the model gets (overflow.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* If `now` is `old` without some tokens in one place, K and V behind can be moved up. */
static void find_removed_gap(ebb_chat *c, const ebb_prompt *old, const ebb_prompt *now, const ebb_cache_salt *before)
{
    size_t at = 0, n = old->n_ids > now->n_ids ? old->n_ids - now->n_ids : 0;
    int32_t *ids;

    ebb_overflow_drop_gap(c);
    if (!old->ids || !now->ids)
        return;
    while (at < now->n_ids && old->ids[at] == now->ids[at])
        at++;
    if (n == 0 || memcmp(old->ids + at + n, now->ids + at, (now->n_ids - at) * sizeof *now->ids) != 0)
        return;
    ids = malloc(n * sizeof *ids);
    if (!ids)
        return;
    memcpy(ids, old->ids + at, n * sizeof *ids);
    c->overflow.gap = (ebb_backend_gap){ .ids = ids, .at = at, .n = n, .before = *before };
    c->overflow.gap_note = ebb_context_view_note(c->tree.path, c->tree.n_path);
}

/* No answer follows now: the gap is closed in the background.  Until that is told (chat_dispatch.c) it stays the next
 * answer's, too, which may be asked for before it was begun. */
void ebb_overflow_close_gap(ebb_chat *c, const ebb_prompt *p)
{
    static const ebb_cache_salt none;

    if (!c->overflow.gap.n || !c->backend->ops->speculative_prefill)
        return;
    c->backend->ops->speculative_prefill(c->backend, p->ids, p->n_ids, &none, &c->overflow.gap);
    c->overflow.prefill_note = c->overflow.gap_note;
}

static ebb_status write_forget_note(const ebb_chat *c, ebb_node *note, ebb_error *err)
{
    const ebb_truncation *l = &note->m.truncation;
    char text[400], count[16];
    bool one = l->n_turns == 1;

    snprintf(count, sizeof count, "%u turns", l->n_turns);
    snprintf(text, sizeof text, "The oldest %s (%s%u tokens, up to message %u) %s forgotten: the model no longer "
                                "sees %s. %s here, in /tree and in /search.%s",
             one ? "turn" : count, ebb_chat_about(c), l->n_tokens, l->first, one ? "is" : "are",
             one ? "it" : "them", one ? "It stays" : "They stay",
             l->n_kept ? " What is pinned stays in sight of the model, too." : "");
    return ebb_node_set_text(note, text, strlen(text)) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
}

/* The path with a note that leaves out enough for n_all to become `target`, and its prompt. */
static ebb_status try_forget_turns(ebb_chat *c, const ebb_prompt *old, size_t target, ebb_overflow_next next,
                                   ebb_prompt *now, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *note;
    ebb_truncation l = { 0 };
    ebb_status st;

    if (!ebb_overflow_choose_turns(c, old, target, &l))
        return c->overflow.is_unattended && !ebb_overflow_fits(c, old->n_ids)
             ? ebb_overflow_refuse_input(c, old->n_ids, err)
             : EBB_FAIL(err, EBB_CONTEXT, "nothing is left to forget: the last turn, the system prompt and what is "
                                          "pinned have %zu tokens, "
                        "the context holds %u with the answer", old->n_ids, c->backend->ops->n_ctx(c->backend));
    note = ebb_overflow_add_note(c, EBB_OVERFLOW_FORGET, next, "");
    if (!note) {
        free(l.kept);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    }
    l.how = EBB_OVERFLOW_FORGET;
    note->m.truncation = l;
    if (!ebb_overflow_move_below(c, note, next >= EBB_NEXT_CONTINUE ? leaf : NULL))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    st = ebb_overflow_tokenize_head(c, note, err);
    if (st == EBB_OK)
        st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, now, err);
    if (st == EBB_OK && now->n_ids < old->n_ids)
        note->m.truncation.n_tokens = (uint32_t)(old->n_ids - now->n_ids);
    return st == EBB_OK ? write_forget_note(c, note, err) : st;
}

ebb_status ebb_overflow_undo(ebb_chat *c, size_t n_nodes, ebb_node *leaf, ebb_status st, ebb_error *err)
{
    while (c->tree.n_nodes > n_nodes)
        ebb_tree_drop_newest(&c->tree);
    return ebb_tree_set_leaf(&c->tree, leaf) ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
}

void ebb_overflow_take_prompt(ebb_chat *c, ebb_prompt *p, ebb_prompt *now, const ebb_cache_salt *before)
{
    const ebb_message *note = &ebb_context_view_note(c->tree.path, c->tree.n_path)->m;

    find_removed_gap(c, p, now, before);
    c->overflow.is_view_changed = true;
    ebb_prompt_fini(p);
    *p = *now;
    ebb_chat_emit_event(c, EBB_EVENT_NOTE, note->text, note->n_text, 0, 0);
}

/* Half of the context is free after that; if sizes were guessed wrong, more goes. */
ebb_status ebb_overflow_forget(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *before = ebb_context_view_note(c->tree.path, c->tree.n_path);
    size_t n_nodes = c->tree.n_nodes, target = ebb_overflow_target(c, p->n_ids);
    ebb_cache_salt cache_salt = ebb_chat_cache_salt(before);
    ebb_prompt now = { 0 };
    ebb_status st;

    for (;; target /= 2) {
        st = try_forget_turns(c, p, target, next, &now, err);
        if (st == EBB_OK && (ebb_overflow_fits(c, now.n_ids) || c->overflow.n_turns || target == 0))
            break;
        ebb_prompt_fini(&now);
        st = ebb_overflow_undo(c, n_nodes, leaf, st, err);
        if (st != EBB_OK)
            return st;
    }
    if (ebb_overflow_fills(c, now.n_ids)) {
        st = EBB_FAIL(err, EBB_CONTEXT,
                      "even without older turns there are %zu tokens, the context holds %u with the answer", now.n_ids,
                      c->backend->ops->n_ctx(c->backend));
        ebb_prompt_fini(&now);
        return ebb_overflow_undo(c, n_nodes, leaf, st, err);
    }
    ebb_overflow_take_prompt(c, p, &now, &cache_salt);
    return EBB_OK;
}
