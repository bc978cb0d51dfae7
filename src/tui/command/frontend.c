/* What the two front ends have in common (frontend.h). */
#include "command/frontend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command/pull_follow.h"
#include "os/paths.h"
#include "tree/attachment.h"

static void fill_dir(ebb_buf *out, const char *given, ebb_dir dir)
{
    if (given)
        ebb_buf_adds(out, given);
    else if (ebb_path_in(dir, NULL, out, NULL) != EBB_OK)
        ebb_buf_clear(out);                      /* no home: nothing is read or kept */
}

void ebb_frontend_init(ebb_frontend *f, ebb_chat *chat, const ebb_tui_opts *opts)
{
    memset(f, 0, sizeof *f);
    f->chat = chat;
    f->opts = opts;
    fill_dir(&f->config_dir, opts->config_dir, EBB_DIR_CONFIG);
    fill_dir(&f->state_dir, opts->state_dir, EBB_DIR_STATE);
    snprintf(f->theme, sizeof f->theme, "%s",
             opts->no_color                 ? "mono"
             : opts->theme                  ? opts->theme
             : opts->background_theme       ? opts->background_theme
                                            : "dark");
}

void ebb_frontend_fini(ebb_frontend *f)
{
    ebb_pull_process_fini(&f->pull);
    ebb_buf_fini(&f->config_dir);
    ebb_buf_fini(&f->state_dir);
    ebb_buf_fini(&f->model);
    ebb_buf_fini(&f->rewritten);
}

void ebb_frontend_ready(ebb_frontend *f)
{
    const ebb_model_info *m = ebb_chat_model(f->chat);

    if (!m || strcmp(ebb_buf_text(&f->model), m->path) == 0)
        return;
    if (f->model.len == 0 && f->opts->is_private)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE,
                          "private: nothing of this conversation is written to disk; it ends with ebb");
    if (f->model.len > 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%.200s%s%s answers from here on", m->name, *m->quantization ? " " : "",
                          m->quantization);
    ebb_buf_clear(&f->model);
    ebb_buf_adds(&f->model, m->path);
}

/* Said for the first time: not yet. */
static bool job_holds(ebb_frontend *f)
{
    double share;
    const char *what = ebb_chat_job_under_way(f->chat, &share);

    if (!what || f->has_warned_of_job)
        return false;
    f->has_warned_of_job = true;
    ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is at %.0f %%: the same again leaves, and none of it is kept", what,
                      100 * share);
    return true;
}

void ebb_frontend_quit(ebb_frontend *f)
{
    ebb_error err = { 0 };

    if (!ebb_chat_is_busy(f->chat) && ebb_chat_check_saved(f->chat, &err) != EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_ERROR, "%s (/save ./NAME.json writes a file; leaving all the same loses it)",
                          err.msg);
    else if (!ebb_pull_follow_holds(f) && !job_holds(f))
        f->quit = true;
}

void ebb_frontend_sayf(ebb_frontend *f, ebb_say say, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    f->say(f, say, text, strlen(text));
}

void ebb_frontend_offer(ebb_frontend *f, const char *text, size_t n)
{
    const char *prefix = ebb_attachments_end(text, n) > 0 ? "" : ebb_typed_prefix(text, n);
    ebb_buf typed = { 0 };

    if (*prefix && ebb_buf_adds(&typed, prefix) && ebb_buf_add(&typed, text, n))
        f->edit(f, typed.data, typed.len);
    else
        f->edit(f, text, n);
    ebb_buf_fini(&typed);
}

ebb_status ebb_frontend_send(ebb_frontend *f, const char *text, size_t n, ebb_error *err)
{
    ebb_status st = f->is_cutting ? ebb_chat_cut(f->chat, text, n, err)
                  : f->editing    ? ebb_chat_edit(f->chat, f->editing - 1, text, n, err)
                                  : ebb_chat_send(f->chat, text, n, err);

    if (st == EBB_OK)
        ebb_frontend_leave_edit(f);
    return st;
}

bool ebb_frontend_preview(ebb_frontend *f, const char *text, size_t n, ebb_chat_cost *out)
{
    ebb_chat_action act = f->is_cutting ? EBB_ACT_CUT : f->editing ? EBB_ACT_EDIT : EBB_ACT_SEND;

    return ebb_chat_preview(f->chat, act, f->editing ? f->editing - 1 : 0, text, n, out);
}

void ebb_frontend_prefill(ebb_frontend *f, const char *text, size_t n)
{
    if (!f->is_cutting)
        ebb_chat_prefill_input(f->chat, f->editing ? EBB_ACT_EDIT : EBB_ACT_SEND,
                               f->editing ? f->editing - 1 : 0, text, n);
}

/* -- Several lines ---------------------------------------------------------------- */

static const char quotes[EBB_QUOTES_BYTES + 1] = "\"\"\"";

static size_t length_without_blanks(const char *s, size_t n)
{
    while (n > 0 && strchr(" \t\n", s[n - 1]))
        n--;
    return n;
}

