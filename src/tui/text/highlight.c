/* The scanner of all languages (highlight.h). */
#include "text/highlight.h"

#include <ctype.h>
#include <string.h>

typedef struct code_line {
    const char   *s;
    size_t        n, at, done;   /* at: being looked at; done: given to the caller */
    ebb_piece_fn *fn;
    void         *arg;
} code_line;

/* " name " in a list of names with blanks around each. */
static bool is_listed(const char *list, const char *name, size_t n, bool ignores_case)
{
    char key[34] = " ";

    if (n == 0 || n > 30)
        return false;
    for (size_t i = 0; i < n; i++)
        key[1 + i] = ignores_case ? (char)tolower((unsigned char)name[i]) : name[i];
    key[1 + n] = ' ';
    key[2 + n] = '\0';
    return memchr(name, ' ', n) == NULL && strstr(list, key) != NULL;
}

void ebb_highlight_begin(ebb_highlight *h, const char *info, size_t n)
{
    size_t len = 0;

    memset(h, 0, sizeof *h);
    if (n > 0 && info[0] == '{') {               /* {.python} */
        info++;
        n--;
    }
    if (n > 0 && info[0] == '.') {
        info++;
        n--;
    }
    while (len < n && !strchr(" \t,{}:;", info[len]))
        len++;
    for (const ebb_language *l = ebb_languages; l->names && !h->lang; l++)
        if (is_listed(l->names, info, len, true))
            h->lang = l;
}

static void emit_highlighted(code_line *l, size_t end, ebb_face face)
{
    if (end > l->done)
        l->fn(l->arg, l->s + l->done, end - l->done, face);
    l->done = l->at = end;
}

/* What was looked at without finding anything, then the piece up to `end`. */
static void emit_pending(code_line *l, size_t end, ebb_face face)
{
    emit_highlighted(l, l->at, EBB_FACE_CODE);
    emit_highlighted(l, end, face);
}

static bool line_has_at(const code_line *l, size_t at, const char *what)
{
    size_t n = what ? strlen(what) : 0;

    return n > 0 && at + n <= l->n && memcmp(l->s + at, what, n) == 0;
}

static bool is_code_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* -- Comments and strings ---------------------------------------------------------------- */

static void scan_comment(ebb_highlight *h, code_line *l, size_t from)
{
    size_t end = from;

    while (end < l->n && !line_has_at(l, end, h->lang->close_comment))
        end++;
    h->in_comment = end == l->n;
    if (end < l->n)
        end += strlen(h->lang->close_comment);
    emit_pending(l, end, EBB_FACE_COMMENT);
}

/* The end of a string whose inside begins at `from`; what is open at the line's end stays open if it may. */
static size_t string_end(ebb_highlight *h, const code_line *l, size_t from)
{
    for (size_t at = from; at < l->n; at++) {
        if (l->s[at] == '\\' && at + 1 < l->n) {
            at++;
        } else if (l->s[at] == h->quote) {
            size_t run = 1;
            while (run < h->n_quote && at + run < l->n && l->s[at + run] == h->quote)
                run++;
            if (run == h->n_quote) {
                h->quote = 0;
                return at + run;
            }
        }
    }
    if (h->n_quote == 1 && !(h->lang->long_quotes && strchr(h->lang->long_quotes, h->quote)))
        h->quote = 0;
    return l->n;
}

static bool is_key(const code_line *l, size_t end)
{
    while (end < l->n && l->s[end] == ' ')
        end++;
    return end < l->n && l->s[end] == ':';
}

static void scan_string(ebb_highlight *h, code_line *l)
{
    size_t at = l->at, end;

    h->quote = l->s[at];
    h->n_quote = 1;
    if (h->lang->has_triple && at + 2 < l->n && l->s[at + 1] == h->quote && l->s[at + 2] == h->quote)
        h->n_quote = 3;
    end = string_end(h, l, at + h->n_quote);
    emit_pending(l, end, h->lang->kind == EBB_LANGUAGE_DATA && is_key(l, end) ? EBB_FACE_NAME : EBB_FACE_STRING);
}

static bool is_lifetime(const ebb_highlight *h, const code_line *l)
{
    size_t at = l->at;

    return h->lang->has_lifetimes && l->s[at] == '\'' && at + 1 < l->n && l->s[at + 1] != '\\' &&
           !(at + 2 < l->n && (l->s[at + 2] == '\'' || (unsigned char)l->s[at + 1] >= 0x80));
}

/* A # is a comment only where a word could begin: not in $# or url#part. */
static bool is_line_comment(const ebb_highlight *h, const code_line *l)
{
    if (!line_has_at(l, l->at, h->lang->line_comment) && !line_has_at(l, l->at, h->lang->line_comment2))
        return false;
    return l->s[l->at] != '#' || l->at == 0 || strchr(" \t;(){}[],", l->s[l->at - 1]) != NULL;
}

