/* The menu of the app: when it opens, and what its keys do (menu.h, app.h). */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "command/slash_impl.h"
#include "edit/attach.h"
#include "os/paths.h"
#include "text/humanize.h"

/* Hands that type leave no longer pause between letters. */
static const double MENU_REST_S = 0.15;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool begins_word(const char *text, size_t at)
{
    return text[at] == '@' && (at == 0 || is_blank(text[at - 1]));
}

/* The path behind the @ of the word that ends with the text, or behind @" where no other quote follows.  Looked for
 * after each key, so no further than a path may reach. */
static bool attachment_at(const ebb_editor *e, size_t *path)
{
    const char *text = ebb_buf_text(&e->text), *quote;
    size_t at = e->text.len, least = at > PATH_MAX ? at - PATH_MAX : 0;

    quote = memrchr(text + least, '"', at - least);
    if (quote && quote > text && begins_word(text, (size_t)(quote - 1 - text)) && !strchr(quote, '\n')) {
        *path = (size_t)(quote + 1 - text);
        return true;
    }
    while (at > least && !is_blank(text[at - 1]))
        at--;
    *path = at + 1;
    return begins_word(text, at);
}

/* Whether there is a word to choose for, and where it begins. */
static bool menu_word(const ebb_app *a, size_t *at, bool *is_file)
{
    const ebb_editor *e = &a->editor;
    const char *text = ebb_buf_text(&e->text);

    *is_file = false;
    if (e->caret != e->text.len || e->text.len == 0 || a->search.is_on || a->find.state ||
        (a->vi.is_on && a->vi.is_normal))
        return false;
    if (ebb_slash_command_is(text)) {
        if (e->text.len > PATH_MAX)
            return false;
        size_t name = strcspn(text + 1, " \t");
        *at = text[1 + name] ? 1 + name + strspn(text + 1 + name, " \t") : 1;
        return !memchr(text, '\n', e->text.len);
    }
    *is_file = attachment_at(e, at);
    return *is_file && *at <= e->text.len;
}

/* What the candidates depend on: the line before the word, and the folder in it. */
static void menu_source(const ebb_app *a, size_t at, bool is_file, ebb_buf *out)
{
    const char *text = ebb_buf_text(&a->editor.text), *slash = strrchr(text + at, '/');

    if (is_file)
        ebb_buf_addc(out, '@');
    else
        ebb_buf_add(out, text, at);
    ebb_buf_add(out, text + at, slash ? (size_t)(slash + 1 - (text + at)) : 0);
}

static void show_theme(ebb_app *a, const char *name)
{
    ebb_error err;

    if (a->frontend.set_theme(&a->frontend, name, &err) != EBB_OK)
        ebb_app_hint_error(a, &err);
}

/* The theme that is looked at, while it is looked at. */
static void preview_theme(ebb_app *a)
{
    const ebb_menu_item *it = ebb_menu_selected(&a->menu);

    if (!it || strncmp(ebb_buf_text(&a->menu.source), "/theme ", 7) != 0)
        return;
    show_theme(a, it->text);
    a->menu.is_previewed = true;
}

void ebb_app_menu_close(ebb_app *a)
{
    if (a->menu.is_previewed)
        show_theme(a, a->frontend.theme);
    a->menu.is_previewed = a->menu.is_open = a->menu.is_chosen = a->menu.is_picked = a->marks.menu_typed = false;
    a->marks.menu_due_s = -1;
    ebb_menu_begin(&a->menu, "");
}

/* Sort the items by the word as it is now, and take the place of the word. */
static void match_menu(ebb_app *a, size_t at, bool is_file)
{
    ebb_menu *m = &a->menu;

    a->marks.menu_typed = false;
    a->marks.menu_due_s = -1;
    m->at = at;
    m->is_file = is_file;
    ebb_menu_match(m, ebb_buf_text(&a->editor.text) + at);
    m->is_open = m->n_shown > 0;
}

static void settle_menu(ebb_app *a)
{
    bool is_file;
    size_t at;

    if ((a->marks.menu_typed || a->marks.menu_due_s >= 0) && menu_word(a, &at, &is_file))
        match_menu(a, at, is_file);
}

