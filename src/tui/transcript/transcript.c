/* The list of items, and the window onto it (transcript.h). */
#include "transcript/transcript.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "transcript/transcript_impl.h"

/* Items that keep their rows while they are out of sight, and the memory that they have together. */
enum { KEPT_ITEMS = 64, KEPT_BYTES = 64 << 20 };

void ebb_transcript_init(ebb_transcript *t, const ebb_chat *chat, bool ascii)
{
    *t = (ebb_transcript){ .chat = chat, .ascii = ascii, .is_bottom = true, .n_entered = ebb_chat_generation(chat) };
}

void ebb_transcript_fini(ebb_transcript *t)
{
    for (size_t i = 0; i < t->n_items; i++)
        ebb_item_fini(&t->items[i]);
    free(t->items);
    ebb_pattern_fini(&t->find);
    memset(t, 0, sizeof *t);
}

static ebb_item *add_transcript_item(ebb_transcript *t)
{
    ebb_item *items = ebb_grow(t->items, t->n_items, &t->cap_items, sizeof *items), *it;

    if (!items)
        return NULL;
    t->items = items;
    it = &items[t->n_items++];
    memset(it, 0, sizeof *it);
    t->has_more = !t->is_bottom;
    return it;
}

/* -- Following the chat ---------------------------------------------------------- */

static bool is_same_message(const ebb_item *it, const ebb_message *m)
{
    size_t seen = it->wrap.n_raw + it->body;

    return it->role == m->role && it->created_ms == m->created_ms &&
           (it->is_done ? seen == 0 || seen == m->n_text : seen <= m->n_text);
}

void ebb_transcript_drop(ebb_transcript *t, size_t i, size_t n)
{
    if (n == 0)
        return;
    for (size_t k = i; k < i + n; k++) {
        t->n_messages -= t->items[k].is_message;
        ebb_item_fini(&t->items[k]);
    }
    if (i + n < t->n_items)                      /* there may be no items at all */
        memmove(t->items + i, t->items + i + n, (t->n_items - i - n) * sizeof *t->items);
    t->n_items -= n;
}

/* Items up to the first message that is no longer the chat's; lines about another session are of no use in this one. */
static void drop_differing(ebb_transcript *t)
{
    size_t n = ebb_chat_n_messages(t->chat), i;
    bool is_other = t->n_entered != ebb_chat_generation(t->chat);

    t->n_entered = ebb_chat_generation(t->chat);
    for (i = 0; i < t->n_items && !is_other; i++) {
        const ebb_item *it = &t->items[i];
        if (it->is_message && (it->index >= n || !is_same_message(it, ebb_chat_message(t->chat, it->index))))
            break;
    }
    if (t->scrollback.item > i || (t->scrollback.item == i && t->scrollback.has_head))
        t->scrollback = (ebb_scrollback){ .item = i, .is_gone = true };
    ebb_transcript_drop(t, i, t->n_items - i);
}

/* What the model no longer sees is dim. */
static void update_left_out(ebb_transcript *t)
{
    const ebb_message *note = ebb_chat_truncation_note(t->chat);

    for (size_t i = 0; i < t->n_items; i++) {
        ebb_item *it = &t->items[i];
        bool is_left_out = it->is_message && it->role != EBB_ROLE_SYSTEM && it->role != EBB_ROLE_NOTE &&
                           ebb_message_omits(note, it->index);
        if (is_left_out != it->is_left_out && !it->is_cut)
            ebb_item_drop_rows(it);
        it->is_left_out = is_left_out;
    }
}

void ebb_transcript_sync(ebb_transcript *t)
{
    drop_differing(t);
    for (size_t n = ebb_chat_n_messages(t->chat); t->n_messages < n; t->n_messages++) {
        const ebb_message *m = ebb_chat_message(t->chat, t->n_messages);
        ebb_item *it = add_transcript_item(t);
        if (!it)
            return;
        it->is_message = true;
        it->index = t->n_messages;
        it->role = m->role;
        it->created_ms = m->created_ms;
    }
    update_left_out(t);
    if (t->top.item >= t->n_items)
        ebb_transcript_end(t);
}

void ebb_transcript_say(ebb_transcript *t, ebb_say say, const char *text, size_t n)
{
    ebb_item *it = add_transcript_item(t);

    if (!it)
        return;
    it->say = say;
    it->is_done = true;
    ebb_buf_add(&it->text, text, n);
}

/* -- Moving ------------------------------------------------------------------------ */

ebb_row_pos ebb_transcript_above_end(ebb_transcript *t, size_t rows)
{
    size_t i = t->n_items, have = 0;

    if (rows > 0)
        rows++;                                  /* the last item's blank row stays below the edge */
    while (i > 0 && have < rows)
        have += ebb_item_rows(t, --i);
    return (ebb_row_pos){ i, have > rows ? have - rows : 0 };
}

ebb_row_pos ebb_transcript_moved(ebb_transcript *t, ebb_row_pos p, int rows)
{
    size_t up = rows < 0 ? (size_t)-(long)rows : 0, down = rows > 0 ? (size_t)rows : 0, n;

    for (; up > 0 && (p.row > 0 || p.item > 0); up -= n) {
        if (p.row == 0)
            p.row = ebb_item_rows(t, --p.item);
        n = up < p.row ? up : p.row;
        p.row -= n;
    }
    for (; down > 0 && p.item < t->n_items; down -= n) {
        size_t n_rows = ebb_item_rows(t, p.item), left = n_rows > p.row ? n_rows - p.row : 1;
        n = down < left ? down : left;
        p = n < left ? (ebb_row_pos){ p.item, p.row + n } : (ebb_row_pos){ p.item + 1, 0 };
    }
    return p;
}

