/* What an editor has saved (message_file.h). */
#include "edit/message_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/paths.h"

enum { MESSAGE_BYTES_MAX = 16 << 20, SWAP_BYTES_MAX = 64 << 20, N_RANDOM = 6, LOCK_TRIES = 3 };

/* What editors put beside their file: "before" NAME "behind".  The first ones are texts that were not saved. */
enum { N_RESCUES = 2, SWAP = N_RESCUES, BACKUP, LOCK, N_BESIDE };
static const struct { const char *before, *behind; } beside[N_BESIDE] = {
    { "", ".save" }, { "#", "#" }, [SWAP] = { ".", ".swp" }, [BACKUP] = { "", "~" },
    [LOCK] = { ".", ".lock" },                   /* ours, as long as an editor has the file */
};

static const char name_begin[] = "ebb-draft-", name_end[] = ".md";

bool ebb_message_file_is_name(const char *path)
{
    const char *name = ebb_text_file_name(path);
    size_t n_begin = strlen(name_begin);

    return name > path && strncmp(name, name_begin, n_begin) == 0 &&
           strlen(name) == n_begin + N_RANDOM + strlen(name_end) && strcmp(name + n_begin + N_RANDOM, name_end) == 0;
}

static bool add_path_beside(ebb_buf *out, const char *path, int which)
{
    const char *name = ebb_text_file_name(path);

    return ebb_buf_add(out, path, (size_t)(name - path)) &&
           ebb_buf_addf(out, "%s%s%s", beside[which].before, name, beside[which].behind);
}

/* -- Lending ------------------------------------------------------------------------------- */

/* One that a sweep has removed meanwhile, with the file, is none. */
static bool take_lock(const char *path, int *lock)
{
    ebb_buf name = { 0 };
    bool ok = add_path_beside(&name, path, LOCK) && ebb_file_open(name.data, EBB_FILE_CREATE, lock, NULL) == EBB_OK &&
              ebb_file_lock(*lock, name.data, NULL) == EBB_OK && ebb_file_is_at(*lock, name.data);

    ebb_buf_fini(&name);
    return ok;
}

/* The runtime folder, else /tmp, which only a chat without confinement reaches. */
static void add_message_folder(ebb_buf *dir)
{
    if (ebb_path_run(dir, NULL) == EBB_OK && ebb_file_mkdirs(dir->data, NULL) == EBB_OK)
        return;
    ebb_buf_clear(dir);
    ebb_buf_adds(dir, "/tmp");
}

int ebb_message_file_make(char *path, size_t cap, int *lock)
{
    ebb_buf dir = { 0 };
    int fd = -1;

    *lock = -1;
    add_message_folder(&dir);
    for (int i = 0; i < LOCK_TRIES; i++) {
        int n = snprintf(path, cap, "%s/%sXXXXXX%s", ebb_buf_text(&dir), name_begin, name_end);

        errno = ENAMETOOLONG;
        fd = n >= 0 && (size_t)n < cap ? mkstemps(path, (int)strlen(name_end)) : -1;
        if (fd < 0 || take_lock(path, lock) || i + 1 == LOCK_TRIES)
            break;
        ebb_file_close(fd);
        ebb_message_file_drop(path);
        ebb_file_close(*lock);
        *lock = -1;
    }
    ebb_buf_fini(&dir);
    return fd;
}

void ebb_message_file_end(const char *path, int *lock)
{
    ebb_buf name = { 0 };

    if (add_path_beside(&name, path, LOCK))
        ebb_file_remove(name.data);
    ebb_buf_fini(&name);
    ebb_file_close(*lock);
    *lock = -1;
}

typedef struct message_sweep {
    const char               *folder;
    ebb_message_file_keep_fn *keep;
    void                     *arg;
} message_sweep;

/* The name of a message file, of whose lock that is the name; false: it is none. */
static bool add_path_of_lock(ebb_buf *path, const char *folder, const char *lock)
{
    size_t n = strlen(lock), n_before = strlen(beside[LOCK].before), n_behind = strlen(beside[LOCK].behind);

    return n > n_before + n_behind && strncmp(lock, beside[LOCK].before, n_before) == 0 &&
           strcmp(lock + n - n_behind, beside[LOCK].behind) == 0 && ebb_buf_addf(path, "%s/", folder) &&
           ebb_buf_add(path, lock + n_before, n - n_before - n_behind) && ebb_message_file_is_name(path->data);
}

