/* chat/conversation/chat_reference.h - what was said in other conversations, for prompt lookup.
 *
 * The newest ids of the store that are of the model at hand are handed to the backend while
 * nothing else is to be done: a few messages at a time between two events, so that no key waits.
 * They are gathered anew for another model and for another session, which leaves its own out, and
 * given up at once when a session is deleted.  Nothing of it is written anywhere. */
#ifndef EBB_CHAT_CHAT_REFERENCE_H
#define EBB_CHAT_CHAT_REFERENCE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ebb_chat ebb_chat;

typedef struct ebb_chat_reference {
    bool      is_given;          /* the backend has it */
    uint32_t  generation;        /* ebb_chat_generation that it is for */
    int32_t  *ids;               /* [EBB_REFERENCE_MOST] under way, filled from the end; NULL:
                                    none */
    size_t    at;                /* ids[at..] are there */
    int64_t   before, session;   /* the last message that was read; the session of the last ids */
    uint32_t  n_rows;            /* messages that were read */
} ebb_chat_reference;

/* Reads some messages if there is something to gather and no answer under way.  true: call it
 * again soon. */
bool ebb_chat_gather_reference(ebb_chat *c);
/* What was gathered is no longer true: it is gathered anew. */
void ebb_chat_reset_reference(ebb_chat *c);
/* The same, and the backend forgets what it has. */
void ebb_chat_forget_reference(ebb_chat *c);

#endif
