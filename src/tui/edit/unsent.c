/* What was not sent (unsent.h). */
#include "edit/unsent.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "edit/marked.h"
#include "edit/message_file.h"
#include "edit/typed.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/random.h"
#include "tree/attachment.h"

#define UNSENT_BYTES_MAX ((size_t)128 << 20)     /* eight of the longest pastes */

/* Encrypt what goes to a file. */
static bool close_text(const ebb_seal *seal, ebb_buf *whole)
{
    ebb_buf sealed = { 0 };

    if (!seal || whole->failed)
        return !whole->failed;
    if (!ebb_seal_add_text(seal, ebb_buf_text(whole), whole->len, &sealed)) {
        ebb_buf_fini(&sealed);
        return false;
    }
    ebb_buf_fini(whole);
    *whole = sealed;
    return true;
}

/* The way back; what is in the clear is so.  Behind a NUL is what a kill or a loss of power left of a longer text. */
static bool open_text(const ebb_seal *seal, ebb_buf *whole)
{
    ebb_buf text = { 0 };

    whole->len = strnlen(ebb_buf_text(whole), whole->len);
    if (!ebb_seal_is_text(ebb_buf_text(whole), whole->len))
        return true;
    if (!seal || !ebb_seal_open_text(seal, whole->data, whole->len, &text)) {
        ebb_buf_fini(&text);
        return false;
    }
    ebb_buf_fini(whole);
    *whole = text;
    return true;
}

/* A file that nobody has yet: not even one of this process's number that was killed. */
static ebb_status add_new_path(ebb_buf *path, const char *state_dir, ebb_error *err)
{
    uint64_t random;
    ebb_status st = ebb_random(&random, sizeof random, err);

    if (st == EBB_OK)
        st = ebb_file_mkdirs(state_dir, err);
    if (st == EBB_OK && !ebb_buf_addf(path, "%s/draft-%016llx", state_dir, (unsigned long long)random))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to keep what was not sent");
    return st;
}

/* The first line: whose it is; behind a unit separator, what an editor has of it. */
typedef struct unsent_head {
    size_t n_session, n_line;
    size_t n_before;
    char   path[512];            /* "": no editor has anything */
} unsent_head;

static unsent_head head_of(const ebb_buf *whole)
{
    const char *s = ebb_buf_text(whole);
    unsent_head h = { .n_session = strcspn(s, "\x1f\n"), .n_line = strcspn(s, "\n") };

    if (sscanf(s + h.n_session, "\x1f%zu %511[^\n]", &h.n_before, h.path) != 2 || !ebb_message_file_is_name(h.path))
        h.path[0] = '\0';
    return h;
}

static bool is_of(const ebb_buf *whole, const unsent_head *h, const char *session)
{
    return h->n_line < whole->len && h->n_session == strlen(session) &&
           memcmp(whole->data, session, h->n_session) == 0;
}

/* The whole of a file: its head, and the text. */
static bool add_whole(ebb_buf *whole, const char *session, const char *text, size_t n, const ebb_unsent_lent *lent)
{
    return ebb_buf_add(whole, session, strcspn(session, "\n")) &&
           (!lent || ebb_buf_addf(whole, "\x1f%zu %s", lent->n_before, lent->path)) && ebb_buf_addc(whole, '\n') &&
           ebb_buf_add(whole, text, n) && close_text(ebb_seal_here(), whole);
}

ebb_status ebb_unsent_persist(const char *state_dir, const char *session, const char *text, size_t n,
                              const ebb_unsent_lent *lent, ebb_error *err)
{
    ebb_buf path = { 0 }, whole = { 0 };
    ebb_status st = add_new_path(&path, state_dir, err);

    if (st == EBB_OK && !add_whole(&whole, session, text, n, lent))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to keep what was not sent");
    if (st == EBB_OK)
        st = ebb_file_create(path.data, whole.data, whole.len, err);
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    return st;
}

