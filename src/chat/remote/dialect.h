/* remote/dialect.h - how servers want to be asked: what each kind can do, and the request for an
 * answer.
 *
 * All speak the OpenAI protocol's chat completions but Ollama, whose own protocol knows the context
 * (its /v1 cuts what does not fit, silently). */
#ifndef EBB_REMOTE_DIALECT_H
#define EBB_REMOTE_DIALECT_H
#include "backend/backend.h"
#include "base/buf.h"

typedef enum ebb_server_kind {
    EBB_SERVER_ANY,              /* chat completions, and nothing is known beyond that */
    EBB_SERVER_OPENAI, EBB_SERVER_LLAMA, EBB_SERVER_VLLM, EBB_SERVER_SGLANG, EBB_SERVER_OLLAMA,
    EBB_SERVER_LM_STUDIO, EBB_SERVER_EBB, EBB_SERVER_COUNT
} ebb_server_kind;

typedef struct ebb_dialect {
    const char *name;            /* "llama-server" */
    const char *path;            /* for answers */
    bool is_lines;               /* its stream is lines of JSON; else server-sent events */
    bool can_continue;           /* goes on with a message of the assistant that is the last */
    bool has_progress;           /* of the prompt, while it is computed */
    bool has_thinking;           /* can be told whether to think */
    bool has_grammar;            /* takes GBNF */
    bool continues_form;         /* and follows it from the beginning of an answer that goes on;
                                  * else it would begin anew behind that */
    bool finds_thoughts;         /* in an answer, as we do: with its marks it stays there */
    uint32_t sampling;           /* EBB_SAMPLING_BITs of what it takes; the seed goes to each */
    const char *thoughts;        /* the name under which it takes them back; NULL: it does not */
    const char *cached_hint;     /* what makes it tell cached tokens; NULL: it does, or cannot */
    const char *context_hint;    /* and its context */
} ebb_dialect;

/* What a server of this kind is asked for, and how; static. */
const ebb_dialect *ebb_dialect_of(ebb_server_kind kind);
/* COUNT: no kind has this name. */
ebb_server_kind ebb_server_kind_parse(const char *name);

typedef struct ebb_ask {
    ebb_server_kind   kind;
    const char       *model;
    const ebb_prompt_message *messages;
    size_t            n_messages;
    bool              continues; /* the last message is an answer that goes on */
    uint32_t          n_predict; /* 0: no limit */
    uint32_t          n_ctx;     /* asked for; 0: the server's own */
    const char       *grammar;   /* NULL: none; the server has_grammar */
    ebb_sampler_params sampling;
    uint32_t          chosen;    /* EBB_SAMPLING_BITs: the server has defaults of its own for the
                                  * others */
    ebb_thinking      thinking;
    bool              as_alone;  /* an ebb that nobody has named: its options do not count */
    bool              survives;  /* an ebb is to go on with it when the line breaks */
    bool              no_usage;  /* it has refused stream_options */
} ebb_ask;

/* Append the request's JSON.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_ask_json(const ebb_ask *a, ebb_buf *out, ebb_error *err);

#endif
