/* Saving the conversation (chat_session.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"

#define RETRY_MS 5000u           /* to the next try, when a disk is full and nothing is said */

/* It has an id or a title: a session that is neither is not stored yet.  One that stays deleted is never again. */
static bool has_content(const ebb_chat *c)
{
    return (c->facts.id || c->facts.title[0]) && !c->facts.is_deleted;
}

/* The reason may pass by itself: another try comes when the timer rings. */
static bool is_save_error_passing(const ebb_chat *c)
{
    return (c->saving.why.code == EBB_IO || c->saving.why.code == EBB_BUSY || c->saving.why.code == EBB_NOTFOUND) &&
           !(c->store && ebb_store_is_readonly(c->store));
}

void ebb_chat_set_unsaved(ebb_chat *c, const ebb_error *err)
{
    c->saving.why = *err;
    c->saving.is_unsaved = true;
    if (!is_save_error_passing(c))
        return;
    c->saving.retry_ns = ebb_clock_ns() + RETRY_MS * 1000000u;
    ebb_chat_arm_timer(c, RETRY_MS);
}

static void report_save_failure(ebb_chat *c, const ebb_error *err)
{
    if (!c->saving.is_unsaved)
        ebb_chat_notice(c, "%s; the chat goes on in memory and is saved when it can be (/save ./NAME.json "
                           "writes a file)", err->msg);
    ebb_chat_set_unsaved(c, err);
}

void ebb_chat_set_saved(ebb_chat *c)
{
    c->saving.is_unsaved = c->saving.owes_sync = false;
    c->saving.retry_ns = 0;
}

void ebb_chat_leave_unsaved(ebb_chat *c)
{
    c->saving.n_given_up = 0;
    if (c->store)                                /* without one, opening it is tried again */
        ebb_chat_set_saved(c);
}

static void report_save_success(ebb_chat *c)
{
    if (c->saving.is_unsaved)
        ebb_chat_notice(c, "the session is saved again");
    ebb_chat_set_saved(c);
}

/* The session goes to the file that has the store's name now.  false: there is none, and none can be made; the store
 * stays, for its file may come back. */
static bool replace_store(ebb_chat *c)
{
    ebb_store *s;

    if (ebb_store_open(c->saving.path, &s, NULL) != EBB_OK)
        return false;
    ebb_store_close(c->store);
    c->store = s;
    ebb_session_leave_store(&c->facts, &c->tree);
    for (ebb_deleted_session *d = c->deleted.newest; d; d = d->older)
        ebb_session_leave_store(&d->facts, &d->tree);
    ebb_chat_notice(c, "%s was moved, removed, replaced or cut short while it was open; this session goes to the file "
                       "that is there now", ebb_store_path(s));
    return true;
}

/* The log was removed: what was saved is written to the database, now and after each save, until no other ebb shares
 * the log; then there is a new one. */
static ebb_status replace_log(ebb_chat *c, ebb_error *err)
{
    bool is_alone;
    ebb_status st = ebb_store_empty_log(c->store, &is_alone, err);

    if (st != EBB_OK || !is_alone)
        return st;
    ebb_store_close(c->store);
    st = ebb_store_open(c->saving.path, &c->store, err);
    if (st == EBB_OK)
        ebb_chat_notice(c, "the log of %s (-wal, -shm) was removed while it was open; nothing of it is lost",
                        ebb_store_path(c->store));
    return st;
}

/* There is a store; one that could not be opened because the disk was full or the file locked is tried again. */
static bool reopen_store(ebb_chat *c)
{
    ebb_error err = { 0 };

    if (!c->store && c->saving.is_unsaved && is_save_error_passing(c) &&
        ebb_store_open(c->saving.path, &c->store, &err) != EBB_OK)
        ebb_chat_set_unsaved(c, &err);
    return c->store != NULL;
}

bool ebb_chat_ensure_store(ebb_chat *c)
{
    if (c->store && ebb_store_is_moved(c->store))
        replace_store(c);
    return reopen_store(c);
}

