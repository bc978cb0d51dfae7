/* The full screen's state: messages that wait, events, figures, time (app.h). */
#include "app/app.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/slash.h"
#include "edit/attach.h"
#include "os/file.h"

/* Frames per second while text streams; figures per second while something happens. */
static const double usual_frame_s = 1.0 / 30, figures_s = 0.5, settle_s = 1.0;
enum { QUEUE_MAX = 16, SETTLE_LOOKS = 3, MEASURE_LOOK_MS = 100 };

static void app_say(ebb_frontend *f, ebb_say kind, const char *text, size_t n)
{
    ebb_app *a = (ebb_app *)f;

    ebb_transcript_sync(&a->view);
    ebb_transcript_say(&a->view, kind, text, n);
    if (kind == EBB_SAY_PAGE && !a->term->ops->begin)
        ebb_transcript_show_last(&a->view);
    a->is_dirty = true;
}

static void say_error(ebb_app *a, const ebb_error *err)
{
    app_say(&a->frontend, EBB_SAY_ERROR, err->msg, strlen(err->msg));
}

static ebb_status app_set_theme(ebb_frontend *f, const char *name, ebb_error *err)
{
    ebb_app *a = (ebb_app *)f;
    ebb_theme theme;
    ebb_status st = ebb_theme_load(f->config_dir.len ? f->config_dir.data : NULL, name, &theme, err);

    if (st == EBB_OK) {
        a->term->ops->theme(a->term, &theme);
        a->is_dirty = true;
    }
    return st;
}

static void app_edit(ebb_frontend *f, const char *text, size_t n)
{
    ebb_app *a = (ebb_app *)f;

    if (!ebb_editor_is_empty(&a->editor))
        return;
    ebb_editor_set(&a->editor, text, n);
    a->offered_edits = a->editor.n_edits;
}

static void app_send_raw(ebb_frontend *f, const char *bytes, size_t n)
{
    ebb_app *a = (ebb_app *)f;

    a->term->ops->send(a->term, bytes, n);
}

static ebb_status app_view(ebb_frontend *f, ebb_view_act act, const char *arg, ebb_error *err)
{
    ebb_app *a = (ebb_app *)f;

    switch (act) {
    case EBB_VIEW_RAW:
        ebb_transcript_set_raw(&a->view, !a->view.is_raw);
        ebb_app_hint(a, a->view.is_raw ? "as it was written; /raw sets it in type again" : "set in type");
        break;
    case EBB_VIEW_EDITING:
        if (*arg && strcmp(arg, "vi") != 0 && strcmp(arg, "emacs") != 0)
            return EBB_FAIL(err, EBB_USAGE, "/editing %.40s: is vi or emacs", arg);
        if (*arg)
            ebb_vi_set(&a->vi, &a->editor, strcmp(arg, "vi") == 0);
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, a->vi.is_on ? "vi's keys; Esc leaves insert mode" : "emacs's keys, as in a shell");
        break;
    case EBB_VIEW_BARE: ebb_app_bare(a); break;
    case EBB_VIEW_FIND:
        if (!ebb_app_find(a, arg, strlen(arg)))
            return EBB_FAIL(err, EBB_NOTFOUND, "'%.100s' is nowhere in this conversation; /search looks in all", arg);
        break;
    }
    a->is_dirty = true;
    return EBB_OK;
}

static void open_history(ebb_app *a)
{
    ebb_buf path = { 0 };
    ebb_error err;
    const ebb_buf *dir = &a->frontend.state_dir;

    if (dir->len == 0)
        return;
    if (ebb_file_mkdirs(dir->data, NULL) != EBB_OK)
        return;                                  /* nothing can be kept there: that is told of the conversation */
    if (!ebb_buf_addf(&path, "%s/history", dir->data) ||
        ebb_history_open(&a->history, path.data, &err) != EBB_OK)
        say_error(a, &err);
    ebb_buf_fini(&path);
}