/* Where the quotes come again, at `from` or later; NULL: nowhere, or the text does not begin with any. */
static const char *closing_quotes(const char *s, size_t n, size_t from)
{
    if (from < EBB_QUOTES_BYTES)
        from = EBB_QUOTES_BYTES;
    return ebb_typed_has_quotes(s, n) && n > from ? memmem(s + from, n - from, quotes, EBB_QUOTES_BYTES) : NULL;
}

bool ebb_frontend_is_open(const char *s, size_t n, size_t n_open)
{
    size_t from = n_open > EBB_QUOTES_BYTES ? n_open - (EBB_QUOTES_BYTES - 1) : 0;   /* they may be cut in two there */

    return ebb_typed_has_quotes(s, n) && !closing_quotes(s, n, from);
}

void ebb_frontend_unquote(const char **s, size_t *n)
{
    const char *end = closing_quotes(*s, *n, 0);

    if (!end || end + EBB_QUOTES_BYTES != *s + length_without_blanks(*s, *n))
        return;
    *s += EBB_QUOTES_BYTES;
    *s += **s == '\n';
    *n = end > *s ? (size_t)(end - *s) : 0;
    *n -= *n > 0 && (*s)[*n - 1] == '\n';
}

bool ebb_frontend_edits(const ebb_frontend *f)
{
    return f->editing || f->is_cutting;
}

const ebb_message *ebb_frontend_edited(const ebb_frontend *f, size_t number)
{
    size_t n = ebb_chat_n_messages(f->chat), i = number > 0 ? number : n;

    return i > 0 && i <= n ? ebb_chat_message(f->chat, i - 1) : NULL;
}

bool ebb_frontend_takes_files(const ebb_frontend *f)
{
    const ebb_message *m = f->editing ? ebb_frontend_edited(f, f->editing) : NULL;

    return !f->is_cutting && (!m || m->role == EBB_ROLE_USER);
}

size_t ebb_frontend_kept_files(const ebb_frontend *f, size_t number, const char **files)
{
    const ebb_message *m = number > 0 ? ebb_frontend_edited(f, number) : NULL;

    *files = m && m->text ? m->text : "";
    return m && m->text && m->role == EBB_ROLE_USER ? ebb_attachments_end(m->text, m->n_text) : 0;
}

/* Is that a file in front of those words, too? */
static bool is_file_before(const char *file, size_t n, const char *words, size_t n_words)
{
    ebb_attachment found = { 0 };
    ebb_buf both = { 0 };
    bool is_file = ebb_buf_add(&both, file, n) && ebb_buf_add(&both, words, n_words) &&
                   ebb_attachment_next(both.data, both.len, 0, &found) == n;

    ebb_buf_fini(&both);
    return is_file;
}

static void add_file_word(ebb_buf *out, const char *name, size_t n)
{
    const char *quote = memchr(name, ' ', n) ? "\"" : "";

    ebb_buf_addf(out, "@%s%.*s%s ", quote, (int)n, name, quote);
}

size_t ebb_frontend_add_kept(const ebb_frontend *f, size_t number, const char *words, size_t n_words, ebb_buf *out)
{
    const char *files;
    size_t n = ebb_frontend_kept_files(f, number, &files), n_message;
    ebb_attachment file = { 0 };

    if (n == 0 || ebb_attachments_end(words, n_words) > 0)
        return 0;
    n_message = ebb_frontend_edited(f, number)->n_text;
    ebb_buf_add(out, files, n);
    for (size_t at = 0, end; (end = ebb_attachment_next(files, n_message, at, &file)) > 0; at = end)
        if (!is_file_before(files + at, end - at, words, n_words))
            add_file_word(out, files + file.name, file.n_name);
    return n;
}

void ebb_frontend_leave_edit(ebb_frontend *f)
{
    ebb_buf_clear(&f->rewritten);
    f->editing = 0;
    f->is_cutting = false;
}

/* A question that has no answer brings the engine back by itself. */
static bool reconnect_only(ebb_frontend *f)
{
    ebb_error err;

    if (!ebb_chat_can_reconnect(f->chat) || ebb_chat_is_question_open(f->chat))
        return false;
    if (ebb_chat_reconnect(f->chat, &err) != EBB_OK)
        f->say(f, EBB_SAY_ERROR, err.msg, strlen(err.msg));
    return true;
}

bool ebb_frontend_go_on(ebb_frontend *f)
{
    size_t n = ebb_chat_n_messages(f->chat);
    const ebb_message *m = n ? ebb_chat_message(f->chat, n - 1) : NULL;
    ebb_error err;

    if (reconnect_only(f))
        return true;
    while (m && m->role == EBB_ROLE_NOTE)
        m = --n ? ebb_chat_message(f->chat, n - 1) : NULL;
    if (!m || m->role == EBB_ROLE_SYSTEM || (m->role == EBB_ROLE_ASSISTANT && m->finish == EBB_FINISH_STOP) ||
        !(ebb_chat_is_ready(f->chat) || ebb_chat_can_reconnect(f->chat)) || ebb_chat_is_busy(f->chat))
        return false;
    if (ebb_chat_continue(f->chat, &err) != EBB_OK)
        f->say(f, EBB_SAY_ERROR, err.msg, strlen(err.msg));
    return true;
}
