/* serve/serve.h - an HTTP server: one model, one engine, any number of clients.
 *
 * The API is that of OpenAI's and of llama-server's clients; what only ebb knows is added to the
 * same replies under the key "ebb".
 *
 *     a connection's thread   parses the request into token ids (serve_prompt.c) and queues a
 *                             numbered answer (serve_answers.c)
 *     the worker thread       has model, engine and sessions, and runs the answers in turns
 *                             (serve_worker.c)
 *     a connection's thread   sends the answer's text in the client's format (serve_chat.c,
 *                             serve_llama.c)
 *
 *  V1  The text of an answer is that of `ebb run` with the same question, seed and settings,
 *      whoever else is asking.
 *  V2  A turn is one pass: a token of every answer, and as much of one prompt as keeps the pass
 *      within a few times its length (serve_shared.c).  So nobody waits for another's prompt.
 *      Large requests are read one at a time, in turns of their clients: one waits for one of each
 *      other client.
 *  V3  An answer whose client has gone stops within a layer, or with the pass that it shares,
 *      unless the request asked that it survive.
 *  V4  No reply contains a path of this machine or a key. */
#ifndef EBB_SERVE_SERVE_H
#define EBB_SERVE_SERVE_H
#include <jansson.h>
#include <stdbool.h>

#include "backend/backend.h"
#include "ebb/engine.h"

typedef struct ebb_serve ebb_serve;

typedef struct ebb_serve_opts {
    ebb_backend_models models;   /* the field `engine` is ignored */
    ebb_engine_opts    engine;
    ebb_sampler_params sampling; /* for requests that do not say */
    uint32_t           sampling_given;   /* fields of `sampling` that override what the model's file
                                          * recommends */
    int                listen_fd;        /* owned by the server from here on, also on failure */
    bool               is_unix;  /* listen_fd is a Unix domain socket */
    const char        *host;     /* TCP: a host name that requests may use beside those of this
                                  * machine; NULL: none */
    const char        *key;      /* API key that requests must carry; NULL: none */
    unsigned           leave_s;  /* the server ends after so many idle seconds; 0: never */
    /* Prints one line for the person who started the server; called from any thread. */
    void             (*tell)(void *arg, const char *line);
    void              *arg;      /* of tell */
} ebb_serve_opts;

/* Strings are copied.  Returns as soon as requests are accepted; the model is loaded meanwhile, and
 * until then requests for answers get status 503.  Errors: UNSUPPORTED (no libmicrohttpd), LIMIT
 * (too few files may be open), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_serve_open(const ebb_serve_opts *opts, ebb_serve **out, ebb_error *err);
/* false: the server has ended, and *err says why (OK: it was idle for leave_s).  Slow clients are
 * ended here, so it is to be called every few seconds. */
bool ebb_serve_goes_on(ebb_serve *s, ebb_error *err);
/* Ends every answer and connection.  Where the model is still being loaded nobody waits for that:
 * the rest is freed when it is done.  NULL is fine. */
void ebb_serve_close(ebb_serve *s);

/* The figures of `ebb stat` and /ebb/v1/stats, to be released by the caller; NULL: no memory.  From
 * any thread. */
json_t *ebb_serve_stats_json(ebb_serve *s);

#endif