void ebb_app_init(ebb_app *a, ebb_term *term, ebb_chat *chat, const ebb_tui_opts *opts)
{
    ebb_error err;

    memset(a, 0, sizeof *a);
    ebb_frontend_init(&a->frontend, chat, opts);
    a->frontend.say = app_say;
    a->frontend.set_theme = app_set_theme;
    a->frontend.send = app_send_raw;
    a->frontend.edit = app_edit;
    a->frontend.view = app_view;
    a->frontend.pick = ebb_app_pick;
    a->preview.due_s = a->unsent_due_s = -1;
    a->unsent.fd = -1;
    ebb_vi_set(&a->vi, &a->editor, opts->has_vi_keys);
    a->term = term;
    ebb_transcript_init(&a->view, chat, !term->utf8);
    a->view.plain_glyphs = term->ascii;
    ebb_transcript_sync(&a->view);
    if (app_set_theme(&a->frontend, a->frontend.theme, &err) != EBB_OK) {
        say_error(a, &err);
        snprintf(a->frontend.theme, sizeof a->frontend.theme, "dark");
        if (app_set_theme(&a->frontend, a->frontend.theme, &err) != EBB_OK)
            say_error(a, &err);
    }
    open_history(a);
    a->is_first_run = a->history.n == 0;
    ebb_app_restore_unsent(a);
    a->figures_s = -1;
    a->drawn_s = -1;
    a->is_dirty = a->is_urgent = true;
}

void ebb_app_fini(ebb_app *a)
{
    ebb_greeting_meter_drop(a->meter);
    ebb_unsent_end_autosave(&a->unsent);
    if (a->term->ops->begin && a->signal != SIGHUP)
        ebb_app_inline_frame(a, true);
    for (size_t i = 0; i < a->n_queue; i++)
        free(a->queue[i]);
    free(a->queue);
    ebb_transcript_fini(&a->view);
    ebb_editor_fini(&a->editor);
    ebb_menu_fini(&a->menu);
    ebb_history_fini(&a->history);
    ebb_buf_fini(&a->hint);
    ebb_buf_fini(&a->pattern);
    ebb_buf_fini(&a->find_text);
    ebb_buf_fini(&a->before_search);
    ebb_frontend_fini(&a->frontend);
    memset(a, 0, sizeof *a);
}

void ebb_app_hint(ebb_app *a, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ebb_buf_clear(&a->hint);
    ebb_buf_adds(&a->hint, text);
    a->is_dirty = a->is_urgent = true;
}

/* -- Messages ------------------------------------------------------------------------- */

static bool can_send(const ebb_app *a)
{
    return ebb_chat_is_ready(a->frontend.chat) && !ebb_chat_is_busy(a->frontend.chat);
}

static bool enqueue(ebb_app *a, const char *text)
{
    char **queue;

    if (a->n_queue == QUEUE_MAX)
        return false;
    queue = realloc(a->queue, (a->n_queue + 1) * sizeof *queue);
    if (!queue)
        return false;
    a->queue = queue;
    queue[a->n_queue] = strdup(text);
    a->n_queue += queue[a->n_queue] != NULL;
    return true;
}

static char *dequeue(ebb_app *a, size_t i)
{
    char *text = a->queue[i];

    memmove(a->queue + i, a->queue + i + 1, (--a->n_queue - i) * sizeof *a->queue);
    return text;
}

/* false: it was not taken, and stays the user's. */
static bool send_text(ebb_app *a, const char *text)
{
    ebb_error err;

    ebb_transcript_end(&a->view);
    if (ebb_frontend_send(&a->frontend, text, strlen(text), &err) != EBB_OK) {
        say_error(a, &err);
        return false;
    }
    ebb_transcript_sync(&a->view);
    return true;
}

void ebb_app_send_next(ebb_app *a)
{
    if (a->n_queue == 0 || !can_send(a) || ebb_chat_awaits_overflow_choice(a->frontend.chat))
        return;
    char *text = dequeue(a, 0);
    if (!send_text(a, text) && ebb_editor_is_empty(&a->editor))
        ebb_editor_set(&a->editor, text, strlen(text));
    free(text);
    a->is_dirty = true;
}

void ebb_app_unqueue(ebb_app *a)
{
    if (a->n_queue == 0)
        return;
    char *text = dequeue(a, a->n_queue - 1);
    if (!ebb_editor_is_empty(&a->editor))
        ebb_editor_insert(&a->editor, "\n", 1);
    ebb_editor_paste(&a->editor, text, strlen(text));
    free(text);
    a->is_dirty = true;
}

