/* conversation/template_choice.h - which chat template the conversation is rendered with: what the
 * session chose, else the command line, else the file's own or what suits. */
#ifndef EBB_CHAT_TEMPLATE_CHOICE_H
#define EBB_CHAT_TEMPLATE_CHOICE_H
#include "conversation/chat.h"

/* The name that ebb_prompter_new_named takes; NULL: none was chosen. */
const char *ebb_template_choice_name(const ebb_chat *c);
/* The session at hand is another one: its template, for a model that is there.  One that cannot be
 * had (a file that is gone) is told, and the usual one is taken. */
void ebb_template_choice_apply(ebb_chat *c);

#endif
