/* What the user can do with a conversation (chat.h). */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/models.h"
#include "remote/engines_file.h"
#include "store/title.h"

static ebb_status fail_no_message_memory(ebb_error *err)
{
    return EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
}

bool ebb_chat_is_question_open(const ebb_chat *c)
{
    return ebb_tree_is_question_open(ebb_tree_leaf(&c->tree));
}

/* -- Asking ---------------------------------------------------------------------------- */

static void set_first_title(ebb_chat *c, const char *text, size_t n)
{
    if (c->facts.title[0])
        return;
    ebb_title_make(text, n, c->facts.title, sizeof c->facts.title);
    if (!c->facts.title[0])
        strcpy(c->facts.title, "untitled");
}

/* So many answers to the question at the leaf.  It may wait for the model or for room in the context, and the wish with
 * it; where neither begins, nothing is left of it for another question. */
static ebb_status begin_answers(ebb_chat *c, uint32_t n_answers, ebb_error *err)
{
    ebb_status st;

    c->turn.n_wanted = n_answers;
    st = ebb_chat_begin_answer(c, false, err);
    if (st != EBB_OK)
        c->turn.n_wanted = 0;
    return st;
}

/* A question below `parent`, and its answers.  If they cannot begin, all is as before. */
static ebb_status ask_question(ebb_chat *c, ebb_node *parent, uint32_t n_answers, const char *text, size_t n,
                               ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *node = ebb_tree_add(&c->tree, parent, EBB_ROLE_USER, text, n);
    bool is_first = !c->facts.title[0];
    ebb_status st;

    if (!node || !ebb_tree_set_leaf(&c->tree, node)) {
        if (node)
            ebb_tree_drop_newest(&c->tree);
        return fail_no_message_memory(err);
    }
    set_first_title(c, text, n);
    st = begin_answers(c, n_answers, err);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_tree_drop_newest(&c->tree);
    if (is_first)
        c->facts.title[0] = '\0';
    return ebb_tree_set_leaf(&c->tree, leaf) ? st : fail_no_message_memory(err);
}

/* Several answers are for the local engine only: those of a server may be paid for. */
static ebb_status check_n_answers(const ebb_chat *c, uint32_t n, ebb_error *err)
{
    if (n == 0 || n > EBB_CHAT_MAX_ANSWERS)
        return EBB_FAIL(err, EBB_USAGE, "1 to %u answers can be written at a time", EBB_CHAT_MAX_ANSWERS);
    if (n > 1 && c->remote.name)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s gives one answer at a time; the engine in this process can give "
                                              "several",
                        ebb_chat_engine_word(c));
    return EBB_OK;
}

ebb_status ebb_chat_send_several(ebb_chat *c, uint32_t n_answers, const char *text, size_t n, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK && n == 0)
        st = EBB_FAIL(err, EBB_USAGE, "there is nothing to send");
    if (st == EBB_OK)
        st = check_n_answers(c, n_answers, err);
    if (st != EBB_OK)
        return st;
    /* An unanswered question at the leaf is left out: the new one becomes its sibling. */
    st = ask_question(c, ebb_tree_above_question(leaf), n_answers, text, n, err);
    if (st == EBB_OK && ebb_tree_is_question_open(leaf))
        ebb_chat_notice(c, "the question before has no answer and is left out; /tree shows it");
    return st;
}

ebb_status ebb_chat_send(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    return ebb_chat_send_several(c, 1, text, n, err);
}

void ebb_chat_stop(ebb_chat *c)
{
    if (c->job)
        ebb_chat_job_stop(c);
    else if (c->follow.session)
        ebb_chat_follow_stop(c);
    else
        ebb_turn_stop(c);
}

static ebb_status check_model_loaded(const ebb_chat *c, ebb_error *err)
{
    if (c->opening.is_deferred)
        return EBB_FAIL(err, EBB_BUSY, "the model will be loaded when another process has finished its answer");
    if (c->turn.state == EBB_TURN_NO_MODEL)
        return EBB_FAIL(err, EBB_BUSY, "no model is loaded: /model FILE loads one");
    if (c->turn.state == EBB_TURN_LOADING || c->turn.state == EBB_TURN_WAITING)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    return EBB_OK;
}

ebb_status ebb_chat_set_budget(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    ebb_status st = ebb_chat_need_ids(c, "the server's memory is its own", err);

    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK)
        st = c->backend->ops->set_budget(c->backend, bytes, err);
    c->awaits_budget |= st == EBB_OK;
    c->overflow.cannot_grow &= st != EBB_OK;
    c->overflow.budget_asked = st == EBB_OK ? bytes : c->overflow.budget_asked;
    return st;
}