/* By a program that was killed, unless it is at it; what it was to replace is there. */
static bool is_begun(const char *path)
{
    size_t n = strlen(path);

    return n > 4 && strcmp(path + n - 4, ".new") == 0;
}

/* `draft` is that of an older ebb; and what was begun beside one of them. */
static bool is_unsent_name(const char *name)
{
    return strcmp(name, "draft") == 0 || strncmp(name, "draft-", 6) == 0 ||
           (strncmp(name, "draft.", 6) == 0 && is_begun(name));
}

/* -- Saving while typing ------------------------------------------------------------- */

void ebb_unsent_end_autosave(ebb_unsent_file *d)
{
    if (d->fd >= 0)
        unlink(d->path);
    ebb_unsent_leave_autosave(d);
}

void ebb_unsent_leave_autosave(ebb_unsent_file *d)
{
    ebb_file_close(d->fd);
    d->fd = -1;
}

/* Take the file at `path`; false: it cannot be written, or another program has it. */
static bool take_autosave(ebb_unsent_file *d, const char *path, ebb_file_mode mode)
{
    int n = snprintf(d->path, sizeof d->path, "%s", path);

    if (n >= 0 && (size_t)n < sizeof d->path && ebb_file_open(path, mode, &d->fd, NULL) == EBB_OK &&
        ebb_file_lock(d->fd, path, NULL) == EBB_OK)
        return true;
    ebb_unsent_leave_autosave(d);
    return false;
}

static bool begin_autosave(ebb_unsent_file *d, const char *state_dir)
{
    ebb_buf path = { 0 };
    bool ok = add_new_path(&path, state_dir, NULL) == EBB_OK && take_autosave(d, path.data, EBB_FILE_CREATE);

    ebb_buf_fini(&path);
    return ok;
}

/* On a full disk what was saved before stays as it is.  With the NUL that it ends with a shorter text is whole even if
 * what is behind it cannot be cut off any more. */
static bool write_autosave(const ebb_unsent_file *d, const ebb_buf *whole)
{
    bool ok = ebb_file_reserve(d->fd, d->path, whole->len + 1, NULL) == EBB_OK &&
              ebb_file_write_at(d->fd, d->path, whole->data, whole->len + 1, 0, NULL) == EBB_OK;

    if (ok)
        (void)!ebb_file_truncate(d->fd, d->path, whole->len, NULL);
    return ok;
}

bool ebb_unsent_sync(const ebb_unsent_file *d)
{
    bool ok = d->fd < 0 || ebb_file_sync(d->fd, d->path, NULL) == EBB_OK;

    if (d->fd >= 0)
        ebb_folder_sync_name(d->path);
    return ok;
}

bool ebb_unsent_autosave(ebb_unsent_file *d, const char *state_dir, const char *session, const char *text, size_t n,
                         const ebb_unsent_lent *lent)
{
    ebb_buf whole = { 0 };
    bool ok = true;

    if (n == 0 && !lent)
        ebb_unsent_end_autosave(d);
    else
        ok = (d->fd >= 0 || begin_autosave(d, state_dir)) && add_whole(&whole, session, text, n, lent) &&
             write_autosave(d, &whole);
    ebb_buf_fini(&whole);
    return ok;
}

/* -- What an editor has saved -------------------------------------------------------------- */

static bool begins_command(const char *saved)
{
    return saved[0] == '/' && saved[1] != '/';
}

const char *ebb_unsent_behind_signs(const char *text)
{
    return text + strspn(text, EBB_UNSENT_COMMAND EBB_UNSENT_EDIT);
}

/* Whether files go along in front of a text of a draft, however it stands there: behind another text it has a line end
 * in front. */
static bool has_files(const char *draft, size_t at)
{
    const char *text = draft + at + (at > 0 && draft[at] == '\n');
    ebb_buf plain = { 0 };
    bool has;

    text = ebb_unsent_behind_signs(text);
    has = ebb_marked_add_plain(&plain, text, strlen(text)) && ebb_attachments_end(ebb_buf_text(&plain), plain.len) > 0;
    ebb_buf_fini(&plain);
    return has;
}

