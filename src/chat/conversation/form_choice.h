/* conversation/form_choice.h - the form that the answers of a session have: a grammar, of a file or
 * of a JSON schema.  The session keeps the grammar itself, so a file that goes changes nothing. */
#ifndef EBB_CHAT_FORM_CHOICE_H
#define EBB_CHAT_FORM_CHOICE_H
#include <jansson.h>

#include "conversation/chat.h"
#include "prompt/prompt.h"

typedef struct ebb_form_choice {
    char *grammar;               /* GBNF; NULL: answers are free.  Owned */
    bool  is_schema;             /* it was made of one */
    char  name[200];             /* the file's, as it was named, in valid UTF-8, perhaps cut short;
                                  * "": a schema's own text */
} ebb_form_choice;

void ebb_form_choice_fini(ebb_form_choice *f);
/* For the store and back; a NULL or senseless one is none. */
json_t *ebb_form_choice_json(const ebb_form_choice *f);
void ebb_form_choice_read(ebb_form_choice *f, const json_t *o);

/* The grammar that the next answer is of: that of this run, else the session's; NULL: none. */
const char *ebb_form_choice_grammar(const ebb_chat *c);
/* Whether the model may think: a grammar does not allow for a thought. */
ebb_thinking ebb_form_choice_thinking(const ebb_chat *c);

#endif