/* Keys, editors, what waited and the output of commands change the line.  So whoever uses the menu, a key or a frame,
 * brings it up to date first, and what changes the line need not think of it. */
static void follow_line(ebb_app *a)
{
    ebb_menu *m = &a->menu;
    ebb_buf source = { 0 };
    bool is_file;
    size_t at;

    if (a->marks.menu_edits == a->editor.n_edits && a->marks.menu_caret == a->editor.caret)
        return;
    a->marks.menu_edits = a->editor.n_edits;
    a->marks.menu_caret = a->editor.caret;
    if (!menu_word(a, &at, &is_file)) {
        ebb_app_menu_close(a);
        return;
    }
    menu_source(a, at, is_file, &source);
    if (m->source.len > 0 && strcmp(ebb_buf_text(&source), ebb_buf_text(&m->source)) == 0) {
        m->at = at;
        a->marks.menu_typed = true;       /* the list follows when the hands rest: each letter would cost a screenful */
    } else {
        ebb_app_menu_close(a);
        ebb_menu_begin(m, ebb_buf_text(&source));
        if (is_file)
            ebb_complete_file(&a->frontend, ebb_buf_text(&a->editor.text) + at, ebb_menu_add, m);
        else
            ebb_slash_command_complete(&a->frontend, ebb_buf_text(&a->editor.text), &at, ebb_menu_add, m);
        match_menu(a, at, is_file);
    }
    ebb_buf_fini(&source);
}

void ebb_app_menu_tick(ebb_app *a, double now_s)
{
    follow_line(a);
    if (a->marks.menu_typed)
        a->marks.menu_due_s = now_s + MENU_REST_S;
    a->marks.menu_typed = false;
    if (a->marks.menu_due_s < 0 || now_s < a->marks.menu_due_s)
        return;
    settle_menu(a);
    a->frame.is_dirty = a->frame.is_urgent = true;
}

/* -- Keys ------------------------------------------------------------------------------ */

static void say_size(ebb_app *a, const char *path)
{
    ebb_buf size = { 0 }, whole = { 0 };
    struct stat st;

    if (ebb_path_expand(path, &whole, NULL) == EBB_OK && stat(whole.data, &st) == 0 && S_ISREG(st.st_mode)) {
        ebb_humanize_bytes(&size, (uint64_t)st.st_size);
        ebb_app_hint(a, "%s: %s%s", path, ebb_buf_text(&size),
                     st.st_size > EBB_ATTACH_BYTES ? ", too large to go with a message" : "");
    }
    ebb_buf_fini(&size);
    ebb_buf_fini(&whole);
}

/* Whether a file is chosen behind @". */
static bool is_in_quotes(const ebb_app *a)
{
    return a->menu.is_file && a->menu.at > 1 && a->editor.text.data[a->menu.at - 1] == '"';
}

/* Put the selected item into the line, and `behind` after it unless it is a folder; a file with blanks in its name in
 * quotes. */
static void take_item(ebb_app *a, const char *behind)
{
    const ebb_menu_item *it = ebb_menu_selected(&a->menu);
    bool was_in_quotes = is_in_quotes(a), is_quoted = was_in_quotes || (a->menu.is_file && strpbrk(it->text, " \t"));
    ebb_buf word = { 0 };

    ebb_buf_adds(&word, is_quoted && !was_in_quotes ? "\"" : "");
    ebb_buf_adds(&word, it->text);
    if (a->menu.is_file)
        say_size(a, it->text);
    if (word.len > 0 && word.data[word.len - 1] != '/') {
        ebb_buf_adds(&word, is_quoted ? "\"" : "");
        ebb_buf_adds(&word, behind);
    }
    ebb_editor_replace(&a->editor, a->menu.at, a->editor.text.len - a->menu.at, ebb_buf_text(&word), word.len);
    ebb_buf_fini(&word);
    follow_line(a);
}

