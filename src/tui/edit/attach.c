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
#include "edit/marked.h"
#include "os/file.h"
#include "os/paths.h"
#include "tree/attachment.h"

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

bool ebb_attach_add_text(ebb_buf *out, const char *s, size_t n)
{
    return (ebb_attachments_end(s, n) == 0 || ebb_buf_addc(out, '\n')) && ebb_buf_add(out, s, n);
}

void ebb_attach_add_output(ebb_buf *out, const char *command, const ebb_buf *text)
{
    ebb_buf name = { 0 };

    ebb_buf_adds(&name, "$ ");
    ebb_utf8_add_line(&name, command, strlen(command), false);
    ebb_attachment_add(out, ebb_buf_text(&name), "", ebb_buf_text(text), text->len);
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
    const char    *s;            /* the text ... */
    ebb_buf        went;         /* ... and each ebb_attachment that is in it already; taken: it has no name */
} expansion;

/* A pasted text may name half the disk, a thousand times; keys wait for it. */
enum { LOOKS_MAX = 20000, LOOKS_OF_FILE = 10, WENT_MAX = 4096 };

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

/* Whether that file's text stands there, as ebb_attachment_add has written it. */
static bool is_text_of(const expansion *e, const ebb_attachment *file, const ebb_buf *text)
{
    size_t n = text->len;

    if (memcmp(e->s + file->text, ebb_buf_text(text), n < file->n_text ? n : file->n_text) != 0)
        return false;
    return n > 0 && text->data[n - 1] != '\n' ? file->n_text == n + 1 : file->n_text == n;
}

/* Whether a file of that name is in the text already, from when these words were expanded before; one is counted
 * once.  `text`: only with that (NULL: with any). */
static bool take_went(expansion *e, const char *name, const ebb_buf *text)
{
    ebb_attachment *went = (void *)e->went.data;
    size_t n_name = strlen(name);

    for (size_t i = 0; i < e->went.len / sizeof *went; i++)
        if (went[i].n_name == n_name && memcmp(e->s + went[i].name, name, n_name) == 0 &&
            (!text || is_text_of(e, &went[i], text))) {
            went[i].n_name = 0;
            return true;
        }
    return false;
}

/* An older ebb has written only the last part of a path; but that may be another file's, too: its text tells. */
static bool take_went_as_last_part(expansion *e, const char *name, const ebb_buf *text)
{
    const char *slash = strrchr(name, '/');

    return slash && slash[1] && take_went(e, slash + 1, text);
}

static ebb_status attach_text(expansion *e, const char *name, const ebb_buf *text)
{
    if (take_went_as_last_part(e, name, text))
        return EBB_OK;
    ebb_attachment_add_file(e->out, name, ebb_buf_text(text), text->len);
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
    if (st == EBB_LIMIT)
        st = EBB_FAIL(err, EBB_LIMIT, "%s: is larger than %d MiB, the most that is attached", path,
                      EBB_ATTACH_BYTES >> 20);
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
    ebb_status st = EBB_OK;
    glob_t found = { .gl_opendir = open_counted, .gl_readdir = read_counted, .gl_closedir = close_counted,
                     .gl_stat = stat, .gl_lstat = lstat };

    n_glob_looks = &e->n_looks;
    if (glob(pattern, GLOB_ALTDIRFUNC, NULL, &found) != 0)
        return EBB_OK;
    for (size_t i = 0; i < found.gl_pathc && st != EBB_BUSY && e->report->n_bytes <= EBB_ATTACH_ALL_BYTES; i++) {
        if (!is_file(found.gl_pathv[i], S_IFREG))
            continue;
        if (e->n_looks < LOOKS_MAX && !take_went(e, found.gl_pathv[i], NULL))
            st = attach_file(e, found.gl_pathv[i], found.gl_pathv[i], err);
        *any = *any || (st == EBB_OK && e->n_looks < LOOKS_MAX);
        e->report->n_left_out += st != EBB_OK || e->n_looks >= LOOKS_MAX;
        e->n_looks += LOOKS_OF_FILE;
    }
    globfree(&found);
    return st == EBB_BUSY ? st : EBB_OK;
}

/* One word, as it is written: the file has that name in the message, so that another path is another file when the
 * message is edited.  *any: it named something. */
