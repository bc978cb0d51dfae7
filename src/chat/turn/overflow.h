/* turn/overflow.h - room for an answer: what the files about overflow share.
 *
 * overflow.c decides and forgets, overflow_compact.c has the model write a summary,
 * overflow_grow.c opens the model with a larger context.  Each decision is a note in the tree
 * (message.h), below the question that found no room; an answer that was under way is
 * copied below the note and goes on there. */
#ifndef EBB_CHAT_OVERFLOW_H
#define EBB_CHAT_OVERFLOW_H
#include "conversation/chat_priv.h"

enum { RESERVE_MAX = 512 };      /* tokens */

typedef enum ebb_overflow_outcome { EBB_OVERFLOW_RESOLVED, EBB_OVERFLOW_DEFERRED } ebb_overflow_outcome;

/* Room for what `p`, the prompt of the path, asks: if there is none, the policy decides.  RESOLVED: the path
 * may be another one now and *p is its prompt; DEFERRED: the user was asked, or what makes room has begun and the
 * answer follows it.  On failure nodes may have been added: the caller takes them back. */
EBB_MUST_CHECK
ebb_status ebb_overflow_resolve(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_overflow_outcome *outcome, ebb_error *err);
uint32_t ebb_overflow_reserve(const ebb_chat *c);
/* Tokens that should stay of n_all, so that half of the context is free; where nobody has told it, half of them. */
size_t ebb_room_target(const ebb_chat *c, size_t n_all);
/* The oldest turns that must go for n_all tokens to become `target`; the caller frees l->kept.  false: none. */
bool ebb_overflow_choose_turns(const ebb_chat *c, size_t n_all, size_t target, ebb_truncation *l);
EBB_MUST_CHECK
ebb_status ebb_overflow_forget(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_overflow_compact(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_overflow_grow(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next, ebb_error *err);
/* "takes a context of 8192 tokens (2.1 GiB of 16 GiB)" for `need` tokens and an answer; false: nothing can. */
bool ebb_overflow_describe_growth(ebb_chat *c, size_t need, char *out, size_t cap);

/* A note below the question; the path does not change.  NULL: no memory. */
ebb_node *ebb_overflow_add_note(ebb_chat *c, ebb_overflow_policy how, ebb_overflow_next next, const char *text);
/* Stand at the note, or at a copy of the answer below it.  false: no memory. */
bool ebb_overflow_move_below(ebb_chat *c, ebb_node *note, ebb_node *cut_off);
/* The note decides on the path: make the ids of what it has settled. */
EBB_MUST_CHECK
ebb_status ebb_overflow_tokenize_head(ebb_chat *c, ebb_node *note, ebb_error *err);
/* The summary has ended. */
void ebb_overflow_on_summary(ebb_chat *c, const ebb_backend_event *ev);
/* Say it once when the context is nearly full. */
void ebb_overflow_warn(ebb_chat *c);
/* An answer that filled the context goes on by itself. */
bool ebb_overflow_continues(const ebb_chat *c, const ebb_message *answer);
void ebb_overflow_drop_gap(ebb_chat *c);
/* Another conversation begins: what is remembered of this one's nodes goes. */
void ebb_overflow_reset(ebb_chat *c);
#endif
