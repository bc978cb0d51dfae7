/* The menu's items, their order, and its rows on the screen (menu.h). */
#include "app/menu.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "term/width.h"
#include "text/fuzzy.h"

enum { ITEMS_MAX = 2000, NAME_COLUMNS_MAX = 34, NOTE_COLUMNS_MAX = 76 };

void ebb_menu_begin(ebb_menu *m, const char *source)
{
    for (size_t i = 0; i < m->n_items; i++) {
        free(m->items[i].text);
        free(m->items[i].note);
    }
    m->n_items = m->n_shown = 0;
    ebb_buf_clear(&m->source);
    ebb_buf_adds(&m->source, source);
}

void ebb_menu_fini(ebb_menu *m)
{
    ebb_menu_begin(m, "");
    free(m->items);
    free(m->shown);
    ebb_buf_fini(&m->source);
    memset(m, 0, sizeof *m);
}

void ebb_menu_add(void *arg, const char *text, const char *note)
{
    ebb_menu *m = arg;
    ebb_menu_item *items, *it;

    items = m->n_items < ITEMS_MAX ? ebb_grow(m->items, m->n_items, &m->cap_items, sizeof *items) : NULL;
    if (!items)
        return;
    m->items = items;
    it = &items[m->n_items];
    *it = (ebb_menu_item){ .text = strdup(text), .note = strdup(note) };
    if (it->text && it->note) {
        m->n_items++;
    } else {
        free(it->text);
        free(it->note);
    }
}

/* Insertion: what fits alike stays in its order. */
static void insert_shown(ebb_menu *m, size_t item)
{
    size_t i = m->n_shown++;

    for (; i > 0 && m->items[m->shown[i - 1]].score < m->items[item].score; i--)
        m->shown[i] = m->shown[i - 1];
    m->shown[i] = item;
}

void ebb_menu_match(ebb_menu *m, const char *typed)
{
    size_t *shown = realloc(m->shown, (m->n_items + 1) * sizeof *shown);

    m->n_shown = m->selected = m->top = 0;
    m->is_chosen = false;
    if (!shown)
        return;
    m->shown = shown;
    for (size_t i = 0; i < m->n_items; i++) {
        m->items[i].score = ebb_fuzzy_score(typed, m->items[i].text);
        if (m->items[i].score >= 0)
            insert_shown(m, i);
    }
}

void ebb_menu_move(ebb_menu *m, int direction)
{
    if (m->n_shown == 0)
        return;
    m->selected = (m->selected + (direction < 0 ? m->n_shown - 1 : 1)) % m->n_shown;
    m->is_chosen = true;
}

const ebb_menu_item *ebb_menu_selected(const ebb_menu *m)
{
    return m->is_open && m->selected < m->n_shown ? &m->items[m->shown[m->selected]] : NULL;
}

int ebb_menu_rows(const ebb_menu *m)
{
    return !m->is_open ? 0 : m->n_shown < EBB_MENU_ROWS ? (int)m->n_shown : EBB_MENU_ROWS;
}

static int columns_of_name(const ebb_menu_item *it, bool ascii, ebb_buf *scratch)
{
    ebb_buf_clear(scratch);
    ebb_utf8_add_line(scratch, it->text, strlen(it->text), ascii);
    return ebb_width_text(ebb_buf_text(scratch), scratch->len);
}

static void draw_menu_row(const ebb_menu *m, ebb_term *term, size_t i, int row, int cols, int names)
{
    const ebb_menu_item *it = &m->items[m->shown[i]];
    bool is_selected = i == m->selected;
    int note = 4 + names, limit = cols < note + NOTE_COLUMNS_MAX ? cols : note + NOTE_COLUMNS_MAX;
    ebb_buf text = { 0 };

    ebb_term_blank(term, row, cols);
    if (is_selected)                             /* nothing else marks it: an arrow moves two cells over the line */
        ebb_term_puts(term, row, 0, cols, term->ascii ? ">" : "\u258C", EBB_FACE_PROMPT);
    ebb_utf8_add_line(&text, it->text, strlen(it->text), !term->utf8);
    ebb_term_put_cut(term, row, 2, 2 + names < cols ? 2 + names : cols, ebb_buf_text(&text), text.len,
                     EBB_FACE_TEXT);
    ebb_buf_clear(&text);
    ebb_utf8_add_line(&text, it->note, strlen(it->note), !term->utf8);
    if (note < cols)
        ebb_term_put_cut(term, row, note, limit, ebb_buf_text(&text), text.len, EBB_FACE_DIM);
    ebb_buf_fini(&text);
}

void ebb_menu_draw(ebb_menu *m, ebb_term *term, int row, int rows, int cols)
{
    size_t shown = rows > 0 ? (size_t)rows : 0;
    int names = 0, w;
    ebb_buf scratch = { 0 };

    if (m->selected < m->top)
        m->top = m->selected;
    if (m->selected >= m->top + shown)
        m->top = m->selected + 1 - shown;
    for (size_t i = 0; i < m->n_items; i++) {   /* of all, so that nothing moves sideways while the list gets shorter */
        w = columns_of_name(&m->items[i], !term->utf8, &scratch);
        names = w > names ? w : names;
    }
    if (names > NAME_COLUMNS_MAX && names > cols / 2)
        names = cols / 2 > NAME_COLUMNS_MAX ? cols / 2 : NAME_COLUMNS_MAX;
    for (size_t i = m->top; i < m->top + shown && i < m->n_shown; i++)
        draw_menu_row(m, term, i, row + (int)(i - m->top), cols, names);
    ebb_buf_fini(&scratch);
}
