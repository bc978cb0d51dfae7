/* Off the screen for a while: the user's editor, and text to select from (app.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "base/utf8.h"
#include "os/file.h"

enum { DRAFT_BYTES_MAX = 16 << 20 };

extern char **environ;

typedef struct errand {
    ebb_app *a;
    char     path[64];
    int      status;             /* of the editor's process */
} errand;

/* -- $VISUAL, $EDITOR ---------------------------------------------------------------------- */

/* The editor gets the keys' signals as if it stood alone. */
static bool run_editor(void *arg)
{
    errand *e = arg;
    char command[400], shell[] = "sh", flag[] = "-c";
    char *argv[] = { shell, flag, command, shell, e->path, NULL };
    posix_spawnattr_t attr;
    sigset_t defaults;
    pid_t pid;

    snprintf(command, sizeof command, "%s \"$1\"", e->a->front.opts->editor ? e->a->front.opts->editor : "vi");
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGTSTP);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    e->status = posix_spawnp(&pid, argv[0], NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    while (e->status == 0 && waitpid(pid, &e->status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static bool write_draft(errand *e, ebb_error *err)
{
    ebb_buf text = { 0 };
    int fd;
    bool ok;

    snprintf(e->path, sizeof e->path, "/tmp/ebb-draft-XXXXXX.md");
    fd = mkstemps(e->path, 3);                   /* 0600 */
    if (fd < 0) {
        EBB_FAIL(err, EBB_IO, "no file for the draft: %s", strerror(errno));
        return false;
    }
    ebb_editor_text(&e->a->editor, &text);
    ok = ebb_file_write_at(fd, e->path, ebb_buf_text(&text), text.len, 0, err) == EBB_OK;
    close(fd);
    ebb_buf_fini(&text);
    return ok;
}

void ebb_app_edit_outside(ebb_app *a)
{
    errand e = { .a = a };
    ebb_buf text = { 0 };
    ebb_error err;

    if (!write_draft(&e, &err)) {
        ebb_app_hint(a, "%s", err.msg);
        return;
    }
    a->term->ops->outside(a->term, run_editor, &e);
    if (e.status != 0)
        ebb_app_hint(a, "the editor failed; the draft is as it was ($VISUAL or $EDITOR names another)");
    else if (ebb_file_slurp(e.path, DRAFT_BYTES_MAX, &text, &err) != EBB_OK)
        ebb_app_hint(a, "%s", err.msg);
    else {
        while (text.len > 0 && text.data[text.len - 1] == '\n')
            ebb_buf_remove(&text, text.len - 1, 1);
        ebb_editor_set(&a->editor, ebb_buf_text(&text), text.len);
    }
    unlink(e.path);
    ebb_buf_fini(&text);
}

/* -- /bare ------------------------------------------------------------------------------------ */

typedef struct bare {
    ebb_term *term;
    ebb_buf   text;
} bare;

static bool show_bare(void *arg)
{
    bare *b = arg;

    b->term->ops->send(b->term, ebb_buf_text(&b->text), b->text.len);
    return true;
}

void ebb_app_bare(ebb_app *a)
{
    bare b = { .term = a->term };
    ebb_buf text = { 0 };

    ebb_transcript_bare(&a->view, &text);
    ebb_utf8_add_visible(&b.text, ebb_buf_text(&text), text.len, !a->term->utf8);
    ebb_buf_adds(&b.text, "-- Enter goes back --\n");
    a->term->ops->outside(a->term, show_bare, &b);
    ebb_buf_fini(&text);
    ebb_buf_fini(&b.text);
}
