/* The transcript as rows that move to the scrollback once (transcript.h): for a terminal that
 * keeps them itself.  A row moves when nothing can change it any more. */
#include "transcript/transcript_impl.h"

enum { ROWS_AT_A_TIME = 400 };

/* The item of the last answer; n_items: there is none. */
static size_t last_answer_item(const ebb_transcript *t)
{
    size_t i = t->n_items;

    while (i > 0 && !t->items[i - 1].is_message)
        i--;
    return i > 0 && t->items[i - 1].role == EBB_ROLE_ASSISTANT ? i - 1 : t->n_items;
}

/* A complete answer is continued: its new rows have to move to the scrollback, too.  Notices that
 * followed the answer are there already. */
static void reopen_last_answer(ebb_transcript *t)
{
    ebb_scrollback *h = &t->scrollback;
    size_t i = last_answer_item(t);
    uint32_t at;

    if (i >= h->item || h->has_head)
        return;
    at = (uint32_t)t->items[i].wrap.n_faced;
    ebb_item_text_rows(t, &t->items[i]);
    if (t->items[i].is_done)
        return;
    ebb_transcript_drop(t, i + 1, h->item - i - 1);
    *h = (ebb_scrollback){ .item = i, .has_head = true, .at = at };
    t->items[i].is_cut = true;
}

static bool is_empty(const ebb_row *r)
{
    return r->start == r->end;
}

/* Text rows of a growing item that later text cannot change. */
static size_t fixed_rows(const ebb_wrap *w)
{
    size_t n = 0;

    while (n + 1 < w->n_rows && (!w->is_rendered || w->rows[n].end < w->stable))
        n++;
    while (n > 0 && is_empty(&w->rows[n - 1]))
        n--;                                     /* blank rows at the text's end are not shown */
    return n;
}

/* Rows of item i that are fixed, head included; *is_whole: all of it. */
static size_t fixed_of(ebb_transcript *t, size_t i, bool is_end, bool *is_whole)
{
    ebb_item *it = &t->items[i];
    size_t n = ebb_item_rows(t, i);

    *is_whole = !it->is_message || it->is_done || is_end;
    if (*is_whole)
        return n;
    n = fixed_rows(&it->wrap);
    return n > 0 ? it->n_head + n : 0;
}

static void find_from(ebb_transcript *t, ebb_flow *f)
{
    const ebb_scrollback *h = &t->scrollback;

    f->from = (ebb_row_pos){ h->item, h->n_head };
    if (h->item < t->n_items && h->has_head) {
        ebb_item *it = &t->items[h->item];
        ebb_item_rows(t, h->item);
        f->from.row = it->n_head + ebb_wrap_find(&it->wrap, h->at);
        f->from_at = h->at;
    }
}

/* How far item i goes, whose rows from `row` to `n` may: a long one in several steps, because the cells of all its
 * rows would be a thousand times its text.  Its last rows, which are no text, go together. */
static size_t rows_of_step(ebb_transcript *t, size_t i, size_t row, size_t n, size_t most)
{
    ebb_item *it = &t->items[i];
    size_t end = ebb_item_text_rows(t, it) + it->n_head;

    return n - row > most && row + most < end ? row + most : n;
}

/* The byte that row `row` of an item begins with; 0 in its head. */
static uint32_t byte_of_row(const ebb_item *it, size_t row)
{
    return row < it->n_head ? 0 : it->wrap.rows[row - it->n_head].start;
}

ebb_flow ebb_transcript_flow(ebb_transcript *t, int width, bool is_end)
{
    ebb_flow f = { 0 };
    size_t row, i;
    bool is_whole = true;

    ebb_transcript_set_width(t, width);
    if (!is_end)
        reopen_last_answer(t);
    find_from(t, &f);
    f.fixed = f.from;
    f.fixed_at = f.from_at;
    for (i = f.from.item, row = f.from.row; i < t->n_items && is_whole && f.n_fixed < ROWS_AT_A_TIME; i++, row = 0) {
        size_t n = fixed_of(t, i, is_end, &is_whole), step;
        if (n > row) {
            step = rows_of_step(t, i, row, n, ROWS_AT_A_TIME - f.n_fixed);
            is_whole = is_whole && step == n;
            n = step;
            f.n_fixed += n - row;
            f.fixed = is_whole ? (ebb_row_pos){ i + 1, 0 } : (ebb_row_pos){ i, n };
            f.fixed_at = is_whole ? 0 : byte_of_row(&t->items[i], n);
        }
    }
    for (i = f.fixed.item; i < t->n_items && f.n_tail < ROWS_AT_A_TIME; i++) {
        size_t n = ebb_item_rows(t, i);
        f.n_tail += i == f.fixed.item ? n - f.fixed.row : n;
    }
    return f;
}

void ebb_transcript_flow_draw(ebb_transcript *t, ebb_term *term, const ebb_flow *f, int row, size_t n_tail)
{
    int end = row + (int)f->n_fixed;
    ebb_row_pos p = f->fixed;

    ebb_transcript_draw_from(t, term, f->from, f->from_at, row, end);
    if (n_tail == 0)
        return;
    if (f->n_tail > n_tail)
        p = ebb_transcript_moved(t, p, (int)(f->n_tail - n_tail));
    ebb_transcript_draw_from(t, term, p, f->n_tail > n_tail ? 0 : f->fixed_at, end, end + (int)n_tail);
}

void ebb_transcript_flow_commit(ebb_transcript *t, const ebb_flow *f)
{
    ebb_scrollback *h = &t->scrollback;

    if (f->n_fixed == 0)
        return;
    for (size_t i = h->item; i < f->fixed.item && i < t->n_items; i++) {
        t->items[i].is_cut = false;
        if (i != last_answer_item(t))            /* which may go on */
            ebb_item_drop_rows(&t->items[i]);
    }
    *h = (ebb_scrollback){ .item = f->fixed.item, .n_head = f->fixed.row, .at = f->fixed_at };
    if (f->fixed.row == 0)
        return;
    h->has_head = f->fixed.row >= t->items[h->item].n_head;
    if (h->has_head)
        h->n_head = 0;
    t->items[h->item].is_cut = true;
}

size_t ebb_transcript_flow_skip(ebb_transcript *t, int width, size_t rows)
{
    size_t passed;
    ebb_row_pos p;

    ebb_transcript_set_width(t, width);
    p = ebb_transcript_above_end(t, rows);
    if (t->scrollback.has_head || p.item <= t->scrollback.item)
        return 0;
    passed = p.item - t->scrollback.item;
    t->scrollback.item = p.item;
    return passed;
}
