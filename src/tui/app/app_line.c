/* What comes to the line that is being typed from elsewhere: output of commands, messages that did not go (app.h). */
#include "app/app.h"

#include <string.h>

/* Has somebody else the line, who would not keep what is added to it? */
static bool is_line_away(const ebb_app *a)
{
    return a->external.program == EBB_EXTERNAL_EDITOR || a->search.is_on;
}

/* Before something is added: where a line of the history stands in its place, the user's own is back, with what was
 * changed of the other one below it, as in a draft.  If there is no own one, that of the history is it. */
static void own_line(ebb_app *a)
{
    ebb_history *h = &a->history;
    ebb_buf own = { 0 }, shown = { 0 };

    if (h->at < h->n && h->unsent.len > 0 && ebb_editor_marked(&a->editor, &shown)) {
        ebb_buf_add(&own, h->unsent.data, h->unsent.len);
        if (shown.len > 0 && !ebb_history_shows(h, shown.data)) {
            ebb_buf_addc(&own, '\n');
            ebb_buf_add(&own, shown.data, shown.len);
        }
        ebb_editor_set(&a->editor, ebb_buf_text(&own), own.len);
        a->editor.is_given = a->editor.is_given || a->marks.is_unsent_given;
    }
    h->at = h->n;
    a->editor.caret = a->editor.text.len;
    ebb_buf_fini(&own);
    ebb_buf_fini(&shown);
}

void ebb_app_put_back(ebb_app *a, const char *text)
{
    const char *prefix = ebb_typed_prefix(text, strlen(text));

    if (is_line_away(a)) {
        ebb_buf_adds(&a->arrived.behind, a->arrived.behind.len > 0 ? "\n" : "");
        ebb_buf_adds(&a->arrived.behind, text);
        return;
    }
    own_line(a);
    if (!ebb_editor_is_empty(&a->editor))
        ebb_editor_insert(&a->editor, "\n", 1);
    else
        ebb_editor_insert(&a->editor, prefix, strlen(prefix));
    ebb_editor_insert_marked(&a->editor, text, strlen(text));
}

static void attach_output(ebb_app *a, const ebb_buf *block)
{
    own_line(a);
    a->editor.caret = 0;                         /* in front of what was typed meanwhile, as files are */
    ebb_editor_paste(&a->editor, ebb_buf_text(block), block->len);
    a->editor.caret = a->editor.text.len;
    ebb_app_hint(a, "the output is attached; type your question about it");
}

void ebb_app_output_tick(ebb_app *a, double now_s)
{
    ebb_line_arrivals all;

    (void)!ebb_command_output_poll(&a->output, now_s, &a->arrived.front);
    if (is_line_away(a) || a->arrived.front.len + a->arrived.behind.len == 0)
        return;
    all = a->arrived;
    a->arrived = (ebb_line_arrivals){ 0 };
    if (all.front.len > 0)
        attach_output(a, &all.front);
    if (all.behind.len > 0)
        ebb_app_put_back(a, all.behind.data);
    ebb_buf_fini(&all.front);
    ebb_buf_fini(&all.behind);
    a->frame.is_dirty = a->frame.is_urgent = true;
}
