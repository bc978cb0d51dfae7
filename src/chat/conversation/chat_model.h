/* chat/conversation/chat_model.h - the backend that answers: how it is opened, and what only one of
 * ids can do. */
#ifndef EBB_CHAT_CHAT_MODEL_H
#define EBB_CHAT_CHAT_MODEL_H
#include "backend/backend.h"
#include "conversation/chat.h"

/* What a model is opened with. */
typedef struct ebb_model_opening {
    ebb_engine_opts opts;
    char           *draft_path;          /* NULL: no draft model */
    bool            draft_is_optional;   /* it was named for another model than the one at hand, or
                                          * in the chat */
    bool            is_chosen;           /* the user named the model at hand */
    bool            is_unnamed;          /* the next one is opened by a path that nobody named */
    bool            is_deferred;         /* until the process that writes in this session has ended
                                          * ... */
    char           *wanted;              /* ... this one; NULL: the default */
    char           *asked;               /* the file that was asked for last; NULL: the default */
} ebb_model_opening;

/* The model of this process for several (chat_share.c). */
typedef struct ebb_chat_sharing {
    char *address;               /* ebb_chat_opts.shared_address; NULL: never */
    char  file[40];              /* the id of the model that it is for */
    bool  is_wanted;             /* by another process; soon */
    bool  is_refused;            /* the user wants it here, or the server could not be had */
} ebb_chat_sharing;

/* A remote engine. */
typedef struct ebb_remote_choice {
    char *name;                  /* or address, as the user gave it; NULL: the engine of this
                                  * process answers */
    char *model;                 /* the model that it is asked for; NULL: the one it has */
    char *here_model;            /* the path of the model that answered in this process before, or
                                  * would if no server had been found; NULL: none did yet */
    bool  is_found;              /* nobody named it: ebb_chat_opts.here_model */
    bool  here_is_chosen;        /* and the user named that model */
    struct ebb_engine_tester *testers;   /* chat_engines.c; NULL: nothing is tested */
} ebb_remote_choice;

/* -- chat_model.c ------------------------------------------------------------------ */
/* Close the backend, and open one for `path` (NULL: the default).  The turn is told by
 * ebb_chat_open_model (chat_turn.h), which is for everybody else. */
EBB_MUST_CHECK
ebb_status ebb_chat_open_backend(ebb_chat *c, const char *path, ebb_error *err);
/* What the backend has sent and nobody has handled is lost. */
void ebb_chat_close_backend(ebb_chat *c);
/* Can the model that `name` means be opened?  For what closes the one at hand.  Errors: those of
 * ebb_models_resolve and ebb_models_check, and so is its cost. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_model(const ebb_chat *c, const char *name, ebb_error *err);
/* Can the model at hand be opened again?  NOTFOUND: its file is gone; the open model goes on
 * without it, and what would close it should not begin. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_file_at_hand(const ebb_chat *c, ebb_error *err);
/* What opens the model at hand again: its file, or EBB_MODELS_GUIDE.  The caller frees *out.
 * Errors: NOTFOUND as above, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_chat_model_path(const ebb_chat *c, char **out, ebb_error *err);

/* -- chat_state.c ------------------------------------------------------------------ */
/* What an engine of messages is, and NULL of one of ids (or of none). */
const ebb_backend_facts *ebb_chat_facts(const ebb_chat *c);
/* UNSUPPORTED, with who can: what only an engine of ids does.  OK: the one at hand does. */
EBB_MUST_CHECK
ebb_status ebb_chat_need_ids(const ebb_chat *c, const char *what, ebb_error *err);

/* Is the remote engine the server for several (address.h)? */
#define EBB_SHARED_PREFIX "shared:"
bool ebb_chat_is_shared(const ebb_chat *c);
/* Is it that, or another one that nobody has named: one that is to answer as this process would? */
bool ebb_chat_engine_is_found(const ebb_chat *c);

/* -- chat_share.c ------------------------------------------------------------------ */
EBB_MUST_CHECK
bool ebb_chat_sharing_init(ebb_chat *c, const ebb_chat_opts *o);  /* false: no memory */
void ebb_chat_sharing_fini(ebb_chat *c);
/* The model that is being opened; where none is named, the one that is expected to be chosen. */
const char *ebb_chat_opening_path(const ebb_chat *c);
/* An engine that was found does not answer as this process would where a chat template was chosen:
 * a server has its own.  true: it is left for its model here, which the caller opens
 * (remote.here_model).  false: there is nothing to leave, or that model cannot be opened, and it
 * stays.  A notice says so. */
bool ebb_chat_leave_found_engine(ebb_chat *c);
/* The same for a session that was entered, with opening it; while another process writes there, the
 * memory is that one's, and all stays until it has ended. */
EBB_MUST_CHECK
ebb_status ebb_chat_fit_engine(ebb_chat *c, ebb_error *err);
/* The server for several cannot be had: open its model here.  false: it is another engine, or that
 * failed, too. */
bool ebb_chat_share_failed(ebb_chat *c, const char *why);

/* -- chat_engines.c ---------------------------------------------------------------- */
/* NOTFOUND: the remote engine has named its models, and this is none of them. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_engine_model(const ebb_chat *c, const char *name, ebb_error *err);
void ebb_chat_end_tests(ebb_chat *c);            /* and wait for them */
/* Hand the model over to the server for several if that is wanted and nothing is under way. */
void ebb_chat_share_if_idle(ebb_chat *c);

#endif
