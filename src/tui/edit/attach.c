/* Attached files (attach.h). */
#include "edit/attach.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "os/file.h"
#include "os/paths.h"

/* The @word that begins at s[at]: its bytes, 0 if none does.  @"a path" may have blanks.  The path itself is
 * s[*path..*path + *n_path). */
static size_t attached_word(const char *s, size_t n, size_t at, size_t *path, size_t *n_path)
{
    size_t end = at + 1;

    if (at + 1 >= n || s[at] != '@' || (at > 0 && !strchr(" \t\n(", s[at - 1])))
        return 0;
    if (s[end] == '"') {
        const char *quote = memchr(s + end + 1, '"', n - end - 1);
        *path = end + 1;
        *n_path = quote ? (size_t)(quote - s) - *path : 0;
        return *n_path > 0 ? *n_path + 3 : 0;
    }
    while (end < n && !strchr(" \t\n", s[end]))
        end++;
    *path = at + 1;
    *n_path = end - *path;
    return *n_path > 0 ? end - at : 0;
}

static bool is_text(const char *s, size_t n)
{
    return !memchr(s, '\0', n) && ebb_utf8_is_valid(s, n);
}

/* A fence longer than any run of backticks inside. */
static int fence_length(const ebb_buf *text)
{
    int longest = 2, run = 0;

    for (size_t i = 0; i < text->len; i++) {
        run = text->data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest + 1;
}

/* `name` and `text` in a fence that says its language. */
static void add_fenced(ebb_buf *out, const char *name, const char *language, const ebb_buf *text)
{
    int n = fence_length(text);

    ebb_buf_addf(out, "%s:\n", name);
    for (int i = 0; i < n; i++)
        ebb_buf_addc(out, '`');
    ebb_buf_addf(out, "%s\n", language);
    ebb_buf_add(out, text->data, text->len);
    if (text->len > 0 && text->data[text->len - 1] != '\n')
        ebb_buf_addc(out, '\n');
    for (int i = 0; i < n; i++)
        ebb_buf_addc(out, '`');
    ebb_buf_adds(out, "\n\n");
}

static void add_attachment(ebb_buf *out, const char *name, const ebb_buf *text)
{
    const char *last = strrchr(name, '/'), *dot = strrchr(last ? last : name, '.');

    add_fenced(out, name, dot ? dot + 1 : "", text);
}

void ebb_attach_add_output(ebb_buf *out, const char *command, const ebb_buf *text)
{
    ebb_buf name = { 0 };

    ebb_buf_adds(&name, "$ ");
    ebb_utf8_add_line(&name, command, strlen(command), false);
    add_fenced(out, ebb_buf_text(&name), "", text);
    ebb_buf_fini(&name);
}

static bool is_file(const char *path, mode_t kind)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* What the words of a message bring along, so far. */
typedef struct expansion {
    ebb_documents *docs;
    ebb_buf       *out;
    ebb_attached  *report;
    size_t         n_looks;      /* at names: of words, and of all that is in folders of patterns; at files */
} expansion;

/* A pasted text may name half the disk, a thousand times; keys wait for it. */
enum { LOOKS_MAX = 20000, LOOKS_OF_FILE = 10 };

static ebb_status say_no_text(const char *path, ebb_error *err)
{
    static const char *const pictures[] = { ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".heic" };
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < sizeof pictures / sizeof *pictures; i++)
        if (strcasecmp(dot, pictures[i]) == 0)
            return EBB_FAIL(err, EBB_FORMAT, "%s is a picture, and ebb reads only text; `filter %s = COMMAND` in the "
                            "configuration can turn it into text", path, pictures[i]);
    return EBB_FAIL(err, EBB_FORMAT, "%s is not a text file; `filter %s = COMMAND` in the configuration can turn such "
                    "files into text", path, dot && !strchr(dot, '/') ? dot : ".ENDING");
}

static ebb_status attach_text(expansion *e, const char *name, const ebb_buf *text)
{
    add_attachment(e->out, name, text);
    e->report->n_files++;
    e->report->n_bytes += text->len;
    return EBB_OK;
}

static ebb_status attach_file(expansion *e, const char *path, const char *name, ebb_error *err)
{
    ebb_buf text = { 0 };
    const ebb_buf *made;
    ebb_status st = ebb_documents_find(e->docs, path, &made, err);

    if (st != EBB_OK || made)
        return st != EBB_OK ? st : attach_text(e, name, made);
    st = ebb_file_slurp(path, EBB_ATTACH_BYTES, &text, err);
    if (st == EBB_OK && !is_text(ebb_buf_text(&text), text.len))
        st = say_no_text(path, err);
    if (st == EBB_OK)
        st = attach_text(e, name, &text);
    ebb_buf_fini(&text);
    return st;
}

static size_t *n_glob_looks;                     /* of the expansion: glob(3) hands its functions nothing */

static void *open_counted(const char *path)
{
    return *n_glob_looks < LOOKS_MAX ? opendir(path) : NULL;
}

