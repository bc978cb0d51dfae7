#include "template/strings.h"

#include <string.h>

#include "base/utf8.h"

/* -- Making ------------------------------------------------------------------------ */

static tpl_mark *marks_new(tpl_vm *vm, size_t n, tpl_mark mark)
{
    tpl_mark *m = ebb_tpl_take_array(vm, n, sizeof *m);

    for (size_t i = 0; i < n; i++)
        m[i] = mark;
    return m;
}

static tpl_str *wrap(tpl_vm *vm, const char *p, size_t n, const tpl_mark *mark)
{
    tpl_str *s = ebb_tpl_take(vm, sizeof *s);

    *s = (tpl_str){ .p = p, .n = n, .n_cp = SIZE_MAX, .mark = mark };
    return s;
}

tpl_str *ebb_tpl_str_new(tpl_vm *vm, const char *p, size_t n, tpl_mark mark)
{
    char *copy = ebb_tpl_take(vm, n);

    if (n)
        memcpy(copy, p, n);
    return wrap(vm, copy, n, mark ? marks_new(vm, n, mark) : NULL);
}

tpl_str *ebb_tpl_str_cut(tpl_vm *vm, const tpl_str *s, size_t from, size_t to)
{
    return wrap(vm, s->p + from, to - from, s->mark ? s->mark + from : NULL);
}

/* The new string gets room to grow: `ns.text = ns.text + x` in a loop stays linear. */
static tpl_str *concat_with_room(tpl_vm *vm, const tpl_str *a, const tpl_str *b, size_t n)
{
    size_t cap = n < 256 ? n : 2 * n;
    char *p = ebb_tpl_take(vm, cap);
    tpl_mark *mark = NULL;

    memcpy(p, a->p, a->n);
    memcpy(p + a->n, b->p, b->n);
    if (a->mark || b->mark || (vm->marks && cap > n)) {
        mark = marks_new(vm, cap, 0);
        if (a->mark)
            memcpy(mark, a->mark, a->n * sizeof *mark);
        if (b->mark)
            memcpy(mark + a->n, b->mark, b->n * sizeof *mark);
    }
    if (cap > n) {
        vm->tail.end = p + n;
        vm->tail.mark_end = mark ? mark + n : NULL;
        vm->tail.room = cap - n;
    }
    return wrap(vm, p, n, mark);
}

tpl_str *ebb_tpl_concat(tpl_vm *vm, const tpl_str *a, const tpl_str *b)
{
    size_t n = a->n + b->n;

    if (b->n == 0)
        return wrap(vm, a->p, a->n, a->mark);
    if (a->n == 0)
        return wrap(vm, b->p, b->n, b->mark);
    ebb_tpl_step(vm, b->n / 64);
    if (a->p + a->n != vm->tail.end || b->n > vm->tail.room || (b->mark && !vm->tail.mark_end)) {
        ebb_tpl_step(vm, a->n / 64);
        return concat_with_room(vm, a, b, n);
    }
    memcpy(vm->tail.end, b->p, b->n);
    if (vm->tail.mark_end) {
        if (b->mark)
            memcpy(vm->tail.mark_end, b->mark, b->n * sizeof *b->mark);
        vm->tail.mark_end += b->n;
    }
    vm->tail.end += b->n;
    vm->tail.room -= b->n;
    return wrap(vm, a->p, n, a->mark);
}

void ebb_tpl_sb_init(tpl_sb *sb, tpl_vm *vm)
{
    *sb = (tpl_sb){ .vm = vm };
}

static void sb_reserve(tpl_sb *sb, size_t extra)
{
    size_t cap;
    char *p;

    if (extra <= sb->cap - sb->n)
        return;
    if (extra > sb->vm->max_output_bytes || sb->n > sb->vm->max_output_bytes - extra)
        ebb_tpl_fail(sb->vm, EBB_LIMIT, "more than %zu bytes of text", sb->vm->max_output_bytes);
    cap = sb->cap ? 2 * sb->cap : 48;
    cap = cap < sb->n + extra ? sb->n + extra : cap;
    if (!sb->vm->marks && sb->p && ebb_tpl_heap_extend(&sb->vm->heap, sb->p, sb->cap, cap)) {
        sb->cap = cap;
        return;
    }
    p = ebb_tpl_take(sb->vm, cap);
    if (sb->n)
        memcpy(p, sb->p, sb->n);
    if (sb->vm->marks) {
        tpl_mark *mark = ebb_tpl_take_array(sb->vm, cap, sizeof *mark);
        if (sb->n)
            memcpy(mark, sb->mark, sb->n * sizeof *mark);
        sb->mark = mark;
    }
    sb->p = p;
    sb->cap = cap;
}

