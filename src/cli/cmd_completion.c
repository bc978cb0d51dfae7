/* ebb completion: scripts for shells, from the tables of commands and options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "models/models.h"
#include "remote/engines_file.h"
#include "store/store.h"
#include "unlock.h"

typedef enum argument_kind { NOTHING, CHOICE, A_FILE, A_MODEL, A_SESSION, AN_ENGINE, ANY } argument_kind;

/* What `ebb completion` lists of this kind; NULL: nothing. */
static const char *list_of(argument_kind kind)
{
    return kind == A_MODEL ? "models" : kind == A_SESSION ? "sessions" : kind == AN_ENGINE ? "engines" : NULL;
}

/* What follows an option. */
static argument_kind kind_of(const ebb_option_info *o)
{
    if (!o->arg)
        return NOTHING;
    if (o->names)
        return CHOICE;
    if (strcmp(o->long_name, "--session") == 0)
        return A_SESSION;
    if (strcmp(o->long_name, "--engine") == 0)
        return AN_ENGINE;
    return strcmp(o->arg, "MODEL") == 0 ? A_MODEL : strcmp(o->arg, "FILE") == 0 ? A_FILE : ANY;
}

/* Whether the first word behind the command is one of some: "list|show|..." up to a blank in its usage. */
static size_t n_subjects(const ebb_subcommand *c)
{
    size_t n = strcspn(c->args, " ");

    return n == 0 || strchr("[OP", c->args[0]) || !memchr(c->args, '|', n) ? 0 : n;
}

static void print_subjects(const ebb_subcommand *c)
{
    for (size_t i = 0; i < n_subjects(c); i++)
        putchar(c->args[i] == '|' ? ' ' : c->args[i]);
}

static void print_command_names(void)
{
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        printf("%s%s", c == ebb_subcommands ? "" : " ", c->name);
}

static void print_names(const ebb_option_info *o)
{
    for (size_t i = 0; o->names[i]; i++)
        printf("%s%s", i ? " " : "", o->names[i]);
}

/* Text between single quotes; `also` are characters to be escaped with a backslash. */
static void print_quoted(const char *s, const char *also)
{
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\'", stdout);
        else if (strchr(also, *s))
            putchar('\\');
        putchar(*s);
    }
}

/* -- bash ------------------------------------------------------------------------------ */

static void bash_arguments(void)
{
    ebb_option_info o;

    for (size_t i = 0; ebb_args_option(i, &o); i++) {
        if (kind_of(&o) == NOTHING)
            continue;
        printf("    %s%s%s) ", o.short_name ? o.short_name : "", o.short_name ? "|" : "", o.long_name);
        if (kind_of(&o) == CHOICE) {
            fputs("COMPREPLY=($(compgen -W '", stdout);
            print_names(&o);
            puts("' -- \"$cur\")); return ;;");
        } else if (list_of(kind_of(&o))) {
            printf("_ebb_names %s; return ;;\n", list_of(kind_of(&o)));
        } else {
            puts("return ;;");                   /* bash's own completion of files knows blanks and folders */
        }
    }
}

/* Readline breaks words at the colons of names, llama3.2:1b; it replaces what is behind the last one.  What a blank
 * parts from a colon in the line is a word of its own. */
