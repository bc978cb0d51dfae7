/* The form that answers have: a schema or a grammar. */
#include "panel/panel.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

enum { FORM_NAME_BYTES = 20 };   /* of the end of its name */

static void add_form_name(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    const char *name = ebb_text_file_name(f->form);
    size_t n = strlen(name);

    ebb_utf8_add_line(out, name, n < FORM_NAME_BYTES ? n : FORM_NAME_BYTES, ascii);
}

static void draw_form_gauge(ebb_canvas *c, const ebb_figures *f)
{
    ebb_buf name = { 0 };

    if (!f->form)
        return;
    add_form_name(&name, f, !c->term->utf8);
    ebb_canvas_line(c, f->form_is_schema ? "JSON schema" : "grammar", ebb_buf_text(&name));
    ebb_canvas_gap(c);
    ebb_buf_fini(&name);
}

static void add_form_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    if (!f->form)
        return;
    ebb_buf_adds(out, f->form_is_schema ? "JSON " : "grammar ");
    add_form_name(out, f, ascii);
}

const ebb_gauge ebb_gauge_form = { "form", draw_form_gauge, add_form_brief };
