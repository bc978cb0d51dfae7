/* Items, rows, and the window (transcript.h). */
#include "transcript.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "thought.h"
#include "transcript_priv.h"
#include "width.h"

/* Items that keep their rows while they are out of sight. */
enum { KEPT_ROWS = 64, THOUGHT_INDENT = 2 };

void ebb_transcript_init(ebb_transcript *t, const ebb_chat *chat, bool ascii)
{
    *t = (ebb_transcript){ .chat = chat, .ascii = ascii, .is_bottom = true, .n_entered = ebb_chat_n_entered(chat) };
}

static void item_fini(ebb_item *it)
{
    ebb_buf_fini(&it->text);
    ebb_wrap_fini(&it->wrap);
    ebb_wrap_fini(&it->receipt);
    ebb_wrap_fini(&it->label);
    ebb_wrap_fini(&it->thought);
}

void ebb_transcript_fini(ebb_transcript *t)
{
    for (size_t i = 0; i < t->n_items; i++)
        item_fini(&t->items[i]);
    free(t->items);
    ebb_pattern_fini(&t->find);
    memset(t, 0, sizeof *t);
}

static ebb_item *add_item(ebb_transcript *t)
{
    if (t->n_items == t->cap_items) {
        size_t cap = t->cap_items ? t->cap_items * 2 : 32;
        ebb_item *items = realloc(t->items, cap * sizeof *items);
        if (!items)
            return NULL;
        t->items = items;
        t->cap_items = cap;
    }
    ebb_item *it = &t->items[t->n_items++];
    memset(it, 0, sizeof *it);
    t->has_more = !t->is_bottom;
    return it;
}

/* -- Following the chat ---------------------------------------------------------- */

static bool is_same(const ebb_item *it, const ebb_message *m)
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
        item_fini(&t->items[k]);
    }
    if (i + n < t->n_items)                      /* there may be no items at all */
        memmove(t->items + i, t->items + i + n, (t->n_items - i - n) * sizeof *t->items);
    t->n_items -= n;
}

/* Items up to the first message that is no longer the chat's; lines about another session are of no use in this one. */
static void drop_differing(ebb_transcript *t)
{
    size_t n = ebb_chat_n_messages(t->chat), i;
    bool is_other = t->n_entered != ebb_chat_n_entered(t->chat);

    t->n_entered = ebb_chat_n_entered(t->chat);
    for (i = 0; i < t->n_items && !is_other; i++) {
        const ebb_item *it = &t->items[i];
        if (it->is_message && (it->index >= n || !is_same(it, ebb_chat_message(t->chat, it->index))))
            break;
    }
    if (t->handed.item > i || (t->handed.item == i && t->handed.has_head))
        t->handed = (ebb_handed){ .item = i, .is_gone = true };
    ebb_transcript_drop(t, i, t->n_items - i);
}

/* What the model no longer sees is dim. */
static void mark_left_out(ebb_transcript *t)
{
    const ebb_message *note = ebb_chat_deciding_note(t->chat);

    for (size_t i = 0; i < t->n_items; i++) {
        ebb_item *it = &t->items[i];
        bool is_left_out = it->is_message && it->role != EBB_ROLE_SYSTEM && it->role != EBB_ROLE_NOTE &&
                           ebb_message_leaves_out(note, it->index);
        if (is_left_out != it->is_left_out && !it->is_cut)
            ebb_item_forget(it);
        it->is_left_out = is_left_out;
    }
}

void ebb_transcript_sync(ebb_transcript *t)
{
    drop_differing(t);
    for (size_t n = ebb_chat_n_messages(t->chat); t->n_messages < n; t->n_messages++) {
        const ebb_message *m = ebb_chat_message(t->chat, t->n_messages);
        ebb_item *it = add_item(t);
        if (!it)
            return;
        it->is_message = true;
        it->index = t->n_messages;
        it->role = m->role;
        it->created_ms = m->created_ms;
    }
    mark_left_out(t);
    if (t->top.item >= t->n_items)
        ebb_transcript_end(t);
}

void ebb_transcript_say(ebb_transcript *t, ebb_say say, const char *text, size_t n)
{
    ebb_item *it = add_item(t);

    if (!it)
        return;
    it->say = say;
    it->is_done = true;
    ebb_buf_add(&it->text, text, n);
}

/* -- Rows -------------------------------------------------------------------------- */

typedef struct look {
    const char *first, *rest;    /* in front of the first row and of the others */
    ebb_face    mark, text;
    bool        has_markdown;
} look;

