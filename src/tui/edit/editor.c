/* The keys of the editor: moving, killing, changing (editor.h).  editor_text.c has the text, editor_view.c lays it out
 * and draws it. */
#include "edit/editor.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "edit/editor_impl.h"
#include "term/width.h"

/* -- Moving -------------------------------------------------------------------------- */

size_t ebb_editor_next(const ebb_editor *e, size_t at)
{
    return at < e->text.len ? at + ebb_cluster_next(e->text.data + at, e->text.len - at, NULL) : at;
}

size_t ebb_editor_prev(const ebb_editor *e, size_t at)
{
    return at > 0 ? ebb_cluster_prev(e->text.data, e->text.len, at) : 0;
}

size_t ebb_editor_shown_caret(const ebb_editor *e)
{
    size_t start;

    if (e->caret == 0 || e->caret >= e->text.len)
        return e->caret;
    start = ebb_cluster_prev(e->text.data, e->text.len, e->caret);
    return start + ebb_cluster_next(e->text.data + start, e->text.len - start, NULL);
}

size_t ebb_editor_line_start(const ebb_editor *e, size_t at)
{
    while (at > 0 && e->text.data[at - 1] != '\n')
        at--;
    return at;
}

size_t ebb_editor_line_end(const ebb_editor *e, size_t at)
{
    while (at < e->text.len && e->text.data[at] != '\n')
        at++;
    return at;
}

bool ebb_editor_is_word(const ebb_editor *e, size_t at)
{
    uint32_t cp;

    if (at >= e->text.len || ebb_utf8_decode(e->text.data + at, e->text.len - at, &cp) == 0)
        return false;
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)cp);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NO) || cat == UTF8PROC_CATEGORY_CO;
}

static size_t editor_word_end(const ebb_editor *e, size_t at)
{
    while (at < e->text.len && !ebb_editor_is_word(e, at))
        at = ebb_editor_next(e, at);
    while (at < e->text.len && ebb_editor_is_word(e, at))
        at = ebb_editor_next(e, at);
    return at;
}

/* Back over what is a word, or over what is none. */
static size_t skip_back(const ebb_editor *e, size_t at, bool is_word)
{
    for (size_t before; at > 0; at = before) {
        before = ebb_editor_prev(e, at);
        if (ebb_editor_is_word(e, before) != is_word)
            break;
    }
    return at;
}

static size_t editor_word_start(const ebb_editor *e, size_t at)
{
    return skip_back(e, skip_back(e, at, false), true);
}

/* What Ctrl-W takes: back to the blank before the word. */
static size_t blank_start(const ebb_editor *e, size_t at)
{
    while (at > 0 && strchr(" \t\n", e->text.data[at - 1]))
        at--;
    while (at > 0 && !strchr(" \t\n", e->text.data[at - 1]))
        at--;
    return at;
}

/* -- Killing ----------------------------------------------------------------------------- */

static void push_ring(ebb_editor *e, ebb_buf *killed)
{
    if (e->n_ring == EBB_EDITOR_RING)
        ebb_buf_fini(&e->ring[--e->n_ring].text);
    memmove(e->ring + 1, e->ring, e->n_ring++ * sizeof *e->ring);
    e->ring[0] = (ebb_kill){ *killed, e->is_given };
    e->n_kills++;
}

void ebb_editor_copy(ebb_editor *e, size_t from, size_t to)
{
    ebb_buf copied = { 0 };

    if (from < to && ebb_editor_add_marked(e, e->text.data + from, to - from, &copied))
        push_ring(e, &copied);
    else
        ebb_buf_fini(&copied);
}

static void kill_range(ebb_editor *e, size_t from, size_t to, bool is_backward)
{
    ebb_buf killed = { 0 };

    if (from == to)
        return;
    ebb_editor_add_marked(e, e->text.data + from, to - from, &killed);
    if (e->last == EBB_EDIT_KILL && e->n_ring > 0) {
        ebb_kill *newest = &e->ring[0];
        ebb_buf_insert(&newest->text, is_backward ? 0 : newest->text.len, ebb_buf_text(&killed), killed.len);
        newest->is_given = newest->is_given || e->is_given;
        e->n_kills++;
        ebb_buf_fini(&killed);
    } else {
        push_ring(e, &killed);
    }
    ebb_editor_replace(e, from, to - from, "", 0);
    e->now = EBB_EDIT_KILL;
}

