/* Answers: the way of one turn through the chat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chat_priv.h"
#include "chat_room.h"
#include "models.h"

#define SAVE_WITHIN_MS 700       /* how much of an answer under way a crash may take */

/* -- Beginning an answer ---------------------------------------------------------------- */

static uint32_t n_children(const ebb_node *node)
{
    uint32_t n = 0;

    for (const ebb_node *k = node ? node->first_child : NULL; k; k = k->next_sibling)
        n++;
    return n;
}

/* With a seed of the user's, another try must still be another answer. */
static ebb_sampling sampling_for(const ebb_chat *c, const ebb_node *question)
{
    ebb_sampling s = c->settings.sampling;

    if (s.seed)
        s.seed += n_children(question);
    return s;
}

/* The node that the answer goes into; the backend has not been asked yet. */
static ebb_node *answer_node(ebb_chat *c, bool go_on)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *node = leaf;

    if (!go_on)
        node = ebb_tree_add(&c->tree, leaf, EBB_ROLE_ASSISTANT, "", 0);
    if (!node || (!go_on && !ebb_tree_stand(&c->tree, node)))
        return NULL;
    if (!node->m.model && !(node->m.model = strdup(c->info->name)))
        return NULL;
    if (!go_on && !ebb_node_set_ids(node, NULL, 0, c->info->fingerprint))
        return NULL;
    return node;
}

/* A template that rewrites history does so each turn: said once, then the receipts count. */
static void tell_prompt(ebb_chat *c, const ebb_prompt *p)
{
    if (p->notice[0] && p->rewritten && !c->knows_rewriting)
        ebb_chat_notice(c, "%s; so it is each turn, and the receipt counts them", p->notice);
    else if (p->notice[0] && !p->rewritten)
        ebb_chat_notice(c, "%s", p->notice);
    c->knows_rewriting |= p->rewritten;
}