static void bash_words(void)
{
    puts("_ebb() {\n"
         "  local i n=0 cur prev words= line=${COMP_LINE#*\"${COMP_WORDS[0]}\"} gap said=(\"${COMP_WORDS[0]}\")\n"
         "  for ((i = 1; i <= COMP_CWORD; i++)); do\n"
         "    gap=${line%%[^[:space:]]*}\n"
         "    if [[ ${COMP_WORDS[i]} ]]; then gap=${line%%\"${COMP_WORDS[i]}\"*}; fi\n"
         "    line=${line:${#gap}+${#COMP_WORDS[i]}}\n"
         "    if [[ $i -gt 1 && -z $gap && $COMP_WORDBREAKS == *:* && "
         "( ${COMP_WORDS[i]} == +(:) || ${COMP_WORDS[i-1]} == +(:) ) ]]; then said[n]+=${COMP_WORDS[i]}\n"
         "    else said[++n]=${COMP_WORDS[i]}; fi\n"
         "  done\n"
         "  cur=${said[n]} prev=${said[n-1]}\n"
         "  COMPREPLY=()\n"
         "  _ebb_replies\n"
         "  if [[ $COMP_WORDBREAKS == *:* ]]; then COMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"${cur##*:}\"}\"}\"); fi\n"
         "}");
}

/* Names as they are written at a prompt: within a quote that is open, else with backslashes; what is typed may have
 * them already.  A model is a file, too: where names begin like it, files are offered beside them, and where none does,
 * bash completes files itself. */
static void bash_names(void)
{
    puts("_ebb_names() {\n"
         "  local name word c quote= begun=$cur\n"
         "  if [[ $cur == [\"\\\"'\"]* ]]; then quote=${cur:0:1} begun=${cur:1}; fi\n"
         "  while IFS= read -r name; do\n"
         "    word=$name\n"
         "    if [[ $quote == \"'\" ]]; then word=${name//\"'\"/\"'\\''\"}\n"
         "    elif [[ $quote ]]; then for c in '\\' '\"' '$' '`'; do word=${word//\"$c\"/\"\\\\$c\"}; done\n"
         "    else printf -v word %q \"$name\"; fi\n"
         "    if [[ $word == \"$begun\"* || $name == \"$begun\"* ]]; then COMPREPLY+=(\"$word\"); fi\n"
         "  done < <(\"${COMP_WORDS[0]}\" completion \"$1\" 2>/dev/null)\n"
         "  if [[ $1 != models || $quote || ${#COMPREPLY[@]} -eq 0 ]]; then return; fi\n"
         "  while IFS= read -r name; do\n"
         "    printf -v word %q \"$name\"\n"
         "    if [[ -d $name ]]; then word+=/; fi\n"
         "    COMPREPLY+=(\"$word\")\n"
         "  done < <(compgen -f -- \"$cur\")\n"
         "}");
}

static void print_bash(void)
{
    ebb_option_info o;

    puts("# bash completion for ebb: put it where bash-completion looks, or source it.");
    bash_names();
    puts("_ebb_replies() {\n"
         "  case $prev in");
    bash_arguments();
    puts("  esac\n  case ${said[1]} in");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++) {
        printf("    %s) words='--help", c->name);
        for (size_t i = 0; ebb_args_option(i, &o); i++)
            if (o.mask & c->mask)
                printf(" %s", o.long_name);
        puts("' ;;");
    }
    fputs("    *) words='--help --version", stdout);
    for (size_t i = 0; ebb_args_option(i, &o); i++)
        if (o.mask & EBB_FOR_CHAT)
            printf(" %s", o.long_name);
    fputs("' ;;\n  esac\n  [[ $n -eq 1 && $cur != -* ]] && words='", stdout);
    print_command_names();
    puts("'");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        if (n_subjects(c) > 0) {
            printf("  [[ ${said[1]} == %s && $n -eq 2 && $cur != -* ]] && words='", c->name);
            print_subjects(c);
            puts("'");
        }
    puts("  [[ ${said[1]}/${said[2]} == sessions/delete && $n -gt 3 && $cur != -* ]] && _ebb_names sessions && return\n"
         "  if [[ $n -eq 3 && $cur != -* ]]; then\n"
         "    case ${said[1]}/${said[2]} in\n"
         "      sessions/show|sessions/rename|sessions/delete|sessions/export|sessions/replay) _ebb_names sessions; "
         "return ;;\n"
         "      engines/test|engines/remove) _ebb_names engines; return ;;\n"
         "    esac\n"
         "  fi");
    puts("  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}");
    bash_words();
    puts("complete -o default -F _ebb ebb");
}

/* -- zsh ------------------------------------------------------------------------------- */

static void zsh_option(const ebb_option_info *o, const char *name)
{
    printf("        '%s[", name);
    print_quoted(o->help, "[]:");
    putchar(']');
    if (o->arg) {
        putchar(':');
        print_quoted(o->arg, "[]:");
        putchar(':');
    }
    if (kind_of(o) == CHOICE) {
        putchar('(');
        print_names(o);
        putchar(')');
    }
    printf("%s%s' \\\n", kind_of(o) == A_FILE ? "_files" : list_of(kind_of(o)) ? "_ebb_" : "",
           list_of(kind_of(o)) ? list_of(kind_of(o)) : "");
}

