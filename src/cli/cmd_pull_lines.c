/* ebb pull --json-lines: what happens, for a program that follows (cmd_pull.h). */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd_pull.h"
#include "pull/pull_events.h"

/* Nobody may be there any more to read it: false. */
static bool put_event(const ebb_pull_event *e)
{
    ebb_buf line = { 0 };
    bool ok = ebb_pull_event_add(&line, e) && fwrite(line.data, 1, line.len, stdout) == line.len && fflush(stdout) == 0;

    ebb_buf_fini(&line);
    return ok;
}

static bool put_text(ebb_pull_event_kind kind, const char *text)
{
    ebb_pull_event e = { .kind = kind };

    snprintf(e.text, sizeof e.text, "%s", text);
    return put_event(&e);
}

bool ebb_pull_lines_notice(const char *text)
{
    return put_text(EBB_PULL_NOTICE, text);
}

bool ebb_pull_lines_error(const ebb_error *err)
{
    return put_text(EBB_PULL_ERROR, err->msg);
}

/* A reader that sleeps (Ctrl-Z) is no reason for the download to wait: it misses some. */
bool ebb_pull_lines_progress(const char *name, unsigned i_file, unsigned n_files, const ebb_download_progress *p)
{
    ebb_pull_event e = { .kind = EBB_PULL_PROGRESS, .i_file = i_file, .n_files = n_files, .progress = *p };
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

    if (poll(&out, 1, 0) <= 0)
        return true;
    snprintf(e.file, sizeof e.file, "%s", name);
    return put_event(&e);
}

bool ebb_pull_lines_done(const ebb_pull_done *d)
{
    ebb_pull_event e = { .kind = EBB_PULL_DONE, .n_bytes = d->n_bytes, .was_there = d->was_there,
                         .is_verified = d->is_verified, .seconds = d->seconds };
    const char *path = ebb_buf_text(&d->path);

    snprintf(e.path, sizeof e.path, "%s", path);
    snprintf(e.file, sizeof e.file, "%s", ebb_text_file_name(path));
    return put_event(&e);
}
