/* chat/conversation/chat_session.h - the session that a chat is in: opened, saved, its system
 * prompt. */
#ifndef EBB_CHAT_CHAT_SESSION_H
#define EBB_CHAT_CHAT_SESSION_H
#include "conversation/chat.h"
#include "store/store.h"
#include "tree/tree.h"

typedef struct ebb_chat_saving {
    char     *path;              /* of the store; NULL: the default */
    bool      is_unsaved;        /* the last save failed, and the user was told ... */
    ebb_error why;               /* ... this */
    bool      owes_sync;         /* it was to reach the disk itself: so must the next one */
    size_t    n_given_up;        /* messages of the tree when the user was told that they will be
                                  * lost */
    uint64_t  retry_ns;          /* when to save again; 0: not by itself */
} ebb_chat_saving;

typedef struct ebb_deleted_session ebb_deleted_session;

struct ebb_deleted_session {
    ebb_deleted_session *older;
    ebb_session_facts    facts;  /* id 0: the store that it was in is another one by now */
    ebb_tree             tree;
    size_t               n_bytes; /* of memory, about */
};

enum { EBB_DELETED_BYTES_MOST = 64 << 20 };

/* What was deleted here can come back until this chat ends: each session was told so.  Above
 * EBB_DELETED_BYTES_MOST the oldest are given up, and before that it is asked. */
typedef struct ebb_deleted_sessions {
    ebb_deleted_session *newest;
    int64_t              asked;  /* the session whose deletion gives up others, as the user was told
                                  * just now; 0: none */
} ebb_deleted_sessions;

/* -- chat_session.c ---------------------------------------------------------------- */
/* The store, and the session that the options name.  One that cannot be read is a notice, and no
 * reason not to talk, unless the options need it: errors are those of ebb_store_open and
 * ebb_store_load then. */
EBB_MUST_CHECK
ebb_status ebb_chat_open_session(ebb_chat *c, const ebb_chat_opts *o, ebb_error *err);
/* The session at hand, as it is in the store by now. */
EBB_MUST_CHECK
ebb_status ebb_chat_reload_session(ebb_chat *c, int64_t session, ebb_error *err);
/* The same, and look on if another process writes there, also one that has begun just now. */
EBB_MUST_CHECK
ebb_status ebb_chat_reload_and_follow(ebb_chat *c, int64_t session, ebb_error *err);
/* Take the session's tree, facts and settings in place of those at hand; what is not saved of them
 * is asked about. */
EBB_MUST_CHECK
ebb_status ebb_chat_enter_session(ebb_chat *c, int64_t session, ebb_error *err);
/* Say so if the last answer was never finished, or never begun; then it is dropped.  Not while
 * another process writes there: it may be that one's. */
void ebb_chat_report_interrupted(ebb_chat *c);

/* -- chat_save.c ------------------------------------------------------------------- */
/* Whether there is a store; where it could not be opened, or its file was moved away, it is opened
 * anew.  Before each use. */
bool ebb_chat_ensure_store(ebb_chat *c);
/* Save everything.  A failure is a notice, once, and so is the first success after it. */
void ebb_chat_save(ebb_chat *c, bool durable);
/* The same of the name that a session was given just now: the store is opened again if needed, as
 * the disk may have space again, or the lock be free.  Errors: those of ebb_store_open and
 * ebb_store_save. */
EBB_MUST_CHECK
ebb_status ebb_chat_save_named(ebb_chat *c, ebb_error *err);
/* Behind USAGE of a save: meanwhile another session took its name.  That is told, and it is saved
 * without one. */
EBB_MUST_CHECK
ebb_status ebb_chat_save_under_title(ebb_chat *c, ebb_session_facts *f, ebb_tree *t, bool durable,
                                     ebb_error *err);
/* The path is another one: it is saved and told. */
void ebb_chat_save_changed_path(ebb_chat *c);
/* ebb_chat_check_saved for what takes another conversation: the error says that it can be done all
 * the same. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_switch(ebb_chat *c, ebb_error *err);
/* What is said cannot be saved, for this reason; if it may pass, the timer tries again. */
void ebb_chat_set_unsaved(ebb_chat *c, const ebb_error *err);
void ebb_chat_set_saved(ebb_chat *c);            /* nothing is left to be saved */
/* Another conversation takes its place: what was not saved went with the one before, and of this
 * one it will be said anew. */
void ebb_chat_leave_unsaved(ebb_chat *c);

/* -- chat_system.c ----------------------------------------------------------------- */
/* Put the system prompt at the root of the path (NULL or "": take it away); where messages follow,
 * they are copied below the new root. */
EBB_MUST_CHECK
ebb_status ebb_chat_replace_system(ebb_chat *c, const char *text, ebb_error *err);
/* A session was entered for the options: a new one begins with their system prompt.  One that is
 * there keeps its own; where the user gave another one for this run, that is told. */
EBB_MUST_CHECK
ebb_status ebb_chat_begin_system(ebb_chat *c, ebb_error *err);

/* The same of one that was saved just now; on success it is the chat's, else it stays the
 * caller's. */
EBB_MUST_CHECK
ebb_status ebb_chat_enter_imported(ebb_chat *c, ebb_session_facts *facts, ebb_tree *tree,
                                   ebb_error *err);

/* -- chat_sessions.c --------------------------------------------------------------- */
/* BUSY: something is under way; IO: there is no store. */
EBB_MUST_CHECK
ebb_status ebb_chat_check_store_idle(ebb_chat *c, ebb_error *err);
void ebb_chat_free_deleted(ebb_chat *c);         /* all of them */

/* -- chat_away.c ------------------------------------------------------------------- */
/* The answer has ended: if nobody looks, that is kept for later.  Before the save. */
void ebb_chat_record_away(ebb_chat *c, const ebb_message *answer);
/* A session was opened: say what happened in it unseen, once. */
void ebb_chat_report_away(ebb_chat *c);

/* -- chat_branches.c --------------------------------------------------------------- */
/* The message of a label if it is on the path, else the newest end of its branch. */
EBB_MUST_CHECK
ebb_status ebb_chat_find_label(ebb_chat *c, const char *label, ebb_node **out, ebb_error *err);

/* -- chat_state.c ------------------------------------------------------------------ */
/* BUSY while the answer of another process is followed: title, settings and marks are that one's,
 * which saves what it has. */
EBB_MUST_CHECK ebb_status ebb_chat_check_own(const ebb_chat *c, ebb_error *err);

#endif
