/* chat/store/export.h - conversations as files for other programs, and back. */
#ifndef EBB_CHAT_EXPORT_H
#define EBB_CHAT_EXPORT_H
#include <stdbool.h>

#include "base/buf.h"
#include "base/progress.h"
#include "ebb/status.h"
#include "store/store.h"
#include "tree/tree.h"

typedef enum ebb_export_format {
    EBB_EXPORT_MD,               /* Markdown: a heading per message */
    EBB_EXPORT_JSON,             /* an object: title, model, messages as OpenAI's API has them */
    EBB_EXPORT_TXT,              /* who said what, plainly */
} ebb_export_format;

/* "md", "json", "txt", or a file name that ends so; false if it is none. */
bool ebb_export_format_parse(const char *name, ebb_export_format *out);
/* Where a session's name is asked for: it has a slash, or ends as such a file. */
bool ebb_export_is_file(const char *name);

/* Append the path of the tree. */
EBB_MUST_CHECK
ebb_status ebb_export(const ebb_session_facts *f, const ebb_tree *t, ebb_export_format format,
                      ebb_buf *out, ebb_error *err);

/* Read conversations: JSON with "messages" (and perhaps a last "message", as Ollama's answers have
 * it), a bare array of messages, conversations of ChatGPT's export ("mapping": all branches), or
 * Markdown or text as ebb_export writes them (`name` tells which); an array of such objects holds
 * several.  The content of a message is a string or an array of text parts.  `fn` gets each one,
 * which it may move out of *f and *t (leaving them zeroed) and which is freed after; those without
 * messages are passed over.  Stops when fn fails, or `p` (bytes read, of JSON; may be NULL) says
 * so.  *n_done: how many it took.  Errors: FORMAT (also: no messages at all), LIMIT, NOMEM,
 * CANCELED, those of fn. */
typedef ebb_status ebb_import_fn(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_import_all(const char *name, const char *data, size_t n, ebb_progress *p,
                          ebb_import_fn *fn, void *arg, size_t *n_done, ebb_error *err);

#endif
