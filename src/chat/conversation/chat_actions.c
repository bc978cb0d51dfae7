/* What the user can do with a conversation (chat.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/models.h"
#include "os/file.h"
#include "store/export.h"
#include "store/title.h"
#include "tree/thought.h"
#include "turn/overflow.h"

static ebb_status fail_no_message_memory(ebb_error *err)
{
    return EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
}

/* The path is another one: it is saved and told. */
static void save_changed_path(ebb_chat *c)
{
    ebb_chat_save(c, false);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
}

/* Does a question stand at the end, perhaps with notes below it? */
static bool is_question_open(const ebb_node *leaf)
{
    while (leaf && leaf->m.role == EBB_ROLE_NOTE)
        leaf = leaf->parent;
    return leaf && leaf->m.role == EBB_ROLE_USER;
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

/* A question below `parent`, and its answer.  If that cannot begin, all is as before. */
static ebb_status ask_question(ebb_chat *c, ebb_node *parent, const char *text, size_t n, ebb_error *err)
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
    st = ebb_chat_begin_answer(c, false, err);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_tree_drop_newest(&c->tree);
    if (is_first)
        c->facts.title[0] = '\0';
    return ebb_tree_set_leaf(&c->tree, leaf) ? st : fail_no_message_memory(err);
}

ebb_status ebb_chat_send(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to send");
    /* A question that got no answer is not answered together with this one. */
    return ask_question(c, ebb_tree_above_question(ebb_tree_leaf(&c->tree)), text, n, err);
}

void ebb_chat_stop(ebb_chat *c)
{
    if (c->follow.session) {
        ebb_chat_follow_stop(c);
    } else if (c->is_answer_pending) {
        c->is_answer_pending = false;
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    } else if (c->state == EBB_CHAT_ANSWERING) {
        c->is_stopping = true;
        c->backend->ops->cancel(c->backend);
    }
}

static ebb_status check_model_loaded(const ebb_chat *c, ebb_error *err)
{
    if (c->is_load_deferred)
        return EBB_FAIL(err, EBB_BUSY, "the model is loaded when the answer that another process writes has ended");
    if (c->state == EBB_CHAT_LOADING || c->state == EBB_CHAT_FAILED)
        return EBB_FAIL(err, EBB_BUSY, c->state == EBB_CHAT_LOADING ? "the model is still being loaded" : "there is no model");
    return EBB_OK;
}

ebb_status ebb_chat_set_budget(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    ebb_status st = ebb_chat_need_ids(c, "memory over there is the server's", err);

    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK)
        st = c->backend->ops->set_budget(c->backend, bytes, err);
    c->awaits_budget |= st == EBB_OK;
    return st;
}

ebb_status ebb_chat_plan(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_need_ids(c, "its plan is the server's", err);

    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK)
        st = c->backend->ops->plan(c->backend, err);
    c->awaits_plan |= st == EBB_OK;
    return st;
}

/* Whoever wrote it: what goes on is its text. */
static ebb_status continue_messages(ebb_chat *c, const ebb_node *leaf, ebb_error *err)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);
    ebb_thought t = ebb_thought_find(leaf->m.text, leaf->m.n_text);

    if (facts && leaf->m.n_text && t.body >= leaf->m.n_text)
        return EBB_FAIL(err, EBB_USAGE, "the answer was cut off in its thought, which no server goes on with; /retry asks for another one");
    if (facts && leaf->m.n_text && !facts->can_continue)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) begins each answer anew; /retry asks for another one", facts->name, facts->kind);
    return ebb_chat_begin_answer(c, true, err);
}

ebb_status ebb_chat_continue(ebb_chat *c, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (leaf && c->overflow.asked_at == leaf)    /* no other answer is one, too */
        return ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 0, err);
    if (is_question_open(leaf))
        return ebb_chat_begin_answer(c, false, err);
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to continue");
    if (leaf->m.finish == EBB_FINISH_STOP)
        return EBB_FAIL(err, EBB_USAGE, "the answer is complete; /retry asks for another one");
    if (c->engine)
        return continue_messages(c, leaf, err);
    if (!leaf->m.n_ids || (c->info && memcmp(leaf->m.ids_model, c->info->fingerprint, sizeof leaf->m.ids_model) != 0))
        return EBB_FAIL(err, EBB_USAGE, "another model wrote this answer; /retry asks for a new one");
    return ebb_chat_begin_answer(c, true, err);
}

