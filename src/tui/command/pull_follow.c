/* A model that is fetched while the chat goes on (pull_follow.h). */
#include "command/pull_follow.h"

#include <string.h>

#include "text/humanize.h"

static double share_there(const ebb_pull_process *p)
{
    const ebb_download_progress *d = &p->last.progress;

    return p->last.n_files && d->total != UINT64_MAX && d->total > 0 ? (double)d->done / (double)d->total : -1;
}

ebb_status ebb_pull_follow_start(ebb_frontend *f, const char *what, ebb_error *err)
{
    ebb_stats stats;
    ebb_status st;

    if (f->opts->is_private)
        return EBB_FAIL(err, EBB_USAGE, "this chat writes nothing to disk (--private); use `ebb pull` in another "
                                        "terminal");
    if (!f->opts->program)
        return EBB_FAIL(err, EBB_USAGE, "nothing can be fetched from here; use `ebb pull` in a shell");
    ebb_chat_stats(f->chat, &stats);             /* its memory is the next model's, too: the plan counts it in */
    st = ebb_pull_process_start(&f->pull, f->opts->program, what, stats.budget_bytes, err);
    if (st == EBB_OK) {
        f->has_warned_of_pull = false;
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "fetching %s; the chat goes on meanwhile, and /pull stop ends it",
                          f->pull.what);
    }
    return st;
}

bool ebb_pull_follow_stop(ebb_frontend *f)
{
    bool is = ebb_pull_process_is_running(&f->pull);

    ebb_pull_process_stop(&f->pull);
    return is;
}

bool ebb_pull_follow_holds(ebb_frontend *f)
{
    if (!ebb_pull_process_is_running(&f->pull) || f->has_warned_of_pull)
        return false;
    f->has_warned_of_pull = true;
    ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is being fetched: the same again leaves and stops it; what has arrived "
                                         "stays, and /pull %s goes on with it", f->pull.what, f->pull.what);
    return true;
}

/* -- What happens -------------------------------------------------------------------------------- */

static void say_stopped(ebb_frontend *f)
{
    double share = share_there(&f->pull);

    if (share > 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "stopped at %.0f %%; /pull %s continues", 100 * share, f->pull.what);
    else
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "stopped; /pull %s starts again", f->pull.what);
}

static void say_done(ebb_frontend *f, const ebb_pull_event *e)
{
    ebb_buf size = { 0 }, took = { 0 };

    ebb_humanize_bytes(&size, e->n_bytes);
    ebb_humanize_seconds(&took, e->seconds);
    if (e->was_there)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is already here, %s; /model %s loads it", e->file,
                          ebb_buf_text(&size), e->file);
    else
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is here: %s in %s%s; /model %s loads it", e->file,
                          ebb_buf_text(&size), ebb_buf_text(&took),
                          e->is_verified ? ", SHA-256 matches the server's" : "", e->file);
    ebb_buf_fini(&size);
    ebb_buf_fini(&took);
}

bool ebb_pull_follow_poll(ebb_frontend *f)
{
    bool changed = false;
    ebb_pull_event e;

    while (ebb_pull_process_next(&f->pull, &e)) {
        changed = true;
        if (e.kind == EBB_PULL_NOTICE)
            f->say(f, EBB_SAY_NOTICE, e.text, strlen(e.text));
        else if (e.kind == EBB_PULL_DONE)
            say_done(f, &e);
        else if (e.kind == EBB_PULL_ERROR && f->pull.is_stopped)
            say_stopped(f);
        else if (e.kind == EBB_PULL_ERROR)
            f->say(f, EBB_SAY_ERROR, e.text, strlen(e.text));
    }
    return changed;
}

void ebb_pull_follow_figures(const ebb_pull_process *p, ebb_buf *out)
{
    const ebb_pull_event *e = &p->last;
    const ebb_download_progress *d = &e->progress;

    ebb_buf_adds(out, e->n_files ? e->file : p->what);
    if (e->n_files > 1)
        ebb_buf_addf(out, " %u/%u", e->i_file + 1, e->n_files);
    if (!e->n_files)
        return;
    if (share_there(p) >= 0)
        ebb_buf_addf(out, " %.0f %%", 100 * share_there(p));
    ebb_buf_addc(out, ' ');
    ebb_humanize_bytes(out, d->done);
    if (d->total != UINT64_MAX) {
        ebb_buf_adds(out, " of ");
        ebb_humanize_bytes(out, d->total);
    }
}
