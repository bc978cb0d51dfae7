/* Cutting streaming Markdown (md_blocks.h). */
#include "text/md_blocks.h"

#include <string.h>
#include <strings.h>

typedef struct md_line {
    size_t start, end, text;     /* text: after its blanks; end: its line end included */
    size_t stop;                 /* before its line end */
    size_t indent;               /* columns */
} md_line;

/* The line at b->scanned; false if it is not whole. */
static bool next_md_line(ebb_md_blocks *b, const char *s, size_t n, bool is_final, md_line *l)
{
    size_t from = b->seen > b->scanned ? b->seen : b->scanned;
    const char *nl = from < n ? memchr(s + from, '\n', n - from) : NULL;

    b->seen = n;
    if (b->scanned == n || (!nl && !is_final))
        return false;
    b->seen = 0;
    *l = (md_line){ .start = b->scanned, .end = nl ? (size_t)(nl - s) + 1 : n, .text = b->scanned };
    l->stop = l->end - (nl != NULL);
    if (l->stop > l->start && s[l->stop - 1] == '\r')
        l->stop--;
    for (; l->text < l->stop && (s[l->text] == ' ' || s[l->text] == '\t'); l->text++)
        l->indent += s[l->text] == '\t' ? 4 - l->indent % 4 : 1;
    return true;
}

static size_t run_at(const char *s, const md_line *l)
{
    size_t run = 0;

    while (l->text + run < l->stop && s[l->text + run] == s[l->text])
        run++;
    return run;
}

/* The marks of a fence that opens here; 0: none does. */
static size_t fence_run(const char *s, const md_line *l)
{
    size_t run;

    if (l->text == l->stop || (s[l->text] != '`' && s[l->text] != '~'))
        return 0;
    run = run_at(s, l);
    if (run < 3 || (s[l->text] == '`' && memchr(s + l->text + run, '`', l->stop - l->text - run)))
        return 0;
    return run < 255 ? run : 255;
}

static bool closes_fence(const char *s, const md_line *l, char fence, size_t n_fence)
{
    size_t run;

    if (l->text == l->stop || s[l->text] != fence)
        return false;
    run = run_at(s, l);
    for (size_t at = l->text + run; at < l->stop; at++)
        if (s[at] != ' ' && s[at] != '\t')
            return false;
    return run >= n_fence;
}

static bool is_heading(const char *s, const md_line *l)
{
    size_t run = l->text < l->stop && s[l->text] == '#' ? run_at(s, l) : 0;

    return run > 0 && run <= 6 &&
           (l->text + run == l->stop || s[l->text + run] == ' ' || s[l->text + run] == '\t');
}

static bool is_list_item(const char *s, const md_line *l)
{
    size_t at = l->text;

    if (at == l->stop)
        return false;
    if (s[at] == '-' || s[at] == '*' || s[at] == '+') {
        at++;
    } else {
        while (at < l->stop && at < l->text + 9 && s[at] >= '0' && s[at] <= '9')
            at++;
        if (at == l->text || at == l->stop || (s[at] != '.' && s[at] != ')'))
            return false;
        at++;
    }
    return at == l->stop || s[at] == ' ' || s[at] == '\t';
}

static void emit_md_block(ebb_md_blocks *b, ebb_md_block_kind kind, size_t start, size_t end, size_t next,
                          ebb_md_block *out)
{
    *out = (ebb_md_block){ kind, start, end };
    b->start = b->scanned = next;
    b->in_list = b->is_blank = b->has_text = false;
    b->inner = 0;
    b->html = 0;
}

static void emit_code_line(ebb_md_blocks *b, const char *s, const md_line *l, ebb_md_block *out)
{
    size_t start = l->start;

    if (l->indent < 4 && closes_fence(s, l, b->fence, b->n_fence)) {
        b->fence = 0;
        emit_md_block(b, EBB_MD_BLOCK_CLOSE, l->start, l->start, l->end, out);
        return;
    }
    for (unsigned i = 0; i < b->fence_indent && start < l->stop && s[start] == ' '; i++)
        start++;
    emit_md_block(b, EBB_MD_BLOCK_LINE, start, l->stop, l->end, out);
}