/* It is the text, and not behind another one, but for the line of an edit. */
static bool is_alone(const char *draft, size_t n_before)
{
    return n_before == 0 || (draft[0] == EBB_UNSENT_EDIT[0] && !memchr(draft, '\n', n_before));
}

/* What takes the place of draft + n_before, which the editor was given: behind another text a line end.  Where it is
 * alone, it may be a command, or in quotes; and it may begin as files do, whose path is no command: they are some if
 * there were any before (attach.h).  It is a message or a command as it was typed: of two slashes, or of blanks, one
 * may be for whoever types (typed.h). */
static bool add_saved(ebb_buf *out, const char *draft, size_t n_before, const ebb_buf *saved)
{
    const char *text = ebb_buf_text(saved);
    size_t skip = begins_command(text) ? 0 : ebb_typed_skip(text, saved->len);

    ebb_buf_adds(out, n_before > 0 ? "\n" : "");
    if (is_alone(draft, n_before) && ebb_typed_files(text, saved->len) > 0) {
        if (!has_files(draft, n_before))
            return ebb_buf_adds(out, "\n") && ebb_buf_adds(out, ebb_unsent_behind_signs(text));
    } else if (is_alone(draft, n_before) && (begins_command(text) || ebb_typed_is_special(text, saved->len))) {
        ebb_buf_adds(out, EBB_UNSENT_COMMAND);
    }
    return ebb_buf_adds(out, ebb_unsent_behind_signs(text + skip));
}

/* A file that is gone was taken over or discarded; an empty one may be about to be written. */
static ebb_status take_in_saved(const unsent_head *h, ebb_buf *whole, ebb_error *err)
{
    ebb_buf saved = { 0 }, text = { 0 };
    ebb_error why;
    ebb_status st = h->path[0] ? ebb_message_file_rescue(h->path, &saved, &why) : EBB_OK;
    size_t at = h->n_line + 1 + h->n_before;

    if (st == EBB_OK && saved.len > 0 && at <= whole->len &&
        !(add_saved(&text, whole->data + h->n_line + 1, h->n_before, &saved) && ebb_buf_reserve(whole, text.len)))
        st = EBB_FAIL(&why, EBB_NOMEM, "%s: no memory for its text", h->path);
    if (st == EBB_OK && text.len > 0) {
        ebb_buf_remove(whole, at, whole->len - at);
        ebb_buf_add(whole, text.data, text.len);
    }
    ebb_buf_remove(whole, h->n_session, h->n_line - h->n_session);
    ebb_buf_fini(&saved);
    ebb_buf_fini(&text);
    if (st == EBB_OK && h->path[0])
        st = ebb_message_file_check_swap(h->path, &why);
    if (st == EBB_OK || st == EBB_NOTFOUND)
        return EBB_OK;
    if (err)
        *err = why;
    return st;
}

/* Once the draft's own file has it. */
static void drop_saved(const unsent_head *h)
{
    if (h->path[0])
        ebb_message_file_drop(h->path);
}

/* -- Coming back --------------------------------------------------------------------- */

/* No running process has it locked; a pipe of that name is none, and would be waited for. */
static bool open_unsent_file(const char *path, ebb_file_mode mode, int *fd)
{
    uint64_t n_bytes;

    return ebb_file_open(path, mode, fd, NULL) == EBB_OK && ebb_file_size(*fd, path, &n_bytes, NULL) == EBB_OK &&
           !ebb_file_is_locked(*fd);
}

/* The draft's own file has what the editor saved, before the editor's goes. */
static void keep_saved(const ebb_unsent_file *d, const unsent_head *h, const ebb_buf *whole)
{
    ebb_buf closed = { 0 };

    if (ebb_buf_add(&closed, whole->data, whole->len) && close_text(ebb_seal_here(), &closed) &&
        write_autosave(d, &closed) && ebb_unsent_sync(d))
        drop_saved(h);
    ebb_buf_fini(&closed);
}

