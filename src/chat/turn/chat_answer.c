/* One answer: asked of the backend, written, ended (chat_turn.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* How much of an answer under way a crash may take; of a long one more, as each time it is written whole: on the disk
 * that layers may be read from. */
#define SAVE_WITHIN_MS     700
#define SAVED_BYTES_PER_MS 200

/* -- Requesting an answer ------------------------------------------------------------------ */

/* Children of `parent` up to `end`, NULL: all. */
static uint32_t count_children(const ebb_node *parent, const ebb_node *end)
{
    uint32_t n = 0;

    for (const ebb_node *k = parent ? parent->first_child : NULL; k && k != end; k = k->next_sibling)
        n++;
    return n;
}

/* With a seed of the user's, another try must still be another answer.  One that goes on keeps its seed: its text is
 * the one it would have without the stop. */
static ebb_sampler_params sampling_for(const ebb_chat *c, const ebb_node *question, const ebb_node *going_on)
{
    ebb_sampler_params s = c->settings.sampling;
    const ebb_message *m = going_on ? &going_on->m : NULL;

    if (s.seed)
        s.seed = ebb_seed_behind(s.seed, count_children(question, going_on));
    else if (m && m->n_sample_records > 0)
        s.seed = m->sample_records[m->n_sample_records - 1].sampling.seed;
    return s;
}

/* Two files of one network have one name. */
static char *answering_model(const ebb_chat *c)
{
    char name[300];

    if (!c->quality.is_open)
        return strdup(c->info->name);
    snprintf(name, sizeof name, "%.270s %s", c->info->name, c->quality.quantization);
    return strdup(name);
}

/* Whose answer it is. */
static bool sign_answer(ebb_chat *c, ebb_node *node, bool continues)
{
    if (!node->m.model && !(node->m.model = answering_model(c)))
        return false;
    if (!continues && ebb_chat_facts(c) && !(node->m.engine = strdup(ebb_chat_facts(c)->name)))
        return false;
    return continues || ebb_node_set_ids(node, NULL, 0, c->info->fingerprint);
}

/* The node that the answer goes into; the backend has not been asked yet. */
static ebb_node *answer_node(ebb_chat *c, bool continues)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *node = leaf;

    if (!continues)
        node = ebb_tree_add(&c->tree, leaf, EBB_ROLE_ASSISTANT, "", 0);
    if (!node || (!continues && !ebb_tree_set_leaf(&c->tree, node)))
        return NULL;
    return sign_answer(c, node, continues) ? node : NULL;
}

/* The nodes of the answers that are wanted beside `first`, its siblings. */
static bool add_other_answers(ebb_chat *c, ebb_node *first)
{
    for (uint32_t i = 1; i < c->turn.n_wanted; i++) {
        ebb_node *node = ebb_tree_add(&c->tree, first->parent, EBB_ROLE_ASSISTANT, "", 0);

        if (!node || !sign_answer(c, node, false))
            return false;
        c->turn.others[c->turn.n_others++] = node;
    }
    return true;
}

/* A template that rewrites history does so each turn: said once, then the turn stats show it. */
static void report_prompt(ebb_chat *c, const ebb_prompt *p)
{
    if (p->notice[0] && p->rewritten && !c->turn.is_rewriting_reported)
        ebb_chat_notice(c, "%s; so it is each turn, and the line below the answer counts them", p->notice);
    else if (p->notice[0] && !p->rewritten)
        ebb_chat_notice(c, "%s", p->notice);
    c->turn.is_rewriting_reported |= p->rewritten;
}

/* Each has a seed of its own, and can be proven by it. */
static void begin_other_records(ebb_chat *c, const ebb_backend_request *r)
{
    for (uint32_t i = 0; i < c->turn.n_others; i++) {
        ebb_backend_request own = *r;

        own.sampling.seed = ebb_seed_behind(own.sampling.seed, i + 1);
        ebb_chat_begin_sample_record(c, &own, c->turn.others[i]);
        c->turn.others[i]->is_dirty = true;
    }
}

