/* Input history (history.h). */
#include "edit/history.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "os/file.h"

enum { ENTRIES_MAX = 2000, ENTRY_BYTES_MAX = 64 << 10, FILE_BYTES_MAX = 16 << 20 };

static void drop_entries(ebb_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->entries[i]);
    h->n = 0;
}

void ebb_history_fini(ebb_history *h)
{
    drop_entries(h);
    free(h->entries);
    free(h->path);
    ebb_buf_fini(&h->unsent);
    memset(h, 0, sizeof *h);
}

static void keep_newest(ebb_history *h)
{
    size_t n_old = h->n > ENTRIES_MAX ? h->n - ENTRIES_MAX : 0;

    if (n_old == 0)
        return;
    for (size_t i = 0; i < n_old; i++)
        free(h->entries[i]);
    h->n -= n_old;
    memmove(h->entries, h->entries + n_old, h->n * sizeof *h->entries);
}

/* Takes `text`.  There may be twice as many entries meanwhile, so that those of a long file are not moved each time. */
static void push_entry(ebb_history *h, char *text)
{
    char **entries;

    if (!text)
        return;
    if (h->n == 2 * ENTRIES_MAX)
        keep_newest(h);
    entries = ebb_grow(h->entries, h->n, &h->cap, sizeof *entries);
    if (!entries) {
        free(text);
        return;
    }
    h->entries = entries;
    h->entries[h->n++] = text;
}

/* One line of the file. */
static void add_line(ebb_buf *out, const ebb_seal *seal, const char *s, size_t n)
{
    if (seal && (!ebb_seal_add_text(seal, s, n, out) || !ebb_buf_addc(out, '\n')))
        out->failed = true;
    if (seal)
        return;
    if (ebb_seal_is_text(s, n))                  /* typed so: with a backslash it is none that is sealed */
        ebb_buf_addc(out, '\\');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' || s[i] == '\n')
            ebb_buf_addc(out, '\\');
        ebb_buf_addc(out, s[i] == '\n' ? 'n' : s[i]);
    }
    ebb_buf_addc(out, '\n');
}

static char *unescape_entry(const char *s, size_t n)
{
    ebb_buf out = { 0 };

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n)
            ebb_buf_addc(&out, s[++i] == 'n' ? '\n' : s[i]);
        else
            ebb_buf_addc(&out, s[i]);
    }
    return ebb_buf_take(&out);
}

/* NULL: it is none that can be read, or no memory. */
static char *read_line(const ebb_seal *seal, const char *s, size_t n)
{
    ebb_buf out = { 0 };

    if (n == 0 || n > 2 * ENTRY_BYTES_MAX)
        return NULL;
    if (!ebb_seal_is_text(s, n))
        return memchr(s, '\0', n) ? NULL : unescape_entry(s, n);
    if (seal && ebb_seal_open_text(seal, s, n, &out) && !memchr(out.data, '\0', out.len))
        return ebb_buf_take(&out);
    ebb_buf_fini(&out);
    return NULL;
}

/* The file's text; of one that has grown beyond all bounds its end, from a line's beginning on. */
static ebb_status read_history_file(const char *path, ebb_buf *text, bool *is_cut, ebb_error *err)
{
    uint64_t n_bytes;
    int fd;
    ebb_status st = ebb_file_slurp_kept(path, FILE_BYTES_MAX, text, err);

    *is_cut = st == EBB_LIMIT;
    if (!*is_cut)
        return st;
    ebb_buf_clear(text);
    st = ebb_file_open(path, EBB_FILE_READ, &fd, err);
    if (st != EBB_OK)
        return st;
    st = ebb_file_size(fd, path, &n_bytes, err);
    if (st == EBB_OK && !ebb_buf_reserve(text, FILE_BYTES_MAX))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, text->data, FILE_BYTES_MAX, n_bytes - FILE_BYTES_MAX, err);
    ebb_file_close(fd);
    if (st != EBB_OK)
        return st;
    text->len = FILE_BYTES_MAX;
    text->data[text->len] = '\0';
    const char *nl = memchr(text->data, '\n', text->len);
    ebb_buf_remove(text, 0, nl ? (size_t)(nl - text->data) + 1 : text->len);
    return EBB_OK;
}

/* The next whole line; one without an end was cut off by a crash. */
static bool next_line(const ebb_buf *text, size_t *at, const char **line, size_t *n)
{
    const char *nl = *at < text->len ? memchr(text->data + *at, '\n', text->len - *at) : NULL;

    if (!nl)
        return false;
    *line = text->data + *at;
    *n = (size_t)(nl - *line);
    *at += *n + 1;
    return true;
}

/* Replace the entries in memory with the file's; *must_trim: the file has far more of them, or some in the clear that
 * should not be so. */