static look look_of(const ebb_item *it)
{
    static const look user = { "> ", "  ", EBB_FACE_PROMPT, EBB_FACE_USER, false };
    static const look model = { "", "", EBB_FACE_TEXT, EBB_FACE_MODEL, true };
    static const look system = { "system: ", "  ", EBB_FACE_SYSTEM, EBB_FACE_SYSTEM, false };
    static const look says[] = {
        [EBB_SAY_NOTICE] = { "* ", "  ", EBB_FACE_NOTICE, EBB_FACE_NOTICE, false },
        [EBB_SAY_ERROR] = { "! ", "  ", EBB_FACE_ERROR, EBB_FACE_ERROR, false },
        [EBB_SAY_TEXT] = { "  ", "  ", EBB_FACE_TEXT, EBB_FACE_TEXT, false },
        [EBB_SAY_PAGE] = { "  ", "  ", EBB_FACE_TEXT, EBB_FACE_TEXT, false },
    };

    if (!it->is_message)
        return says[it->say];
    if (it->role == EBB_ROLE_NOTE)
        return says[EBB_SAY_NOTICE];
    return it->role == EBB_ROLE_USER ? user : it->role == EBB_ROLE_ASSISTANT ? model : system;
}

static bool has_ended(const ebb_transcript *t, const ebb_item *it, const ebb_message *m)
{
    return m->finish != EBB_FINISH_NONE || m->role == EBB_ROLE_USER || m->role == EBB_ROLE_SYSTEM ||
           it->index + 1 < ebb_chat_n_messages(t->chat) || !ebb_chat_is_busy(t->chat);
}

/* "about 212 tokens": exact while nothing but the thought is there; later its share of all.  In words
 * where tokens are not known. */
static void add_length(ebb_buf *line, const ebb_message *m, const ebb_thought *thought)
{
    size_t n = thought->end - thought->start;

    if (m->n_ids == 0) {
        ebb_text_count(line, ebb_thought_words(m->text + thought->start, n));
        ebb_buf_adds(line, " words");
        return;
    }
    ebb_buf_adds(line, thought->is_open ? "" : "about ");
    ebb_text_count(line, thought->is_open ? m->n_ids : (m->n_ids * n + m->n_text / 2) / m->n_text);
    ebb_buf_adds(line, " tokens");
}

/* While it goes on the number grows. */
static void set_label(ebb_transcript *t, ebb_item *it, const ebb_message *m, const ebb_thought *thought)
{
    ebb_buf line = { 0 };

    ebb_buf_adds(&line, thought->is_open ? "thinking, " : "thought, ");
    add_length(&line, m, thought);
    ebb_buf_addf(&line, " (Ctrl-O %s)", t->shows_thoughts ? "folds" : "shows it");
    ebb_wrap_fini(&it->label);
    it->label.md.base = EBB_FACE_THINKING;
    ebb_wrap_text(&it->label, ebb_buf_text(&line), line.len, true);
    ebb_buf_fini(&line);
}

/* Thought and answer of a message that has grown. */
static void split_thought(ebb_transcript *t, ebb_item *it, const ebb_message *m)
{
    const char *s = m->text ? m->text : "";
    size_t n = m->n_text;
    ebb_thought thought;

    if (it->role != EBB_ROLE_ASSISTANT || it->n_looked == n + 1)
        return;
    thought = ebb_thought_find(s, n);
    if (it->body != thought.body)
        ebb_wrap_fini(&it->wrap);
    it->body = thought.body;
    it->n_looked = n + 1;
    if (thought.start == thought.end && !thought.is_open)
        return;
    set_label(t, it, m, &thought);
    it->thought.ascii = t->ascii;
    it->thought.md.base = EBB_FACE_THINKING;
    ebb_wrap_text(&it->thought, s + thought.start, thought.end - thought.start, !thought.is_open);
}

/* Rows in front of the answer, a blank one included. */
static size_t head_rows(ebb_transcript *t, ebb_item *it, bool has_body)
{
    if (it->label.n_raw == 0)
        return 0;
    ebb_wrap_rows(&it->label, t->width);
    if (t->shows_thoughts)
        ebb_wrap_rows(&it->thought, t->width - THOUGHT_INDENT);
    return it->label.n_rows + (t->shows_thoughts ? it->thought.n_rows : 0) + has_body;
}

