/* Slash commands: the table, and how a line becomes a call (slash.h). */
#include "command/slash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "command/slash_impl.h"
#include "panel/panel.h"

/* -- Help, leaving ----------------------------------------------------------------------- */

/* Commands of other programs, and what they are called here. */
static const char *const foreign_names[][2] = {
    { "?", "help" }, { "h", "help" }, { "exit", "quit" }, { "q", "quit" }, { "bye", "quit" }, { "clear", "new" },
    { "reset", "new" }, { "regen", "retry" }, { "regenerate", "retry" }, { "sessions", "list" }, { "ls", "list" },
    { "history", "list" }, { "open", "load" }, { "switch", "load" }, { "resume", "load" }, { "rename", "title" },
    { "rm", "delete" }, { "models", "model" }, { "config", "set" }, { "settings", "set" }, { "roles", "prompt" },
    { "persona", "prompt" }, { "grep", "find" }, { "write", "export" }, { "fork", "branch" }, { "memory", "mem" },
    { "host", "engine" }, { "server", "engine" }, { "connect", "engine" }, { "slow", "why" }, { "stats", "why" },
    { "speed", "why" }, { "download", "pull" }, { "fetch", "pull" },
    { "format", "schema" }, { "json", "schema" }, { "gbnf", "grammar" },
};

static bool is_name_or_alias(const char *name, const char *s, size_t n)
{
    return strlen(name) == n && memcmp(name, s, n) == 0;
}

const ebb_slash_command *ebb_slash_command_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof foreign_names / sizeof *foreign_names; i++)
        if (is_name_or_alias(foreign_names[i][0], name, n)) {
            name = foreign_names[i][1];
            n = strlen(name);
            break;
        }
    for (const ebb_slash_command *c = ebb_slash_commands; c->name; c++)
        if (is_name_or_alias(c->name, name, n))
            return c;
    return NULL;
}

/* What does it here, where that is no command of the same arguments; NULL: nothing is known of it. */
static const char *foreign_hint(const char *name, size_t n)
{
    static const char attach[] = "@FILE in a message attaches it";
    static const char *const hints[][2] = {
        { "file", attach }, { "read", attach }, { "attach", attach }, { "add", attach }, { "upload", attach },
        { "image", "ebb takes text alone, so no pictures; @FILE in a message attaches a document" },
        { "show", "/model shows the model, /system its system prompt, /set the settings" },
    };

    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is_name_or_alias(hints[i][0], name, n))
            return hints[i][1];
    return NULL;
}

static void say_unknown_slash_command(ebb_frontend *f, const char *name, size_t n)
{
    ebb_closest near = ebb_closest_begin(name, n);
    const char *hint = foreign_hint(name, n);

    for (const ebb_slash_command *c = ebb_slash_commands; c->name; c++)
        ebb_closest_try(&near, c->name);
    n = n < 40 ? n : 40;
    if (hint)
        ebb_frontend_sayf(f, EBB_SAY_ERROR, "no command /%.*s; %s", (int)n, name, hint);
    else if (near.best)
        ebb_frontend_sayf(f, EBB_SAY_ERROR, "no command /%.*s; did you mean /%s? /help lists them all", (int)n,
                          name, near.best);
    else
        ebb_frontend_sayf(f, EBB_SAY_ERROR, "no command /%.*s; /help lists them all, // sends a slash",
                          (int)n, name);
}

static void add_usage(ebb_buf *out, const ebb_slash_command *c)
{
    char usage[64];

    snprintf(usage, sizeof usage, "/%s%s%s", c->name, *c->args ? " " : "", c->args);
    ebb_slash_explain(out, usage, c->help);
}

/* The heading that /help puts before a command; NULL: none. */
static const char *heading_before(const char *command)
{
    static const char *const groups[][2] = {
        { "retry", "Questions and answers" }, { "branch", "Branches" }, { "pin", "What the model sees" },
        { "copy", "Text on the screen" }, { "system", "How it answers" }, { "model", "Models, memory, speed" },
        { "theme", "The screen and keys" }, { "new", "Sessions" },
    };

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strcmp(groups[i][0], command) == 0)
            return groups[i][1];
    return NULL;
}