/* What the save has shown that other programs did to the session. */
static void report_others(ebb_chat *c, const ebb_session_facts *was)
{
    if (was->id && was->id != c->facts.id)
        ebb_chat_notice(c, "another ebb has deleted this session; it is saved again, as number %lld",
                        (long long)c->facts.id);
    else if (was->id && strcmp(was->name, c->facts.name) != 0)
        ebb_chat_notice(c, "another ebb has named this session '%s'", c->facts.name);
    if (!was->is_shared && c->facts.is_shared)
        ebb_chat_notice(c, "another ebb has gone on in this session, too; both are kept as branches: /load it again, "
                           "and /tree shows them");
}

/* Who deleted it shall not find it there again because of an answer that nobody looks at. */
static void report_deleted(ebb_chat *c)
{
    ebb_chat_set_saved(c);
    ebb_chat_warn(c, "another ebb has deleted this session: it stays deleted, and nothing more of it is saved");
}

/* If its file was moved, to the one that is there now.  *was: as the session was known, to report_others. */
static ebb_status save_where_it_is(ebb_chat *c, bool durable, ebb_session_facts *was, ebb_error *err)
{
    ebb_status st;

    *was = c->facts;
    st = ebb_store_save(c->store, &c->facts, &c->tree, durable, err);
    if (st != EBB_NOTFOUND || !replace_store(c))
        return st;
    *was = c->facts;
    return ebb_store_save(c->store, &c->facts, &c->tree, durable, err);
}

ebb_status ebb_chat_save_under_title(ebb_chat *c, ebb_session_facts *f, ebb_tree *t, bool durable, ebb_error *err)
{
    ebb_chat_notice(c, "meanwhile another session took the name or number '%s'; this one is kept under its title",
                    f->name);
    f->name[0] = '\0';
    return ebb_store_save(c->store, f, t, durable, err);
}

void ebb_chat_save(ebb_chat *c, bool durable)
{
    ebb_error err = { 0 };
    ebb_session_facts was;
    ebb_status st;

    if (!has_content(c))
        return;
    durable |= c->saving.owes_sync;
    if (!reopen_store(c)) {
        c->saving.owes_sync = durable;
        return;
    }
    free(c->facts.settings);
    c->facts.settings = ebb_chat_settings_json(c);
    c->facts.stays_deleted = c->is_away || c->overflow.is_unattended;
    st = save_where_it_is(c, durable, &was, &err);
    if (st == EBB_USAGE && c->facts.name[0])
        st = ebb_chat_save_under_title(c, &c->facts, &c->tree, durable, &err);
    if (st == EBB_OK && ebb_store_has_lost_log(c->store))
        st = replace_log(c, &err);
    if (st == EBB_OK && c->facts.is_deleted) {
        report_deleted(c);
    } else if (st == EBB_OK) {
        report_save_success(c);
        report_others(c, &was);
    } else if (st != EBB_BUSY || durable || c->saving.is_unsaved) { /* locked for a moment only: no notice yet */
        report_save_failure(c, &err);
        c->saving.owes_sync |= durable;
    }
}

ebb_status ebb_chat_save_named(ebb_chat *c, ebb_error *err)
{
    ebb_session_facts was;
    ebb_status st = EBB_OK;

    if (!c->store)
        st = ebb_store_open(c->saving.path, &c->store, err);
    c->facts.stays_deleted = c->facts.is_deleted = false;        /* who names it wants it */
    if (st == EBB_OK && has_content(c)) {
        st = save_where_it_is(c, true, &was, err);
        if (st == EBB_OK)
            report_others(c, &was);
    }
    if (st == EBB_OK)
        ebb_chat_set_saved(c);
    return st;
}

ebb_status ebb_chat_check_saved(ebb_chat *c, ebb_error *err)
{
    if (!c->saving.is_unsaved || !has_content(c))
        return EBB_OK;
    ebb_chat_save(c, false);
    if (!c->saving.is_unsaved || c->saving.n_given_up == c->tree.n_nodes)
        return EBB_OK;
    c->saving.n_given_up = c->tree.n_nodes;
    return EBB_FAIL(err, c->saving.why.code, "this conversation is not saved: %s", c->saving.why.msg);
}

ebb_status ebb_chat_check_switch(ebb_chat *c, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st = ebb_chat_check_saved(c, &why);

    return st == EBB_OK ? st
                        : EBB_FAIL(err, st, "%s (/save ./NAME.json writes a file; leaving it all the same loses it)",
                                   why.msg);
}

void ebb_chat_save_changed_path(ebb_chat *c)
{
    ebb_chat_save(c, false);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
}
