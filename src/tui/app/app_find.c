/* Searching the transcript: Ctrl-S or /find, then n and N (app.h). */

#include "app/app.h"
#include "base/utf8.h"

void ebb_app_find_begin(ebb_app *a)
{
    a->find.state = EBB_FIND_TYPING;
    ebb_buf_clear(&a->find.text);
    ebb_transcript_find(&a->view, "", 0);
}

void ebb_app_find_leave(ebb_app *a)
{
    a->find.state = EBB_FIND_OFF;
    ebb_transcript_find(&a->view, "", 0);
}

static void go_to_match(ebb_app *a, int direction, bool anew)
{
    if (a->find.text.len > 0 && !ebb_transcript_find_next(&a->view, direction, anew))
        ebb_app_hint(a, anew ? "not found" : direction < 0 ? "no older match" : "no newer match");
}

/* The pattern has changed: look for it from the end of the window. */
static void search_typed_pattern(ebb_app *a)
{
    ebb_transcript_find(&a->view, ebb_buf_text(&a->find.text), a->find.text.len);
    go_to_match(a, -1, true);
}

bool ebb_app_find(ebb_app *a, const char *text, size_t n)
{
    ebb_app_find_begin(a);
    ebb_buf_add(&a->find.text, text, n);
    search_typed_pattern(a);
    a->find.state = a->view.n_hit > 0 ? EBB_FIND_GOING : EBB_FIND_OFF;
    if (a->view.n_hit == 0)
        ebb_app_find_leave(a);
    return a->find.state == EBB_FIND_GOING;
}

static void shorten_typed_pattern(ebb_app *a)
{
    ebb_utf8_remove_last(&a->find.text);
    search_typed_pattern(a);
}

static bool search_typing_key(ebb_app *a, ebb_key key)
{
    char bytes[4];

    if (key.mods == 0 && key.code == EBB_KEY_ENTER && a->view.n_hit > 0) {
        a->find.state = EBB_FIND_GOING;
    } else if (key.mods == 0 && key.code == EBB_KEY_ENTER && a->find.text.len > 0) {
        ebb_app_hint(a, "not found; Esc leaves the search");     /* so that an n is not typed into a message */
    } else if (key.mods == 0 && key.code == EBB_KEY_BACKSPACE) {
        shorten_typed_pattern(a);
    } else if (key.mods == 0 && key.code < EBB_KEY_UP && a->find.text.len >= EBB_PATTERN_MAX) {
        ebb_app_hint(a, "at most %d bytes are looked for", EBB_PATTERN_MAX);
    } else if (key.mods == 0 && key.code < EBB_KEY_UP) {
        ebb_buf_add(&a->find.text, bytes, ebb_utf8_encode(key.code, bytes));
        search_typed_pattern(a);
    } else {
        return false;
    }
    return true;
}

bool ebb_app_find_key(ebb_app *a, ebb_key key)
{
    bool is_ctrl = key.mods == EBB_MOD_CTRL, going = a->find.state == EBB_FIND_GOING;

    if ((key.mods == 0 && key.code == EBB_KEY_ESC) || (is_ctrl && (key.code == 'g' || key.code == 'c')))
        ebb_app_find_leave(a);
    else if ((is_ctrl && key.code == 's') || (key.mods == 0 && key.code == EBB_KEY_UP) ||
             (going && key.mods == 0 && key.code == 'n'))
        go_to_match(a, -1, false);
    else if ((key.mods == 0 && key.code == EBB_KEY_DOWN) ||
             (going && (key.mods & ~EBB_MOD_SHIFT) == 0 && key.code == 'N'))
        go_to_match(a, 1, false);
    else if (key.code == EBB_KEY_PGUP || key.code == EBB_KEY_PGDN)
        return false;                            /* paging keeps the search open */
    else if (!going && search_typing_key(a, key))
        return true;
    else {
        ebb_app_find_leave(a);                   /* and the key does what it always does */
        return false;
    }
    return true;
}

void ebb_app_find_status(const ebb_app *a, ebb_buf *out)
{
    ebb_buf_adds(out, "find: ");
    ebb_utf8_add_visible(out, ebb_buf_text(&a->find.text), a->find.text.len, !a->term->utf8);
    if (a->hint.len > 0) {
        ebb_buf_adds(out, "  (");
        ebb_buf_add(out, a->hint.data, a->hint.len);
        ebb_buf_addc(out, ')');
    } else {
        ebb_buf_adds(out, a->find.state == EBB_FIND_TYPING ? "   Ctrl-S older, Enter: n and N, Esc leaves"
                                                        : "   n older, N newer, Esc leaves");
    }
}
