/* The text being typed: editing (editor.h).  editor_view.c lays it out and draws it. */
#include "edit/editor.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "edit/editor_impl.h"
#include "term/width.h"

enum { FOLD_BYTES = 1000, FOLD_LINES = 8, UNDO_MAX = 1000 };

/* -- Text --------------------------------------------------------------------------- */

static void steps_free(ebb_undo_steps *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->steps[i].removed);
    free(s->steps);
    memset(s, 0, sizeof *s);
}

static void undo_free(ebb_editor *e)
{
    steps_free(&e->undo);
    steps_free(&e->redo);
}

static void pastes_free(ebb_editor *e)
{
    for (size_t i = 0; i < e->n_pastes; i++)
        free(e->pastes[i].text);
    free(e->pastes);
    e->pastes = NULL;
    e->n_pastes = e->cap_pastes = 0;
}

void ebb_editor_fini(ebb_editor *e)
{
    undo_free(e);
    pastes_free(e);
    ebb_buf_fini(&e->text);
    for (size_t i = 0; i < e->n_ring; i++)
        ebb_buf_fini(&e->ring[i]);
    free(e->rows);
    memset(e, 0, sizeof *e);
}

void ebb_editor_clear(ebb_editor *e)
{
    undo_free(e);
    pastes_free(e);
    ebb_buf_clear(&e->text);
    e->caret = e->top = 0;
    e->last = EBB_EDIT_OTHER;
}

bool ebb_editor_is_empty(const ebb_editor *e)
{
    return e->text.len == 0;
}

/* Where the text of the record before is continued by typing at `at`. */
static bool continues_typing(const ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n)
{
    const ebb_undo *u = e->undo.n ? &e->undo.steps[e->undo.n - 1] : NULL;

    return u && e->last == EBB_EDIT_TYPE && n_remove == 0 && n > 0 && u->at + u->n_inserted == at &&
           u->n_inserted < 64 && s[0] != ' ' && s[0] != '\n';
}

static bool push_step(ebb_undo_steps *s, ebb_undo u)
{
    ebb_undo *steps;

    if (s->n == UNDO_MAX) {
        free(s->steps[0].removed);
        memmove(s->steps, s->steps + 1, --s->n * sizeof *s->steps);
    }
    steps = ebb_grow(s->steps, s->n, &s->cap, sizeof *steps);
    if (!steps) {
        free(u.removed);
        return false;
    }
    s->steps = steps;
    s->steps[s->n++] = u;
    return true;
}

/* The undo step of a change that replaces n_remove bytes at `at` with n others. */
static bool make_step(const ebb_editor *e, size_t at, size_t n_remove, size_t n, size_t group, ebb_undo *u)
{
    *u = (ebb_undo){ .at = at, .n_inserted = n, .caret = e->caret, .removed = malloc(n_remove + 1),
                     .n_removed = n_remove, .group = group };
    if (u->removed)
        memcpy(u->removed, ebb_buf_text(&e->text) + at, n_remove);
    return u->removed != NULL;
}

static void record(ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n)
{
    ebb_undo u;

    steps_free(&e->redo);
    if (!e->is_grouped && continues_typing(e, at, n_remove, s, n)) {
        e->undo.steps[e->undo.n - 1].n_inserted += n;
        return;
    }
    e->group += !e->is_grouped;
    if (make_step(e, at, n_remove, n, e->group, &u))
        push_step(&e->undo, u);
}

/* The only place where the text changes, but for undo. */
void ebb_editor_replace(ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n)
{
    if (n_remove == 0 && n == 0)
        return;
    record(e, at, n_remove, s, n);
    if (!ebb_buf_reserve(&e->text, n)) {
        e->text.failed = false;
        return;
    }
    e->n_edits++;
    ebb_buf_remove(&e->text, at, n_remove);
    ebb_buf_insert(&e->text, at, s, n);
    e->caret = at + n;
}

/* One group of steps from one list to the other. */
static bool step_back(ebb_editor *e, ebb_undo_steps *from, ebb_undo_steps *to)
{
    size_t group = from->n > 0 ? from->steps[from->n - 1].group : 0;
    ebb_undo inverse;

    if (from->n == 0)
        return false;
    while (from->n > 0 && from->steps[from->n - 1].group == group) {
        ebb_undo u = from->steps[--from->n];
        if (make_step(e, u.at, u.n_inserted, u.n_removed, group, &inverse))
            push_step(to, inverse);
        e->n_edits++;
        ebb_buf_remove(&e->text, u.at, u.n_inserted);
        ebb_buf_insert(&e->text, u.at, u.removed, u.n_removed);
        e->caret = u.caret <= e->text.len ? u.caret : e->text.len;
        free(u.removed);
    }
    return true;
}