/* -- Words --------------------------------------------------------------------------------- */

static void scan_number(code_line *l)
{
    size_t end = l->at;

    while (end < l->n && (isalnum((unsigned char)l->s[end]) || l->s[end] == '.' || l->s[end] == '_'))
        end++;
    while (l->s[end - 1] == '.')
        end--;
    emit_pending(l, end, EBB_FACE_NUMBER);
}

static void scan_word(const ebb_highlight *h, code_line *l)
{
    size_t end = l->at + 1;
    bool is_data = h->lang->kind == EBB_LANGUAGE_DATA;

    while (end < l->n && (is_code_word(l->s[end]) || (is_data && l->s[end] == '-')))
        end++;
    if (is_listed(h->lang->words, l->s + l->at, end - l->at, h->lang->ignores_case))
        emit_pending(l, end, EBB_FACE_KEYWORD);
    else if (is_data ? is_key(l, end) : end < l->n && l->s[end] == '(')
        emit_pending(l, end, EBB_FACE_NAME);
    else
        l->at = end;
}

static void scan_tag(ebb_highlight *h, code_line *l)
{
    size_t end = l->at + 1;

    if (end < l->n && (l->s[end] == '/' || l->s[end] == '!' || l->s[end] == '?'))
        end++;
    while (end < l->n && (is_code_word(l->s[end]) || strchr(":-.", l->s[end])))
        end++;
    h->in_tag = true;
    emit_pending(l, end, EBB_FACE_KEYWORD);
}

static void scan_inside_tag(ebb_highlight *h, code_line *l)
{
    size_t end = l->at + 1;

    if (l->s[l->at] == '>') {
        h->in_tag = false;
        emit_pending(l, end, EBB_FACE_KEYWORD);
    } else if (strchr("\"'", l->s[l->at])) {
        scan_string(h, l);
    } else {
        while (is_code_word(l->s[l->at]) && end < l->n && (is_code_word(l->s[end]) || strchr(":-@.", l->s[end])))
            end++;
        emit_pending(l, end, is_code_word(l->s[l->at]) ? EBB_FACE_NAME : EBB_FACE_CODE);
    }
}

static void highlight_step(ebb_highlight *h, code_line *l)
{
    char c = l->s[l->at];
    bool is_begin = l->at == 0 || !is_code_word(l->s[l->at - 1]);

    if (line_has_at(l, l->at, h->lang->open_comment))
        scan_comment(h, l, l->at + strlen(h->lang->open_comment));
    else if (h->lang->kind == EBB_LANGUAGE_MARKUP && h->in_tag)
        scan_inside_tag(h, l);
    else if (h->lang->kind == EBB_LANGUAGE_MARKUP)
        c == '<' ? scan_tag(h, l) : (void)l->at++;
    else if (is_line_comment(h, l))
        emit_pending(l, l->n, EBB_FACE_COMMENT);
    else if (strchr(h->lang->quotes, c) && c && !is_lifetime(h, l))
        scan_string(h, l);
    else if (isdigit((unsigned char)c) && is_begin)
        scan_number(l);
    else if (is_code_word(c) ||
             ((c == '#' || c == '@' || c == '!') && l->at + 1 < l->n && is_code_word(l->s[l->at + 1])))
        scan_word(h, l);
    else
        l->at++;
}

static ebb_face diff_face(const char *s, size_t n)
{
    if (n >= 2 && (memcmp(s, "@@", 2) == 0))
        return EBB_FACE_NAME;
    if (n >= 3 && (memcmp(s, "+++", 3) == 0 || memcmp(s, "---", 3) == 0))
        return EBB_FACE_KEYWORD;
    if (n >= 1 && s[0] == '+')
        return EBB_FACE_ADDED;
    return n >= 1 && s[0] == '-' ? EBB_FACE_REMOVED : EBB_FACE_CODE;
}

void ebb_highlight_line(ebb_highlight *h, const char *s, size_t n, ebb_piece_fn *fn, void *arg)
{
    code_line l = { .s = s, .n = n, .fn = fn, .arg = arg };

    if (n == 0)
        return;
    if (!h->lang || h->lang->kind == EBB_LANGUAGE_DIFF) {
        fn(arg, s, n, h->lang ? diff_face(s, n) : EBB_FACE_CODE);
        return;
    }
    if (h->in_comment)
        scan_comment(h, &l, 0);
    else if (h->quote)
        emit_highlighted(&l, string_end(h, &l, 0), EBB_FACE_STRING);
    while (l.at < n)
        highlight_step(h, &l);
    emit_highlighted(&l, n, EBB_FACE_CODE);
}