/* What cannot be taken over is told of and stays.  The draft will not name it any more, so no sweep may find the lock
 * of the program that was killed, as if nobody knew of it. */
static void leave_saved(const unsent_head *h)
{
    int lock = -1;

    ebb_message_file_end(h->path, &lock);
}

/* Restore this file if it belongs to the conversation and no running process has it locked. */
static bool restore_file(ebb_unsent_file *d, const char *path, const char *session, ebb_buf *out, ebb_error *err)
{
    ebb_buf whole = { 0 };
    unsent_head h;
    size_t n = strlen(session), n_text;
    int fd = -1;
    bool has_lent, has_saved;
    bool is_it = open_unsent_file(path, EBB_FILE_READ, &fd) &&
                 ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, NULL) == EBB_OK && open_text(ebb_seal_here(), &whole);

    h = head_of(&whole);
    is_it = is_it && is_of(&whole, &h, session);
    has_lent = is_it && h.path[0];
    has_saved = has_lent && take_in_saved(&h, &whole, err) == EBB_OK;
    if (has_lent && !has_saved)
        leave_saved(&h);
    n_text = is_it ? whole.len - n - 1 : 0;
    if (is_it && !take_autosave(d, path, EBB_FILE_UPDATE_HERE))
        is_it = !ebb_file_is_locked(fd);
    ebb_file_close(fd);
    if (has_saved && d->fd >= 0)
        keep_saved(d, &h, &whole);
    if (is_it && n_text == 0)
        ebb_unsent_end_autosave(d);
    is_it = is_it && n_text > 0 && ebb_buf_add(out, whole.data + n + 1, n_text);
    if (!is_it)
        ebb_unsent_leave_autosave(d);
    ebb_buf_fini(&whole);
    return is_it;
}

bool ebb_unsent_restore(ebb_unsent_file *d, const char *state_dir, const char *session, ebb_buf *out, ebb_error *err)
{
    DIR *dir = opendir(state_dir);
    const struct dirent *e;
    ebb_buf path = { 0 };
    bool is_there = false;

    while (dir && !is_there && (e = readdir(dir)) != NULL) {
        if (!is_unsent_name(e->d_name) || is_begun(e->d_name))
            continue;
        ebb_buf_clear(&path);
        is_there = ebb_buf_addf(&path, "%s/%s", state_dir, e->d_name) && restore_file(d, path.data, session, out, err);
    }
    if (dir)
        closedir(dir);
    ebb_buf_fini(&path);
    return is_there;
}

/* -- All of them ------------------------------------------------------------------------- */

/* The session, which ends with a NUL now, and the text behind the first line.  false: a program has it, or it cannot be
 * read. */
static bool read_unsent(const char *path, ebb_buf *whole, unsent_head *h)
{
    int fd = -1;
    bool ok = open_unsent_file(path, EBB_FILE_READ, &fd) &&
              ebb_file_slurp(path, UNSENT_BYTES_MAX, whole, NULL) == EBB_OK && open_text(ebb_seal_here(), whole) &&
              whole->len > 0;

    ebb_file_close(fd);
    *h = head_of(whole);
    if (ok)
        whole->data[h->n_session] = '\0';
    return ok;
}

typedef ebb_status unsent_fn(void *arg, const char *path, ebb_error *err);

typedef struct unsent_files {
    const char *state_dir;
    unsent_fn  *fn;
    void       *arg;
    ebb_status  st;
    ebb_error  *err;
} unsent_files;

static void do_if_unsent(void *arg, const ebb_folder_entry *e)
{
    unsent_files *u = arg;
    ebb_buf path = { 0 };

    if (u->st != EBB_OK || !is_unsent_name(e->name))
        return;
    u->st = ebb_buf_addf(&path, "%s/%s", u->state_dir, e->name)
                ? u->fn(u->arg, path.data, u->err)
                : EBB_FAIL(u->err, EBB_NOMEM, "%s/%s: no memory for its name", u->state_dir, e->name);
    ebb_buf_fini(&path);
}