bool ebb_editor_undo(ebb_editor *e)
{
    return step_back(e, &e->undo, &e->redo);
}

bool ebb_editor_redo(ebb_editor *e)
{
    size_t at = e->redo.n > 0 ? e->redo.steps[e->redo.n - 1].at : 0;

    if (!step_back(e, &e->redo, &e->undo))
        return false;
    e->caret = at <= e->text.len ? at : e->text.len;
    return true;
}

void ebb_editor_group(ebb_editor *e, bool is_grouped)
{
    e->group += is_grouped && !e->is_grouped;
    e->is_grouped = is_grouped;
}

/* Valid UTF-8 without NUL, which would end a message, and without the code points that represent
 * pastes here. */
static void add_clean(ebb_buf *out, const char *s, size_t n)
{
    size_t start = out->len;

    for (const char *nul; (nul = n > 0 ? memchr(s, '\0', n) : NULL) != NULL; n -= (size_t)(nul + 1 - s), s = nul + 1) {
        ebb_utf8_add_valid(out, s, (size_t)(nul - s));
        ebb_buf_adds(out, "\xEF\xBF\xBD");
    }
    ebb_utf8_add_valid(out, s, n);
    for (size_t i = start; i + 4 <= out->len; i++) {
        uint32_t cp;
        if ((unsigned char)out->data[i] != 0xF4 || ebb_utf8_decode(out->data + i, 4, &cp) != 4 ||
            cp < EBB_EDITOR_FIRST || cp >= EBB_EDITOR_FIRST + EBB_EDITOR_PASTES)
            continue;
        memcpy(out->data + i, "\xEF\xBF\xBD", 3);
        ebb_buf_remove(out, i + 3, 1);
    }
}

void ebb_editor_insert(ebb_editor *e, const char *s, size_t n)
{
    ebb_buf clean = { 0 };

    add_clean(&clean, s, n);
    ebb_editor_replace(e, e->caret, 0, ebb_buf_text(&clean), clean.len);
    ebb_buf_fini(&clean);
}

static size_t count_lines(const char *s, size_t n)
{
    size_t lines = 1;

    for (const char *p = s; (p = memchr(p, '\n', n - (size_t)(p - s))) != NULL; p++)
        lines += p + 1 < s + n;
    return lines;
}

static bool has_room_for_paste(ebb_editor *e)
{
    size_t cap = e->cap_pastes ? e->cap_pastes * 2 : 8;
    ebb_paste *pastes;

    if (e->n_pastes < e->cap_pastes)
        return true;
    pastes = e->n_pastes < EBB_EDITOR_PASTES ? realloc(e->pastes, cap * sizeof *pastes) : NULL;
    if (!pastes)
        return false;
    e->pastes = pastes;
    e->cap_pastes = cap;
    return true;
}

void ebb_editor_paste(ebb_editor *e, const char *s, size_t n)
{
    char mark[4];
    ebb_buf clean = { 0 };
    size_t lines = count_lines(s, n);

    if ((n < FOLD_BYTES && lines < FOLD_LINES) || !has_room_for_paste(e)) {
        ebb_editor_insert(e, s, n);
        return;
    }
    add_clean(&clean, s, n);
    if (!clean.failed) {
        ebb_utf8_encode(EBB_EDITOR_FIRST + (uint32_t)e->n_pastes, mark);
        e->pastes[e->n_pastes].n_bytes = clean.len;
        e->pastes[e->n_pastes].n_lines = lines;
        e->pastes[e->n_pastes++].text = ebb_buf_take(&clean);
        ebb_editor_replace(e, e->caret, 0, mark, 4);
    }
    ebb_buf_fini(&clean);
}

void ebb_editor_set(ebb_editor *e, const char *s, size_t n)
{
    e->caret = 0;
    e->last = EBB_EDIT_OTHER;
    ebb_editor_replace(e, 0, e->text.len, "", 0);
    e->caret = 0;
    ebb_editor_paste(e, s, n);
    e->caret = e->text.len;
}

static bool add_unfolded(const ebb_editor *e, const char *s, size_t n, ebb_buf *out)
{
    for (size_t at = 0, len; at < n; at += len) {
        size_t i = ebb_editor_paste_at(e, s + at, n - at);
        len = i < e->n_pastes ? 4 : 1;
        if (i < e->n_pastes)
            ebb_buf_add(out, e->pastes[i].text, e->pastes[i].n_bytes);
        else
            ebb_buf_addc(out, s[at]);
    }
    return !out->failed;
}