/* Rows of the text, made for the window's width; trailing empty ones do not count. */
size_t ebb_item_text_rows(ebb_transcript *t, ebb_item *it)
{
    look l = look_of(it);
    const char *raw = ebb_buf_text(&it->text);
    size_t n = it->text.len, n_rows;

    if (it->is_message) {
        const ebb_message *m = ebb_chat_message(t->chat, it->index);
        it->is_done = has_ended(t, it, m);
        if (!it->is_done)
            ebb_wrap_fini(&it->receipt);         /* continued: it will cost more */
        raw = m->text ? m->text : "";
        n = m->n_text;
        split_thought(t, it, m);
        raw += it->body;
        n -= it->body;
    }
    it->n_head = head_rows(t, it, n > 0);
    it->wrap.ascii = t->ascii;
    it->wrap.has_markdown = l.has_markdown;
    it->wrap.plain_glyphs = t->plain_glyphs;
    if (!it->is_cut) {
        it->wrap.is_rendered = l.has_markdown && !t->is_raw;
        it->wrap.page = t->width;
    }
    it->wrap.md.base = it->is_left_out ? EBB_FACE_DIM : l.text;
    ebb_wrap_text(&it->wrap, raw, n, it->is_done);
    ebb_wrap_rows(&it->wrap, t->width - (int)strlen(l.first));
    for (n_rows = it->wrap.n_rows; n_rows > 1; n_rows--)
        if (it->wrap.rows[n_rows - 1].start < it->wrap.rows[n_rows - 1].end)
            break;
    return n_rows;
}

/* Answers that were written here, and summaries that the model wrote: what was imported cost nothing. */
static bool has_receipt(const ebb_message *m)
{
    if (m->role == EBB_ROLE_ASSISTANT && m->finish == EBB_FINISH_STOP)
        return m->cost.n_prompt + m->cost.n_computed + m->cost.n_generated > 0;
    return m->role == EBB_ROLE_ASSISTANT || (m->role == EBB_ROLE_NOTE && m->cost.n_generated > 0);
}

static size_t receipt_rows(ebb_transcript *t, ebb_item *it)
{
    ebb_buf line = { 0 };

    if (!it->is_message || !it->is_done || !has_receipt(ebb_chat_message(t->chat, it->index)))
        return 0;
    if (it->receipt.n_raw == 0) {
        it->receipt.md.base = EBB_FACE_RECEIPT;
        ebb_receipt_text(ebb_chat_message(t->chat, it->index), t->plain_glyphs, &line);
        ebb_wrap_text(&it->receipt, ebb_buf_text(&line), line.len, true);
        ebb_buf_fini(&line);
    }
    ebb_wrap_rows(&it->receipt, t->width);
    return it->receipt.n_rows;
}

size_t ebb_item_rows(ebb_transcript *t, size_t i)
{
    ebb_item *it = &t->items[i];
    size_t n = ebb_item_text_rows(t, it);

    return it->n_head + n + receipt_rows(t, it) + 1;
}

/* -- Moving ------------------------------------------------------------------------ */

/* The place `rows` above the end of the last item. */
ebb_place ebb_transcript_above_end(ebb_transcript *t, size_t rows)
{
    size_t i = t->n_items, have = 0;

    if (rows > 0)
        rows++;                                  /* the last item's blank row stays below the edge */
    while (i > 0 && have < rows)
        have += ebb_item_rows(t, --i);
    return (ebb_place){ i, have > rows ? have - rows : 0 };
}

ebb_place ebb_transcript_moved(ebb_transcript *t, ebb_place p, int rows)
{
    for (; rows < 0; rows++) {
        if (p.row > 0)
            p.row--;
        else if (p.item > 0)
            p.row = ebb_item_rows(t, --p.item) - 1;
    }
    for (; rows > 0 && p.item < t->n_items; rows--)
        if (++p.row >= ebb_item_rows(t, p.item)) {
            p.item++;
            p.row = 0;
        }
    return p;
}

static bool is_before(ebb_place a, ebb_place b)
{
    return a.item < b.item || (a.item == b.item && a.row < b.row);
}

static uint32_t byte_at(const ebb_transcript *t, ebb_place p)
{
    const ebb_item *it = p.item < t->n_items ? &t->items[p.item] : NULL;

    if (!it || p.row < it->n_head || p.row - it->n_head >= it->wrap.n_rows)
        return 0;
    return it->wrap.rows[p.row - it->n_head].start;
}

