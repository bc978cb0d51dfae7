/* The full screen: its beginning and its end, what the chat tells, what time does (app.h). */
#include "app/app.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "command/pull_follow.h"
#include "edit/marked.h"
#include "os/file.h"
#include "store/title.h"
#include "term/announce.h"
#include "tree/attachment.h"
#include "tree/thought.h"

/* Frames per second while text streams; figures per second while something happens. */
static const double usual_frame_s = 1.0 / 30, figures_s = 0.5, settle_s = 1.0;
enum { SETTLE_LOOKS = 3, MEASURE_LOOK_MS = 100 };

static void app_say(ebb_frontend *f, ebb_say kind, const char *text, size_t n)
{
    ebb_app *a = (ebb_app *)f;

    ebb_transcript_sync(&a->view);
    ebb_transcript_say(&a->view, kind, text, n);
    if (kind == EBB_SAY_PAGE && !a->term->ops->begin)
        ebb_transcript_show_last(&a->view);
    a->frame.is_dirty = true;
}

static ebb_status app_set_theme(ebb_frontend *f, const char *name, ebb_error *err)
{
    ebb_app *a = (ebb_app *)f;
    ebb_theme theme;
    ebb_status st = ebb_theme_load(f->config_dir.len ? f->config_dir.data : NULL, name, &theme, err);

    if (st == EBB_OK) {
        a->term->ops->theme(a->term, &theme);
        a->frame.is_dirty = true;
    }
    return st;
}

static void app_edit(ebb_frontend *f, const char *text, size_t n)
{
    ebb_app *a = (ebb_app *)f;
    size_t body = ebb_marked_begins(text, n) ? 0 : ebb_attachments_end(text, n);
    ebb_buf marked = { 0 };

    if (!ebb_editor_is_empty(&a->editor))
        return;
    ebb_buf_adds(&marked, body > 0 ? EBB_MARK_BEGIN : "");       /* folded: the name in front begins no command */
    ebb_buf_add(&marked, text, body);
    ebb_buf_adds(&marked, body > 0 ? EBB_MARK_END : "");
    ebb_editor_set(&a->editor, ebb_buf_text(&marked), marked.len);
    ebb_editor_insert_marked(&a->editor, text + body, n - body);
    ebb_buf_fini(&marked);
    a->editor.is_given = true;
    a->marks.offered_edits = a->editor.n_edits;
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
        ebb_app_hint(a, a->view.is_raw ? "Markdown source; /raw formats it again" : "Markdown formatted");
        break;
    case EBB_VIEW_EDITING:
        if (*arg && strcmp(arg, "vi") != 0 && strcmp(arg, "emacs") != 0)
            return EBB_FAIL(err, EBB_USAGE, "/editing %.40s: give vi or emacs", arg);
        if (*arg)
            ebb_vi_set(&a->vi, &a->editor, strcmp(arg, "vi") == 0);
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, a->vi.is_on ? "vi keys; Esc leaves insert mode"
                                                         : "Emacs keys, as in a shell");
        break;
    case EBB_VIEW_BARE: ebb_app_bare(a); break;
    case EBB_VIEW_FIND:
        if (strlen(arg) > EBB_PATTERN_MAX)
            return EBB_FAIL(err, EBB_LIMIT, "/find TEXT: of %zu bytes; at most %d are looked for", strlen(arg),
                            EBB_PATTERN_MAX);
        if (!ebb_app_find(a, arg, strlen(arg)))
            return EBB_FAIL(err, EBB_NOTFOUND, "'%.100s' is not in this conversation; /search looks in all of them",
                            arg);
        break;
    }
    a->frame.is_dirty = true;
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
        return;                                  /* saving the conversation reports the same error */
    if (!ebb_buf_addf(&path, "%s/history", dir->data) ||
        ebb_history_open(&a->history, path.data, &err) != EBB_OK)
        ebb_app_say_error(a, &err);
    ebb_buf_fini(&path);
}

/* Adapt the theme to the background that the terminal reports, unless the user has chosen one.
 * true: the theme has changed. */
static bool suit_background(ebb_app *a)
{
    const ebb_tui_opts *opts = a->frontend.opts;
    ebb_background background = a->term->answers.background;
    const char *name = background == EBB_BACKGROUND_LIGHT ? "light" : "dark";
    bool is_news = background && !opts->theme && !opts->no_color && !a->frontend.has_chosen_theme &&
                   strcmp(a->frontend.theme, name) != 0;

    if (is_news)
        snprintf(a->frontend.theme, sizeof a->frontend.theme, "%s", name);
    return is_news;
}

