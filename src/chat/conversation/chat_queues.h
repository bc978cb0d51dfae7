/* chat/conversation/chat_queues.h - what goes between the threads, and to the front end: events of
 * the backend, UI events, a descriptor that becomes readable, one timer. */
#ifndef EBB_CHAT_CHAT_QUEUES_H
#define EBB_CHAT_CHAT_QUEUES_H
#include <pthread.h>

#include "backend/backend.h"
#include "conversation/chat.h"

/* A backend's event on its way to the chat's thread: with a copy of the text. */
typedef struct ebb_queued_backend_event {
    ebb_backend_event ev;
    char             *text;
} ebb_queued_backend_event;

/* An event for the front end, with its text. */
typedef struct ebb_queued_ui_event {
    ebb_chat_event ev;
    char          *text;
} ebb_queued_ui_event;

typedef struct ebb_chat_queues {
    int               epoll, wake, timer;
    uint64_t          timer_ns;          /* when the timer rings; 0: it does not */
    ebb_queued_ui_event *ui_events;      /* for the front end:
                                          * ui_events[first_ui_event..n_ui_events) */
    size_t            first_ui_event, n_ui_events, cap_ui_events;
    char             *shown;             /* text of the event given out last */

    pthread_mutex_t   lock;              /* protects backend_events and has_lost_text */
    ebb_queued_backend_event *backend_events;
    size_t            first_backend_event, n_backend_events, cap_backend_events;
    bool              has_lost_text;     /* no memory for a piece of the answer */
} ebb_chat_queues;

/* Opens what a front end polls: wakes of the backend, a timer.  To be followed by
 * ebb_chat_events_fini, also after a failure.  Errors: IO (no descriptors), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_chat_events_init(ebb_chat *c, ebb_error *err);
void ebb_chat_events_fini(ebb_chat *c);
/* An event for the front end.  Without memory its text becomes "out of memory"; progress is left
 * out, and of a piece of text ebb_turn.has_lost_text tells.  READY and, between answers, CHANGED
 * say that the backend does not have the path yet (ebb_turn.is_path_changed). */
void ebb_chat_emit_event(ebb_chat *c, ebb_chat_event_kind kind, const char *text, size_t n_text,
                         uint64_t done, uint64_t total);
void ebb_chat_notice(ebb_chat *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ebb_chat_warn(ebb_chat *c, const char *line);
/* Ring within ms, earlier if it was set so; the answer under way, or what could not be saved, is
 * saved then. */
void ebb_chat_arm_timer(ebb_chat *c, uint32_t ms);
/* Make the descriptor readable. */
void ebb_chat_wake(ebb_chat *c);

void ebb_chat_sink(void *chat, const ebb_backend_event *ev);         /* from the backend's thread */
/* The oldest event that was not handled yet, or, with `only_token`, that one if it is a token; the
 * caller frees its text.  false: there is none. */
bool ebb_chat_next_backend_event(ebb_chat *c, bool only_token, ebb_queued_backend_event *out);
/* Throw all away: of a backend that was closed. */
void ebb_chat_drop_backend_events(ebb_chat *c);

/* chat_dispatch.c: handle what the backend has sent, all of it. */
void ebb_chat_handle_backend_events(ebb_chat *c);

#endif
