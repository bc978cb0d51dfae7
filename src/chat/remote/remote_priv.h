/* remote/remote_priv.h - the inside of a backend of messages: remote*.c only.
 *
 * One worker thread connects, waits for a request, asks the server, and sleeps otherwise.  remote.c
 * has the thread and the calls of its owner; remote_answer.c is what the thread does for an
 * answer. */
#ifndef EBB_REMOTE_PRIV_H
#define EBB_REMOTE_PRIV_H
#include <pthread.h>

#include "backend/backend.h"
#include "remote/probe.h"

typedef struct ebb_remote {
    ebb_backend       base;
    ebb_backend_sink *sink;
    void             *arg;
    pthread_t         thread;
    ebb_engine_entry  entry;
    ebb_engine_link  link;              /* the worker's own, but for client's `stop` and `resume` */
    ebb_server        server;            /* the worker's until READY, then unchanged */
    ebb_backend_facts facts;             /* likewise */
    char              path[256], name[EBB_PROBE_NAME];   /* strings of facts.info */
    bool              is_found;          /* ebb_backend_models.engine_is_found */
    bool              has_no_usage;      /* the server refuses stream_options; the worker's */

    pthread_mutex_t   lock;              /* protects everything below, and the sink */
    pthread_cond_t    wake, done;        /* for the worker; for `close` */
    bool              has_client;        /* link.client can be stopped */
    bool              is_stopped;        /* what is under way must end */
    bool              is_ready, has_failed, is_answering, has_work, quit;
    bool              is_forgetting;     /* a request is being sent that cancels an answer on the
                                          * server */
    bool              is_gone;           /* the worker has nothing to do any more */
    bool              is_orphan;         /* closed while something could not be interrupted: the
                                          * worker frees */
    ebb_prompt_message *messages;        /* of the request, as all of these */
    size_t            n_messages;
    bool              continues;
    uint32_t          n_predict, chosen;
    ebb_sampler_params sampling;
    char             *grammar;           /* NULL: none */
    ebb_thinking      thinking;
    /* figures */
    ebb_phase         phase;
    double            asked_s, first_s;  /* on ebb_clock_s; 0: not now.  first_s: how long the last
                                          * answer let wait */
    double            connected_s;
    double            prefill_tok_s, decode_tok_s;
    uint32_t          prefill_done, prefill_total, n_generated, cached_tok, new_tok, n_ctx;
    bool              has_cached;
    ebb_server_figures there;            /* of an `ebb serve`: its engine's, the last ones */
} ebb_remote;

/* Tell the owner, who may have gone. */
void ebb_remote_emit(ebb_remote *r, const ebb_backend_event *ev);
void ebb_remote_emit_text(ebb_remote *r, ebb_backend_event_kind kind, const char *text);
/* On the worker: wait so long; false: something ended that. */
bool ebb_remote_wait(ebb_remote *r, double s);
/* On the worker: receive the requested answer, and report END. */
void ebb_remote_answer(ebb_remote *r);

#endif
