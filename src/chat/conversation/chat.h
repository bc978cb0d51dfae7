/* chat/conversation/chat.h - a conversation with a model: the one object that the full
 * screen, the plain front end and `ebb run` all drive.
 *
 * It owns the conversation tree, the store on disk, the template and the
 * backend that answers.  Opening returns at once: the model loads on the
 * backend's thread while the user reads and types.
 *
 * Threads: all calls from one thread (the UI's).  Nothing here blocks longer than
 * a write to the store, but for ebb_chat_search, which reads it, and for what ends a
 * chat: ebb_chat_linger waits for an answer, ebb_chat_close for the threads.  Events wait
 * in a queue; ebb_chat_fd() becomes readable when there are some. */
#ifndef EBB_CHAT_CHAT_H
#define EBB_CHAT_CHAT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/sampling_bits.h"
#include "ebb/session.h"
#include "ebb/stats.h"
#include "store/session_row.h"
#include "tree/message.h"

typedef struct ebb_chat ebb_chat;

typedef struct ebb_chat_opts {
    const char     *model_path;      /* NULL: $EBB_MODELS and the data folder, else the embedded
                                      * guide */
    const char     *engine_name;     /* a remote engine: its name or address; model_path is then
                                      * one of its models.  NULL: this process */
    const char     *here_model;      /* the engine was not named, but found to have this model, a
                                      * file or a word as of model_path: it answers as long as it
                                      * gives what this process would.  NULL: it was named */
    bool            here_is_chosen;  /* and the user named that model */
    const char     *shared_address;  /* of a server that answers for this process as soon as another
                                      * one wants the same model: "shared:FILE" (address.h).  NULL:
                                      * the model stays here */
    const char     *first_notice;    /* a line for the user when the chat begins; NULL: none */
    const char     *draft_path;      /* a smaller model that drafts for it; NULL: none */
    const char     *quality_path;    /* a better file of the same network (ebb_chat_answer_better);
                                      * NULL: one that is found */
    const char     *session_name;    /* -s NAME: opened, or made; NULL: a new one */
    bool            is_name_free;    /* it meant no session when the program began: one that has got
                                      * this number or title since is not meant */
    bool            continue_last;   /* -c */
    bool            needs_session;   /* a session that was asked for and cannot be read is an error
                                      * of opening; else a notice, and the chat is in a new one */
    const char     *store_path;      /* NULL: $XDG_STATE_HOME/ebb/sessions.db; ":memory:": nothing
                                      * is kept */
    const char     *template_name;   /* a family, a file or "none", for models of this process;
                                      * NULL: the file's own, else what suits */
    bool            template_given;  /* by the user, for this run: a remote engine that takes none
                                      * says so as a warning */
    const char     *system;          /* system prompt of a new session; NULL: none */
    bool            system_given;    /* by the user, for this run: a session that keeps another one
                                      * says so */
    ebb_overflow_policy overflow;    /* what to do when the context is full, unless the session says
                                      * otherwise */
    bool            overflow_given;  /* by the user, for this run: before the session's own */
    bool            is_unattended;   /* nobody can be asked: the oldest turns are forgotten
                                      * instead, and a session that another ebb deletes is not saved
                                      * again */
    uint32_t        n_predict;       /* most tokens of one answer; 0: until the context is full */
    const char     *grammar;         /* GBNF (ebb/grammar.h) that answers are to be of; NULL: none.
                                      * A model that can be told not to think is told so. */
    ebb_engine_opts engine;
    ebb_sampler_params sampling;
    uint32_t        sampling_given;  /* one EBB_SAMPLING_BIT per field of `sampling` that the user
                                      * chose: no model's advice goes before it */
    uint32_t        sampling_config; /* the same of fields from a configuration file: before the
                                      * model's advice, after the session's own */
    bool          (*stop)(void *arg);        /* as ebb_tokenize_opts has it, for the texts of
                                      * prompts: what needs one ends with CANCELED.  On the chat's
                                      * thread */
    void           *stop_arg;
} ebb_chat_opts;
/* What the model's file recommends, into the fields of *p that `given` (EBB_SAMPLING_BITs) leaves
 * to it. */
