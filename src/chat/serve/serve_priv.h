/* serve/serve_priv.h - the inside of the server: serve*.c only. */
#ifndef EBB_SERVE_SERVE_PRIV_H
#define EBB_SERVE_SERVE_PRIV_H
#include <pthread.h>

#include "base/buf.h"
#include "ebb/grammar.h"
#include "models/models.h"
#include "net/http_server.h"
#include "prompt/prompt.h"
#include "serve/serve.h"

enum {
    SERVE_STOPS = 16, SERVE_STOP_BYTES = 256,    /* texts that end an answer */
    SERVE_TEXT = 4 << 20,        /* bytes of a request's text, or of one that ids make: some million
                                  * tokens, each byte of which takes 40 while it is tokenized */
    SERVE_SESSIONS = 16,         /* answers that go by turns; others wait */
    SERVE_ANSWERS = 128,         /* that wait or are under way; more are refused */
    SERVE_FROM_ONE = 64,         /* of them, of one client: others find a place */
    SERVE_FORMS = 64 << 20,      /* bytes of their grammars; of one client half of that */
    SERVE_KEPT = 64,             /* that have ended and can still be read */
    SERVE_KEPT_S = 600,          /* for how long; and how long one goes on that nobody reads */
    SERVE_PING_MS = 10000,       /* silence in a stream */
    SERVE_FIGURES_MS = 1000,     /* between figures of the engine in a stream */
};

/* -- Answers (serve_answers.c) ----------------------------------------------------------------- */

/* What is asked; filled by the connection's thread, and its own until ebb_serve_submit has taken
 * it. */
typedef struct ebb_serve_question {
    int32_t *ids;
    size_t   n_ids, n_suffix;    /* as in ebb_prompt */
    size_t   n_answer;           /* of the ids, the last ones that are of an answer that goes on */
    ebb_grammar *grammar;        /* that the answer is of; NULL: none */
    uint32_t n_predict;          /* 0: until the context is full */
    bool     predicts_nothing;   /* the prompt is computed, and that is all */
    bool     ignores_end;        /* goes on where the model would end */
    bool     survives;           /* its client */
    uint64_t client;             /* ebb_http_client */
    ebb_sampler_params sampling;
    char    *stops[SERVE_STOPS];
    size_t   n_stops;
} ebb_serve_question;
void ebb_serve_question_fini(ebb_serve_question *q);

typedef enum ebb_served_state { SERVED_WAITING, SERVED_PREFILL, SERVED_DECODE,
                                SERVED_ENDED } ebb_served_state;

/* Text that came at once, and the ids that it is of. */
typedef struct ebb_served_piece { size_t text_end, ids_end; } ebb_served_piece;

/* Somebody who reads an answer: his eventfd is written when there is more. */
typedef struct ebb_served_reader {
    struct ebb_served_reader *next;
    int fd;
} ebb_served_reader;

typedef struct ebb_served {
    struct ebb_served *next;
    uint64_t number;             /* at random: its client alone knows it */
    ebb_serve_question q;        /* its ids grow: those of the answer stand behind the question's */
    size_t   n_prompt;
    /* the worker's own */
    size_t   cap_ids;
    ebb_session *session;
    ebb_sampler *sampler;
    ebb_detok   *detok;
    ebb_buf  held;               /* text that may be the beginning of a stop */
    uint64_t turn;               /* its last; 0: none yet */
    double   asked_s, decode_from_s;
    double   owed_s;             /* that its choices under a grammar took; it sits out meanwhile */
    /* under the server's lock */
    ebb_served_state state;
    bool     is_canceled;
    bool     is_paused;          /* the others need the KV pool */
    size_t   n_older;            /* answers of its client that stand before it and have not ended */
    uint64_t place;              /* in the line (serve_line.c) */
    ebb_served_reader *readers;
    double   left_s;             /* since when nobody reads, on ebb_clock_s; 0: somebody does */
    ebb_buf  text;               /* so far; it only grows */
    ebb_served_piece *pieces;
    size_t   n_pieces, cap_pieces;
    uint32_t progress_done, progress_total;
    ebb_turn_stats stats;
    ebb_finish finish;
    char     stop[SERVE_STOP_BYTES];     /* the text that ended it, "" */
    ebb_error error;             /* where finish is ERROR or CANCELED: what its readers are told */
    double   ended_s;
} ebb_served;

/* A large request that is read in its turn. */
typedef struct ebb_serve_place {
    struct ebb_serve_place *next;
    uint64_t client, turn;
} ebb_serve_place;

/* -- The server -------------------------------------------------------------------------------- */

struct ebb_serve {
    ebb_serve_opts   opts;       /* its strings are ours */
    char            *path, *draft_path, *key, *host;
    ebb_http_server *http;
    pthread_t        thread;

