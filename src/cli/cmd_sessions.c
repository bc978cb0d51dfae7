/* ebb sessions: what is kept, without a model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cmd_sessions.h"
#include "command/frontend.h"
#include "command/slash.h"
#include "confinement.h"
#include "conversation/writer_lock.h"
#include "edit/history.h"
#include "edit/marked.h"
#include "edit/typed.h"
#include "edit/unsent.h"
#include "json/json_text.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/paths.h"
#include "seal/seal.h"
#include "store/kept.h"
#include "store/store.h"
#include "unlock.h"

static void date_of(int64_t ms, char out[20])
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;

    if (!localtime_r(&t, &tm) || !strftime(out, 20, "%Y-%m-%d %H:%M", &tm))
        strcpy(out, "?");
}

/* -- The subcommands -------------------------------------------------------------- */

/* What a server has answered, or an import brought, has no ids: nobody has counted it. */
static bool is_counted(const ebb_session_row *row)
{
    return row->n_tokens > 0 || row->n_messages == 0;
}

static void print_rows(const ebb_session_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char date[20], tokens[24] = "";

        date_of(rows[i].updated_ms, date);
        if (is_counted(&rows[i]))
            snprintf(tokens, sizeof tokens, "%u tokens", rows[i].n_tokens);
        printf("%5s  %s  %4u messages %14s  ", rows[i].word, date, rows[i].n_messages, tokens);
        ebb_cli_print_name(rows[i].name);
        if (rows[i].model[0]) {
            fputs("  (", stdout);
            ebb_cli_print_name(rows[i].model);
            putchar(')');
        }
        putchar('\n');
    }
}

static json_t *json_rows(const ebb_session_row *rows, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();

        json_object_set_new(o, "id", json_integer(rows[i].id));
        json_object_set_new(o, "name", ebb_json_text_or_null(rows[i].name));
        json_object_set_new(o, "model", ebb_json_text_or_null(rows[i].model));
        json_object_set_new(o, "updated_ms", json_integer(rows[i].updated_ms));
        json_object_set_new(o, "messages", json_integer(rows[i].n_messages));
        json_object_set_new(o, "tokens", is_counted(&rows[i]) ? json_integer(rows[i].n_tokens) : json_null());
        json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "sessions", list);
}

static int list(ebb_store *s, ebb_args *a, ebb_error *err)
{
    ebb_session_row *rows;
    size_t n;
    int status = EBB_EXIT_OK;

    if (ebb_store_list(s, &rows, &n, err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        status = ebb_cli_print_json(json_rows(rows, n));
    else
        print_rows(rows, n);
    if (n == 0 && !a->json && isatty(STDOUT_FILENO))
        puts("No conversations yet. `ebb` starts one; it is saved from the first question on.");
    free(rows);
    return status;
}

/* All words of the command line after the subcommand, as one. */
static void join_words(const ebb_args *a, ebb_buf *out)
{
    for (size_t i = 1; i < a->n_words; i++)
        ebb_buf_addf(out, "%s%s", i > 1 ? " " : "", a->words[i]);
}

/* The snippet without its marks. */
static void plain_snippet(const char *snippet, char *out)
{
    for (; *snippet; snippet++)
        if (*snippet != EBB_HIT_BEGIN && *snippet != EBB_HIT_END)
            *out++ = *snippet == '\n' || *snippet == '\t' ? ' ' : *snippet;
    *out = '\0';
}

static json_t *json_hit(const ebb_store_hit *h)
{
    char text[sizeof h->snippet];
    json_t *o = json_object();

    plain_snippet(h->snippet, text);
    json_object_set_new(o, "session", json_integer(h->session));
    json_object_set_new(o, "name", ebb_json_text_or_null(h->name));
    json_object_set_new(o, "message", json_integer(h->message));
    json_object_set_new(o, "role", json_string(ebb_role_name(h->role)));
    json_object_set_new(o, "created_ms", json_integer(h->created_ms));
    json_object_set_new(o, "text", ebb_json_text_or_null(text));
    return o;
}

static void print_hit(const ebb_store_hit *h)
{
    char date[20], text[sizeof h->snippet];

    date_of(h->created_ms, date);
    plain_snippet(h->snippet, text);
    printf("%5lld  %s  ", (long long)h->session, date);
    ebb_cli_print_name(h->name);
    printf("\n       %s: ", ebb_role_name(h->role));
    ebb_cli_print_name(text);
    putchar('\n');
}

static json_t *json_hits(const ebb_store_hit *hits, size_t n, bool has_more)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_hit(&hits[i]));
    return json_pack("{s:o,s:b}", "hits", list, "more", has_more);
}