/* Apply the terminal's replies to our queries, from now or from its opening. */
static void take_answers(ebb_app *a)
{
    ebb_error err;

    if (suit_background(a) && app_set_theme(&a->frontend, a->frontend.theme, &err) != EBB_OK)
        ebb_app_say_error(a, &err);
}

void ebb_app_init(ebb_app *a, ebb_term *term, ebb_chat *chat, const ebb_tui_opts *opts)
{
    ebb_error err;

    memset(a, 0, sizeof *a);
    ebb_frontend_init(&a->frontend, chat, opts);
    a->documents.filters = opts->filters;
    a->frontend.say = app_say;
    a->frontend.set_theme = app_set_theme;
    a->frontend.send = app_send_raw;
    a->frontend.edit = app_edit;
    a->frontend.view = app_view;
    a->frontend.pick = ebb_app_pick;
    a->preview.due_s = a->unsent.due_s = a->marks.menu_due_s = -1;
    a->unsent.file.fd = a->external.lock = -1;
    ebb_vi_set(&a->vi, &a->editor, opts->has_vi_keys);
    a->layout = opts->layout;
    a->term = term;
    suit_background(a);
    ebb_transcript_init(&a->view, chat, !term->utf8);
    a->view.plain_glyphs = term->ascii;
    ebb_transcript_sync(&a->view);
    if (app_set_theme(&a->frontend, a->frontend.theme, &err) != EBB_OK) {
        ebb_app_say_error(a, &err);
        snprintf(a->frontend.theme, sizeof a->frontend.theme, "dark");
        if (app_set_theme(&a->frontend, a->frontend.theme, &err) != EBB_OK)
            ebb_app_say_error(a, &err);
    }
    open_history(a);
    a->greeting.is_first_run = a->history.n == 0;
    ebb_app_restore_unsent(a);
    a->frame.figures_s = -1;
    a->frame.drawn_s = -1;
    a->frame.is_dirty = a->frame.is_urgent = true;
}

void ebb_app_fini(ebb_app *a)
{
    ebb_greeting_meter_drop(a->greeting.meter);
    ebb_command_output_fini(&a->output);
    ebb_documents_fini(&a->documents);
    ebb_unsent_end_autosave(&a->unsent.file);
    if (a->term->ops->begin && a->signal != SIGHUP)
        ebb_app_inline_frame(a, true);
    for (size_t i = 0; i < a->queue.n; i++) {
        free(a->queue.messages[i].text);
        free(a->queue.messages[i].row);
    }
    free(a->queue.messages);
    ebb_transcript_fini(&a->view);
    ebb_editor_fini(&a->editor);
    ebb_menu_fini(&a->menu);
    ebb_history_fini(&a->history);
    ebb_buf_fini(&a->hint);
    ebb_buf_fini(&a->search.pattern);
    ebb_buf_fini(&a->find.text);
    ebb_buf_fini(&a->search.before);
    ebb_buf_fini(&a->arrived.front);
    ebb_buf_fini(&a->arrived.behind);
    ebb_frontend_fini(&a->frontend);
    memset(a, 0, sizeof *a);
}

/* -- Events -------------------------------------------------------------------------------- */