    pthread_mutex_t  lock;       /* protects everything below, and what is marked so in answers */
    pthread_cond_t   wake;       /* for the worker */
    bool             quit, has_failed, is_ready, has_left;
    bool             is_orphan;  /* closed while loading: the worker frees it */
    ebb_error        error;
    ebb_served      *answers;    /* as they were asked for */
    ebb_served      *running;    /* whose turn it is alone; NULL */
    ebb_serve_place *large;      /* whose large request is being read, and who waits behind him */
    ebb_serve_place *forms;      /* the same of forms that are compiled */
    pthread_cond_t   large_ended;        /* for those who wait for either */
    uint64_t         n_places;   /* that were given in the line */
    uint64_t         n_requests, n_refused, n_answers, n_canceled, n_failed;
    uint64_t         n_shared_passes;
    ebb_buf          figures;    /* the event with the engine's, for all streams that want it ... */
    double           figures_s;  /* ... and when they were taken, on ebb_clock_s; 0: not yet */
    uint64_t         n_prompt_tokens, n_reused_tokens, n_generated_tokens;
    double           prefill_s, decode_s, used_s;

    /* set by the worker before is_ready (name and file as soon as they are known, under the lock),
     * then unchanged */
    ebb_model       *model, *draft;
    ebb_engine      *engine;
    ebb_prompter    *prompter;
    char            *name;       /* of the model: its file's, without a folder; NULL: not yet */
    char             file[EBB_MODELS_FILE_ID];   /* which file it is, for those who have it too;
                                  * "": from memory */
    ebb_sampler_params sampling; /* where a request says nothing */
    ebb_sampler_params sampling_alone;   /* the same without options: what `ebb run` would take */
    uint32_t         n_ctx;

    /* the worker's own */
    ebb_session     *sessions[SERVE_SESSIONS];
    ebb_served      *session_users[SERVE_SESSIONS];
    size_t           n_most;     /* answers by turns at most */
    bool             is_recurrent;
    uint64_t         n_turns;
    uint32_t         n_told;     /* the last event about K and V on disk that was told; 0: none */
    double           token_pass_s;       /* what a shared pass takes without a prompt; 0: unknown */
    size_t           n_beside;   /* tokens of a prompt that go beside the tokens of answers */
};

/* A server without connections and without a thread (serve_parts.c).  Strings are copied.  NULL: no
 * memory. */
ebb_serve *ebb_serve_new(const ebb_serve_opts *opts);
void ebb_serve_free(ebb_serve *s);               /* NULL is fine */
/* It has been told to end, or ends as nobody asks; what whoever still waits is told. */
bool ebb_serve_is_leaving(ebb_serve *s);
#define EBB_SERVE_LEAVES "the server is shutting down"

/* Take the question (*q is empty then) and give it a number; the caller reads it with *reader.
 * Errors: USAGE (an empty prompt), CONTEXT, LIMIT (too many wait), BUSY (loading, or leaving), IO
 * (no random number), NOMEM: *q stays the caller's. */
EBB_MUST_CHECK
ebb_status ebb_serve_submit(ebb_serve *s, ebb_serve_question *q, ebb_served_reader *reader,
                            ebb_served **out, ebb_error *err);
/* Read answer `number` with *reader; NULL: there is none. */
ebb_served *ebb_serve_find(ebb_serve *s, uint64_t number, ebb_served_reader *reader);
/* A reader leaves an answer.  *a may be freed by that: not to be used afterwards. */
void ebb_serve_leave(ebb_serve *s, ebb_served *a, ebb_served_reader *reader);
/* Stop the answer of that number, whoever reads it.  false: no such answer is running. */
bool ebb_serve_cancel(ebb_serve *s, uint64_t number);
/* Under the lock: stop running answers that have had no reader for SERVE_KEPT_S, and free the ended
 * ones that no reader needs. */
void ebb_serve_sweep(ebb_serve *s, double now_s);
void ebb_serve_free_answers(ebb_serve *s);
/* Under the lock: ebb_serve_stats_json. */
json_t *ebb_serve_stats_locked(ebb_serve *s);
/* A reader's eventfd.  false: none to be had. */
bool ebb_served_reader_init(ebb_served_reader *r);
void ebb_served_reader_fini(ebb_served_reader *r);
/* Under the lock: tell its readers that there is more. */
void ebb_served_notify(ebb_served *a);
size_t ebb_served_n_waiting(const ebb_serve *s, size_t *n_running);       /* under the lock */

/* -- The line (serve_line.c) ------------------------------------------------------------------- */

/* Who is admitted before whom.  In the line is the first answer of each client, since it came to be
 * that: of a client that asks again and again, the next one lines up behind those that waited while
 * the last was running.  Those that are not first go like one more client, so that new clients do
 * not keep them waiting for ever: the oldest of them is in the line, too.  Behind it come each
 * client's second, and so on.  All of these are called with the lock held. */