/* Until one fails.  Where they cannot be listed, they are not all done. */
static ebb_status for_all_unsent(const char *state_dir, unsent_fn *fn, void *arg, ebb_error *err)
{
    unsent_files u = { .state_dir = state_dir, .fn = fn, .arg = arg, .err = err };
    ebb_status st = ebb_folder_each(state_dir, do_if_unsent, &u, err);

    return st == EBB_OK || st == EBB_NOTFOUND ? u.st : st;
}

/* Who looks for its draft takes this one up before or afterwards, or waits for the next start. */
static ebb_status take_back_file(void *arg, const char *path, ebb_error *err)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf seen = { 0 }, whole = { 0 };
    unsent_head h;
    bool is_it;

    (void)arg;
    (void)err;                                   /* what cannot be read stays, and is told to whom it belongs */
    is_it = !is_begun(path) && read_unsent(path, &seen, &h) && h.path[0] &&
            take_autosave(&d, path, EBB_FILE_UPDATE_HERE) &&
            ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, NULL) == EBB_OK;
    if (is_it && whole.len == 0)                 /* it has just gone */
        ebb_unsent_end_autosave(&d);
    is_it = is_it && d.fd >= 0 && open_text(ebb_seal_here(), &whole);
    h = head_of(&whole);
    if (is_it && h.path[0] && take_in_saved(&h, &whole, NULL) == EBB_OK)
        keep_saved(&d, &h, &whole);
    ebb_unsent_leave_autosave(&d);
    ebb_buf_fini(&seen);
    ebb_buf_fini(&whole);
    return EBB_OK;
}

void ebb_unsent_take_back(const char *state_dir)
{
    if (ebb_seal_here())
        (void)!for_all_unsent(state_dir, take_back_file, NULL, NULL);
}

typedef struct naming {
    const char     *state_dir, *path;
    const ebb_seal *seal;
    bool            may_be;
} naming;

static ebb_status look_for_lent(void *arg, const char *path, ebb_error *err)
{
    naming *n = arg;
    ebb_buf whole = { 0 };

    (void)err;
    if (!is_begun(path))
        n->may_be |= ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, NULL) != EBB_OK || !open_text(n->seal, &whole) ||
                     strcmp(head_of(&whole).path, n->path) == 0;
    ebb_buf_fini(&whole);
    return EBB_OK;
}

static bool may_be_named(void *arg, const char *path)
{
    naming n = *(const naming *)arg;

    n.path = path;
    return for_all_unsent(n.state_dir, look_for_lent, &n, NULL) != EBB_OK || n.may_be;
}

void ebb_unsent_sweep_lent(const char *state_dir, const ebb_seal *seal)
{
    naming n = { .state_dir = state_dir, .seal = seal };

    ebb_message_file_sweep(may_be_named, &n);
}

typedef struct running {
    const char *session;
    bool        is_there;
    pid_t       process;
} running;

static ebb_status look_for_running(void *arg, const char *path, ebb_error *err)
{
    running *r = arg;
    ebb_buf whole = { 0 };
    unsent_head h;
    uint64_t n_bytes;
    int fd = -1;
    bool ok = ebb_file_open(path, EBB_FILE_READ, &fd, NULL) == EBB_OK &&
              ebb_file_size(fd, path, &n_bytes, NULL) == EBB_OK && ebb_file_is_locked(fd) &&
              ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, NULL) == EBB_OK && open_text(ebb_seal_here(), &whole);

    (void)err;                                   /* what cannot be read belongs to nobody */
    h = head_of(&whole);
    if (ok && is_of(&whole, &h, r->session) && (h.path[0] || whole.len > h.n_line + 1)) {
        r->is_there = true;
        r->process = ebb_file_lock_holder(fd);
    }
    ebb_file_close(fd);
    ebb_buf_fini(&whole);
    return EBB_OK;
}

bool ebb_unsent_find_running(const char *state_dir, const char *session, pid_t *process)
{
    running r = { .session = session };

    (void)!for_all_unsent(state_dir, look_for_running, &r, NULL);
    *process = r.process;
    return r.is_there;
}

