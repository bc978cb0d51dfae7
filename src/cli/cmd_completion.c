/* ebb completion: scripts for shells, from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

typedef enum argument_kind { NOTHING, CHOICE, A_FILE, ANY } argument_kind;

/* What follows an option. */
static argument_kind kind_of(const ebb_option_info *o)
{
    if (!o->arg)
        return NOTHING;
    if (o->names)
        return CHOICE;
    return strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "MODEL") == 0 ? A_FILE : ANY;
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
        } else {
            puts(kind_of(&o) == A_FILE ? "COMPREPLY=($(compgen -f -- \"$cur\")); return ;;" : "return ;;");
        }
    }
}

static void print_bash(void)
{
    ebb_option_info o;

    puts("# bash completion for ebb: put it where bash-completion looks, or source it.\n"
         "_ebb() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "  COMPREPLY=()\n"
         "  case $prev in");
    bash_arguments();
    puts("  esac\n  case ${COMP_WORDS[1]} in");
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
    fputs("' ;;\n  esac\n  [[ $COMP_CWORD -eq 1 && $cur != -* ]] && words='", stdout);
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        printf("%s%s", c == ebb_subcommands ? "" : " ", c->name);
    puts("'\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _ebb ebb");
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
    printf("%s' \\\n", kind_of(o) == A_FILE ? "_files" : "");
}

static void zsh_command(const ebb_subcommand *c)
{
    ebb_option_info o;

    printf("    %s%s)\n      _arguments \\\n", c->name, strcmp(c->name, "chat") == 0 ? "|-*|''" : "");
    for (size_t i = 0; ebb_args_option(i, &o); i++)
        if (o.mask & c->mask) {
            zsh_option(&o, o.long_name);
            if (o.short_name)
                zsh_option(&o, o.short_name);
        }
    puts("        '*:file:_files' ;;");
}

static void print_zsh(void)
{
    puts("#compdef ebb\n"
         "_ebb() {\n"
         "  if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
         "    local -a commands=(");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++) {
        printf("      '%s:", c->name);
        print_quoted(c->help, ":");
        puts("'");
    }
    puts("    )\n    _describe command commands\n    return\n  fi\n  case ${words[2]} in");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        zsh_command(c);
    puts("  esac\n}\n_ebb \"$@\"");
}

/* -- fish ------------------------------------------------------------------------------ */

static void fish_option(const ebb_option_info *o, const ebb_subcommand *c)
{
    printf("complete -c ebb -n '%s%s'", strcmp(c->name, "chat") == 0 ? "__fish_use_subcommand; or " : "",
           "__fish_seen_subcommand_from ");
    printf("%s -l %s", c->name, o->long_name + 2);
    if (o->short_name)
        printf(" -s %s", o->short_name + 1);
    fputs(" -d '", stdout);
    print_quoted(o->help, "");
    putchar('\'');
    if (kind_of(o) == CHOICE) {
        fputs(" -x -a '", stdout);
        print_names(o);
        putchar('\'');
    } else if (o->arg) {
        fputs(kind_of(o) == A_FILE ? " -r -F" : " -x", stdout);
    }
    putchar('\n');
}

static void print_fish(void)
{
    ebb_option_info o;

    puts("# fish completion for ebb\ncomplete -c ebb -f");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++) {
        printf("complete -c ebb -n __fish_use_subcommand -a %s -d '", c->name);
        print_quoted(c->help, "");
        puts("'");
        for (size_t i = 0; ebb_args_option(i, &o); i++)
            if (o.mask & c->mask)
                fish_option(&o, c);
    }
}

int ebb_cmd_completion(ebb_args *a)
{
    static const struct {
        const char *name;
        void      (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    ebb_error err = { 0 };

    for (size_t i = 0; a->n_words == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, a->words[0]) == 0) {
            shells[i].print();
            return EBB_EXIT_OK;
        }
    EBB_FAIL(&err, EBB_USAGE, "completion: say for which shell: bash, zsh or fish");
    return ebb_cli_fail(&err);
}