void ebb_editor_insert_kill(ebb_editor *e, size_t i)
{
    const ebb_kill *kill = &e->ring[i];

    ebb_editor_insert_marked(e, ebb_buf_text(&kill->text), kill->text.len);
    e->is_given = e->is_given || kill->is_given;
}

static void put_ring(ebb_editor *e)
{
    e->yank_at = e->caret;
    ebb_editor_insert_kill(e, e->i_yank);
    e->n_yank = e->caret - e->yank_at;
    e->yank_edits = e->n_edits;
    e->now = EBB_EDIT_YANK;
}

static void yank(ebb_editor *e)
{
    if (e->n_ring == 0)
        return;
    e->i_yank = 0;
    put_ring(e);
}

static void yank_pop(ebb_editor *e)
{
    if (e->last != EBB_EDIT_YANK || e->n_edits != e->yank_edits)    /* the program changes the text, too */
        return;
    e->i_yank = (e->i_yank + 1) % e->n_ring;
    e->caret = e->yank_at;
    ebb_editor_replace(e, e->yank_at, e->n_yank, "", 0);
    put_ring(e);
}

static void transpose(ebb_editor *e)
{
    size_t at = e->caret == ebb_editor_line_end(e, e->caret) ? ebb_editor_prev(e, e->caret) : e->caret;
    size_t before = ebb_editor_prev(e, at), after = ebb_editor_next(e, at);
    ebb_buf swapped = { 0 };

    if (at == ebb_editor_line_start(e, at) || at == after)
        return;
    ebb_buf_add(&swapped, e->text.data + at, after - at);
    ebb_buf_add(&swapped, e->text.data + before, at - before);
    if (!swapped.failed)
        ebb_editor_replace(e, before, after - before, swapped.data, swapped.len);
    ebb_buf_fini(&swapped);
}

/* Alt-U, Alt-L, Alt-C. */
static void editor_change_case(ebb_editor *e, uint32_t how)
{
    size_t end = editor_word_end(e, e->caret), at = e->caret;
    ebb_buf changed = { 0 };
    bool in_word = false;
    char bytes[4];
    uint32_t cp;

    for (size_t used; at < end; at += used) {
        used = ebb_utf8_decode(e->text.data + at, end - at, &cp);
        bool up = how == 'u' || (how == 'c' && !in_word);
        in_word = in_word || ebb_editor_is_word(e, at);
        cp = (uint32_t)(up ? utf8proc_toupper((utf8proc_int32_t)cp) : utf8proc_tolower((utf8proc_int32_t)cp));
        ebb_buf_add(&changed, bytes, ebb_utf8_encode(cp, bytes));
    }
    if (!changed.failed)
        ebb_editor_replace(e, e->caret, end - e->caret, ebb_buf_text(&changed), changed.len);
    ebb_buf_fini(&changed);
}

/* -- Keys ------------------------------------------------------------------------------------ */

static void delete_range(ebb_editor *e, size_t from, size_t to)
{
    ebb_editor_replace(e, from, to - from, "", 0);
}

static bool editor_control_key(ebb_editor *e, uint32_t code)
{
    size_t c = e->caret;

    switch (code) {
    case 'a': e->caret = ebb_editor_line_start(e, c); return true;
    case 'e': e->caret = ebb_editor_line_end(e, c); return true;
    case 'b': e->caret = ebb_editor_prev(e, c); return true;
    case 'f': e->caret = ebb_editor_next(e, ebb_editor_shown_caret(e)); return true;
    case 'p': return ebb_editor_vertical(e, -1);
    case 'n': return ebb_editor_vertical(e, 1);
    case 'd': delete_range(e, c, ebb_editor_next(e, c)); return true;
    case 'j': ebb_editor_replace(e, c, 0, "\n", 1); return true;
    case 'k': kill_range(e, c, ebb_editor_line_end(e, c) == c ? ebb_editor_next(e, c) : ebb_editor_line_end(e, c),
                         false); return true;
    case 'u': kill_range(e, ebb_editor_line_start(e, c) == c ? ebb_editor_prev(e, c) : ebb_editor_line_start(e, c), c,
                         true); return true;
    case 'w': kill_range(e, blank_start(e, c), c, true); return true;
    case 'y': yank(e); return true;
    case 't': transpose(e); return true;
    case '_': ebb_editor_undo(e); return true;
    case EBB_KEY_LEFT: e->caret = editor_word_start(e, c); return true;
    case EBB_KEY_RIGHT: e->caret = editor_word_end(e, c); return true;
    case EBB_KEY_DELETE: kill_range(e, c, editor_word_end(e, c), false); return true;
    case EBB_KEY_BACKSPACE: kill_range(e, editor_word_start(e, c), c, true); return true;
    default: return false;
    }
}

