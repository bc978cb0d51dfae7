/* chat/conversation/chat_priv.h - the inside of a chat: the rooms conversation/ and turn/ only (and tests,
 * which give it another backend).
 *
 * Who does what: chat.c opens and closes, chat_state.c tells what is known, chat_queues.c
 * has the queues between the threads, chat_dispatch.c handles what the backend sent,
 * chat_save.c keeps what was said, chat_answer.c makes prompts, starts and ends
 * answers; chat_actions.c is what the user can do, chat_branches.c and chat_sessions.c what he
 * can do with branches and sessions, overflow.c and its neighbours (overflow.h) what
 * happens when the context is full.  An answer that ends may make room and begin the
 * next one, so the last of these call each other in a circle. */
#ifndef EBB_CHAT_CHAT_PRIV_H
#define EBB_CHAT_CHAT_PRIV_H
#include <pthread.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "conversation/chat.h"
#include "ebb/experimental/cache_salt.h"
#include "ebb/experimental/plan.h"
#include "models/models.h"
#include "prompt/prompt.h"
#include "store/store.h"
#include "tree/tree.h"

/* Ids for other words of an answer: the old ones as far as their text agrees, then new ones. */
typedef struct ebb_retokenization {
    const int32_t *before;       /* what the answer follows */
    size_t         n_before;
    const int32_t *old;          /* of the answer as it was */
    size_t         n_old;
    const char    *text;
    size_t         n_text;       /* may become less: where no ids spell all of it */
    int32_t       *ids;          /* the result; the caller frees */
    size_t         n_ids, n_kept;        /* ids[0..n_kept) are old ones */
} ebb_retokenization;

/* What stands between a chat and the engine.  The real one is in chat_model_ops.c. */
typedef struct ebb_chat_ops {
    void        *arg;
    ebb_sampler_params default_sampling;
    ebb_status (*open)(void *arg, const ebb_backend_models *models, const ebb_engine_opts *opts, ebb_backend_sink *sink,
                       void *sink_arg, ebb_backend **out, ebb_error *err);
    /* The model stands: its facts, which live as long as the backend, the maker of
     * prompts, and what the user should know of them ("": nothing). */
    ebb_status (*ready)(void *arg, ebb_backend *b, const ebb_model_info **info, ebb_prompter **p, char notice[256],
                        ebb_error *err);
    void (*unready)(void *arg, ebb_prompter *p);             /* NULL is fine */
    /* A number of the model's metadata; false: it has none.  NULL: no model has any. */
    bool (*number)(void *arg, const ebb_backend *b, const char *key, double *out);
    ebb_status (*prompt)(void *arg, const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                         const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err);
    /* What the model would be like with other options; NULL: nobody can say. */
    ebb_status (*plan)(void *arg, const ebb_backend *b, const ebb_engine_opts *opts, ebb_plan *out, ebb_error *err);
    ebb_status (*retokenize)(void *arg, const ebb_backend *b, ebb_retokenization *r, ebb_error *err);
} ebb_chat_ops;

/* A backend's event on its way to the chat's thread: with a copy of the text. */
typedef struct ebb_queued_backend_event {
    ebb_backend_event ev;
    char             *text;
} ebb_queued_backend_event;

/* An event for the front end, with its text. */
typedef struct ebb_queued_ui_event {
    ebb_chat_event ev;
    char          *text;
} ebb_queued_ui_event;

typedef enum ebb_chat_state {
    EBB_CHAT_LOADING,            /* the model is not there yet */
    EBB_CHAT_IDLE,
    EBB_CHAT_ANSWERING,
    EBB_CHAT_FAILED,             /* there is no model */
} ebb_chat_state;

/* Whether what is typed is computed before it is sent. */
typedef enum ebb_speculative_prefill { EBB_SPECULATIVE_PREFILL_ON, EBB_SPECULATIVE_PREFILL_OFF } ebb_speculative_prefill;

/* What /set changes.  One bit of is_set per setting that this session carries. */
typedef struct ebb_chat_settings {
    ebb_sampler_params sampling;
    uint32_t     n_predict;
    ebb_thinking thinking;
    ebb_overflow_policy overflow;
    ebb_speculative_prefill prefill;
    uint32_t     is_set;
    uint32_t     away_tokens;    /* length of an answer that ended unseen; 0: there is none */
    ebb_finish   away_finish;    /* and how it ended */
} ebb_chat_settings;

