/* The text being typed: what is in it, pastes that stand for more, and undo (editor.h). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "edit/editor_impl.h"

/* HUGE_BYTES: more, typed or not, is too long to be laid out at each key.  NAME_BYTES: more is no name of a command. */
enum { FOLD_BYTES = 1000, FOLD_LINES = 8, HUGE_BYTES = 64 << 10, NAME_BYTES = 64, UNDO_MAX = 1000 };

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
        ebb_buf_fini(&e->ring[i].text);
    free(e->rows);
    memset(e, 0, sizeof *e);
}

void ebb_editor_clear(ebb_editor *e)
{
    undo_free(e);
    pastes_free(e);
    e->n_edits += e->text.len > 0;
    ebb_buf_clear(&e->text);
    e->caret = e->top = 0;
    e->last = EBB_EDIT_OTHER;
    e->is_given = false;
}

bool ebb_editor_is_empty(const ebb_editor *e)
{
    return e->text.len == 0;
}

/* Where the text of the record before, which was typed, is continued by typing at `at`. */
static bool continues_typing(const ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n)
{
    const ebb_undo *u = e->undo.n ? &e->undo.steps[e->undo.n - 1] : NULL;

    return u && e->last == EBB_EDIT_TYPE && e->now == EBB_EDIT_TYPE && n_remove == 0 && n > 0 &&
           u->at + u->n_inserted == at && u->n_inserted < 64 && s[0] != ' ' && s[0] != '\n';
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
                     .n_removed = n_remove, .group = group, .was_given = e->is_given };
    if (u->removed)
        memcpy(u->removed, ebb_buf_text(&e->text) + at, n_remove);
    return u->removed != NULL;
}

static void record(ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n)
{
    ebb_undo u;

    steps_free(&e->redo);
    if (e->now != EBB_EDIT_TYPE)
        e->last = EBB_EDIT_OTHER;                /* and what is typed behind this is another one */
    if (!e->is_grouped && continues_typing(e, at, n_remove, s, n)) {
        e->undo.steps[e->undo.n - 1].n_inserted += n;
        return;
    }
    e->group += !e->is_grouped;
    if (make_step(e, at, n_remove, n, e->group, &u))
        push_step(&e->undo, u);
}

/* The only place where the text changes, but for undo and what empties it. */
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
        e->is_given = e->is_given || u.was_given;
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

static bool is_mark_of_paste(const char *s, size_t n)
{
    uint32_t cp;

    return n >= 4 && (unsigned char)s[0] == 0xF4 && ebb_utf8_decode(s, n, &cp) == 4 && cp >= EBB_EDITOR_FIRST &&
           cp < EBB_EDITOR_FIRST + EBB_EDITOR_PRIVATE;
}

/* In one pass: a paste may be nothing but such code points. */
static void replace_marks(ebb_buf *b, size_t start)
{
    size_t to = start;

    for (size_t from = start; from < b->len;) {
        if (is_mark_of_paste(b->data + from, b->len - from)) {
            memcpy(b->data + to, "\xEF\xBF\xBD", 3);
            to += 3;
            from += 4;
        } else {
            b->data[to++] = b->data[from++];
        }
    }
    ebb_buf_remove(b, to, b->len - to);
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
    replace_marks(out, start);
}

/* Lines that end with CR LF, of a file or an editor, end as typed ones do. */
static void unify_line_ends(ebb_buf *b)
{
    size_t to = 0;

    for (size_t from = 0; from < b->len; from++)
        if (b->data[from] != '\r' || from + 1 == b->len || b->data[from + 1] != '\n')
            b->data[to++] = b->data[from];
    ebb_buf_remove(b, to, b->len - to);
}

