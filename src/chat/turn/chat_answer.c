/* Answers: the way of one turn through the chat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"
#include "models/models.h"
#include "turn/overflow.h"

#define SAVE_WITHIN_MS 700       /* how much of an answer under way a crash may take */

/* -- Beginning an answer ---------------------------------------------------------------- */

static uint32_t count_children(const ebb_node *node)
{
    uint32_t n = 0;

    for (const ebb_node *k = node ? node->first_child : NULL; k; k = k->next_sibling)
        n++;
    return n;
}

/* With a seed of the user's, another try must still be another answer. */
static ebb_sampler_params sampling_for(const ebb_chat *c, const ebb_node *question)
{
    ebb_sampler_params s = c->settings.sampling;

    if (s.seed)
        s.seed += count_children(question);
    return s;
}

/* The node that the answer goes into; the backend has not been asked yet. */
static ebb_node *answer_node(ebb_chat *c, bool continues)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *node = leaf;

    if (!continues)
        node = ebb_tree_add(&c->tree, leaf, EBB_ROLE_ASSISTANT, "", 0);
    if (!node || (!continues && !ebb_tree_set_leaf(&c->tree, node)))
        return NULL;
    if (!node->m.model && !(node->m.model = strdup(c->info->name)))
        return NULL;
    if (!continues && ebb_chat_facts(c) && !(node->m.engine = strdup(ebb_chat_facts(c)->name)))
        return NULL;
    if (!continues && !ebb_node_set_ids(node, NULL, 0, c->info->fingerprint))
        return NULL;
    return node;
}

/* A template that rewrites history does so each turn: said once, then the receipts count. */
static void report_prompt(ebb_chat *c, const ebb_prompt *p)
{
    if (p->notice[0] && p->rewritten && !c->is_rewriting_reported)
        ebb_chat_notice(c, "%s; so it is each turn, and the receipt counts them", p->notice);
    else if (p->notice[0] && !p->rewritten)
        ebb_chat_notice(c, "%s", p->notice);
    c->is_rewriting_reported |= p->rewritten;
}

ebb_status ebb_chat_request_answer(ebb_chat *c, const ebb_prompt *p, ebb_node *node, uint32_t n_predict, const ebb_sampler_params *sampling,
                        ebb_error *err)
{
    ebb_backend_request r = { .ids = p->ids, .n_ids = p->n_ids, .messages = p->messages, .n_messages = p->n_messages,
                              .continues = p->n_messages && p->messages[p->n_messages - 1].role == EBB_ROLE_ASSISTANT,
                              .chosen = ebb_chat_settings_chosen(c), .thinking = c->settings.thinking, .n_suffix = p->n_suffix, .n_predict = n_predict, .sampling = *sampling,
                              .cache_salt = ebb_chat_cache_salt(ebb_context_view_note(c->tree.path, c->tree.n_path)) };
    ebb_status st;

    if (c->overflow.gap.n && c->overflow.gap_note == ebb_context_view_note(c->tree.path, c->tree.n_path))
        r.gap = c->overflow.gap;
    ebb_chat_begin_sample_record(c, &r, node);
    st = c->backend->ops->answer(c->backend, &r, err);
    if (st != EBB_OK)
        return st;
    c->n_asked = (uint32_t)p->n_ids;
    c->n_turn = (uint32_t)(c->overflow.is_view_changed ? p->n_ids : p->n_ids - p->n_kept + c->n_retokenized);
    c->turn_stats_before = (ebb_turn_stats){ 0 };
    c->overflow.asked_at = NULL;
    ebb_overflow_drop_gap(c);
    c->overflow.is_view_changed = false;
    c->answer = node;
    c->state = EBB_CHAT_ANSWERING;
    c->is_stopping = c->is_path_changed = false;
    node->m.finish = EBB_FINISH_NONE;
    node->is_dirty = true;
    snprintf(c->facts.model, sizeof c->facts.model, "%s", c->info->name);
    report_prompt(c, p);
    ebb_chat_save(c, true);
    ebb_chat_lock_writer(c);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

static ebb_status request_chat_answer(ebb_chat *c, const ebb_prompt *p, bool continues, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree), *question = continues && leaf ? leaf->parent : leaf;
    ebb_sampler_params sampling = sampling_for(c, question);
    ebb_node *node = answer_node(c, continues);
    ebb_status st;

    if (!node)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    st = ebb_chat_request_answer(c, p, node, c->settings.n_predict, &sampling, err);
    if (st != EBB_OK)
        return st;
    c->turn_stats_before = continues ? node->m.turn_stats : (ebb_turn_stats){ 0 };
    c->is_new_answer = !continues;
    return EBB_OK;
}

