/* Short lines for the user: in the status row, or, where they are too long for that, in the transcript (app.h). */
#include "app/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "term/width.h"

enum { HINT_MARGIN = 4 };        /* columns beside a hint */

void ebb_app_hint(ebb_app *a, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ebb_buf_clear(&a->hint);
    ebb_buf_adds(&a->hint, text);
    a->frame.is_dirty = a->frame.is_urgent = true;
}

void ebb_app_say_error(ebb_app *a, const ebb_error *err)
{
    a->frontend.say(&a->frontend, EBB_SAY_ERROR, err->msg, strlen(err->msg));
}

void ebb_app_hint_error(ebb_app *a, const ebb_error *err)
{
    int rows, cols;

    a->term->ops->size(a->term, &rows, &cols);
    if (a->view.width > 0 && a->view.width < cols)
        cols = a->view.width;
    if (ebb_width_text(err->msg, strlen(err->msg)) + HINT_MARGIN <= cols)
        ebb_app_hint(a, "%s", err->msg);
    else
        ebb_app_say_error(a, err);
}

void ebb_app_hint_left(ebb_app *a, const ebb_error *err)
{
    ebb_error whole;

    EBB_FAIL(&whole, err->code, "%s; it is left there", err->msg);
    ebb_app_hint_error(a, &whole);
}
