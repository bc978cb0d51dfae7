/* pull/pull_source.h - what `ebb pull` was asked for.
 *
 *     OWNER/NAME[:TYPE or FILE][@REVISION]     a repository of the hub, huggingface.co or
 *                                              what stands in for it
 *     hf.co/..., huggingface.co/...,
 *     https://huggingface.co/OWNER/NAME/blob/main/FILE and the like: the same
 *     http://..., https://...                  any other file */
#ifndef EBB_PULL_SOURCE_H
#define EBB_PULL_SOURCE_H
#include <stdbool.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "net/http.h"

typedef struct ebb_pull_source {
    bool is_url;
    char repo[200];              /* "owner/name": letters, digits, - _ . */
    char revision[120];          /* "main" */
    char want[300];              /* a type or a file's name or path; "": it was not said */
    char url[EBB_HTTP_URL];      /* where is_url */
    char name[256];              /* the file's name at the end of a URL; "": it has none that ends
                                  * in .gguf */
} ebb_pull_source;

/* Errors: USAGE, with an example of what is meant. */
EBB_MUST_CHECK
ebb_status ebb_pull_parse(const char *text, ebb_pull_source *out, ebb_error *err);

/* The command that pulls `want` of the source (NULL: what it says itself), for the shell. */
void ebb_pull_add_command(ebb_buf *out, const ebb_pull_source *s, const char *want);

/* Whether a text from outside can be shown as it is: a line of valid UTF-8 that the display filter
 * leaves alone. */
bool ebb_pull_is_plain(const char *text);
/* Whether a name from outside may be that of a model file here: one name and no path,
 * plain, not hidden, and ending in .gguf. */
bool ebb_pull_is_name(const char *name);

#endif
