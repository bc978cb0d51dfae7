/* Keys of the full screen: those that are not the editor's (app.h). */
#include <poll.h>
#include <string.h>

#include "app/app.h"
#include "base/utf8.h"
#include "command/pull_follow.h"
#include "command/slash.h"
#include "term/signals.h"
#include "tree/attachment.h"
#include "tree/thought.h"

/* -- Searching what was typed ------------------------------------------------------------- */

/* A line of the history, without a menu for it: the arrows stay the history's. */
static void show_typed_before(ebb_app *a, const char *line)
{
    a->editor.is_given = a->editor.is_given || strchr(line, '\n');
    ebb_editor_set(&a->editor, line, strlen(line));
    ebb_app_menu_close(a);
    a->marks.menu_edits = a->editor.n_edits;
    a->marks.menu_caret = a->editor.caret;
}

/* False: there is none, and the line is as it was. */
static bool show_found(ebb_app *a, size_t before)
{
    const char *text = ebb_history_search(&a->history, ebb_buf_text(&a->search.pattern), before, &a->search.i_found);

    if (text)
        show_typed_before(a, text);
    else
        ebb_app_hint(a, "no older match");
    return text != NULL;
}

/* The line that was found is the history's, as if the arrows had gone there: below it is the `own` one. */
static void take_found(ebb_app *a, const ebb_buf *own, bool was_given)
{
    if (a->history.at == a->history.n)
        a->marks.is_unsent_given = was_given;
    ebb_history_go(&a->history, a->search.i_found, ebb_buf_text(own));
}

static void begin_search(ebb_app *a)
{
    a->search.is_on = true;
    a->search.i_found = a->history.n;
    a->search.was_given = a->editor.is_given;
    ebb_buf_clear(&a->search.pattern);
    ebb_buf_clear(&a->search.before);
    ebb_editor_marked(&a->editor, &a->search.before);
    ebb_app_documents_await_enter(a);
}

void ebb_app_search_end(ebb_app *a)
{
    if (a->search.is_on && a->search.i_found < a->history.n)
        take_found(a, &a->search.before, a->search.was_given);
    a->search.is_on = false;
}

static void shorten_history_pattern(ebb_app *a)
{
    ebb_utf8_remove_last(&a->search.pattern);
    show_found(a, a->history.n);
}

/* True if the key belongs to the search; else it ends it and acts as usual. */
static bool history_search_key(ebb_app *a, ebb_key key)
{
    char bytes[4];

    if (key.mods == EBB_MOD_CTRL && key.code == 'r') {
        show_found(a, a->search.i_found);
    } else if (key.mods == EBB_MOD_CTRL && (key.code == 'g' || key.code == 'c')) {
        a->search.is_on = false;
        ebb_editor_set(&a->editor, ebb_buf_text(&a->search.before), a->search.before.len);
    } else if (key.mods == 0 && (key.code == EBB_KEY_ESC || (a->vi.is_on && key.code == EBB_KEY_ENTER))) {
        ebb_app_search_end(a);
        a->editor.caret = a->vi.is_normal ? 0 : a->editor.caret;
    } else if (key.mods == 0 && key.code == EBB_KEY_BACKSPACE) {
        shorten_history_pattern(a);
    } else if (key.mods == 0 && key.code < EBB_KEY_UP) {
        ebb_buf_add(&a->search.pattern, bytes, ebb_utf8_encode(key.code, bytes));
        show_found(a, a->search.i_found < a->history.n ? a->search.i_found + 1 : a->history.n);
    } else {
        ebb_app_search_end(a);
        return false;
    }
    return true;
}

/* -- Stopping, leaving ----------------------------------------------------------------------- */

static void stop_answer(ebb_app *a)
{
    ebb_chat_stop(a->frontend.chat);
    a->is_stopping = true;
    ebb_app_hint(a, "stopping as soon as this step is done");
}

static void app_interrupt(ebb_app *a)
{
    if (ebb_chat_is_busy(a->frontend.chat)) {
        if (ebb_editor_is_empty(&a->editor))
            ebb_app_take_back_queue(a);          /* stopping means: do not go on with these either */
        stop_answer(a);
    } else if (!ebb_editor_is_empty(&a->editor) || ebb_frontend_edits(&a->frontend)) {
        ebb_editor_set(&a->editor, "", 0);
        ebb_frontend_leave_edit(&a->frontend);
        a->editor.is_given = false;
    } else if (!ebb_pull_follow_stop(&a->frontend)) {
        ebb_app_hint(a, "Ctrl-D leaves; /help lists the rest");
    }
}

bool ebb_app_wants_stop(void *arg)
{
    ebb_app *a = arg;
    struct pollfd fds[2];

    if (ebb_signals_want_stop() || !a->term)     /* the chat may outlive its terminal */
        return ebb_signals_want_stop();
    if (a->preview.is_counting && poll(fds, (nfds_t)a->term->ops->fds(a->term, fds, 2), 0) > 0)
        return true;
    return a->term->ops->is_interrupted(a->term);
}