/* `line` as it was typed; `whole` as it is sent, with the files that go with it. */
static void run_line(ebb_app *a, const char *line, const char *whole)
{
    if (ebb_slash_command_is(line)) {
        ebb_transcript_end(&a->view);
        ebb_frontend_leave_edit(&a->frontend);   /* a command instead of the message that was to be edited */
        ebb_slash_command_run(&a->frontend, line);
        ebb_transcript_sync(&a->view);
        return;
    }
    if (can_send(a) && a->n_queue == 0) {
        if (!send_text(a, whole))
            ebb_editor_set(&a->editor, line, strlen(line));
    } else if (!enqueue(a, whole)) {
        ebb_editor_set(&a->editor, line, strlen(line));
        ebb_app_hint(a, "%d messages wait already", QUEUE_MAX);
    } else {
        ebb_app_hint(a, "queued; Ctrl-X takes it back");
    }
}

/* Enter begins another line: behind a backslash, and within quotes. */
static bool goes_on(ebb_app *a, const ebb_buf *text)
{
    const ebb_buf *typed = &a->editor.text;
    bool is_escaped = typed->len > 0 && a->editor.caret == typed->len && typed->data[typed->len - 1] == '\\';

    if (is_escaped)
        ebb_editor_replace(&a->editor, typed->len - 1, 1, "\n", 1);
    else if (ebb_frontend_is_open(ebb_buf_text(text), text->len))
        ebb_editor_insert(&a->editor, "\n", 1);
    else
        return false;
    return true;
}

void ebb_app_submit(ebb_app *a)
{
    ebb_buf text = { 0 }, whole = { 0 };
    bool has_text = ebb_editor_text(&a->editor, &text), is_command = ebb_slash_command_is(ebb_buf_text(&text));
    const char *message = ebb_buf_text(&text);
    size_t n_message = text.len;
    bool is_slash = !is_command && text.len > 0 && text.data[0] == '/';      /* // is a slash of the message */
    const char *meant;
    ebb_error err;

    ebb_frontend_unquote(&message, &n_message);
    if (!has_text) {
        ebb_app_hint(a, "out of memory: the message is too large");
    } else if (goes_on(a, &text)) {
        ebb_buf_clear(&a->hint);
    } else if (!is_command && ebb_attach_expand(message + is_slash, n_message - is_slash, &whole, &err) != EBB_OK) {
        ebb_app_hint(a, "%s", err.msg);
    } else if (ebb_slash_command_is_meant(ebb_buf_text(&text), &meant) && a->asked_at != a->editor.n_edits) {
        a->asked_at = a->editor.n_edits;
        ebb_app_hint(a, "/%s is the command; Enter again sends '%s' as a message", meant, text.data);
    } else if (strspn(ebb_buf_text(&text), " \t\n") < text.len) {
        a->is_first_run = false;
        a->is_touched = true;
        ebb_editor_clear(&a->editor);
        ebb_vi_reset(&a->vi, &a->editor);
        if (ebb_history_add(&a->history, text.data, text.len, &err) != EBB_OK)
            ebb_app_hint(a, "not in the history file: %s", err.msg);
        run_line(a, text.data, ebb_buf_text(&whole));
    } else if (text.len == 0) {
        ebb_frontend_go_on(&a->frontend);
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&whole);
}

/* -- Events -------------------------------------------------------------------------------- */

static void handle_chat_event(ebb_app *a, const ebb_chat_event *ev)
{
    switch (ev->kind) {
    case EBB_EVENT_LOADING:
        a->figures.load_done = ev->done;
        a->figures.load_total = ev->total;
        a->figures.has_failed = false;
        break;
    case EBB_EVENT_NOTICE:
        app_say(&a->frontend, EBB_SAY_NOTICE, ev->text, ev->n_text);
        break;
    case EBB_EVENT_REPORT:
        app_say(&a->frontend, EBB_SAY_PAGE, ev->text, ev->n_text);
        break;
    case EBB_EVENT_ERROR:
        app_say(&a->frontend, EBB_SAY_ERROR, ev->text, ev->n_text);
        a->figures.has_failed = !ebb_chat_is_ready(a->frontend.chat);
        a->figures.load_total = a->figures.has_failed ? 0 : a->figures.load_total;
        break;
    case EBB_EVENT_TEXT:
        a->view.has_more = !a->view.is_bottom;
        break;
    case EBB_EVENT_SPECULATIVE_PREFILL:
        a->preview.n_read = (uint32_t)ev->done;
        break;
    case EBB_EVENT_DONE:
        if (a->is_stopping)
            ebb_app_hint(a, "stopped; Enter on an empty line goes on with it");
        a->is_stopping = false;
        break;
    case EBB_EVENT_NOTE:                         /* it is in the transcript */
    case EBB_EVENT_READY:
        ebb_frontend_ready(&a->frontend);
        break;
    case EBB_EVENT_CHANGED: case EBB_EVENT_PREFILL:
        break;
    }
    if (ev->kind != EBB_EVENT_TEXT && ev->kind != EBB_EVENT_LOADING && ev->kind != EBB_EVENT_PREFILL)
        a->figures_s = -1;                       /* look again at once */
}