/* What is meant where no command is said, but options or a model. */
static bool is_chat(const ebb_subcommand *c)
{
    return strcmp(c->name, "chat") == 0;
}

static void zsh_command(const ebb_subcommand *c)
{
    ebb_option_info o;

    printf("    %s)\n      _arguments \\\n", is_chat(c) ? "*" : c->name);
    for (size_t i = 0; ebb_args_option(i, &o); i++)
        if (o.mask & c->mask) {
            zsh_option(&o, o.long_name);
            if (o.short_name)
                zsh_option(&o, o.short_name);
        }
    if (n_subjects(c) > 0) {
        fputs("        '2:subject:(", stdout);
        print_subjects(c);
        puts(")' \\");
    }
    puts(strcmp(c->name, "sessions") == 0 ? "        '*:session:_ebb_subject' ;;"
         : strcmp(c->name, "engines") == 0 ? "        '*:engine:_ebb_engines' ;;" : "        '*:file:_files' ;;");
}

static void print_zsh(void)
{
    const ebb_subcommand *chat = NULL;

    puts("#compdef ebb\n"
         "_ebb_models() { local -a names; names=(${(f)\"$(ebb completion models 2>/dev/null)\"}); compadd -a names; "
         "_files; }\n"
         "_ebb_sessions() { local -a names; names=(${(f)\"$(ebb completion sessions 2>/dev/null)\"}); compadd "
         "-a names; }\n"
         "_ebb_engines() { local -a names; names=(${(f)\"$(ebb completion engines 2>/dev/null)\"}); compadd "
         "-a names; }\n"
         "_ebb_subject() {\n"
         "  if [[ ${words[3]} == import || ( ${words[3]} == export && CURRENT -gt 4 ) ]]; then _files; "
         "else _ebb_sessions; fi\n"
         "}\n"
         "_ebb() {\n"
         "  if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
         "    local -a commands=(");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++) {
        printf("      '%s:", c->name);
        print_quoted(c->help, ":");
        puts("'");
    }
    puts("    )\n    _describe command commands || _files\n    return\n  fi\n  case ${words[2]} in");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        if (is_chat(c))
            chat = c;
        else
            zsh_command(c);
    zsh_command(chat);                           /* the last case takes what is none of the others */
    puts("  esac\n}\n_ebb \"$@\"");
}

/* -- fish ------------------------------------------------------------------------------ */

/* A command is the first word, or chat: those of options and questions are none. */
static void fish_functions(void)
{
    puts("function __ebb_said -d 'The words behind ebb, without the one at hand'\n"
         "    set -l words (commandline -opc)\n"
         "    while string match -q -- '*=*' \"$words[1]\"\n"
         "        set -e words[1]\n"
         "    end\n"
         "    set -e words[1]\n"
         "    set -q words[1]; and printf '%s\\n' $words\n"
         "end");
    fputs("function __ebb_commands\n    string split ' ' '", stdout);
    print_command_names();
    puts("'\nend\n"
         "function __ebb_begins -d 'The word at hand begins a command'\n"
         "    set -l begun (commandline -ct)\n"
         "    test (count (__ebb_said)) -eq 0; and string match -q -- \"$begun*\" (__ebb_commands)\n"
         "end\n"
         "function __ebb_runs -d 'The command is one of these'\n"
         "    set -l said (__ebb_said)\n"
         "    contains -- \"$said[1]\" (__ebb_commands); or set said chat\n"
         "    contains -- $said[1] $argv\n"
         "end\n"
         "function __ebb_follows -d 'The word at hand follows this command, and one of these subjects of it'\n"
         "    set -l said (__ebb_said)\n"
         "    test \"$said[1]\" = $argv[1]; or return\n"
         "    set -e argv[1]\n"
         "    test (count $said) -eq (math 1 + (count $argv[1])); or return\n"
         "    not set -q argv[1]; or contains -- $said[2] $argv\n"
         "end\n"
         "function __ebb_is_behind -d 'The words begin with this command and this subject'\n"
         "    set -l said (__ebb_said)\n"
         "    test \"$said[1]\" = $argv[1]; and test \"$said[2]\" = $argv[2]\n"
         "end");
}

