/* The model sums up the oldest turns, and the summary replaces them in the view (overflow.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

static const char ask_for_summary[] =
    "Sum up our conversation so far for yourself, in its own language, in at most %u words: names, facts, "
    "numbers, what was "
    "decided, what is open. What you leave out is lost. Write the summary and nothing else.";

/* The turns before `first`, unchanged, and the request for a summary of them. */
static ebb_status make_summary_prompt(ebb_chat *c, uint32_t first, ebb_prompt *out, ebb_error *err)
{
    char text[sizeof ask_for_summary + 16];
    ebb_message request = { .role = EBB_ROLE_USER, .text = text };
    ebb_context_view v;
    size_t n = 0;
    ebb_status st = ebb_context_view_make(c->tree.path, c->tree.n_path, NULL, &v, err);

    *out = (ebb_prompt){ 0 };
    if (st != EBB_OK)
        return st;
    while (n < v.n && v.nodes[n] != c->tree.path[first])
        n++;
    /* A word is a token and a third. */
    request.n_text = (size_t)snprintf(text, sizeof text, ask_for_summary, (unsigned)(ebb_overflow_reserve(c) * 3 / 4));
    v.messages[n] = request;
    v.list[n] = &v.messages[n];
    st = ebb_context_view_prompt(c, &v, n + 1, out, err);
    ebb_context_view_fini(&v);
    if (st == EBB_OK && c->backend->ops->n_ctx(c->backend) &&
        out->n_ids + ebb_overflow_reserve(c) > c->backend->ops->n_ctx(c->backend)) {
        ebb_prompt_fini(out);
        return EBB_FAIL(err, EBB_CONTEXT, "the oldest turns are too long to be summed up");
    }
    return st;
}

/* The note that receives the summary; the path ends with this note. */
static ebb_node *add_summary_note(ebb_chat *c, const ebb_truncation *l, ebb_overflow_next next)
{
    char text[160];
    ebb_node *note;

    snprintf(text, sizeof text,
             "Summary of the oldest %u turn%s (%s%u tokens, up to message %u), which the model no longer sees:\n\n",
             l->n_turns, l->n_turns == 1 ? "" : "s", ebb_chat_about(c), l->n_tokens, l->first);
    note = ebb_overflow_add_note(c, EBB_OVERFLOW_COMPACT, next, text);
    if (!note)
        return NULL;
    note->m.finish = EBB_FINISH_NONE;
    c->overflow.n_header = note->m.n_text;
    if (ebb_node_set_ids(note, NULL, 0, c->info->fingerprint) && ebb_tree_set_leaf(&c->tree, note))
        return note;
    ebb_tree_drop_newest(&c->tree);
    return NULL;
}

static ebb_status request_summary(ebb_chat *c, const ebb_prompt *p, const ebb_truncation *l, ebb_overflow_next next,
                                  ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *note = add_summary_note(c, l, next);
    ebb_sampler_params sampling = c->settings.sampling;
    ebb_status st;

    if (!note)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a summary");
    sampling.temp = 0;
    st = ebb_turn_request_answer(c, p, note, ebb_overflow_reserve(c), &sampling, err);
    if (st != EBB_OK) {
        ebb_tree_drop_newest(&c->tree);
        return ebb_tree_set_leaf(&c->tree, leaf) ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
    }
    c->turn.is_new_answer = true;
    c->overflow.next = next;
    c->overflow.cut_off = next >= EBB_NEXT_CONTINUE ? leaf : NULL;
    c->overflow.truncation = *l;
    return EBB_OK;
}

ebb_status ebb_overflow_compact(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    ebb_truncation l = { .how = EBB_OVERFLOW_COMPACT };
    ebb_prompt request;
    ebb_status st;

    if (!ebb_overflow_choose_turns(c, p, ebb_overflow_target(c, p->n_ids), &l))
        return EBB_FAIL(err, EBB_CONTEXT, "there are no older turns to sum up");
    l.how = EBB_OVERFLOW_COMPACT;
    st = make_summary_prompt(c, l.first, &request, err);
    if (st == EBB_OK) {
        st = request_summary(c, &request, &l, next, err);
        ebb_prompt_fini(&request);
    }
    if (st != EBB_OK)
        free(l.kept);
    return st;
}

/* -- The written summary --------------------------------------------------------------------- */

/* What the model thought first is no part of the summary. */
static bool strip_thinking(ebb_node *note, size_t n_header)
{
    const char *text = note->m.text + n_header, *behind = ebb_message_behind_thought(text, strlen(text));
    size_t n_rest;
    char *whole;
    bool ok;

    if (!behind)
        return true;
    behind += strspn(behind, " \n");
    n_rest = strlen(behind);
    whole = malloc(n_header + n_rest + 1);
    if (!whole)
        return false;
    memcpy(whole, note->m.text, n_header);
    memcpy(whole + n_header, behind, n_rest);
    ok = ebb_node_set_text(note, whole, n_header + n_rest);
    free(whole);
    return ok;
}

static bool is_summary_usable(const ebb_chat *c, ebb_node *note, const ebb_backend_event *ev)
{
    if (ev->finish != EBB_FINISH_STOP && ev->finish != EBB_FINISH_LENGTH)
        return false;
    return strip_thinking(note, c->overflow.n_header) &&
           strspn(note->m.text + c->overflow.n_header, " \n\t") < note->m.n_text - c->overflow.n_header;
}

/* No summary was made: the path is as before, and the question waits. */
static void abandon_summary(ebb_chat *c, ebb_node *note, const ebb_backend_event *ev)
{
    ebb_node *back = c->overflow.cut_off ? c->overflow.cut_off : note->parent;
    bool is_error = ev->finish == EBB_FINISH_ERROR;

    free(c->overflow.truncation.kept);
    if (note->m.id <= 0 || !c->store || ebb_store_delete_message(c->store, note->m.id, note->n_stored, NULL) == EBB_OK)
        ebb_tree_drop_newest(&c->tree);
    if (!ebb_tree_set_leaf(&c->tree, back))
        ebb_chat_notice(c, "no memory for the path");
    ebb_chat_save(c, true);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (is_error)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, ev->text, ev->n_text, 0, 0);
    else
        ebb_chat_notice(c, "There is no summary, and nothing was forgotten. Enter asks again; /forget leaves the "
                           "oldest turns out.");
    ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
}

bool ebb_overflow_end_summary(ebb_chat *c, const ebb_backend_event *ev, ebb_overflow_next *next, ebb_status *st,
                              ebb_error *err)
{
    ebb_node *note = c->turn.answer;

    c->turn.answer = NULL;
    *next = c->overflow.next;
    *st = EBB_OK;
    if (!is_summary_usable(c, note, ev)) {
        abandon_summary(c, note, ev);
        return false;
    }
    note->m.finish = EBB_FINISH_STOP;
    note->m.turn_stats = ev->turn_stats;
    note->m.truncation = c->overflow.truncation;
    note->is_dirty = true;
    ebb_chat_emit_event(c, EBB_EVENT_NOTE, note->m.text, note->m.n_text, 0, 0);
    *st = ebb_overflow_tokenize_head(c, note, err);
    if (*st == EBB_OK && !ebb_overflow_move_below(c, note, c->overflow.cut_off))
        *st = EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    ebb_chat_save(c, true);
    c->overflow.is_view_changed = true;
    return true;
}
