/* An answer that another process writes, seen from this one: its terminal is gone, or is another one (writer_lock.h).
 * SIGUSR1 asks the other to stop: it goes to the process that holds the lock, never to a number. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "os/file.h"

void ebb_chat_follow_stop(ebb_chat *c)
{
    ebb_buf path = { 0 };
    int fd = -1;

    if (ebb_writer_find(c, c->follow.session) != c->follow.writer)
        return;                                  /* that process has ended */
    if (!ebb_writer_lock_path(c->store, c->follow.session, &path) ||
        ebb_file_open(path.data, EBB_FILE_READ, &fd, NULL) != EBB_OK ||
        !ebb_file_signal_holder(fd, SIGUSR1))    /* saves the answer; exits if without terminal */
        ebb_chat_notice(c, "process %ld, which is answering, cannot be reached from here; stop it where it runs",
                        (long)c->follow.writer);
    ebb_file_close(fd);
    ebb_buf_fini(&path);
}

/* Add the text by which the answer has grown; false: the session's leaf is another message now. */
static bool follow_text(ebb_chat *c)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_buf text = { 0 };
    ebb_error err;
    int64_t message;
    size_t had = leaf ? leaf->m.n_text : 0;
    bool same = true;

    if (ebb_store_read_leaf_text(c->store, c->follow.session, &message, &text, &err) == EBB_OK) {
        same = leaf ? leaf->m.id == message : message == 0;
        if (same && leaf && text.len > had && memcmp(text.data, leaf->m.text ? leaf->m.text : "", had) == 0 &&
            ebb_node_set_text(leaf, text.data, text.len)) {
            leaf->is_dirty = false;              /* the other process saves it */
            leaf->n_stored = text.len;
            ebb_chat_emit_event(c, EBB_EVENT_TEXT, text.data + had, text.len - had, 0, 0);
        }
    }
    ebb_buf_fini(&text);
    return same;
}

static ebb_status open_deferred_model(ebb_chat *c, ebb_error *err)
{
    char *path = c->opening.wanted;
    ebb_status st;

    c->opening.is_deferred = false;
    c->opening.wanted = NULL;
    st = ebb_chat_open_model(c, path, err);
    free(path);
    return st;
}

/* The model that waited for the memory of the other. */
static void open_what_waited(ebb_chat *c)
{
    ebb_error err = { 0 };
    ebb_status st = c->opening.is_deferred ? open_deferred_model(c, &err) : ebb_chat_fit_engine(c, &err);

    if (st != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
}

/* That process writes no more.  The complete answer, and how it ended, come from the store; another one that waited
 * for it may answer by now. */
static void end_following(ebb_chat *c)
{
    ebb_error err = { 0 };

    if (ebb_chat_reload_and_follow(c, c->follow.session, &err) != EBB_OK)
        ebb_chat_notice(c, "%s; what you see here is incomplete", err.msg);
    if (c->follow.session) {
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
        ebb_chat_notice(c, "now process %ld is answering; you see it as it comes, and Ctrl-C stops it",
                        ebb_chat_writer_pid(c));
        return;
    }
    ebb_chat_report_interrupted(c);
    if (c->settings.away_tokens) {               /* its end was seen here */
        c->settings.away_tokens = 0;
        ebb_chat_save(c, false);
    }
    ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    open_what_waited(c);
}

/* Nobody writes now.  Who waited for that looks as seldom as this chat does, and so may begin after this look only; one
 * that waits itself is not to wait for others who do. */
static bool awaits_next(ebb_chat *c, pid_t writer)
{
    return writer == 0 && !c->overflow.is_unattended && !c->is_away && c->follow.n_looks++ < EBB_FOLLOW_LOOKS;
}

void ebb_chat_follow_poll(ebb_chat *c)
{
    ebb_error err;
    pid_t writer;

    if (!c->follow.session)
        return;
    writer = ebb_writer_find(c, c->follow.session);
    if (!follow_text(c) && ebb_chat_reload_session(c, c->follow.session, &err) == EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (writer == c->follow.writer || awaits_next(c, writer))
        ebb_chat_arm_timer(c, EBB_FOLLOW_MS);
    else
        end_following(c);
}

/* -- Whose turn it is -------------------------------------------------------------------- */

/* A session of the name that this new one is to have, which another process has made since. */
static ebb_status enter_made_since(ebb_chat *c, ebb_error *err)
{
    int64_t session;
    ebb_status st;

    if (c->facts.id > 0 || !c->facts.name[0] || !c->store)
        return EBB_OK;
    st = ebb_store_find_named(c->store, c->facts.name, &session, err);
    if (st == EBB_NOTFOUND)                      /* it may have become the number of another */
        return ebb_store_check_free_name(c->store, c->facts.name, err);
    if (st == EBB_OK)
        st = ebb_chat_enter_session(c, session, err);
    return st == EBB_OK ? ebb_chat_begin_system(c, err) : st;
}

/* Whether another process has said something in this session since it was loaded here, or taken it away. */
static bool has_gone_on(const ebb_chat *c)
{
    ebb_buf text = { 0 };
    const ebb_node *node;
    int64_t message;
    bool has = false;

    if (c->store && c->facts.id > 0 &&
        ebb_store_read_leaf_text(c->store, c->facts.id, &message, &text, NULL) == EBB_OK) {
        node = ebb_tree_find(&c->tree, message);
        has = node ? node->m.n_text < text.len : message > 0 || c->tree.n_nodes > 0;
    }
    ebb_buf_fini(&text);
    return has;
}

/* It was deleted meanwhile, and nothing of it is to come back: a new one has its name, as for who comes later. */
static ebb_status begin_anew(ebb_chat *c, ebb_error *err)
{
    char name[sizeof c->facts.name];
    ebb_status st;

    memcpy(name, c->facts.name, sizeof name);
    ebb_chat_unlock_writer(c);
    ebb_chat_set_saved(c);                       /* what was not is deleted with it */
    st = ebb_chat_new_session(c, err);
    if (st != EBB_OK)
        return st;
    memcpy(c->facts.name, name, sizeof name);
    ebb_chat_warn(c, "another ebb has deleted this session: a new one begins here");
    return ebb_chat_take_turn(c, err);
}

ebb_status ebb_chat_take_turn(ebb_chat *c, ebb_error *err)
{
    ebb_status st;

    if (c->facts.id == 0 && c->facts.name[0] && !ebb_chat_lock_name(c))
        return EBB_FAIL(err, EBB_BUSY, "another process begins a session");
    st = enter_made_since(c, err);
    if (c->facts.id > 0)
        ebb_chat_unlock_name(c);
    if (st == EBB_OK && c->facts.id > 0 && !c->follow.session && !ebb_chat_lock_writer(c))
        st = ebb_chat_follow(c, c->facts.id) ? EBB_OK : EBB_BUSY;
    if (st == EBB_BUSY || c->follow.session)
        return EBB_FAIL(err, EBB_BUSY, "another process writes in this session");
    if (st != EBB_OK || !has_gone_on(c))
        return st;
    st = ebb_chat_reload_session(c, c->facts.id, err);
    return st == EBB_NOTFOUND ? begin_anew(c, err) : st;
}
