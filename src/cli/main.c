/* ebb: the program.  Finds the command, parses its options, runs it. */
#include <gnu/libc-version.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "cli.h"
#include "guide.h"
#include "os/file.h"
#include "os/paths.h"

static const ebb_command_line *find(const char *name)
{
    for (const ebb_command_line *c = ebb_commands_cli; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int help(const ebb_command_line *of)
{
    if (of) {
        printf("ebb %s %s\n%s\n", of->name, of->args, of->help);
        ebb_args_help(of->mask);
        return EBB_EXIT_OK;
    }
    puts("ebb - chat with language models as large as the machine's memory, or larger\n");
    for (const ebb_command_line *c = ebb_commands_cli; c->name; c++)
        printf("  ebb %-10s %s\n", c->name, c->help);
    puts("\nWithout a command: chat.  `ebb COMMAND --help` lists the options of a command; the manual is ebb(1).");
    return EBB_EXIT_OK;
}

#ifdef __clang__
#define COMPILER ""                  /* __VERSION__ begins with the name */
#else
#define COMPILER "GCC "
#endif

static int version(void)
{
    struct utsname machine;

    printf("ebb %s\nbuilt with " COMPILER "%s", EBB_VERSION, __VERSION__);
    printf(", the guide of %.1f MB; libc %s", (double)ebb_guide_bytes / 1e6, gnu_get_libc_version());
    if (uname(&machine) == 0)
        printf(", %s %s on %s", machine.sysname, machine.release, machine.machine);
    putchar('\n');
    return EBB_EXIT_OK;
}

static void complain(const char *line)
{
    fprintf(stderr, "ebb: %s\n", line);
}

/* The file stays in *text: the options point into it. */
static void read_config(ebb_args *a, ebb_buf *text, unsigned mask)
{
    enum { MAX_CONFIG = 1 << 20 };
    ebb_buf path = { 0 };
    ebb_error err = { 0 };

    if (ebb_path_in(EBB_DIR_CONFIG, "config", &path, NULL) == EBB_OK) {
        ebb_status st = ebb_file_slurp(path.data, MAX_CONFIG, text, &err);
        if (st == EBB_OK && text->len)
            ebb_args_config(a, text->data, path.data, mask, complain);
        else if (st != EBB_OK && st != EBB_NOTFOUND)
            complain(err.msg);
    }
    ebb_buf_fini(&path);
}

int main(int argc, char **argv)
{
    const ebb_command_line *command = argc > 1 && argv[1][0] != '-' ? find(argv[1]) : find("chat");
    ebb_args args = { .sampling = ebb_sampling_default(), .linger_s = 600 };
    ebb_buf config = { 0 };
    ebb_error err = { 0 };
    int status;

    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help(argc > 1 && argv[1][0] != '-' ? command : NULL);
        if (strcmp(argv[i], "--version") == 0)
            return version();
    }
    if (!command) {
        EBB_FAIL(&err, EBB_USAGE, "%s: no such command; ebb --help lists them", argv[1]);
        return ebb_cli_fail(&err);
    }
    if (argc > 1 && argv[1][0] != '-') {
        argv++;
        argc--;
    }
    read_config(&args, &config, command->mask);
    if (ebb_args_parse(&args, argc, argv, command->mask, &err) != EBB_OK ||
        (args.trace && ebb_log_open(args.trace, &err) != EBB_OK))
        return ebb_cli_fail(&err);
    status = command->run(&args);
    if (fflush(stdout) != 0 && status == EBB_EXIT_OK)
        status = EBB_EXIT_FAILED;
    ebb_log_close();
    ebb_buf_fini(&config);
    return status;
}