static void announce_end(ebb_app *a, const ebb_message *m)
{
    const ebb_tui_opts *opts = a->frontend.opts;
    ebb_thought thought = m ? ebb_message_thought(m) : (ebb_thought){ 0 };
    char title[120] = "";
    const char *text = title;
    ebb_buf out = { 0 };

    ebb_buf_adds(&out, "\a");
    if (m)
        ebb_title_make(m->text + thought.body, m->n_text - thought.body, title, sizeof title);
    if (!*title)
        text = "the answer is there";
    if (opts->notifies && ebb_questions_suit(opts->term_name))
        ebb_announce_add_notification(&out, text, strlen(text), opts->term_name, opts->is_vte, opts->in_tmux,
                                      !a->term->utf8);
    a->term->ops->send(a->term, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
}

/* The bell at the end of a long answer, for users who have looked elsewhere meanwhile. */
static void ring_bell(ebb_app *a)
{
    static const double long_s = 60;
    size_t n = ebb_chat_n_messages(a->frontend.chat);
    const ebb_message *m = n > 0 ? ebb_chat_message(a->frontend.chat, n - 1) : NULL;
    bool is_long = m && m->turn_stats.prefill_s + m->turn_stats.decode_s >= long_s;

    if (!a->is_stopping && a->frontend.opts->bell != EBB_BELL_NEVER &&
        (is_long || a->frontend.opts->bell == EBB_BELL_ALWAYS))
        announce_end(a, m);
}

static void handle_chat_event(ebb_app *a, const ebb_chat_event *ev)
{
    switch (ev->kind) {
    case EBB_EVENT_LOADING:
        a->figures.load_done = ev->done;
        a->figures.load_total = ev->total;
        a->figures.has_failed = false;
        break;
    case EBB_EVENT_NOTICE:
    case EBB_EVENT_WARNING:
        app_say(&a->frontend, EBB_SAY_NOTICE, ev->text, ev->n_text);
        break;
    case EBB_EVENT_REPORT:
        app_say(&a->frontend, EBB_SAY_PAGE, ev->text, ev->n_text);
        break;
    case EBB_EVENT_ERROR:
        app_say(&a->frontend, EBB_SAY_ERROR, ev->text, ev->n_text);
        a->figures.has_failed = !ebb_chat_is_ready(a->frontend.chat);
        a->figures.load_total = a->figures.has_failed ? 0 : a->figures.load_total;
        ebb_app_hold_queue(a);
        break;
    case EBB_EVENT_REFUSED:
        app_say(&a->frontend, EBB_SAY_ERROR, ev->text, ev->n_text);
        break;
    case EBB_EVENT_TEXT:
        a->view.has_more = !a->view.is_bottom;
        break;
    case EBB_EVENT_SPECULATIVE_PREFILL:
        a->preview.n_read = (uint32_t)ev->done;
        break;
    case EBB_EVENT_DONE:
        ring_bell(a);
        if (a->is_stopping)
            ebb_app_hint(a, a->queue.n > 0 ? "stopped; what waits goes next"
                                           : "stopped; Enter on an empty line continues");
        a->is_stopping = a->queue.is_held = false;
        break;
    case EBB_EVENT_READY:
        ebb_frontend_ready(&a->frontend);
        break;
    case EBB_EVENT_NOTE:                         /* it is in the transcript */
    case EBB_EVENT_CHANGED: case EBB_EVENT_PREFILL:
        break;
    }
    if (ev->kind != EBB_EVENT_TEXT && ev->kind != EBB_EVENT_LOADING && ev->kind != EBB_EVENT_PREFILL)
        a->frame.figures_s = -1;                       /* look again at once */
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
    a->is_stopping = a->is_stopping && ebb_chat_is_busy(a->frontend.chat);
    if (changed || a->view.n_messages != ebb_chat_n_messages(a->frontend.chat))
        ebb_transcript_sync(&a->view);
    a->frame.is_dirty = true;
    a->frame.n_settling = SETTLE_LOOKS;
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
        a->remote.server.taken_ms != b->remote.server.taken_ms ||
        a->remote.first_s != b->remote.first_s)
        return true;
    if (a->job != b->job || (int)(a->job_share * 100) != (int)(b->job_share * 100))
        return true;
    if (a->form != b->form || a->form_is_schema != b->form_is_schema)
        return true;
    if (memcmp(&x, &y, sizeof x) != 0)           /* NOLINT: padding that differs costs a frame, not an answer */
        return true;
    return a->model != b->model || a->writer != b->writer || a->is_busy != b->is_busy;
}

/* Measure the memory speed for the greeting while the greeting is shown and the input empty. */
static void measure_tick(ebb_app *a)
{
    ebb_machine measured;

    if (ebb_greeting_meter_result(a->greeting.meter, &measured)) {
        a->greeting.machine = measured;
        a->frame.is_dirty = true;
    } else if (a->greeting.is_first_run && a->greeting.has_machine && !a->greeting.meter && ebb_app_greets(a) &&
               ebb_editor_is_empty(&a->editor) && ebb_greeting_measures(&a->greeting.machine, a->figures.model)) {
        a->greeting.meter = ebb_greeting_meter_start();
    }
}