/* `a` is the last of s->answers, and its n_older is set. */
void ebb_serve_join_line(ebb_serve *s, ebb_served *a);
/* `gone` has ended: its client's others have one less before them. */
void ebb_serve_leave_line(ebb_serve *s, const ebb_served *gone);
/* Of those that are paused the next one that is admitted, most_of_one of a client at most, and only
 * such as have a session unless one is free; NULL: none.  It is the server's. */
ebb_served *ebb_serve_next_in_line(const ebb_serve *s, size_t most_of_one, bool is_session_free);

/* -- The worker (serve_worker.c, serve_turn.c, serve_shared.c) --------------------------------- */

/* The body of the worker's thread, for the ebb_serve `arg`: until it is told to stop. */
void *ebb_serve_worker(void *arg);
/* One turn: a batch of the prompt, or a token. */
void ebb_serve_turn(ebb_serve *s, ebb_served *a);
/* One turn of n answers in a pass: a token of each, and of a prompt as much as does not keep the
 * others waiting. */
void ebb_serve_shared_turn(ebb_serve *s, ebb_served *const *all, size_t n);
/* The session has computed all of the answer's ids and has logits of the last.  false: another
 * sequence took its place, or the last pass was rolled back; a turn then syncs first. */
bool ebb_serve_is_computed(const ebb_served *a);
/* Choose, keep and show a token, which is to be computed unless *has_ended.
 * Errors: NOMEM, and those of ebb_session_sample. */
EBB_MUST_CHECK
ebb_status ebb_serve_next_token(ebb_serve *s, ebb_served *a, bool *has_ended, ebb_error *err);
/* A pass of its own over at most so many tokens of its ids.  Errors: those of
 * ebb_session_sync. */
EBB_MUST_CHECK
ebb_status ebb_serve_prefill(ebb_serve *s, ebb_served *a, size_t most, ebb_error *err);
/* Where a part of its ids that begins at `there` ends, at most so many tokens on. */
size_t ebb_serve_part_end(const ebb_serve *s, const ebb_served *a, size_t there, size_t most);
void ebb_serve_note_progress(ebb_serve *s, ebb_served *a, const ebb_sync_result *r, size_t done);
/* The KV pool is too small for so many: fewer answers run at once until one has ended. */
void ebb_serve_run_fewer(ebb_serve *s);
/* Of the paths in an error of the engine their files' names are left: who asks is not told where
 * the machine has them. */
void ebb_serve_hide_folders(char *line);
/* Unless st is OK. */
void ebb_serve_end_failed(ebb_serve *s, ebb_served *a, ebb_status st, const ebb_error *err);
/* It has ended, so; err: of an ERROR. */
void ebb_serve_end(ebb_serve *s, ebb_served *a, ebb_finish finish, const ebb_error *err);

/* -- Requests (serve_routes.c and what it calls) ----------------------------------------------- */

/* may_ask and on_request of http_server.h, for the ebb_serve `arg`. */
bool ebb_serve_may_ask(void *arg, ebb_http_exchange *x);
void ebb_serve_on_request(void *arg, ebb_http_exchange *x);

/* A JSON reply; lets go of `o`. */
void ebb_serve_reply_json(ebb_http_exchange *x, unsigned status, json_t *o);
/* An error as OpenAI's and llama-server's clients expect it, in one line. */
void ebb_serve_reply_error(ebb_serve *s, ebb_http_exchange *x, const ebb_error *err);

/* serve_places.c: who waits while a text is tokenized, or until his large request is read. */
typedef struct ebb_serve_waiting {
    ebb_serve *s;
    ebb_http_exchange *x;
} ebb_serve_waiting;
/* ebb_tokenize_opts.stop, for the ebb_serve_waiting `arg`: he has gone, or the server leaves. */
bool ebb_serve_stops_waiting(void *arg);

/* Large requests are read one at a time: wait for the turn of one, and end it.  A client's next one
 * comes behind one of each other client that waits by then. */
void ebb_serve_begin_large(ebb_serve *s, uint64_t client, ebb_serve_place *place);
void ebb_serve_end_large(ebb_serve *s);
/* The same of forms, which a few bytes make as large: of one that is compiled.  Whose turn of a
 * large request it is may wait for this one, and not the other way round. */
void ebb_serve_begin_form(ebb_serve *s, uint64_t client, ebb_serve_place *place);
void ebb_serve_end_form(ebb_serve *s);

/* serve_prompt.c: what requests say, as ids.  Errors: USAGE (what is wrong with it), UNSUPPORTED
 * (what ebb does not do), CONTEXT,
 * NOMEM, CANCELED (ebb_serve_stops_waiting), and those of ebb_prompt_delta. */
