/* An answer on its way to the screen: Markdown as it streams, filtered, set in rows. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "text/render.h"
#include "text/wrap.h"

/* Nothing that a terminal obeys, and faces in order. */
static void check_visible(const ebb_wrap *w)
{
    const char *s = ebb_buf_text(&w->visible);
    uint32_t cp;

    for (size_t i = 0, used; i < w->visible.len; i += used) {
        used = ebb_utf8_decode(s + i, w->visible.len - i, &cp);
        FUZZ_MUST(used > 0 && (cp == '\n' || cp >= 0x20) && !(cp >= 0x7f && cp < 0xa0) &&
                  !(cp >= 0x202a && cp <= 0x202e));
    }
    for (size_t i = 1; i < w->n_runs; i++)
        FUZZ_MUST(w->runs[i].start >= w->runs[i - 1].start);
}

static void check_rows(const ebb_wrap *w)
{
    for (size_t i = 0; i < w->n_rows; i++)
        FUZZ_MUST(w->rows[i].start <= w->rows[i].end && w->rows[i].end <= w->visible.len &&
                  (i == 0 || w->rows[i].start >= w->rows[i - 1].end));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_wrap streamed = { 0 }, whole = { 0 };
    const char *text = (const char *)data + 3;
    ebb_buf code = { 0 };
    size_t step, width;

    if (n < 4)
        return 0;
    n -= 3;
    step = 1 + data[0] % 31;
    width = 1 + data[1] % 90;
    streamed.has_markdown = true;
    streamed.is_rendered = data[2] & 1;
    streamed.ascii = data[2] & 2;
    streamed.plain_glyphs = data[2] & 4;
    streamed.page = data[2] & 8 ? (int)width : 0;
    whole = streamed;
    for (size_t at = 0; at < n; at += step) {
        ebb_wrap_text(&streamed, text, at + step < n ? at + step : n, false);
        ebb_wrap_rows(&streamed, (int)width);
    }
    ebb_wrap_text(&streamed, text, n, true);
    ebb_wrap_rows(&streamed, (int)width);
    ebb_wrap_text(&whole, text, n, true);
    ebb_wrap_rows(&whole, (int)width);
    FUZZ_MUST(whole.visible.len <= (64 << 10) + 40 * n);
    FUZZ_MUST(ebb_wrap_bytes(&whole) <= (128 << 10) + 80 * n && ebb_wrap_bytes(&streamed) == ebb_wrap_bytes(&whole));
    check_visible(&streamed);
    check_rows(&streamed);
    FUZZ_MUST(streamed.visible.len == whole.visible.len && streamed.n_rows == whole.n_rows &&
              memcmp(ebb_buf_text(&streamed.visible), ebb_buf_text(&whole.visible), whole.visible.len) == 0);
    if (whole.n_rows && whole.n_runs)
        FUZZ_MUST(ebb_wrap_find(&whole, (uint32_t)n) < whole.n_rows &&
                  ebb_wrap_run(&whole, (uint32_t)n) < whole.n_runs);
    for (unsigned long i = 1; i < 4 && ebb_render_code_block(text, n, i, &code); i++)
        ;
    ebb_buf_fini(&code);
    ebb_wrap_fini(&streamed);
    ebb_wrap_fini(&whole);
    return 0;
}