static void fish_option(const ebb_option_info *o, const ebb_subcommand *c)
{
    printf("complete -c ebb -n '__ebb_runs %s' -l %s", c->name, o->long_name + 2);
    if (o->short_name)
        printf(" -s %s", o->short_name + 1);
    fputs(" -d '", stdout);
    print_quoted(o->help, "");
    putchar('\'');
    if (kind_of(o) == CHOICE) {
        fputs(" -x -a '", stdout);
        print_names(o);
        putchar('\'');
    } else if (list_of(kind_of(o))) {
        printf(" -r%s -a '(ebb completion %s)'", kind_of(o) == A_MODEL ? " -F" : " -f", list_of(kind_of(o)));
    } else if (o->arg) {
        fputs(kind_of(o) == A_FILE ? " -r -F" : " -x", stdout);
    }
    putchar('\n');
}

/* None that is a model, is imported, or goes along with a question. */
static bool has_no_files(const ebb_subcommand *c)
{
    return !strstr(c->args, "-m MODEL") && strcmp(c->name, "sessions") != 0;
}

static void fish_command(const ebb_subcommand *c)
{
    ebb_option_info o;

    printf("complete -c ebb -n __ebb_begins -f -a %s -d '", c->name);
    print_quoted(c->help, "");
    puts("'");
    if (n_subjects(c) > 0) {
        printf("complete -c ebb -n '__ebb_follows %s' -f -a '", c->name);
        print_subjects(c);
        puts("'");
    }
    if (has_no_files(c))
        printf("complete -c ebb -n '__ebb_runs %s' -f\n", c->name);
    for (size_t i = 0; ebb_args_option(i, &o); i++)
        if (o.mask & c->mask)
            fish_option(&o, c);
}

static void print_fish(void)
{
    puts("# fish completion for ebb");
    fish_functions();
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        fish_command(c);
    puts("complete -c ebb -n '__ebb_follows sessions show rename export replay' -f "
         "-a '(ebb completion sessions)'\n"
         "complete -c ebb -n '__ebb_is_behind sessions delete' -f "
         "-a '(ebb completion sessions)'\n"
         "complete -c ebb -n '__ebb_follows engines test remove' -f -a '(ebb completion engines)'");
}

/* -- What the scripts ask for ------------------------------------------------------------ */

static void print_line(const char *text)
{
    ebb_buf visible = { 0 };

    if (!strchr(text, '\n') && ebb_utf8_add_line(&visible, text, strlen(text), false))
        puts(ebb_buf_text(&visible));
    ebb_buf_fini(&visible);
}

static void print_models(void)
{
    ebb_model_file *files;
    size_t n;

    puts(EBB_MODELS_GUIDE);
    if (ebb_models_find_chat(&files, &n, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n; i++)
        print_line(ebb_models_word(&files[i]));
    ebb_models_free(files, n);
}

static void print_sessions(void)
{
    ebb_session_row *rows;
    ebb_args none = { 0 };
    ebb_store *s;
    size_t n;

    if ((ebb_cli_is_encrypted() && ebb_cli_unlock(&none, false, NULL) != EBB_OK) ||
        ebb_store_open(NULL, &s, NULL) != EBB_OK)
        return;
    if (ebb_store_list(s, &rows, &n, NULL) == EBB_OK) {
        for (size_t i = 0; i < n; i++)
            print_line(ebb_session_row_name(&rows[i]));
        free(rows);
    }
    ebb_store_close(s);
}

static void print_engines(void)
{
    ebb_engine_entry *list;
    size_t n;

    puts(EBB_ENGINE_HERE);
    if (ebb_engines_read(&list, &n, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n; i++)
        print_line(list[i].name);
    ebb_engines_free(list, n);
}

int ebb_cmd_completion(ebb_args *a)
{
    static const struct {
        const char *name;
        void      (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish }, { "models", print_models },
                   { "sessions", print_sessions }, { "engines", print_engines } };
    ebb_error err = { 0 };

    for (size_t i = 0; a->n_words == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, a->words[0]) == 0) {
            shells[i].print();
            return EBB_EXIT_OK;
        }
    EBB_FAIL(&err, EBB_USAGE, "completion: give the shell: bash, zsh or fish");
    return ebb_cli_fail(&err);
}