/* What was asked waits: for the user, for a summary, for the model. */
static void defer_answer(ebb_chat *c)
{
    ebb_chat_save(c, true);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
}

static ebb_status begin_loaded_answer(ebb_chat *c, bool continues, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    size_t n_nodes = c->tree.n_nodes;
    ebb_overflow_outcome outcome = EBB_OVERFLOW_RESOLVED;
    ebb_prompt p;
    ebb_status st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);

    if (st == EBB_OK)
        st = ebb_overflow_resolve(c, &p, continues ? EBB_NEXT_CONTINUE : EBB_NEXT_ANSWER, &outcome, err);
    if (st == EBB_OK && outcome == EBB_OVERFLOW_DEFERRED) {
        defer_answer(c);
    } else {
        if (st == EBB_OK && !ebb_chat_record_ids(c, &p))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
        if (st == EBB_OK)
            st = request_chat_answer(c, &p, continues, err);
    }
    ebb_prompt_fini(&p);
    while (st != EBB_OK && c->tree.n_nodes > n_nodes)
        ebb_tree_drop_newest(&c->tree);
    if (st != EBB_OK && ebb_tree_leaf(&c->tree) != leaf && !ebb_tree_set_leaf(&c->tree, leaf))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
    return st;
}

ebb_status ebb_chat_begin_answer(ebb_chat *c, bool continues, ebb_error *err)
{
    if (c->facts.pinned_ms == 0)
        c->facts.pinned_ms = ebb_clock_unix_ms();
    if (c->state == EBB_CHAT_FAILED && c->engine && !continues) { /* perhaps it is there by now */
        ebb_status st = ebb_chat_open_model(c, NULL, err);
        if (st != EBB_OK)
            return st;
    }
    if (c->state == EBB_CHAT_FAILED)
        return EBB_FAIL(err, EBB_NOTFOUND, "no model is loaded: /model FILE loads one%s", c->engine ? ", /engine another engine" : "");
    if (c->state == EBB_CHAT_IDLE)
        return begin_loaded_answer(c, continues, err);
    if (continues)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    c->is_answer_pending = true;
    ebb_chat_save(c, true);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* The model that the user named is taken again when he names none. */
static void remember_user_model(ebb_chat *c)
{
    ebb_error err;

    if (!c->is_chosen || !c->info->path || (c->store_path && strcmp(c->store_path, ":memory:") == 0))
        return;
    if (ebb_models_remember(c->info->path, &err) != EBB_OK)
        ebb_chat_notice(c, "the choice of this model is not kept: %s", err.msg);
}

/* What the user should know of the model before the first answer. */
static void report_model(ebb_chat *c)
{
    ebb_stats s = { 0 };
    char unfollowed[200];

    ebb_chat_stats(c, &s);
    if (s.left_out[0])
        ebb_chat_notice(c, "%s", s.left_out);
    if (ebb_chat_settings_unfollowed(c, unfollowed, sizeof unfollowed))
        ebb_chat_notice(c, "the model's file recommends what there is no setting for, and it is not followed: %s", unfollowed);
    if (c->advice.system && !(ebb_chat_n_messages(c) && ebb_chat_message(c, 0)->role == EBB_ROLE_SYSTEM))
        ebb_chat_notice(c, "Ollama's %.80s comes with a system prompt; /prompt model takes it", c->advice.name);
}

void ebb_chat_on_ready(ebb_chat *c)
{
    ebb_error err = { 0 };
    char notice[256] = "";
    ebb_status st = c->ops.ready(c->ops.arg, c->backend, &c->info, &c->prompter, notice, &err);

    c->state = st == EBB_OK ? EBB_CHAT_IDLE : EBB_CHAT_FAILED;
    if (st == EBB_OK && !c->engine && c->info->path)
        ebb_models_read_advice(c->info->path, &c->advice);
    if (st == EBB_OK)
        ebb_chat_settings_apply_model(c);
    if (st == EBB_OK)
        remember_user_model(c);
    if (st == EBB_OK)
        report_model(c);
    if (st == EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_READY, c->info->name, strlen(c->info->name), 0, 0);
    if (notice[0])
        ebb_chat_notice(c, "%s", notice);
    c->overflow.has_grown = false;
    if (st == EBB_OK && c->is_answer_pending)
        st = ebb_chat_begin_answer(c, c->overflow.awaits_continue, &err);
    c->is_answer_pending = c->overflow.awaits_continue = false;
    if (st != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
}

/* -- The answer comes ---------------------------------------------------------------------- */

void ebb_chat_on_token(ebb_chat *c, const ebb_backend_event *ev)
{
    if (!c->answer)
        return;
    if ((ev->token != EBB_NO_TOKEN && !ebb_node_add_id(c->answer, ev->token)) || !ebb_node_add_text(c->answer, ev->text, ev->n_text))
        ebb_chat_notice(c, "out of memory: a part of the answer was lost");
    ebb_chat_arm_timer(c, SAVE_WITHIN_MS);
}

static ebb_turn_stats sum_turn_stats(ebb_turn_stats a, const ebb_turn_stats *b)
{
    if (a.n_prompt == 0)
        return *b;
    a.n_computed += b->n_computed;
    a.n_generated += b->n_generated;
    a.prefill_s += b->prefill_s;
    a.decode_s += b->decode_s;
    a.about |= b->about;
    return a;
}

/* What a server does not tell is about what was asked. */
static ebb_turn_stats complete_cost(const ebb_chat *c, ebb_turn_stats turn_stats)
{
    if (turn_stats.about & EBB_ABOUT_PROMPT)
        turn_stats.n_prompt = turn_stats.n_computed = c->n_asked;
    return turn_stats;
}

/* An answer without a token is none: the question stands alone, as before. */
static bool drop_empty_answer(ebb_chat *c, ebb_finish finish)
{
    ebb_node *node = c->answer;

    if (!c->is_new_answer || node->m.n_ids || node->m.n_text || (finish != EBB_FINISH_CANCELED && finish != EBB_FINISH_ERROR))
        return false;
    if (node->m.id > 0 && c->store && ebb_store_delete_message(c->store, node->m.id, NULL) != EBB_OK)
        return false;                            /* it stays, here and there */
    ebb_tree_drop_newest(&c->tree);
    return true;
}

void ebb_chat_record_cache_salt(ebb_chat *c, const ebb_cache_salt *cache_salt)
{
    ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);
    ebb_truncation *l = note ? &note->m.truncation : NULL;

    if (!l || !cache_salt->is_on || (l->has_cache_salt && memcmp(l->salt, cache_salt->salt, sizeof cache_salt->salt) == 0))
        return;
    l->has_cache_salt = true;
    l->salt_pos = cache_salt->pos;
    memcpy(l->salt, cache_salt->salt, sizeof cache_salt->salt);
    note->is_dirty = true;
}

/* The answer has filled the context: if the policy makes room, it goes on. */
static bool continue_by_policy(ebb_chat *c)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_error err = { 0 };

    if (!c->backend)                             /* it was closed, and this is the last of it */
        return false;
    ebb_overflow_warn(c);
    if (!leaf || !ebb_overflow_continues(c, &leaf->m))
        return false;
    if (ebb_chat_begin_answer(c, true, &err) == EBB_OK)
        return true;
    ebb_chat_notice(c, "%s", err.msg);
    return false;
}

