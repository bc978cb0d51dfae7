/* chat/chat_room.h - room for an answer: what the files about overflow share.
 *
 * chat_overflow.c decides and forgets, chat_compact.c has the model write a summary,
 * chat_grow.c opens the model with a larger context.  Each decision is a note in the tree
 * (message.h), below the question that found no room; an answer that was under way is
 * copied below the note and goes on there. */
#ifndef EBB_CHAT_ROOM_H
#define EBB_CHAT_ROOM_H
#include "chat_priv.h"

enum { RESERVE_MAX = 512 };      /* tokens */

typedef enum ebb_room { EBB_ROOM_THERE, EBB_ROOM_PUT_OFF } ebb_room;

/* Room for what `p`, the prompt of the path, asks: if there is none, the policy decides.  THERE: the path
 * may be another one now and *p is its prompt; PUT_OFF: the user was asked, or what makes room has begun and the
 * answer follows it.  On failure nodes may have been added: the caller takes them back. */
EBB_MUST_CHECK
ebb_status ebb_room_make(ebb_chat *c, ebb_prompt *p, ebb_then then, ebb_room *room, ebb_error *err);
uint32_t ebb_room_reserve(const ebb_chat *c);
/* The oldest turns that must go for n_all tokens to become `target`; the caller frees l->kept.  false: none. */
bool ebb_room_choose(const ebb_chat *c, size_t n_all, size_t target, ebb_left_out *l);
EBB_MUST_CHECK
ebb_status ebb_room_forget(ebb_chat *c, ebb_prompt *p, ebb_then then, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_room_compact(ebb_chat *c, const ebb_prompt *p, ebb_then then, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_room_grow(ebb_chat *c, const ebb_prompt *p, ebb_then then, ebb_error *err);
/* "takes a context of 8192 tokens (2.1 GiB of 16 GiB)" for `need` tokens and an answer; false: nothing can. */
bool ebb_room_larger(ebb_chat *c, size_t need, char *out, size_t cap);

/* A note below the question; the path does not change.  NULL: no memory. */
ebb_node *ebb_room_note(ebb_chat *c, ebb_overflow how, ebb_then then, const char *text);
/* Stand at the note, or at a copy of the answer below it.  false: no memory. */
bool ebb_room_stand_below(ebb_chat *c, ebb_node *note, ebb_node *cut_off);
/* The note decides on the path: make the ids of what it has settled. */
EBB_MUST_CHECK
ebb_status ebb_room_settle(ebb_chat *c, ebb_node *note, ebb_error *err);
/* The summary has ended. */
void ebb_room_on_summary(ebb_chat *c, const ebb_backend_event *ev);
/* Say it once when the context is nearly full. */
void ebb_room_warn(ebb_chat *c);
/* An answer that filled the context goes on by itself. */
bool ebb_room_goes_on(const ebb_chat *c, const ebb_message *answer);
void ebb_room_forget_gap(ebb_chat *c);
/* Another conversation begins: what is remembered of this one's nodes goes. */
void ebb_room_reset(ebb_chat *c);
#endif
