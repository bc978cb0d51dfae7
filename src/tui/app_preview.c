/* What the draft would cost (app.h): counted when the hands rest, kept until it changes. */
#include <string.h>

#include "app.h"
#include "attach.h"
#include "base/clock.h"
#include "text.h"

/* Few tokens are not worth a line; a count that took long is made after a longer rest. */
static const double rest_s = 0.4, slow_s = 0.05, long_rest_s = 1.5;
enum { FEW_TOKENS = 16, FEW_BYTES = 24 };

void ebb_app_preview_changed(ebb_app *a, double now_s)
{
    ebb_preview *p = &a->preview;

    if (a->editor.text.len == p->n_bytes && a->editor.n_edits == p->n_edits)
        return;
    p->n_bytes = a->editor.text.len;
    p->n_edits = a->editor.n_edits;
    p->n_new = 0;
    p->due_s = a->editor.text.len == 0 ? -1 : now_s + (p->cost_s > slow_s ? long_rest_s : rest_s);
}

static void count(ebb_app *a)
{
    ebb_buf text = { 0 }, whole = { 0 };
    ebb_error err;

    ebb_editor_text(&a->editor, &text);
    if (text.len >= FEW_BYTES / 3 && text.data[0] != '/' &&
        ebb_attach_expand(text.data, text.len, &whole, &err) == EBB_OK && whole.len >= FEW_BYTES)
        ebb_chat_preview(a->front.chat, whole.data, whole.len, &a->preview.n_new, &a->preview.n_compute);
    ebb_buf_fini(&text);
    ebb_buf_fini(&whole);
}

void ebb_app_preview_tick(ebb_app *a, double now_s)
{
    ebb_preview *p = &a->preview;
    double began;

    ebb_app_preview_changed(a, now_s);
    if (p->due_s < 0 || now_s < p->due_s || ebb_chat_is_busy(a->front.chat) || !ebb_chat_is_ready(a->front.chat))
        return;
    p->due_s = -1;
    began = ebb_clock_s();
    count(a);
    p->cost_s = ebb_clock_s() - began;
    a->is_dirty = a->is_dirty || p->n_new > FEW_TOKENS;
}

void ebb_app_preview_text(const ebb_app *a, ebb_buf *out)
{
    const ebb_stats *s = &a->figures.stats;
    const ebb_preview *p = &a->preview;

    if (p->n_new <= FEW_TOKENS)
        return;
    ebb_buf_addc(out, '+');
    ebb_text_count(out, p->n_new);
    ebb_buf_adds(out, " tokens");
    if (s->prefill_tok_s > 0 && p->n_compute > 0) {
        ebb_buf_adds(out, ", about ");
        ebb_text_seconds(out, p->n_compute / s->prefill_tok_s);
    }
    if (s->n_ctx > 0)
        ebb_buf_addf(out, ", context %u %s %u %%", (unsigned)(100ull * s->n_used / s->n_ctx), a->term->ascii ? "->" : "\u2192",
                     (unsigned)(100ull * (s->n_used + p->n_new) / s->n_ctx));
}
