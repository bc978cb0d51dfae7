/* vi's modes, operators and commands (vi.h). */
#include "edit/vi.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "edit/editor_impl.h"

enum { COUNT_MAX = 9999 };

/* -- Modes ------------------------------------------------------------------------------ */

static unsigned effective_count(const ebb_vi *v)
{
    unsigned n = (v->count ? v->count : 1) * (v->op_count ? v->op_count : 1);

    return n < COUNT_MAX ? n : COUNT_MAX;
}

/* In normal mode the caret is on a character, never within one that an edit made, nor after the last of its line. */
static void settle_vi(const ebb_vi *v, ebb_editor *e)
{
    if (v->is_normal && e->caret != ebb_editor_shown_caret(e))
        e->caret = ebb_editor_prev(e, e->caret);
    if (v->is_normal && e->caret == ebb_editor_line_end(e, e->caret) && e->caret > ebb_editor_line_start(e, e->caret))
        e->caret = ebb_editor_prev(e, e->caret);
}

/* The caret was put somewhere: j and k aim at that column from now on. */
static void forget_column(ebb_editor *e)
{
    e->last = EBB_EDIT_OTHER;
}

static void clear_pending(ebb_vi *v)
{
    v->count = v->op_count = 0;
    v->op = v->wait = 0;
}

/* A command is complete; if it was a change, `.` repeats it. */
static void finish_vi_command(ebb_vi *v, ebb_editor *e)
{
    if (v->is_change && !v->is_replay && v->n_keys <= EBB_VI_KEYS) {
        memcpy(v->change, v->keys, v->n_keys * sizeof *v->keys);
        v->n_change = v->n_keys;
    }
    v->n_keys = 0;
    v->is_change = false;
    clear_pending(v);
    if (v->is_normal)
        ebb_editor_group(e, false);
    settle_vi(v, e);
}

static void insert_mode(ebb_vi *v, unsigned n_times)
{
    v->is_normal = false;
    v->is_change = true;
    v->i_insert = v->n_keys;
    v->n_inserts = n_times;
    v->opens_lines = false;
    clear_pending(v);
}

/* Repeat the inserted text as often as the count says, of o and O on lines of its own; one undo removes all copies. */
static void normal_mode(ebb_vi *v, ebb_editor *e)
{
    size_t end = v->n_keys;

    for (unsigned i = 1; i < v->n_inserts && end <= EBB_VI_KEYS; i++) {
        if (v->opens_lines)
            ebb_editor_insert(e, "\n", 1);
        for (size_t k = v->i_insert; k < end; k++)
            ebb_editor_key(e, v->keys[k]);
    }
    v->n_inserts = 0;
    v->is_normal = true;
    if (e->caret > ebb_editor_line_start(e, e->caret))
        e->caret = ebb_editor_prev(e, e->caret);
    forget_column(e);
    if (v->n_keys < EBB_VI_KEYS)
        v->keys[v->n_keys++] = (ebb_key){ .code = EBB_KEY_ESC };
    finish_vi_command(v, e);
}

void ebb_vi_reset(ebb_vi *v, ebb_editor *e)
{
    v->is_normal = v->is_change = false;
    v->n_keys = v->i_insert = 0;
    v->n_inserts = 0;
    clear_pending(v);
    ebb_editor_group(e, false);
}

void ebb_vi_set(ebb_vi *v, ebb_editor *e, bool is_on)
{
    ebb_vi_reset(v, e);
    v->is_on = is_on;
}

/* -- Operators ---------------------------------------------------------------------------- */

/* d, c or y over [from, to). */
static void apply_operator(ebb_vi *v, ebb_editor *e, char op, size_t from, size_t to)
{
    v->is_linewise = v->is_blank = false;
    ebb_editor_copy(e, from, to);
    if (op == 'y') {
        e->caret = from;
        return;
    }
    v->is_change = true;
    ebb_editor_replace(e, from, to - from, "", 0);
    e->caret = from;
    if (op == 'c')
        insert_mode(v, 1);
}