/* It is saved, and nobody needs to look on; without a terminal only when all of it has ended. */
static void release_writer_lock(ebb_chat *c)
{
    if (!c->is_away && c->state != EBB_CHAT_ANSWERING)
        ebb_chat_unlock_writer(c);
}

void ebb_chat_on_end(ebb_chat *c, const ebb_backend_event *ev)
{
    bool is_error = ev->finish == EBB_FINISH_ERROR, is_dropped;
    ebb_turn_stats turn_stats;

    c->state = EBB_CHAT_IDLE;
    if (!c->answer)
        return;
    ebb_chat_record_cache_salt(c, &ev->cache_salt);
    if (c->answer->m.role == EBB_ROLE_NOTE) {
        ebb_overflow_on_summary(c, ev);
        release_writer_lock(c);
        return;
    }
    if (!is_error && ev->n_text && ebb_node_add_text(c->answer, ev->text, ev->n_text))
        ebb_chat_emit_event(c, EBB_EVENT_TEXT, ev->text, ev->n_text, 0, 0);
    c->answer->m.finish = ev->finish;
    ebb_chat_end_sample_record(&c->answer->m, &ev->cache_salt);
    turn_stats = complete_cost(c, ev->turn_stats);
    c->answer->m.turn_stats = sum_turn_stats(c->turn_stats_before, &turn_stats);
    c->answer->is_dirty = true;
    ebb_chat_record_away(c, &c->answer->m);
    is_dropped = drop_empty_answer(c, ev->finish);
    c->answer = NULL;
    ebb_chat_save(c, true);
    release_writer_lock(c);
    if (is_dropped)
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (is_error)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, ev->text, ev->n_text, 0, 0);
    else if (is_dropped || !continue_by_policy(c))
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
}
