/* The text being typed: what is in it, pastes that stand for more, and undo (editor.h). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "edit/editor_impl.h"

enum { FOLD_BYTES = 1000, FOLD_LINES = 8, UNDO_MAX = 1000 };

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

static bool is_mark_of_paste(const char *s, size_t n)
{
    uint32_t cp;

    return n >= 4 && (unsigned char)s[0] == 0xF4 && ebb_utf8_decode(s, n, &cp) == 4 && cp >= EBB_EDITOR_FIRST &&
           cp < EBB_EDITOR_FIRST + EBB_EDITOR_PASTES;
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

bool ebb_editor_add_unfolded(const ebb_editor *e, const char *s, size_t n, ebb_buf *out)
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
    return ebb_editor_add_unfolded(e, ebb_buf_text(&e->text), e->text.len, out);
}