/* Of the n-th line from the caret's, or of the last one there is. */
static size_t end_of_lines(const ebb_editor *e, unsigned n)
{
    size_t end = ebb_editor_line_end(e, e->caret);

    for (; n > 1 && end < e->text.len; n--)
        end = ebb_editor_line_end(e, end + 1);
    return end;
}

/* `n` lines from the caret's, with the line end that goes with them. */
static void apply_operator_to_lines(ebb_vi *v, ebb_editor *e, char op, unsigned n)
{
    size_t from = ebb_editor_line_start(e, e->caret), to = end_of_lines(e, n);

    if (e->text.len > 0 || op == 'y') {          /* where nothing is to cut, what was cut before stays */
        v->is_linewise = true;
        v->is_blank = from == to;
        ebb_editor_copy(e, from, to);
        v->n_kills = e->n_kills;
    }
    if (op == 'y')
        return;
    v->is_change = true;
    if (op == 'd' && to < e->text.len)
        to++;
    else if (op == 'd' && from > 0)
        from--;
    ebb_editor_replace(e, from, to - from, "", 0);
    e->caret = op == 'd' ? ebb_vi_first_nonblank(e, from) : from;
    if (op == 'c')
        insert_mode(v, 1);
}

static bool is_find(uint32_t key)
{
    return key < 128 && strchr("fFtT", (int)key);
}

/* To the character at which f and F would stand. */
static bool is_till(uint32_t key)
{
    return key == 't' || key == 'T';
}

/* Where f, F, t or T ends; SIZE_MAX: there are not as many. */
static size_t end_of_find(const ebb_vi *v, const ebb_editor *e, const ebb_vi_motion *m)
{
    size_t to = e->caret, step;
    unsigned n = effective_count(v);

    if (is_till(m->key) && v->find.is_again && n == 1)       /* it stands beside the last one found: the next */
        to = ebb_vi_beside(e, to, m->key == 'T');
    for (; n > 0; n--, to = step) {
        step = m->go(e, to, v->find);
        if (step == to)
            return SIZE_MAX;
    }
    return is_till(m->key) ? ebb_vi_beside(e, to, m->key == 't') : to;
}

/* Where the motion ends, as often as the count says or as it can.  *last: where its last step began. */
static size_t end_of_motion(const ebb_vi *v, const ebb_editor *e, const ebb_vi_motion *m, size_t *last)
{
    ebb_vi_find find = { .is_big = m->key == 'W' || m->key == 'B' || m->key == 'E' };
    size_t to = *last = e->caret, step;

    if (m->key == '$' || m->key == EBB_KEY_END)
        return end_of_lines(e, effective_count(v));
    for (unsigned i = effective_count(v); i > 0; i--, to = step) {
        step = m->go(e, to, find);
        if (step == to)
            return to;
        *last = to;
    }
    return to;
}

static void vi_move(ebb_vi *v, ebb_editor *e, const ebb_vi_motion *m)
{
    size_t from = e->caret, last = from, to = is_find(m->key) ? end_of_find(v, e, m) : end_of_motion(v, e, m, &last);
    bool is_word = m->key == 'w' || m->key == 'W';

    if (to == SIZE_MAX)
        return;
    if (!v->op) {
        e->caret = to;
        return;
    }
    if (v->op == 'c' && is_word)
        to = ebb_vi_change_end(e, from, effective_count(v), m->key == 'W');
    else if (m->is_inclusive && to >= from)
        to = ebb_editor_next(e, to);
    if (is_word && v->op != 'c' && to > ebb_editor_line_end(e, last))
        to = ebb_editor_line_end(e, last);       /* dw on the last word leaves the line end */
    if (to != from || v->op == 'c')
        apply_operator(v, e, v->op, from < to ? from : to, from < to ? to : from);
}

/* -- Commands ------------------------------------------------------------------------------- */

static size_t chars_on_line(const ebb_editor *e, unsigned n)
{
    size_t at = e->caret, end = ebb_editor_line_end(e, at);

    while (n-- > 0 && at < end)
        at = ebb_editor_next(e, at);
    return at;
}