/* Of keys, or of the panel. */
static void add_pairs(ebb_buf *out, const char *const pairs[][2])
{
    for (size_t i = 0; pairs[i][0]; i++)
        ebb_slash_explain(out, pairs[i][0], pairs[i][1]);
}

static ebb_status slash_help(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf out = { 0 };
    const ebb_slash_command *one;
    bool is_panel = strcmp(arg, "panel") == 0;

    arg += *arg == '/';
    one = *arg ? ebb_slash_command_find(arg, strlen(arg)) : NULL;
    if (*arg && !one && !is_panel)
        return EBB_FAIL(err, EBB_NOTFOUND, "no command /%s; /help lists them all", arg);
    if (is_panel) {
        add_pairs(&out, ebb_panel_help);
    } else if (one) {
        add_usage(&out, one);
    } else {
        for (const ebb_slash_command *c = ebb_slash_commands; c->name; c++) {
            const char *heading = heading_before(c->name);
            if (heading)
                ebb_buf_addf(&out, "\n%s\n", heading);
            add_usage(&out, c);
        }
        ebb_buf_adds(&out, "\nOther input\n");
        ebb_slash_explain(&out, "//text", "Send text that begins with a slash.");
        if (f->edit)
            ebb_slash_explain(&out, "!command", "Run it, after a second Enter, and attach its output (--shell).");
        if (f->set_theme) {
            ebb_buf_adds(&out, "\nKeys\n");
            add_pairs(&out, ebb_key_help);
            ebb_buf_adds(&out, "\nThe panel\n");
            ebb_slash_explain(&out, "/help panel", "What its rows mean.");
        }
    }
    while (out.len > 0 && out.data[out.len - 1] == '\n')
        ebb_buf_remove(&out, out.len - 1, 1);
    f->say(f, EBB_SAY_PAGE, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
    return EBB_OK;
}

static void complete_help(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    (void)typed;
    for (const ebb_slash_command *c = ebb_slash_commands; c->name; c++)
        fn(arg, c->name, c->help);
    fn(arg, "panel", "What the rows of the panel mean.");
}

static ebb_status slash_quit(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    (void)err;
    ebb_frontend_quit(f);
    return EBB_OK;
}

/* -- From a line to a call ------------------------------------------------------------------ */

bool ebb_slash_command_is_meant(const char *line, const char **name)
{
    static const char *const words[][2] = {
        { "exit", "quit" }, { "quit", "quit" }, { ":q", "quit" }, { "logout", "quit" }, { "help", "help" },
        { "?", "help" }, { "clear", "new" },
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], line) == 0) {
            *name = words[i][1];
            return true;
        }
    return false;
}

void ebb_slash_command_usage(const char *text, ebb_buf *out)
{
    size_t n = strcspn(text + 1, " \t");
    const ebb_slash_command *c = ebb_slash_command_find(text + 1, n);

    if (c) {
        ebb_buf_addf(out, "/%s%s%s: %s", c->name, *c->args ? " " : "", c->args, c->help);
        return;
    }
    for (c = ebb_slash_commands; c->name && text[1 + n] == '\0'; c++)
        if (strncmp(c->name, text + 1, n) == 0)
            ebb_buf_addf(out, "%s/%s", out->len ? " " : "", c->name);
}

bool ebb_slash_command_is(const char *line)
{
    return line[0] == '/' && line[1] != '/';
}

/* false: no memory. */
static bool run_with(ebb_frontend *f, ebb_slash_fn *run, const char *arg)
{
    char *trimmed = strdup(arg + strspn(arg, " \t\n"));
    ebb_error err = { 0 };

    if (!trimmed)
        return false;
    for (size_t len = strlen(trimmed); len > 0 && strchr(" \t\n", trimmed[len - 1]); len--)
        trimmed[len - 1] = '\0';
    if (run(f, trimmed, &err) != EBB_OK)
        f->say(f, EBB_SAY_ERROR, err.msg, strlen(err.msg));
    free(trimmed);
    return true;
}

bool ebb_slash_command_run(ebb_frontend *f, const char *line)
{
    size_t n = strcspn(line + 1, " \t\n");
    const ebb_slash_command *c = ebb_slash_command_find(line + 1, n);

    if (!c && ebb_slash_is_setting(f, line + 1, n))      /* /temp 0.5, as people write it */
        return run_with(f, ebb_slash_set, line + 1);
    if (!c) {
        say_unknown_slash_command(f, line + 1, n);
        return false;
    }
    return run_with(f, c->run, line + 1 + n);
}

