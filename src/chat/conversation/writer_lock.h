/* chat/conversation/writer_lock.h - the lock of the process that writes in a session.
 *
 * Who writes holds a lock on a file beside the store, named after the session, with its process
 * number in it; the kernel takes the lock away however it ends.  Who opens the session meanwhile
 * reads the answer from the store, where it is saved at least once a second (chat_follow.c), and
 * opens a model only when the lock is free: the memory is the other's until then, and so is what it
 * leaves of K and V on disk. */
#ifndef EBB_CHAT_WRITER_LOCK_H
#define EBB_CHAT_WRITER_LOCK_H
#include <sys/types.h>

#include "base/buf.h"
#include "conversation/chat.h"
#include "store/store.h"

enum { EBB_FOLLOW_MS = 500,      /* between two looks */
       EBB_FOLLOW_LOOKS = 2 };   /* for who answers next */

/* Others can look on: the file that says so. */
typedef struct ebb_writer_lock {
    int     fd;                  /* -1: none */
    ebb_buf path;
} ebb_writer_lock;

/* An answer in this session that another process writes. */
typedef struct ebb_chat_following {
    int64_t session;             /* 0: there is none */
    pid_t   writer;
    int     n_looks;             /* that found nobody writing */
} ebb_chat_following;

/* Others that open the session may look on from here to the unlocking.  false: another process
 * writes there. */
bool ebb_chat_lock_writer(ebb_chat *c);
void ebb_chat_unlock_writer(ebb_chat *c);
/* For a session of a name that is not kept yet, from the look whether another process has made it
 * to the first save; the writer's lock takes its place.  false: another process begins one. */
bool ebb_chat_lock_name(ebb_chat *c);
void ebb_chat_unlock_name(ebb_chat *c);
/* The name of the session's file; false: it has none, or no memory. */
bool ebb_writer_lock_path(const ebb_store *s, int64_t session, ebb_buf *out);
/* The process that writes in this session; 0: none but this one. */
pid_t ebb_writer_find(const ebb_chat *c, int64_t session);
/* The same where there is no chat: 0 means none. */
pid_t ebb_writer_find_any(const ebb_store *s, int64_t session);
/* Before a search: answers whose writers were killed, and that nobody has looked at since, are
 * found too.  `c` is the chat of this process, which may be writing itself; NULL: there is none. */
void ebb_writer_note_cut(ebb_store *s, const ebb_chat *c);
/* Before a session is deleted, of what one of these has found.  BUSY, unless it is 0: what is
 * written there would be deleted under the writer's hands. */
EBB_MUST_CHECK
ebb_status ebb_writer_check_none(pid_t writer, ebb_error *err);
/* Look on in this session if another process writes in it.  To be asked before the session is
 * loaded. */
bool ebb_chat_follow(ebb_chat *c, int64_t session);

/* -- chat_follow.c ----------------------------------------------------------------- */
void ebb_chat_follow_poll(ebb_chat *c);          /* the timer has rung */
void ebb_chat_follow_stop(ebb_chat *c);          /* have the other stop */

#endif
