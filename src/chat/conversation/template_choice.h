/* conversation/template_choice.h - which chat template the conversation is rendered with: what the
 * session chose, else the command line, else the file's own or what suits. */
#ifndef EBB_CHAT_TEMPLATE_CHOICE_H
#define EBB_CHAT_TEMPLATE_CHOICE_H
#include "conversation/chat.h"

/* A template that the session chose and that cannot be read (its file is gone) is reported, and
 * what a new session would have is used.  The session keeps the name: the file may come back. */

/* The model is there: as ebb_chat_ops.ready has it, with the name that was chosen. */
EBB_MUST_CHECK
ebb_status ebb_template_choice_ready(ebb_chat *c, char notice[256], ebb_error *err);
/* After a change of session: apply its template, if a model is open. */
void ebb_template_choice_apply(ebb_chat *c);
/* A new session goes on with the template at hand. */
void ebb_template_choice_begin(ebb_chat *c);

#endif
