/* The session that a chat is in: opened, read (chat_session.h). */
#include <string.h>

#include "conversation/chat_priv.h"

static void open_store(ebb_chat *c)
{
    ebb_error err;

    if (ebb_store_open(c->saving.path, &c->store, &err) != EBB_OK) {
        ebb_chat_notice(c, "%s; this chat is kept in memory only (/save ./NAME.json writes a file)", err.msg);
        ebb_chat_set_unsaved(c, &err);
    } else if (ebb_store_is_readonly(c->store)) {
        ebb_chat_notice(c, "%s is read-only; this chat is kept in memory only (/save ./NAME.json writes a file)",
                        ebb_store_path(c->store));
        EBB_FAIL(&err, EBB_IO, "%s is read-only", ebb_store_path(c->store));
        ebb_chat_set_unsaved(c, &err);
    }
}

/* Moved out of *facts and *tree. */
static void take_session(ebb_chat *c, ebb_session_facts *facts, ebb_tree *tree)
{
    ebb_overflow_reset(c);
    ebb_chat_leave_unsaved(c);
    c->turn.is_path_changed = true;
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    c->facts = *facts;
    c->tree = *tree;
    *facts = (ebb_session_facts){ 0 };
    *tree = (ebb_tree){ 0 };
    ebb_chat_settings_load(c, c->facts.settings);
}

ebb_status ebb_chat_reload_session(ebb_chat *c, int64_t session, ebb_error *err)
{
    ebb_session_facts facts = { 0 };
    ebb_tree tree = { 0 };
    ebb_status st = c->store ? EBB_OK
                             : EBB_FAIL(err, EBB_IO,
                                        "the sessions on disk cannot be read; this chat is kept in memory");

    if (st == EBB_OK && !ebb_writer_find(c, session))
        ebb_store_note_cut(c->store, session);
    if (st == EBB_OK)
        st = ebb_store_load(c->store, session, &facts, &tree, err);
    if (st == EBB_OK)
        take_session(c, &facts, &tree);
    return st;
}

ebb_status ebb_chat_reload_and_follow(ebb_chat *c, int64_t session, ebb_error *err)
{
    bool follows = ebb_chat_follow(c, session);
    ebb_status st = ebb_chat_reload_session(c, session, err);

    if (st != EBB_OK)
        c->follow = (ebb_chat_following){ 0 };
    else if (!follows)
        ebb_chat_follow(c, session);
    return st;
}

ebb_status ebb_chat_enter_imported(ebb_chat *c, ebb_session_facts *facts, ebb_tree *tree, ebb_error *err)
{
    ebb_status st = ebb_chat_check_switch(c, err);

    if (st != EBB_OK)
        return st;
    take_session(c, facts, tree);
    c->generation++;
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

void ebb_chat_report_interrupted(ebb_chat *c)
{
    const ebb_node *leaf;

    if (ebb_writer_find(c, c->facts.id))
        return;
    /* One that was no more than begun when it was read, and has ended since then, is there. */
    if (!ebb_turn_drop_unbegun(c) && ebb_chat_reload_session(c, c->facts.id, NULL) != EBB_OK)
        return;
    leaf = ebb_tree_leaf(&c->tree);
    if (leaf && leaf->m.role == EBB_ROLE_ASSISTANT &&
        (leaf->m.finish == EBB_FINISH_NONE || leaf->m.finish == EBB_FINISH_CUT_OFF))
        ebb_chat_notice(c, "the last answer was cut off; %s", ebb_turn_check_continue(c, &leaf->m, NULL) == EBB_OK
                        ? "/continue resumes it" : "/retry asks for another one");
    else if (ebb_tree_is_question_open(leaf))
        ebb_chat_notice(c, "the last question has no answer yet; /continue asks it again");
}

ebb_status ebb_chat_enter_session(ebb_chat *c, int64_t session, ebb_error *err)
{
    ebb_status st = ebb_chat_check_switch(c, err);

    if (st == EBB_OK)
        st = ebb_chat_reload_and_follow(c, session, err);
    if (st != EBB_OK)
        return st;
    c->generation++;
    if (c->follow.session) {
        ebb_chat_notice(c, "process %ld is still writing this answer; you see it as it comes, and Ctrl-C stops it",
                        ebb_chat_writer_pid(c));
    } else {
        ebb_chat_report_interrupted(c);
        ebb_chat_report_away(c);
    }
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* -s: the session of that name, else a new one that will have it. */
static ebb_status enter_named(ebb_chat *c, const char *name, bool is_free, ebb_error *err)
{
    int64_t id;
    ebb_status st = EBB_NOTFOUND;

    if (c->store)
        st = is_free ? ebb_store_find_named(c->store, name, &id, err)
                     : ebb_store_find_or_begin(c->store, name, &id, err);
    if (st == EBB_OK)
        return ebb_chat_enter_session(c, id, err);
    if (st != EBB_NOTFOUND)
        return st;
    st = ebb_session_check_name(name, err);
    if (st == EBB_OK)
        strcpy(c->facts.name, name);
    return st;
}

static ebb_status enter_last(ebb_chat *c, ebb_error *err)
{
    int64_t id;
    ebb_status st = c->store ? ebb_store_last(c->store, &id, err) : EBB_NOTFOUND;

    if (st == EBB_NOTFOUND) {
        ebb_chat_notice(c, "there is no session to continue; this is a new one");
        return EBB_OK;
    }
    return st == EBB_OK ? ebb_chat_enter_session(c, id, err) : st;
}

ebb_status ebb_chat_open_session(ebb_chat *c, const ebb_chat_opts *o, ebb_error *err)
{
    bool is_asked_for = o->session_name || o->continue_last;
    ebb_error why = { 0 };
    ebb_status st = EBB_OK;

    open_store(c);
    if (o->needs_session && is_asked_for && !c->store)
        return EBB_FAIL(err, c->saving.why.code, "%s", c->saving.why.msg);
    if (o->session_name)
        st = enter_named(c, o->session_name, o->is_name_free, &why);
    else if (o->continue_last)
        st = enter_last(c, &why);
    if (st != EBB_OK && o->needs_session)
        return EBB_FAIL(err, st, "%s", why.msg);
    if (st != EBB_OK)
        ebb_chat_notice(c, "%s; this is a new session", why.msg);
    if (ebb_chat_begin_system(c, &why) != EBB_OK)
        ebb_chat_notice(c, "%s", why.msg);
    return EBB_OK;
}