void ebb_app_events(ebb_app *a)
{
    ebb_chat_event ev;
    bool any = false, changed = false;

    while (ebb_chat_event_next(a->frontend.chat, &ev)) {
        any = true;
        changed = changed || ev.kind == EBB_EVENT_CHANGED || ev.kind == EBB_EVENT_DONE;
        if (ev.kind == EBB_EVENT_CHANGED)
            ebb_transcript_sync(&a->view);
        handle_chat_event(a, &ev);
    }
    if (!any)
        return;
    if (changed || a->view.n_messages != ebb_chat_n_messages(a->frontend.chat))
        ebb_transcript_sync(&a->view);
    a->is_dirty = true;
    a->n_settling = SETTLE_LOOKS;
    ebb_app_send_next(a);
}

/* -- Time ------------------------------------------------------------------------------------ */

static bool is_working(const ebb_app *a)
{
    return ebb_chat_is_busy(a->frontend.chat) || !(ebb_chat_is_ready(a->frontend.chat) || a->figures.has_failed);
}

/* Figures as they are shown: jitter of less than a row's last digit is none. */
static bool figures_differ(const ebb_figures *a, const ebb_figures *b)
{
    ebb_stats x = a->stats, y = b->stats;

    x.rss_anon_bytes >>= 23;
    y.rss_anon_bytes >>= 23;
    x.rss_file_bytes >>= 23;
    y.rss_file_bytes >>= 23;
    x.rss_peak_bytes = y.rss_peak_bytes = 0;
    if (a->is_remote != b->is_remote || (int)(a->remote.waits_s * 2) != (int)(b->remote.waits_s * 2) ||
        a->remote.is_about != b->remote.is_about || a->remote.has_cached != b->remote.has_cached ||
        memcmp(&a->remote.first_s, &b->remote.first_s, sizeof a->remote.first_s) != 0)
        return true;
    return memcmp(&x, &y, sizeof x) != 0 || a->model != b->model || a->writer != b->writer || a->is_busy != b->is_busy;
}

/* The speed that the greeting names is measured while it stands there and nobody types yet. */
static void measure_tick(ebb_app *a)
{
    ebb_machine measured;

    if (ebb_greeting_meter_result(a->meter, &measured)) {
        a->machine = measured;
        a->is_dirty = true;
    } else if (a->is_first_run && a->has_machine && !a->meter && ebb_app_greets(a) &&
               ebb_editor_is_empty(&a->editor) && ebb_greeting_measures(&a->machine, a->figures.model)) {
        a->meter = ebb_greeting_meter_start();
    }
}

void ebb_app_tick(ebb_app *a, double now_s)
{
    double every = is_working(a) ? figures_s : settle_s;
    ebb_figures now = a->figures;

    ebb_app_external_tick(a);
    ebb_app_preview_tick(a, now_s);
    ebb_app_unsent_tick(a, now_s);
    measure_tick(a);
    if (a->figures_s >= 0 && now_s - a->figures_s < every)
        return;
    if (!is_working(a) && a->n_settling == 0 && a->figures_s >= 0)
        return;
    ebb_chat_stats(a->frontend.chat, &now.stats);
    now.model = ebb_chat_model(a->frontend.chat);
    now.session = ebb_chat_session_name(a->frontend.chat);
    now.is_busy = ebb_chat_is_busy(a->frontend.chat);
    now.writer = ebb_chat_writer_pid(a->frontend.chat);
    now.is_remote = ebb_chat_remote(a->frontend.chat, &now.remote);
    if (figures_differ(&now, &a->figures)) {
        a->is_dirty = true;
        a->n_settling = SETTLE_LOOKS;
    } else if (a->n_settling > 0 && !is_working(a)) {
        a->n_settling--;
    }
    a->figures = now;
    a->figures_s = now_s;
}