ebb_status ebb_chat_retry(ebb_chat *c, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *answer = leaf;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (is_question_open(leaf))
        return ebb_chat_begin_answer(c, false, err);
    while (answer && answer->m.role == EBB_ROLE_NOTE)
        answer = answer->parent;
    if (!answer || answer->m.role == EBB_ROLE_SYSTEM)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to try again");
    if (!answer->parent || !ebb_tree_set_leaf(&c->tree, answer->parent))
        return EBB_FAIL(err, EBB_USAGE, "this answer has no question");
    st = ebb_chat_begin_answer(c, false, err);
    if (st != EBB_OK && !ebb_tree_set_leaf(&c->tree, leaf))
        return fail_no_message_memory(err);
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
    save_changed_path(c);
    return EBB_OK;
}

ebb_status ebb_chat_redo(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_tree_redo(&c->tree))
        return EBB_FAIL(err, EBB_USAGE, "nothing was taken back");
    save_changed_path(c);
    return EBB_OK;
}

/* Other words for an answer: what follows builds on them. */
static ebb_status reword(ebb_chat *c, ebb_node *old, const char *text, size_t n, ebb_error *err)
{
    ebb_node *node = ebb_tree_add(&c->tree, old->parent, old->m.role, text, n);

    if (!node || !ebb_tree_set_leaf(&c->tree, node)) {
        if (node)
            ebb_tree_drop_newest(&c->tree);
        return fail_no_message_memory(err);
    }
    node->m.finish = EBB_FINISH_STOP;
    save_changed_path(c);
    return EBB_OK;
}

ebb_status ebb_chat_edit(ebb_chat *c, size_t i, const char *text, size_t n, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    ebb_node *old = i < c->tree.n_path ? c->tree.path[i] : NULL;

    if (st != EBB_OK)
        return st;
    if (!old)
        return EBB_FAIL(err, EBB_USAGE, "there is no message %zu", i + 1);
    if (n == 0)
        return EBB_FAIL(err, EBB_USAGE, "a message cannot be empty");
    if (old->m.role == EBB_ROLE_NOTE)
        return EBB_FAIL(err, EBB_USAGE, "message %zu is a note of ebb; /undo or /go takes it back", i + 1);
    if (old->m.role == EBB_ROLE_USER)
        return ask_question(c, old->parent, text, n, err);
    if (old->m.role == EBB_ROLE_ASSISTANT)
        return reword(c, old, text, n, err);
    char *copy = strndup(text, n);
    st = copy ? ebb_chat_set_system(c, copy, err) : fail_no_message_memory(err);
    free(copy);
    return st;
}

/* -- The system prompt ------------------------------------------------------------------------ */

/* What a note leaves out, where the path is `by` messages longer in front. */
static bool copy_left_out(const ebb_truncation *from, int by, ebb_truncation *to)
{
    *to = *from;
    to->has_cache_salt = false;
    to->first = from->first ? (uint32_t)((int)from->first + by) : 0;
    to->kept = from->n_kept ? calloc(from->n_kept, sizeof *to->kept) : NULL;
    for (uint32_t i = 0; to->kept && i < from->n_kept; i++)
        to->kept[i] = (uint32_t)((int)from->kept[i] + by);
    return to->kept || !from->n_kept;
}

/* A copy of `m` below parent, without ids: after another beginning they mean nothing. */
static ebb_node *copy_below(ebb_chat *c, ebb_node *parent, const ebb_message *m, int by)
{
    ebb_node *node = ebb_tree_add(&c->tree, parent, m->role, m->text, m->n_text);

    if (!node)
        return NULL;
    if (m->role == EBB_ROLE_NOTE && !copy_left_out(&m->truncation, by, &node->m.truncation))
        return NULL;
    node->m.finish = m->finish;
    node->m.pinned = m->pinned;
    node->m.created_ms = m->created_ms;
    node->m.turn_stats = m->turn_stats;
    node->m.model = m->model ? strdup(m->model) : NULL;
    node->m.engine = m->engine ? strdup(m->engine) : NULL;
    return node;
}