static void sweep_message(void *arg, const ebb_folder_entry *e)
{
    const message_sweep *s = arg;
    ebb_buf path = { 0 }, name = { 0 };
    int lock = -1;

    if (add_path_of_lock(&path, s->folder, e->name) && add_path_beside(&name, path.data, LOCK) &&
        ebb_file_open(name.data, EBB_FILE_READ_HERE, &lock, NULL) == EBB_OK && ebb_file_is_own(lock) &&
        ebb_file_lock(lock, name.data, NULL) == EBB_OK && !s->keep(s->arg, path.data))
        ebb_message_file_drop(path.data);
    ebb_file_close(lock);
    ebb_buf_fini(&path);
    ebb_buf_fini(&name);
}

typedef void message_folder_fn(void *arg, const char *folder);

/* Also the folder where they are without a runtime folder: a login by another way may have none. */
static void each_message_folder(message_folder_fn *fn, void *arg)
{
    ebb_buf dirs[2] = { 0 };

    add_message_folder(&dirs[0]);
    (void)!ebb_path_in(EBB_DIR_STATE, "run", &dirs[1], NULL);
    for (size_t i = 0; i < 2; i++)
        if (i == 0 || strcmp(ebb_buf_text(&dirs[i]), ebb_buf_text(&dirs[0])) != 0)
            fn(arg, ebb_buf_text(&dirs[i]));
    for (size_t i = 0; i < 2; i++)
        ebb_buf_fini(&dirs[i]);
}

static void sweep_folder(void *arg, const char *folder)
{
    message_sweep *s = arg;

    s->folder = folder;
    (void)!ebb_folder_each(folder, sweep_message, s, NULL);
}

void ebb_message_file_sweep(ebb_message_file_keep_fn *keep, void *arg)
{
    message_sweep s = { .keep = keep, .arg = arg };

    each_message_folder(sweep_folder, &s);
}

typedef struct left_messages {
    const char               *folder;
    ebb_message_file_left_fn *fn;
    void                     *arg;
} left_messages;

static void look_at_left(void *arg, const ebb_folder_entry *e)
{
    const left_messages *l = arg;
    ebb_buf path = { 0 }, lock = { 0 };
    ebb_file_id id;
    int fd = -1;

    if (e->n_bytes > 0 && ebb_buf_addf(&path, "%s/%s", l->folder, e->name) && ebb_message_file_is_name(path.data) &&
        add_path_beside(&lock, path.data, LOCK) && !ebb_file_look_up(lock.data, &id) &&
        ebb_file_open(path.data, EBB_FILE_READ_HERE, &fd, NULL) == EBB_OK && ebb_file_is_own(fd))
        l->fn(l->arg, path.data);
    ebb_file_close(fd);
    ebb_buf_fini(&path);
    ebb_buf_fini(&lock);
}

static void look_for_left(void *arg, const char *folder)
{
    left_messages *l = arg;

    l->folder = folder;
    (void)!ebb_folder_each(folder, look_at_left, l, NULL);
}

void ebb_message_file_each_left(const char *dir, ebb_message_file_left_fn *fn, void *arg)
{
    left_messages l = { .fn = fn, .arg = arg };

    each_message_folder(look_for_left, &l);
    look_for_left(&l, dir);
}

/* -- What is in it ------------------------------------------------------------------------- */

/* *out is its path, if something is in it. */
static bool find_beside(const char *path, int which, ebb_buf *out)
{
    struct stat found;

    ebb_buf_clear(out);
    return add_path_beside(out, path, which) && lstat(out->data, &found) == 0 && found.st_size > 0;
}

static bool find_rescue(const char *path, ebb_buf *out)
{
    for (int i = 0; i < N_RESCUES; i++)
        if (find_beside(path, i, out))
            return true;
    return false;
}

