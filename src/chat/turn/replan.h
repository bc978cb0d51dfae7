/* turn/replan.h - the model planned anew for another budget.
 *
 * A budget that changes live keeps the context and the type of K and V: no bit is computed again,
 * but a plan made for that budget might have chosen others and kept more layers in memory. */
#ifndef EBB_CHAT_REPLAN_H
#define EBB_CHAT_REPLAN_H
#include "conversation/chat.h"

/* To be called once the engine has answered the last request for a budget.  A notice says what a
 * new plan for that budget would bring, and its price; no notice if it would be no better. */
void ebb_replan_offer(ebb_chat *c);

/* Open the model at hand as a new plan for `bytes` has it.  Errors: CONTEXT (the conversation is
 * longer than that plan's context), BUDGET, those of opening. */
EBB_MUST_CHECK
ebb_status ebb_replan(ebb_chat *c, uint64_t bytes, ebb_error *err);

#endif
