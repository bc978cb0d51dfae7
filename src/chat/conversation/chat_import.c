/* Conversations of a file become sessions (chat.h): read and kept beside the chat, by a database connection of
 * their own. */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_job.h"
#include "conversation/chat_priv.h"
#include "store/import_file.h"

typedef struct import_job {
    char          *path;
    ebb_store     *store;        /* the thread's own; NULL: it is in memory, so it is the chat's alone */
    ebb_import_set set;
} import_job;

static void import_fini(void *arg)
{
    import_job *job = arg;

    ebb_import_set_fini(&job->set);
    ebb_store_close(job->store);
    free(job->path);
    free(job);
}

static ebb_status import_run(void *arg, ebb_progress *p, ebb_error *err)
{
    import_job *job = arg;
    ebb_status st = ebb_import_read(job->path, p, &job->set, err);

    return st == EBB_OK && job->store ? ebb_import_keep(job->store, &job->set, p, err) : st;
}

/* One that was kept before the stop came is there. */
static ebb_status import_end(ebb_chat *c, void *arg, bool was_stopped, ebb_status st, ebb_error *err)
{
    import_job *job = arg;
    size_t n = job->set.n;
    ebb_imported *last = n ? &job->set.items[n - 1] : NULL;

    if (st == EBB_OK && !job->store && was_stopped)
        st = EBB_CANCELED;
    if (st == EBB_OK && !job->store)
        st = ebb_import_keep(c->store, &job->set, NULL, err);
    if (st == EBB_CANCELED)
        return EBB_FAIL(err, st, "stopped: nothing from %.200s is kept", job->path);
    if (st == EBB_OK)
        st = ebb_chat_enter_imported(c, &last->facts, &last->tree, err);
    if (st == EBB_OK && n == 1)
        ebb_chat_notice(c, "1 new session; this is it");
    else if (st == EBB_OK)
        ebb_chat_notice(c, "%zu new sessions; this is the last one", n);
    return st;
}

static const ebb_chat_job_kind import_kind = { "importing", import_run, import_end, import_fini };

ebb_status ebb_chat_import(ebb_chat *c, const char *path, ebb_error *err)
{
    ebb_status st = ebb_chat_check_store_idle(c, err);
    import_job *job;

    if (st != EBB_OK)
        return st;
    job = calloc(1, sizeof *job);
    if (!job || !(job->path = strdup(path))) {
        free(job);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an import");
    }
    if (strcmp(ebb_store_path(c->store), ":memory:") != 0)
        st = ebb_store_open_beside(c->store, &job->store, err);
    if (st == EBB_OK)
        return ebb_chat_job_start(c, &import_kind, job, err);
    import_fini(job);
    return st;
}