bool ebb_editor_text(const ebb_editor *e, ebb_buf *out)
{
    return add_unfolded(e, ebb_buf_text(&e->text), e->text.len, out);
}

/* -- Moving -------------------------------------------------------------------------- */

size_t ebb_editor_next(const ebb_editor *e, size_t at)
{
    return at < e->text.len ? at + ebb_cluster_next(e->text.data + at, e->text.len - at, NULL) : at;
}

size_t ebb_editor_prev(const ebb_editor *e, size_t at)
{
    return at > 0 ? ebb_cluster_prev(e->text.data, e->text.len, at) : 0;
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

static size_t editor_word_start(const ebb_editor *e, size_t at)
{
    while (at > 0 && !ebb_editor_is_word(e, ebb_editor_prev(e, at)))
        at = ebb_editor_prev(e, at);
    while (at > 0 && ebb_editor_is_word(e, ebb_editor_prev(e, at)))
        at = ebb_editor_prev(e, at);
    return at;
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
        ebb_buf_fini(&e->ring[--e->n_ring]);
    memmove(e->ring + 1, e->ring, e->n_ring++ * sizeof *e->ring);
    e->ring[0] = *killed;
}

void ebb_editor_copy(ebb_editor *e, size_t from, size_t to)
{
    ebb_buf copied = { 0 };

    if (from < to && add_unfolded(e, e->text.data + from, to - from, &copied))
        push_ring(e, &copied);
    else
        ebb_buf_fini(&copied);
}

static void kill_range(ebb_editor *e, size_t from, size_t to, bool is_backward)
{
    ebb_buf killed = { 0 };

    if (from == to)
        return;
    add_unfolded(e, e->text.data + from, to - from, &killed);
    if (e->last == EBB_EDIT_KILL && e->n_ring > 0) {
        ebb_buf_insert(&e->ring[0], is_backward ? 0 : e->ring[0].len, ebb_buf_text(&killed), killed.len);
        ebb_buf_fini(&killed);
    } else {
        push_ring(e, &killed);
    }
    ebb_editor_replace(e, from, to - from, "", 0);
    e->now = EBB_EDIT_KILL;
}

static void put_ring(ebb_editor *e)
{
    const ebb_buf *kill = &e->ring[e->i_yank];

    e->yank_at = e->caret;
    ebb_editor_paste(e, ebb_buf_text(kill), kill->len);
    e->n_yank = e->caret - e->yank_at;
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
    if (e->last != EBB_EDIT_YANK)
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
    case 'f': e->caret = ebb_editor_next(e, c); return true;
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
    case EBB_KEY_RIGHT: e->caret = ebb_editor_next(e, c); return true;
    case EBB_KEY_UP: return ebb_editor_vertical(e, -1);
    case EBB_KEY_DOWN: return ebb_editor_vertical(e, 1);
    case EBB_KEY_HOME: e->caret = ebb_editor_line_start(e, c); return true;
    case EBB_KEY_END: e->caret = ebb_editor_line_end(e, c); return true;
    case EBB_KEY_DELETE: delete_range(e, c, ebb_editor_next(e, c)); return true;
    case EBB_KEY_BACKSPACE: delete_range(e, ebb_editor_prev(e, c), c); return true;
    default:
        if (code >= EBB_KEY_UP || (code >= EBB_EDITOR_FIRST && code < EBB_EDITOR_FIRST + EBB_EDITOR_PASTES))
            return false;
        ebb_editor_replace(e, c, 0, bytes, ebb_utf8_encode(code, bytes));
        e->now = EBB_EDIT_TYPE;
        return true;
    }
}

/* A mark typed after a letter joins it: the caret must not stay inside. */
static void settle_caret(ebb_editor *e)
{
    if (e->caret > 0 && e->caret < e->text.len) {
        size_t start = ebb_cluster_prev(e->text.data, e->text.len, e->caret);
        size_t end = ebb_editor_next(e, start);
        if (end > e->caret)
            e->caret = end;
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
    bool is_known;

    e->now = EBB_EDIT_OTHER;
    if ((key.mods & EBB_MOD_ALT) || is_shift_enter)
        is_known = alt_key(e, key.code);
    else if (key.mods & EBB_MOD_CTRL)
        is_known = editor_control_key(e, key.code);
    else
        is_known = plain_key(e, key.code);
    e->last = e->now;
    if (is_known)
        settle_caret(e);
    return is_known;
}