void ebb_slash_command_complete(ebb_frontend *f, const char *text, size_t *at, ebb_candidate_fn *fn, void *arg)
{
    size_t n = strcspn(text + 1, " \t");
    const ebb_slash_command *c;

    *at = 1;
    if (text[1 + n] == '\0') {
        for (c = ebb_slash_commands; c->name; c++)
            fn(arg, c->name, c->help);
        return;
    }
    c = ebb_slash_command_find(text + 1, n);
    *at = 1 + n + strspn(text + 1 + n, " \t");
    if (c && c->complete)
        c->complete(f, text + *at, fn, arg);
}

const ebb_slash_command ebb_slash_commands[] = {
    { "help",     "[COMMAND]",     "List commands and keys, or explain one command.",               slash_help,
        complete_help, false },
    { "retry",    "[N]",           "Another answer to the last question, or N at once.",
      ebb_slash_retry, NULL, false },
    { "best",     "[TEXT | ?]",    "Ask a better file of the same model, once; ? shows what it costs.",
      ebb_slash_best, NULL, false },
    { "continue", "",              "Continue an answer that was stopped or cut off.",          ebb_slash_continue,
      NULL, false },
    { "cut",      "[WHAT]",        "Shorten the last answer: 3 words, 1 line, a text.",
      ebb_slash_cut, ebb_complete_cut, false },
    { "undo",     "",              "Take back the last question and its answer.",
      ebb_slash_undo, NULL, false },
    { "redo",     "",              "Undo the last undo.",
      ebb_slash_redo, NULL, false },
    { "edit",     "[N [TEXT]]",           "Rewrite message N, or the last question.",
      ebb_slash_edit, NULL, false },
    { "branch",   "[N]",           "Branch off at message N, or before the last question.",
      ebb_slash_branch, NULL, false },
    { "tree",     "[all]",         "Walk through the messages and branches; all: list them as text.", ebb_slash_tree,
      NULL, false },
    { "go",       "NODE",          "Go to a message of the tree.",                           ebb_slash_go,
      ebb_complete_node, true },
    { "pin",      "[N | list]",    "Keep message N, or the last one, when turns are forgotten; list shows them.",
      ebb_slash_pin, NULL, false },
    { "unpin",    "[N]",           "Unpin message N, or the last one.",                      ebb_slash_unpin,
      NULL, false },
    { "forget",   "[N]",           "Leave the oldest turns, or N of them, out of what the model sees.",
      ebb_slash_forget, NULL, false },
    { "compact",  "",              "Have the model sum up the oldest turns; the summary takes their place.",
      ebb_slash_compact, NULL, false },
    { "grow",     "",              "Open the model with a context twice as large, if memory allows.", ebb_slash_grow,
      NULL, false },
    { "copy",     "[N]",           "Copy the last answer, or its Nth code block.",
      ebb_slash_copy, NULL, false },
    { "find",     "TEXT",          "Find text in this conversation; n and N go to the next.",         ebb_slash_find,
      NULL, false },
    { "raw",      "",              "Show the Markdown source of answers, or format them again.",     ebb_slash_raw,
      NULL, false },
    { "bare",     "",              "Show what is in view as plain text, to select from.",         ebb_slash_bare,
      NULL, false },
    { "system",   "[TEXT]",        "Show or set the system prompt; - removes it.",           ebb_slash_system,
      NULL, false },
    { "prompt",   "[NAME]",        "List the system prompts, or take one.",                  ebb_slash_prompt,
      ebb_complete_prompt, true },
    { "set",      "[NAME [VALUE]]", "Show or change sampling and other settings.",           ebb_slash_set,
         ebb_complete_set, false },
    { "schema",   "[FILE|off]",    "Make answers JSON that fits a schema; off ends it.",    ebb_slash_schema,
      ebb_complete_form, false },
    { "grammar",  "[FILE|off]",    "Make answers follow a grammar (GBNF); off ends it.", ebb_slash_grammar,
      ebb_complete_form, false },
    { "model",    "[FILE]",        "Show this model and the others found here, or load one.", ebb_slash_model,
       ebb_complete_model, true },
    { "engine",   "[NAME [MODEL]]", "Show the engines, or let another one answer; /engine test examines it.",
      ebb_slash_engine, ebb_complete_engine, true },
    { "pull",     "[OWNER/NAME[:TYPE] | stop]", "Fetch a model from huggingface.co while the chat goes on.",
      ebb_slash_pull, ebb_complete_pull, false },
    { "draft",    "[FILE|off]",    "Show or change the small model that drafts tokens for this one; auto finds one.",
      ebb_slash_draft, ebb_complete_draft, false },
    { "mem",      "[SIZE [anew]]", "Show what uses the memory, or change the budget.",    ebb_slash_mem,
      ebb_complete_mem, false },
    { "plan",     "",              "Show the plan for this model: where memory goes, and what speed to expect.",
      ebb_slash_plan,
      NULL, false },
    { "why",      "",              "Show where the last answer's time went, and what would make it faster.",
      ebb_slash_why, NULL, false },
    { "theme",    "[NAME]",        "Show or change the colours.",                            ebb_slash_theme,
       ebb_complete_theme, true },
    { "editing",  "[vi|emacs]",    "Choose the editing keys: vi or emacs.",                         ebb_slash_editing,
      ebb_complete_editing, false },
    { "new",      "",              "Start a new session.",                                   ebb_slash_new,
      NULL, false },
    { "title",    "[TEXT]",        "Show or set this session's title.",                      ebb_slash_title,
      NULL, false },
    { "save",     "NAME",          "Give this session a name.",                              ebb_slash_save,
      NULL, false },
    { "load",     "NAME",          "Open another session, by name, number or title.",        ebb_slash_load,
      ebb_complete_session, true },
    { "list",     "",              "List all sessions, newest first.",                        ebb_slash_list,
      NULL, false },
    { "search",   "WORDS",         "Find these words in all sessions.",        ebb_slash_search,
      NULL, false },
    { "delete",   "[NAME]",        "Delete a session, or this one.",                         ebb_slash_delete,
      ebb_complete_session, false },
    { "undelete", "",              "Bring back the session that was deleted last.",          ebb_slash_undelete,
      NULL, false },
    { "export",   "[FILE]",        "Write this session to a .md, .json or .txt file.",       ebb_slash_export,
      NULL, false },
    { "import",   "FILE",          "Read conversations of ebb, ChatGPT, Claude and others.",  ebb_slash_import,
      ebb_complete_file, false },
    { "quit",     "",              "Leave; everything is saved.",                            slash_quit,
        NULL, false },
    { NULL, NULL, NULL, NULL, NULL, false },
};

