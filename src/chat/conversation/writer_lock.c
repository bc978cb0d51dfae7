/* The lock of the process that writes in a session (writer_lock.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "conversation/chat_priv.h"
#include "os/file.h"

enum { MARK_BYTES = 32 };

bool ebb_writer_lock_path(const ebb_store *s, int64_t session, ebb_buf *out)
{
    return s && strcmp(ebb_store_path(s), ":memory:") != 0 && session > 0 &&
           ebb_buf_addf(out, "%s-writer-%lld", ebb_store_path(s), (long long)session);
}

/* -- Who writes ------------------------------------------------------------------- */

/* Whoever had it before may remove the file between our opening and our locking: a lock on what has no name any more
 * keeps nobody out. */
static ebb_status take_writer_lock(int *fd, const char *path, ebb_error *err)
{
    ebb_status st;

    for (;;) {
        st = ebb_file_open(path, EBB_FILE_UPDATE_HERE, fd, err);
        if (st == EBB_OK)
            st = ebb_file_lock(*fd, path, err);
        if (st != EBB_OK || ebb_file_is_at(*fd, path))
            return st;
        ebb_file_close(*fd);
        *fd = -1;
    }
}

static ebb_status write_writer_lock(int *fd, const char *path, ebb_error *err)
{
    char pid[MARK_BYTES];
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    ebb_status st = take_writer_lock(fd, path, err);

    if (st == EBB_OK)
        st = ebb_file_truncate(*fd, path, 0, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(*fd, path, pid, (size_t)n, 0, err);
    return st;
}

/* false: another process has it. */
static bool lock(ebb_writer_lock *l)
{
    ebb_error err = { 0 };
    ebb_status st = write_writer_lock(&l->fd, l->path.data, &err);

    if (st == EBB_OK)
        return true;
    ebb_log("writer", "%s; nobody else can follow this answer", err.msg);
    ebb_file_close(l->fd);
    l->fd = -1;
    return st != EBB_BUSY;
}

static void unlock(ebb_writer_lock *l)
{
    if (l->fd < 0)
        return;
    unlink(l->path.data);
    ebb_file_close(l->fd);
    l->fd = -1;
}

bool ebb_chat_lock_name(ebb_chat *c)
{
    if (c->name_lock.fd >= 0)
        return true;
    ebb_buf_clear(&c->name_lock.path);
    return !c->store || strcmp(ebb_store_path(c->store), ":memory:") == 0 ||
           !ebb_buf_addf(&c->name_lock.path, "%s-writer-0", ebb_store_path(c->store)) || lock(&c->name_lock);
}

void ebb_chat_unlock_name(ebb_chat *c)
{
    unlock(&c->name_lock);
}

bool ebb_chat_lock_writer(ebb_chat *c)
{
    bool ok = true;

    if (c->writer_lock.fd < 0) {
        ebb_buf_clear(&c->writer_lock.path);     /* that of an answer before */
        ok = !ebb_writer_lock_path(c->store, c->facts.id, &c->writer_lock.path) || lock(&c->writer_lock);
    }
    ebb_chat_unlock_name(c);                     /* the session is kept by now, or cannot be */
    return ok;
}

void ebb_chat_unlock_writer(ebb_chat *c)
{
    unlock(&c->writer_lock);
}

/* -- Who looks on ------------------------------------------------------------------ */

/* Not by its number: in another PID namespace another process has ours. */
static bool is_own_lock(const ebb_chat *c, const char *path)
{
    return c->writer_lock.fd >= 0 && strcmp(path, ebb_buf_text(&c->writer_lock.path)) == 0;
}

/* The file of a process that was killed.  Only who has taken it removes it: it may be another's by now. */
static void remove_left_lock(int fd, const char *path)
{
    if (ebb_file_lock(fd, path, NULL) == EBB_OK && ebb_file_is_at(fd, path))
        unlink(path);
}

static pid_t read_writer(const char *path)
{
    ebb_buf pid = { 0 };
    pid_t writer = 0;
    int fd = -1;

    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return 0;
    if (!ebb_file_is_locked(fd))
        remove_left_lock(fd, path);
    else if (ebb_file_slurp(path, MARK_BYTES, &pid, NULL) == EBB_OK)
        writer = (pid_t)strtol(ebb_buf_text(&pid), NULL, 10);
    ebb_file_close(fd);
    ebb_buf_fini(&pid);
    return writer > 0 ? writer : 0;
}

pid_t ebb_writer_find(const ebb_chat *c, int64_t session)
{
    ebb_buf path = { 0 };
    pid_t writer = ebb_writer_lock_path(c->store, session, &path) && !is_own_lock(c, path.data)
                       ? read_writer(path.data) : 0;

    ebb_buf_fini(&path);
    return writer;
}

pid_t ebb_writer_find_any(const ebb_store *s, int64_t session)
{
    ebb_buf path = { 0 };
    pid_t writer = ebb_writer_lock_path(s, session, &path) ? read_writer(path.data) : 0;

    ebb_buf_fini(&path);
    return writer;
}

ebb_status ebb_writer_check_none(pid_t writer, ebb_error *err)
{
    return writer == 0 ? EBB_OK
                       : EBB_FAIL(err, EBB_BUSY, "process %ld still writes an answer in this session: `ebb stop %ld` "
                                  "ends that, and then it can be deleted", (long)writer, (long)writer);
}

/* One's own file is not even opened: closing it would take the lock away that names us to others (ebb_file_lock). */
static bool is_written(const ebb_store *s, const ebb_chat *c, int64_t session)
{
    ebb_buf path = { 0 };
    bool is = ebb_writer_lock_path(s, session, &path) &&
              ((c && is_own_lock(c, path.data)) || read_writer(path.data) != 0);

    ebb_buf_fini(&path);
    return is;
}

void ebb_writer_note_cut(ebb_store *s, const ebb_chat *c)
{
    int64_t *sessions;
    size_t n;

    if (ebb_store_list_under_way(s, &sessions, &n, NULL) != EBB_OK)
        return;                                  /* what comes next says why */
    for (size_t i = 0; i < n; i++)
        if (!is_written(s, c, sessions[i]))
            ebb_store_note_cut(s, sessions[i]);
    free(sessions);
}

bool ebb_chat_follow(ebb_chat *c, int64_t session)
{
    pid_t writer = c->writer_lock.fd < 0 ? ebb_writer_find(c, session) : 0;

    c->follow = writer ? (ebb_chat_following){ .session = session, .writer = writer } : (ebb_chat_following){ 0 };
    if (writer)
        ebb_chat_arm_timer(c, EBB_FOLLOW_MS);
    return writer != 0;
}

long ebb_chat_writer_pid(const ebb_chat *c)
{
    return c->follow.session ? (long)c->follow.writer : 0;
}