/* Whoever looks back wants to the end first, and sees there what would be stopped. */
static void app_escape_key(ebb_app *a)
{
    if (!a->view.is_bottom)
        ebb_transcript_end(&a->view);
    else if (ebb_chat_is_busy(a->frontend.chat))
        stop_answer(a);
}

static void browse_history(ebb_app *a, int direction)
{
    ebb_buf now = { 0 };
    const char *text;
    bool was_own = a->history.at == a->history.n, was_given = a->editor.is_given;

    ebb_editor_marked(&a->editor, &now);
    text = direction < 0 ? ebb_history_back(&a->history, ebb_buf_text(&now)) : ebb_history_forward(&a->history);
    if (text)
        show_typed_before(a, text);
    if (text && was_own)
        a->marks.is_unsent_given = was_given;
    else if (text && a->history.at == a->history.n)
        a->editor.is_given = a->editor.is_given || a->marks.is_unsent_given;
    ebb_buf_fini(&now);
}

/* What message i has folded: a thought, or the files that went along. */
static size_t folded_part(const ebb_message *m, const char **text)
{
    ebb_thought thought = ebb_message_thought(m);
    size_t body = m->text && m->role == EBB_ROLE_USER ? ebb_attachments_end(m->text, m->n_text) : 0;

    *text = m->text + thought.start;
    return body > 0 ? body : thought.end - thought.start;
}

/* What is in the scrollback stays folded: the last thought, or the files of the last question, are said anew. */
static void say_folded(ebb_app *a)
{
    size_t n = ebb_chat_n_messages(a->frontend.chat), n_part = 0;
    const char *part;

    for (size_t i = n; i > 0 && i + 2 > n && n_part == 0; i--)
        n_part = folded_part(ebb_chat_message(a->frontend.chat, i - 1), &part);
    if (n_part > 0 && a->view.scrollback.item >= a->view.n_items)
        a->frontend.say(&a->frontend, EBB_SAY_TEXT, part, n_part);
}

static void toggle_thoughts(ebb_app *a)
{
    ebb_transcript_show_thoughts(&a->view, !a->view.shows_thoughts);
    if (!a->term->ops->begin)
        return;
    if (a->view.shows_thoughts)
        say_folded(a);
    ebb_app_hint(a, "from now on thoughts and attached files are %s", a->view.shows_thoughts ? "shown" : "folded");
}

static bool app_control_key(ebb_app *a, uint32_t code)
{
    switch (code) {
    case 'c': app_interrupt(a); return true;
    case 'd':
        if (!ebb_editor_is_empty(&a->editor))
            return false;
        ebb_frontend_quit(&a->frontend);
        return true;
    case 'l': a->term->ops->repaint(a->term); return true;
    case 'z': ebb_app_suspend(a); return true;
    case 'r': begin_search(a); return true;
    case 'x':
        a->after_ctrl_x = a->queue.n == 0;       /* Ctrl-X Ctrl-E */
        ebb_app_unqueue(a);
        return true;
    case 's': ebb_app_find_begin(a); return true;
    case 'o': toggle_thoughts(a); return true;
    case 'g': ebb_app_external_editor(a); return true;
    case EBB_KEY_HOME: ebb_transcript_home(&a->view); return true;
    case EBB_KEY_END: ebb_transcript_end(&a->view); return true;
    default: return false;
    }
}

static bool view_key(ebb_app *a, ebb_key key)
{
    int page = a->view.height > 2 ? a->view.height - 1 : 1;

    switch (key.code) {
    case EBB_KEY_PGUP: ebb_transcript_scroll(&a->view, key.mods ? -1 : -page); return true;
    case EBB_KEY_PGDN: ebb_transcript_scroll(&a->view, key.mods ? 1 : page); return true;
    case EBB_KEY_UP: case EBB_KEY_DOWN:
        if (key.mods != EBB_MOD_ALT)
            return false;
        ebb_transcript_message(&a->view, key.code == EBB_KEY_UP ? -1 : 1);
        return true;
    case EBB_KEY_HOME: case '<':
        if (key.mods != EBB_MOD_ALT)
            return false;
        ebb_transcript_home(&a->view);
        return true;
    case EBB_KEY_END: case '>':
        if (key.mods != EBB_MOD_ALT)
            return false;
        ebb_transcript_end(&a->view);
        return true;
    default: return false;
    }
}

static void next_layout(ebb_app *a)
{
    static const char *const names[] = { "automatic", "panel", "two lines", "one line", "hidden" };
    int was = ebb_app_layout_shape(a);

    do                                           /* each press changes something */
        a->layout = (a->layout + 1) % EBB_LAYOUTS;
    while (a->layout != EBB_LAYOUT_AUTO && ebb_app_layout_shape(a) == was);
    ebb_app_hint(a, "status: %s (--status %s)", names[a->layout], ebb_layout_names[a->layout]);
}