void ebb_chat_advise_sampling(const ebb_model *m, uint32_t given, ebb_sampler_params *p);
/* What it recommends and no setting can follow, as a list without control characters in out[cap],
 * cut where it is longer; false: nothing. */
bool ebb_chat_unfollowed_sampling(const ebb_model *m, char *out, size_t cap);
/* Whether a list of llama.cpp's samplers, "top_k;temperature", is what the sampler here does. */
bool ebb_chat_is_sampler_order(const char *list);
/* The line that names what is not followed. */
#define EBB_UNFOLLOWED_LINE "the model's file recommends for sampling what ebb does not follow: %s"

/* Begin to load the model and open the session that `opts` names, else a new one.  *opts is copied;
 * the caller owns *out, NULL on failure.  Returns at once: EBB_EVENT_READY or _ERROR tells how the
 * loading ended.  A store that cannot be opened is a notice, and the chat is kept in memory.
 * Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_chat_open(const ebb_chat_opts *opts, ebb_chat **out, ebb_error *err);
/* Stops an answer under way and saves it; after that the chat can only be asked what it is, saved
 * and closed. */
void ebb_chat_end(ebb_chat *c);
/* The same, and joins the threads.  NULL is fine. */
void ebb_chat_close(ebb_chat *c);

/* -- Events ------------------------------------------------------------------ */
typedef enum ebb_chat_event_kind {
    EBB_EVENT_LOADING,           /* done, total: bytes of the model */
    EBB_EVENT_READY,             /* the model can answer; text: its name */
    EBB_EVENT_PREFILL,           /* done, total: tokens */
    EBB_EVENT_SPECULATIVE_PREFILL, /* done, total: tokens of the conversation and the draft; done of
                                    * them stand */
    EBB_EVENT_TEXT,              /* text was appended to the last message */
    EBB_EVENT_DONE,              /* the answer is finished and saved: see the last message */
    EBB_EVENT_NOTICE,            /* text: one line the user should see */
    EBB_EVENT_WARNING,           /* the same, also where there is no terminal */
    EBB_EVENT_REPORT,            /* text: some lines the user asked for */
    EBB_EVENT_NOTE,              /* text: of a note that joined the path (EBB_ROLE_NOTE) */
    EBB_EVENT_ERROR,             /* text: one line; what was under way has ended */
    EBB_EVENT_REFUSED,           /* text: one line; of what was asked for nothing was done */
    EBB_EVENT_CHANGED,           /* the list of messages is another one (load, undo, edit): draw
                                  * anew */
} ebb_chat_event_kind;

typedef struct ebb_chat_event {
    ebb_chat_event_kind kind;
    uint64_t            done, total;
    const char         *text;    /* valid until the next ebb_chat_event_next; unfiltered */
    size_t              n_text;
} ebb_chat_event;

/* Readable while there may be events. */
int  ebb_chat_fd(const ebb_chat *c);
/* The next event; false: there is none now.  This is where the chat works, saving included: call it
 * when the fd is readable, until it says false. */
bool ebb_chat_event_next(ebb_chat *c, ebb_chat_event *out);

/* -- State --------------------------------------------------------------------- */
bool ebb_chat_is_ready(const ebb_chat *c);       /* model loaded */
bool ebb_chat_is_busy(const ebb_chat *c);        /* an answer is under way, or a job */
/* The conversation ends with a question that has no answer, not even the beginning of one. */
bool ebb_chat_is_question_open(const ebb_chat *c);
/* BUSY, with what has to end first, where it is. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_idle(const ebb_chat *c, ebb_error *err);
/* "importing": what is neither an answer nor the model's opening, and how much of it is done (0 to
 * 1); NULL: nothing.  The text is static. */
