/* chat/backend/backend.h - an assistant that answers: local.c (the engine in this process) or
 * remote/ (one elsewhere).  A backend has a thread of its own; its calls return at once and results
 * come as events through `sink`, which may be called from any thread (one call at a time) and must
 * not call the backend.
 *
 * There are two kinds.  A backend of ids gets the exact token ids of the whole sequence.  A backend
 * of messages (it has `facts`) gets texts: the server tokenizes them, and token counts before an
 * answer are estimates. */
#ifndef EBB_CHAT_BACKEND_H
#define EBB_CHAT_BACKEND_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/experimental/cache_salt.h"
#include "ebb/session.h"
#include "ebb/stats.h"
#include "prompt/prompt.h"
#include "tree/message.h"

typedef enum ebb_backend_event_kind {
    EBB_BACKEND_LOADING,         /* done, total */
    EBB_BACKEND_READY,
    EBB_BACKEND_FAILED,          /* text: the model could not be loaded */
    EBB_BACKEND_PREFILL,         /* done, total: tokens to compute */
    /* One token: id, and the text that may be shown now; never one that ends the turn.  Of a
     * backend of messages a piece of text, and the id is EBB_TOKEN_NONE. */
    EBB_BACKEND_TOKEN,
    EBB_BACKEND_END,             /* finish, turn_stats; text: the error line if finish is ERROR,
                                  * else what the answer still lacks; total: the tokens of a prompt
                                  * that a server has no room for, 0: it did not end for that */
    EBB_BACKEND_NOTICE,          /* text: one line */
    EBB_BACKEND_WARNING,         /* the same, also where there is no terminal */
    EBB_BACKEND_REPORT,          /* text: the plan that was asked for, some lines */
    EBB_BACKEND_SPECULATIVE_PREFILL, /* done, total: of the ids given to `speculative_prefill`,
                                      * those in the KV cache */
    EBB_BACKEND_BUDGET_SET,      /* text: what came of another budget, one line; finish: STOP if
                                  * that of `total` bytes (0: what the machine has) is in force,
                                  * ERROR if the one before stays */
} ebb_backend_event_kind;

#define EBB_BACKEND_MAX_ANSWERS 16u      /* to one request */

typedef struct ebb_backend_event {
    ebb_backend_event_kind kind;
    uint64_t      done, total;
    int32_t       token;
    uint32_t      which;         /* TOKEN, END: of several answers; 0: the first, or the only one,
                                  * whose END is the last event of the request */
    const char   *text;          /* valid during the call */
    size_t        n_text;
    ebb_finish    finish;
    ebb_turn_stats turn_stats;
    ebb_cache_salt cache_salt;   /* SPECULATIVE_PREFILL: of the sequence in the KV cache; END: the
                                  * same, or of several answers: with which a token was drawn */
} ebb_backend_event;

typedef void ebb_backend_sink(void *arg, const ebb_backend_event *ev);

/* The new ids are the former sequence (cache salt `before`) without ids[0..n), which were at `at`:
 * K and V behind them may be moved up instead of being computed.  n 0: nothing was dropped. */
typedef struct ebb_backend_gap {
    const int32_t *ids;
    size_t         at, n;
    ebb_cache_salt before;
} ebb_backend_gap;

/* What to answer: the exact ids of the whole sequence, or the messages.  Copied by `answer`. */
typedef struct ebb_backend_request {
    const int32_t *ids;
    size_t         n_ids;
    const ebb_prompt_message *messages;
    size_t         n_messages;
    bool           continues;    /* the last message is an answer that goes on */
    uint32_t       chosen;       /* EBB_SAMPLING_BITs of what somebody chose: elsewhere there are
                                  * other defaults */
    ebb_thinking   thinking;
    size_t         n_suffix;     /* of the last of them, those that the next prompt may have in
                                  * another way */
    uint32_t       n_predict;    /* 0: until the context is full */
    uint32_t       n_answers;    /* of ids, 0..EBB_BACKEND_MAX_ANSWERS: so many, side by side, each
                                  * with a seed one larger; 0: 1.  One of messages gives one */
    ebb_sampler_params sampling;
    const char    *grammar;      /* GBNF that the answer is of (ebb/grammar.h); NULL: none */
    size_t         n_answer;     /* of the ids, the last ones that are the answer's so far */
    ebb_cache_salt cache_salt;   /* of these ids; off: all are computed */
    ebb_backend_gap gap;
} ebb_backend_request;

/* The seed of the answer so many behind one of `seed`: behind the largest that can be given comes
 * 1. */
static inline uint64_t ebb_seed_behind(uint64_t seed, uint32_t n)
{
    uint64_t most = (uint64_t)INT64_MAX - n;

    return seed <= most ? seed + n : seed - most;
}

typedef struct ebb_backend {
    const struct ebb_backend_ops *ops;
} ebb_backend;

struct ebb_server;                               /* remote/probe.h */

/* What a backend of messages is, from READY on; lives as long as it does. */
typedef struct ebb_backend_facts {
    ebb_model_info info;         /* name, and a path that no file has; nothing is known of the
                                  * weights */
    char           name[48];     /* of the engine, as the user gave it */
    char           kind[32];     /* "llama-server" */
    char           where[256];   /* "box", "this machine": in no case a secret */
    char           notice[256];  /* what the user should know of it, "": nothing */
    bool           takes_grammar;        /* answers can have a form */
    bool           takes_thinking;       /* can be told whether to think */
    uint32_t       sampling;     /* EBB_SAMPLING_BITs of what it takes; the seed goes to each */
    bool           can_continue; /* goes on with an answer that was cut off */
    bool           continues_form;       /* and under its grammar, from the answer's beginning */
    bool           is_private;   /* nobody reads on the way */
    const struct ebb_server *server;     /* its models; NULL: not known */
} ebb_backend_facts;