/* What follows when there is room. */
typedef enum ebb_overflow_next {
    EBB_NEXT_ANSWER, EBB_NEXT_NOTHING,
    EBB_NEXT_CONTINUE, EBB_NEXT_STAY,    /* with the unfinished answer at the leaf; STAY: when the user says so */
} ebb_overflow_next;

/* Of overflow (overflow.h). */
typedef struct ebb_chat_overflow {
    bool            is_forced;   /* the user asked for `forced`, for n_turns (0: as many as it takes) */
    ebb_overflow_policy forced;
    uint32_t        n_turns;
    const ebb_node *asked_at;    /* the leaf at which the user was asked; NULL: he was not */
    bool            is_warned;
    bool            is_view_changed; /* decided just now: what is computed again is part of it */
    /* Tokens that went from the middle of the sequence, until the backend has been told. */
    ebb_backend_gap gap;         /* its ids are ours */
    const ebb_node *gap_note, *prefill_note;     /* that it is of; that was told last */
    /* A summary is being written. */
    ebb_truncation  truncation;
    ebb_overflow_next next;
    ebb_node       *cut_off;
    size_t          n_header;    /* bytes of the note before the summary */
    bool            has_compacted;
    /* The model is being opened with another context, for lack of room or because the user asked for it. */
    bool            awaits_continue, has_grown, was_asked;
    uint32_t        n_ctx_before;
    char           *path;        /* of its file; NULL: the embedded guide */
} ebb_chat_overflow;

/* An answer in this session that another process writes (chat_follow.c). */
typedef struct ebb_chat_following {
    int64_t session;             /* 0: there is none */
    pid_t   writer;
} ebb_chat_following;

struct ebb_chat {
    ebb_chat_ops      ops;
    ebb_engine_opts   engine_opts;
    char             *engine;                    /* an engine elsewhere, by name or address; NULL: that of this process */
    char             *engine_model;              /* the model it is asked for; NULL: the one it has */
    char             *here_model;                /* that answered here before: a path; NULL: none did yet */
    struct ebb_engine_tester *tester;            /* engines.c; NULL: nothing is tested */
    char             *draft_path;                /* NULL: no model guesses */
    bool              draft_is_optional;         /* it was named for another model than the one at hand, or in the chat */
    char             *store_path;        /* NULL: the default */
    char             *system;            /* the system prompt that a new session begins with */
    ebb_chat_settings base, settings;    /* as opened; of this session */
    uint32_t          sampling_given;    /* of base: what the command line set ... */
    uint32_t          sampling_config;   /* ... and the configuration */

    ebb_store        *store;             /* NULL: nothing can be kept */
    bool              is_unsaved;        /* the last save failed, and the user was told ... */
    ebb_error         why_unsaved;       /* ... this */
    size_t            n_given_up;        /* messages of the tree when the user was told that they will be lost */
    uint64_t          retry_ns;          /* when to save again; 0: not by itself */
    ebb_session_facts facts;
    ebb_tree          tree;
    uint32_t          generation;
    bool              is_path_changed;   /* the backend does not have this path yet: it was changed since the last answer */
    ebb_session_facts deleted;           /* the session that was deleted last; id 0: none */
    ebb_tree          deleted_tree;

    ebb_backend      *backend;
    ebb_prompter     *prompter;
    const ebb_model_info *info;          /* NULL until ready */
    ebb_model_advice  advice;            /* of the store that it lies in */
    ebb_chat_state    state;
    bool              is_stopping;       /* the answer under way was told to end */
    bool              is_chosen;         /* the user named the model at hand */
    bool              is_answer_pending; /* a question waits for the model to be loaded */
    ebb_node         *answer;            /* under way */
    bool              is_new_answer;     /* it began with this turn, so it may go if it stays empty */
    uint32_t          n_asked;           /* tokens of its prompt, perhaps about */
    uint32_t          n_turn;            /* tokens that this turn adds and must be computed */
    size_t            n_retokenized;     /* of an answer that was cut: they count as this turn's */
    bool              awaits_budget, awaits_plan; /* of the backend, which has not told yet */
    bool              is_away;           /* nobody looks any more */
    int               writer_lock;       /* others can look on: the file that says so; -1: none ... */
    ebb_buf           writer_lock_path;  /* ... and its name */
    ebb_chat_following follow;
    bool              is_load_deferred;  /* a model is opened when the other has ended: */
    char             *wanted_model;      /* NULL: the default */
    ebb_chat_overflow overflow;
    bool              is_rewriting_reported; /* the user was told that the template rewrites this conversation */
    bool              overflow_given, is_unattended;     /* ebb_chat_opts */
    ebb_turn_stats    turn_stats_before; /* of the answer that is continued */

