/* A bound of md4c's work (md_cost.h). */
#include "text/md_cost.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* A step is a byte of a label that is hashed.  Copying one, or passing a line or a list, takes an eighth. */
enum { CHEAP_PER_STEP = 8 };

typedef struct md_cost {
    const char *s;

    /* Of the paragraph under way */
    size_t start, n_lines;
    size_t bracket;              /* the last one */
    size_t n_open;               /* brackets */
    size_t n_ignored;            /* closing ones that may be code or HTML, and close nothing then */
    size_t n_marks;              /* of everything but lists and quotes; md4c has room for a link behind a bracket */
    bool   has_span;             /* code or HTML may have begun */

    /* Sums */
    size_t labels;               /* bytes of labels, those in other ones counted again */
    size_t lines, n_labels;      /* lines before labels in their paragraphs */
    size_t strikes;              /* marks before each "~" in its paragraph */
    size_t longest;              /* paragraph: no address is longer */
    size_t blanks;               /* lists that blank lines pass */
    size_t depth;                /* containers open at most */
    bool   has_label, is_defined;        /* a line that begins with a label; a definition may be there */
} md_cost;

static void end_paragraph(md_cost *c, size_t at)
{
    c->longest = at - c->start > c->longest ? at - c->start : c->longest;
    c->start = at;
    c->n_lines = c->n_open = c->n_ignored = c->n_marks = 0;
    c->has_span = false;
}

/* Each byte counts once for every label that it can be in.  A bracket that md4c ignores changes the pairs of all behind
 * it, but how many are open by no more than one. */
static void add_bracket(md_cost *c, size_t at)
{
    c->labels += (c->n_open + c->n_ignored) * (at - c->bracket);
    c->bracket = at;
    c->n_marks += 3;
    if (c->s[at] == '[') {
        c->n_open++;
        return;
    }
    c->n_open -= c->n_open > 0;
    c->n_ignored += c->has_span;
    c->n_labels++;
    c->lines += c->n_lines;
}

/* Behind a "<". */
static bool may_be_html(char letter)
{
    return isalpha((unsigned char)letter) || letter == '/' || letter == '!' || letter == '?';
}

static void add_text(md_cost *c, size_t at, size_t end)
{
    for (const char *s = c->s; at < end; at++)
        switch (s[at]) {
        case '~': c->strikes += c->n_marks++; break;
        case '*': case '_': case '|': case '!': c->n_marks++; break;
        case '&': c->n_marks += 2; break;        /* a ";" may be one then */
        case '\\': c->n_marks++; at++; break;    /* also in code: what is behind it is no bracket */
        case '`': c->n_marks++; c->has_span = true; break;
        case '<': c->n_marks += 2; c->has_span |= at + 1 < end && may_be_html(s[at + 1]); break;
        case ']': c->is_defined |= c->has_label && at + 1 < end && s[at + 1] == ':'; add_bracket(c, at); break;
        case '[': add_bracket(c, at); break;
        default: break;
        }
}

static size_t skip(const char *s, size_t at, size_t end, const char *what)
{
    while (at < end && s[at] && strchr(what, s[at]))
        at++;
    return at;
}

/* Behind what can be marks of lists and quotes, and the blanks between them, at the begin of the line s[at..end).
 * *levels: of containers, at most: an item of a list is set in by two columns. */
static size_t skip_marks(const char *s, size_t at, size_t end, size_t *levels)
{
    size_t text = skip(s, at, end, " \t>-+*.)0123456789"), columns = 0, marks = 0;

    for (; at < text; at++) {
        columns += s[at] == ' ' ? 1 : s[at] == '\t' ? 4 : 0;
        marks += !isblank((unsigned char)s[at]) && !isdigit((unsigned char)s[at]);
    }
    *levels = marks + columns / 2;
    return text;
}

/* An item of a list that ends a paragraph wherever it is. */
static bool is_item(const char *s, size_t at, size_t end)
{
    size_t mark = at;

    while (mark < end && s[mark] == ' ')
        mark++;
    return mark - at < 4 && end - mark > 2 && (s[mark] == '-' || s[mark] == '+' || s[mark] == '*') &&
           s[mark + 1] == ' ' && !isblank((unsigned char)s[mark + 2]);
}

static void add_line(md_cost *c, size_t at, size_t end)
{
    size_t levels, text;

    if (skip(c->s, at, end, " \t>") == end) {
        c->blanks += c->depth;
        if (skip(c->s, at, end, " \t") == end)
            end_paragraph(c, at);
        return;
    }
    if (is_item(c->s, at, end))
        end_paragraph(c, at);
    text = skip_marks(c->s, at, end, &levels);
    c->depth = levels > c->depth ? levels : c->depth;
    c->has_label |= text < end && c->s[text] == '[';
    c->n_lines++;
    add_text(c, text, end);
}

/* Behind the line that begins at `at`; *end: its text's end. */
static size_t next_line(const char *s, size_t n, size_t at, size_t *end)
{
    while (at < n && s[at] != '\n' && s[at] != '\r')
        at++;
    *end = at;
    return at + 1 < n && s[at] == '\r' && s[at + 1] == '\n' ? at + 2 : at + 1;
}

size_t ebb_md_cost(const char *s, size_t n)
{
    md_cost c = { .s = s };
    size_t cheap;

    for (size_t at = 0, end, next; at < n; at = next) {
        next = next_line(s, n, at, &end);
        add_line(&c, at, end);
    }
    end_paragraph(&c, n);
    cheap = c.labels + c.lines + c.strikes + c.blanks + (c.is_defined ? c.n_labels * c.longest : 0);
    return (c.is_defined ? c.labels : 0) + cheap / CHEAP_PER_STEP;
}