typedef struct turning {
    const ebb_seal *from, *to;
} turning;

/* One that has gone meanwhile is turned. */
static ebb_status read_to_turn(const char *path, int *fd, ebb_buf *whole, ebb_error *err)
{
    ebb_status st = ebb_file_open(path, EBB_FILE_READ_HERE, fd, err);

    if (st != EBB_OK)
        return st == EBB_NOTFOUND ? EBB_OK : st;
    if (ebb_file_is_locked(*fd))
        return EBB_FAIL(err, EBB_BUSY, "%s is open in another ebb: leave it first; `ebb stat` shows who", path);
    return ebb_file_slurp(path, UNSENT_BYTES_MAX, whole, err);
}

/* One that cannot be read is named: nobody may take for encrypted what is not.  No program runs that begins one. */
static ebb_status turn_unsent_file(void *arg, const char *path, ebb_error *err)
{
    const turning *t = arg;
    ebb_buf whole = { 0 };
    unsent_head h;
    int fd = -1;
    ebb_status st;

    if (is_begun(path))
        return ebb_file_wipe(path) ? EBB_OK : EBB_FAIL(err, EBB_IO, "%s cannot be removed: remove it yourself", path);
    st = read_to_turn(path, &fd, &whole, err);
    if (st == EBB_OK && whole.len > 0 && open_text(t->from, &whole)) {
        h = head_of(&whole);
        st = take_in_saved(&h, &whole, err);
        if (st == EBB_OK && !close_text(t->to, &whole))
            st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
        if (st == EBB_OK)
            st = ebb_file_replace_wiping(path, whole.data, whole.len, err);
        if (st == EBB_OK)
            drop_saved(&h);
    }
    ebb_file_close(fd);
    ebb_buf_fini(&whole);
    return st;
}

ebb_status ebb_unsent_turn(const char *state_dir, const ebb_seal *from, const ebb_seal *to, ebb_error *err)
{
    turning t = { from, to };

    return for_all_unsent(state_dir, turn_unsent_file, &t, err);
}

typedef struct renaming {
    const char *name, *session;
} renaming;

static ebb_status rename_unsent_file(void *arg, const char *path, ebb_error *err)
{
    const renaming *r = arg;
    ebb_buf whole = { 0 }, renamed = { 0 };
    unsent_head h;
    bool is_it = read_unsent(path, &whole, &h) && strcmp(whole.data, r->name) == 0 && whole.len > h.n_line;
    ebb_unsent_lent lent = { h.path, h.n_before };

    (void)err;
    if (is_it && add_whole(&renamed, r->session, whole.data + h.n_line + 1, whole.len - h.n_line - 1,
                           h.path[0] ? &lent : NULL))
        (void)!ebb_file_replace(path, renamed.data, renamed.len, NULL);
    ebb_buf_fini(&whole);
    ebb_buf_fini(&renamed);
    return EBB_OK;
}

void ebb_unsent_rename(const char *state_dir, const char *name, const char *session)
{
    renaming r = { name, session };

    (void)!for_all_unsent(state_dir, rename_unsent_file, &r, NULL);
}

typedef struct sweeping {
    ebb_unsent_keep_fn *keep;
    void               *arg;
} sweeping;

static ebb_status sweep_unsent_file(void *arg, const char *path, ebb_error *err)
{
    const sweeping *s = arg;
    ebb_buf whole = { 0 };
    unsent_head h;

    (void)err;                                   /* what cannot be read stays */
    if (read_unsent(path, &whole, &h) && whole.data[0] && !s->keep(s->arg, whole.data)) {
        drop_saved(&h);
        ebb_file_wipe(path);
    }
    ebb_buf_fini(&whole);
    return EBB_OK;
}

void ebb_unsent_sweep(const char *state_dir, ebb_unsent_keep_fn *keep, void *arg)
{
    sweeping s = { keep, arg };

    (void)!for_all_unsent(state_dir, sweep_unsent_file, &s, NULL);
}
