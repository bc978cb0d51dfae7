/* One item of a transcript: its rows, made for the window's width, and how they are drawn (transcript_impl.h). */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "term/width.h"
#include "text/humanize.h"
#include "tree/attachment.h"
#include "tree/thought.h"
#include "transcript/transcript_impl.h"
#include "transcript/turn_stats_line.h"

enum { THOUGHT_INDENT = 2 };

void ebb_item_fini(ebb_item *it)
{
    ebb_buf_fini(&it->text);
    ebb_item_drop_rows(it);
}

void ebb_item_drop_rows(ebb_item *it)
{
    ebb_wrap_fini(&it->wrap);
    ebb_wrap_fini(&it->turn_stats);
    ebb_wrap_fini(&it->label);
    ebb_wrap_fini(&it->thought);
    it->n_scanned = it->body = 0;
}

size_t ebb_item_bytes(const ebb_item *it)
{
    const ebb_wrap *const wraps[] = { &it->wrap, &it->turn_stats, &it->label, &it->thought };
    size_t n = 0;

    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++)
        n += ebb_wrap_bytes(wraps[i]) + wraps[i]->n_rows * sizeof *wraps[i]->rows;
    return n;
}

/* -- Rows -------------------------------------------------------------------------- */

typedef struct item_style {
    const char *first, *rest;    /* in front of the first row and of the others */
    ebb_face    mark, text;
    bool        has_markdown;
} item_style;

static item_style style_of_item(const ebb_item *it)
{
    static const item_style user = { "> ", "  ", EBB_FACE_PROMPT, EBB_FACE_USER, false };
    static const item_style model = { "", "", EBB_FACE_TEXT, EBB_FACE_MODEL, true };
    static const item_style system = { "system: ", "  ", EBB_FACE_SYSTEM, EBB_FACE_SYSTEM, false };
    static const item_style says[] = {
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
        ebb_humanize_count(line, ebb_thought_words(m->text + thought->start, n));
        ebb_buf_adds(line, " words");
        return;
    }
    ebb_buf_adds(line, thought->is_open ? "" : "about ");
    ebb_humanize_count(line, thought->is_open ? m->n_ids : (m->n_ids * n + m->n_text / 2) / m->n_text);
    ebb_buf_adds(line, " tokens");
}

/* The thought's label; its token count grows while the model still thinks. */
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

/* The files that went along with a question: a line each, their text below it as a thought's is. */
static void split_attachments(ebb_transcript *t, ebb_item *it, const ebb_message *m)
{
    const char *s = m->text ? m->text : "";
    ebb_buf line = { 0 };
    ebb_attachment file = { 0 };
    size_t end;

    if (it->n_scanned == m->n_text + 1 + (m->n_ids > 0))
        return;
    it->n_scanned = m->n_text + 1 + (m->n_ids > 0);       /* counted in tokens once it has been read */
    it->body = 0;
    while ((end = ebb_attachment_next(s, m->n_text, it->body, &file)) > 0) {
        if (it->body > 0)
            ebb_buf_addc(&line, '\n');
        ebb_utf8_add_line(&line, s + file.name, file.n_name, t->ascii);
        ebb_buf_adds(&line, t->plain_glyphs ? " - " : " \u00B7 ");
        if (m->n_ids > 0) {
            ebb_humanize_count(&line, (m->n_ids * (end - it->body) + m->n_text / 2) / m->n_text);
            ebb_buf_adds(&line, " tok");
        } else {
            ebb_humanize_bytes(&line, file.n_text);
        }
        it->body = end;
    }
    if (it->body == 0)
        return;
    ebb_buf_addf(&line, " (Ctrl-O %s)", t->shows_thoughts ? "folds" : "shows it");
    ebb_wrap_fini(&it->wrap);
    ebb_wrap_fini(&it->label);
    it->label.md.base = it->thought.md.base = EBB_FACE_THINKING;
    ebb_wrap_text(&it->label, ebb_buf_text(&line), line.len, true);
    it->thought.ascii = t->ascii;
    ebb_wrap_text(&it->thought, s, it->body - 1, true);
    ebb_buf_fini(&line);
}