const char *ebb_chat_job_under_way(const ebb_chat *c, double *share);
/* The answer under way is written by another process: its number; 0: it is not. */
long ebb_chat_writer_pid(const ebb_chat *c);
/* Before a question is sent that nobody watches: what is sent then comes behind all that other
 * processes have said in this session, and theirs behind it.  BUSY: one of them writes there; the
 * chat follows it (ebb_chat_writer_pid; 0: it begins or ends at this moment).  A session that is
 * deleted by now stays so: a new one begins, and a warning says so.  USAGE: the name of this one,
 * which is not kept yet, is the number of another one by now.  Other errors: those of reading. */
EBB_MUST_CHECK
ebb_status ebb_chat_take_turn(ebb_chat *c, ebb_error *err);
/* The context is full, and the user was asked what to do. */
bool ebb_chat_awaits_overflow_choice(const ebb_chat *c);
/* A budget or a plan was requested, and its report has not arrived yet. */
bool ebb_chat_awaits_report(const ebb_chat *c);
const ebb_model_info *ebb_chat_model(const ebb_chat *c);        /* NULL until ready */
const char *ebb_chat_session_name(const ebb_chat *c);   /* its name, else title; never NULL */
const char *ebb_chat_session_title(const ebb_chat *c);  /* "": it has none yet */
int64_t ebb_chat_session_id(const ebb_chat *c);  /* its number; 0: it is not kept yet */
/* What `ebb -s` finds it by: its number, perhaps behind zeros. */
void ebb_chat_session_word(const ebb_chat *c, char out[static EBB_SESSION_WORD]);
/* What finds a session again, whatever its name is by then, and no session of another database;
 * created_ms as it is there.  It is no name, as it has a tab. */
enum { EBB_SESSION_KEY_BYTES = 48 };
void ebb_session_key(int64_t id, int64_t created_ms, char out[EBB_SESSION_KEY_BYTES]);
/* That of the session at hand; "": it is not kept yet. */
void ebb_chat_session_key(const ebb_chat *c, char out[EBB_SESSION_KEY_BYTES]);
/* Is it the one that -c would open: the last one written to? */
bool ebb_chat_is_newest_session(const ebb_chat *c);
/* Grows whenever another session is begun or opened. */
uint32_t ebb_chat_generation(const ebb_chat *c);
/* There are messages, and all of them are in a store that does not end with the process. */
bool ebb_chat_is_saved(const ebb_chat *c);
/* Before the conversation is left.  What is not in the store is saved once more; where that fails,
 * *err names the file and what can be done, once: asked again, with nothing new said, the answer is
 * OK.  Errors: those of ebb_store_save. */
EBB_MUST_CHECK ebb_status ebb_chat_check_saved(ebb_chat *c, ebb_error *err);
/* Zeroes until an engine exists.  Its phase is idle only if no answer is under way. */
void ebb_chat_stats(const ebb_chat *c, ebb_stats *out);
/* The path of the model of this process if it can be handed over to a server for several
 * (chat_share.c), and which file it is (ebb_models_file_id, EBB_MODELS_FILE_ID bytes).  NULL: a
 * small one, or one opened in an own way. */
const char *ebb_chat_offers_model(const ebb_chat *c, char file[40]);
/* Whether an engine is opened with nothing that another one might not have: only then it is
 * shared. */
bool ebb_chat_engine_is_usual(const ebb_engine_opts *e);
/* Whether the file is so large that it should be in memory once. */
bool ebb_chat_is_worth_sharing(const char *path);
/* Another process wants it: hand it over, as soon as no answer is under way.  The conversation goes
 * on with that server; if it cannot be had, the model is opened here again. */
void ebb_chat_share_model(ebb_chat *c);
/* The remote engine that answers, as the user named it; NULL: that of this process. */
const char *ebb_chat_engine(const ebb_chat *c);
/* Its name in a sentence: of a server that was found not the address that ebb gave it. */
const char *ebb_chat_engine_word(const ebb_chat *c);
/* The seed of the last request for an answer; 0: there was none, or the engine has chosen it. */
uint64_t ebb_chat_seed(const ebb_chat *c);
/* The i-th model that it named when it was connected; "": it named no more, or is not connected.
 * NULL: models are files of this machine, for the engine of this process. */
