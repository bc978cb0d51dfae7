/* serve/serve.h - the engine for others: one model, asked over HTTP by any number of programs.
 *
 * It speaks what OpenAI's and llama-server's clients know, and in the same answers, under "ebb",
 * what only ebb knows.
 *
 *     a connection's thread: a request becomes ids (serve_prompt.c) and a numbered answer
 *     (serve_answers.c)
 *     the worker: model, engine, sessions; answers by turns (serve_worker.c)
 *     the connection's thread again: what the answer says, as its client wants it (serve_chat.c,
 *     serve_llama.c)
 *
 *  V1  The text of an answer is that of `ebb run` with the same question, seed and settings,
 *    whoever else is asking.
 *  V2  Answers go by turns of one batch of a prompt or one token,
 *    so nobody waits longer than a turn of each of the others.
 *  V3  An answer whose client is gone stops within a layer, unless it was asked to survive.
 *  V4  No answer tells a path of this machine, and no key is told at all. */
#ifndef EBB_SERVE_SERVE_H
#define EBB_SERVE_SERVE_H
#include <jansson.h>
#include <stdbool.h>

#include "backend/backend.h"
#include "ebb/engine.h"

typedef struct ebb_serve ebb_serve;

typedef struct ebb_serve_opts {
    ebb_backend_models models;   /* `engine` is not looked at */
    ebb_engine_opts    engine;
    ebb_sampler_params sampling; /* where a request says nothing; */
    /* of its fields, those that go before what the model's file recommends */
    uint32_t           sampling_given;
    int                listen_fd;/* taken over, also on failure */
    bool               is_unix;
    /* of TCP: the name by which it may be asked, beside those of this machine; NULL */
    const char        *host;
    const char        *key;      /* NULL: none is asked for */
    unsigned           leave_s;  /* it ends when it had nothing to do for so long; 0: never */
    /* One line for the person who started it, from any thread. */
    void             (*tell)(void *arg, const char *line);
    void              *arg;
} ebb_serve_opts;

/* Strings are copied.  Returns when requests are taken; the model is loaded meanwhile, and until it
 * is, answers are refused
 * (503).  Errors: UNSUPPORTED (no libmicrohttpd), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_serve_open(const ebb_serve_opts *opts, ebb_serve **out, ebb_error *err);
/* Wait so long; false: it has come to its end, and *err says why (OK: it had nothing to do). */
bool ebb_serve_wait(ebb_serve *s, int ms, ebb_error *err);
/* Ends every answer and connection.  NULL is fine. */
void ebb_serve_close(ebb_serve *s);

/* A name for the file at `path` as it is now, which says nothing of where it is; false: it cannot
 * be looked at. */
bool ebb_serve_file_id(const char *path, char out[40]);

/* What it does right now, for `ebb stat` and /ebb/v1/stats; NULL: no memory.  From any thread. */
json_t *ebb_serve_stats_json(ebb_serve *s);

#endif