ebb_status ebb_chat_ask(ebb_chat *c, const ebb_prompt *p, ebb_node *node, uint32_t n_predict, const ebb_sampling *sampling,
                        ebb_error *err)
{
    ebb_backend_request r = { .ids = p->ids, .n_ids = p->n_ids, .n_frame = p->n_frame, .n_predict = n_predict, .sampling = *sampling,
                              .shift = ebb_chat_shift(ebb_view_note(c->tree.path, c->tree.n_path)) };
    ebb_status st;

    if (c->room.gap.n && c->room.gap_note == ebb_view_note(c->tree.path, c->tree.n_path))
        r.gap = c->room.gap;
    ebb_chat_note_draw(c, &r, node);
    st = c->backend->ops->answer(c->backend, &r, err);
    if (st != EBB_OK)
        return st;
    c->n_turn = (uint32_t)(c->room.is_new_view ? p->n_ids : p->n_ids - p->n_kept + c->n_respelt);
    c->cost_before = (ebb_turn_cost){ 0 };
    c->room.asked_at = NULL;
    ebb_room_forget_gap(c);
    c->room.is_new_view = false;
    c->answer = node;
    c->state = EBB_CHAT_ANSWERING;
    c->is_stopping = c->is_elsewhere = false;
    node->m.finish = EBB_FINISH_NONE;
    node->is_dirty = true;
    snprintf(c->facts.model, sizeof c->facts.model, "%s", c->info->name);
    tell_prompt(c, p);
    ebb_chat_save(c, true);
    ebb_chat_mark(c);
    ebb_chat_tell(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

static ebb_status ask(ebb_chat *c, const ebb_prompt *p, bool go_on, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree), *question = go_on && leaf ? leaf->parent : leaf;
    ebb_sampling sampling = sampling_for(c, question);
    ebb_node *node = answer_node(c, go_on);
    ebb_status st;

    if (!node)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    st = ebb_chat_ask(c, p, node, c->settings.n_predict, &sampling, err);
    if (st != EBB_OK)
        return st;
    c->cost_before = go_on ? node->m.cost : (ebb_turn_cost){ 0 };
    c->is_new_answer = !go_on;
    return EBB_OK;
}

/* What was asked waits: for the user, for a summary, for the model. */
static void put_off(ebb_chat *c)
{
    ebb_chat_save(c, true);
    ebb_chat_tell(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
}

static ebb_status begin_now(ebb_chat *c, bool go_on, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    size_t n_nodes = c->tree.n_nodes;
    ebb_room room = EBB_ROOM_THERE;
    ebb_prompt p;
    ebb_status st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);

    if (st == EBB_OK)
        st = ebb_room_make(c, &p, go_on ? EBB_THEN_GO_ON : EBB_THEN_ANSWER, &room, err);
    if (st == EBB_OK && room == EBB_ROOM_PUT_OFF) {
        put_off(c);
    } else {
        if (st == EBB_OK && !ebb_chat_keep_ids(c, &p))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
        if (st == EBB_OK)
            st = ask(c, &p, go_on, err);
    }
    ebb_prompt_fini(&p);
    while (st != EBB_OK && c->tree.n_nodes > n_nodes)
        ebb_tree_drop_newest(&c->tree);
    if (st != EBB_OK && ebb_tree_leaf(&c->tree) != leaf && !ebb_tree_stand(&c->tree, leaf))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
    return st;
}

ebb_status ebb_chat_begin(ebb_chat *c, bool go_on, ebb_error *err)
{
    if (c->facts.pinned_ms == 0)
        c->facts.pinned_ms = ebb_clock_unix_ms();
    if (c->state == EBB_CHAT_FAILED)
        return EBB_FAIL(err, EBB_NOTFOUND, "no model is loaded: /model FILE loads one");
    if (c->state == EBB_CHAT_IDLE)
        return begin_now(c, go_on, err);
    if (go_on)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    c->is_awaited = true;
    ebb_chat_save(c, true);
    ebb_chat_tell(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* The model that the user named is taken again when he names none. */
static void remember(ebb_chat *c)
{
    ebb_error err;

    if (!c->is_chosen || !c->info->path || (c->store_path && strcmp(c->store_path, ":memory:") == 0))
        return;
    if (ebb_models_remember(c->info->path, &err) != EBB_OK)
        ebb_chat_notice(c, "the choice of this model is not kept: %s", err.msg);
}

void ebb_chat_on_ready(ebb_chat *c)
{
    ebb_error err = { 0 };
    char notice[256] = "";
    ebb_status st = c->parts.ready(c->parts.arg, c->backend, &c->info, &c->prompter, notice, &err);

    c->state = st == EBB_OK ? EBB_CHAT_IDLE : EBB_CHAT_FAILED;
    if (st == EBB_OK)
        ebb_chat_settings_advise(c);
    if (st == EBB_OK)
        remember(c);
    if (st == EBB_OK)
        ebb_chat_tell(c, EBB_EVENT_READY, c->info->name, strlen(c->info->name), 0, 0);
    if (notice[0])
        ebb_chat_notice(c, "%s", notice);
    c->room.has_grown = false;
    if (st == EBB_OK && c->is_awaited)
        st = ebb_chat_begin(c, c->room.awaits_go_on, &err);
    c->is_awaited = c->room.awaits_go_on = false;
    if (st != EBB_OK)
        ebb_chat_tell(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
}

/* -- The answer comes ---------------------------------------------------------------------- */

void ebb_chat_on_token(ebb_chat *c, const ebb_backend_event *ev)
{
    if (!c->answer)
        return;
    if (!ebb_node_add_id(c->answer, ev->token) || !ebb_node_add_text(c->answer, ev->text, ev->n_text))
        ebb_chat_notice(c, "out of memory: a part of the answer was lost");
    ebb_chat_ring_within(c, SAVE_WITHIN_MS);
}

static ebb_turn_cost sum(ebb_turn_cost a, const ebb_turn_cost *b)
{
    if (a.n_prompt == 0)
        return *b;
    a.n_computed += b->n_computed;
    a.n_generated += b->n_generated;
    a.prefill_s += b->prefill_s;
    a.decode_s += b->decode_s;
    return a;
}

/* An answer without a token is none: the question stands alone, as before. */
static bool drop_empty(ebb_chat *c, ebb_finish finish)
{
    ebb_node *node = c->answer;

    if (!c->is_new_answer || node->m.n_ids || (finish != EBB_FINISH_CANCELED && finish != EBB_FINISH_ERROR))
        return false;
    if (node->m.id > 0 && c->store && ebb_store_drop(c->store, node->m.id, NULL) != EBB_OK)
        return false;                            /* it stays, here and there */
    ebb_tree_drop_newest(&c->tree);
    return true;
}

void ebb_chat_keep_shift(ebb_chat *c, const ebb_shift *shift)
{
    ebb_node *note = ebb_view_note(c->tree.path, c->tree.n_path);
    ebb_left_out *l = note ? &note->m.left_out : NULL;

    if (!l || !shift->is_on || (l->has_shift && memcmp(l->shift_salt, shift->salt, sizeof shift->salt) == 0))
        return;
    l->has_shift = true;
    l->shift_pos = shift->pos;
    memcpy(l->shift_salt, shift->salt, sizeof shift->salt);
    note->is_dirty = true;
}

/* The answer has filled the context: if the policy makes room, it goes on. */
static bool goes_on_by_itself(ebb_chat *c)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_error err = { 0 };

    if (!c->backend)                             /* it was closed, and this is the last of it */
        return false;
    ebb_room_warn(c);
    if (!leaf || !ebb_room_goes_on(c, &leaf->m))
        return false;
    if (ebb_chat_begin(c, true, &err) == EBB_OK)
        return true;
    ebb_chat_notice(c, "%s", err.msg);
    return false;
}

/* It is saved, and nobody needs to look on; without a terminal only when all of it has ended. */
static void end_mark(ebb_chat *c)
{
    if (!c->is_away && c->state != EBB_CHAT_ANSWERING)
        ebb_chat_unmark(c);
}

void ebb_chat_on_end(ebb_chat *c, const ebb_backend_event *ev)
{
    bool is_error = ev->finish == EBB_FINISH_ERROR, is_dropped;

    c->state = EBB_CHAT_IDLE;
    if (!c->answer)
        return;
    ebb_chat_keep_shift(c, &ev->shift);
    if (c->answer->m.role == EBB_ROLE_NOTE) {
        ebb_room_on_summary(c, ev);
        end_mark(c);
        return;
    }
    if (!is_error && ev->n_text && ebb_node_add_text(c->answer, ev->text, ev->n_text))
        ebb_chat_tell(c, EBB_EVENT_TEXT, ev->text, ev->n_text, 0, 0);
    c->answer->m.finish = ev->finish;
    ebb_chat_end_draw(&c->answer->m, &ev->shift);
    c->answer->m.cost = sum(c->cost_before, &ev->cost);
    c->answer->is_dirty = true;
    ebb_chat_note_away(c, &c->answer->m);
    is_dropped = drop_empty(c, ev->finish);
    c->answer = NULL;
    ebb_chat_save(c, true);
    end_mark(c);
    if (is_dropped)
        ebb_chat_tell(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (is_error)
        ebb_chat_tell(c, EBB_EVENT_ERROR, ev->text, ev->n_text, 0, 0);
    else if (is_dropped || !goes_on_by_itself(c))
        ebb_chat_tell(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
}