const char *ebb_chat_engine_model(const ebb_chat *c, size_t i);
struct ebb_remote_figures;                       /* backend.h */
/* What is known of it now; false: the engine is in this process. */
bool ebb_chat_remote(const ebb_chat *c, struct ebb_remote_figures *out);

/* The visible path, root first.  A pointer is valid until the next event or action. */
size_t ebb_chat_n_messages(const ebb_chat *c);
const ebb_message *ebb_chat_message(const ebb_chat *c, size_t i);

typedef enum ebb_chat_action {
    EBB_ACT_SEND, EBB_ACT_EDIT, EBB_ACT_CUT,     /* text: what is sent; i: of EDIT the message */
    EBB_ACT_UNDO, EBB_ACT_GO, EBB_ACT_LOAD,      /* text: a label; a session */
} ebb_chat_action;
typedef struct ebb_chat_cost {
    uint32_t n_before, n_tokens; /* of what the model has now, and would have */
    uint32_t n_new;              /* of these, not of messages that stand */
    uint32_t n_compute;          /* neither in memory nor on disk */
    bool     is_about;           /* nobody here has counted: a remote engine will */
} ebb_chat_cost;
/* What an action would cost; text[n] is 0.  False: nobody can say, or it cannot be done. */
bool ebb_chat_preview(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n,
                      ebb_chat_cost *out);

/* The user types this and rests (act: SEND or EDIT; n 0: he types nothing): what more words will
 * not change is computed while he goes on, if /set prefill allows it and memory does. */
void ebb_chat_prefill_input(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n);

/* The note that decides what the model gets of the path (ebb_message_omits); NULL: it gets all. */
const ebb_message *ebb_chat_truncation_note(const ebb_chat *c);

/* -- Actions: each fails with one line for the user and changes nothing then ----- */
/* Errors of all: BUSY (an answer or a job is under way, or the model is not loaded yet), USAGE
 * (there is nothing that it could be done to), NOMEM; with a remote engine UNSUPPORTED where only
 * ids will do; and those of the store where it is read (store.h).  What is named comes on top. */

/* A question, and the answer to it is begun; before the model is there it waits.  Errors: CONTEXT
 * (no overflow policy makes room for it), NOTFOUND (there is no model). */
EBB_MUST_CHECK ebb_status ebb_chat_send(ebb_chat *c, const char *text, size_t n, ebb_error *err);
#define EBB_CHAT_MAX_ANSWERS 16u
/* The same for so many answers (1..EBB_CHAT_MAX_ANSWERS), written side by side for little more than
 * the reads of one; each has a seed of its own, one larger than that of the one before, and is what
 * it would be alone.  The first is on the path and told by events; the others are its siblings
 * (ebb_chat_branches), and whole when it is DONE.  Errors: UNSUPPORTED (a remote engine),
 * USAGE, and those of ebb_chat_send. */
EBB_MUST_CHECK ebb_status ebb_chat_send_several(ebb_chat *c, uint32_t n_answers, const char *text,
                                                size_t n, ebb_error *err);
void ebb_chat_stop(ebb_chat *c);                 /* keeps what was written */
/* Go on from the last token.  Errors: those of ebb_chat_send. */
EBB_MUST_CHECK ebb_status ebb_chat_continue(ebb_chat *c, ebb_error *err);
/* The last answer becomes these words, in a new branch, and goes on from their last token; ids
 * of words that stay are kept, so nothing of them is computed again.  Errors: those of
 * ebb_chat_send. */
EBB_MUST_CHECK ebb_status ebb_chat_cut(ebb_chat *c, const char *text, size_t n, ebb_error *err);
/* Another answer; the old one stays a branch. */
EBB_MUST_CHECK ebb_status ebb_chat_retry(ebb_chat *c, ebb_error *err);
/* So many other answers, as ebb_chat_send_several has it, with its errors. */
EBB_MUST_CHECK ebb_status ebb_chat_retry_several(ebb_chat *c, uint32_t n_answers,
                                                 ebb_error *err);