/* Thought and answer of a message that has grown. */
static void split_thought(ebb_transcript *t, ebb_item *it, const ebb_message *m)
{
    const char *s = m->text ? m->text : "";
    size_t scanned = 2 * m->n_text + 1 + it->is_done;    /* what was open may be no thought once it has ended */
    ebb_thought thought;

    if (it->role != EBB_ROLE_ASSISTANT || it->n_scanned == scanned)
        return;
    thought = ebb_message_thought(m);
    if (it->body != thought.body)
        ebb_wrap_fini(&it->wrap);
    it->body = thought.body;
    it->n_scanned = scanned;
    if (thought.start == thought.end && !thought.is_open) {
        ebb_wrap_fini(&it->label);
        ebb_wrap_fini(&it->thought);
        return;
    }
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
    ebb_wrap_rows(&it->label, it->role == EBB_ROLE_USER ? t->width - THOUGHT_INDENT : t->width);
    if (t->shows_thoughts)
        ebb_wrap_rows(&it->thought, t->width - THOUGHT_INDENT);
    return it->label.n_rows + (t->shows_thoughts ? it->thought.n_rows : 0) + (has_body &&
                                                                              it->role == EBB_ROLE_ASSISTANT);
}

size_t ebb_item_text_rows(ebb_transcript *t, ebb_item *it)
{
    item_style l = style_of_item(it);
    const char *raw = ebb_buf_text(&it->text);
    size_t n = it->text.len, n_rows;

    if (it->is_message) {
        const ebb_message *m = ebb_chat_message(t->chat, it->index);
        it->is_done = has_ended(t, it, m);
        if (!it->is_done)
            ebb_wrap_fini(&it->turn_stats);      /* continued: it will cost more */
        raw = m->text ? m->text : "";
        n = m->n_text;
        split_thought(t, it, m);
        if (it->role == EBB_ROLE_USER)
            split_attachments(t, it, m);
        raw += it->body;
        n -= it->body;
    }
    it->n_head = head_rows(t, it, n > 0);
    it->wrap.ascii = t->ascii;
    it->wrap.has_markdown = l.has_markdown;
    it->wrap.has_columns = !it->is_message;
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
static bool has_turn_stats(const ebb_message *m)
{
    if (m->role == EBB_ROLE_ASSISTANT && m->finish == EBB_FINISH_STOP)
        return m->turn_stats.n_prompt + m->turn_stats.n_computed + m->turn_stats.n_generated > 0;
    return m->role == EBB_ROLE_ASSISTANT || (m->role == EBB_ROLE_NOTE && m->turn_stats.n_generated > 0);
}

static size_t turn_stats_rows(ebb_transcript *t, ebb_item *it)
{
    ebb_buf line = { 0 };

    if (!it->is_message || !it->is_done || !has_turn_stats(ebb_chat_message(t->chat, it->index)))
        return 0;
    if (it->turn_stats.n_raw == 0) {
        it->turn_stats.md.base = EBB_FACE_TURN_STATS;
        ebb_turn_stats_line(ebb_chat_message(t->chat, it->index), t->plain_glyphs, &line);
        ebb_wrap_text(&it->turn_stats, ebb_buf_text(&line), line.len, true);
        ebb_buf_fini(&line);
    }
    ebb_wrap_rows(&it->turn_stats, t->width);
    return it->turn_stats.n_rows;
}

size_t ebb_item_rows(ebb_transcript *t, size_t i)
{
    ebb_item *it = &t->items[i];
    size_t n = ebb_item_text_rows(t, it);

    return it->n_head + n + turn_stats_rows(t, it) + 1;
}

/* -- Drawing ------------------------------------------------------------------------- */

/* The quote bars of a line are repeated in front of its wrapped rows. */
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

/* s[at..end) of w in one face, with the addresses behind it.  Returns the column after. */
static int put_linked(const ebb_wrap *w, size_t at, size_t end, ebb_term *term, int row, int col, int width,
                      ebb_face face)
{
    while (at < end) {
        const ebb_text_link *link = ebb_wrap_link(w, (uint32_t)at);
        bool is_inside = link && link->start <= at;
        size_t to = !link ? end : is_inside ? link->end : link->start;

        to = to < end ? to : end;
        if (is_inside)
            ebb_term_link(term, w->addresses.data + link->address, link->n_address);
        col = ebb_term_put(term, row, col, width, w->visible.data + at, to - at, face);
        ebb_term_link(term, NULL, 0);
        at = to;
    }
    return col;
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
        col = put_linked(w, at, end, term, row, col, width, (ebb_face)w->runs[run].face);
        at = end;
    }
}