/* The model is here, idle, and can be opened in another way. */
static ebb_status check_can_reopen(ebb_chat *c, const char *why_not_there, ebb_error *err)
{
    ebb_status st = ebb_chat_need_ids(c, why_not_there, err);

    if (st != EBB_OK)
        return st;
    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    if (c->turn.state != EBB_TURN_IDLE || !c->ops.plan)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    return ebb_chat_check_file_at_hand(c, err);
}

ebb_status ebb_chat_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    bool is_price = false;
    ebb_status st = check_can_reopen(c, "the context is the server's", err);

    if (st == EBB_OK)
        st = ebb_overflow_price_ctx(c, n_ctx, &is_price, err);
    return st != EBB_OK || is_price ? st : ebb_turn_set_ctx(c, n_ctx, err);
}

ebb_status ebb_chat_replan(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    ebb_status st = check_can_reopen(c, "the server's memory is its own", err);

    return st == EBB_OK ? ebb_turn_replan(c, bytes, err) : st;
}

ebb_status ebb_chat_plan(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_need_ids(c, "the plan is the server's", err);

    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK)
        st = c->backend->ops->plan(c->backend, err);
    c->awaits_plan |= st == EBB_OK;
    return st;
}

ebb_status ebb_chat_continue(ebb_chat *c, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (leaf && c->overflow.asked_at == leaf)    /* /continue answers the overflow question: forget */
        return ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 0, err);
    if (ebb_tree_is_question_open(leaf))
        return begin_answers(c, 1, err);
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to continue");
    if (leaf->m.finish == EBB_FINISH_STOP)
        return EBB_FAIL(err, EBB_USAGE, "the answer is complete; /retry asks for another one");
    st = ebb_turn_check_continue(c, &leaf->m, err);
    return st == EBB_OK ? ebb_chat_begin_answer(c, true, err) : st;
}

/* A server has counted it with another system prompt, perhaps, or another one has: it is asked once more. */
static void forget_refused_count(ebb_node *leaf)
{
    while (leaf && leaf->m.role == EBB_ROLE_NOTE)
        leaf = leaf->parent;
    if (!leaf || leaf->m.role != EBB_ROLE_USER || leaf->m.turn_stats.n_prompt == 0)
        return;
    leaf->m.turn_stats.n_prompt = 0;
    leaf->is_dirty = true;
}

ebb_status ebb_chat_retry_several(ebb_chat *c, uint32_t n_answers, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *answer = leaf;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = check_n_answers(c, n_answers, err);
    if (st != EBB_OK)
        return st;
    if (ebb_tree_is_question_open(leaf)) {
        forget_refused_count(leaf);
        return begin_answers(c, n_answers, err);
    }
    while (answer && answer->m.role == EBB_ROLE_NOTE)
        answer = answer->parent;
    if (!answer || answer->m.role == EBB_ROLE_SYSTEM)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to try again");
    if (!answer->parent || !ebb_tree_set_leaf(&c->tree, answer->parent))
        return EBB_FAIL(err, EBB_USAGE, "this answer has no question");
    st = begin_answers(c, n_answers, err);
    if (st != EBB_OK && !ebb_tree_set_leaf(&c->tree, leaf))
        return fail_no_message_memory(err);
    return st;
}

ebb_status ebb_chat_retry(ebb_chat *c, ebb_error *err)
{
    return ebb_chat_retry_several(c, 1, err);
}

ebb_status ebb_chat_free_context(ebb_chat *c, ebb_overflow_policy how, uint32_t n_turns, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_overflow_next next;
    ebb_status st;

    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    if (c->turn.state != EBB_TURN_IDLE)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (!leaf)
        return EBB_FAIL(err, EBB_USAGE, "the conversation is empty");
    next = ebb_overflow_choose_next(c, leaf);
    if (c->overflow.asked_at != leaf)            /* the question is not the one that waits for this */
        c->turn.n_wanted = 1;
    c->overflow.is_forced = true;
    c->overflow.forced = how;
    c->overflow.n_turns = n_turns;
    if (next == EBB_NEXT_ANSWER || next == EBB_NEXT_CONTINUE)
        st = ebb_chat_begin_answer(c, next == EBB_NEXT_CONTINUE, err);
    else
        st = ebb_turn_free_context(c, next, err);
    c->overflow.is_forced = false;
    c->overflow.n_turns = 0;                     /* also of what failed before turns were chosen */
    return st;
}