static bool is_before(ebb_row_pos a, ebb_row_pos b)
{
    return a.item < b.item || (a.item == b.item && a.row < b.row);
}

static uint32_t byte_at(const ebb_transcript *t, ebb_row_pos p)
{
    const ebb_item *it = p.item < t->n_items ? &t->items[p.item] : NULL;

    if (!it || p.row < it->n_head || p.row - it->n_head >= it->wrap.n_rows)
        return 0;
    return it->wrap.rows[p.row - it->n_head].start;
}

void ebb_transcript_scroll(ebb_transcript *t, int rows)
{
    ebb_row_pos last = ebb_transcript_above_end(t, (size_t)(t->height > 0 ? t->height : 1));

    t->top = ebb_transcript_moved(t, t->is_bottom ? last : t->top, rows);
    t->is_bottom = !is_before(t->top, last);
    t->has_more = t->has_more && !t->is_bottom;
    t->top_at = byte_at(t, t->top);
}

void ebb_transcript_home(ebb_transcript *t)
{
    t->top = (ebb_row_pos){ 0, 0 };
    t->is_bottom = false;
    ebb_transcript_scroll(t, 0);
}

void ebb_transcript_end(ebb_transcript *t)
{
    t->is_bottom = true;
    t->has_more = false;
}

void ebb_transcript_show_last(ebb_transcript *t)
{
    if (t->n_items == 0 || t->width <= 0 || ebb_item_rows(t, t->n_items - 1) <= (size_t)t->height + 1)
        return;
    t->top = (ebb_row_pos){ t->n_items - 1, 0 };
    t->top_at = 0;
    t->is_bottom = t->has_more = false;
}

void ebb_transcript_set_raw(ebb_transcript *t, bool is_raw)
{
    t->is_raw = is_raw;
    for (size_t i = 0; i < t->n_items; i++)
        if (!t->items[i].is_cut)
            ebb_wrap_fini(&t->items[i].wrap);
    t->top.row = 0;
    t->top_at = 0;
}

void ebb_transcript_show_thoughts(ebb_transcript *t, bool shows)
{
    t->shows_thoughts = shows;
    for (size_t i = 0; i < t->n_items; i++)
        t->items[i].n_scanned = 0;
    t->top.row = 0;
    t->top_at = 0;
}

/* A new width: the byte at the window's top stays there. */
void ebb_transcript_set_width(ebb_transcript *t, int width)
{
    ebb_item *it = t->top.item < t->n_items ? &t->items[t->top.item] : NULL;

    if (t->width == width)
        return;
    t->width = width;
    if (it && !t->is_bottom) {
        ebb_item_text_rows(t, it);
        t->top.row = t->top_at > 0 ? it->n_head + ebb_wrap_find(&it->wrap, t->top_at) : 0;
    }
}

/* -- Drawing ------------------------------------------------------------------------- */

/* Rows of items that are done are evicted where there are many, or large ones; not of those in sight, first to last,
 * nor of those from `end` on, which say at every frame where the end is. */
static void drop_rows(ebb_transcript *t, size_t first, size_t last, size_t end)
{
    size_t n = 0, n_bytes = 0;

    for (size_t i = 0; i < t->n_items; i++)
        if ((i < first || i > last) && i < end && t->items[i].wrap.n_rows > 0) {
            n++;
            n_bytes += ebb_item_bytes(&t->items[i]);
        }
    for (size_t i = 0; i < t->n_items && i < end && (n > KEPT_ITEMS || n_bytes > KEPT_BYTES); i++)
        if ((i < first || i > last) && t->items[i].is_done && !t->items[i].is_cut && t->items[i].wrap.n_rows > 0) {
            n_bytes -= ebb_item_bytes(&t->items[i]);
            ebb_item_drop_rows(&t->items[i]);
            n--;
        }
}

ebb_row_pos ebb_transcript_draw_from(ebb_transcript *t, ebb_term *term, ebb_row_pos p, uint32_t at, int row, int end)
{
    for (; p.item < t->n_items && row < end; p.item++, p.row = 0, at = 0) {
        row = ebb_item_draw(t, &t->items[p.item], term, &p.row, at, row, end);
        if (row == end)
            return p;
        row++;                                   /* the blank one */
    }
    return p;
}

static bool is_growing(const ebb_transcript *t)
{
    const ebb_item *it = t->n_items > 0 ? &t->items[t->n_items - 1] : NULL;

    return it && it->is_message && !it->is_done;
}

/* The window's first row at the bottom.  Under a growing answer it moves by several rows at once: each move
 * draws the whole window anew, and text that does not move is easier to read. */
static ebb_row_pos top_at_bottom(ebb_transcript *t, ebb_row_pos last, int height)
{
    int jump = height / 6;
    ebb_row_pos slack;

    if (jump < 2 || !is_growing(t) || (last.item == 0 && last.row == 0))
        return last;
    slack = ebb_transcript_above_end(t, (size_t)(height - jump));
    if (is_before(t->top, last) || is_before(slack, t->top))
        return is_before(t->top, last) ? slack : last;
    return t->top;
}

void ebb_transcript_draw(ebb_transcript *t, ebb_term *term, int row, int height, int width)
{
    ebb_row_pos last, p;

    ebb_transcript_set_width(t, width);
    t->height = height;
    if (height <= 0 || width <= 0)
        return;
    last = ebb_transcript_above_end(t, (size_t)height);
    if (t->is_bottom || !is_before(t->top, last)) {
        ebb_transcript_end(t);
        t->top = top_at_bottom(t, last, height);
    }
    p = ebb_transcript_draw_from(t, term, t->top, 0, row, row + height);
    drop_rows(t, t->top.item, p.item, last.item);
}
