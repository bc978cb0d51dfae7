/* remote/probe.h - what a server is and has, by asking it. */
#ifndef EBB_REMOTE_PROBE_H
#define EBB_REMOTE_PROBE_H
#include "net/client.h"
#include "remote/address.h"
#include "remote/dialect.h"
#include "remote/engines_file.h"
#include "remote/secret.h"

enum { EBB_PROBE_MODELS = 200, EBB_PROBE_NAME = 160 };

/* An engine that can be asked: its address, its key, and the connection. */
typedef struct ebb_engine_link {
    const ebb_engine_entry *entry;
    ebb_address   address;
    ebb_client   *client;
    char          key[EBB_SECRET_BYTES + 32];    /* "Authorization: Bearer ..."; "": none */
    const char   *headers[EBB_ENGINE_HEADERS + 2];
} ebb_engine_link;
/* Opens no connection; `entry` must outlive it.  Errors: USAGE (a secret for an address that
 * everybody on the way reads), UNSUPPORTED (no libcurl), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_engine_link_init(ebb_engine_link *l, const ebb_engine_entry *entry, ebb_error *err);
void ebb_engine_link_fini(ebb_engine_link *l);         /* a zeroed one is fine */
/* Fetch the key; may wait for a command, until the client is stopped.  Errors of ebb_secret_get. */
EBB_MUST_CHECK
ebb_status ebb_engine_link_unlock(ebb_engine_link *l, ebb_error *err);

typedef struct ebb_server {
    ebb_server_kind kind;
    char     version[64];        /* "": not told */
    char     model[EBB_PROBE_NAME];      /* that answers; "": the server has one and no name for
                                          * it */
    uint32_t n_ctx;              /* 0: not told */
    bool     is_ctx_asked;       /* it is what we ask for, not what the server said */
    size_t   n_models;
    char   (*models)[EBB_PROBE_NAME];
    ebb_server_figures figures;  /* of an `ebb serve` */
} ebb_server;
void ebb_server_fini(ebb_server *s);
/* Is `want` one of the models that it has named, or one that it may have beside them? */
bool ebb_server_may_have(const ebb_server *s, const char *want);

/* Find out.  BUSY: it is there, and still loads its model (503) or has too much to do (429).  Other
 * errors: NOTFOUND (it has no such model), IO, FORMAT (no server of this kind), CANCELED, NOMEM.
 * *may_retry: it did not answer at all, or is BUSY. */
EBB_MUST_CHECK
ebb_status ebb_server_probe(ebb_engine_link *l, ebb_server *out, bool *may_retry, ebb_error *err);

/* Overwrite with stars any part of the key and of the values of headers in a server's words
 * (some repeat what they refuse); words that were cut off may end in the beginning of one. */
void ebb_engine_link_hide_secrets(const ebb_engine_link *l, char *words);

/* What a reply that is none means, in one line: 401, redirects, HTML ...; returns the status of the
 * error. */
ebb_status ebb_reply_error(const ebb_engine_link *l, const ebb_client_reply *r, const char *body,
                           size_t n_body, ebb_error *err);

/* What was found, some lines for the user: kind, models, context, what it can do, and what would
 * make it tell more. */
void ebb_server_report(const ebb_engine_link *l, const ebb_server *s, ebb_buf *out);

#endif