/* One hit more than is shown is asked for, to say that there are more. */
static int search(ebb_store *s, ebb_args *a, ebb_error *err)
{
    enum { SHOWN = 100 };
    ebb_buf words = { 0 };
    ebb_store_hit *hits;
    size_t n, n_shown;
    int status = EBB_EXIT_OK;
    ebb_status st;

    join_words(a, &words);
    ebb_writer_note_cut(s, NULL);
    st = ebb_store_search(s, ebb_buf_text(&words), SHOWN + 1, &hits, &n, err);
    ebb_buf_fini(&words);
    if (st != EBB_OK)
        return ebb_cli_fail(err);
    n_shown = n < SHOWN ? n : SHOWN;
    if (a->json)
        status = ebb_cli_print_json(json_hits(hits, n_shown, n > SHOWN));
    for (size_t i = 0; !a->json && i < n_shown; i++)
        print_hit(&hits[i]);
    if (n > SHOWN && !a->json)
        ebb_cli_tell(a, "these are the newest 100 messages with these words, and there are more; another word finds "
                        "fewer");
    if (ebb_store_search_was_cut(s) && n <= SHOWN)
        ebb_cli_tell(a, EBB_SEARCH_CUT_LINE);
    free(hits);
    return status;
}

/* As lists show it; "" for none. */
static ebb_status find_row(ebb_store *s, int64_t id, ebb_session_row *out, ebb_error *err)
{
    ebb_session_row *rows = NULL;
    size_t n = 0;
    ebb_status st = ebb_store_list(s, &rows, &n, err);

    *out = (ebb_session_row){ .id = id };
    for (size_t i = 0; st == EBB_OK && i < n; i++)
        if (rows[i].id == id)
            *out = rows[i];
    free(rows);
    return st;
}

/* What was typed there in an older ebb and not sent is found by its name. */
static int rename_one(ebb_store *s, ebb_args *a, ebb_error *err)
{
    char key[EBB_SESSION_KEY_BYTES];
    ebb_session_row was;
    ebb_buf folder = { 0 };
    int64_t id;

    if (ebb_store_find(s, a->words[1], &id, err) != EBB_OK || find_row(s, id, &was, err) != EBB_OK ||
        ebb_store_rename(s, id, a->words[2], err) != EBB_OK)
        return ebb_cli_fail(err);
    ebb_session_key(id, was.created_ms, key);
    if (ebb_path_in(EBB_DIR_STATE, NULL, &folder, NULL) == EBB_OK)
        ebb_unsent_rename(folder.data, was.name, key);
    ebb_buf_fini(&folder);
    if (a->json)
        return ebb_cli_print_json(json_pack("{s:I, s:o}", "id", (json_int_t)id, "name",
                                            ebb_json_text_or_null(a->words[2])));
    return EBB_EXIT_OK;
}

static ebb_status drop_kv(ebb_store *s, size_t *n_removed, ebb_error *err)
{
    ebb_kept kept;
    ebb_status st = ebb_kept_read(s, &kept, err);

    *n_removed = 0;
    if (st == EBB_OK)
        st = ebb_kept_sweep_kv(&kept, n_removed, err);
    ebb_kept_fini(&kept);
    return st;
}

/* `is_thorough`: also what was deleted before this ebb.  Where one of them fails, the other is done all the same.
 * *n_removed: files of K and V. */
static ebb_status drop_kv_and_words(ebb_store *s, bool is_thorough, size_t *n_removed, ebb_error *err)
{
    ebb_status st = drop_kv(s, n_removed, err), scrubbed = ebb_store_scrub(s, is_thorough, st == EBB_OK ? err : NULL);

    return st == EBB_OK ? scrubbed : st;
}

