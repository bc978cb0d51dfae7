#include "template/strings.h"

#include <string.h>

#include "base/utf8.h"

enum { FIND_PIECE = 1 << 16 };                   /* places at which a search looks between two looks at the clock */

/* -- Making ------------------------------------------------------------------------ */

static tpl_taint *taints_new(tpl_vm *vm, size_t n, tpl_taint taint)
{
    tpl_taint *m = ebb_tpl_alloc_array(vm, n, sizeof *m);

    for (size_t i = 0; i < n; i++)
        m[i] = taint;
    return m;
}

static tpl_str *wrap(tpl_vm *vm, const char *p, size_t n, const tpl_taint *taint)
{
    tpl_str *s = ebb_tpl_alloc(vm, sizeof *s);

    *s = (tpl_str){ .p = p, .n = n, .n_cp = SIZE_MAX, .taint = taint };
    return s;
}

tpl_str *ebb_tpl_str_new(tpl_vm *vm, const char *p, size_t n, tpl_taint taint)
{
    char *copy = ebb_tpl_alloc(vm, n);

    if (n)
        memcpy(copy, p, n);
    return wrap(vm, copy, n, taint ? taints_new(vm, n, taint) : NULL);
}

tpl_str *ebb_tpl_str_cut(tpl_vm *vm, const tpl_str *s, size_t from, size_t to)
{
    return wrap(vm, s->p + from, to - from, s->taint ? s->taint + from : NULL);
}

/* The new string has spare capacity, so that `ns.text = ns.text + x` in a loop stays linear. */
static tpl_str *concat_in_place(tpl_vm *vm, const tpl_str *a, const tpl_str *b, size_t n)
{
    size_t cap = n < 256 ? n : 2 * n;
    char *p = ebb_tpl_alloc(vm, cap);
    tpl_taint *taint = NULL;

    memcpy(p, a->p, a->n);
    memcpy(p + a->n, b->p, b->n);
    if (a->taint || b->taint || (vm->tracks_taint && cap > n)) {
        taint = taints_new(vm, cap, 0);
        if (a->taint)
            memcpy(taint, a->taint, a->n * sizeof *taint);
        if (b->taint)
            memcpy(taint + a->n, b->taint, b->n * sizeof *taint);
    }
    if (cap > n) {
        vm->tail.end = p + n;
        vm->tail.taint_end = taint ? taint + n : NULL;
        vm->tail.capacity = cap - n;
    }
    return wrap(vm, p, n, taint);
}