/* What has come of a model that is fetched: shown once a second, and at its end. */
static void pull_tick(ebb_app *a, double now_s)
{
    bool was = a->figures.is_pulling;

    ebb_pull_follow_poll(&a->frontend);
    a->figures.is_pulling = ebb_pull_process_is_running(&a->frontend.pull);
    if (!a->figures.is_pulling && !was)
        return;
    if (was != a->figures.is_pulling || now_s - a->frame.pulled_s >= settle_s) {
        a->figures.pull = a->frontend.pull.last;
        a->frame.pulled_s = now_s;
        a->frame.is_dirty = true;
    }
}

void ebb_app_tick(ebb_app *a, double now_s)
{
    double every = is_working(a) ? figures_s : settle_s;
    ebb_figures now;

    ebb_app_external_tick(a);
    ebb_app_output_tick(a, ebb_clock_s());
    ebb_app_documents_tick(a, ebb_clock_s());
    ebb_app_send_next(a);                        /* also where no event, but a key, has made room for it */
    pull_tick(a, now_s);
    ebb_app_menu_tick(a, now_s);
    ebb_app_preview_tick(a, now_s);
    ebb_app_unsent_tick(a, now_s);
    measure_tick(a);
    if (a->frame.figures_s >= 0 && now_s - a->frame.figures_s < every)
        return;
    if (!is_working(a) && a->frame.n_settling == 0 && a->frame.figures_s >= 0)
        return;
    now = a->figures;
    ebb_chat_stats(a->frontend.chat, &now.stats);
    now.model = ebb_chat_model(a->frontend.chat);
    now.session = ebb_chat_session_name(a->frontend.chat);
    now.form = ebb_chat_form(a->frontend.chat, &now.form_is_schema);
    now.is_busy = ebb_chat_is_busy(a->frontend.chat);
    now.job = ebb_chat_job_under_way(a->frontend.chat, &now.job_share);
    now.writer = ebb_chat_writer_pid(a->frontend.chat);
    now.is_remote = ebb_chat_remote(a->frontend.chat, &now.remote);
    if (figures_differ(&now, &a->figures)) {
        a->frame.is_dirty = true;
        a->frame.n_settling = SETTLE_LOOKS;
    } else if (a->frame.n_settling > 0 && !is_working(a)) {
        a->frame.n_settling--;
    }
    a->figures = now;
    a->frame.figures_s = now_s;
}

static double frame_s(const ebb_app *a)
{
    return a->term->frame_s > usual_frame_s ? a->term->frame_s : usual_frame_s;
}

static void tell_title(ebb_app *a)
{
    const char *name = ebb_chat_session_name(a->frontend.chat);

    if (a->term->ops->title && !a->frontend.opts->no_title)
        a->term->ops->title(a->term, name ? name : "", name ? strlen(name) : 0);
}

/* What is urgent does not wait for a slow line, only for one that takes no more. */
static bool line_is_behind(const ebb_app *a)
{
    ebb_backlog backlog = a->term->ops->backlog ? a->term->ops->backlog(a->term) : EBB_BACKLOG_NONE;

    return backlog == EBB_BACKLOG_KEPT || (backlog == EBB_BACKLOG_SENDING && !a->frame.is_urgent);
}

void ebb_app_draw(ebb_app *a, double now_s)
{
    if (ebb_app_is_lent(a) || (!a->frame.is_dirty && !a->frame.is_urgent))
        return;
    if (!a->frame.is_urgent && a->frame.drawn_s >= 0 && now_s - a->frame.drawn_s < frame_s(a))
        return;
    if (line_is_behind(a)) {
        a->frame.is_urgent = false;
        a->frame.drawn_s = now_s;                   /* what is old by then is left out: the next frame has the newest */
        return;
    }
    a->term->frame_s = 0;
    tell_title(a);
    a->term->is_settling = ebb_chat_is_busy(a->frontend.chat);
    ebb_app_frame(a);
    a->frame.is_dirty = a->frame.is_urgent = false;
    a->frame.drawn_s = now_s;
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

    if ((a->frame.is_urgent && draws) || a->frame.figures_s < 0)
        return 0;
    if (is_working(a) || a->frame.n_settling > 0)
        wait = ms_until(a->frame.figures_s + (is_working(a) ? figures_s : settle_s), now_s);
    if (ebb_greeting_meter_is_busy(a->greeting.meter) || ebb_command_output_is_running(&a->output) ||
        ebb_documents_is_running(&a->documents))
        wait = wait < 0 || wait > MEASURE_LOOK_MS ? MEASURE_LOOK_MS : wait;
    if (a->figures.is_pulling) {
        int look = ms_until(a->frame.pulled_s + settle_s, now_s);
        wait = wait < 0 || look < wait ? look : wait;
    }
    if (a->preview.due_s >= 0 && !ebb_chat_is_busy(a->frontend.chat) && ebb_chat_is_ready(a->frontend.chat)) {
        int count = ms_until(a->preview.due_s, now_s);
        wait = wait < 0 || count < wait ? count : wait;
    }
    if (a->unsent.due_s >= 0) {
        int keep = ms_until(a->unsent.due_s, now_s);
        wait = wait < 0 || keep < wait ? keep : wait;
    }
    if (a->marks.menu_due_s >= 0) {
        int follow = ms_until(a->marks.menu_due_s, now_s);
        wait = wait < 0 || follow < wait ? follow : wait;
    }
    if (a->frame.is_dirty && draws) {
        int frame = ms_until(a->frame.drawn_s + frame_s(a), now_s);
        wait = wait < 0 || frame < wait ? frame : wait;
    }
    return wait;
}

