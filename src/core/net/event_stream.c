/* Cutting a stream into events (event_stream.h). */
#include "net/event_stream.h"

#include <string.h>

void ebb_event_stream_init(ebb_event_stream *s, bool is_lines, size_t max)
{
    *s = (ebb_event_stream){ .is_lines = is_lines, .max = max, .n_begun = 3 };
    s->line.max = s->data.max = max;
}

void ebb_event_stream_fini(ebb_event_stream *s)
{
    ebb_buf_fini(&s->line);
    ebb_buf_fini(&s->data);
}

static ebb_status too_large(const ebb_event_stream *s, ebb_error *err)
{
    return EBB_FAIL(err, EBB_LIMIT, "an event has more than %zu bytes, the most that is accepted", s->max);
}

static ebb_status give_out(ebb_buf *what, ebb_event_fn *fn, void *arg, ebb_error *err)
{
    ebb_status st = what->failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for an event")
                                 : fn(arg, ebb_buf_text(what), what->len, err);

    ebb_buf_clear(what);
    return st;
}

/* "data: {...}"; a blank behind the colon is no part of the value. */
static ebb_status take_field(ebb_event_stream *s, ebb_error *err)
{
    const char *line = ebb_buf_text(&s->line);
    size_t n = s->line.len, at;

    if (n < 4 || memcmp(line, "data", 4) != 0 || (n > 4 && line[4] != ':'))
        return EBB_OK;
    at = n == 4 ? 4 : line[5] == ' ' ? 6 : 5;
    if (s->has_data)
        ebb_buf_addc(&s->data, '\n');
    s->has_data = true;
    ebb_buf_add(&s->data, line + at, n - at);
    return s->data.failed ? too_large(s, err) : EBB_OK;
}

static ebb_status end_line(ebb_event_stream *s, ebb_event_fn *fn, void *arg, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (s->is_lines)
        return s->line.len ? give_out(&s->line, fn, arg, err) : EBB_OK;
    if (s->line.len) {
        st = take_field(s, err);
    } else if (s->has_data) {
        s->has_data = false;                     /* without a byte it is no event */
        st = s->data.len ? give_out(&s->data, fn, arg, err) : EBB_OK;
    }
    ebb_buf_clear(&s->line);
    return st;
}

/* A byte order mark at the very beginning is none of the text. */
static size_t skip_mark(ebb_event_stream *s, const char *bytes, size_t n)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t used = 0;

    while (used < n && s->n_begun && bytes[used] == mark[3 - s->n_begun]) {
        ebb_buf_addc(&s->line, bytes[used++]);
        if (--s->n_begun == 0)
            ebb_buf_clear(&s->line);
    }
    if (used < n)
        s->n_begun = 0;
    return used;
}

ebb_status ebb_event_stream_add(ebb_event_stream *s, const char *bytes, size_t n, ebb_event_fn *fn, void *arg,
                                ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (size_t at = skip_mark(s, bytes, n), len; st == EBB_OK && at < n; at += len) {
        len = 0;
        if (s->skips_lf && bytes[at] == '\n')
            at++;
        s->skips_lf = false;
        while (at + len < n && bytes[at + len] != '\n' && bytes[at + len] != '\r')
            len++;
        if (len && !ebb_buf_add(&s->line, bytes + at, len))
            return too_large(s, err);
        if (at + len == n)
            break;
        s->skips_lf = bytes[at + len++] == '\r';
        st = end_line(s, fn, arg, err);
    }
    return st;
}

ebb_status ebb_event_stream_end(ebb_event_stream *s, ebb_event_fn *fn, void *arg, ebb_error *err)
{
    return s->is_lines ? end_line(s, fn, arg, err) : EBB_OK;
}
