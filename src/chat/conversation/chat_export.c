/* The path of a conversation as a file (chat.h): at once, or beside the chat if it is long. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conversation/chat_job.h"
#include "conversation/chat_priv.h"
#include "os/file.h"
#include "store/export.h"

/* Bytes of text that are written at once: a few hundredths of a second, where 50 MB take a whole one. */
enum { MOST_AT_ONCE = 1 << 20, RENDERED_PERMILLE = 500, WHOLE_PERMILLE = 1000 };

typedef struct export_job {
    char             *path;
    ebb_export_format format;
    ebb_session_facts facts;     /* without settings */
    ebb_tree          tree;      /* a copy of the path: titles, for one, may change meanwhile */
} export_job;

static ebb_status write_file(const ebb_session_facts *f, const ebb_tree *t, ebb_export_format format, const char *path,
                             ebb_progress *p, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = ebb_export(f, t, format, &text, err);

    ebb_progress_part(p, RENDERED_PERMILLE, WHOLE_PERMILLE);
    if (st == EBB_OK && !ebb_progress_at(p, 0, 1))
        st = EBB_FAIL(err, EBB_CANCELED, "stopped: %.200s is not written", path);
    if (st == EBB_OK)
        st = ebb_file_create(path, ebb_buf_text(&text), text.len, err);
    ebb_buf_fini(&text);
    return st;
}

/* -- Beside the chat ------------------------------------------------------------------------------ */

static void export_fini(void *arg)
{
    export_job *job = arg;

    ebb_tree_fini(&job->tree);
    free(job->path);
    free(job);
}

static ebb_status export_run(void *arg, ebb_progress *p, ebb_error *err)
{
    const export_job *job = arg;

    return write_file(&job->facts, &job->tree, job->format, job->path, p, err);
}

/* A stop that came too late has left a whole file. */
static ebb_status export_end(ebb_chat *c, void *arg, bool was_stopped, ebb_status st, ebb_error *err)
{
    const export_job *job = arg;
    char *whole = realpath(job->path, NULL);

    (void)was_stopped;
    (void)err;
    if (st == EBB_OK)
        ebb_chat_notice(c, "written to %s", whole ? whole : job->path);
    free(whole);
    return st;
}

static const ebb_chat_job_kind export_kind = { "exporting", export_run, export_end, export_fini };

/* What ebb_export looks at. */
static bool copy_path(const ebb_tree *from, ebb_tree *to)
{
    ebb_node *leaf = NULL;
    bool ok = true;

    for (size_t i = 0; i < from->n_path; i++) {
        const ebb_message *m = &from->path[i]->m;

        leaf = ebb_tree_add(to, leaf, m->role, m->text, m->n_text);
        if (!leaf)
            return false;
        leaf->m.model = ebb_text_copy_or_null(m->model, &ok);
        leaf->m.engine = ebb_text_copy_or_null(m->engine, &ok);
        leaf->m.created_ms = m->created_ms;
        leaf->m.finish = m->finish;
    }
    return ok && ebb_tree_set_leaf(to, leaf);
}

static ebb_status export_beside(ebb_chat *c, const char *path, ebb_export_format format, ebb_error *err)
{
    export_job *job = calloc(1, sizeof *job);

    if (!job)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an export");
    *job = (export_job){ .path = strdup(path), .format = format, .facts = c->facts };
    job->facts.settings = NULL;
    if (job->path && copy_path(&c->tree, &job->tree))
        return ebb_chat_job_start(c, &export_kind, job, err);
    export_fini(job);
    return EBB_FAIL(err, EBB_NOMEM, "no memory for an export");
}

static size_t path_bytes(const ebb_tree *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_path; i++)
        n += t->path[i]->m.n_text;
    return n;
}

ebb_status ebb_chat_export(ebb_chat *c, const char *path, ebb_error *err)
{
    ebb_export_format format;

    if (!ebb_export_format_parse(path, &format))
        return EBB_FAIL(err, EBB_USAGE, "%s: a file's name must end in .md, .json or .txt", path);
    if (path_bytes(&c->tree) > MOST_AT_ONCE && !ebb_chat_is_busy(c))
        return export_beside(c, path, format, err);
    return write_file(&c->facts, &c->tree, format, path, NULL, err);     /* also while an answer is under way */
}