ebb_status ebb_turn_request_answer(ebb_chat *c, const ebb_prompt *p, ebb_node *node, uint32_t n_predict,
                              const ebb_sampler_params *sampling, ebb_error *err)
{
    const ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);
    ebb_backend_request r = {
        .ids = p->ids, .n_ids = p->n_ids, .messages = p->messages, .n_messages = p->n_messages, .n_suffix = p->n_suffix,
        .continues = p->n_messages && p->messages[p->n_messages - 1].role == EBB_ROLE_ASSISTANT,
        .n_predict = n_predict, .n_answers = c->turn.n_others + 1, .sampling = *sampling,
        .chosen = ebb_chat_settings_chosen(c),
        .thinking = ebb_form_choice_thinking(c), .cache_salt = ebb_chat_cache_salt(note),
    };
    ebb_status st;

    if (node->m.role == EBB_ROLE_ASSISTANT) {    /* a summary is in the model's own words */
        r.grammar = ebb_form_choice_grammar(c);
        r.n_answer = r.ids ? node->m.n_ids : 0;
    }
    if (c->overflow.gap.n && c->overflow.gap_note == note)
        r.gap = c->overflow.gap;
    ebb_chat_begin_sample_record(c, &r, node);
    begin_other_records(c, &r);
    ebb_overflow_warn_untrained(c, r.n_ids);
    st = c->backend->ops->answer(c->backend, &r, err);
    if (st != EBB_OK)
        return st;
    c->turn.n_asked = (uint32_t)p->n_ids;
    c->turn.n_new = (uint32_t)(c->overflow.is_view_changed ? p->n_ids : p->n_ids - p->n_kept + c->turn.n_retokenized);
    c->turn.stats_before = (ebb_turn_stats){ 0 };
    c->turn.has_lost_text = false;
    c->overflow.asked_at = NULL;
    ebb_overflow_drop_gap(c);
    c->overflow.is_view_changed = false;
    c->turn.answer = node;
    c->turn.is_path_changed = c->turn.n_others > 0;      /* they may take the blocks of this one */
    node->m.finish = EBB_FINISH_NONE;
    node->is_dirty = true;
    snprintf(c->facts.model, sizeof c->facts.model, "%s", c->info->name);
    report_prompt(c, p);
    ebb_chat_save(c, true);
    (void)ebb_chat_lock_writer(c);               /* where another writes, too, both answers are kept, as branches */
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* 0: no limit.  What has reached it does not go on by itself, unless the limit was lowered meanwhile. */
static uint32_t limit_left(const ebb_chat *c)
{
    uint32_t limit = c->settings.n_predict;

    if (limit == 0)
        return 0;
    return limit > c->turn.n_spent ? limit - c->turn.n_spent : 1;
}

ebb_status ebb_turn_request_at_leaf(ebb_chat *c, const ebb_prompt *p, bool continues, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree), *question = continues && leaf ? leaf->parent : leaf;
    ebb_sampler_params sampling = sampling_for(c, question, continues ? leaf : NULL);
    ebb_node *node;
    ebb_status st;

    node = answer_node(c, continues);
    if (!node || (!continues && !ebb_chat_facts(c) && !add_other_answers(c, node)))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    else
        st = ebb_turn_request_answer(c, p, node, limit_left(c), &sampling, err);
    c->turn.n_wanted = 0;
    c->turn.n_others = st == EBB_OK ? c->turn.n_others : 0;
    if (st != EBB_OK)
        return st;
    c->turn.stats_before = continues ? node->m.turn_stats : (ebb_turn_stats){ 0 };
    c->turn.is_new_answer = !continues;
    return EBB_OK;
}

/* -- Going on with one ---------------------------------------------------------------------- */

/* Its text is what a server gets, whoever wrote it. */
static ebb_status check_server_continues(const ebb_chat *c, const ebb_backend_facts *facts, const ebb_message *m,
                                         ebb_error *err)
{
    ebb_thought t = ebb_message_thought(m);

    if (!m->n_text)
        return EBB_OK;
    if (t.body >= m->n_text)
        return EBB_FAIL(err, EBB_USAGE, "the answer was cut off while thinking, which no server can continue; /retry "
                                        "asks for another one");
    if (!facts)                                  /* it is not connected, and who asks it is told so */
        return EBB_OK;
    if (!facts->can_continue)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) starts each answer from the beginning; /retry asks again",
                        facts->name, facts->kind);
    if (ebb_form_choice_grammar(c) && facts->takes_grammar && !facts->continues_form)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) would begin the answer's form anew; /retry asks for a whole one",
                        facts->name, facts->kind);
    return EBB_OK;
}

ebb_status ebb_turn_check_continue(const ebb_chat *c, const ebb_message *m, ebb_error *err)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);

    if (facts || c->remote.name)
        return check_server_continues(c, facts, m, err);
    if (!m->n_ids)
        return EBB_FAIL(err, EBB_USAGE, "the tokens of this answer are not kept: the beginning has changed since, it "
                                        "was imported, or a server wrote it; /retry asks for a new one");
    if (c->info && memcmp(m->ids_model, c->info->fingerprint, sizeof m->ids_model) != 0)
        return EBB_FAIL(err, EBB_USAGE, "another model wrote this answer; /retry asks for a new one");
    return EBB_OK;
}