/* The figures of an `ebb serve` and of the machine it runs on, as it sent them last. */
typedef struct ebb_server_figures {
    int64_t   taken_ms;          /* when they came, Unix time; 0: none came, and the rest is 0 */
    uint32_t  n_clients;         /* connections */
    uint32_t  n_running, n_waiting;      /* answers of all clients */
    ebb_stats stats;             /* of the engine; event, phase and counts of a turn are unset */
    char      decision[EBB_MEMORY_EVENT_TEXT];   /* the last one about memory; from outside */
} ebb_server_figures;

/* What is known of a remote engine right now. */
typedef struct ebb_remote_figures {
    char     name[48], kind[32], where[256];
    int64_t  connected_ms;       /* when the connection was made, Unix time; 0: there is none */
    double   waits_s;            /* since the request, while no word has come; < 0: nothing is
                                  * awaited */
    double   first_s;            /* of the last answer; 0: none yet */
    bool     has_cached;         /* cached_tok and new_tok are the server's; else new_tok is the
                                  * whole prompt */
    uint32_t cached_tok, new_tok;
    bool     is_about;           /* the tokens of the conversation are an estimate */
    ebb_server_figures server;   /* of an `ebb serve`: at the connection, and during an answer */
} ebb_remote_figures;

typedef struct ebb_backend_ops {
    /* Cancels, waits for END, frees.  One that is still loading is left to end by
     * itself, so that this takes no minute.  The sink is not called after. */
    void (*close)(ebb_backend *b);
    /* BUSY if one is under way. */
    ebb_status (*answer)(ebb_backend *b, const ebb_backend_request *r, ebb_error *err);
    void (*cancel)(ebb_backend *b);                                /* END with CANCELED follows */
    /* NULL until READY; always of one of messages. */
    const ebb_model *(*model)(const ebb_backend *b);
    /* NULL: this is one of ids.  One of messages has neither common_prefix, set_budget
     * nor plan, and neither computes nor looks up anything before it is asked. */
    const ebb_backend_facts *(*facts)(const ebb_backend *b);       /* NULL until READY */
    void (*figures)(ebb_backend *b, ebb_remote_figures *out);      /* of one of messages */
    uint32_t (*n_ctx)(const ebb_backend *b);
    /* Of ids, how many would be reused. */
    size_t (*common_prefix)(ebb_backend *b, const int32_t *ids, size_t n,
                            const ebb_cache_salt *cache_salt);
    void (*stats)(ebb_backend *b, ebb_stats *out);
    /* `gap` may be NULL.  Compute these ids (copied) while nothing else is to be done, in place of
     * those given before; n 0: none.  An answer stops that within a layer, unless it goes on from
     * it.  SPECULATIVE_PREFILL tells how far it is. */
    void (*speculative_prefill)(ebb_backend *b, const int32_t *ids, size_t n,
                                const ebb_cache_salt *cache_salt, const ebb_backend_gap *gap);
    /* What was said in other conversations, for prompt lookup (ebb_engine_set_reference_text), as
     * soon as nothing else is to be done; the ids (malloc) are the backend's then, n 0: none.
     * NULL: it has no use for them. */
    void (*set_reference_text)(ebb_backend *b, int32_t *ids, size_t n);
    /* Files of K and V were swept while some may have waited to be written, and the sequence with
     * these ids (copied) is kept: what stands of it is written all the same, also where the backend
     * is closed next.  NULL: it has none. */
    void (*keep)(ebb_backend *b, const int32_t *ids, size_t n);
    /* Another budget for the engine's memory, 0: what the machine has; after the answer under way
     * if there is one.  A NOTICE says what it will bring, BUDGET_SET follows.  BUSY while
     * loading. */
    ebb_status (*set_budget)(ebb_backend *b, uint64_t bytes, ebb_error *err);
    /* A REPORT follows: the current plan. */
    ebb_status (*plan)(ebb_backend *b, ebb_error *err);
} ebb_backend_ops;

/* As the user names them. */
typedef struct ebb_backend_models {
    const char *path;            /* NULL: the best model there is (models.h), which a NOTICE
                                  * names */
    const char *draft;           /* which drafts for it; NULL: none; a NOTICE says what it will
                                  * bring, or why it is left out */
    bool        draft_is_optional; /* it was named for another model: where it cannot draft for this
                                    * one, a NOTICE says so */
    const char *engine;          /* a named engine or an address; the path is then that of one of
                                  * its models.  NULL: this process */
    bool        engine_is_found; /* nobody has named it: it is to answer as this process would */
} ebb_backend_models;

/* The engine in this process.  Returns at once; LOADING ... READY or FAILED follow.  *out is the
 * caller's, NULL on failure.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_backend_local(const ebb_backend_models *models, const ebb_engine_opts *opts,
                             ebb_backend_sink *sink, void *arg, ebb_backend **out, ebb_error *err);

/* A remote engine (remote/): models->engine.  Returns at once; what the address needs is loaded
 * and the connection opened on its thread.  Errors: NOTFOUND (no engine of this name), USAGE, and
 * those of the file of engines. */
EBB_MUST_CHECK
ebb_status ebb_backend_remote(const ebb_backend_models *models, uint32_t n_ctx,
                              ebb_backend_sink *sink, void *arg, ebb_backend **out, ebb_error *err);

#endif
