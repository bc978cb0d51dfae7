/* chat/store/store_sql.h - the store's own access to SQLite: store*.c and its tests only. */
#ifndef EBB_CHAT_STORE_SQL_H
#define EBB_CHAT_STORE_SQL_H
#include <sqlite3.h>
#include <stdbool.h>

#include "os/file.h"
#include "store/store.h"

#define EBB_STORE_LOG_FILES 2

struct ebb_store {
    sqlite3 *db;
    char    *path;
    int      lock;               /* PATH-lock, shared (store/sealed.h); -1: none */
    const char *vfs;             /* NULL: the usual one */
    ebb_file_id log[EBB_STORE_LOG_FILES]; /* log, index; inode 0: there was none at the opening */
    bool     is_readonly;
    bool     is_search_cut;      /* ebb_store_search_was_cut */
    bool     is_index_damaged;   /* ebb_store_note_damage */
    size_t   look_bytes;         /* 0: EBB_STORE_LOOK_BYTES */
    bool     is_impatient;       /* the last save met a lock: do not hold the user up again */
    struct {                     /* between ebb_store_batch_begin and its end */
        bool          is_open;
        ebb_progress *progress;  /* NULL: nobody watches */
        size_t        n_saved, n_nodes;
        int64_t       last_indexed;      /* messages up to this one can be searched */
    } batch;
    sqlite3_stmt *insert;        /* of a message, kept: preparing it takes as long as running it */
};

/* And the number: the database as it was before a migration from there. */
#define EBB_STORE_COPY_SUFFIX "-before-v"
#define EBB_STORE_PATIENCE_MS 800    /* to wait for a lock; longer than any save of ours takes */
#define EBB_STORE_HASTE_MS      50   /* likewise, where the next save will try again */

/* Of text that a search looks through where the index cannot find what it looks for: some tenths of
 * a second. */
#define EBB_STORE_LOOK_BYTES ((size_t)64 << 20)

#define EBB_STORE_NAME_TAKEN "there is already a session of that name; choose another one"

/* Fill *err for the SQLite code `rc`: what the user can understand and do. */
ebb_status ebb_store_fail(const ebb_store *s, int rc, ebb_error *err);

/* A prepared statement whose parameters are bound from the arguments: i int64_t,
 * d double, t const char * (NULL allowed); with a size_t after the pointer: s text, b blob.  The
 * bytes must stay valid until it is finalized.  Returns a SQLite code. */
int ebb_store_prepare(ebb_store *s, sqlite3_stmt **out, const char *sql, const char *types, ...);
/* The same, run to its end. */
int ebb_store_run(ebb_store *s, const char *sql, const char *types, ...);
/* The same of a statement that is prepared once, with triggers and all, and kept in *kept; whoever
 * has it finalizes it. */
int ebb_store_run_kept(ebb_store *s, sqlite3_stmt **kept, const char *sql, const char *types, ...);
/* A statement has failed: note it if the search index is why (ebb_store_mend_index).  The functions
 * above do. */
void ebb_store_note_damage(ebb_store *s);
/* Column as text cut to the buffer, at a character's border. */
void ebb_store_text(sqlite3_stmt *q, int column, char *out, size_t cap);

/* Ids as the store keeps them, and back; the same memory on little-endian machines. */
void ebb_store_swap_ids(int32_t *ids, size_t n);

/* A value that a foreign hand may have written: `usual` if it is beyond `last`. */
int ebb_store_in_range(int value, int usual, int last);

/* The number that a name of digits is; 0: it is none. */
int64_t ebb_session_number(const char *name);

/* -- store_batch.c -- */
/* Begin a transaction that writes; `durable`: its end waits for the disk. */
int ebb_store_begin(ebb_store *s, bool durable);
/* Before one more message is saved: it is counted.  SQLITE_INTERRUPT: the batch is to stop. */
int ebb_store_batch_step(ebb_store *s);

/* -- store_index.c -- */
/* What was deleted is noted in the index until its parts are merged: this does it.  A SQLite
 * code. */
int ebb_store_merge_index(ebb_store *s);
/* Make the index of the finished messages, in a transaction of the caller's.  A SQLite code. */
int ebb_store_remake_index(ebb_store *s);
/* What has failed with `rc`, a statement of it noted that the index is why: SQLITE_OK, the
 * transaction is rolled back, and the index made anew: to be tried once more.  Else what to
 * report. */
int ebb_store_mend_index(ebb_store *s, int rc);

/* -- store_log.c -- */
/* Note which files are the log and its index, once the database was read. */
void ebb_store_note_log(ebb_store *s);
/* Before anything is asked: another program may have cut the index short, which SQLite has mapped.
 * What is missing of it becomes zeroes, and SQLite makes it anew of the log. */
void ebb_store_widen_index(ebb_store *s);
/* Before the log or the database is written to: another program may have cut the log short.  true:
 * it had, and what was only in the rest of it is lost; the database stays sound. */
bool ebb_store_drop_cut_log(ebb_store *s);
/* Before it is opened.  BUSY: it is open elsewhere and its log was removed, so that what is in the
 * file alone is an older state, perhaps one that is being changed. */
EBB_MUST_CHECK
ebb_status ebb_store_expect_log(const char *path, ebb_error *err);

/* -- store_truncation.c: what a note has decided, as JSON -- */
char *ebb_truncation_json(const ebb_truncation *l); /* NULL: nothing (or no memory); free() it */
/* NULL or no such object: nothing is left out. */
void ebb_truncation_parse(const char *json, ebb_truncation *out);

/* -- store_sample_records.c: how an answer was drawn, as JSON -- */
/* NULL: nothing is known (or no memory); free() it. */
char *ebb_sample_records_json(const ebb_message *m);
bool ebb_sample_records_parse(const char *json, ebb_message *m); /* false: no memory */

/* Bring the database to the newest schema; UNSUPPORTED if it is newer than this program. */
EBB_MUST_CHECK
ebb_status ebb_store_migrate(ebb_store *s, ebb_error *err);

#endif
