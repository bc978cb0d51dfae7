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
    bool            is_deferred;         /* until the process that writes in this session has ended
                                          * ... */
    char           *wanted;              /* ... this one; NULL: the default */
} ebb_model_opening;

/* An engine elsewhere. */
typedef struct ebb_remote_choice {
    char *name;                  /* or address, as the user gave it; NULL: the engine of this
                                  * process answers */
    char *model;                 /* the model that it is asked for; NULL: the one it has */
    char *here_model;            /* the path of the model that answered in this process before;
                                  * NULL: none did yet */
    struct ebb_engine_tester *tester;    /* chat_engines.c; NULL: nothing is tested */
} ebb_remote_choice;

/* -- chat_model.c ------------------------------------------------------------------ */
/* Close the backend, and open one for `path` (NULL: the default).  The turn is told by
 * ebb_chat_open_model (chat_turn.h), which is for everybody else. */
EBB_MUST_CHECK
ebb_status ebb_chat_open_backend(ebb_chat *c, const char *path, ebb_error *err);
/* What the backend has sent and nobody has handled is lost. */
void ebb_chat_close_backend(ebb_chat *c);
/* The file of the model at hand, to open it again; NULL: the embedded guide.  *ok: there was
 * memory. */
char *ebb_chat_model_path(const ebb_chat *c, bool *ok);

/* -- chat_state.c ------------------------------------------------------------------ */
/* What an engine of messages is, and NULL of one of ids (or of none). */
const ebb_backend_facts *ebb_chat_facts(const ebb_chat *c);
/* BUSY while an answer is under way. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_idle(const ebb_chat *c, ebb_error *err);
/* REFUSED with who can: what only an engine of ids does.  OK: the one at hand does. */
EBB_MUST_CHECK
ebb_status ebb_chat_need_ids(const ebb_chat *c, const char *what, ebb_error *err);

/* -- chat_engines.c ---------------------------------------------------------------- */
void ebb_chat_end_test(ebb_chat *c);             /* and wait for it */

#endif
