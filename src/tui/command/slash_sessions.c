/* Slash commands about sessions: opening, naming, finding, deleting, files. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command/slash_impl.h"
#include "os/paths.h"
#include "store/export.h"
#include "text/humanize.h"

static void add_session_date(ebb_buf *out, int64_t ms)
{
    char date[32] = "";
    time_t at = (time_t)(ms / 1000);
    struct tm tm;

    if (localtime_r(&at, &tm))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &tm);
    ebb_buf_adds(out, date);
}

/* The absolute path, which does not depend on the folder in which ebb was started.  A long one is written meanwhile,
 * and the chat tells. */
static void say_written(ebb_frontend *f, const char *path)
{
    double share;
    char *whole;

    if (ebb_chat_job_under_way(f->chat, &share))
        return;
    whole = realpath(path, NULL);
    ebb_frontend_sayf(f, EBB_SAY_NOTICE, "written to %s", whole ? whole : path);
    free(whole);
}

ebb_status ebb_slash_new(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_new_session(f->chat, err);
}

ebb_status ebb_slash_save(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_status st;

    if (*arg == '\0')
        return EBB_FAIL(err, EBB_USAGE, "/save NAME: which name?%s",
                        f->opts->is_private ? "" : "  (everything is saved as you go)");
    if (ebb_export_is_file(arg))
        return ebb_slash_export(f, arg, err);    /* which says where it is */
    st = ebb_chat_save_as(f->chat, arg, err);
    if (st != EBB_OK)
        return st;
    if (f->opts->is_private)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "this session is named %s until you leave; --private keeps nothing", arg);
    else if (ebb_chat_session_id(f->chat))
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "saved as %s", arg);
    else
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "this session is named %s; it is kept from its first question on", arg);
    return EBB_OK;
}

ebb_status ebb_slash_load(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char before[200];
    ebb_status st;

    if (*arg == '\0')
        return EBB_FAIL(err, EBB_USAGE, "/load NAME: which one?  /list shows them");
    snprintf(before, sizeof before, "%s", ebb_chat_session_name(f->chat));
    st = ebb_chat_load(f->chat, arg, err);
    if (st == EBB_OK && strcmp(before, ebb_chat_session_name(f->chat)) == 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "you are already in it: %s", before);
    return st;
}

void ebb_complete_session(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    int64_t here = ebb_chat_session_id(f->chat);
    ebb_session_row *rows;
    ebb_buf note = { 0 };
    size_t n;

    (void)typed;
    if (ebb_chat_list(f->chat, &rows, &n, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        const char *name = ebb_session_row_name(&rows[i]);

        ebb_buf_clear(&note);
        add_session_date(&note, rows[i].updated_ms);
        ebb_buf_adds(&note, "  ");
        ebb_humanize_count(&note, rows[i].n_tokens > 0 ? rows[i].n_tokens : rows[i].n_messages);
        ebb_buf_adds(&note, rows[i].n_tokens > 0 ? " tok" : " messages");
        if (name != rows[i].name)
            ebb_buf_addf(&note, "  %s", rows[i].name);
        if (here == rows[i].id)
            ebb_buf_adds(&note, "  (this one)");
        fn(arg, name, ebb_buf_text(&note));
    }
    ebb_buf_fini(&note);
    free(rows);
}

bool ebb_slash_is_session_number(ebb_frontend *f, const char *typed)
{
    ebb_session_row *rows;
    size_t n, i = 0;
    bool is;

    if (ebb_chat_list(f->chat, &rows, &n, NULL) != EBB_OK)
        return false;
    while (i < n && strcmp(rows[i].word, typed) != 0)
        i++;
    is = i < n;
    free(rows);
    return is;
}

/* What was collected, as one text; `none` if it is nothing. */
static void say_list(ebb_frontend *f, ebb_buf *out, const char *none)
{
    if (out->len == 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s", none);
    else
        f->say(f, EBB_SAY_PAGE, ebb_buf_text(out), out->len);
    ebb_buf_fini(out);
}

ebb_status ebb_slash_list(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_session_row *rows;
    ebb_buf out = { 0 };
    int64_t here = ebb_chat_session_id(f->chat);
    size_t n;
    ebb_status st = ebb_chat_list(f->chat, &rows, &n, err);

    (void)arg;
    if (st != EBB_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        ebb_buf_addf(&out, "%s%c%4s  ", i ? "\n" : "", here == rows[i].id ? '*' : ' ', rows[i].word);
        add_session_date(&out, rows[i].updated_ms);
        ebb_buf_addf(&out, "  %4u message%s  %s", rows[i].n_messages, rows[i].n_messages == 1 ? " " : "s",
                     rows[i].name);
        if (rows[i].model[0])
            ebb_buf_addf(&out, "  (%s)", rows[i].model);
    }
    if (n)
        ebb_buf_adds(&out, "\n/load NUMBER opens one, /new begins another");
    free(rows);
    say_list(f, &out, "there are no sessions yet");
    return EBB_OK;
}

/* One hit more than is shown is asked for, to say that there are more. */
ebb_status ebb_slash_search(ebb_frontend *f, const char *arg, ebb_error *err)
{
    enum { SHOWN = 20 };
    ebb_chat_hit *hits;
    ebb_buf out = { 0 };
    size_t n;
    ebb_status st = ebb_chat_search(f->chat, arg, SHOWN + 1, &hits, &n, err);

    if (st != EBB_OK)
        return st;
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        ebb_buf_addf(&out, "%s%4lld  ", i ? "\n" : "", (long long)hits[i].session);
        add_session_date(&out, hits[i].created_ms);
        ebb_buf_addf(&out, "  %s\n      %s: %s", hits[i].name, ebb_role_name(hits[i].role), hits[i].snippet);
    }
    if (n > SHOWN)
        ebb_buf_addf(&out, "\nThese are the newest %d, and there are more; another word finds fewer", SHOWN);
    if (n)
        ebb_buf_addf(&out, "\n/load NUMBER opens one%s", f->view ? "; Ctrl-S or /find finds the place in it" : "");
    free(hits);
    say_list(f, &out, "no message contains these words");
    return EBB_OK;
}

ebb_status ebb_slash_title(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_status st = *arg ? ebb_chat_set_title(f->chat, arg, err) : EBB_OK;
    const char *title = ebb_chat_session_title(f->chat), *name = ebb_chat_session_name(f->chat);

    if (st == EBB_OK && *title && strcmp(title, name) != 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "title: %s; lists show its name, %s (/save NAME changes that)", title,
                          name);
    else if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "title: %s", name);
    return st;
}

