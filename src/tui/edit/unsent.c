/* What was not sent (unsent.h). */
#include "edit/unsent.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/file.h"

#define UNSENT_BYTES_MAX ((size_t)128 << 20)     /* two of the longest pastes */

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

/* The way back; what is in the clear is so. */
static bool open_text(const ebb_seal *seal, ebb_buf *whole)
{
    ebb_buf text = { 0 };

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

ebb_status ebb_unsent_persist(const char *state_dir, const char *session, const char *text, size_t n, ebb_error *err)
{
    ebb_buf path = { 0 }, whole = { 0 };
    ebb_status st = EBB_OK;

    ebb_buf_addf(&path, "%s/draft", state_dir);
    ebb_buf_add(&whole, session, strcspn(session, "\n"));
    ebb_buf_addc(&whole, '\n');
    ebb_buf_add(&whole, text, n);
    if (path.failed || !close_text(ebb_seal_here(), &whole))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to keep what was not sent");
    if (st == EBB_OK)
        st = ebb_file_mkdirs(state_dir, err);
    if (st == EBB_OK)
        st = ebb_file_replace(path.data, whole.data, whole.len, err);
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    return st;
}

/* -- Saving while typing ------------------------------------------------------------- */

void ebb_unsent_end_autosave(ebb_unsent_file *d)
{
    if (d->fd < 0)
        return;
    unlink(d->path);
    ebb_file_close(d->fd);
    d->fd = -1;
}

static bool open_autosave(ebb_unsent_file *d, const char *state_dir)
{
    int n = snprintf(d->path, sizeof d->path, "%s/draft-%ld", state_dir, (long)getpid());

    if (n < 0 || (size_t)n >= sizeof d->path || ebb_file_mkdirs(state_dir, NULL) != EBB_OK)
        return false;
    if (ebb_file_open(d->path, EBB_FILE_UPDATE_HERE, &d->fd, NULL) != EBB_OK ||
        ebb_file_lock(d->fd, d->path, NULL) != EBB_OK) {
        ebb_file_close(d->fd);
        d->fd = -1;
    }
    return d->fd >= 0;
}

void ebb_unsent_autosave(ebb_unsent_file *d, const char *state_dir, const char *session, const char *text, size_t n)
{
    ebb_buf whole = { 0 };

    if (n == 0) {
        ebb_unsent_end_autosave(d);
    } else if ((d->fd >= 0 || open_autosave(d, state_dir)) && ebb_buf_add(&whole, session, strcspn(session, "\n")) &&
               ebb_buf_addc(&whole, '\n') && ebb_buf_add(&whole, text, n) && close_text(ebb_seal_here(), &whole)) {
        if (ebb_file_write_at(d->fd, d->path, whole.data, whole.len, 0, NULL) != EBB_OK ||
            ebb_file_truncate(d->fd, d->path, whole.len, NULL) != EBB_OK)
            ebb_unsent_end_autosave(d);
    }
    ebb_buf_fini(&whole);
}

/* -- Coming back --------------------------------------------------------------------- */

/* No running process has it locked; a pipe of that name is none, and would be waited for. */
static bool open_unsent_file(const char *path, ebb_file_mode mode, int *fd)
{
    uint64_t n_bytes;

    return ebb_file_open(path, mode, fd, NULL) == EBB_OK && ebb_file_size(*fd, path, &n_bytes, NULL) == EBB_OK &&
           !ebb_file_is_locked(*fd);
}

/* Restore this file if it belongs to the conversation and no running process has it locked. */
static bool restore_file(const char *path, const char *session, ebb_buf *out)
{
    ebb_buf whole = { 0 };
    size_t n = strlen(session), n_text;
    int fd = -1;
    bool is_it = open_unsent_file(path, EBB_FILE_READ, &fd) &&
                 ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, NULL) == EBB_OK &&
                 open_text(ebb_seal_here(), &whole) && whole.len > n &&
                 memcmp(whole.data, session, n) == 0 && whole.data[n] == '\n';

    ebb_file_close(fd);
    if (is_it) {                                 /* a power failure may leave zeros at the end */
        n_text = strnlen(whole.data + n + 1, whole.len - n - 1);
        is_it = ebb_buf_add(out, whole.data + n + 1, n_text) && unlink(path) == 0 && n_text > 0;
    }
    ebb_buf_fini(&whole);
    return is_it;
}

bool ebb_unsent_restore(const char *state_dir, const char *session, ebb_buf *out)
{
    DIR *dir = opendir(state_dir);
    const struct dirent *e;
    ebb_buf path = { 0 };
    bool is_there = ebb_buf_addf(&path, "%s/draft", state_dir) && restore_file(path.data, session, out);

    while (dir && !is_there && (e = readdir(dir)) != NULL) {
        if (strncmp(e->d_name, "draft-", 6) != 0)
            continue;
        ebb_buf_clear(&path);
        is_there = ebb_buf_addf(&path, "%s/%s", state_dir, e->d_name) && restore_file(path.data, session, out);
    }
    if (dir)
        closedir(dir);
    ebb_buf_fini(&path);
    return is_there;
}

/* -- Encrypted, and in the clear again ------------------------------------------------- */

/* One that cannot be read is named: nobody may take for encrypted what is not. */
static ebb_status turn_unsent_file(const char *path, const ebb_seal *from, const ebb_seal *to, ebb_error *err)
{
    ebb_buf whole = { 0 };
    int fd = -1;
    ebb_status st = EBB_OK;

    if (open_unsent_file(path, EBB_FILE_UPDATE_HERE, &fd))
        st = ebb_file_slurp(path, UNSENT_BYTES_MAX, &whole, err);
    if (st == EBB_OK && whole.len > 0 && open_text(from, &whole)) {
        st = close_text(to, &whole) ? ebb_file_replace(path, whole.data, whole.len, err)
                                    : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
        if (st == EBB_OK && to)
            ebb_file_overwrite(fd);
    }
    ebb_file_close(fd);
    ebb_buf_fini(&whole);
    return st;
}

ebb_status ebb_unsent_turn(const char *state_dir, const ebb_seal *from, const ebb_seal *to, ebb_error *err)
{
    DIR *dir = opendir(state_dir);
    const struct dirent *e;
    ebb_buf path = { 0 };
    ebb_status st = EBB_OK;

    if (ebb_buf_addf(&path, "%s/draft", state_dir))
        ebb_file_wipe_begun(path.data);
    while (dir && st == EBB_OK && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, "draft") != 0 && strncmp(e->d_name, "draft-", 6) != 0)
            continue;
        ebb_buf_clear(&path);
        if (ebb_buf_addf(&path, "%s/%s", state_dir, e->d_name))
            st = turn_unsent_file(path.data, from, to, err);
    }
    if (dir)
        closedir(dir);
    ebb_buf_fini(&path);
    return st;
}