const char *const ebb_key_help[][2] = {
    { "Enter", "Send; queue while an answer runs; on an empty line, continue." },
    { "Alt-Enter, Ctrl-J", "New line." },
    { "Ctrl-C", "Stop the answer, keeping it so far; otherwise clear the input." },
    { "Esc", "Stop the answer; a queued message goes next. While scrolled: to the end." },
    { "Ctrl-X", "Take the queued message back." },
    { "PgUp, PgDn", "Scroll; Alt-Home and Alt-End go to the ends. While scrolled, ? lists keys." },
    { "Alt-Up, Alt-Down", "Select a message; then e edits, r retries, b branches, p pins, c copies." },
    { "Ctrl-S", "Find in the conversation as you type; Enter, then n and N." },
    { "Ctrl-O", "Show or fold what the model thought, and attached files." },
    { "Ctrl-G", "Edit in $VISUAL or $EDITOR; so does Ctrl-X Ctrl-E." },
    { "F1", "This help." },
    { "F2", "Change the status display: panel, two lines, one line, hidden." },
    { "Up, Down", "Move; at the edge, through the input history." },
    { "Ctrl-R", "Search the input history." },
    { "Tab", "Take what the menu offers: a command, a file after @. Arrows choose." },
    { "Ctrl-L", "Redraw the screen." },
    { "Ctrl-Z", "Stop ebb; fg brings it back." },
    { "Ctrl-D", "On an empty line: leave." },
    { "F10", "Leave; unsent text is kept for the next start." },
    { NULL, NULL },
};
