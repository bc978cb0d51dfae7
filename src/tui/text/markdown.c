/* Streaming Markdown colours (markdown.h). */
#include "text/markdown.h"

#include <string.h>

enum { HEADING_MOST = 6, INLINE_MOST = 3, FENCE_MOST = 255 };    /* characters of a mark that count */

/* How often s[0] comes at the beginning of s[0..n), at most `most` times: a line may be nothing else. */
static size_t run_of(const char *s, size_t n, size_t most)
{
    size_t i = 0;

    while (i < n && i < most && s[i] == s[0])
        i++;
    return i;
}

static bool is_md_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\0';
}

static bool is_md_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static ebb_face md_face(const ebb_md *md)
{
    if (md->is_fence_line)
        return EBB_FACE_MARKUP;
    if (md->in_fence || md->n_code)
        return EBB_FACE_CODE;
    if (md->in_heading)
        return EBB_FACE_HEADING;
    if (md->bold)
        return EBB_FACE_BOLD;
    return md->italic ? EBB_FACE_ITALIC : md->base;
}

static size_t end_md_line(ebb_md *md, ebb_face *face)
{
    *face = md_face(md);
    md->in_line = md->in_heading = md->bold = md->italic = md->is_fence_line = false;
    md->n_code = 0;
    md->before = '\0';
    return 1;
}

/* ``` or ~~~ at s; false if it is no fence. */
static bool scan_fence(ebb_md *md, const char *s, size_t run)
{
    if (run < 3 || (md->in_fence && (s[0] != md->fence || run < md->n_fence)))
        return false;
    md->is_fence_line = true;
    md->in_fence = !md->in_fence;
    md->fence = s[0];
    md->n_fence = (uint8_t)(run < FENCE_MOST ? run : FENCE_MOST);
    return true;
}

/* The mark at a line's beginning (after blanks): its bytes, 0: more is
 * needed, SIZE_MAX: there is none. */
static size_t line_mark(ebb_md *md, const char *s, size_t n, bool is_final)
{
    size_t run;

    if (s[0] == '`' || s[0] == '~') {
        run = run_of(s, n, SIZE_MAX);
        if (run == n && !is_final && run < FENCE_MOST)   /* it may go on */
            return 0;
        return scan_fence(md, s, run) ? run : SIZE_MAX;
    }
    if (md->in_fence)
        return SIZE_MAX;
    if (s[0] == '#') {
        run = run_of(s, n, HEADING_MOST + 1);
        if (run > HEADING_MOST)
            return SIZE_MAX;
        if (run == n && !is_final)
            return 0;
        md->in_heading = run == n || is_md_space(s[run]);
        return md->in_heading ? run : SIZE_MAX;
    }
    if (s[0] == '>')
        return 1;
    if (s[0] == '-' || s[0] == '*' || s[0] == '+') {
        if (n == 1 && !is_final)
            return 0;
        return n > 1 && s[1] == ' ' ? 1 : SIZE_MAX;
    }
    run = 0;
    while (run < n && run < 3 && s[run] >= '0' && s[run] <= '9')
        run++;
    if (run == 0)
        return SIZE_MAX;
    if (n < run + 2 && !is_final)
        return 0;
    return n > run + 1 && (s[run] == '.' || s[run] == ')') && s[run + 1] == ' ' ? run + 1 : SIZE_MAX;
}

/* A mark inside a line: ` * or _ */
static size_t inline_mark(ebb_md *md, const char *s, size_t n, bool is_final, ebb_face *face)
{
    size_t take = run_of(s, n, INLINE_MOST);
    char before = md->before, after;

    if (take == n && !is_final)
        return 0;                                /* what follows decides */
    after = take < n ? s[take] : '\0';
    *face = EBB_FACE_MARKUP;
    md->before = s[0];
    if (s[0] == '`') {
        if (md->n_code == 0)
            md->n_code = (uint8_t)take;
        else if (md->n_code == take)
            md->n_code = 0;
        else
            *face = EBB_FACE_CODE;
        return take;
    }
    bool opens = !is_md_space(after), closes = !is_md_space(before);
    if (s[0] == '_') {
        opens = opens && !is_md_word(before);
        closes = closes && !is_md_word(after);
    }
    bool had_bold = md->bold, had_italic = md->italic;
    if (take >= 2)
        md->bold = md->bold ? !closes : opens;
    if (take != 2)
        md->italic = md->italic ? !closes : opens;
    if (md->bold == had_bold && md->italic == had_italic)
        *face = md_face(md);
    return take;
}

static bool is_inline_mark(const ebb_md *md, char c)
{
    if (md->in_fence || md->is_fence_line)
        return false;
    return c == '`' || (!md->n_code && (c == '*' || c == '_'));
}

size_t ebb_md_next(ebb_md *md, const char *s, size_t n, bool is_final, ebb_face *face)
{
    size_t len = 0;

    if (s[0] == '\n')
        return end_md_line(md, face);
    if (!md->in_line) {
        len = 0;
        while (len < n && (s[len] == ' ' || s[len] == '\t'))
            len++;
        if (len > 0) {
            *face = md_face(md);
            return len;
        }
        len = line_mark(md, s, n, is_final);
        if (len == 0)
            return 0;
        /* After the mark of a quote another may follow. */
        md->in_line = len == SIZE_MAX || s[0] != '>';
        if (len != SIZE_MAX) {
            *face = EBB_FACE_MARKUP;
            md->before = ' ';
            return len;
        }
        len = 0;
    }
    if (is_inline_mark(md, s[0]))
        return inline_mark(md, s, n, is_final, face);
    while (len < n && s[len] != '\n' && !is_inline_mark(md, s[len]))
        len++;
    *face = md_face(md);
    md->before = s[len - 1];
    return len;
}