EBB_MUST_CHECK
ebb_status ebb_serve_read_messages(ebb_serve_waiting *who, const json_t *o, ebb_serve_question *q,
                                   ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_serve_read_prompt(ebb_serve_waiting *who, const json_t *prompt,
                                 ebb_serve_question *q, ebb_error *err);
/* The text of a prompt that messages make.  Errors: as above. */
EBB_MUST_CHECK
ebb_status ebb_serve_render(ebb_serve *s, const json_t *o, ebb_buf *out, ebb_error *err);
/* serve_form.c: the grammar of response_format, json_schema or grammar; none of them: NULL.
 * Errors: USAGE, CANCELED (ebb_serve_stops_waiting), and those of ebb_schema_grammar and
 * ebb_grammar_new. */
EBB_MUST_CHECK
ebb_status ebb_serve_read_form(ebb_serve_waiting *who, const json_t *o, ebb_grammar **out,
                               ebb_error *err);
/* Whether one of them is there. */
bool ebb_serve_has_form(const json_t *o);
/* serve_settings.c: sampling, limits and stops; and whether every switch is true or false. */
EBB_MUST_CHECK
ebb_status ebb_serve_check_switches(const json_t *o, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_serve_read_settings(ebb_serve_waiting *who, const json_t *o, ebb_serve_question *q,
                                   ebb_error *err);

/* serve_chat.c, serve_llama.c: a form of answers. */
/* A request for an answer: the question, and how it is to be sent. */
typedef struct ebb_serve_asked {
    ebb_serve_question q;
    const struct ebb_serve_form *form;
    bool     streams;
    uint32_t flags;
} ebb_serve_asked;
/* Read a request; *asked is zeroed before, and is to be given back (its q) also on failure.
 * Errors: those of serve_prompt.c and serve_settings.c. */
typedef ebb_status ebb_serve_asks(ebb_serve_waiting *who, const json_t *o, ebb_serve_asked *asked,
                                  ebb_error *err);
ebb_serve_asks ebb_serve_chat_completions, ebb_serve_completions, ebb_serve_completion;
/* An answer of before, from its piece `from` on, in the form of chat completions. */
void ebb_serve_resume(ebb_serve *s, ebb_http_exchange *x, uint64_t number, size_t from);

/* serve_llama.c, serve_metrics.c */
void ebb_serve_props(ebb_serve *s, ebb_http_exchange *x);
void ebb_serve_slots(ebb_serve *s, ebb_http_exchange *x);
void ebb_serve_tokenize(ebb_serve *s, ebb_http_exchange *x, const json_t *o);
void ebb_serve_detokenize(ebb_serve *s, ebb_http_exchange *x, const json_t *o);
void ebb_serve_apply_template(ebb_serve *s, ebb_http_exchange *x, const json_t *o);
void ebb_serve_metrics(ebb_serve *s, ebb_http_exchange *x);

/* serve_stream.c: the form in which an answer is sent. */
typedef struct ebb_serve_form {
    /* A piece of text, as an event; ids_from: the first of its ids, in q.ids.  NULL: no memory. */
    json_t *(*piece)(const ebb_serve *s, const ebb_served *a, bool is_first, const char *text,
                     size_t n, size_t ids_from, size_t ids_end, uint32_t flags);
    /* The last one of a stream, and behind it the usage (or NULL). */
    json_t *(*last)(const ebb_serve *s, const ebb_served *a, uint32_t flags);
    json_t *(*usage)(const ebb_serve *s, const ebb_served *a, uint32_t flags);
    /* All at once. */
    json_t *(*whole)(const ebb_serve *s, const ebb_served *a, uint32_t flags);
    json_t *(*progress)(const ebb_serve *s, const ebb_served *a, uint32_t flags);
    bool     has_done;           /* ends with [DONE] */
} ebb_serve_form;
/* flags of what the client wants to know */
enum { SERVE_USAGE = 1, SERVE_PROGRESS = 2, SERVE_TOKENS = 4, SERVE_FIGURES = 8 };

/* Answer the question in its form, at once or as a stream; its q is taken. */
void ebb_serve_answer(ebb_serve *s, ebb_http_exchange *x, ebb_serve_asked *asked);
/* The same of an answer that there is, from its piece `from` on, as a stream. */
void ebb_serve_follow(ebb_serve *s, ebb_http_exchange *x, uint64_t number, size_t from,
                      const ebb_serve_form *form, uint32_t flags);
/* What all forms tell in the end: "timings" as llama-server, and "ebb". */
void ebb_serve_put_figures(json_t *o, const ebb_served *a);
json_t *ebb_serve_usage(const ebb_served *a);
/* How far the prompt is computed, as llama-server's "prompt_progress". */
void ebb_serve_put_progress(json_t *o, const ebb_served *a);

#endif