/* Take back the last question and its answer. */
EBB_MUST_CHECK ebb_status ebb_chat_undo(ebb_chat *c, ebb_error *err);
EBB_MUST_CHECK ebb_status ebb_chat_redo(ebb_chat *c, ebb_error *err);
/* Message i of the path in other words, in a new branch; a question is sent, with the errors of
 * that. */
EBB_MUST_CHECK ebb_status ebb_chat_edit(ebb_chat *c, size_t i, const char *text, size_t n,
                                        ebb_error *err);
/* The system prompt that the store of the model at hand has for it; NULL: none.  The chat's. */
const char *ebb_chat_advised_system(const ebb_chat *c);
/* "": without a system prompt.  What follows is computed again. */
EBB_MUST_CHECK ebb_status ebb_chat_set_system(ebb_chat *c, const char *text, ebb_error *err);
/* What is not saved of the one at hand is asked about first (ebb_chat_check_saved). */
EBB_MUST_CHECK ebb_status ebb_chat_new_session(ebb_chat *c, ebb_error *err);
/* Name the session; a name with a slash, or one of export's endings, is a file to export to. */
EBB_MUST_CHECK ebb_status ebb_chat_save_as(ebb_chat *c, const char *name, ebb_error *err);
/* Write the path to a file that is not there yet; its name ends in .md, .json or .txt.  More than
 * 1 MiB of text is written meanwhile, if the chat is not busy (ebb_chat_job_under_way): then a
 * notice or REFUSED tells how it ended.  Errors: IO, NOTFOUND (there is no such folder). */
EBB_MUST_CHECK ebb_status ebb_chat_export(ebb_chat *c, const char *path, ebb_error *err);
/* By given name, number or title; asks as ebb_chat_new_session.  Errors: NOTFOUND, LIMIT (several
 * have that title). */
EBB_MUST_CHECK ebb_status ebb_chat_load(ebb_chat *c, const char *name, ebb_error *err);
/* A draft model stays where it can draft for that one, too; else a notice says so.  It is loaded
 * meanwhile: READY or ERROR tell.  Errors: those of ebb_models_resolve; NOTFOUND:
 * the remote engine has no such model, and goes on with its own. */
EBB_MUST_CHECK ebb_status ebb_chat_load_model(ebb_chat *c, const char *path, ebb_error *err);
/* A remote engine could not be reached: the next question looks for it again, and so does
 * ebb_chat_reconnect.  READY or ERROR tell whether it is there. */
bool ebb_chat_can_reconnect(const ebb_chat *c);
EBB_MUST_CHECK ebb_status ebb_chat_reconnect(ebb_chat *c, ebb_error *err);
/* Another engine for what comes: its name, its address, or "here" for the one in this process;
 * `model`: one of those it has, NULL: its own choice.  What was said goes along.
 * Errors: those of ebb_engines_find. */
EBB_MUST_CHECK ebb_status ebb_chat_set_engine(ebb_chat *c, const char *name, const char *model,
                                              ebb_error *err);
/* Ask the engine what it is (NULL: the one at hand); a REPORT follows.  A test that is still under
 * way is stopped for it, without a report.  Errors: those of ebb_engines_find. */
EBB_MUST_CHECK ebb_status ebb_chat_test_engine(ebb_chat *c, const char *name, ebb_error *err);
/* Another draft model for the model at hand, which is loaded again: "auto": one that pays; NULL:
 * none.  Errors: those of ebb_models_resolve; NOTFOUND: the file of the model at hand is gone, and
 * it goes on as it is. */
EBB_MUST_CHECK ebb_status ebb_chat_set_draft(ebb_chat *c, const char *name, ebb_error *err);
const char *ebb_chat_draft(const ebb_chat *c);   /* as it was named; NULL: none was */
/* The chat template of the session, from the next question on: a family ("chatml"), a file, "none",
 * or "auto", the file's own or what suits; a notice says which it is.  Errors: NOTFOUND (names the
 * families), FORMAT (for what is no regular file, too). */