static void put_register(ebb_vi *v, ebb_editor *e, bool is_after)
{
    bool is_linewise = v->is_linewise && v->n_kills == e->n_kills, is_blank = is_linewise && v->is_blank;
    size_t end = ebb_editor_line_end(e, e->caret), at = e->caret;

    if (e->n_ring == 0 && !is_blank)
        return;
    v->is_change = true;
    if (!is_linewise && is_after && at < end)
        at = ebb_editor_next(e, at);
    if (is_linewise)
        at = is_after ? end : ebb_editor_line_start(e, at);
    e->caret = at;
    for (unsigned i = effective_count(v); i > 0; i--) {
        if (is_linewise && is_after)
            ebb_editor_insert(e, "\n", 1);
        if (!is_blank)
            ebb_editor_insert_kill(e, 0);
        if (is_linewise && !is_after)
            ebb_editor_insert(e, "\n", 1);
    }
    if (is_linewise)
        e->caret = ebb_vi_first_nonblank(e, at + is_after);
    else if (e->caret > 0)
        e->caret = ebb_editor_prev(e, e->caret);
}

static void toggle_case_on(ebb_vi *v, ebb_editor *e)
{
    size_t from = e->caret, to = chars_on_line(e, effective_count(v));
    ebb_buf out = { 0 };
    uint32_t cp;
    char bytes[4];

    for (size_t at = from, used; at < to; at += used) {
        used = ebb_utf8_decode(e->text.data + at, to - at, &cp);
        uint32_t upper = (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
        cp = upper != cp ? upper : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
        ebb_buf_add(&out, bytes, ebb_utf8_encode(cp, bytes));
    }
    if (!out.failed && to > from)
        ebb_editor_replace(e, from, to - from, out.data, out.len);
    v->is_change = true;
    ebb_buf_fini(&out);
}

/* r: `n` characters become this one, if there are so many. */
static void replace_with(ebb_vi *v, ebb_editor *e, uint32_t code)
{
    size_t from = e->caret, at = from, end = ebb_editor_line_end(e, from);
    unsigned n = effective_count(v), i;
    char bytes[4];
    ebb_buf out = { 0 };

    for (i = 0; i < n && at < end; i++) {
        at = ebb_editor_next(e, at);
        ebb_buf_add(&out, bytes, ebb_utf8_encode(code, bytes));
    }
    if (i == n && !out.failed) {
        ebb_editor_replace(e, from, at - from, out.data, out.len);
        e->caret = ebb_editor_prev(e, e->caret);
        v->is_change = true;
    }
    ebb_buf_fini(&out);
}

static void open_line(ebb_vi *v, ebb_editor *e, bool is_below)
{
    e->caret = is_below ? ebb_editor_line_end(e, e->caret) : ebb_editor_line_start(e, e->caret);
    ebb_editor_insert(e, "\n", 1);
    e->caret -= !is_below;
    insert_mode(v, effective_count(v));
    v->opens_lines = true;
}

/* The line and the one below it, parted by a blank where both have text, but not before ")" nor behind white space. */
static bool join_line_below(ebb_editor *e)
{
    size_t start = ebb_editor_line_start(e, e->caret), end = ebb_editor_line_end(e, e->caret), to = end + 1;
    bool has_blank;

    if (end == e->text.len)
        return false;
    to += strspn(ebb_buf_text(&e->text) + to, " \t");
    has_blank = end > start && !strchr(" \t", e->text.data[end - 1]) && !strchr("\n)", ebb_buf_text(&e->text)[to]);
    ebb_editor_replace(e, end, to - end, " ", has_blank);
    e->caret = end;
    return true;
}

/* As many as the count says, or as there are; two without one.  On the last line nothing is changed. */
static void join_lines(ebb_vi *v, ebb_editor *e)
{
    for (unsigned n = effective_count(v); join_line_below(e); n--) {
        v->is_change = true;
        if (n <= 2)
            break;
    }
}

/* Keys that are an operator with its motion: x is dl. */
static const struct { char key, op, motion; } shorts[] = {
    { 'x', 'd', 'l' }, { 'X', 'd', 'h' }, { 'D', 'd', '$' }, { 'C', 'c', '$' }, { 's', 'c', 'l' },
};

static bool short_command(ebb_vi *v, ebb_editor *e, uint32_t code)
{
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
        if ((uint32_t)shorts[i].key == code) {
            v->op = shorts[i].op;
            vi_move(v, e, ebb_vi_motion_of((uint32_t)shorts[i].motion));
            return true;
        }
    return false;
}

static bool is_pending(const ebb_vi *v)
{
    return v->op || v->count || v->wait;
}

/* Where it cannot be done, as where the line has nothing that f looks for, it ends: what was inserted is no command. */
static void replay_change(ebb_vi *v, ebb_editor *e)
{
    v->n_keys = 0;
    clear_pending(v);
    v->is_replay = true;
    for (size_t i = 0; i < v->n_change && (i == 0 || !v->is_normal || is_pending(v)); i++)
        if (ebb_vi_key(v, e, v->change[i]) == EBB_VI_PASS)
            ebb_editor_key(e, v->change[i]);
    v->is_replay = false;
    if (v->is_normal)
        finish_vi_command(v, e);
}

/* Of j, k and their kin; 0: of another key. */
static int vertical_direction(uint32_t code)
{
    switch (code) {
    case 'j': case EBB_KEY_DOWN: case '+': return 1;
    case 'k': case EBB_KEY_UP: case '-': return -1;
    default: return 0;
    }
}

/* As often as the count says, or as it can; from the edge to what was typed before. */
static ebb_vi_act vi_vertical(ebb_vi *v, ebb_editor *e, int direction)
{
    bool moved = false;

    for (unsigned n = effective_count(v); n > 0 && ebb_editor_vertical_key(e, direction); n--)
        moved = true;
    finish_vi_command(v, e);
    return moved ? EBB_VI_DONE : direction < 0 ? EBB_VI_BACK : EBB_VI_FORWARD;
}

static ebb_vi_act vi_command(ebb_vi *v, ebb_editor *e, uint32_t code)
{
    unsigned n = effective_count(v);

    switch (code) {
    case 'i': insert_mode(v, n); return EBB_VI_DONE;
    case 'a': e->caret = chars_on_line(e, 1); insert_mode(v, n); return EBB_VI_DONE;
    case 'I': e->caret = ebb_vi_first_nonblank(e, e->caret); insert_mode(v, n); return EBB_VI_DONE;
    case 'A': e->caret = ebb_editor_line_end(e, e->caret); insert_mode(v, n); return EBB_VI_DONE;
    case 'o': case 'O': open_line(v, e, code == 'o'); return EBB_VI_DONE;
    case 'S': apply_operator_to_lines(v, e, 'c', n); break;
    case 'Y': apply_operator_to_lines(v, e, 'y', n); break;
    case 'p': case 'P': put_register(v, e, code == 'p'); break;
    case '~': toggle_case_on(v, e); break;
    case 'J': join_lines(v, e); break;
    case 'u':
        while (n-- > 0 && ebb_editor_undo(e))
            ;
        break;
    case 'G': e->caret = e->text.len; break;
    case '/': case '?': finish_vi_command(v, e); return EBB_VI_SEARCH;
    case 'n': finish_vi_command(v, e); return EBB_VI_OLDER;
    case 'N': finish_vi_command(v, e); return EBB_VI_NEWER;
    case '.': replay_change(v, e); return EBB_VI_DONE;
    default: short_command(v, e, code);
    }
    if (v->is_normal)
        finish_vi_command(v, e);
    return EBB_VI_DONE;
}

/* -- Keys -------------------------------------------------------------------------------------- */

static bool is_operator(uint32_t code)
{
    return code == 'd' || code == 'c' || code == 'y';
}

static ebb_vi_act after_move(ebb_vi *v, ebb_editor *e)
{
    if (v->is_normal)
        finish_vi_command(v, e);
    return EBB_VI_DONE;
}

static ebb_vi_act awaited_character(ebb_vi *v, ebb_editor *e, ebb_key key)
{
    char wait = v->wait;

    v->wait = 0;
    forget_column(e);
    if (key.mods || key.code >= EBB_KEY_UP) {
        finish_vi_command(v, e);
    } else if (wait == 'r') {
        replace_with(v, e, key.code);
        finish_vi_command(v, e);
    } else {
        v->find = (ebb_vi_find){ .kind = wait, .code = key.code };       /* not again: what stands beside it counts */
        vi_move(v, e, ebb_vi_motion_of((uint32_t)wait));
        return after_move(v, e);
    }
    return EBB_VI_DONE;
}

static ebb_vi_act operator_key(ebb_vi *v, ebb_editor *e, uint32_t code)
{
    if (v->op == 0) {
        v->op = (char)code;
        v->op_count = v->count;
        v->count = 0;
        return EBB_VI_DONE;
    }
    if ((char)code == v->op)
        apply_operator_to_lines(v, e, v->op, effective_count(v));
    return after_move(v, e);
}

static ebb_vi_act normal_key(ebb_vi *v, ebb_editor *e, ebb_key key)
{
    uint32_t code = key.code;
    const ebb_vi_motion *m;

    if (key.mods == EBB_MOD_CTRL && code == 'r') {
        ebb_editor_redo(e);
        forget_column(e);
        finish_vi_command(v, e);
        return EBB_VI_DONE;
    }
    if (v->wait)
        return awaited_character(v, e, key);
    if (key.mods & ~EBB_MOD_SHIFT) {
        finish_vi_command(v, e);
        return EBB_VI_PASS;
    }
    if (code >= (v->count ? '0' : '1') && code <= '9') {
        v->count = v->count < COUNT_MAX ? v->count * 10 + (code - '0') : v->count;
        return EBB_VI_DONE;
    }
    if (code < 128 && strchr("rfFtT", (int)code) && !(v->op && code == 'r')) {
        v->wait = (char)code;
        return EBB_VI_DONE;
    }
    if (!v->op && vertical_direction(code) != 0)
        return vi_vertical(v, e, vertical_direction(code));
    forget_column(e);
    v->find.is_again = code == ';' || code == ',';
    m = v->find.is_again ? ebb_vi_motion_find(v->find.kind, code == ',') : ebb_vi_motion_of(code);
    if (m) {
        vi_move(v, e, m);
        return after_move(v, e);
    }
    if (is_operator(code))
        return operator_key(v, e, code);
    if (v->op) {                                 /* an operator without motion */
        finish_vi_command(v, e);
        return EBB_VI_DONE;
    }
    return vi_command(v, e, code);
}

static bool is_callers(ebb_key key)
{
    return key.code == EBB_KEY_ENTER || key.code == EBB_KEY_TAB ||
           (key.code >= EBB_KEY_PGUP && key.code <= EBB_KEY_INSERT) || key.code >= EBB_KEY_F1;
}

ebb_vi_act ebb_vi_key(ebb_vi *v, ebb_editor *e, ebb_key key)
{
    bool is_escape = key.code == EBB_KEY_ESC && key.mods == 0;

    if (!v->is_on || is_callers(key))
        return EBB_VI_PASS;
    if (v->is_normal && is_escape && !is_pending(v))
        return EBB_VI_PASS;
    if (v->is_normal && is_escape) {
        v->is_change = false;
        finish_vi_command(v, e);
        return EBB_VI_DONE;
    }
    if (!v->is_normal && is_escape) {
        normal_mode(v, e);
        return EBB_VI_DONE;
    }
    if (!v->is_normal && key.mods == EBB_MOD_ALT && key.code < EBB_KEY_UP) {
        normal_mode(v, e);                       /* Esc and a key came in one piece */
        key.mods = 0;
    }
    if (v->n_keys < EBB_VI_KEYS)
        v->keys[v->n_keys] = key;
    v->n_keys += v->n_keys <= EBB_VI_KEYS;
    if (!v->is_normal)
        return EBB_VI_PASS;
    ebb_editor_group(e, true);
    return normal_key(v, e, key);
}

void ebb_vi_pending(const ebb_vi *v, ebb_buf *out)
{
    if (v->op_count)
        ebb_buf_addf(out, "%u", v->op_count);
    if (v->op)
        ebb_buf_addc(out, v->op);
    if (v->count)
        ebb_buf_addf(out, "%u", v->count);
    if (v->wait)
        ebb_buf_addc(out, v->wait);
}
