/* chat/conversation/chat_job.h - what takes long and is no answer: an import, a schema.  It runs on
 * a thread of its own, one at a time; the chat is busy meanwhile, and ebb_chat_stop stops it. */
#ifndef EBB_CHAT_CHAT_JOB_H
#define EBB_CHAT_CHAT_JOB_H
#include "base/progress.h"
#include "conversation/chat.h"

typedef struct ebb_chat_job_kind {
    const char *what;            /* "importing": for the front end */
    /* On the thread; sees *arg alone. */
    ebb_status (*run)(void *arg, ebb_progress *p, ebb_error *err);
    /* On the chat's thread, behind it: takes what came over.  An error is told by the caller.
     * `was_stopped`: perhaps too late for run to see it. */
    ebb_status (*end)(ebb_chat *c, void *arg, bool was_stopped, ebb_status st, ebb_error *err);
    void (*fini)(void *arg);     /* frees *arg; always the last call */
} ebb_chat_job_kind;

typedef struct ebb_chat_job ebb_chat_job;

/* Takes *arg over, on failure, too (fini).  Errors: NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_chat_job_start(ebb_chat *c, const ebb_chat_job_kind *kind, void *arg,
                              ebb_error *err);
void ebb_chat_job_stop(ebb_chat *c);
/* If it has run, end it and tell how it ended.  On the chat's thread, when it was woken. */
void ebb_chat_job_poll(ebb_chat *c);
/* Stop it and wait for its thread; nothing is told. */
void ebb_chat_job_drop(ebb_chat *c);

#endif