/* Those that the words name, each once; none of them is written in. */
static ebb_status find_named(ebb_store *s, const ebb_args *a, int64_t ids[EBB_ARGS_WORDS], size_t *n, ebb_error *err)
{
    ebb_status st = EBB_OK;

    *n = 0;
    for (size_t i = 1; st == EBB_OK && i < a->n_words; i++) {
        size_t k = 0;

        st = ebb_store_find(s, a->words[i], &ids[*n], err);
        if (st == EBB_OK)
            st = ebb_writer_check_none(ebb_writer_find_any(s, ids[*n]), err);
        while (k < *n && ids[k] != ids[*n])
            k++;
        *n += st == EBB_OK && k == *n;
    }
    return st;
}

/* NULL: no memory. */
static json_t *deleted_json(const int64_t *ids, size_t n)
{
    json_t *list;

    if (n == 1)
        return json_pack("{s:I}", "id", (json_int_t)ids[0]);
    list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_integer((json_int_t)ids[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:o}", "ids", list);
}

/* A name that is wrong deletes none of the others. */
static int delete_named(ebb_store *s, ebb_args *a, ebb_error *err)
{
    int64_t ids[EBB_ARGS_WORDS];
    size_t n, n_removed;
    ebb_status st = find_named(s, a, ids, &n, err);

    if (st == EBB_OK)
        st = ebb_store_delete_all(s, ids, n, err);
    if (st == EBB_OK)
        st = drop_kv_and_words(s, false, &n_removed, err);
    if (st != EBB_OK)
        return ebb_cli_fail(err);
    return a->json ? ebb_cli_print_json(deleted_json(ids, n)) : EBB_EXIT_OK;
}

/* Hands type it; there is nothing that could come back. */
static int undelete(ebb_store *s, ebb_args *a, ebb_error *err)
{
    (void)s;
    (void)a;
    EBB_FAIL(err, EBB_UNSUPPORTED, "sessions undelete: a deleted session leaves nothing on the disk, so nothing can "
                                   "come back; `ebb sessions export NAME"
             " FILE.json` before, and in the chat /undelete until you leave");
    return ebb_cli_fail(err);
}

static bool has_question(ebb_kept *kept, const char *text, size_t n)
{
    ebb_buf plain = { 0 };
    bool has = ebb_marked_add_plain(&plain, text, n) && ebb_kept_has_question(kept, ebb_buf_text(&plain), plain.len);

    ebb_buf_fini(&plain);
    return has;
}

/* Lines of the history that some session has as a question: without the marks in it, the quotes around it, and what is
 * typed in front of a message (typed.h), which an older ebb has sent where it is a blank. */
static bool is_line_kept(void *arg, const char *text, size_t n)
{
    size_t skip = ebb_slash_command_is(text) ? 0 : ebb_typed_skip(text, n);

    ebb_frontend_unquote(&text, &n);
    return has_question(arg, text + skip, n - skip) || (skip > 0 && text[0] == ' ' && has_question(arg, text, n));
}

/* Drafts of sessions that are there: by their keys, those of an older ebb by their names. */
typedef struct listed {
    ebb_session_row *rows;
    size_t           n;
} listed;

static bool is_draft_kept(void *arg, const char *session)
{
    const listed *l = arg;
    char key[EBB_SESSION_KEY_BYTES];

    for (size_t i = 0; i < l->n; i++) {
        ebb_session_key(l->rows[i].id, l->rows[i].created_ms, key);
        if (strcmp(key, session) == 0 || strcmp(l->rows[i].name, session) == 0)
            return true;
    }
    return false;
}

static ebb_status purge_drafts(ebb_store *s, ebb_error *err)
{
    listed l = { 0 };
    ebb_buf folder = { 0 };
    ebb_status st = ebb_store_list(s, &l.rows, &l.n, err);

    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_STATE, NULL, &folder, err);
    if (st == EBB_OK)
        ebb_unsent_sweep(folder.data, is_draft_kept, &l);
    if (st == EBB_OK)
        ebb_unsent_take_back(folder.data);
    if (st == EBB_OK)
        ebb_unsent_sweep_lent(folder.data, ebb_seal_here());
    if (st == EBB_OK)
        ebb_cmd_sessions_tell_left(folder.data);
    free(l.rows);
    ebb_buf_fini(&folder);
    return st;
}

