/* Several saves in one transaction, which somebody watches (store.h). */
#include "store/store_sql.h"

enum {
    LOOK_MS = 20,                /* how often a lock of another program is tried again */
    INDEX_EVERY = 1000,          /* messages */
};

int ebb_store_begin(ebb_store *s, bool durable)
{
    int rc = ebb_store_is_moved(s) || ebb_store_drop_cut_log(s)
                 ? SQLITE_READONLY_DBMOVED
                 : ebb_store_run(s, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "");

    return rc == SQLITE_OK ? ebb_store_run(s, "BEGIN IMMEDIATE", "") : rc;
}

/* The search index writes what it has gathered at the end of a statement, which costs more than all else that an INSERT
 * with a trigger does.  So a batch does without triggers, and many messages are indexed by one statement. */
static void set_triggers(ebb_store *s, bool is_on)
{
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, (int)is_on, NULL);
}

static int read_last_message(ebb_store *s, int64_t *id)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT max(id) FROM messages", "");

    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    *id = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* What the trigger search_insert does, of all messages since the last time. */
static int index_saved(ebb_store *s)
{
    int64_t last;
    int rc = read_last_message(s, &last);

    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "INSERT INTO search (rowid, text) SELECT id, text FROM messages"
                              " WHERE id > ? AND finish <> 0 ORDER BY id", "i", s->batch.last_indexed);
    if (rc != SQLITE_OK && s->is_index_damaged) {
        s->is_index_damaged = false;
        rc = ebb_store_remake_index(s);
    }
    s->batch.last_indexed = last;
    return rc;
}

int ebb_store_batch_step(ebb_store *s)
{
    if (!s->batch.is_open)
        return SQLITE_OK;
    if (!ebb_progress_at(s->batch.progress, s->batch.n_saved++, s->batch.n_nodes))
        return SQLITE_INTERRUPT;
    return s->batch.n_saved % INDEX_EVERY == 0 ? index_saved(s) : SQLITE_OK;
}

/* Somebody watches and can stop it, so there is no end to the waiting. */
static int wait_for_lock(void *arg, int n_tries)
{
    ebb_progress *p = arg;

    (void)n_tries;
    sqlite3_sleep(LOOK_MS);
    return !ebb_progress_is_stopped(p);
}

static void end_batch(ebb_store *s)
{
    s->batch.is_open = false;
    s->batch.progress = NULL;
    set_triggers(s, true);
    sqlite3_busy_timeout(s->db, EBB_STORE_PATIENCE_MS);
}

ebb_status ebb_store_batch_begin(ebb_store *s, size_t n_nodes, ebb_progress *p, ebb_error *err)
{
    ebb_status st = EBB_OK;
    int rc;

    s->batch.progress = p;
    s->batch.n_nodes = n_nodes;
    s->batch.n_saved = 0;
    if (p)
        sqlite3_busy_handler(s->db, wait_for_lock, p);
    rc = s->is_readonly ? SQLITE_READONLY : ebb_store_begin(s, true);
    s->batch.is_open = rc == SQLITE_OK;
    if (rc == SQLITE_OK) {
        set_triggers(s, false);
        rc = read_last_message(s, &s->batch.last_indexed);
    }
    if (rc != SQLITE_OK) {
        st = ebb_store_fail(s, ebb_progress_is_stopped(p) ? SQLITE_INTERRUPT : rc, err);
        ebb_store_batch_drop(s);
    }
    return st;
}

ebb_status ebb_store_batch_commit(ebb_store *s, ebb_error *err)
{
    int rc = ebb_progress_is_stopped(s->batch.progress) ? SQLITE_INTERRUPT : index_saved(s);
    ebb_status st;

    if (rc == SQLITE_OK)                         /* a batch may take minutes */
        rc = ebb_store_is_moved(s) ? SQLITE_READONLY_DBMOVED : ebb_store_run(s, "COMMIT", "");
    st = rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);
    if (st != EBB_OK)
        ebb_store_batch_drop(s);
    else
        end_batch(s);
    return st;
}

void ebb_store_batch_drop(ebb_store *s)
{
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    end_batch(s);
}
