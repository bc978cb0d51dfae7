/* An answer that another process writes, seen from this one: its terminal is gone, or is another one.
 *
 * Who writes holds a lock on a file beside the store, named after the session, with its
 * process number in it; the kernel takes the lock away however it ends.  Who opens the session meanwhile reads
 * the answer from the store, where it is saved at least once a second, and opens a model only when the lock is
 * free: the memory is the other's until then, and so is what it leaves of K and V on disk.  SIGUSR1 asks
 * the other to stop: it goes to the process that holds the lock, never to a number. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "conversation/chat_priv.h"
#include "os/file.h"

enum { LOOK_MS = 500, MARK_BYTES = 32 };

static bool writer_lock_path(const ebb_chat *c, int64_t session, ebb_buf *out)
{
    return c->store && strcmp(ebb_store_path(c->store), ":memory:") != 0 && session > 0 &&
           ebb_buf_addf(out, "%s-writer-%lld", ebb_store_path(c->store), (long long)session);
}

/* -- Who writes ------------------------------------------------------------------- */

static ebb_status write_writer_lock(int *fd, const char *path, ebb_error *err)
{
    char pid[MARK_BYTES];
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    ebb_status st = ebb_file_open(path, EBB_FILE_UPDATE_HERE, fd, err);

    if (st == EBB_OK)
        st = ebb_file_lock(*fd, path, err);
    if (st == EBB_OK)
        st = ebb_file_truncate(*fd, path, 0, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(*fd, path, pid, (size_t)n, 0, err);
    return st;
}

void ebb_chat_lock_writer(ebb_chat *c)
{
    ebb_error err = { 0 };

    if (c->writer_lock >= 0 || !writer_lock_path(c, c->facts.id, &c->writer_lock_path) || write_writer_lock(&c->writer_lock, c->writer_lock_path.data, &err) == EBB_OK)
        return;
    ebb_log("writer", "%s; nobody can look on", err.msg);
    ebb_file_close(c->writer_lock);
    c->writer_lock = -1;
}

void ebb_chat_unlock_writer(ebb_chat *c)
{
    if (c->writer_lock < 0)
        return;
    unlink(c->writer_lock_path.data);
    ebb_file_close(c->writer_lock);
    c->writer_lock = -1;
}

/* -- Who looks on ------------------------------------------------------------------ */

/* The process that writes in this session; 0: none but this one. */
static pid_t find_writer(const ebb_chat *c, int64_t session)
{
    ebb_buf path = { 0 }, pid = { 0 };
    pid_t writer = 0;
    int fd = -1;

    if (writer_lock_path(c, session, &path) && ebb_file_open(path.data, EBB_FILE_READ, &fd, NULL) == EBB_OK) {
        if (!ebb_file_is_locked(fd))
            unlink(path.data);                   /* it was killed */
        else if (ebb_file_slurp(path.data, MARK_BYTES, &pid, NULL) == EBB_OK)
            writer = (pid_t)strtol(ebb_buf_text(&pid), NULL, 10);
        ebb_file_close(fd);
    }
    ebb_buf_fini(&path);
    ebb_buf_fini(&pid);
    return writer > 0 && writer != getpid() ? writer : 0;
}

bool ebb_chat_follow(ebb_chat *c, int64_t session)
{
    pid_t writer = c->writer_lock < 0 ? find_writer(c, session) : 0;

    c->follow = writer ? (ebb_chat_following){ .session = session, .writer = writer } : (ebb_chat_following){ 0 };
    if (writer)
        ebb_chat_arm_timer(c, LOOK_MS);
    return writer != 0;
}

long ebb_chat_writer_pid(const ebb_chat *c)
{
    return c->follow.session ? (long)c->follow.writer : 0;
}

void ebb_chat_follow_stop(ebb_chat *c)
{
    ebb_buf path = { 0 };
    int fd = -1;

    if (find_writer(c, c->follow.session) != c->follow.writer)
        return;                                  /* it has ended */
    if (!writer_lock_path(c, c->follow.session, &path) || ebb_file_open(path.data, EBB_FILE_READ, &fd, NULL) != EBB_OK ||
        !ebb_file_signal_holder(fd, SIGUSR1))    /* it saves what there is; without a terminal it leaves, too */
        ebb_chat_notice(c, "process %ld, which answers, cannot be reached from here; stop it where it runs", (long)c->follow.writer);
    ebb_file_close(fd);
    ebb_buf_fini(&path);
}

/* The answer has grown; false: it is another message by now. */
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
            ebb_node_set_text(leaf, text.data, text.len))
            ebb_chat_emit_event(c, EBB_EVENT_TEXT, text.data + had, text.len - had, 0, 0);
    }
    ebb_buf_fini(&text);
    return same;
}

/* All of it, and how it ended, as it stands now. */
static void end_following(ebb_chat *c)
{
    ebb_error err = { 0 };
    int64_t session = c->follow.session;
    char *path = c->wanted_model;

    c->follow = (ebb_chat_following){ 0 };
    if (ebb_chat_reload_session(c, session, &err) != EBB_OK)
        ebb_chat_notice(c, "%s; what is seen here is not all of it", err.msg);
    ebb_chat_report_interrupted(c);
    if (c->settings.away_tokens) {               /* it was not unseen */
        c->settings.away_tokens = 0;
        ebb_chat_save(c, false);
    }
    ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    if (!c->is_load_deferred)
        return;
    c->is_load_deferred = false;
    c->wanted_model = NULL;
    if (ebb_chat_open_model(c, path, &err) != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
    free(path);
}

void ebb_chat_follow_poll(ebb_chat *c)
{
    ebb_error err;
    bool is_there;

    if (!c->follow.session)
        return;
    is_there = find_writer(c, c->follow.session) == c->follow.writer;
    if (!follow_text(c) && ebb_chat_reload_session(c, c->follow.session, &err) == EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    if (is_there)
        ebb_chat_arm_timer(c, LOOK_MS);
    else
        end_following(c);
}
