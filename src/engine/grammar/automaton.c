/* Steps and ranges of bytes: what a compiled grammar consists of (automaton.h). */
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"

enum { MOST_STEPS = 1 << 19, MOST_RANGES = 1 << 20 };
enum { LAST_CHAR = 0x10FFFF, SURROGATES = 0xD800, SURROGATES_END = 0xDFFF };

ebb_grammar *ebb_grammar_share(const ebb_grammar *g)
{
    ebb_grammar *shared = (ebb_grammar *)(uintptr_t)g;

    atomic_fetch_add(&shared->n_owners, 1);      /* all else of it is constant */
    return shared;
}

void ebb_grammar_free(ebb_grammar *g)
{
    if (!g || atomic_fetch_sub(&g->n_owners, 1) > 1)
        return;
    free(g->steps);
    free(g->ranges);
    free(g->rules);
    free(g);
}

size_t ebb_grammar_bytes(const ebb_grammar *g)
{
    return g ? sizeof *g + g->cap_steps * sizeof *g->steps + g->cap_ranges * sizeof *g->ranges +
               g->cap_rules * sizeof *g->rules : 0;
}

static void *shrink(void *list, size_t n, size_t *cap, size_t size)
{
    void *p = n > 0 && n < *cap ? realloc(list, n * size) : NULL;

    if (p)
        *cap = n;
    return p ? p : list;
}

void ebb_grammar_shrink(ebb_grammar *g)
{
    g->steps = shrink(g->steps, g->n_steps, &g->cap_steps, sizeof *g->steps);
    g->ranges = shrink(g->ranges, g->n_ranges, &g->cap_ranges, sizeof *g->ranges);
    g->rules = shrink(g->rules, g->n_rules, &g->cap_rules, sizeof *g->rules);
}

bool ebb_grammar_is_full(const ebb_grammar *g)
{
    return g->n_steps >= MOST_STEPS || g->n_ranges >= MOST_RANGES;
}

uint32_t ebb_grammar_add_step(ebb_grammar *g, ebb_step_kind kind, uint32_t a, uint32_t b)
{
    ebb_step *p = g->n_steps < MOST_STEPS ? ebb_grow(g->steps, g->n_steps, &g->cap_steps, sizeof *p) : NULL;

    if (!p)
        return EBB_GRAMMAR_NONE;
    g->steps = p;
    p[g->n_steps] = (ebb_step){ .kind = (uint8_t)kind, .a = a, .b = b };
    return (uint32_t)g->n_steps++;
}

static bool add_range(ebb_grammar *g, uint8_t first, uint8_t last, uint32_t to)
{
    ebb_byte_range *p = g->n_ranges < MOST_RANGES ? ebb_grow(g->ranges, g->n_ranges, &g->cap_ranges, sizeof *p) : NULL;

    if (!p)
        return false;
    g->ranges = p;
    p[g->n_ranges++] = (ebb_byte_range){ .first = first, .last = last, .to = to };
    return true;
}

uint32_t ebb_grammar_add_byte(ebb_grammar *g, uint8_t byte, uint32_t to)
{
    uint32_t at = (uint32_t)g->n_ranges;

    return add_range(g, byte, byte, to) ? ebb_grammar_add_step(g, EBB_STEP_BYTES, at, 1) : EBB_GRAMMAR_NONE;
}

/* -- Characters as bytes ------------------------------------------------------------ */

/* A range of characters whose encodings are every combination of a byte of each range of bytes. */
typedef struct byte_box {
    uint8_t first[4], last[4];
    size_t  n;
} byte_box;

typedef struct box_list {
    byte_box *box;
    size_t    n, cap;
} box_list;

static bool add_box(box_list *l, uint32_t first, uint32_t last)
{
    byte_box *p = ebb_grow(l->box, l->n, &l->cap, sizeof *p);
    char a[4], b[4];

    if (!p)
        return false;
    l->box = p;
    p += l->n++;
    p->n = ebb_utf8_encode(first, a);
    ebb_utf8_encode(last, b);
    for (size_t i = 0; i < p->n; i++) {
        p->first[i] = (uint8_t)a[i];
        p->last[i] = (uint8_t)b[i];
    }
    return true;
}

