/* Off the screen for a while: the user's editor, text to select from, a stop (app.h). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "edit/message_file.h"
#include "edit/typed.h"
#include "os/file.h"
#include "seal/seal.h"
#include "tree/attachment.h"

/* Less is no time to write anything: what has ended was not the editor, but what tells its window of the file. */
static const double AT_ONCE_S = 3;

bool ebb_app_is_lent(const ebb_app *a)
{
    return a->external.program != EBB_EXTERNAL_NONE;
}

static void take_screen_back(ebb_app *a)
{
    a->external.program = EBB_EXTERNAL_NONE;
    a->term->ops->take_back(a->term);
    a->frame.is_dirty = a->frame.is_urgent = true;
}

/* -- Ctrl-Z ---------------------------------------------------------------------------------- */

void ebb_app_suspend(ebb_app *a)
{
    if (!a->term->ops->suspend(a->term))
        ebb_app_hint(a, "there is no shell here to bring ebb back, so it was not stopped");
}

/* -- $VISUAL, $EDITOR ------------------------------------------------------------------------ */

static void drop_message_file(ebb_external *o)
{
    ebb_message_file_drop(o->path);
    ebb_message_file_end(o->path, &o->lock);
}

static bool write_message_file(ebb_app *a, ebb_error *err)
{
    ebb_external *o = &a->external;
    ebb_buf text = { 0 };
    int fd = ebb_message_file_make(o->path, sizeof o->path, &o->lock);
    bool ok;

    if (fd < 0) {
        EBB_FAIL(err, EBB_IO, "no file for the draft: %s", strerror(errno));
        return false;
    }
    ok = ebb_editor_text(&a->editor, &text);
    if (!ok)
        EBB_FAIL(err, EBB_NOMEM, "no memory for the draft");
    ok = ok && ebb_file_write_at(fd, o->path, ebb_buf_text(&text), text.len, 0, err) == EBB_OK;
    close(fd);
    if (!ok)
        drop_message_file(o);
    ebb_buf_fini(&text);
    return ok;
}

void ebb_app_external_editor(ebb_app *a)
{
    const char *editor = a->frontend.opts->editor ? a->frontend.opts->editor : "vi";
    ebb_error err;

    if (!write_message_file(a, &err)) {
        ebb_app_hint_error(a, &err);
        return;
    }
    a->term->ops->lend(a->term, false);
    a->external.program = EBB_EXTERNAL_EDITOR;
    a->external.began_s = ebb_clock_s();
    a->external.is_as_lent = false;
    ebb_app_documents_await_enter(a);
    ebb_app_unsent_save(a);
    if (ebb_job_start(&a->external.job, editor, a->external.path, &err) != EBB_OK) {
        drop_message_file(&a->external);
        take_screen_back(a);
        ebb_app_hint_error(a, &err);
    }
}

/* But for the newlines at the end, which are not read back. */
static bool is_as_lent(const ebb_buf *own, const ebb_buf *text)
{
    return own->len >= text->len && memcmp(ebb_buf_text(own), ebb_buf_text(text), text->len) == 0 &&
           strspn(ebb_buf_text(own) + text->len, "\n") == own->len - text->len;
}

/* Files in front of the text are some only if there were any before; a command stays one. */
static bool add_edited(ebb_buf *out, const ebb_buf *own, const ebb_buf *text)
{
    bool begins_so = ebb_attachments_end(ebb_buf_text(own), own->len) == 0 &&
                     ebb_typed_files(ebb_buf_text(text), text->len) > 0;

    return (!begins_so || ebb_buf_addc(out, '\n')) && ebb_buf_add(out, ebb_buf_text(text), text->len);
}

/* How many bytes of the text are files in front of it that stand where folded ones did: they are so again, for the
 * path that one begins with is no command. */
static size_t length_of_files(const ebb_buf *marked, const ebb_buf *text)
{
    bool was_folded = ebb_marked_begins(ebb_buf_text(marked), marked->len);

    return was_folded ? ebb_typed_files(ebb_buf_text(text), text->len) : 0;
}

/* The line is as it was lent: nothing comes there meanwhile.  Where the editor has changed nothing it stays so, with
 * the newlines at its end.  What was changed may have been pasted, or copied out of a folded paste. */
static ebb_status adopt_message_file(ebb_app *a, bool was_ended, ebb_error *err)
{
    ebb_buf text = { 0 }, marked = { 0 }, own = { 0 }, taken = { 0 };
    ebb_status st = was_ended ? ebb_message_file_rescue(a->external.path, &text, err)
                              : ebb_message_file_read(a->external.path, &text, err);

    if (st == EBB_OK && !(ebb_editor_marked(&a->editor, &marked) &&
                          ebb_marked_add_plain(&own, ebb_buf_text(&marked), marked.len) &&
                          add_edited(&taken, &own, &text)))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", a->external.path);
    a->external.is_as_lent = st == EBB_OK && is_as_lent(&own, &text);
    if (st == EBB_OK && !a->external.is_as_lent) {
        a->editor.is_given = true;
        ebb_editor_set_edited(&a->editor, ebb_buf_text(&taken), taken.len, length_of_files(&marked, &taken));
    }
    ebb_buf_fini(&taken);
    ebb_buf_fini(&marked);
    ebb_buf_fini(&own);
    ebb_buf_fini(&text);
    return st;
}

