/* schema/answer_form.h - the form that answers are to have, from what a user names: a file, or a
 * schema's own text. */
#ifndef EBB_SCHEMA_ANSWER_FORM_H
#define EBB_SCHEMA_ANSWER_FORM_H
#include <stdbool.h>

#include "base/buf.h"
#include "ebb/status.h"

/* Whether a word is a schema's own text, not a file's name: an object, true or false. */
bool ebb_answer_form_is_schema(const char *word);
/* Append the grammar of a JSON schema: the file `word` (~/ is the home), or the schema that it
 * is.  `what` names the latter in an error.  Errors: those of reading a file, of schema.h, of
 * ebb_grammar_new. */
EBB_MUST_CHECK
ebb_status ebb_answer_form_schema(const char *word, const char *what, ebb_buf *grammar,
                                  ebb_error *err);
/* The same of a file in GBNF; what is no UTF-8 in its comments becomes U+FFFD. */
EBB_MUST_CHECK
ebb_status ebb_answer_form_grammar(const char *path, ebb_buf *grammar, ebb_error *err);

#endif