/* The last character from `first` to `last` up to which the encodings are one box: they have one length, and where
 * one byte is a range, all behind it are full ranges. */
static uint32_t box_end(uint32_t first, uint32_t last)
{
    static const uint32_t longest[] = { 0x7F, 0x7FF, SURROGATES - 1, 0xFFFF };

    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++)
        if (first <= longest[i] && last > longest[i])
            last = longest[i];
    for (uint32_t low = first < 0x80 ? 0 : 0x3F; low && low < last; low = low << 6 | 0x3F) {
        if ((first & ~low) == (last & ~low))
            break;
        if (first & low)
            return first | low;
        if ((last & low) != low)
            last = (last & ~low) - 1;
    }
    return last;
}

static bool add_boxes(box_list *l, uint32_t first, uint32_t last)
{
    while (first <= last) {
        uint32_t end;

        if (first >= SURROGATES && first <= SURROGATES_END) {
            first = SURROGATES_END + 1;
            continue;
        }
        end = box_end(first, last);
        if (!add_box(l, first, end))
            return false;
        first = end + 1;
    }
    return true;
}

/* Steps that read the bytes of a box behind its first one; many boxes end alike. */
static uint32_t add_box_tail(ebb_grammar *g, const byte_box *box, uint32_t to, uint32_t full[4])
{
    for (size_t i = box->n; i-- > 1;) {
        size_t n_behind = box->n - i;
        bool is_full = true;
        uint32_t at = (uint32_t)g->n_ranges;

        for (size_t k = i; k < box->n; k++)
            is_full = is_full && box->first[k] == 0x80 && box->last[k] == 0xBF;
        if (is_full && full[n_behind] != EBB_GRAMMAR_NONE) {
            to = full[n_behind];
            continue;
        }
        if (!add_range(g, box->first[i], box->last[i], to))
            return EBB_GRAMMAR_NONE;
        to = ebb_grammar_add_step(g, EBB_STEP_BYTES, at, 1);
        if (to == EBB_GRAMMAR_NONE)
            return EBB_GRAMMAR_NONE;
        if (is_full)
            full[n_behind] = to;
    }
    return to;
}

static uint32_t add_box_list(ebb_grammar *g, const box_list *l, uint32_t to)
{
    uint32_t full[4] = { EBB_GRAMMAR_NONE, EBB_GRAMMAR_NONE, EBB_GRAMMAR_NONE, EBB_GRAMMAR_NONE }, at;
    uint32_t *tails = calloc(l->n + 1, sizeof *tails);
    bool ok = tails != NULL;

    for (size_t i = 0; ok && i < l->n; i++)
        ok = (tails[i] = add_box_tail(g, &l->box[i], to, full)) != EBB_GRAMMAR_NONE;
    at = (uint32_t)g->n_ranges;
    for (size_t i = 0; ok && i < l->n; i++)
        ok = add_range(g, l->box[i].first[0], l->box[i].last[0], tails[i]);
    free(tails);
    return ok ? ebb_grammar_add_step(g, EBB_STEP_BYTES, at, (uint32_t)l->n) : EBB_GRAMMAR_NONE;
}

uint32_t ebb_grammar_add_chars(ebb_grammar *g, const uint32_t *ranges, size_t n, uint32_t to)
{
    box_list l = { 0 };
    uint32_t step;
    bool ok = true;

    for (size_t i = 0; ok && i < n; i++)
        ok = add_boxes(&l, ranges[2 * i], ranges[2 * i + 1] < LAST_CHAR ? ranges[2 * i + 1] : LAST_CHAR);
    step = ok ? add_box_list(g, &l, to) : EBB_GRAMMAR_NONE;
    free(l.box);
    return step;
}