tpl_str *ebb_tpl_concat(tpl_vm *vm, const tpl_str *a, const tpl_str *b)
{
    size_t n = a->n + b->n;

    if (b->n == 0)
        return wrap(vm, a->p, a->n, a->taint);
    if (a->n == 0)
        return wrap(vm, b->p, b->n, b->taint);
    ebb_tpl_step(vm, b->n / 64);
    if (a->p + a->n != vm->tail.end || b->n > vm->tail.capacity || (b->taint && !vm->tail.taint_end)) {
        ebb_tpl_step(vm, a->n / 64);
        return concat_in_place(vm, a, b, n);
    }
    memcpy(vm->tail.end, b->p, b->n);
    if (vm->tail.taint_end) {
        if (b->taint)
            memcpy(vm->tail.taint_end, b->taint, b->n * sizeof *b->taint);
        vm->tail.taint_end += b->n;
    }
    vm->tail.end += b->n;
    vm->tail.capacity -= b->n;
    return wrap(vm, a->p, n, a->taint);
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
    if (!sb->vm->tracks_taint && sb->p && ebb_tpl_heap_extend(&sb->vm->heap, sb->p, sb->cap, cap)) {
        sb->cap = cap;
        return;
    }
    p = ebb_tpl_alloc(sb->vm, cap);
    if (sb->p)
        memcpy(p, sb->p, sb->n);
    if (sb->vm->tracks_taint) {
        tpl_taint *taint = ebb_tpl_alloc_array(sb->vm, cap, sizeof *taint);
        if (sb->taint)
            memcpy(taint, sb->taint, sb->n * sizeof *taint);
        sb->taint = taint;
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
    if (sb->taint && s->taint)
        memcpy(sb->taint + sb->n, s->taint + from, n * sizeof *sb->taint);
    else if (sb->taint)
        memset(sb->taint + sb->n, 0, n * sizeof *sb->taint);
    sb->n += n;
}

void ebb_tpl_sb_add(tpl_sb *sb, const tpl_str *s)
{
    ebb_tpl_sb_part(sb, s, 0, s->n);
}

void ebb_tpl_sb_raw(tpl_sb *sb, const char *p, size_t n, tpl_taint taint)
{
    sb_reserve(sb, n);
    if (n)
        memcpy(sb->p + sb->n, p, n);
    for (size_t i = 0; sb->taint && i < n; i++)
        sb->taint[sb->n + i] = taint;
    sb->n += n;
}

void ebb_tpl_sb_puts(tpl_sb *sb, const char *text)
{
    ebb_tpl_sb_raw(sb, text, strlen(text), 0);
}

void ebb_tpl_sb_cp(tpl_sb *sb, uint32_t cp, tpl_taint taint)
{
    char b[4];

    ebb_tpl_sb_raw(sb, b, ebb_utf8_encode(cp, b), taint);
}

void ebb_tpl_sb_pad(tpl_sb *sb, size_t n, const char *fill)
{
    if (n > 1000000)
        ebb_tpl_fail(sb->vm, EBB_LIMIT, "a field is wider than a million characters");
    ebb_tpl_step(sb->vm, n / 8);
    for (; n > 0; n--)
        ebb_tpl_sb_puts(sb, fill);
}

tpl_str *ebb_tpl_sb_finish(tpl_sb *sb)
{
    tpl_str *s = wrap(sb->vm, sb->p ? sb->p : "", sb->n, sb->n ? sb->taint : NULL);

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

size_t ebb_tpl_str_cps(tpl_vm *vm, tpl_str *s)
{
    if (s->n_cp == SIZE_MAX)
        s->n_cp = ebb_tpl_str_to_cp(vm, s, s->n);
    return s->n_cp;
}

size_t ebb_tpl_str_at(tpl_vm *vm, tpl_str *s, size_t cp)
{
    size_t at = 0;

    if (ebb_tpl_str_cps(vm, s) == s->n || cp >= s->n_cp)
        return cp >= s->n_cp ? s->n : cp;
    for (; at < s->n; at++)
        if (((unsigned char)s->p[at] & 0xC0) != 0x80 && cp-- == 0)
            break;
    ebb_tpl_step(vm, at / 64);
    return at;
}

size_t ebb_tpl_str_to_cp(tpl_vm *vm, const tpl_str *s, size_t at)
{
    size_t n = 0;

    ebb_tpl_step(vm, at / 64);
    for (size_t i = 0; i < at; i++)
        n += ((unsigned char)s->p[i] & 0xC0) != 0x80;
    return n;
}

size_t ebb_tpl_str_next(tpl_vm *vm, size_t at, size_t len)
{
    size_t to = at + len;

    if (to / 64 != at / 64)
        ebb_tpl_step(vm, (to / 64 - at / 64) * 8);
    return to;
}

size_t ebb_tpl_str_find(tpl_vm *vm, const tpl_str *s, const tpl_str *what, size_t from, size_t to)
{
    if (from > to || what->n > to - from)
        return SIZE_MAX;
    if (what->n == 0)
        return from;
    /* In pieces, as memmem() takes long where the text almost has `what` everywhere; what was looked at counts, `what`
     * itself included, not the rest of the text. */
    for (size_t at = from; at + what->n <= to; at += FIND_PIECE) {
        size_t n = to - at - what->n < FIND_PIECE ? to - at : FIND_PIECE + what->n - 1;
        const char *hit = memmem(s->p + at, n, what->p, what->n);
        ebb_tpl_step(vm, 1 + (hit ? (size_t)(hit - s->p) - at + what->n : n) / 64);
        if (hit)
            return (size_t)(hit - s->p);
    }
    return SIZE_MAX;
}

size_t ebb_tpl_str_rfind(tpl_vm *vm, const tpl_str *s, const tpl_str *what, size_t from, size_t to)
{
    if (from > to || what->n > to - from)
        return SIZE_MAX;
    ebb_tpl_step(vm, 1 + what->n / 64);
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
