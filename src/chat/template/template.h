/* template/template.h - chat templates: Jinja source -> the text a model reads.
 *
 * An interpreter of our own for the language that model files carry: Jinja2 3.1
 * as Hugging Face's apply_chat_template sets it up (trim_blocks, lstrip_blocks,
 * break and continue, `generation`, an immutable sandbox, tojson without HTML
 * escapes, raise_exception, strftime_now).  Values behave as Python's.  Not there:
 * include, import, extends, and integers beyond 64 bits.
 *
 * Templates come from files of strangers: every rendering is bounded in steps,
 * depth, memory and output, and ends with EBB_LIMIT beyond them.
 *
 * Who wrote which byte is known: each byte of the result that came out of a
 * message is attributed to it, through filters and slices, so that text of a user
 * that looks like a control token can be told from the template's own.
 *
 * A template is immutable and may be shared by threads; a rendering is one call. */
#ifndef EBB_TEMPLATE_H
#define EBB_TEMPLATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef struct ebb_template ebb_template;

/* Parse n bytes of source (UTF-8; invalid bytes become U+FFFD); the source is not
 * needed afterwards.  Errors: FORMAT ("chat template, line 12: ..."), LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_template_compile(const char *source, size_t n, ebb_template **out, ebb_error *err);
void ebb_template_free(ebb_template *t);         /* NULL is fine */

/* Zero is the default of every field. */
typedef struct ebb_template_opts {
    bool         no_generation_prompt;   /* add_generation_prompt is the opposite */
    bool         attribute;              /* fill `ranges` */
    const struct tm *now;                /* what strftime_now prints; NULL: the local time */
    uint64_t     max_steps;              /* 0: 50 million; a node of the template is a step */
    unsigned     max_ms;                 /* 0: 500, of this thread's own computing: a key may wait
                                          * for it */
    size_t       max_memory_bytes;       /* 0: 192 MiB */
    size_t       max_output_bytes;       /* 0: 64 MiB */
    bool       (*stop)(void *arg);       /* asked every millisecond or so; true: the rendering
                                          * ends with CANCELED.  NULL: nobody stops it */
    void        *stop_arg;
} ebb_template_opts;

/* Bytes [begin, end) of the text came from messages[message]. */
typedef struct ebb_template_range {
    size_t   begin, end;
    uint32_t message;
} ebb_template_range;

typedef struct ebb_template_result {
    ebb_buf  text;
    ebb_template_range *ranges;          /* in order, disjoint; only with `attribute` */
    size_t   n_ranges;
    bool     raised;                     /* the template refused: raise_exception */
    ebb_buf  message;                    /* its words, whole and verbatim */
} ebb_template_result;

/* Render with the variables of the JSON object `context` (messages, bos_token,
 * tools ...).  *out is filled anew; ebb_template_result_fini frees it, after
 * failures too.  Errors: UNSUPPORTED with out->raised (the template refused this
 * conversation), FORMAT (rendering failed: line and reason), LIMIT, CANCELED (opts->stop), NOMEM.
 * Cost: about 0.1 us a step; all memory but the result is given back. */
EBB_MUST_CHECK
ebb_status ebb_template_render(const ebb_template *t, const json_t *context,
                               const ebb_template_opts *opts,
                               ebb_template_result *out, ebb_error *err);
void ebb_template_result_fini(ebb_template_result *r);

#endif
