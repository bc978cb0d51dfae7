/* net/event_stream.h - a stream of bytes cut into events: server-sent events, or lines of JSON.
 *
 * Server-sent events are those of the HTML standard (9.2): lines end with LF, CR LF or CR; the
 * `data:` lines of an event are joined by LF; an empty line ends it, and is no event where these
 * have not a byte; a line that begins with a colon is a comment; other fields say nothing here. */
#ifndef EBB_NET_EVENT_STREAM_H
#define EBB_NET_EVENT_STREAM_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef struct ebb_event_stream {
    bool     is_lines;           /* each line is an event; else server-sent events */
    size_t   max;                /* bytes of one event */
    ebb_buf  line, data;
    bool     has_data;           /* a data: line came, perhaps an empty one */
    bool     skips_lf;           /* the last byte was a CR that ended a line */
    unsigned n_begun;            /* bytes of a byte order mark that are still possible */
} ebb_event_stream;

/* Called with an event of n bytes, followed by a 0; any other status than OK ends the call. */
typedef ebb_status ebb_event_fn(void *arg, const char *data, size_t n, ebb_error *err);

/* An empty stream; `max`: bytes of one event. */
void ebb_event_stream_init(ebb_event_stream *s, bool is_lines, size_t max);
void ebb_event_stream_fini(ebb_event_stream *s);
/* More bytes.  Errors: LIMIT (an event is larger than max), NOMEM, and those of fn. */
EBB_MUST_CHECK
ebb_status ebb_event_stream_add(ebb_event_stream *s, const char *bytes, size_t n, ebb_event_fn *fn,
                                void *arg, ebb_error *err);
/* No more will come: a last line without its end counts, where lines are events. */
EBB_MUST_CHECK
ebb_status ebb_event_stream_end(ebb_event_stream *s, ebb_event_fn *fn, void *arg, ebb_error *err);

#endif
