/* vi's motions (vi.h). */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "edit/editor_impl.h"
#include "edit/vi.h"

typedef enum class { BLANK, PUNCTUATION, WORD } class;

static class class_at(const ebb_editor *e, size_t at, bool is_big)
{
    if (at >= e->text.len || strchr(" \t\n", e->text.data[at]))
        return BLANK;
    return is_big || e->text.data[at] == '_' || ebb_editor_is_word(e, at) ? WORD : PUNCTUATION;
}

static size_t motion_left(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    (void)find;
    return at > ebb_editor_line_start(e, at) ? ebb_editor_prev(e, at) : at;
}

static size_t motion_right(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    (void)find;
    return at < ebb_editor_line_end(e, at) ? ebb_editor_next(e, at) : at;
}

static size_t motion_line_start(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    (void)find;
    return ebb_editor_line_start(e, at);
}

static size_t motion_line_end(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    (void)find;
    return ebb_editor_line_end(e, at);
}

size_t ebb_vi_beside(const ebb_editor *e, size_t at, bool is_before)
{
    return is_before ? motion_left(e, at, (ebb_vi_find){ 0 }) : motion_right(e, at, (ebb_vi_find){ 0 });
}

size_t ebb_vi_first_nonblank(const ebb_editor *e, size_t at)
{
    size_t stop = ebb_editor_line_end(e, at);

    for (at = ebb_editor_line_start(e, at); at < stop && strchr(" \t", e->text.data[at]);)
        at++;
    return at;
}

static size_t motion_first_nonblank(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    (void)find;
    return ebb_vi_first_nonblank(e, at);
}

/* -- Words ----------------------------------------------------------------------------- */

static size_t skip_class(const ebb_editor *e, size_t at, bool is_big, class c)
{
    while (at < e->text.len && class_at(e, at, is_big) == c)
        at = ebb_editor_next(e, at);
    return at;
}

static size_t motion_word(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    class c = class_at(e, at, find.is_big);

    if (c != BLANK)
        at = skip_class(e, at, find.is_big, c);
    return skip_class(e, at, find.is_big, BLANK);
}

static size_t motion_word_back(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    class c;

    while (at > 0 && class_at(e, ebb_editor_prev(e, at), find.is_big) == BLANK)
        at = ebb_editor_prev(e, at);
    if (at == 0)
        return 0;
    c = class_at(e, ebb_editor_prev(e, at), find.is_big);
    while (at > 0 && class_at(e, ebb_editor_prev(e, at), find.is_big) == c)
        at = ebb_editor_prev(e, at);
    return at;
}

/* The last character of the next word end after `at`. */
static size_t motion_word_end(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    size_t next;

    if (at >= e->text.len)
        return at;
    next = skip_class(e, ebb_editor_next(e, at), find.is_big, BLANK);
    if (next >= e->text.len)
        return at;
    next = skip_class(e, next, find.is_big, class_at(e, next, find.is_big));
    return ebb_editor_prev(e, next);
}

size_t ebb_vi_change_end(const ebb_editor *e, size_t at, unsigned count, bool is_big)
{
    if (class_at(e, at, is_big) == BLANK) {
        at = skip_class(e, at, is_big, BLANK);
        count--;
    }
    for (unsigned i = 0; i < count && at < e->text.len; i++) {
        at = i > 0 ? skip_class(e, at, is_big, BLANK) : at;
        at = skip_class(e, at, is_big, class_at(e, at, is_big));
    }
    return at;
}

/* -- Finding in the line ------------------------------------------------------------------ */

static bool is_char_at(const ebb_editor *e, size_t at, uint32_t code)
{
    uint32_t cp;

    return ebb_utf8_decode(e->text.data + at, e->text.len - at, &cp) > 0 && cp == code;
}

static size_t motion_find(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    size_t stop = ebb_editor_line_end(e, at);

    for (size_t i = at < stop ? ebb_editor_next(e, at) : stop; i < stop; i = ebb_editor_next(e, i))
        if (is_char_at(e, i, find.code))
            return i;
    return at;
}

static size_t motion_find_back(const ebb_editor *e, size_t at, ebb_vi_find find)
{
    size_t start = ebb_editor_line_start(e, at), i = at;

    while (i > start) {
        i = ebb_editor_prev(e, i);
        if (is_char_at(e, i, find.code))
            return i;
    }
    return at;
}

static const ebb_vi_motion motions[] = {
    { 'h', motion_left, false }, { 'l', motion_right, false }, { ' ', motion_right, false },
    { EBB_KEY_BACKSPACE, motion_left, false },
    { '0', motion_line_start, false }, { '^', motion_first_nonblank, false }, { '$', motion_line_end, false },
    { 'w', motion_word, false }, { 'b', motion_word_back, false }, { 'e', motion_word_end, true },
    { 'W', motion_word, false }, { 'B', motion_word_back, false }, { 'E', motion_word_end, true },
    { 'f', motion_find, true }, { 'F', motion_find_back, false }, { 't', motion_find, true },
    { 'T', motion_find_back, false },
    { EBB_KEY_LEFT, motion_left, false }, { EBB_KEY_RIGHT, motion_right, false },
    { EBB_KEY_HOME, motion_line_start, false }, { EBB_KEY_END, motion_line_end, false },
};

const ebb_vi_motion *ebb_vi_motion_of(uint32_t key)
{
    for (size_t i = 0; i < sizeof motions / sizeof *motions; i++)
        if (motions[i].key == key)
            return &motions[i];
    return NULL;
}

const ebb_vi_motion *ebb_vi_motion_find(char kind, bool is_reversed)
{
    static const char pairs[] = "fFtT";
    const char *at = kind ? strchr(pairs, kind) : NULL;

    if (!at)
        return NULL;
    return ebb_vi_motion_of((uint32_t)(is_reversed ? pairs[(at - pairs) ^ 1] : kind));
}