/* Copies of the path from `first` on, below a new root with this text. */
static ebb_status copy_path_below(ebb_chat *c, const char *text, size_t first, ebb_error *err)
{
    size_t n_before = c->tree.n_nodes, n_tokens = 0;
    ebb_node *node = text ? ebb_tree_add(&c->tree, NULL, EBB_ROLE_SYSTEM, text, strlen(text)) : NULL;
    bool ok = !text || node;

    for (size_t i = first; ok && i < c->tree.n_path; i++) {
        n_tokens += ebb_chat_tokens_of(c, &c->tree.path[i]->m);
        node = copy_below(c, node, &c->tree.path[i]->m, (text != NULL) - (int)first);
        ok = node != NULL;
    }
    if (!ok || !ebb_tree_set_leaf(&c->tree, node)) {
        while (c->tree.n_nodes > n_before)
            ebb_tree_drop_newest(&c->tree);
        return fail_no_message_memory(err);
    }
    if (n_tokens)
        ebb_chat_notice(c, "the beginning is another one now: with the next answer, %zu tokens after it are computed again", n_tokens);
    return EBB_OK;
}

ebb_status ebb_chat_replace_system(ebb_chat *c, const char *text, ebb_error *err)
{
    bool has_root = c->tree.n_path && c->tree.path[0]->m.role == EBB_ROLE_SYSTEM;
    const char *now = has_root ? c->tree.path[0]->m.text : "", *want = text ? text : "";

    if (strcmp(now, want) == 0)
        return EBB_OK;
    return copy_path_below(c, *want ? want : NULL, has_root, err);
}

const char *ebb_chat_advised_system(const ebb_chat *c)
{
    return c->advice.system;
}

ebb_status ebb_chat_set_system(ebb_chat *c, const char *text, ebb_error *err)
{
    char *copy = text ? strdup(text) : NULL;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK && text && !copy)
        st = fail_no_message_memory(err);
    if (st == EBB_OK)
        st = ebb_chat_replace_system(c, text, err);
    if (st != EBB_OK) {
        free(copy);
        return st;
    }
    free(c->system);
    c->system = copy;
    save_changed_path(c);
    return EBB_OK;
}

/* -- Sessions ---------------------------------------------------------------------------------- */

ebb_status ebb_chat_new_session(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = ebb_chat_check_switch(c, err);
    if (st != EBB_OK)
        return st;
    ebb_overflow_reset(c);
    c->n_given_up = 0;
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    c->generation++;
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return ebb_chat_replace_system(c, c->system, err);
}

ebb_status ebb_chat_export(ebb_chat *c, const char *path, ebb_error *err)
{
    ebb_export_format format;
    ebb_buf text = { 0 };
    ebb_status st;

    if (!ebb_export_format_parse(path, &format))
        return EBB_FAIL(err, EBB_USAGE, "%s: a file's name must end in .md, .json or .txt", path);
    st = ebb_export(&c->facts, &c->tree, format, &text, err);
    if (st == EBB_OK)
        st = ebb_file_create(path, ebb_buf_text(&text), text.len, err);
    ebb_buf_fini(&text);
    return st;
}

static ebb_status check_session_name(const char *name, ebb_error *err)
{
    if (!*name || strlen(name) >= sizeof ((ebb_session_facts *)0)->name)
        return EBB_FAIL(err, EBB_USAGE, "a session's name has 1 to %zu bytes", sizeof ((ebb_session_facts *)0)->name - 1);
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return EBB_FAIL(err, EBB_USAGE, "a session's name has no control characters");
    return EBB_OK;
}

/* The store may have come back: a lock is gone, there is space again. */
static ebb_status save_session(ebb_chat *c, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (!c->store)
        st = ebb_store_open(c->store_path, &c->store, err);
    if (st == EBB_OK && (c->facts.id || c->facts.title[0]))
        st = ebb_store_save(c->store, &c->facts, &c->tree, true, err);
    if (st == EBB_OK)
        ebb_chat_set_saved(c);
    return st;
}