EBB_MUST_CHECK ebb_status ebb_chat_set_template(ebb_chat *c, const char *name, ebb_error *err);
/* What was chosen; "auto": nothing. */
const char *ebb_chat_template(const ebb_chat *c);
/* The form that this session's answers have from the next on: a JSON schema (a file, or its text)
 * or a grammar in GBNF (a file); "off": none.  Kept with the session.  It is compiled meanwhile; a
 * notice says that it holds, or REFUSED why not: those of schema/answer_form.h, LIMIT (too large to
 * be kept).  Error: UNSUPPORTED (the remote engine takes none). */
EBB_MUST_CHECK ebb_status ebb_chat_set_form(ebb_chat *c, bool is_schema, const char *word,
                                            ebb_error *err);
void ebb_chat_tell_form(ebb_chat *c);            /* what it is now, as a notice */
/* The name of its file, "" of a schema's text; NULL: answers are free. */
const char *ebb_chat_form(const ebb_chat *c, bool *is_schema);
/* Sampler and other settings by name; `value` NULL: describe it in *text (value, range, help).
 * BUSY only while the answer of another process is followed, which saves its own settings. */
EBB_MUST_CHECK ebb_status ebb_chat_set(ebb_chat *c, const char *name, const char *value, char *text,
                                       size_t cap, ebb_error *err);
const char *ebb_chat_setting_name(size_t i);     /* NULL past the last */

/* Room in the context now: FORGET the oldest n_turns (0: until half of it is free), have them
 * summed up (COMPACT), or GROW the context.  A question that found no room is answered then, an
 * answer that was cut off goes on.  Errors: CONTEXT (nothing is left to free), BUDGET, UNSUPPORTED
 * and NOTFOUND (GROW; of the model's file). */
EBB_MUST_CHECK ebb_status ebb_chat_free_context(ebb_chat *c, ebb_overflow_policy how,
                                                uint32_t n_turns, ebb_error *err);

/* Another budget for the model's memory (0: what the machine has), now or after the answer
 * under way.  Notices say what it will bring, what came of it, and what ebb_chat_replan would. */
EBB_MUST_CHECK ebb_status ebb_chat_set_budget(ebb_chat *c, uint64_t bytes, ebb_error *err);
/* Open the model at hand as a new plan for that budget has it, with another context and another
 * type of K and V, perhaps.  Errors: those of ebb_chat_set_ctx. */
EBB_MUST_CHECK ebb_status ebb_chat_replan(ebb_chat *c, uint64_t bytes, ebb_error *err);
/* Have `text` (n == 0: the last question again) answered by a better file of the same network, and
 * go back to the one at hand.  A notice says the price first.  Errors: NOTFOUND (one of them),
 * BUDGET. */
EBB_MUST_CHECK ebb_status ebb_chat_answer_better(ebb_chat *c, const char *text, size_t n,
                                                 ebb_error *err);
/* The price alone, as a notice.  Errors: the same. */
EBB_MUST_CHECK ebb_status ebb_chat_price_better(ebb_chat *c, ebb_error *err);
/* Open the model at hand with a context of n_ctx tokens (EBB_CTX_MAX: the longest that stays in
 * memory); what was said is read back, from the KV cache where it is there.  Where the conversation
 * is longer, the first call says what would be left out and computed again, and changes nothing; a
 * second one at the same place does it.  Errors: CONTEXT (what cannot be left out is longer),
 * BUDGET, NOTFOUND (the model's file is gone: it goes on as it is). */
EBB_MUST_CHECK ebb_status ebb_chat_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err);
/* The plan of the model at hand comes as a REPORT, now or after the answer under way. */
EBB_MUST_CHECK ebb_status ebb_chat_plan(ebb_chat *c, ebb_error *err);