static void open_fence(ebb_md_blocks *b, const char *s, const md_line *l, size_t run, ebb_md_block *out)
{
    size_t info = l->text + run_at(s, l), end = l->stop;

    b->fence = s[l->text];
    b->n_fence = (uint8_t)run;
    b->fence_indent = (uint8_t)l->indent;
    while (info < end && (s[info] == ' ' || s[info] == '\t'))
        info++;
    emit_md_block(b, EBB_MD_BLOCK_OPEN, info, end, l->end, out);
}

/* HTML blocks that blank lines do not end, with their start and end conditions. */
static const struct { const char *begin, *end; } html_kinds[] = {
    { "<script", "</script>" }, { "<pre", "</pre>" }, { "<style", "</style>" }, { "<textarea", "</textarea>" },
    { "<!--", "-->" }, { "<?", "?>" }, { "<![CDATA[", "]]>" }, { "<!", ">" },
};
enum { HTML_KINDS = sizeof html_kinds / sizeof *html_kinds };

/* Within the line alone: no NUL ends the text. */
static bool is_in_line_at(const char *s, const md_line *l, size_t at, const char *what)
{
    size_t n = strlen(what);

    return n <= l->stop - at && strncasecmp(s + at, what, n) == 0;
}

static bool has_in_line(const char *s, const md_line *l, const char *what)
{
    for (size_t at = l->text; at < l->stop; at++)
        if (is_in_line_at(s, l, at, what))
            return true;
    return false;
}

/* HTML begins with a piece's first line, if it does. */
static void follow_html(ebb_md_blocks *b, const char *s, const md_line *l, bool is_first)
{
    size_t n = l->stop - l->text;

    if (is_first && n > 1 && s[l->text] == '<' && s[l->text + 1] != ' ') {
        b->html = 1;
        for (uint8_t i = 0; i < HTML_KINDS && b->html == 1; i++)
            if (is_in_line_at(s, l, l->text, html_kinds[i].begin))
                b->html = (uint8_t)(2 + i);
    }
    if (b->html > 1 && has_in_line(s, l, html_kinds[b->html - 2].end))
        b->html = 1;
}

/* A line of prose, taken into the piece under way. */
static void add_prose_line(ebb_md_blocks *b, const char *s, const md_line *l)
{
    size_t run = b->in_list || b->html ? fence_run(s, l) : 0;

    b->scanned = l->end;
    b->is_blank = l->text == l->stop;
    if (b->is_blank)
        return;
    follow_html(b, s, l, !b->has_text);
    b->has_text = true;
    if (b->inner) {
        if (closes_fence(s, l, b->inner, b->n_inner))
            b->inner = 0;
    } else if (run > 0) {
        b->inner = s[l->text];
        b->n_inner = (uint8_t)run;
    } else if (is_list_item(s, l)) {
        b->in_list = true;
    }
}

bool ebb_md_blocks_next(ebb_md_blocks *b, const char *s, size_t n, bool is_final, ebb_md_block *out)
{
    md_line l;

    while (next_md_line(b, s, n, is_final, &l)) {
        if (b->fence) {
            emit_code_line(b, s, &l, out);
            return true;
        }
        bool is_free = !b->inner && !b->html && l.text < l.stop && l.indent <= (b->in_list ? 1 : 3);
        size_t run = is_free ? fence_run(s, &l) : 0;
        bool heading = is_free && is_heading(s, &l);
        bool goes_on = b->in_list && (l.indent > 0 || is_list_item(s, &l));
        bool begins = b->is_blank && !b->inner && b->html < 2 && l.text < l.stop && !goes_on;
        if (b->has_text && (begins || run > 0 || heading)) {
            emit_md_block(b, EBB_MD_BLOCK_PROSE, b->start, l.start, l.start, out);
            return true;
        }
        if (run > 0 && b->start < l.start) {     /* blank lines before it */
            emit_md_block(b, EBB_MD_BLOCK_PROSE, b->start, l.start, l.start, out);
            return true;
        }
        if (run > 0) {
            open_fence(b, s, &l, run, out);
            return true;
        }
        add_prose_line(b, s, &l);
        if (heading) {
            emit_md_block(b, EBB_MD_BLOCK_PROSE, b->start, l.end, l.end, out);
            return true;
        }
    }
    if (!is_final || b->start == n)
        return false;
    emit_md_block(b, EBB_MD_BLOCK_PROSE, b->start, n, n, out);
    return true;
}
