/* schema/schema.h - JSON Schema as a grammar (GBNF, ebb/grammar.h) of the JSON texts that a model
 * may write.
 *
 * Every text of the grammar is valid under the schema.  Not every valid text is of the grammar:
 * properties come in the schema's order, numbers and white space have a limit, and a string of
 * `enum` has one spelling.  What would make a text invalid and cannot be kept is refused by its
 * name: docs/CONSTRAINED.md lists what can. */
#ifndef EBB_SCHEMA_SCHEMA_H
#define EBB_SCHEMA_SCHEMA_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/status.h"

/* Append the grammar of `schema` to *out, which has no other text.  `stop` (NULL: nobody stops it)
 * is asked about every millisecond, on this thread; true: end with CANCELED.  Errors name the
 * keyword and its place (#/properties/age/minimum): UNSUPPORTED, FORMAT (it is no schema, or
 * nothing is valid under it), LIMIT (too large, or too much work), NOMEM, CANCELED.
 * Cost, whatever the schema: about a second and, beside it, 150 MiB at most. */
EBB_MUST_CHECK
ebb_status ebb_schema_grammar(const json_t *schema, bool (*stop)(void *arg), void *arg,
                              ebb_buf *out, ebb_error *err);
/* The same of a schema's text, which nobody stops; FORMAT names line and column of what is not
 * JSON. */
EBB_MUST_CHECK
ebb_status ebb_schema_grammar_of_text(const char *text, size_t n, ebb_buf *out, ebb_error *err);

#endif