void ebb_transcript_scroll(ebb_transcript *t, int rows)
{
    ebb_place last = ebb_transcript_above_end(t, (size_t)(t->height > 0 ? t->height : 1));

    t->top = ebb_transcript_moved(t, t->is_bottom ? last : t->top, rows);
    t->is_bottom = !is_before(t->top, last);
    t->has_more = t->has_more && !t->is_bottom;
    t->top_at = byte_at(t, t->top);
}

void ebb_transcript_home(ebb_transcript *t)
{
    t->top = (ebb_place){ 0, 0 };
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
    t->top = (ebb_place){ t->n_items - 1, 0 };
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
        t->items[i].n_looked = 0;
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

void ebb_receipt_text(const ebb_message *m, bool ascii, ebb_buf *out)
{
    const char *dot = ascii ? " | " : " \u00B7 ";
    const ebb_turn_cost *c = &m->cost;

    if (m->finish == EBB_FINISH_CANCELED)
        ebb_buf_addf(out, "stopped%s", dot);
    else if (m->finish == EBB_FINISH_LENGTH)
        ebb_buf_addf(out, "cut at the length limit%s", dot);
    else if (m->finish == EBB_FINISH_ERROR)
        ebb_buf_addf(out, "ended by an error%s", dot);
    else if (m->finish == EBB_FINISH_NONE)
        ebb_buf_addf(out, "unfinished%s", dot);
    ebb_buf_adds(out, "reused ");
    ebb_text_count(out, c->n_reused);
    if (c->n_reused_disk > 0) {
        ebb_buf_adds(out, " (from disk ");
        ebb_text_count(out, c->n_reused_disk);
        ebb_buf_addc(out, ')');
    }
    if (c->n_ahead > 0) {
        ebb_buf_adds(out, " (while you typed ");
        ebb_text_count(out, c->n_ahead);
        ebb_buf_addc(out, ')');
    }
    ebb_buf_addf(out, "%scomputed ", dot);
    ebb_text_count(out, c->n_computed);
    if (c->prefill_s > 0 && c->n_computed > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_text_rate(out, c->n_computed / c->prefill_s);
        ebb_buf_adds(out, " tok/s");
    }
    ebb_buf_adds(out, dot);
    ebb_text_count(out, c->n_generated);
    ebb_buf_adds(out, " tok");
    if (c->n_guessed > 0) {
        ebb_buf_adds(out, " (guessed ");
        ebb_text_count(out, c->n_guessed);
        ebb_buf_addc(out, ')');
    }
    if (c->decode_s > 0 && c->n_generated > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_text_rate(out, c->n_generated / c->decode_s);
        ebb_buf_adds(out, " tok/s");
    }
}

/* The bars of quotes that a line began with stand in front of its further rows, too. */
static void draw_lead(const ebb_wrap *w, const ebb_row *r, ebb_term *term, int row, int col)
{
    const char *bar = w->plain_glyphs ? ">" : "\u258E";
    size_t n = strlen(bar), at = r->line;
    int width;

    for (int k = 0; k < r->lead && at < r->start; k += width) {
        if (r->start - at >= n && memcmp(w->visible.data + at, bar, n) == 0)
            ebb_term_put(term, row, col + k, col + k + 1, bar, n, EBB_FACE_MARKUP);
        at += ebb_cluster_next(w->visible.data + at, r->start - at, &width);
    }
}

/* Row i of w from column col on, its text from byte `from`. */
static void draw_wrapped(const ebb_wrap *w, size_t i, uint32_t from, ebb_term *term, int row, int col, int width)
{
    const ebb_row *r = &w->rows[i];
    size_t begin = from > r->start ? from : r->start;

    if (r->lead > 0)
        draw_lead(w, r, term, row, col);
    col += r->indent;
    for (size_t run = ebb_wrap_run(w, (uint32_t)begin), at = begin; at < r->end && run < w->n_runs; run++) {
        size_t end = run + 1 < w->n_runs ? w->runs[run + 1].start : w->n_faced;
        if (end > r->end)
            end = r->end;
        col = ebb_term_put(term, row, col, width, w->visible.data + at, end - at, (ebb_face)w->runs[run].face);
        at = end;
    }
}

/* What is looked for, where row i of the text has it. */
static void mark_hits(ebb_transcript *t, ebb_term *term, int row, int col, const ebb_item *it, size_t i)
{
    const ebb_wrap *w = &it->wrap;
    const ebb_row *r = &w->rows[i];
    size_t at = r->line, len, reach = t->find.text.len * 4;

    if (t->find.text.len == 0 || r->start == r->end)
        return;
    if (r->start - at > reach)
        at = r->start - reach;
    while ((at = ebb_pattern_find(&t->find, w->visible.data, w->n_faced, at, &len)) < r->end) {
        size_t from = at > r->start ? at : r->start, to = at + len < r->end ? at + len : r->end;
        bool is_it = t->n_hit > 0 && it == &t->items[t->hit_item] && at == t->hit_at;
        if (from < to)
            ebb_term_put(term, row, col + r->indent + ebb_width_text(w->visible.data + r->start, from - r->start, 0),
                         t->width, w->visible.data + from, to - from, is_it ? EBB_FACE_SELECTION : EBB_FACE_MATCH);
        at += len;
    }
}

/* A row of the label or of the thought. */
static void draw_head_row(ebb_transcript *t, ebb_term *term, int row, const ebb_item *it, size_t i)
{
    if (i < it->label.n_rows)
        draw_wrapped(&it->label, i, 0, term, row, 0, t->width);
    else if (t->shows_thoughts && i - it->label.n_rows < it->thought.n_rows)
        draw_wrapped(&it->thought, i - it->label.n_rows, 0, term, row, THOUGHT_INDENT, t->width);
}

static void draw_text_row(ebb_transcript *t, ebb_term *term, int row, const ebb_item *it, size_t i, uint32_t from)
{
    look l = look_of(it);

    ebb_term_puts(term, row, 0, t->width, i == 0 ? l.first : l.rest, l.mark);
    draw_wrapped(&it->wrap, i, from, term, row, (int)strlen(l.first), t->width);
    mark_hits(t, term, row, (int)strlen(l.first), it, i);
}

void ebb_item_forget(ebb_item *it)
{
    ebb_wrap_fini(&it->wrap);
    ebb_wrap_fini(&it->receipt);
    ebb_wrap_fini(&it->label);
    ebb_wrap_fini(&it->thought);
    it->n_looked = it->body = 0;
}

/* Rows of items that are done and out of sight are let go when there are many. */
static void forget_rows(ebb_transcript *t, size_t first, size_t last)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_items; i++)
        n += t->items[i].wrap.n_rows > 0;
    for (size_t i = 0; i < t->n_items && n > KEPT_ROWS + last - first; i++)
        if ((i < first || i > last) && t->items[i].is_done && !t->items[i].is_cut && t->items[i].wrap.n_rows > 0) {
            ebb_item_forget(&t->items[i]);
            n--;
        }
}