ebb_status ebb_chat_save_as(ebb_chat *c, const char *name, ebb_error *err)
{
    char before[sizeof c->facts.name];
    ebb_export_format format;
    ebb_status st;

    if (strchr(name, '/') || (strchr(name, '.') && ebb_export_format_parse(name, &format)))
        return ebb_chat_export(c, name, err);
    st = check_session_name(name, err);
    if (st == EBB_OK && c->store && c->facts.id)
        st = ebb_store_rename(c->store, c->facts.id, name, err);
    if (st != EBB_OK)
        return st;
    memcpy(before, c->facts.name, sizeof before);
    strcpy(c->facts.name, name);
    st = save_session(c, err);
    if (st != EBB_OK)
        memcpy(c->facts.name, before, sizeof before);
    return st;
}

static ebb_status need_store(const ebb_chat *c, ebb_error *err)
{
    return c->store ? EBB_OK : EBB_FAIL(err, EBB_IO, "the sessions on disk cannot be read; this chat is kept in memory");
}

ebb_status ebb_chat_load(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    int64_t id;

    if (st == EBB_OK)
        st = need_store(c, err);
    if (st == EBB_OK)
        st = ebb_store_find(c->store, name, &id, err);
    return st == EBB_OK ? ebb_chat_enter_session(c, id, err) : st;
}

ebb_status ebb_chat_list(ebb_chat *c, ebb_session_row **out, size_t *n, ebb_error *err)
{
    ebb_status st = need_store(c, err);

    *out = NULL;
    *n = 0;
    return st == EBB_OK ? ebb_store_list(c->store, out, n, err) : st;
}

/* -- The model ----------------------------------------------------------------------------------- */

ebb_status ebb_chat_load_model(ebb_chat *c, const char *path, ebb_error *err)
{
    char *found = NULL;
    int fd;

    if (c->state == EBB_CHAT_ANSWERING || c->follow.session)
        return ebb_chat_check_idle(c, err);
    if (c->engine && path)
        return ebb_chat_set_engine(c, c->engine, path, err);
    if (path && strcmp(path, EBB_MODELS_GUIDE) != 0 && strcmp(path, "auto") != 0) {
        /* A slip of the finger must not cost the model at hand. */
        ebb_status st = ebb_models_resolve(path, &found, err);
        if (st == EBB_OK)
            st = ebb_file_open(found, EBB_FILE_READ, &fd, err);
        free(found);
        if (st != EBB_OK)
            return st;
        ebb_file_close(fd);
    }
    c->draft_is_optional = true;
    return ebb_chat_open_model(c, path, err);
}

const char *ebb_chat_draft(const ebb_chat *c)
{
    return c->engine_opts.no_speculation ? NULL : c->draft_path;
}

/* A slip of the finger must not cost the one at hand. */
static ebb_status check_draft_choice(const ebb_chat *c, const char *name, ebb_error *err)
{
    char *found = NULL;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = ebb_chat_need_ids(c, "what guesses for it runs beside the server", err);
    if (st == EBB_OK)
        st = check_model_loaded(c, err);
    if (st == EBB_OK && name && c->engine_opts.no_speculation)
        st = EBB_FAIL(err, EBB_USAGE, "ebb was started with --no-draft: nothing is guessed here");
    if (st == EBB_OK && name && strcmp(name, EBB_MODELS_AUTO) != 0)
        st = ebb_models_resolve(name, &found, err);
    free(found);
    return st;
}

/* The model at hand is opened again beside it: its K and V come back from the disk. */
ebb_status ebb_chat_set_draft(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = check_draft_choice(c, name, err);
    bool is_chosen = c->is_chosen, ok = true;
    char *copy = NULL, *path = NULL;

    if (st != EBB_OK)
        return st;
    path = ebb_chat_model_path(c, &ok);
    if (!ok || (name && !(copy = strdup(name)))) {
        free(path);
        return fail_no_message_memory(err);
    }
    free(c->draft_path);
    c->draft_path = copy;
    c->draft_is_optional = true;
    st = ebb_chat_open_model(c, path ? path : EBB_MODELS_GUIDE, err);
    c->is_chosen = is_chosen;
    free(path);
    return st;
}
