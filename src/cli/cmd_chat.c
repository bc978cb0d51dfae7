/* ebb chat: what the command line and the environment say about the conversation. */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "confinement.h"
#include "os/broker.h"
#include "term/theme.h"
#include "tui.h"
#include "unlock.h"

/* NULL: it is not set, or empty. */
static const char *get_set(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

bool ebb_cli_has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *v;

    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)      /* also where its name is silent about it: en_IN */
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((v = get_set(names[i])) != NULL)
            return strcasestr(v, "utf") != NULL;
    return false;
}

/* Terminals that say who they are and that break long lines anew when they are resized. */
static bool reflows(void)
{
    static const char *const signs[] = { "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "KONSOLE_VERSION",
                                         "ALACRITTY_WINDOW_ID", "ITERM_SESSION_ID", "WT_SESSION" };

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (get_set(signs[i]))
            return true;
    return false;
}

ebb_status ebb_cli_check_private(ebb_args *a, ebb_error *err)
{
    if (!a->is_private)
        return EBB_OK;
    if (a->session || a->continue_last)
        return EBB_FAIL(err, EBB_USAGE, "%s keeps nothing, so it cannot name or continue a session%s",
                        a->is_private_of_config ? "`private = on` of the configuration" : "--private",
                        a->is_private_of_config ? "; no option undoes it" : "");
    a->engine.no_kv_cache = true;
    a->linger_s = 0;                             /* without a session nobody could read it later */
    return EBB_OK;
}

ebb_chat_opts ebb_cli_chat_opts(const ebb_args *a)
{
    return (ebb_chat_opts){
        .store_path = a->is_private ? ":memory:" : NULL,
        .model_path = a->model, .engine_name = a->engine_name, .draft_path = ebb_cli_draft_model_name(a),
        .quality_path = a->quality,
        .here_model = a->here_model, .here_is_chosen = a->here_is_chosen,
        .shared_address = a->shared_address[0] ? a->shared_address : NULL,
        .first_notice = a->first_notice[0] ? a->first_notice : NULL,
        .session_name = a->session, .continue_last = a->continue_last,
        .system = a->system, .system_given = a->system_given, .template_name = a->template_name,
        .template_given = a->template_given,
        .n_predict = a->n_predict, .engine = a->engine,
        .sampling = a->sampling, .overflow = a->overflow, .overflow_given = a->overflow_given,
        .sampling_given = a->sampling_given, .sampling_config = a->sampling_config,
    };
}

/* What was asked for, else what the environment says: NO_COLOR goes before CLICOLOR_FORCE, as its page has it. */
static bool has_no_color(const ebb_args *a)
{
    const char *wish = getenv("CLICOLOR"), *force = get_set("CLICOLOR_FORCE");

    if (a->color != EBB_COLOR_AUTO)
        return a->color == EBB_COLOR_NEVER;
    if (get_set("NO_COLOR"))
        return true;
    return wish && strcmp(wish, "0") == 0 && !(force && strcmp(force, "0") != 0);
}

int ebb_cmd_chat(ebb_args *a)
{
    ebb_chat_opts chat;
    ebb_filters filters;
    const char *term = getenv("TERM");
    ebb_tui_opts tui = {
        .theme = a->theme, .background_theme = ebb_theme_for_background(getenv("COLORFGBG")), .bell = a->bell,
        .notifies = a->notify == EBB_NOTIFY_DESKTOP && term, .term_name = term,
        .is_vte = get_set("VTE_VERSION") != NULL,
        .no_title = a->no_title, .links = a->links,
        .no_color = has_no_color(a), .ascii = a->ascii || !ebb_cli_has_utf8(),
        .is_inline = a->is_inline, .has_vi_keys = a->editing == EBB_EDITING_VI, .reflows = reflows(),
        .layout = a->layout,
        .in_tmux = get_set("TMUX") != NULL, .accessible = get_set("ACCESSIBLE") != NULL,
        .editor = get_set("VISUAL") ? get_set("VISUAL") : get_set("EDITOR"),
    };
    ebb_error err = { 0 };

    ebb_cli_model_from_words(a, 0);
    if (a->n_words) {
        EBB_FAIL(&err, EBB_USAGE, "%s: unexpected argument; a command comes first, as in ebb run -m MODEL -p TEXT",
                 a->words[0]);
        return ebb_cli_fail(&err);
    }
    if (ebb_cli_check_private(a, &err) != EBB_OK || ebb_cli_unlock(a, true, &err) != EBB_OK)
        return ebb_cli_fail(&err);
    ebb_cli_share(a, false);
    tui.begin_lock = a->begin_lock;
    ebb_filters_init(&filters, a->filters, a->n_filters);
    tui.filters = &filters;
    tui.program = ebb_cli_program();
    tui.is_private = a->is_private;
    tui.state_dir = a->is_private ? "" : NULL;
    tui.linger_s = a->linger_s < 86400 ? a->linger_s : 86400;
    ebb_cli_confine(a, EBB_CLI_CHAT, tui.editor);
    tui.no_commands = ebb_broker_is_there() && !a->runs_shell;
    chat = ebb_cli_chat_opts(a);
    chat.is_unattended = !isatty(STDIN_FILENO);
    if (a->plain || tui.accessible || (term && strcmp(term, "dumb") == 0))
        return ebb_plain_run(&chat, &tui);
    return ebb_tui_run(&chat, &tui);
}
