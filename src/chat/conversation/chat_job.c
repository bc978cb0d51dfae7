/* Long work beside the chat (chat_job.h). */
#include "conversation/chat_job.h"

#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "os/thread.h"

struct ebb_chat_job {
    const ebb_chat_job_kind *kind;
    void        *arg;
    ebb_chat    *chat;
    pthread_t    thread;
    ebb_progress progress;
    ebb_status   st;             /* of run; this and err are read when has_run is set */
    ebb_error    err;
    atomic_bool  has_run;
};

static void *run_job(void *arg)
{
    ebb_chat_job *job = arg;

    job->st = job->kind->run(job->arg, &job->progress, &job->err);
    atomic_store(&job->has_run, true);
    ebb_chat_wake(job->chat);
    return NULL;
}

ebb_status ebb_chat_job_start(ebb_chat *c, const ebb_chat_job_kind *kind, void *arg, ebb_error *err)
{
    ebb_chat_job *job = calloc(1, sizeof *job);
    int why;

    if (!job) {
        kind->fini(arg);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %s", kind->what);
    }
    job->kind = kind;
    job->arg = arg;
    job->chat = c;
    why = ebb_thread_start(&job->thread, run_job, job);
    if (why != 0) {
        kind->fini(arg);
        free(job);
        return EBB_FAIL(err, EBB_IO, "no thread for %s: %s", kind->what, strerror(why));
    }
    c->job = job;
    return EBB_OK;
}

void ebb_chat_job_stop(ebb_chat *c)
{
    if (c->job)
        ebb_progress_stop(&c->job->progress);
}

static ebb_chat_job *join_job(ebb_chat *c)
{
    ebb_chat_job *job = c->job;

    pthread_join(job->thread, NULL);
    c->job = NULL;
    return job;
}

void ebb_chat_job_poll(ebb_chat *c)
{
    ebb_chat_job *job;
    ebb_status st;

    if (!c->job || !atomic_load(&c->job->has_run))
        return;
    job = join_job(c);                           /* the chat is idle again: what follows may open a session */
    st = job->kind->end(c, job->arg, ebb_progress_is_stopped(&job->progress), job->st, &job->err);
    if (st != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_REFUSED, job->err.msg, strlen(job->err.msg), 0, 0);
    job->kind->fini(job->arg);
    free(job);
}

void ebb_chat_job_drop(ebb_chat *c)
{
    ebb_chat_job *job;

    if (!c->job)
        return;
    ebb_chat_job_stop(c);
    job = join_job(c);
    job->kind->fini(job->arg);
    free(job);
}

const char *ebb_chat_job_under_way(const ebb_chat *c, double *share)
{
    *share = c->job ? ebb_progress_share(&c->job->progress) : 0;
    return c->job ? c->job->kind->what : NULL;
}