void ebb_tpl_sb_part(tpl_sb *sb, const tpl_str *s, size_t from, size_t to)
{
    size_t n = to - from;

    sb_reserve(sb, n);
    ebb_tpl_step(sb->vm, n / 64);
    if (n)
        memcpy(sb->p + sb->n, s->p + from, n);
    if (sb->mark && s->mark)
        memcpy(sb->mark + sb->n, s->mark + from, n * sizeof *sb->mark);
    else if (sb->mark)
        memset(sb->mark + sb->n, 0, n * sizeof *sb->mark);
    sb->n += n;
}

void ebb_tpl_sb_add(tpl_sb *sb, const tpl_str *s)
{
    ebb_tpl_sb_part(sb, s, 0, s->n);
}

void ebb_tpl_sb_raw(tpl_sb *sb, const char *p, size_t n, tpl_mark mark)
{
    sb_reserve(sb, n);
    if (n)
        memcpy(sb->p + sb->n, p, n);
    for (size_t i = 0; sb->mark && i < n; i++)
        sb->mark[sb->n + i] = mark;
    sb->n += n;
}

void ebb_tpl_sb_puts(tpl_sb *sb, const char *text)
{
    ebb_tpl_sb_raw(sb, text, strlen(text), 0);
}

void ebb_tpl_sb_cp(tpl_sb *sb, uint32_t cp, tpl_mark mark)
{
    char b[4];

    ebb_tpl_sb_raw(sb, b, ebb_utf8_encode(cp, b), mark);
}

void ebb_tpl_sb_pad(tpl_sb *sb, size_t n, const char *fill)
{
    if (n > 1000000)
        ebb_tpl_fail(sb->vm, EBB_LIMIT, "a field is wider than a million characters");
    for (; n > 0; n--)
        ebb_tpl_sb_puts(sb, fill);
}

tpl_str *ebb_tpl_sb_take(tpl_sb *sb)
{
    tpl_str *s = wrap(sb->vm, sb->p ? sb->p : "", sb->n, sb->n ? sb->mark : NULL);

    ebb_tpl_sb_init(sb, sb->vm);
    return s;
}

/* -- Looking ------------------------------------------------------------------------ */

bool ebb_tpl_str_eq(const tpl_str *a, const tpl_str *b)
{
    return a->n == b->n && (a->p == b->p || memcmp(a->p, b->p, a->n) == 0);
}

bool ebb_tpl_str_is(const tpl_str *s, const char *text)
{
    return strlen(text) == s->n && memcmp(s->p, text, s->n) == 0;
}

int ebb_tpl_str_cmp(const tpl_str *a, const tpl_str *b)
{
    int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

    return c ? c : (a->n > b->n) - (a->n < b->n);
}

size_t ebb_tpl_str_cps(tpl_str *s)
{
    if (s->n_cp == SIZE_MAX) {
        size_t n = 0;
        for (size_t i = 0; i < s->n; i++)
            n += ((unsigned char)s->p[i] & 0xC0) != 0x80;
        s->n_cp = n;
    }
    return s->n_cp;
}

size_t ebb_tpl_str_at(tpl_str *s, size_t cp)
{
    size_t at = 0;

    if (ebb_tpl_str_cps(s) == s->n || cp >= s->n_cp)
        return cp >= s->n_cp ? s->n : cp;
    for (; at < s->n; at++)
        if (((unsigned char)s->p[at] & 0xC0) != 0x80 && cp-- == 0)
            break;
    return at;
}

size_t ebb_tpl_str_to_cp(const tpl_str *s, size_t at)
{
    size_t n = 0;

    for (size_t i = 0; i < at; i++)
        n += ((unsigned char)s->p[i] & 0xC0) != 0x80;
    return n;
}

size_t ebb_tpl_str_find(tpl_vm *vm, const tpl_str *s, const tpl_str *what, size_t from, size_t to)
{
    const char *hit;

    if (from > to || what->n > to - from)
        return SIZE_MAX;
    if (what->n == 0)
        return from;
    ebb_tpl_step(vm, (to - from) / 64);
    hit = memmem(s->p + from, to - from, what->p, what->n);
    return hit ? (size_t)(hit - s->p) : SIZE_MAX;
}

size_t ebb_tpl_str_rfind(tpl_vm *vm, const tpl_str *s, const tpl_str *what, size_t from, size_t to)
{
    if (from > to || what->n > to - from)
        return SIZE_MAX;
    for (size_t at = to - what->n + 1; at-- > from;) {
        if (at % 64 == 0)
            ebb_tpl_step(vm, 1 + what->n / 64);
        if (memcmp(s->p + at, what->p, what->n) == 0)
            return at;
    }
    return SIZE_MAX;
}

uint32_t ebb_tpl_str_cp(const tpl_str *s, size_t at, size_t *len)
{
    uint32_t cp;
    unsigned char c = (unsigned char)s->p[at];

    if (c < 0x80) {
        *len = 1;
        return c;
    }
    *len = ebb_utf8_decode(s->p + at, s->n - at, &cp);
    if (*len == 0) {
        *len = 1;
        return EBB_UTF8_BAD;
    }
    return cp;
}