/* The place of the pattern in a line that was typed later.  False: there is none. */
static bool show_newer(ebb_app *a)
{
    size_t found;

    for (size_t i = a->search.i_found + 1; i < a->history.n && a->search.pattern.len > 0; i++)
        if (ebb_history_search(&a->history, ebb_buf_text(&a->search.pattern), i + 1, &found) && found == i)
            return show_found(a, i + 1);
    ebb_app_hint(a, "no newer match");
    return false;
}

/* vi's n and N, after a search. */
static void search_on(ebb_app *a, bool is_newer)
{
    bool was_given = a->editor.is_given;
    ebb_buf own = { 0 };

    ebb_editor_marked(&a->editor, &own);
    if (is_newer ? show_newer(a) : a->search.pattern.len > 0 && show_found(a, a->search.i_found))
        take_found(a, &own, was_given);
    ebb_buf_fini(&own);
}

/* True: it was vi's. */
static bool app_vi_key(ebb_app *a, ebb_key key)
{
    ebb_vi_act act = ebb_vi_key(&a->vi, &a->editor, key);

    switch (act) {
    case EBB_VI_PASS: return false;
    case EBB_VI_DONE: return true;
    case EBB_VI_BACK: browse_history(a, -1); break;
    case EBB_VI_FORWARD: browse_history(a, 1); break;
    case EBB_VI_SEARCH: begin_search(a); break;
    case EBB_VI_OLDER: case EBB_VI_NEWER: search_on(a, act == EBB_VI_NEWER); break;
    }
    if (act != EBB_VI_SEARCH)
        a->editor.caret = 0;                     /* of the line that came */
    return true;
}

/* Keys that the editor did not want. */
static void other_key(ebb_app *a, ebb_key key)
{
    bool is_up = key.code == EBB_KEY_UP || (key.code == 'p' && key.mods == EBB_MOD_CTRL);
    bool is_down = key.code == EBB_KEY_DOWN || (key.code == 'n' && key.mods == EBB_MOD_CTRL);

    if (is_up || is_down)
        browse_history(a, is_up ? -1 : 1);
}

static void show_help(ebb_app *a)
{
    ebb_transcript_end(&a->view);
    ebb_slash_command_run(&a->frontend, "/help"); /* which shows its beginning */
}

void ebb_app_key(ebb_app *a, ebb_key key)
{
    bool after_ctrl_x = a->after_ctrl_x;

    a->after_ctrl_x = false;
    if (ebb_command_output_is_running(&a->output) &&
        (key.code == EBB_KEY_ESC || (key.code == 'c' && key.mods == EBB_MOD_CTRL))) {
        ebb_command_output_stop(&a->output);
        return;
    }
    if (ebb_documents_is_running(&a->documents) &&
        (key.code == EBB_KEY_ESC || (key.code == 'c' && key.mods == EBB_MOD_CTRL))) {
        ebb_app_documents_stop(a);
        return;
    }
    if (a->search.is_on && history_search_key(a, key))
        return;
    if (a->find.state && ebb_app_find_key(a, key))
        return;
    if (ebb_app_menu_key(a, key))
        return;
    if (ebb_app_select_key(a, key))
        return;
    if (app_vi_key(a, key))
        return;
    if (key.code == '/' && !key.mods && a->marks.offered_edits && a->marks.offered_edits == a->editor.n_edits)
        ebb_editor_set(&a->editor, "", 0);       /* a command instead of the text that was put there */
    if (key.code == '?' && !key.mods && !a->view.is_bottom && ebb_editor_is_empty(&a->editor)) {
        ebb_app_hint(a, "Esc: the end, PgUp PgDn: page, Alt-Up Alt-Down: message, Ctrl-S: find");
        return;
    }
    if (after_ctrl_x && key.mods == EBB_MOD_CTRL && key.code == 'e') {
        ebb_app_external_editor(a);
        return;
    }
    if (key.mods == EBB_MOD_CTRL && app_control_key(a, key.code))
        return;
    if (view_key(a, key))
        return;
    if (key.mods == 0 && key.code == EBB_KEY_ENTER)
        ebb_app_submit(a);
    else if (key.mods == 0 && key.code == EBB_KEY_TAB)
        ebb_app_hint(a, "Tab completes commands, which begin with /, and files after @");
    else if (key.mods == 0 && key.code == EBB_KEY_ESC)
        app_escape_key(a);
    else if (key.mods == 0 && key.code == EBB_KEY_F1)
        show_help(a);
    else if (key.mods == 0 && key.code == EBB_KEY_F1 + 1)
        next_layout(a);
    else if (key.mods == 0 && key.code == EBB_KEY_F1 + 9)
        ebb_frontend_quit(&a->frontend);
    else if (!ebb_editor_key(&a->editor, key))
        other_key(a, key);
}
