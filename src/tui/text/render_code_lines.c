/* Lines of code set in type, in a margin, below a line that names the language (render.h). */
#include <stdio.h>
#include <string.h>

#include "text/render_priv.h"

void ebb_render_gutter(ebb_wrap *w)
{
    ebb_wrap_add(w, ebb_render_blanks, EBB_GUTTER_COLUMNS, EBB_FACE_MARKUP);
    w->visible_line = w->visible.len;            /* tabs count from here */
}

void ebb_render_code_header(ebb_wrap *w, const char *info, size_t n)
{
    size_t word = 0;
    char command[32];

    while (word < n && !strchr(" \t{,", info[word]))
        word++;
    ebb_wrap_add(w, ebb_render_blanks, EBB_GUTTER_COLUMNS, EBB_FACE_MARKUP);
    if (word > 0 && word < 24) {
        ebb_wrap_add(w, info, word, EBB_FACE_MARKUP);
        ebb_wrap_add(w, w->plain_glyphs ? " - " : " \u00B7 ", w->plain_glyphs ? 3 : 4, EBB_FACE_MARKUP);
    }
    snprintf(command, sizeof command, "/copy %u", w->n_code);
    ebb_wrap_add(w, command, strlen(command), EBB_FACE_MARKUP);
}

void ebb_render_open_code(ebb_wrap *w, const char *info, size_t n, bool is_counted)
{
    w->n_code += is_counted;
    ebb_highlight_begin(&w->light, info, n);
}

static void add_highlighted(void *arg, const char *s, size_t n, ebb_face face)
{
    ebb_wrap_add(arg, s, n, face);
}

void ebb_render_code_line(ebb_wrap *w, const char *s, size_t n)
{
    ebb_render_gutter(w);
    ebb_highlight_line(&w->light, s, n, add_highlighted, w);
}