/* What cannot be taken over, or not kept in its draft's file, is left where it is: it may be all that there is of a
 * text.  A kill or a loss of power finds it in one place or the other. */
static void take_message_file(ebb_app *a, bool was_ended)
{
    ebb_error err;
    ebb_status st = adopt_message_file(a, was_ended, &err);

    if (st == EBB_OK && !(ebb_app_unsent_save(a) && ebb_unsent_sync(&a->unsent.file)))
        st = EBB_FAIL(&err, EBB_IO, "%s: cannot be kept with what is unsent", a->external.path);
    if (st == EBB_OK)
        st = ebb_message_file_check_swap(a->external.path, &err);
    if (st == EBB_OK)
        ebb_message_file_drop(a->external.path);
    else if (st == EBB_NOTFOUND)
        ebb_app_hint_error(a, &err);
    else
        ebb_app_hint_left(a, &err);
    ebb_message_file_end(a->external.path, &a->external.lock);   /* what is left now is left on purpose */
}

/* An editor that was ended may have saved before, or put aside what it had not saved (nano exits with 1 then).  Any
 * other failing exit status (:cq) discards the file. */
void ebb_app_external_tick(ebb_app *a)
{
    int status;

    if (a->external.program != EBB_EXTERNAL_EDITOR || !ebb_job_has_ended(&a->external.job))
        return;
    status = a->external.job.status;
    take_screen_back(a);
    if (status != 0 && !WIFSIGNALED(status) && !ebb_message_file_has_rescue(a->external.path)) {
        ebb_app_hint(a, "the editor failed; the draft is unchanged ($VISUAL or $EDITOR names another editor)");
        drop_message_file(&a->external);
        return;
    }
    if (WIFSIGNALED(status))
        ebb_app_hint(a, "the editor was ended by signal %d; this is what was saved", WTERMSIG(status));
    else if (status != 0)
        ebb_app_hint(a, "the editor was ended; this is what it had");
    take_message_file(a, status != 0);
    if (status == 0 && a->external.is_as_lent && a->hint.len == 0 && ebb_clock_s() - a->external.began_s < AT_ONCE_S)
        ebb_app_hint(a, "unchanged; an editor in a window has to wait: EDITOR='code --wait'");
}

/* -- /bare ------------------------------------------------------------------------------------ */

void ebb_app_bare(ebb_app *a)
{
    ebb_buf text = { 0 }, visible = { 0 };

    ebb_transcript_bare(&a->view, &text);
    ebb_utf8_add_visible(&visible, ebb_buf_text(&text), text.len, !a->term->utf8);
    ebb_buf_adds(&visible, "-- Enter goes back --\n");
    a->term->ops->lend(a->term, true);
    a->external.program = EBB_EXTERNAL_BARE;
    a->term->ops->send(a->term, ebb_buf_text(&visible), visible.len);
    ebb_buf_fini(&text);
    ebb_buf_fini(&visible);
}

static bool is_control(ebb_key key, char letter)
{
    return key.mods == EBB_MOD_CTRL && key.code == (uint32_t)letter;
}

static void bare_key(ebb_app *a, ebb_key key)
{
    bool stops = is_control(key, 'z');

    if (stops || key.code == EBB_KEY_ENTER || key.code == EBB_KEY_ESC || is_control(key, 'c') || is_control(key, 'd') ||
        is_control(key, 'j'))
        take_screen_back(a);
    if (stops)
        ebb_app_suspend(a);
}

/* -- Both ------------------------------------------------------------------------------------- */

void ebb_app_external_input(ebb_app *a, const ebb_input *in)
{
    bool is_editor = a->external.program == EBB_EXTERNAL_EDITOR;

    if (is_editor && in->kind == EBB_INPUT_SUSPEND)
        ebb_job_stop(&a->external.job);
    else if (is_editor && in->kind == EBB_INPUT_RESUME)
        ebb_job_continue(&a->external.job);
    else if (!is_editor && in->kind == EBB_INPUT_KEY)
        bare_key(a, in->key);
    else if (!is_editor && in->kind == EBB_INPUT_SUSPEND)
        bare_key(a, (ebb_key){ .code = 'z', .mods = EBB_MOD_CTRL });
}

/* What only vi can read stays, and the next start tells of it; beside encrypted sessions nothing lies on the disk in
 * the clear. */
static void end_editor(ebb_app *a)
{
    ebb_external *o = &a->external;
    struct stat found;
    bool has_text;

    ebb_job_end(&o->job);
    o->has_more = ebb_message_file_check_swap(o->path, NULL) != EBB_OK;
    has_text = (stat(o->path, &found) == 0 && found.st_size > 0) || ebb_message_file_has_rescue(o->path);
    if (has_text)                                /* else it is in the midst of writing it */
        take_message_file(a, true);
    else if (!o->has_more)
        ebb_message_file_drop(o->path);
    ebb_message_file_end(o->path, &o->lock);
    if (a->frontend.state_dir.len == 0)
        ebb_message_file_drop(o->path);          /* --private */
    else if (o->has_more && !ebb_seal_here())
        ebb_message_file_move(o->path, sizeof o->path, a->frontend.state_dir.data);
}

void ebb_app_external_end(ebb_app *a)
{
    if (a->external.program == EBB_EXTERNAL_EDITOR)
        end_editor(a);
    if (ebb_app_is_lent(a))
        take_screen_back(a);
}