/* -- Moving in the tree -------------------------------------------------------------------- */

ebb_status ebb_chat_undo(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_tree_undo(&c->tree))
        return EBB_FAIL(err, EBB_USAGE, "there is no question to take back");
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}

ebb_status ebb_chat_redo(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_tree_redo(&c->tree))
        return EBB_FAIL(err, EBB_USAGE, "nothing was taken back");
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}

/* A copy of a message with another text becomes the leaf; the conversation continues from there. */
static ebb_status reword(ebb_chat *c, ebb_node *old, const char *text, size_t n, ebb_error *err)
{
    ebb_node *node = ebb_tree_add(&c->tree, old->parent, old->m.role, text, n);

    if (!node || !ebb_tree_set_leaf(&c->tree, node)) {
        if (node)
            ebb_tree_drop_newest(&c->tree);
        return fail_no_message_memory(err);
    }
    node->m.finish = EBB_FINISH_STOP;
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}

ebb_status ebb_chat_edit(ebb_chat *c, size_t i, const char *text, size_t n, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    ebb_node *old = i < c->tree.n_path ? c->tree.path[i] : NULL;

    if (st != EBB_OK)
        return st;
    if (!old)
        return EBB_FAIL(err, EBB_USAGE, "there is no message %zu; /tree shows them all", i + 1);
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "a message cannot be empty");
    if (old->m.role == EBB_ROLE_NOTE)
        return EBB_FAIL(err, EBB_USAGE, "message %zu is a note of ebb; /undo or /go takes it back", i + 1);
    if (old->m.role == EBB_ROLE_USER)
        return ask_question(c, old->parent, 1, text, n, err);
    if (old->m.role == EBB_ROLE_ASSISTANT)
        return reword(c, old, text, n, err);
    char *copy = strndup(text, n);
    st = copy ? ebb_chat_set_system(c, copy, err) : fail_no_message_memory(err);
    free(copy);
    return st;
}

/* -- The model ----------------------------------------------------------------------------------- */

ebb_status ebb_chat_load_model(ebb_chat *c, const char *path, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (c->turn.answer || c->follow.session)
        return ebb_chat_check_idle(c, err);
    if (path && ebb_chat_is_shared(c))
        return ebb_chat_set_engine(c, EBB_ENGINE_HERE, path, err);
    if (path && c->remote.name) {
        st = ebb_chat_check_engine_model(c, path, err);
        return st == EBB_OK ? ebb_chat_set_engine(c, c->remote.name, path, err) : st;
    }
    if (path)
        st = ebb_chat_check_model(c, path, err);
    if (st != EBB_OK)
        return st;
    ebb_quality_forget(c);
    c->opening.draft_is_optional = true;
    return ebb_chat_open_model(c, path, err);
}

const char *ebb_chat_draft(const ebb_chat *c)
{
    return c->opening.opts.no_speculation ? NULL : c->opening.draft_path;
}

/* Check the name first: a typing error must not close the open model. */
static ebb_status check_draft_choice(const ebb_chat *c, const char *name, ebb_error *err)
{
    char *found = NULL;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = ebb_chat_need_ids(c, "its draft model is the server's", err);
    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK && name && c->opening.opts.no_speculation)
        st = EBB_FAIL(err, EBB_USAGE, "ebb was started with --no-draft: nothing is drafted here");
    if (st == EBB_OK && name && strcmp(name, EBB_MODELS_AUTO) != 0)
        st = ebb_models_resolve(name, &found, err);
    free(found);
    return st;
}

/* The model is opened again together with the draft model; its K and V are read back from disk. */
ebb_status ebb_chat_set_draft(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = check_draft_choice(c, name, err);
    bool is_chosen = c->opening.is_chosen;
    char *copy = NULL, *path = NULL;

    if (st == EBB_OK)
        st = ebb_chat_model_path(c, &path, err);
    if (st != EBB_OK)
        return st;
    if (name && !(copy = strdup(name))) {
        free(path);
        return fail_no_message_memory(err);
    }
    free(c->opening.draft_path);
    c->opening.draft_path = copy;
    c->opening.draft_is_optional = true;
    st = ebb_chat_open_model(c, path, err);
    c->opening.is_chosen = is_chosen;
    free(path);
    return st;
}