void ebb_editor_insert(ebb_editor *e, const char *s, size_t n)
{
    ebb_buf clean = { 0 };

    add_clean(&clean, s, n);
    unify_line_ends(&clean);                     /* what is folded is not shown, and stays what it was */
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

    if (e->n_pastes == EBB_EDITOR_PASTES)
        return false;
    if (e->n_pastes < e->cap_pastes)
        return true;
    pastes = realloc(e->pastes, cap * sizeof *pastes);
    if (!pastes)
        return false;
    e->pastes = pastes;
    e->cap_pastes = cap;
    return true;
}

/* n_pastes: there is none of this text. */
static size_t find_paste(const ebb_editor *e, const ebb_buf *text)
{
    size_t i = 0;

    while (i < e->n_pastes &&
           (e->pastes[i].n_bytes != text->len || memcmp(e->pastes[i].text, ebb_buf_text(text), text->len) != 0))
        i++;
    return i;
}

/* Which one has this text, that is taken; SIZE_MAX: there are too many.  What is there already, as what the history or
 * the ring brings back is, is kept once. */
static size_t keep_paste(ebb_editor *e, ebb_buf *text)
{
    size_t i = find_paste(e, text);

    if (i < e->n_pastes)
        return i;
    if (!has_room_for_paste(e))
        return SIZE_MAX;
    e->pastes[i] = (ebb_paste){ .n_bytes = text->len, .n_lines = count_lines(ebb_buf_text(text), text->len) };
    e->pastes[e->n_pastes++].text = ebb_buf_take(text);
    return i;
}

/* false: there are too many; it is inserted as it is. */
static bool add_folded(ebb_editor *e, const char *s, size_t n)
{
    char mark[EBB_MARK_BYTES];
    ebb_buf clean = { 0 };
    size_t i = 0;

    add_clean(&clean, s, n);
    if (!clean.failed)
        i = keep_paste(e, &clean);
    if (i == SIZE_MAX) {
        ebb_editor_insert(e, s, n);
    } else if (!clean.failed) {
        ebb_utf8_encode(EBB_EDITOR_FIRST + (uint32_t)i, mark);
        ebb_editor_replace(e, e->caret, 0, mark, EBB_MARK_BYTES);
    }
    ebb_buf_fini(&clean);
    return i != SIZE_MAX;
}

bool ebb_editor_paste(ebb_editor *e, const char *s, size_t n)
{
    if (n >= FOLD_BYTES || count_lines(s, n) >= FOLD_LINES)
        return add_folded(e, s, n);
    ebb_editor_insert(e, s, n);
    return false;
}

/* -- Marked text --------------------------------------------------------------------------- */

/* The slash and the name that a huge command begins with: what is folded begins none. */
static size_t length_of_name(const char *s)
{
    size_t n = 0;

    if (s[0] != '/')
        return 0;
    while (n < NAME_BYTES && !strchr(" \t\n", s[n]))
        n++;
    return n < NAME_BYTES ? n : 1;
}

static void insert_typed(ebb_editor *e, const char *s, size_t n)
{
    size_t n_name = n > HUGE_BYTES ? length_of_name(s) : n;

    ebb_editor_insert(e, s, n_name);
    if (n > n_name)
        add_folded(e, s + n_name, n - n_name);
}

void ebb_editor_insert_marked(ebb_editor *e, const char *s, size_t n)
{
    bool was_grouped = e->is_grouped, is_paste = false;

    ebb_editor_group(e, true);
    while (n > 0) {
        size_t len = ebb_marked_next(s, n), skip = len < n ? EBB_MARK_BYTES : 0;

        if (is_paste && len > 0)                 /* what cannot be folded may name files from now on */
            e->is_given = (!add_folded(e, s, len) && memchr(s, '@', len)) || e->is_given;
        else
            insert_typed(e, s, len);
        is_paste = ebb_marked_begins(s + len, n - len);
        s += len + skip;
        n -= len + skip;
    }
    ebb_editor_group(e, was_grouped);
}

void ebb_editor_set(ebb_editor *e, const char *s, size_t n)
{
    e->caret = 0;
    e->last = EBB_EDIT_OTHER;
    ebb_editor_replace(e, 0, e->text.len, "", 0);
    e->caret = 0;
    ebb_editor_insert_marked(e, s, n);
    e->caret = e->text.len;
}

