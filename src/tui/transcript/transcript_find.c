/* Searching the transcript, and going by message (transcript.h). */

#include "transcript/transcript_impl.h"

void ebb_transcript_find(ebb_transcript *t, const char *s, size_t n)
{
    ebb_pattern_set(&t->find, s, n);
    t->n_hit = 0;
}

/* Scroll the window so that the hit is in its upper third. */
static void show_hit(ebb_transcript *t)
{
    ebb_item *it = &t->items[t->hit_item];
    size_t row;

    ebb_item_text_rows(t, it);
    row = it->n_head + ebb_wrap_find(&it->wrap, (uint32_t)t->hit_at);
    t->is_bottom = false;
    t->top = (ebb_row_pos){ t->hit_item, row };
    ebb_transcript_scroll(t, -t->height / 3);
}

/* In item i, from byte `at` on or back. */
static bool find_in(ebb_transcript *t, size_t i, int direction, size_t at)
{
    ebb_item *it = &t->items[i];
    bool had_rows = it->wrap.n_rows > 0;
    size_t len = 0, found;

    ebb_item_text_rows(t, it);
    found = direction < 0 ? ebb_pattern_find_last(&t->find, ebb_buf_text(&it->wrap.visible), it->wrap.n_faced, at, &len)
                          : ebb_pattern_find(&t->find, ebb_buf_text(&it->wrap.visible), it->wrap.n_faced, at, &len);
    if (found == SIZE_MAX) {
        if (!had_rows && it->is_done)
            ebb_item_drop_rows(it);
        return false;
    }
    t->hit_item = i;
    t->hit_at = found;
    t->n_hit = len;
    return true;
}

/* The last item of which the window shows something. */
static size_t last_shown(ebb_transcript *t)
{
    ebb_row_pos end = t->is_bottom ? ebb_transcript_above_end(t, 0) : ebb_transcript_moved(t, t->top, t->height - 1);

    return end.item < t->n_items ? end.item : t->n_items - 1;
}

void ebb_transcript_bare(ebb_transcript *t, ebb_buf *out)
{
    ebb_row_pos first = t->is_bottom ? ebb_transcript_above_end(t, (size_t)t->height) : t->top;

    for (size_t i = first.item; i < t->n_items && i <= last_shown(t); i++) {
        const ebb_item *it = &t->items[i];
        if (it->is_message) {
            const ebb_message *m = ebb_chat_message(t->chat, it->index);
            ebb_buf_add(out, m->text, m->n_text);
        } else {
            ebb_buf_add(out, ebb_buf_text(&it->text), it->text.len);
        }
        ebb_buf_adds(out, "\n\n");
    }
}

bool ebb_transcript_find_next(ebb_transcript *t, int direction, bool anew)
{
    size_t i, at;

    if (t->n_items == 0 || t->find.n == 0)
        return false;
    anew = anew || t->n_hit == 0 || t->hit_item >= t->n_items;
    i = anew ? last_shown(t) : t->hit_item;
    at = anew ? SIZE_MAX : direction < 0 ? t->hit_at : t->hit_at + t->n_hit;
    for (;;) {
        if (find_in(t, i, anew ? -1 : direction, at)) {
            show_hit(t);
            return true;
        }
        if (anew || direction < 0) {
            if (i-- == 0)
                return false;
            at = SIZE_MAX;
        } else {
            if (++i == t->n_items)
                return false;
            at = 0;
        }
    }
}

/* Where the next one is looked for: beside the selected one, else at the end, else at the window's top. */
static ebb_row_pos from_selected(const ebb_transcript *t, int direction)
{
    ebb_row_pos p = t->top;

    for (size_t i = 0; t->selected && i < t->n_items; i++)
        if (t->items[i].is_message && t->items[i].index + 1 == t->selected) {
            p = (ebb_row_pos){ i, 0 };
            break;
        }
    if (!t->selected && t->is_bottom && direction < 0 && t->n_items > 0)
        p = (ebb_row_pos){ t->n_items - 1, 1 };
    if (direction < 0 && p.row == 0 && p.item > 0)
        p.item--;
    if (direction > 0)
        p.item++;
    return p;
}

void ebb_transcript_message(ebb_transcript *t, int direction)
{
    ebb_row_pos p;

    ebb_transcript_scroll(t, 0);                 /* from the bottom: the place of its first row */
    p = from_selected(t, direction);
    while (p.item > 0 && p.item < t->n_items && !t->items[p.item].is_message)
        p.item += direction < 0 ? -1 : 1;
    p.row = 0;
    if (p.item >= t->n_items) {
        ebb_transcript_end(t);
        t->selected = 0;
        return;
    }
    t->selected = t->items[p.item].is_message ? t->items[p.item].index + 1 : 0;
    t->top = p;
    t->is_bottom = false;
    ebb_transcript_scroll(t, 0);
}