static bool alt_key(ebb_editor *e, uint32_t code)
{
    size_t c = e->caret;

    switch (code) {
    case 'b': case EBB_KEY_LEFT: e->caret = editor_word_start(e, c); return true;
    case 'f': case EBB_KEY_RIGHT: e->caret = editor_word_end(e, c); return true;
    case 'd': case EBB_KEY_DELETE: kill_range(e, c, editor_word_end(e, c), false); return true;
    case EBB_KEY_BACKSPACE: kill_range(e, editor_word_start(e, c), c, true); return true;
    case 'y': yank_pop(e); return true;
    case 'u': case 'l': case 'c': editor_change_case(e, code); return true;
    case EBB_KEY_ENTER: ebb_editor_replace(e, c, 0, "\n", 1); return true;
    default: return false;
    }
}

static bool plain_key(ebb_editor *e, uint32_t code)
{
    size_t c = e->caret;
    char bytes[4];

    switch (code) {
    case EBB_KEY_LEFT: e->caret = ebb_editor_prev(e, c); return true;
    case EBB_KEY_RIGHT: e->caret = ebb_editor_next(e, ebb_editor_shown_caret(e)); return true;
    case EBB_KEY_UP: return ebb_editor_vertical(e, -1);
    case EBB_KEY_DOWN: return ebb_editor_vertical(e, 1);
    case EBB_KEY_HOME: e->caret = ebb_editor_line_start(e, c); return true;
    case EBB_KEY_END: e->caret = ebb_editor_line_end(e, c); return true;
    case EBB_KEY_DELETE: delete_range(e, c, ebb_editor_next(e, c)); return true;
    case EBB_KEY_BACKSPACE: delete_range(e, ebb_editor_prev(e, c), c); return true;
    default:
        if (code >= EBB_KEY_UP || (code >= EBB_EDITOR_FIRST && code < EBB_EDITOR_FIRST + EBB_EDITOR_PRIVATE))
            return false;
        e->now = EBB_EDIT_TYPE;
        ebb_editor_replace(e, c, 0, bytes, ebb_utf8_encode(code, bytes));
        return true;
    }
}

bool ebb_editor_vertical_key(ebb_editor *e, int direction)
{
    bool moved;

    e->now = EBB_EDIT_OTHER;
    moved = ebb_editor_vertical(e, direction);
    e->last = e->now;
    return moved;
}

bool ebb_editor_key(ebb_editor *e, ebb_key key)
{
    bool is_shift_enter = (key.mods & EBB_MOD_SHIFT) && !(key.mods & EBB_MOD_CTRL) && key.code == EBB_KEY_ENTER;
    size_t n_edits = e->n_edits;
    bool is_known;

    e->now = EBB_EDIT_OTHER;
    if ((key.mods & EBB_MOD_ALT) || is_shift_enter)
        is_known = alt_key(e, key.code);
    else if (key.mods & EBB_MOD_CTRL)
        is_known = editor_control_key(e, key.code);
    else
        is_known = plain_key(e, key.code);
    e->last = e->now;
    e->now = EBB_EDIT_OTHER;                     /* what changes the text between two keys is no typing */
    if (is_known && e->n_edits == n_edits)       /* what an edit joins stays apart: typing goes on in between */
        e->caret = ebb_editor_shown_caret(e);
    return is_known;
}