/* -- It is written, and ends ---------------------------------------------------------------- */

/* The answer that an event belongs to; NULL: that answer has ended. */
static ebb_node *answer_of(const ebb_chat *c, const ebb_backend_event *ev)
{
    if (ev->which == 0)
        return c->turn.answer;
    return ev->which <= c->turn.n_others ? c->turn.others[ev->which - 1] : NULL;
}

/* A server goes on with an answer that has ids.  They would be those of its first half alone, which the model here
 * would take for all of it: from now on its text is what holds.  Nobody can draw it again; who goes on signs it. */
static bool leave_ids(const ebb_chat *c, ebb_node *node)
{
    char *model = strdup(c->info->name), *engine = strdup(ebb_chat_facts(c)->name);

    if (!model || !engine || !ebb_node_set_ids(node, NULL, 0, c->info->fingerprint)) {
        free(model);
        free(engine);
        return false;
    }
    free(node->m.model);
    free(node->m.engine);
    node->m.model = model;
    node->m.engine = engine;
    ebb_message_keep_begin(&node->m);
    return true;
}

static bool add_piece(const ebb_chat *c, ebb_node *node, const ebb_backend_event *ev)
{
    if (ev->token != EBB_TOKEN_NONE)
        return ebb_node_add_id(node, ev->token) && ebb_node_add_text(node, ev->text, ev->n_text);
    return (!node->m.n_ids || !ev->n_text || leave_ids(c, node)) && ebb_node_add_text(node, ev->text, ev->n_text);
}

static uint32_t save_within_ms(const ebb_message *m)
{
    size_t ms = (m->n_text + m->n_ids * sizeof *m->ids) / SAVED_BYTES_PER_MS;

    return ms < SAVE_WITHIN_MS ? SAVE_WITHIN_MS : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void ebb_turn_add_token(ebb_chat *c, const ebb_backend_event *ev)
{
    ebb_node *node = answer_of(c, ev);

    if (!node || c->turn.has_lost_text)          /* what is kept is a beginning, without a hole */
        return;
    node->is_dirty |= ev->which > 0;
    c->turn.has_lost_text |= !add_piece(c, node, ev);
    ebb_chat_arm_timer(c, save_within_ms(&node->m));
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

/* A server that reports no prompt tokens: our estimate of the prompt is taken. */
static ebb_turn_stats complete_cost(const ebb_chat *c, ebb_turn_stats turn_stats)
{
    if (turn_stats.about & EBB_ABOUT_PROMPT)
        turn_stats.n_prompt = turn_stats.n_computed = c->turn.n_asked;
    return turn_stats;
}

/* Its ids are those of more than its text: the text is what the user has seen. */
static void leave_ids_of_lost_text(const ebb_chat *c, ebb_node *node)
{
    if (!c->turn.has_lost_text || !node->m.n_ids || !ebb_node_set_ids(node, NULL, 0, c->info->fingerprint))
        return;
    ebb_message_keep_begin(&node->m);
}

void ebb_turn_end_other(ebb_chat *c, const ebb_backend_event *ev)
{
    ebb_node *node = answer_of(c, ev);

    if (!node)
        return;
    c->turn.has_lost_text |= ev->n_text && !ebb_node_add_text(node, ev->text, ev->n_text);
    node->m.finish = c->turn.has_lost_text ? EBB_FINISH_ERROR : ev->finish;
    ebb_chat_end_sample_record(&node->m, &ev->cache_salt);
    leave_ids_of_lost_text(c, node);
    node->m.turn_stats = ev->turn_stats;
    node->is_dirty = true;
}

/* An answer without a token is none. */
static bool drop_if_empty(ebb_chat *c, ebb_node *node, ebb_finish finish)
{
    if (node->m.n_ids || node->m.n_text || (finish != EBB_FINISH_CANCELED && finish != EBB_FINISH_ERROR))
        return false;
    if (node->m.id > 0 && c->store && ebb_store_delete_message(c->store, node->m.id, node->n_stored, NULL) != EBB_OK)
        return false;                            /* it stays, here and there */
    ebb_tree_drop_newest(&c->tree);
    return true;
}

/* Remove answers without a token, newest sibling first; true: the question is the leaf again. */
static bool drop_empty_answers(ebb_chat *c, ebb_finish finish)
{
    bool all = c->turn.is_new_answer;

    while (all && c->turn.n_others > 0) {
        ebb_node *node = c->turn.others[c->turn.n_others - 1];

        all = drop_if_empty(c, node, node->m.finish == EBB_FINISH_NONE ? finish : node->m.finish);
        c->turn.n_others -= all;
    }
    c->turn.n_others = 0;
    return all && drop_if_empty(c, c->turn.answer, finish);
}

static bool is_unbegun(const ebb_message *m)
{
    return m->role == EBB_ROLE_ASSISTANT && m->finish == EBB_FINISH_NONE && !m->n_ids && !m->n_text;
}

bool ebb_turn_drop_unbegun(ebb_chat *c)
{
    size_t n_before = c->tree.n_nodes;
    bool all = true;

    while (all && c->tree.n_nodes > 0 && is_unbegun(&c->tree.nodes[c->tree.n_nodes - 1]->m))
        all = drop_if_empty(c, c->tree.nodes[c->tree.n_nodes - 1], EBB_FINISH_CANCELED);
    if (c->tree.n_nodes < n_before)
        ebb_chat_save(c, true);
    return all;
}

void ebb_turn_release_lock(ebb_chat *c)
{
    if (!c->is_away && !c->turn.answer)
        ebb_chat_unlock_writer(c);
}

/* What becomes of a server's answer that broke off; "Enter" is for who has one. */
static const char *outlook_of(const ebb_chat *c, const ebb_message *m)
{
    bool is_saved = !c->saving.path || strcmp(c->saving.path, ":memory:") != 0;

    if (!m->n_text || !ebb_chat_facts(c))
        return "";
    if (c->overflow.is_unattended)
        return is_saved ? "; what arrived is kept" : "";
    return ebb_turn_check_continue(c, m, NULL) == EBB_OK ? "; what arrived is kept, and Enter continues"
                                                         : "; what arrived is kept, and /retry asks again";
}

/* m: NULL: nothing came. */
static void emit_error(ebb_chat *c, const ebb_backend_event *ev, const ebb_message *m)
{
    ebb_buf line = { 0 };

    ebb_buf_add(&line, ev->text, ev->n_text);
    ebb_buf_adds(&line, m ? outlook_of(c, m) : "");
    if (line.failed)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, ev->text, ev->n_text, 0, 0);
    else
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, ebb_buf_text(&line), line.len, 0, 0);
    ebb_buf_fini(&line);
}

