/* chat/store/store.h - conversations on disk: one SQLite database of sessions, each a
 * tree of messages with their token ids.
 *
 * A save is one transaction, so after a crash at any
 * moment the database holds all of it or nothing of it.  Several processes may
 * use the same database; two that talk in the same session make two branches
 * of its tree.  A database that is locked, read-only, full, damaged or of a newer
 * program gives an error of one line, and the tree in memory is as it was.
 *
 * The schema is in docs/FORMATS.md.  Calls of one store come from one thread. */
#ifndef EBB_CHAT_STORE_H
#define EBB_CHAT_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/progress.h"
#include "ebb/status.h"
#include "store/session_row.h"
#include "tree/tree.h"

typedef struct ebb_store ebb_store;

/* path NULL: $XDG_STATE_HOME/ebb/sessions.db; the directory (0700) and the file (0600)
 * are made.  ":memory:" is a database that ends with the process.  A file that
 * cannot be written, or is in a folder that cannot, opens all the same and can be read.
 * Errors: BUSY (locked, or another program has it open and its log was removed), FORMAT (damaged,
 * no database), UNSUPPORTED (of a newer program), IO, NOTFOUND, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_store_open(const char *path, ebb_store **out, ebb_error *err);
void ebb_store_close(ebb_store *s);              /* NULL is fine */
/* Another connection to the same file, of this process: for another thread.  ebb_store_open would
 * open and close the file beside SQLite, and with that give up the first one's locks (POSIX's are a
 * process's).  It is closed before `s`.  Errors: those of SQLite. */
EBB_MUST_CHECK
ebb_status ebb_store_open_beside(const ebb_store *s, ebb_store **out, ebb_error *err);
const char *ebb_store_path(const ebb_store *s);
bool ebb_store_is_readonly(const ebb_store *s);
/* The file was moved, removed or replaced, perhaps with its folder, since it was opened: what would
 * be written now, nobody would find. */
bool ebb_store_is_moved(const ebb_store *s);
/* Another program has removed or replaced the write-ahead log or its index: what is in the log is
 * this process's alone, and goes with it. */
bool ebb_store_has_lost_log(const ebb_store *s);
/* Then, after each save: what is in the log goes to the database, durably.  *is_alone: nobody else
 * has the database open, so it can be closed, and opened with a new log.  Errors: those of
 * SQLite. */
EBB_MUST_CHECK
ebb_status ebb_store_empty_log(ebb_store *s, bool *is_alone, ebb_error *err);

/* What is known of a session beside its messages.  A zeroed one is new. */
typedef struct ebb_session_facts {
    int64_t id;                  /* 0: not in the store */
    char    name[128];           /* given by the user; "": none */
    char    title[128];          /* made from the first question */
    char    model[96];           /* who answered last */
    int64_t pinned_ms;           /* the date that templates see, Unix time; 0: none yet */
    int64_t created_ms;          /* of its row; 0: it has had none */
    int64_t changed_ms;          /* of an imported one that is not in the store yet: when it was
                                  * last changed; 0: now */
    char   *settings;            /* JSON object, NULL: none; owned by these facts */
    int64_t leaf;                /* in the store, when it was last read or saved; 0: none */
    bool    is_shared;           /* another program has set the leaf since it was read */
    bool    keeps_id;            /* its row was deleted here: it comes back with its number, by
                                  * which what was not sent there is found */
    bool    stays_deleted;       /* where another program has deleted its row, a save writes nothing
                                  * and sets ... */
    bool    is_deleted;
} ebb_session_facts;
void ebb_session_facts_fini(ebb_session_facts *f);
/* The given name, else the title. */
const char *ebb_session_facts_label(const ebb_session_facts *f);

/* In another store than before: the next save writes the session whole, as a new one. */
void ebb_session_leave_store(ebb_session_facts *f, ebb_tree *t);