ebb_place ebb_transcript_draw_from(ebb_transcript *t, ebb_term *term, ebb_place p, uint32_t at, int row, int end)
{
    for (; p.item < t->n_items && row < end; p.item++, p.row = 0) {
        ebb_item *it = &t->items[p.item];
        size_t n = ebb_item_text_rows(t, it), n_receipt = receipt_rows(t, it);
        for (; p.row < it->n_head && row < end; p.row++)
            draw_head_row(t, term, row++, it, p.row);
        for (n += it->n_head; p.row < n && row < end; p.row++, at = 0)
            draw_text_row(t, term, row++, it, p.row - it->n_head, at);
        for (; p.row < n + n_receipt && row < end; p.row++)
            draw_wrapped(&it->receipt, p.row - n, 0, term, row++, 0, t->width);
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
 * draws the whole window anew, and text that stands still is easier to read. */
static ebb_place bottom_top(ebb_transcript *t, ebb_place last, int height)
{
    int jump = height / 6;
    ebb_place slack;

    if (jump < 2 || !is_growing(t) || (last.item == 0 && last.row == 0))
        return last;
    slack = ebb_transcript_above_end(t, (size_t)(height - jump));
    if (is_before(t->top, last) || is_before(slack, t->top))
        return is_before(t->top, last) ? slack : last;
    return t->top;
}

void ebb_transcript_draw(ebb_transcript *t, ebb_term *term, int row, int height, int width)
{
    ebb_place last, p;

    ebb_transcript_set_width(t, width);
    t->height = height;
    if (height <= 0 || width <= 0)
        return;
    last = ebb_transcript_above_end(t, (size_t)height);
    if (t->is_bottom || !is_before(t->top, last)) {
        ebb_transcript_end(t);
        t->top = bottom_top(t, last, height);
    }
    p = ebb_transcript_draw_from(t, term, t->top, 0, row, row + height);
    forget_rows(t, t->top.item, p.item);
}
