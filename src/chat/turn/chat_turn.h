/* chat/turn/chat_turn.h - a turn: a question, its answer, and what a model that is loading or a
 * context that is full puts between them.  chat_turn.c has the table of its states and events;
 * chat_answer.c one answer. */
#ifndef EBB_CHAT_CHAT_TURN_H
#define EBB_CHAT_CHAT_TURN_H
#include "backend/backend.h"
#include "conversation/chat.h"
#include "prompt/prompt.h"
#include "turn/overflow.h"
#include "tree/tree.h"

typedef enum ebb_turn_state {
    EBB_TURN_LOADING,            /* the model is not loaded yet */
    EBB_TURN_WAITING,            /* nor is it here, and a question waits for it */
    EBB_TURN_NO_MODEL,           /* none could be loaded */
    EBB_TURN_IDLE,
    EBB_TURN_ANSWERING,          /* from here on `answer` is being written */
    EBB_TURN_STOPPING,           /* it was told to end */
    EBB_TURN_SUMMING_UP,         /* what is written is a summary, into a note */
    EBB_TURN_STOPPING_SUMMARY,
} ebb_turn_state;

typedef struct ebb_turn {
    ebb_turn_state state;
    bool           continues;    /* WAITING: the answer at the leaf is to go on */
    ebb_node      *answer;       /* under way; NULL: none is */
    ebb_node      *others[EBB_BACKEND_MAX_ANSWERS];      /* [n_others] answers to the same question,
                                                          * written beside it */
    uint32_t       n_others;
    uint32_t       n_wanted;     /* answers to the next question, or the one that waits; 0: 1 */
    bool           is_new_answer;        /* it began with this turn, so it may go if it stays
                                          * empty */
    bool           is_path_changed;      /* the backend may not have the path: it was changed since
                                          * the last answer, or others were written beside that */
    bool           is_rewriting_reported; /* the user was told that the template rewrites this
                                           * conversation */
    uint64_t       seed;         /* of the last request; 0: a remote engine has chosen one */
    uint32_t       n_spent;      /* tokens of it since the user asked for it, or for more of it:
                                  * they count against the limit, where a full context comes
                                  * between */
    uint32_t       n_asked;      /* tokens of its prompt, perhaps about */
    uint32_t       n_new;        /* tokens that this turn adds and must be computed */
    size_t         n_retokenized;        /* of an answer that was cut: they count as this turn's */
    ebb_turn_stats stats_before; /* of the answer that is continued */
    char          *grammar;      /* ebb_chat_opts.grammar */
    bool           has_lost_text;        /* there was no memory for a piece of the answer: it ends
                                          * as an error */
    bool           is_prefilling;
    uint32_t       prefill_seen; /* tokens, when the timer rang last */
} ebb_turn;

/* -- chat_turn.c ----------------------------------------------------------------------- */
/* Begin an answer to the path, or, with `continues`, more of its last message.  Until the model is
 * loaded the question waits.  On failure the tree is as it was. */
EBB_MUST_CHECK
ebb_status ebb_chat_begin_answer(ebb_chat *c, bool continues, ebb_error *err);
/* Close the backend, and open one for `path` (NULL: the default); a question that waits is answered
 * by that one. */
EBB_MUST_CHECK
ebb_status ebb_chat_open_model(ebb_chat *c, const char *path, ebb_error *err);
/* Free context as ebb_chat_overflow.forced says; no answer follows. */
EBB_MUST_CHECK
ebb_status ebb_turn_free_context(ebb_chat *c, ebb_overflow_next next, ebb_error *err);
/* Open the model with a context of n_ctx tokens. */
EBB_MUST_CHECK
ebb_status ebb_turn_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err);
/* Open the model as it is planned for ram_bytes. */
EBB_MUST_CHECK
ebb_status ebb_turn_replan(ebb_chat *c, uint64_t ram_bytes, ebb_error *err);
void ebb_turn_stop(ebb_chat *c);
/* READY, FAILED, TOKEN and END of the backend. */
void ebb_turn_on_backend(ebb_chat *c, const ebb_backend_event *ev);

/* -- chat_answer.c --------------------------------------------------------------------- */
/* Have `node`, the leaf, written behind the prompt. */
EBB_MUST_CHECK
ebb_status ebb_turn_request_answer(ebb_chat *c, const ebb_prompt *p, ebb_node *node,
                                   uint32_t n_predict,
                              const ebb_sampler_params *sampling, ebb_error *err);
/* The same of a new node below the leaf, or, with `continues`, of the leaf itself. */
EBB_MUST_CHECK
ebb_status ebb_turn_request_at_leaf(ebb_chat *c, const ebb_prompt *p, bool continues,
                                    ebb_error *err);
/* Can the model or engine at hand go on with this answer, which has not ended by itself?  OK where
 * nobody knows yet.  Errors, in one line that says what can be done instead: USAGE (it has no ids
 * of this model, or to a server it is all thought), UNSUPPORTED (the server begins each anew). */
EBB_MUST_CHECK
ebb_status ebb_turn_check_continue(const ebb_chat *c, const ebb_message *m, ebb_error *err);
void ebb_turn_add_token(ebb_chat *c, const ebb_backend_event *ev);
/* One of the others has ended. */
void ebb_turn_end_other(ebb_chat *c, const ebb_backend_event *ev);
/* A server has counted the prompt of an answer that it did not begin, and has no room for it, where
 * our estimate was less: the question has that count from now on (chat_estimate.c), and the answer
 * is taken back, to be asked for anew.  false: it has ended otherwise. */
bool ebb_turn_learn_count(ebb_chat *c, const ebb_backend_event *ev);
/* It has ended and is saved.  true: there is an answer; false: it was an error, or nothing came,
 * which the front end was told. */
bool ebb_turn_end_answer(ebb_chat *c, const ebb_backend_event *ev);
/* An end becomes an error if a piece of the text was lost. */
void ebb_turn_end_with_loss(const ebb_chat *c, ebb_backend_event *ev);
/* Drop the newest answers that were begun and have no token: the program that wrote them was
 * killed, and nobody writes them now.  Their question is the leaf again, and saved so.  false: one
 * of them stays, for another program has written more of it by now, or below it. */
bool ebb_turn_drop_unbegun(ebb_chat *c);
/* Saved, so nobody needs to look on; without a terminal only when all of the turn has ended. */
void ebb_turn_release_lock(ebb_chat *c);

/* -- chat_sample_record.c -------------------------------------------------------------- */
/* The request gets a seed if it has none, and the answer what will sample it again. */
void ebb_chat_begin_sample_record(ebb_chat *c, ebb_backend_request *r, ebb_node *node);
/* The answer has ended, and these are its tokens. */
void ebb_chat_end_sample_record(ebb_message *m, const ebb_cache_salt *cache_salt);

#endif
