/* What the typed text would cost (app.h): counted when the hands rest, kept until it changes. */

#include "app/app.h"
#include "base/clock.h"
#include "command/slash.h"
#include "edit/marked.h"
#include "text/humanize.h"

/* Few tokens are not worth a line; a count that took long is made after a longer rest. */
static const double rest_s = 0.4, slow_s = 0.05, long_rest_s = 1.5;
/* Less is no wait, and not worth naming. */
static const double no_time_s = 0.1;
enum { FEW_TOKENS = 16, FEW_BYTES = 24 };

static void preview_changed(ebb_app *a, double now_s)
{
    ebb_preview *p = &a->preview;

    if (a->editor.text.len == p->n_bytes && a->editor.n_edits == p->n_edits)
        return;
    p->n_bytes = a->editor.text.len;
    p->n_edits = a->editor.n_edits;
    p->is_known = false;
    if (a->editor.text.len == 0)
        ebb_frontend_prefill(&a->frontend, "", 0);
    p->due_s = a->editor.text.len == 0 ? -1 : now_s + (p->cost_s > slow_s ? long_rest_s : rest_s);
}

static void count_preview_cost(ebb_app *a)
{
    ebb_buf text = { 0 }, marked = { 0 }, whole = { 0 };
    ebb_preview *p = &a->preview;
    ebb_attached files;
    ebb_error err;
    size_t skip;

    ebb_editor_marked(&a->editor, &marked);
    ebb_marked_add_plain(&text, ebb_buf_text(&marked), marked.len);
    p->is_command = ebb_app_is_command(&marked, ebb_buf_text(&text));
    p->n_read = 0;
    skip = p->is_command ? 0 : ebb_typed_skip(ebb_buf_text(&marked), marked.len);
    if (p->is_command) {
        p->is_known = ebb_slash_command_preview(&a->frontend, ebb_buf_text(&text), &p->cost);
    } else if (ebb_app_attach(a, ebb_buf_text(&marked) + skip, marked.len - skip, &whole, &files, &err) == EBB_OK) {
        ebb_buf_clear(&text);
        if (a->editor.is_given && files.n_files > 0)      /* it is asked first; here an engine would read them */
            ebb_buf_remove(&whole, 0, whole.len - (marked.len - skip));
        ebb_marked_add_plain(&text, ebb_buf_text(&whole), whole.len);
        if (text.len >= FEW_BYTES)
            p->is_known = ebb_frontend_preview(&a->frontend, ebb_buf_text(&text), text.len, &p->cost) &&
                          p->cost.n_new > FEW_TOKENS;
        ebb_frontend_prefill(&a->frontend, ebb_buf_text(&text), text.len);
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&marked);
    ebb_buf_fini(&whole);
}

void ebb_app_preview_tick(ebb_app *a, double now_s)
{
    ebb_preview *p = &a->preview;
    double began;

    preview_changed(a, now_s);
    if (p->due_s < 0 || now_s < p->due_s || ebb_chat_is_busy(a->frontend.chat) || !ebb_chat_is_ready(a->frontend.chat))
        return;
    p->due_s = -1;
    began = ebb_clock_s();
    p->is_counting = true;
    count_preview_cost(a);
    p->is_counting = false;
    p->cost_s = ebb_clock_s() - began;
    a->frame.is_dirty = a->frame.is_dirty || p->is_known;
}

/* "+2,310 tokens, about 58 s"; for a command, the tokens to compute at the place it jumps to. */
static void add_cost(const ebb_app *a, ebb_buf *out)
{
    const ebb_chat_cost *cost = &a->preview.cost;
    double tok_s = a->figures.stats.prefill_tok_s;
    uint32_t n_reused = cost->n_tokens - cost->n_compute, n_compute = cost->n_compute;

    if (a->preview.n_read > n_reused && a->preview.n_read <= cost->n_tokens)
        n_compute = cost->n_tokens - a->preview.n_read;
    if (cost->is_about) {
        ebb_buf_adds(out, "about +");
        ebb_humanize_count(out, cost->n_new);
        ebb_buf_adds(out, " tokens");
        return;
    }
    if (!a->preview.is_command) {
        ebb_buf_addc(out, '+');
        ebb_humanize_count(out, cost->n_new);
        ebb_buf_adds(out, " tokens");
        if (n_compute < cost->n_compute) {
            ebb_buf_adds(out, ", ");
            ebb_humanize_count(out, cost->n_compute - n_compute);
            ebb_buf_adds(out, " read already");
        }
    } else if (n_compute > FEW_TOKENS) {
        ebb_humanize_count(out, n_compute);
        ebb_buf_adds(out, " tokens to compute");
    } else {
        ebb_buf_adds(out, "nothing to compute");
    }
    if (tok_s > 0 && n_compute / tok_s >= no_time_s && n_compute > (a->preview.is_command ? FEW_TOKENS : 0)) {
        ebb_buf_adds(out, ", about ");
        ebb_humanize_seconds(out, n_compute / tok_s);
    }
}

static unsigned percent(uint32_t n, uint32_t n_ctx)
{
    return (unsigned)(100ull * n / n_ctx);
}

void ebb_app_preview_text(const ebb_app *a, ebb_buf *out)
{
    const ebb_chat_cost *cost = &a->preview.cost;
    uint32_t n_ctx = a->figures.stats.n_ctx;

    if (!a->preview.is_known)
        return;
    add_cost(a, out);
    if (n_ctx > 0 && cost->n_tokens > n_ctx) {
        ebb_buf_adds(out, ", more than the context holds (");
        ebb_humanize_count(out, n_ctx);
        ebb_buf_addc(out, ')');
    } else if (n_ctx > 0) {
        ebb_buf_addf(out, ", context %u %s %u %%", percent(cost->n_before, n_ctx), a->term->ascii ? "->" : "\u2192",
                     percent(cost->n_tokens, n_ctx));
    }
}