/* Enter in the name of a command: one that needs more gets a blank, others are run. */
static bool enter_in_name(ebb_app *a, const char *typed)
{
    const ebb_menu_item *it = ebb_menu_selected(&a->menu);
    const ebb_slash_command *c = ebb_slash_command_find(typed, strlen(typed));
    bool is_typed = c && !a->menu.is_chosen, needs_more;

    if (!is_typed)
        c = ebb_slash_command_find(it->text, strlen(it->text));
    if (is_typed && !c->picks)
        return false;
    if (is_typed) {
        ebb_editor_insert(&a->editor, " ", 1);
        follow_line(a);
        if (a->menu.is_open)
            return true;
        ebb_editor_key(&a->editor, (ebb_key){ .code = EBB_KEY_BACKSPACE });
        return false;                            /* there is nothing to choose from */
    }
    needs_more = c->picks || c->complete == ebb_complete_session /* half a word deletes none */ ||
                 (*c->args && *c->args != '[');
    take_item(a, needs_more ? " " : "");
    return needs_more;
}

/* True: the key was the menu's; false: the line is to be sent as it is now. */
static bool menu_enter(ebb_app *a)
{
    const char *typed = ebb_buf_text(&a->editor.text) + a->menu.at;
    const ebb_menu_item *it = ebb_menu_selected(&a->menu);
    const ebb_slash_command *c;
    size_t name;

    if (a->menu.is_file) {
        if ((strcmp(it->text, typed) == 0 && !is_in_quotes(a)) || (*typed == '\0' && !a->menu.is_chosen))
            return false;
        take_item(a, " ");
        return true;
    }
    if (a->menu.at == 1)
        return enter_in_name(a, typed);
    name = strcspn(ebb_buf_text(&a->editor.text) + 1, " \t");
    c = ebb_slash_command_find(ebb_buf_text(&a->editor.text) + 1, name);
    if (!a->menu.is_chosen && c && c->complete == ebb_complete_session &&
        ebb_slash_is_session_number(&a->frontend, typed))
        return false;                            /* a title with these digits in it is not meant */
    if (a->menu.is_chosen || (c && c->picks)) {
        bool is_open = it->text[0] && it->text[strlen(it->text) - 1] == '/';
        take_item(a, "");
        if (is_open)
            return true;
        a->menu.is_previewed = false;            /* it stays */
    }
    return false;
}

/* Esc.  What nobody has typed is no beginning of the next message; a word behind it is. */
static void leave_menu(ebb_app *a)
{
    if (a->menu.is_picked && a->editor.text.len == a->menu.at)
        ebb_editor_set(&a->editor, "", 0);
    ebb_app_menu_close(a);
}

bool ebb_app_menu_key(ebb_app *a, ebb_key key)
{
    bool is_ctrl = key.mods == EBB_MOD_CTRL;

    follow_line(a);
    if (key.mods || (key.code >= EBB_KEY_UP && key.code != EBB_KEY_BACKSPACE))
        settle_menu(a);                          /* what is chosen from is what fits the word by now */
    if (!a->menu.is_open)
        return false;
    if ((key.mods == 0 && key.code == EBB_KEY_UP) || (is_ctrl && key.code == 'p'))
        ebb_menu_move(&a->menu, -1);
    else if ((key.mods == 0 && key.code == EBB_KEY_DOWN) || (is_ctrl && key.code == 'n'))
        ebb_menu_move(&a->menu, 1);
    else if (key.mods == 0 && key.code == EBB_KEY_TAB)
        take_item(a, " ");
    else if (key.mods == 0 && key.code == EBB_KEY_ESC)
        leave_menu(a);
    else
        return key.mods == 0 && key.code == EBB_KEY_ENTER && menu_enter(a);
    preview_theme(a);
    return true;
}

void ebb_app_pick(ebb_frontend *f, const char *line)
{
    ebb_app *a = (ebb_app *)f;

    ebb_editor_set(&a->editor, line, strlen(line));
    follow_line(a);
    a->menu.is_picked = true;
    for (size_t i = 0; i < a->menu.n_shown; i++) /* where one is in a tree: its last column says so */
        if (strstr(a->menu.items[a->menu.shown[i]].note, a->term->ascii ? " *" : " \u25C0"))
            a->menu.selected = i;
}