static ebb_status load_entries(ebb_history *h, const char *path, const ebb_seal *seal, bool *must_trim, ebb_error *err)
{
    ebb_buf text = { 0 };
    const char *line;
    size_t n_lines = 0, at = 0, n;
    ebb_status st = read_history_file(path, &text, must_trim, err);

    drop_entries(h);
    for (; st == EBB_OK && next_line(&text, &at, &line, &n); n_lines++) {
        push_entry(h, read_line(seal, line, n));
        *must_trim = *must_trim || (seal && !ebb_seal_is_text(line, n));
    }
    keep_newest(h);
    *must_trim = *must_trim || n_lines > 2 * ENTRIES_MAX;
    ebb_buf_fini(&text);
    return st;
}

/* Open the file and lock it until it is closed.  While we wait for the lock, another process may
 * replace the file with a trimmed one: then that one is opened. */
static ebb_status open_locked(const char *path, int *fd, ebb_error *err)
{
    ebb_status st;

    while ((st = ebb_file_open(path, EBB_FILE_UPDATE, fd, err)) == EBB_OK) {
        st = ebb_file_lock_wait(*fd, path, err);
        if (st == EBB_IO || (st == EBB_OK && ebb_file_is_at(*fd, path)))
            return EBB_OK;                       /* IO: a file system without locks: go on without */
        ebb_file_close(*fd);
        *fd = -1;
        if (st != EBB_OK)
            break;
    }
    return st;
}

/* Put the text in the file's place; what is dropped, or was in the clear and shall not be so, is overwritten.  A link
 * stays one, and what it leads to is replaced. */
static ebb_status replace_history_file(const char *path, const ebb_buf *text, ebb_error *err)
{
    char *real = realpath(path, NULL);
    ebb_status st = !real ? EBB_FAIL(err, EBB_IO, "%s: cannot be replaced: %s", path, strerror(errno))
                  : text->failed ? EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path)
                                 : ebb_file_replace_wiping(real, ebb_buf_text(text), text->len, err);

    free(real);
    return st;
}

/* Where the newest lines begin that a file is rewritten with. */
static size_t first_kept(const ebb_buf *text)
{
    const char *nl = text->len ? memrchr(text->data, '\n', text->len) : NULL;
    size_t end = nl ? (size_t)(nl + 1 - text->data) : 0, at = end;

    for (size_t n = 0; at > 0 && n < ENTRIES_MAX && end - at < FILE_BYTES_MAX / 4; n++) {
        nl = memrchr(text->data, '\n', at - 1);
        at = nl ? (size_t)(nl + 1 - text->data) : 0;
    }
    return at;
}

/* Rewrite the file, which is locked; `keep` NULL: all that can be read.  What another key has sealed stays as it
 * is: that key may come back. */
static ebb_status rewrite_locked(const char *path, const ebb_seal *from, const ebb_seal *to, ebb_history_keep_fn *keep,
                                 void *arg, ebb_error *err)
{
    ebb_buf text = { 0 }, kept = { 0 };
    const char *line;
    size_t at, n;
    bool is_cut;
    ebb_status st = read_history_file(path, &text, &is_cut, err);

    ebb_file_wipe_begun(path);                   /* of one that was killed at this */
    for (at = first_kept(&text); st == EBB_OK && next_line(&text, &at, &line, &n);) {
        char *entry = read_line(from, line, n);

        if (!entry && ebb_seal_is_text(line, n))
            ebb_buf_add(&kept, line, n + 1);
        else if (entry && (!keep || keep(arg, entry, strlen(entry))))
            add_line(&kept, to, entry, strlen(entry));
        free(entry);
    }
    if (st == EBB_OK)
        st = replace_history_file(path, &kept, err);
    ebb_buf_fini(&text);
    ebb_buf_fini(&kept);
    return st;
}

/* The file has far more entries than are kept: rewrite it with those that are. */
static ebb_status trim_history_file(ebb_history *h, ebb_error *err)
{
    const ebb_seal *seal = ebb_seal_here();
    bool must_trim = false;
    int fd;
    ebb_status st = open_locked(h->path, &fd, err);

    if (st == EBB_OK)
        st = load_entries(h, h->path, seal, &must_trim, err);  /* with entries appended before the lock */
    if (st == EBB_OK && must_trim)
        st = rewrite_locked(h->path, seal, seal, NULL, NULL, err);
    ebb_file_close(fd);
    return st;
}

/* Who keeps no history has a link to /dev/null. */
static bool keeps_nothing(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
}

static ebb_status rewrite_history(const char *path, const ebb_seal *from, const ebb_seal *to, ebb_history_keep_fn *keep,
                                  void *arg, ebb_error *err)
{
    int fd;
    ebb_status st = open_locked(path, &fd, err);

    if (st == EBB_OK && !keeps_nothing(fd))
        st = rewrite_locked(path, from, to, keep, arg, err);
    ebb_file_close(fd);
    return st;
}

ebb_status ebb_history_sweep(const char *path, ebb_history_keep_fn *keep, void *arg, ebb_error *err)
{
    return rewrite_history(path, ebb_seal_here(), ebb_seal_here(), keep, arg, err);
}