/* Without the line ends behind it, which editors add and take away. */
static size_t length_of_lines(const ebb_paste *p)
{
    size_t n = p->n_bytes;

    while (n > 0 && p->text[n - 1] == '\n')
        n--;
    return n;
}

/* An empty line behind it, as attached files have one, is a part of it if it is still there. */
static size_t length_with_empty_line(const ebb_paste *p, size_t len, const char *s, size_t n)
{
    size_t n_ends = p->n_bytes - len;

    return n_ends > 1 && n_ends <= n - len && memcmp(s + len, p->text + len, n_ends) == 0 ? p->n_bytes : len;
}

static void add_folded_marked(ebb_buf *out, const char *s, size_t n)
{
    ebb_buf_adds(out, EBB_MARK_BEGIN);
    ebb_buf_add(out, s, n);
    ebb_buf_adds(out, EBB_MARK_END);
}

/* What is between pastes, s[from..to): up to n_front it is folded. */
static void add_between(ebb_buf *out, const char *s, size_t from, size_t to, size_t n_front)
{
    size_t end = to < n_front ? to : n_front;

    if (from < end)
        add_folded_marked(out, s + from, end - from);
    from = from < end ? end : from;
    ebb_buf_add(out, s + from, to - from);
}

bool ebb_editor_set_edited(ebb_editor *e, const char *s, size_t n, size_t n_front)
{
    ebb_buf marked = { 0 };
    size_t from = 0, i, len;
    bool is_whole = true;

    for (size_t at = 0; at < e->text.len; at++) {
        const char *found;

        i = ebb_editor_paste_at(e, e->text.data + at, e->text.len - at);
        if (i == SIZE_MAX)
            continue;
        len = length_of_lines(&e->pastes[i]);
        found = from < n ? memmem(s + from, n - from, e->pastes[i].text, len) : NULL;
        is_whole = is_whole && found;
        if (!found)
            continue;
        len = length_with_empty_line(&e->pastes[i], len, found, n - (size_t)(found - s));
        add_between(&marked, s, from, (size_t)(found - s), n_front);
        add_folded_marked(&marked, found, len);
        from = (size_t)(found - s) + len;
    }
    add_between(&marked, s, from, n, n_front);
    if (marked.failed)
        ebb_editor_set(e, s, n);
    else
        ebb_editor_set(e, ebb_buf_text(&marked), marked.len);
    is_whole = is_whole && !marked.failed;
    ebb_buf_fini(&marked);
    return is_whole;
}

static bool add_with_pastes(const ebb_editor *e, const char *s, size_t n, bool is_marked, ebb_buf *out)
{
    for (size_t at = 0, len; at < n; at += len) {
        size_t i = ebb_editor_paste_at(e, s + at, n - at);

        len = i < e->n_pastes ? EBB_MARK_BYTES : 1;
        if (i >= e->n_pastes) {
            ebb_buf_addc(out, s[at]);
            continue;
        }
        ebb_buf_adds(out, is_marked ? EBB_MARK_BEGIN : "");
        ebb_buf_add(out, e->pastes[i].text, e->pastes[i].n_bytes);
        ebb_buf_adds(out, is_marked ? EBB_MARK_END : "");
    }
    return !out->failed;
}

bool ebb_editor_add_marked(const ebb_editor *e, const char *s, size_t n, ebb_buf *out)
{
    return add_with_pastes(e, s, n, true, out);
}

bool ebb_editor_marked(const ebb_editor *e, ebb_buf *out)
{
    return add_with_pastes(e, ebb_buf_text(&e->text), e->text.len, true, out);
}

bool ebb_editor_text(const ebb_editor *e, ebb_buf *out)
{
    return add_with_pastes(e, ebb_buf_text(&e->text), e->text.len, false, out);
}