static ebb_status add_file(int fd, const char *path, ebb_buf *out, ebb_error *err)
{
    uint64_t n;
    ebb_status st = ebb_file_size(fd, path, &n, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_file_is_own(fd))
        return EBB_FAIL(err, EBB_IO, "%s: belongs to another user", path);
    if (n > MESSAGE_BYTES_MAX)
        return EBB_FAIL(err, EBB_LIMIT, "%s: more than %d MiB", path, MESSAGE_BYTES_MAX >> 20);
    if (!ebb_buf_reserve(out, (size_t)n))
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
    st = ebb_file_read_at(fd, path, out->data, (size_t)n, 0, err);
    if (st == EBB_OK)
        out->len = (size_t)n;
    return st;
}

/* The end of the last line is no part of the message; a NUL would end it. */
static bool add_message(ebb_buf *out, const char *s, size_t n)
{
    while (n > 0 && s[n - 1] == '\n') {
        n--;
        n -= n > 0 && s[n - 1] == '\r';
    }
    for (size_t n_part; (n_part = strnlen(s, n)) < n; s += n_part + 1, n -= n_part + 1)
        if (!ebb_buf_add(out, s, n_part) || !ebb_buf_adds(out, "\xEF\xBF\xBD"))
            return false;
    return ebb_buf_add(out, s, n);
}

ebb_status ebb_message_file_read(const char *path, ebb_buf *out, ebb_error *err)
{
    ebb_buf whole = { 0 };
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ_HERE, &fd, err);

    if (st == EBB_OK)
        st = add_file(fd, path, &whole, err);
    if (st == EBB_OK && !add_message(out, ebb_buf_text(&whole), whole.len))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
    ebb_file_close(fd);
    ebb_buf_fini(&whole);
    return st;
}

bool ebb_message_file_has_rescue(const char *path)
{
    ebb_buf found = { 0 };
    bool has_rescue = find_rescue(path, &found);

    ebb_buf_fini(&found);
    return has_rescue;
}

ebb_status ebb_message_file_rescue(const char *path, ebb_buf *out, ebb_error *err)
{
    ebb_buf found = { 0 };
    ebb_status st = ebb_message_file_read(find_rescue(path, &found) ? found.data : path, out, err);

    ebb_buf_fini(&found);
    return st;
}

ebb_status ebb_message_file_check_swap(const char *path, ebb_error *err)
{
    ebb_buf found = { 0 };
    ebb_status st = find_beside(path, SWAP, &found)
                        ? EBB_FAIL(err, EBB_UNSUPPORTED, "what vi had not saved is shown by vi -r %s", path)
                        : EBB_OK;

    ebb_buf_fini(&found);
    return st;
}

void ebb_message_file_drop(const char *path)
{
    ebb_buf other = { 0 };

    for (int i = 0; i < N_BESIDE; i++) {
        ebb_buf_clear(&other);
        if (add_path_beside(&other, path, i))
            ebb_file_wipe(other.data);
    }
    ebb_buf_fini(&other);
    ebb_file_wipe(path);
}

static bool copy_file(const char *from, const char *to)
{
    ebb_buf whole = { 0 };
    bool ok = ebb_file_slurp(from, SWAP_BYTES_MAX, &whole, NULL) == EBB_OK &&
              ebb_file_create(to, ebb_buf_text(&whole), whole.len, NULL) == EBB_OK;

    ebb_buf_fini(&whole);
    return ok;
}

void ebb_message_file_move(char *path, size_t cap, const char *dir)
{
    ebb_buf to = { 0 }, old_swap = { 0 }, new_swap = { 0 };
    bool fits = ebb_buf_addf(&to, "%s%s", dir, strrchr(path, '/')) && to.len < cap &&
                add_path_beside(&old_swap, path, SWAP) && add_path_beside(&new_swap, to.data, SWAP);

    if (fits && copy_file(path, to.data) && copy_file(old_swap.data, new_swap.data)) {
        ebb_message_file_drop(path);
        memcpy(path, to.data, to.len + 1);
    } else if (fits) {
        ebb_message_file_drop(to.data);
    }
    ebb_buf_fini(&to);
    ebb_buf_fini(&old_swap);
    ebb_buf_fini(&new_swap);
}
