/* Several saves in one transaction, which somebody watches (store.h). */
#include "store/store_sql.h"

enum { LOOK_MS = 20 };           /* how often a lock of another program is tried again */

int ebb_store_begin(ebb_store *s, bool durable)
{
    int rc = ebb_store_run(s, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "");

    return rc == SQLITE_OK ? ebb_store_run(s, "BEGIN IMMEDIATE", "") : rc;
}

bool ebb_store_batch_goes_on(ebb_store *s)
{
    return !s->batch.is_open || ebb_progress_at(s->batch.progress, s->batch.n_saved++, s->batch.n_nodes);
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
    if (rc != SQLITE_OK) {
        st = ebb_store_fail(s, ebb_progress_is_stopped(p) ? SQLITE_INTERRUPT : rc, err);
        end_batch(s);
    }
    return st;
}

ebb_status ebb_store_batch_commit(ebb_store *s, ebb_error *err)
{
    int rc = ebb_progress_is_stopped(s->batch.progress) ? SQLITE_INTERRUPT : ebb_store_run(s, "COMMIT", "");
    ebb_status st = rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);

    if (st != EBB_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    end_batch(s);
    return st;
}

void ebb_store_batch_drop(ebb_store *s)
{
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    end_batch(s);
}