/* Beside the database: copies from before a migration, what was copied last, what was typed. */
static ebb_status purge_state(ebb_store *s, const ebb_kept *kept, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = ebb_path_in(EBB_DIR_STATE, "history", &path, err);
    int fd;

    if (st == EBB_OK && ebb_file_open(path.data, EBB_FILE_READ, &fd, NULL) == EBB_OK) {
        ebb_file_close(fd);
        st = ebb_history_sweep(path.data, is_line_kept, (void *)kept, err);
    }
    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_STATE, "copy.txt", &path, err);
    if (st == EBB_OK) {
        ebb_file_remove_begun(path.data);
        ebb_file_remove(path.data);
    }
    ebb_store_remove_copies(s);
    ebb_buf_fini(&path);
    return st;
}

/* What deleted sessions have left outside of the database's tables. */
static int purge(ebb_store *s, ebb_args *a, ebb_error *err)
{
    ebb_kept kept;
    size_t n_removed = 0;
    ebb_status st = ebb_kept_read(s, &kept, err);

    if (st == EBB_OK)
        st = purge_state(s, &kept, err);
    if (st == EBB_OK)
        st = purge_drafts(s, err);
    ebb_kept_fini(&kept);
    if (st == EBB_OK)
        st = drop_kv_and_words(s, true, &n_removed, err);
    if (st != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return ebb_cli_print_json(json_pack("{s:I}", "kv_files_removed", (json_int_t)n_removed));
    printf("%zu files of K and V removed\n", n_removed);
    return EBB_EXIT_OK;
}

/* What changes how the store is kept, so works on it closed.  NULL: another subcommand. */
static int (*turning(const ebb_args *a, const char *name))(ebb_args *, ebb_error *)
{
    if (strcmp(name, "encrypt") == 0 && a->n_words == 1)
        return ebb_cmd_sessions_encrypt;
    if (strcmp(name, "decrypt") == 0 && a->n_words == 1)
        return ebb_cmd_sessions_decrypt;
    return strcmp(name, "rekey") == 0 && a->n_words <= 2 ? ebb_cmd_sessions_rekey : NULL;
}

int ebb_cmd_sessions(ebb_args *a)
{
    static const struct {
        const char *name;
        size_t      min_words, max_words;    /* with the name itself */
        const char *usage;
        int       (*run)(ebb_store *, ebb_args *, ebb_error *);
    } subcommands[] = {
        { "list", 1, 1, "list", list },
        { "show", 2, 2, "show NAME", ebb_cmd_sessions_show },
        { "search", 2, EBB_ARGS_WORDS, "search WORD...", search },
        { "rename", 3, 3, "rename NAME NEW-NAME", rename_one },
        { "delete", 2, EBB_ARGS_WORDS, "delete NAME...", delete_named },
        { "undelete", 1, 2, "undelete", undelete },
        { "purge", 1, 1, "purge", purge },
        { "export", 2, 3, "export NAME [FILE.md|FILE.json|FILE.txt]", ebb_cmd_sessions_export },
        { "import", 2, 3, "import FILE [NAME]", ebb_cmd_sessions_import },
        { "replay", 2, 2, "replay NAME [-m MODEL]", ebb_cmd_sessions_replay },
    };
    const char *name = a->n_words ? a->words[0] : "list";
    ebb_error err = { 0 };
    ebb_store *s;
    int (*turn)(ebb_args *, ebb_error *) = turning(a, name);
    int status;

    if (turn)
        return turn(a, &err);
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        if (strcmp(subcommands[i].name, name) != 0)
            continue;
        if (a->n_words && (a->n_words < subcommands[i].min_words || a->n_words > subcommands[i].max_words)) {
            EBB_FAIL(&err, EBB_USAGE, "usage: ebb sessions %s", subcommands[i].usage);
            return ebb_cli_fail(&err);
        }
        if (subcommands[i].run != undelete && ebb_cli_unlock(a, true, &err) != EBB_OK)
            return ebb_cli_fail(&err);
        if (subcommands[i].run != ebb_cmd_sessions_export)   /* its file may be anywhere */
            ebb_cli_confine(a, EBB_CLI_KEEP, NULL);
        if (ebb_store_open(NULL, &s, &err) != EBB_OK)
            return ebb_cli_fail(&err);
        status = subcommands[i].run(s, a, &err);
        ebb_store_close(s);
        return status;
    }
    EBB_FAIL(&err, EBB_USAGE,
             "sessions: give list, show, search, rename, delete, purge, export, import, replay, encrypt, decrypt "
             "or rekey");
    return ebb_cli_fail(&err);
}