static double frame_s(const ebb_app *a)
{
    return a->term->frame_s > usual_frame_s ? a->term->frame_s : usual_frame_s;
}

void ebb_app_draw(ebb_app *a, double now_s)
{
    if (ebb_app_is_lent(a) || (!a->is_dirty && !a->is_urgent))
        return;
    if (!a->is_urgent && a->drawn_s >= 0 && now_s - a->drawn_s < frame_s(a))
        return;
    if (!a->is_urgent && a->term->ops->is_behind && a->term->ops->is_behind(a->term)) {
        a->drawn_s = now_s;                      /* what is old by then is left out: the next frame has the newest */
        return;
    }
    a->term->frame_s = 0;
    ebb_app_frame(a);
    a->is_dirty = a->is_urgent = false;
    a->drawn_s = now_s;
}

static int ms_until(double then_s, double now_s)
{
    double ms = (then_s - now_s) * 1000;

    return ms <= 0 ? 0 : ms > 60000 ? 60000 : (int)ms + 1;
}

int ebb_app_timeout_ms(const ebb_app *a, double now_s)
{
    bool draws = !ebb_app_is_lent(a);
    int wait = -1;

    if ((a->is_urgent && draws) || a->figures_s < 0)
        return 0;
    if (is_working(a) || a->n_settling > 0)
        wait = ms_until(a->figures_s + (is_working(a) ? figures_s : settle_s), now_s);
    if (ebb_greeting_meter_is_busy(a->meter))
        wait = wait < 0 || wait > MEASURE_LOOK_MS ? MEASURE_LOOK_MS : wait;
    if (a->preview.due_s >= 0 && !ebb_chat_is_busy(a->frontend.chat) && ebb_chat_is_ready(a->frontend.chat)) {
        int count = ms_until(a->preview.due_s, now_s);
        wait = wait < 0 || count < wait ? count : wait;
    }
    if (a->unsent_due_s >= 0) {
        int keep = ms_until(a->unsent_due_s, now_s);
        wait = wait < 0 || keep < wait ? keep : wait;
    }
    if (a->is_dirty && draws) {
        int frame = ms_until(a->drawn_s + frame_s(a), now_s);
        wait = wait < 0 || frame < wait ? frame : wait;
    }
    return wait;
}

/* Is it for what has the terminal now? */
static bool is_for_outside(const ebb_app *a, ebb_input_kind kind)
{
    return ebb_app_is_lent(a) && kind != EBB_INPUT_STOP && kind != EBB_INPUT_SIGNAL && kind != EBB_INPUT_HANGUP;
}

void ebb_app_input(ebb_app *a, const ebb_input *in)
{
    if (is_for_outside(a, in->kind)) {
        ebb_app_external_input(a, in);
        return;
    }
    a->is_dirty = a->is_urgent = true;
    switch (in->kind) {
    case EBB_INPUT_KEY:
        ebb_buf_clear(&a->hint);
        ebb_app_key(a, in->key);
        break;
    case EBB_INPUT_PASTE:
        a->in_search = false;
        ebb_app_find_leave(a);
        ebb_editor_paste(&a->editor, in->text, in->n);
        break;
    case EBB_INPUT_SUSPEND:
        ebb_app_suspend(a);
        break;
    case EBB_INPUT_STOP:
        ebb_chat_stop(a->frontend.chat);
        break;
    case EBB_INPUT_SIGNAL: case EBB_INPUT_HANGUP:
        a->signal = in->kind == EBB_INPUT_HANGUP ? SIGHUP : in->number;
        a->frontend.quit = true;
        break;
    case EBB_INPUT_RESIZE: case EBB_INPUT_RESUME: case EBB_INPUT_CHILD: case EBB_INPUT_NONE:
        break;
    }
    ebb_app_menu_update(a);
}