/* Newest first; *out is free()d by the caller. */
EBB_MUST_CHECK ebb_status ebb_chat_list(ebb_chat *c, ebb_session_row **out, size_t *n,
                                        ebb_error *err);

/* A message of any session that has all the words looked for. */
typedef struct ebb_chat_hit {
    int64_t  session, created_ms;
    ebb_role role;
    char     name[128];          /* of the session */
    char     snippet[256];       /* one line around the first hits */
} ebb_chat_hit;
/* Newest first, at most `limit`; *out is free()d by the caller.  Cost: that of ebb_store_search. */
EBB_MUST_CHECK ebb_status ebb_chat_search(ebb_chat *c, const char *words, size_t limit,
                                          ebb_chat_hit **out, size_t *n, ebb_error *err);
EBB_MUST_CHECK ebb_status ebb_chat_set_title(ebb_chat *c, const char *title, ebb_error *err);
/* name "": the session at hand; then a new one begins.  BUSY: an answer is written in it, here or
 * by another process; LIMIT: others that were deleted here before could not be brought back any
 * more, which the same call once more accepts. */
EBB_MUST_CHECK ebb_status ebb_chat_delete(ebb_chat *c, const char *name, ebb_error *err);
/* The one deleted last here, then the one before; opens it.  USAGE: there is none (any more). */
EBB_MUST_CHECK ebb_status ebb_chat_undelete(ebb_chat *c, ebb_error *err);
/* Keep every conversation of the file as a session, all or none, and open the last.  It is done
 * meanwhile; then CHANGED and a notice tell, or REFUSED says why nothing was kept.  Errors: BUSY,
 * IO (there is no store), NOMEM. */
EBB_MUST_CHECK ebb_status ebb_chat_import(ebb_chat *c, const char *path, ebb_error *err);

typedef struct ebb_linger {
    uint32_t limit_s, grace_s;
    int      stop_fd;            /* -1: none */
    bool   (*is_stop)(void *arg); /* asked when stop_fd is readable, which it reads; NULL: that is
                                     enough */
    int      request_fd;         /* when it is readable, on_request is called meanwhile; -1: none */
    void   (*on_request)(void *arg);
    void    *arg;
} ebb_linger;

/* The reader has left: wait until the answer under way has ended (true), or limit_s
 * have passed or stop_fd says so (false).  How it ended is shown when the
 * session is opened next, also if it ends by ebb_chat_close.  From this call on the
 * process has limit_s + grace_s to live: an alarm ends it. */
bool ebb_chat_linger(ebb_chat *c, const ebb_linger *how);

/* -- The tree ------------------------------------------------------------------------ */
#define EBB_BRANCH_LABEL 24
typedef struct ebb_branch {
    const ebb_message *message;  /* valid until the next event or action */
    size_t   parent;             /* row of the message above it, SIZE_MAX: none */
    bool     has_next, is_only;  /* a sibling follows; it has no siblings */
    bool     is_on_path, is_leaf;
    char     label[EBB_BRANCH_LABEL];    /* "5": the fifth message; "5b": the second of those */
} ebb_branch;
/* All messages, each followed by what is below it; *out is free()d by the caller, NULL on failure.
 * Error: NOMEM.  Cost: O(n log n). */
EBB_MUST_CHECK ebb_status ebb_chat_branches(ebb_chat *c, ebb_branch **out, size_t *n,
                                            ebb_error *err);
/* Stand at the message with this label if it is on the path, else at the newest end of its
 * branch.  Errors: as of actions; this and what follows move only. */
EBB_MUST_CHECK ebb_status ebb_chat_go(ebb_chat *c, const char *label, ebb_error *err);
/* Stand at message i of the path, before it if it is a question: what is sent next is another
 * branch. */
EBB_MUST_CHECK ebb_status ebb_chat_branch(ebb_chat *c, size_t i, ebb_error *err);
/* Message i of the path stays in the context when turns are forgotten. */
EBB_MUST_CHECK ebb_status ebb_chat_pin(ebb_chat *c, size_t i, bool is_pinned, ebb_error *err);

#endif