    int               epoll, wake, timer;
    uint64_t          timer_ns;          /* when the timer rings; 0: it does not */
    bool              is_prefilling;
    uint32_t          prefill_seen;
    ebb_queued_ui_event *ui_events;      /* for the front end: ui_events[first_ui_event..n_ui_events) */
    size_t            first_ui_event, n_ui_events, cap_ui_events;
    char             *shown;             /* text of the event given out last */

    pthread_mutex_t   lock;              /* protects backend_events and has_lost_event */
    ebb_queued_backend_event *backend_events;
    size_t            first_backend_event, n_backend_events, cap_backend_events;
    bool              has_lost_event;    /* no memory for an event */
};

EBB_MUST_CHECK
ebb_status ebb_chat_open_with(const ebb_chat_opts *opts, const ebb_chat_ops *ops, ebb_chat **out, ebb_error *err);

/* -- chat_queues.c ----------------------------------------------------------------- */
EBB_MUST_CHECK
ebb_status ebb_chat_events_init(ebb_chat *c, ebb_error *err);
void ebb_chat_events_fini(ebb_chat *c);
/* An event for the front end; with no memory for it, it is not told. */
void ebb_chat_emit_event(ebb_chat *c, ebb_chat_event_kind kind, const char *text, size_t n_text, uint64_t done, uint64_t total);
void ebb_chat_notice(ebb_chat *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ring within ms, earlier if it was set so; the answer under way, or what could not be saved, is saved then. */
void ebb_chat_arm_timer(ebb_chat *c, uint32_t ms);

/* Make the descriptor readable. */
void ebb_chat_wake(ebb_chat *c);
void ebb_chat_sink(void *chat, const ebb_backend_event *ev);         /* from the backend's thread */
/* The oldest event that was not handled yet, or, with `only_token`, that one if it is a token; the caller frees its
 * text.  false: there is none. */
bool ebb_chat_next_backend_event(ebb_chat *c, bool only_token, ebb_queued_backend_event *out);
/* Throw all away: of a backend that was closed. */
void ebb_chat_drop_backend_events(ebb_chat *c);

/* -- chat_dispatch.c ------------------------------------------------------------------- */
/* Handle what the backend has sent: all of it. */
void ebb_chat_handle_backend_events(ebb_chat *c);

/* -- chat_save.c ------------------------------------------------------------------- */
/* Save everything.  A failure is a notice, once, and so is the first success after it. */
void ebb_chat_save(ebb_chat *c, bool durable);
/* ebb_chat_check_saved for what takes another conversation: the error says that it can be done all the same. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_switch(ebb_chat *c, ebb_error *err);
/* What is said cannot be saved, for this reason; if it may pass, the timer tries again. */
void ebb_chat_set_unsaved(ebb_chat *c, const ebb_error *err);
void ebb_chat_set_saved(ebb_chat *c);            /* nothing is left to be saved */

/* -- chat_state.c ------------------------------------------------------------------ */
/* What an engine of messages is, and NULL of one of ids (or of none). */
const ebb_backend_facts *ebb_chat_facts(const ebb_chat *c);
/* BUSY while an answer is under way. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_idle(const ebb_chat *c, ebb_error *err);

/* -- chat_answer.c ----------------------------------------------------------------- */
/* Begin an answer to the path, or, with `continues`, more of its last message.  Until
 * the model stands the question waits.  On failure the tree is as it was. */
EBB_MUST_CHECK
ebb_status ebb_chat_begin_answer(ebb_chat *c, bool continues, ebb_error *err);
/* Have `node`, the leaf, written behind the prompt. */
EBB_MUST_CHECK
ebb_status ebb_chat_request_answer(ebb_chat *c, const ebb_prompt *p, ebb_node *node, uint32_t n_predict, const ebb_sampler_params *sampling,
                        ebb_error *err);
void ebb_chat_on_ready(ebb_chat *c);
/* The note that decides on the path remembers what its gap has become. */
void ebb_chat_record_cache_salt(ebb_chat *c, const ebb_cache_salt *cache_salt);
void ebb_chat_on_token(ebb_chat *c, const ebb_backend_event *ev);
void ebb_chat_on_end(ebb_chat *c, const ebb_backend_event *ev);

/* -- context_view.c ------------------------------------------------------------------- */
/* What the model gets of a path: list[0..n).  Where a note decides, list[0..n_head) is what it has settled. */
typedef struct ebb_context_view {
    ebb_node           *note;            /* NULL: all is there */
    ebb_message        *messages;        /* copies; texts and ids are the tree's */
    const ebb_message **list;            /* them, for a prompter */
    ebb_node          **nodes;           /* of the same messages; NULL: of no node's own */
    size_t              n, n_head;
    ebb_buf             system;          /* a system message with a summary */
} ebb_context_view;
bool ebb_chat_has_ids(const ebb_chat *c, const ebb_message *m);      /* of the model at hand */
/* The note that decides on this path, or NULL. */
ebb_node *ebb_context_view_note(ebb_node *const *path, size_t n_path);
/* Whether each question is answered by itself, without those before it: the embedded guide is, which is too small to
 * follow a conversation. */
bool ebb_context_view_is_last_turn(const char *model_path);
/* From the last question on, the system message before it; the answer to it, if there is one, with it.  `more` as below. */
EBB_MUST_CHECK
ebb_status ebb_context_view_make_last_turn(ebb_node *const *path, size_t n_path, const ebb_message *more, ebb_context_view *out, ebb_error *err);
/* With `more` at the end, a message that is not in the tree (or NULL). */
EBB_MUST_CHECK
ebb_status ebb_context_view_make(ebb_node *const *path, size_t n_path, const ebb_message *more, ebb_context_view *out, ebb_error *err);
void ebb_context_view_fini(ebb_context_view *v);
/* The prompt for list[0..n). */
EBB_MUST_CHECK
ebb_status ebb_context_view_prompt(ebb_chat *c, const ebb_context_view *v, size_t n, ebb_prompt *out, ebb_error *err);
/* Both. */
EBB_MUST_CHECK
ebb_status ebb_chat_prompt(ebb_chat *c, ebb_node *const *path, size_t n_path, const ebb_message *more, ebb_prompt *out,
                           ebb_error *err);
/* The prompt is of the tree's path: its ids become those of the messages.  false: no memory. */
bool ebb_chat_record_ids(ebb_chat *c, const ebb_prompt *p);

/* Tokens that the model has of the path; the end of the last turn may come on top. */
uint32_t ebb_chat_n_tokens(const ebb_chat *c);
/* How K and V behind the note's gap came to be (NULL: no gap). */
ebb_cache_salt ebb_chat_cache_salt(const ebb_node *note);

/* -- chat_cut.c -------------------------------------------------------------------- */
/* Ids for other words of the answer `old`; the caller frees r->ids. */
EBB_MUST_CHECK
ebb_status ebb_chat_retokenize(ebb_chat *c, const ebb_node *old, const char *text, size_t n, ebb_retokenization *r, ebb_error *err);

/* -- chat_estimate.c --------------------------------------------------------------- */
/* Tokens of a message, where the engine at hand tells no ids: by what a token had of bytes on this path. */
uint32_t ebb_chat_tokens_of(const ebb_chat *c, const ebb_message *m);
/* The prompt for list[0..n) in messages, with its counts. */
EBB_MUST_CHECK
ebb_status ebb_chat_prompt_messages(const ebb_chat *c, const ebb_context_view *v, size_t n, ebb_prompt *out, ebb_error *err);
/* Tokens of list[0..n); *is_about: nobody has counted all of them. */
size_t ebb_chat_estimate(const ebb_context_view *v, size_t n, bool *is_about);

/* -- chat_engines.c ---------------------------------------------------------------- */
/* REFUSED with who can: what only an engine of ids does.  OK: the one at hand does. */
EBB_MUST_CHECK
ebb_status ebb_chat_need_ids(const ebb_chat *c, const char *what, ebb_error *err);
void ebb_chat_end_test(ebb_chat *c);             /* and wait for it */

/* -- chat_branches.c ------------------------------------------------------------------- */
/* The message of a label if it is on the path, else the newest end of its branch. */
EBB_MUST_CHECK
ebb_status ebb_chat_find_label(ebb_chat *c, const char *label, ebb_node **out, ebb_error *err);

/* -- chat.c ------------------------------------------------------------------------ */
/* Close the backend, and open one for `path` (NULL: the embedded guide). */
EBB_MUST_CHECK
ebb_status ebb_chat_open_model(ebb_chat *c, const char *path, ebb_error *err);
void ebb_chat_close_model(ebb_chat *c);
/* The file of the model at hand, to open it again; NULL: the embedded guide.  *ok: there was memory.  overflow_grow.c. */
char *ebb_chat_model_path(const ebb_chat *c, bool *ok);
/* Put the system prompt at the root of the path (NULL or "": take it away); where
 * messages follow, they are copied below the new root. */
EBB_MUST_CHECK
ebb_status ebb_chat_replace_system(ebb_chat *c, const char *text, ebb_error *err);
/* The session that stands here, as it is in the store by now. */
EBB_MUST_CHECK
ebb_status ebb_chat_reload_session(ebb_chat *c, int64_t session, ebb_error *err);
/* Say so if the last answer was never finished. */
void ebb_chat_report_interrupted(ebb_chat *c);
/* Stand in the session: its tree, facts and settings. */
EBB_MUST_CHECK
ebb_status ebb_chat_enter_session(ebb_chat *c, int64_t session, ebb_error *err);

/* -- chat_sessions.c --------------------------------------------------------------- */
void ebb_chat_free_deleted(ebb_chat *c);

/* -- chat_away.c ------------------------------------------------------------------- */
/* The answer has ended: if nobody looks, that is kept for later.  Before the save. */
void ebb_chat_record_away(ebb_chat *c, const ebb_message *answer);
/* A session was opened: say what happened in it unseen, once. */
void ebb_chat_report_away(ebb_chat *c);

/* -- chat_sample_record.c ------------------------------------------------------------------ */
/* The request gets a seed if it has none, and the answer what will draw it again. */
void ebb_chat_begin_sample_record(ebb_chat *c, ebb_backend_request *r, ebb_node *node);
/* The answer has ended, and these are its tokens. */
void ebb_chat_end_sample_record(ebb_message *m, const ebb_cache_salt *cache_salt);

/* -- chat_follow.c ----------------------------------------------------------------- */
/* Others that open the session may look on from here to the unmarking. */
void ebb_chat_lock_writer(ebb_chat *c);
void ebb_chat_unlock_writer(ebb_chat *c);
/* Look on in this session if another process writes in it.  To be asked before the session is loaded. */
bool ebb_chat_follow(ebb_chat *c, int64_t session);
void ebb_chat_follow_poll(ebb_chat *c);          /* the timer has rung */
void ebb_chat_follow_stop(ebb_chat *c);          /* have the other stop */

/* -- chat_settings.c -------------------------------------------------------------------- */
/* Settings that neither the command line nor the session has set become what the
 * model at hand recommends (general.sampling.* of its file), else the base. */
void ebb_chat_settings_apply_model(ebb_chat *c);
/* What the file recommends and no setting can follow, as a list; false: nothing. */
bool ebb_chat_settings_unfollowed(const ebb_chat *c, char *out, size_t cap);
/* EBB_SAMPLING_BITs of what somebody chose: the command line, the configuration, the session. */
uint32_t ebb_chat_settings_chosen(const ebb_chat *c);
/* Take what the session carries over the base, but what the command line set. */
void ebb_chat_settings_load(ebb_chat *c, const char *json);
/* As JSON, NULL if nothing is set (or no memory); free() it. */
char *ebb_chat_settings_json(const ebb_chat_settings *s);

#endif
