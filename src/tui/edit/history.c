/* Input history (history.h). */
#include "edit/history.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* Takes `text`. */
static void push_entry(ebb_history *h, char *text)
{
    char **entries;

    if (!text)
        return;
    if (h->n == ENTRIES_MAX) {
        free(h->entries[0]);
        memmove(h->entries, h->entries + 1, --h->n * sizeof *h->entries);
    }
    entries = ebb_grow(h->entries, h->n, &h->cap, sizeof *entries);
    if (!entries) {
        free(text);
        return;
    }
    h->entries = entries;
    h->entries[h->n++] = text;
}

static void escape_entry(ebb_buf *out, const char *s, size_t n)
{
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

/* Replace what is known by what the file says; *n_lines: all it has. */
static ebb_status load_entries(ebb_history *h, const char *path, size_t *n_lines, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = ebb_file_slurp(path, FILE_BYTES_MAX, &text, err);

    drop_entries(h);
    *n_lines = 0;
    for (size_t at = 0; st == EBB_OK && at < text.len; ++*n_lines) {
        const char *nl = memchr(text.data + at, '\n', text.len - at);
        if (!nl)
            break;                               /* cut off by a crash */
        size_t len = (size_t)(nl - (text.data + at));
        if (len > 0 && len <= 2 * ENTRY_BYTES_MAX && !memchr(text.data + at, '\0', len))
            push_entry(h, unescape_entry(text.data + at, len));
        at += len + 1;
    }
    ebb_buf_fini(&text);
    return st;
}

static bool is_file_at(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* The file, ours alone until it is closed.  While we wait for it another program may put a shorter one in its place. */
static ebb_status open_locked(const char *path, int *fd, ebb_error *err)
{
    ebb_status st;

    while ((st = ebb_file_open(path, EBB_FILE_UPDATE, fd, err)) == EBB_OK) {
        if (flock(*fd, LOCK_EX) != 0 || is_file_at(*fd, path))
            break;                               /* a file system without locks: so be it */
        ebb_file_close(*fd);
    }
    return st;
}

/* The file has grown far beyond what is kept: write what is. */
static ebb_status trim_history_file(ebb_history *h, ebb_error *err)
{
    ebb_buf text = { 0 };
    size_t n_lines = 0;
    int fd;
    ebb_status st = open_locked(h->path, &fd, err);

    if (st == EBB_OK)
        st = load_entries(h, h->path, &n_lines, err);    /* with what came before it was locked */
    for (size_t i = 0; i < h->n; i++)
        escape_entry(&text, h->entries[i], strlen(h->entries[i]));
    if (st == EBB_OK && !text.failed && n_lines > 2 * ENTRIES_MAX)
        st = ebb_file_replace(h->path, ebb_buf_text(&text), text.len, err);
    ebb_file_close(fd);
    ebb_buf_fini(&text);
    return st;
}

ebb_status ebb_history_open(ebb_history *h, const char *path, ebb_error *err)
{
    size_t n_lines;
    ebb_status st = load_entries(h, path, &n_lines, err);

    h->at = h->n;
    if (st != EBB_OK && st != EBB_NOTFOUND)
        return st;
    h->path = strdup(path);
    st = h->path && n_lines > 2 * ENTRIES_MAX ? trim_history_file(h, err) : EBB_OK;
    h->at = h->n;
    return st;
}

static ebb_status append_to_history_file(const char *path, const char *s, size_t n, ebb_error *err)
{
    ebb_buf line = { 0 };
    int fd;
    ebb_status st = open_locked(path, &fd, err);

    escape_entry(&line, s, n);
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
    h->at = h->n;
    ebb_buf_clear(&h->unsent);
    if (!h->path || is_blank_entry(text, n) || repeats || n > ENTRY_BYTES_MAX)
        return EBB_OK;
    return append_to_history_file(h->path, text, n, err);
}

const char *ebb_history_back(ebb_history *h, const char *now)
{
    if (h->at == 0)
        return NULL;
    if (h->at == h->n) {
        ebb_buf_clear(&h->unsent);
        ebb_buf_adds(&h->unsent, now);
    }
    return h->entries[--h->at];
}

const char *ebb_history_forward(ebb_history *h)
{
    if (h->at == h->n)
        return NULL;
    return ++h->at == h->n ? ebb_buf_text(&h->unsent) : h->entries[h->at];
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