/* -- Deleting ------------------------------------------------------------------------- */

ebb_status ebb_slash_delete(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char name[128];
    ebb_status st;

    snprintf(name, sizeof name, "%s", *arg ? arg : ebb_chat_session_name(f->chat));
    st = ebb_chat_delete(f->chat, arg, err);
    if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is deleted; /undelete brings it back until you leave", name);
    return st;
}

ebb_status ebb_slash_undelete(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_status st = ebb_chat_undelete(f->chat, err);

    (void)arg;
    if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s is back", ebb_chat_session_name(f->chat));
    return st;
}

/* -- Files ---------------------------------------------------------------------------- */

/* "trip-to-the-sea.md": letters and digits of the session's name. */
static void make_file_name(const char *name, char *out, size_t cap)
{
    size_t n = 0;

    for (; *name && n + 5 < cap; name++) {
        if (isalnum((unsigned char)*name) || (unsigned char)*name >= 0x80)
            out[n++] = (char)tolower((unsigned char)*name);
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && (out[n - 1] == '-' || (unsigned char)out[n - 1] >= 0x80))
        n--;                                     /* also what may be half a character */
    snprintf(out + n, cap - n, "%s", n ? ".md" : "session.md");
}

/* The first of trip.md, trip-2.md ... that is not there yet. */
static void choose_file(const char *session, char *out, size_t cap)
{
    char stem[64];

    make_file_name(session, stem, sizeof stem);
    snprintf(out, cap, "%s", stem);
    stem[strlen(stem) - 3] = '\0';
    for (int i = 2; i < 1000 && access(out, F_OK) == 0; i++)
        snprintf(out, cap, "%s-%d.md", stem, i);
}

ebb_status ebb_slash_export(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char name[80];
    ebb_buf path = { 0 };
    ebb_status st;

    choose_file(ebb_chat_session_name(f->chat), name, sizeof name);
    st = ebb_path_expand(*arg ? arg : name, &path, err);
    if (st == EBB_OK)
        st = ebb_chat_export(f->chat, path.data, err);
    f->has_warned_of_job &= st != EBB_OK;
    if (st == EBB_OK)
        say_written(f, path.data);
    ebb_buf_fini(&path);
    return st;
}

ebb_status ebb_slash_import(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st;

    if (*arg == '\0')
        return EBB_FAIL(err, EBB_USAGE, "/import FILE: which one?");
    st = ebb_path_expand(arg, &path, err);
    if (st == EBB_OK)
        st = ebb_chat_import(f->chat, path.data, err);
    f->has_warned_of_job &= st != EBB_OK;
    ebb_buf_fini(&path);
    return st;
}