/* What is looked for, where row i of the text has it. */
static void highlight_hits(ebb_transcript *t, ebb_term *term, int row, int col, const ebb_item *it, size_t i)
{
    const ebb_wrap *w = &it->wrap;
    const ebb_row *r = &w->rows[i];
    size_t at = r->line, len, reach = ebb_pattern_reach(&t->find), end = w->n_faced;

    if (t->find.n == 0 || r->start == r->end)
        return;
    if (r->start - at > reach)
        at = r->start - reach;
    if (r->end + reach < end)                    /* of a long message, only what is near is read for each row */
        end = r->end + reach;
    while ((at = ebb_pattern_find(&t->find, w->visible.data, end, at, &len)) < r->end) {
        size_t from = at > r->start ? at : r->start, to = at + len < r->end ? at + len : r->end;
        bool is_it = t->n_hit > 0 && it == &t->items[t->hit_item] && at == t->hit_at;
        if (from < to)
            ebb_term_put(term, row, col + r->indent + ebb_width_text(w->visible.data + r->start, from - r->start),
                         t->width, w->visible.data + from, to - from, is_it ? EBB_FACE_SELECTION : EBB_FACE_MATCH);
        at += len;
    }
}

/* A row of the label or of the thought. */
static void draw_head_row(ebb_transcript *t, ebb_term *term, int row, const ebb_item *it, size_t i)
{
    if (i < it->label.n_rows)
        draw_wrapped(&it->label, i, 0, term, row, it->role == EBB_ROLE_USER ? THOUGHT_INDENT : 0, t->width);
    else if (t->shows_thoughts && i - it->label.n_rows < it->thought.n_rows)
        draw_wrapped(&it->thought, i - it->label.n_rows, 0, term, row, THOUGHT_INDENT, t->width);
}

static void draw_text_row(ebb_transcript *t, ebb_term *term, int row, const ebb_item *it, size_t i, uint32_t from)
{
    item_style l = style_of_item(it);

    ebb_term_puts(term, row, 0, t->width, i == 0 ? l.first : l.rest, l.mark);
    draw_wrapped(&it->wrap, i, from, term, row, (int)strlen(l.first), t->width);
    highlight_hits(t, term, row, (int)strlen(l.first), it, i);
}

/* Of a selected message, at the right of its first row. */
static void draw_number(ebb_term *term, int row, int width, size_t number)
{
    char tag[24];
    int n = snprintf(tag, sizeof tag, " %zu ", number);

    if (n < width)
        ebb_term_puts(term, row, width - n, width, tag, EBB_FACE_SELECTION);
}

int ebb_item_draw(ebb_transcript *t, ebb_item *it, ebb_term *term, size_t *from, uint32_t at, int row, int end)
{
    size_t n = ebb_item_text_rows(t, it), n_turn_stats = turn_stats_rows(t, it);
    bool has_tag = it->is_message && it->index + 1 == t->selected && *from == 0 && row < end;
    int first = row;

    for (; *from < it->n_head && row < end; (*from)++)
        draw_head_row(t, term, row++, it, *from);
    for (n += it->n_head; *from < n && row < end; (*from)++, at = 0)
        draw_text_row(t, term, row++, it, *from - it->n_head, at);
    for (; *from < n + n_turn_stats && row < end; (*from)++)
        draw_wrapped(&it->turn_stats, *from - n, 0, term, row++, 0, t->width);
    if (has_tag)
        draw_number(term, first, t->width, t->selected);
    return row;
}