/* Is the input for the program that has the terminal now? */
static bool is_for_outside(const ebb_app *a, ebb_input_kind kind)
{
    return ebb_app_is_lent(a) && kind != EBB_INPUT_STOP && kind != EBB_INPUT_SHARE && kind != EBB_INPUT_SIGNAL &&
           kind != EBB_INPUT_HANGUP;
}

/* How many bytes of it are kept: what is no text takes three for one, as U+FFFD. */
static size_t count_kept(const char *s, size_t n)
{
    size_t kept = 0;

    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp;

        len = ebb_utf8_decode(s + at, n - at, &cp);
        len = len ? len : n - at;
        kept += cp == EBB_UTF8_BAD || cp == 0 ? 3 : len;
        if (kept > EBB_PASTE_BYTES)
            return at;
    }
    return n;
}

/* A paste that begins as an attached file does is none: what is typed of that name goes along all the same.
 * Returns whether it is folded. */
static bool insert_paste(ebb_app *a, const char *s, size_t n)
{
    ebb_buf text = { 0 };
    bool is_folded, is_added = ebb_attach_add_text(&text, s, n);

    is_folded = is_added ? ebb_editor_paste(&a->editor, ebb_buf_text(&text), text.len)
                         : ebb_editor_paste(&a->editor, s, n);
    ebb_buf_fini(&text);
    return is_folded;
}

static void take_paste(ebb_app *a, const ebb_input *in)
{
    size_t n = count_kept(in->text, in->n), n_lost = in->n_lost + in->n - n;
    ebb_error err;

    ebb_app_search_end(a);
    ebb_app_find_leave(a);
    if (!insert_paste(a, in->text, n) && memchr(in->text, '@', n))
        a->editor.is_given = true;
    if (n_lost == 0)
        return;
    EBB_FAIL(&err, EBB_LIMIT, "the paste is cut off after %zu bytes: %zu more are not in it; %u MiB at once are kept",
             n, n_lost, EBB_PASTE_BYTES >> 20);
    ebb_app_say_error(a, &err);
}

void ebb_app_input(ebb_app *a, const ebb_input *in)
{
    if (in->kind == EBB_INPUT_REPLY) {
        take_answers(a);
        return;
    }
    if (is_for_outside(a, in->kind)) {
        ebb_app_external_input(a, in);
        return;
    }
    a->frame.is_dirty = a->frame.is_urgent = true;
    switch (in->kind) {
    case EBB_INPUT_KEY:
        ebb_buf_clear(&a->hint);
        ebb_app_key(a, in->key);
        break;
    case EBB_INPUT_PASTE:
        take_paste(a, in);
        break;
    case EBB_INPUT_SUSPEND:
        ebb_app_suspend(a);
        break;
    case EBB_INPUT_STOP:
        ebb_chat_stop(a->frontend.chat);
        break;
    case EBB_INPUT_SHARE:
        ebb_chat_share_model(a->frontend.chat);
        break;
    case EBB_INPUT_SIGNAL: case EBB_INPUT_HANGUP:
        a->signal = in->kind == EBB_INPUT_HANGUP ? SIGHUP : in->number;
        a->frontend.quit = true;
        break;
    case EBB_INPUT_RESIZE: case EBB_INPUT_RESUME: case EBB_INPUT_CHILD: case EBB_INPUT_REPLY: case EBB_INPUT_NONE:
        break;
    }
}
