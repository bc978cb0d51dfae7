/* conversation/template_choice.h - which chat template the conversation is rendered with: what the
 * session chose, else the command line, else the file's own or what suits. */
#ifndef EBB_CHAT_TEMPLATE_CHOICE_H
#define EBB_CHAT_TEMPLATE_CHOICE_H
#include "conversation/chat.h"

/* The name that ebb_prompter_new_named takes; NULL: none was chosen. */
const char *ebb_template_choice_name(const ebb_chat *c);
/* After a change of session: apply its template, if a model is open.  One that cannot be read
 * (its file is gone) is reported, and the default is used. */
void ebb_template_choice_apply(ebb_chat *c);

#endif