ebb_status ebb_history_look(const char *path, bool *is_there, ebb_error *err)
{
    struct stat st;

    *is_there = lstat(path, &st) == 0 || errno != ENOENT;
    if (*is_there && stat(path, &st) != 0)       /* behind a link, too: nothing new is begun there */
        return EBB_FAIL(err, EBB_IO, "%s: cannot be found, or leads nowhere: %s", path, strerror(errno));
    return EBB_OK;
}

ebb_status ebb_history_turn(const char *path, const ebb_seal *from, const ebb_seal *to, ebb_error *err)
{
    bool is_there;
    ebb_status st = ebb_history_look(path, &is_there, err);

    return st == EBB_OK && is_there ? rewrite_history(path, from, to, NULL, NULL, err) : st;
}

ebb_status ebb_history_open(ebb_history *h, const char *path, ebb_error *err)
{
    bool must_trim;
    ebb_status st = load_entries(h, path, ebb_seal_here(), &must_trim, err);

    h->at = h->n;
    if (st != EBB_OK && st != EBB_NOTFOUND)
        return st;
    h->path = strdup(path);
    st = h->path && must_trim ? trim_history_file(h, err) : EBB_OK;
    h->at = h->n;
    return st;
}

/* Remove an incomplete last line, or zeros, that a crash left: the next entry starts a line.  What is longer than the
 * longest entry is no such line, and ends here. */
static ebb_status end_torn_line(int fd, const char *path, ebb_error *err)
{
    char tail[4096];
    const char *nl = NULL;
    uint64_t n_bytes, end;
    ebb_status st = ebb_file_size(fd, path, &n_bytes, err);

    for (end = n_bytes; st == EBB_OK && !nl && end > 0;) {
        if (n_bytes - end > 2 * ENTRY_BYTES_MAX)
            return ebb_file_append(fd, path, "\n", 1, err);
        size_t n = end < sizeof tail ? (size_t)end : sizeof tail;

        st = ebb_file_read_at(fd, path, tail, n, end - n, err);
        nl = st == EBB_OK ? memrchr(tail, '\n', n) : NULL;
        end -= nl ? n - (size_t)(nl + 1 - tail) : n;
    }
    return st == EBB_OK && end < n_bytes ? ebb_file_truncate(fd, path, end, err) : st;
}

static ebb_status append_to_history_file(const char *path, const char *s, size_t n, ebb_error *err)
{
    ebb_buf line = { 0 };
    int fd;
    ebb_status st = open_locked(path, &fd, err);

    add_line(&line, ebb_seal_here(), s, n);
    if (st == EBB_OK)
        st = end_torn_line(fd, path, err);
    if (st == EBB_OK && !line.failed)
        st = ebb_file_append(fd, path, line.data, line.len, err);
    ebb_file_close(fd);
    ebb_buf_fini(&line);
    return st;
}

static bool is_blank_entry(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\n", s[i]))
            return false;
    return true;
}

ebb_status ebb_history_add(ebb_history *h, const char *text, size_t n, ebb_error *err)
{
    bool repeats = h->n > 0 && strlen(h->entries[h->n - 1]) == n && memcmp(h->entries[h->n - 1], text, n) == 0;

    if (!is_blank_entry(text, n) && !repeats)
        push_entry(h, strndup(text, n));
    keep_newest(h);
    h->at = h->n;
    ebb_buf_clear(&h->unsent);
    if (!h->path || is_blank_entry(text, n) || repeats || n > ENTRY_BYTES_MAX)
        return EBB_OK;
    return append_to_history_file(h->path, text, n, err);
}

void ebb_history_go(ebb_history *h, size_t i, const char *now)
{
    if (h->at == h->n) {
        ebb_buf_clear(&h->unsent);
        ebb_buf_adds(&h->unsent, now);
    }
    h->at = i;
}

const char *ebb_history_back(ebb_history *h, const char *now)
{
    if (h->at == 0)
        return NULL;
    ebb_history_go(h, h->at - 1, now);
    return h->entries[h->at];
}

const char *ebb_history_forward(ebb_history *h)
{
    if (h->at == h->n)
        return NULL;
    return ++h->at == h->n ? ebb_buf_text(&h->unsent) : h->entries[h->at];
}

bool ebb_history_shows(const ebb_history *h, const char *line)
{
    return h->at < h->n && strcmp(line, h->entries[h->at]) == 0;
}

/* A capital letter makes case count. */
static bool has_capital(const char *s)
{
    while (*s && !isupper((unsigned char)*s))
        s++;
    return *s != '\0';
}

const char *ebb_history_search(const ebb_history *h, const char *pattern, size_t before, size_t *found)
{
    bool is_exact = has_capital(pattern);

    for (size_t i = before < h->n ? before : h->n; i > 0; i--)
        if (is_exact ? strstr(h->entries[i - 1], pattern) : strcasestr(h->entries[i - 1], pattern)) {
            *found = i - 1;
            return h->entries[i - 1];
        }
    return NULL;
}