static ebb_status attach_name(expansion *e, const char *word, bool *any, ebb_error *err)
{
    ebb_buf whole = { 0 };
    ebb_status st = ebb_path_expand(word, &whole, err);
    const char *path = ebb_buf_text(&whole);

    e->n_looks++;
    *any = st == EBB_OK && take_went(e, word, NULL);
    if (st != EBB_OK || *any) {                  /* also if the file is gone by now */
        ;
    } else if (is_file(path, S_IFREG)) {
        *any = true;
        st = attach_file(e, path, word, err);
    } else if (whole.len > 1 && path[whole.len - 1] == '/' && is_file(path, S_IFDIR)) {
        ebb_buf_addc(&whole, '*');
        st = attach_pattern(e, ebb_buf_text(&whole), any, err);
    } else if (strpbrk(path, "*?[")) {
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

/* -- Which words are looked at ------------------------------------------------------------------ */

typedef enum line_kind { LINE_OF_WORDS, LINE_OPENS_FENCE, LINE_IN_FENCE } line_kind;

/* A text line by line; a mark ends one, too.  A fence that was opened within marks ends with them. */
typedef struct line_walk {
    const char *s;
    size_t      n, at;
    const char *line;            /* this one */
    size_t      n_line;
    line_kind   kind;
    bool        is_marked;
    size_t      n_ticks, n_outer_ticks;  /* of the fence it is in; of the one around the marks */
} line_walk;

/* Backticks that a line begins with, if they may be a fence; *rest: what is behind them. */
static size_t fence_of(const char *line, size_t n, size_t *rest)
{
    size_t at = 0, ticks = 0;

    while (at < n && at < 3 && line[at] == ' ')
        at++;
    while (at + ticks < n && line[at + ticks] == '`')
        ticks++;
    *rest = at + ticks;
    return ticks >= 3 && !memchr(line + *rest, '`', n - *rest) ? ticks : 0;
}

static void set_kind(line_walk *w)
{
    size_t rest, ticks = fence_of(w->line, w->n_line, &rest);

    w->kind = w->n_ticks > 0 ? LINE_IN_FENCE : ticks > 0 ? LINE_OPENS_FENCE : LINE_OF_WORDS;
    if (w->kind == LINE_OPENS_FENCE)
        w->n_ticks = ticks;
    else if (w->n_ticks > 0 && ticks >= w->n_ticks && strspn(w->line + rest, " \t") >= w->n_line - rest)
        w->n_ticks = 0;
}

static void pass_mark(line_walk *w)
{
    bool begins = ebb_marked_begins(w->s + w->at, w->n - w->at);

    if (begins && !w->is_marked)
        w->n_outer_ticks = w->n_ticks;
    w->n_ticks = begins ? 0 : w->is_marked ? w->n_outer_ticks : w->n_ticks;
    w->is_marked = begins;
    w->at += EBB_MARK_BYTES;
}

static bool next_line(line_walk *w)
{
    const char *nl;

    while (ebb_marked_begins(w->s + w->at, w->n - w->at) || ebb_marked_ends(w->s + w->at, w->n - w->at))
        pass_mark(w);
    if (w->at >= w->n)
        return false;
    w->line = w->s + w->at;
    nl = memchr(w->line, '\n', w->n - w->at);
    w->n_line = ebb_marked_next(w->line, nl ? (size_t)(nl - w->line) : w->n - w->at);
    w->at += w->n_line;
    w->at += w->at < w->n && w->s[w->at] == '\n';
    set_kind(w);
    return true;
}

static size_t behind_marks(const char *s, size_t n, size_t at)
{
    while (ebb_marked_begins(s + at, n - at) || ebb_marked_ends(s + at, n - at))
        at += EBB_MARK_BYTES;
    return at;
}

/* A copy with blanks for its marks, so that a word behind one begins there; s itself where there are none. */
static const char *without_marks(const char *s, size_t n, ebb_buf *copy)
{
    if (ebb_marked_next(s, n) == n || !ebb_buf_add(copy, s, n))
        return s;
    for (size_t at = ebb_marked_next(s, n); at < n; at += ebb_marked_next(s + at, n - at)) {
        memset(copy->data + at, ' ', EBB_MARK_BYTES);
        at += EBB_MARK_BYTES;
    }
    return copy->data;
}

/* What was attached before: in front of the text, or marked for itself. */
static void find_went(expansion *e, const char *s, size_t n)
{
    ebb_attachment file = { 0 };
    ebb_buf copy = { 0 };
    const char *words = without_marks(s, n, &copy);
    size_t end;

    for (size_t at = behind_marks(s, n, 0); at < n; at = behind_marks(s, n, at)) {
        for (; (end = ebb_attachment_next(words, n, at, &file)) > 0; at = end)
            if (e->went.len < WENT_MAX * sizeof file)
                ebb_buf_add(&e->went, (const char *)&file, sizeof file);
        at += ebb_marked_next(s + at, n - at);
    }
    ebb_buf_fini(&copy);
}

/* A word of what was pasted: where it names a file, that is said. */
static void look_at_pasted(expansion *e, const ebb_buf *word)
{
    ebb_buf whole = { 0 };

    if (e->report->only_text[0] || word->len >= PATH_MAX || e->n_looks >= LOOKS_MAX)
        return;
    e->n_looks++;
    if (ebb_path_expand(ebb_buf_text(word), &whole, NULL) == EBB_OK && is_file(ebb_buf_text(&whole), S_IFREG))
        snprintf(e->report->only_text, sizeof e->report->only_text, "%s", ebb_buf_text(word));
    ebb_buf_fini(&whole);
}

static ebb_status attach_words(expansion *e, const line_walk *w, ebb_error *err)
{
    size_t path, n_path, len;
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    for (size_t at = 0; st == EBB_OK && at < w->n_line; at += len > 0 ? len : 1) {
        len = attached_word(w->line, w->n_line, at, &path, &n_path);
        if (len == 0)
            continue;
        ebb_buf_clear(&name);
        ebb_buf_add(&name, w->line + path, n_path);
        if (w->is_marked)
            look_at_pasted(e, &name);
        else
            st = attach_word(e, &name, err);
    }
    ebb_buf_fini(&name);
    return st;
}

static ebb_status attach_lines(expansion *e, const char *s, size_t n, ebb_error *err)
{
    line_walk w = { .s = s, .n = n };
    ebb_status st = EBB_OK;

    while (st == EBB_OK && next_line(&w)) {
        bool is_command = w.n_line > 2 && memcmp(w.line, "$ ", 2) == 0 && w.line[w.n_line - 1] == ':';

        if (w.kind == LINE_OF_WORDS && !is_command)  /* whose output stands below */
            st = attach_words(e, &w, err);
    }
    return st;
}

ebb_status ebb_attach_expand(const char *s, size_t n, ebb_documents *docs, ebb_buf *out, ebb_attached *report,
                             ebb_error *err)
{
    size_t before = out->len;
    ebb_attached own;
    expansion e = { .docs = docs, .out = out, .report = report ? report : &own, .s = s };
    ebb_status st;

    memset(e.report, 0, sizeof *e.report);
    find_went(&e, s, n);
    st = attach_lines(&e, s, n, err);
    ebb_buf_fini(&e.went);
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