/* What the count was learned from is not asked again: below a note the question's count says nothing any more. */
bool ebb_turn_learn_count(ebb_chat *c, const ebb_backend_event *ev)
{
    ebb_node *question = c->turn.answer->parent;

    if (ev->finish != EBB_FINISH_ERROR || ev->total <= c->turn.n_asked || !ebb_overflow_fills(c, ev->total) ||
        !question || question->m.role != EBB_ROLE_USER || !drop_empty_answers(c, ev->finish))
        return false;
    question->m.turn_stats.n_prompt = (uint32_t)ev->total;
    question->is_dirty = true;
    c->turn.answer = NULL;
    ebb_chat_save(c, true);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return true;
}

void ebb_turn_end_with_loss(const ebb_chat *c, ebb_backend_event *ev)
{
    static const char line[] = "out of memory: a part of the answer was lost";

    if (!c->turn.has_lost_text || ev->finish == EBB_FINISH_ERROR)
        return;
    ev->finish = EBB_FINISH_ERROR;
    ev->text = line;
    ev->n_text = sizeof line - 1;
}

bool ebb_turn_end_answer(ebb_chat *c, const ebb_backend_event *sent)
{
    ebb_node *node = c->turn.answer;
    ebb_backend_event ev = *sent;
    bool has_rest = ev.finish != EBB_FINISH_ERROR && ev.n_text, is_error, is_dropped;
    ebb_turn_stats turn_stats = complete_cost(c, ev.turn_stats);

    if (has_rest && ebb_node_add_text(node, ev.text, ev.n_text))
        ebb_chat_emit_event(c, EBB_EVENT_TEXT, ev.text, ev.n_text, 0, 0);
    else
        c->turn.has_lost_text |= has_rest;
    ebb_turn_end_with_loss(c, &ev);
    is_error = ev.finish == EBB_FINISH_ERROR;
    node->m.finish = ev.finish;
    ebb_chat_end_sample_record(&node->m, &ev.cache_salt);
    leave_ids_of_lost_text(c, node);
    node->m.turn_stats = sum_turn_stats(c->turn.stats_before, &turn_stats);
    c->turn.n_spent += turn_stats.n_generated;
    node->is_dirty = true;
    ebb_chat_record_away(c, &node->m);
    is_dropped = drop_empty_answers(c, ev.finish);
    c->turn.answer = NULL;
    ebb_chat_save(c, true);
    ebb_turn_release_lock(c);
    if (is_dropped)
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (is_error)
        emit_error(c, &ev, is_dropped ? NULL : &node->m);
    else if (is_dropped)
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    return !is_error && !is_dropped;
}