/* Write the facts, the leaf and every dirty message.  New messages and a new session get their
 * numbers.  The name of a session that is there is read: another program may have given it one.
 * If the session is deleted, it is written whole, as a new one but for keeps_id, unless it
 * stays_deleted; messages that another one took back are written again where these need them.
 * With `durable` it also survives a loss of power, at the price of a sync, and waits longer for a
 * lock.  On failure nothing was changed, here or there; USAGE: another session has this name, be it
 * as its number; NOTFOUND: the file was moved (ebb_store_is_moved), or its log was cut short. */
EBB_MUST_CHECK
ebb_status ebb_store_save(ebb_store *s, ebb_session_facts *f, ebb_tree *t, bool durable,
                          ebb_error *err);
/* What is saved from here on, new sessions alone, is kept together, durably, by the commit, or not
 * at all; `p` counts to n_nodes messages, may be NULL, and stops it.  With `p` a lock of another
 * program is waited for until it is stopped.  Nobody else uses the store meanwhile; a failed save
 * ends in the drop.
 * Errors: BUSY, CANCELED, IO, NOTFOUND. */
EBB_MUST_CHECK
ebb_status ebb_store_batch_begin(ebb_store *s, size_t n_nodes, ebb_progress *p, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_store_batch_commit(ebb_store *s, ebb_error *err); /* one that fails is dropped */
void ebb_store_batch_drop(ebb_store *s);
/* Remove a message that has no children (none is fine), and whose text has n_stored bytes, as when
 * it was read or saved here.  BUSY: another program has written more of it, or below it; it
 * stays. */
EBB_MUST_CHECK
ebb_status ebb_store_delete_message(ebb_store *s, int64_t message, size_t n_stored, ebb_error *err);
/* Fill *f and *t, which must be empty, and stand at the saved leaf.  On failure both are empty.
 * Errors: NOTFOUND (no such session), NOMEM, and those of reading: BUSY, FORMAT (damaged), IO. */
EBB_MUST_CHECK
ebb_status ebb_store_load(ebb_store *s, int64_t session, ebb_session_facts *f, ebb_tree *t,
                          ebb_error *err);

/* Nobody writes in this session: answers that are still under way there were cut off, by a crash.
 * From here on a search finds them.  What cannot be written stays as it is. */
void ebb_store_note_cut(ebb_store *s, int64_t session);
/* Sessions that end with an answer under way; *out is free()d by the caller, NULL for none. */
EBB_MUST_CHECK
ebb_status ebb_store_list_under_way(ebb_store *s, int64_t **out, size_t *n, ebb_error *err);

/* Append the text of the session's leaf, as far as it is saved by now, to *text;
 * *message: which one, 0: none.  Errors: NOMEM, those of reading. */
EBB_MUST_CHECK
ebb_status ebb_store_read_leaf_text(ebb_store *s, int64_t session, int64_t *message, ebb_buf *text,
                                    ebb_error *err);

/* The session with this given name or number, else title.  NOTFOUND names what there is to do;
 * LIMIT: several are meant, and it names their numbers. */
EBB_MUST_CHECK
ebb_status ebb_store_find(ebb_store *s, const char *name, int64_t *session, ebb_error *err);
/* The same where a name that is missing begins a new session: a number does not lead into one that
 * is called by another number (LIMIT), but behind a 0. */
EBB_MUST_CHECK
ebb_status ebb_store_find_or_begin(ebb_store *s, const char *name, int64_t *session,
                                   ebb_error *err);
/* The session with this given name alone; NOTFOUND, without a message, if there is none. */
EBB_MUST_CHECK
ebb_status ebb_store_find_named(ebb_store *s, const char *name, int64_t *session, ebb_error *err);
/* What finds this session in either way: its number, behind as many zeros as that needs. */
void ebb_store_word(ebb_store *s, int64_t session, char out[static EBB_SESSION_WORD]);
/* The one changed last; NOTFOUND if there is none. */
EBB_MUST_CHECK
ebb_status ebb_store_last(ebb_store *s, int64_t *session, ebb_error *err);
/* Newest first; *out is free()d by the caller, NULL on failure.  Errors: NOMEM, those of
 * reading. */
EBB_MUST_CHECK
ebb_status ebb_store_list(ebb_store *s, ebb_session_row **out, size_t *n, ebb_error *err);
/* May a user give a session this name?  Lists show it in a line, as it is, commands take it without
 * blanks around it, and it fits ebb_session_facts.
 * USAGE says what it may be. */
EBB_MUST_CHECK
ebb_status ebb_session_check_name(const char *name, ebb_error *err);
/* USAGE if a session has this name, or this number. */
EBB_MUST_CHECK
ebb_status ebb_store_check_free_name(ebb_store *s, const char *name, ebb_error *err);
/* USAGE if it is no name, or another session has it, be it as its number. */
EBB_MUST_CHECK
ebb_status ebb_store_rename(ebb_store *s, int64_t session, const char *name, ebb_error *err);
/* What it said is overwritten in the database; ebb_store_scrub for the index and the log.
 * Errors: NOTFOUND, BUSY, IO (read-only, among others). */
EBB_MUST_CHECK
ebb_status ebb_store_delete(ebb_store *s, int64_t session, ebb_error *err);
/* The same of several, each named once: all of them, or on failure none. */
EBB_MUST_CHECK
ebb_status ebb_store_delete_all(ebb_store *s, const int64_t *sessions, size_t n, ebb_error *err);
/* After deleting: words of what was deleted leave the index of the search and the write-ahead log.
 * `is_thorough`: the file is written anew, for what an older ebb deleted without overwriting it; no
 * other thread uses SQLite then.
 * Cost: that of reading and writing the index, or all; thoroughly also a copy on disk, in memory if
 * it is encrypted.  BUSY: another program reads, so some stays. */
EBB_MUST_CHECK
ebb_status ebb_store_scrub(ebb_store *s, bool is_thorough, ebb_error *err);
/* Remove what was copied before a migration: sessions.db-before-vN. */
void ebb_store_remove_copies(ebb_store *s);

/* Called with the ids of a message; they are valid during the call. */
typedef void ebb_store_ids_fn(void *arg, int64_t session, const int32_t *ids, size_t n);
/* Of the n_rows newest messages older than *before (INT64_MAX: of all), newest first, the ids of
 * those whose ids are of this model.  *before becomes the oldest of them, 0 if there is none
 * older.  Cost: that of reading n_rows messages.  Errors: those of reading. */
EBB_MUST_CHECK
ebb_status ebb_store_read_ids(ebb_store *s, int64_t *before, uint32_t n_rows,
                              const uint8_t model[16], ebb_store_ids_fn *fn, void *arg,
                              ebb_error *err);

/* A message that has all the words looked for, each perhaps as the beginning of a longer one, or of
 * a script without blanks between words anywhere. */
typedef struct ebb_store_hit {
    int64_t  session, message, created_ms;
    ebb_role role;
    char     name[128];          /* of the session */
    char     snippet[256];       /* around the first hits, which stand between these: */
} ebb_store_hit;
#define EBB_HIT_BEGIN '\x02'
#define EBB_HIT_END   '\x03'
/* Newest first, at most `limit`; finished messages only.  *out is free()d by the caller, NULL on
 * failure.  Errors: USAGE (no words), NOMEM, those of reading. */
EBB_MUST_CHECK
ebb_status ebb_store_search(ebb_store *s, const char *words, size_t limit,
                            ebb_store_hit **out, size_t *n, ebb_error *err);
/* Of the last search: there was so much text that of the oldest messages words of a script without
 * blanks were found at the beginning of a run of its letters alone. */
bool ebb_store_search_was_cut(const ebb_store *s);
#define EBB_SEARCH_CUT_LINE "only the newest messages were looked through: in the others a word " \
    "of a script without blanks is found where a run of its letters begins"

#endif