static struct dirent *read_counted(void *folder)
{
    return (*n_glob_looks)++ < LOOKS_MAX ? readdir(folder) : NULL;
}

static void close_counted(void *folder)
{
    closedir(folder);
}

/* Files that a pattern means, each by the name that it was found by; what is no text, or too large, stays behind.
 * *any: it named something. */
static ebb_status attach_pattern(expansion *e, const char *pattern, bool *any, ebb_error *err)
{
    size_t before = e->report->n_files;
    ebb_status st = EBB_OK;
    glob_t found = { .gl_opendir = open_counted, .gl_readdir = read_counted, .gl_closedir = close_counted,
                     .gl_stat = stat, .gl_lstat = lstat };

    n_glob_looks = &e->n_looks;
    if (glob(pattern, GLOB_ALTDIRFUNC, NULL, &found) != 0)
        return EBB_OK;
    for (size_t i = 0; i < found.gl_pathc && st != EBB_BUSY && e->report->n_bytes <= EBB_ATTACH_ALL_BYTES; i++) {
        if (!is_file(found.gl_pathv[i], S_IFREG))
            continue;
        if (e->n_looks < LOOKS_MAX)
            st = attach_file(e, found.gl_pathv[i], found.gl_pathv[i], err);
        e->report->n_left_out += st != EBB_OK || e->n_looks >= LOOKS_MAX;
        e->n_looks += LOOKS_OF_FILE;
    }
    globfree(&found);
    *any = e->report->n_files > before;
    return st == EBB_BUSY ? st : EBB_OK;
}

/* One word, as it is written.  *any: it named something. */
static ebb_status attach_name(expansion *e, const char *word, bool *any, ebb_error *err)
{
    ebb_buf whole = { 0 };
    ebb_status st = ebb_path_expand(word, &whole, err);
    const char *path = ebb_buf_text(&whole), *name = strrchr(path, '/');

    *any = false;
    e->n_looks++;
    if (st == EBB_OK && is_file(path, S_IFREG)) {
        *any = true;
        st = attach_file(e, path, name ? name + 1 : path, err);
    } else if (st == EBB_OK && whole.len > 1 && path[whole.len - 1] == '/' && is_file(path, S_IFDIR)) {
        ebb_buf_addc(&whole, '*');
        st = attach_pattern(e, ebb_buf_text(&whole), any, err);
    } else if (st == EBB_OK && strpbrk(path, "*?[")) {
        st = attach_pattern(e, path, any, err);
    }
    ebb_buf_fini(&whole);
    return st;
}

/* What a person would call the name of a file: it has a folder, a pattern, or an ending. */
static bool looks_like_name(const char *word)
{
    const char *dot = strrchr(word, '.');

    return strpbrk(word, "/*") || (dot && dot > word && dot[1]);
}

static ebb_status attach_word(expansion *e, ebb_buf *word, ebb_error *err)
{
    bool any = false;
    ebb_status st = EBB_OK;

    if (word->len >= PATH_MAX)                   /* no name is as long */
        return EBB_OK;
    if (e->n_looks < LOOKS_MAX)
        st = attach_name(e, ebb_buf_text(word), &any, err);
    while (st == EBB_OK && !any && e->n_looks < LOOKS_MAX && word->len > 1 &&
           strchr(".,;:!?)", word->data[word->len - 1])) {
        ebb_buf_remove(word, word->len - 1, 1);
        st = attach_name(e, ebb_buf_text(word), &any, err);
    }
    if (st == EBB_OK && !any && !e->report->missing[0] && looks_like_name(ebb_buf_text(word)))
        snprintf(e->report->missing, sizeof e->report->missing, "%s", ebb_buf_text(word));
    return st;
}

static ebb_status attach_words(expansion *e, const char *s, size_t n, ebb_error *err)
{
    size_t path, n_path, len;
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    for (size_t at = 0; st == EBB_OK && at < n; at += len > 0 ? len : 1) {
        len = attached_word(s, n, at, &path, &n_path);
        if (len == 0)
            continue;
        ebb_buf_clear(&name);
        ebb_buf_add(&name, s + path, n_path);
        st = attach_word(e, &name, err);
    }
    ebb_buf_fini(&name);
    return st;
}

ebb_status ebb_attach_expand(const char *s, size_t n, ebb_documents *docs, ebb_buf *out, ebb_attached *report,
                             ebb_error *err)
{
    size_t before = out->len;
    ebb_attached own;
    expansion e = { .docs = docs, .out = out, .report = report ? report : &own };
    ebb_status st;

    memset(e.report, 0, sizeof *e.report);
    st = attach_words(&e, s, n, err);
    ebb_buf_add(out, s, n);
    if (st == EBB_OK && e.report->n_bytes > EBB_ATTACH_ALL_BYTES)
        st = EBB_FAIL(err, EBB_LIMIT, "the files are larger than %d MiB together: too much for a message",
                      EBB_ATTACH_ALL_BYTES >> 20);
    if (st == EBB_OK && out->failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the message and its files");
    if (st != EBB_OK)
        ebb_buf_remove(out, before, out->len - before);
    return st;
}
