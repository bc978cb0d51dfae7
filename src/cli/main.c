/* ebb: the program.  Finds the command, parses its options, runs it. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/closest.h"
#include "base/invariant.h"
#include "base/log.h"
#include "cli.h"
#include "confinement.h"
#include "models/guide.h"
#include "models/models.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/paths.h"
#include "unlock.h"

static const ebb_subcommand *find_subcommand(const char *name)
{
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* Subcommands of other programs, and what they are called here. */
static const char *const foreign_subcommands[][2] = {
    { "list", "`ebb models` lists model files, `ebb sessions list` conversations" },
    { "ls", "`ebb models` lists model files, `ebb sessions list` conversations" },
    { "ps", "`ebb stat` shows the running chats" },
    { "show", "`ebb inspect gguf -m FILE` shows what is in a model file" },
    { "info", "`ebb inspect gguf -m FILE` shows what is in a model file" },
    { "download", "`ebb pull OWNER/NAME` gets a model from huggingface.co" },
    { "get", "`ebb pull OWNER/NAME` gets a model from huggingface.co" },
    { "search", "huggingface.co finds models, `ebb pull OWNER/NAME` lists their files; `ebb sessions search WORDS` "
                "searches conversations" },
    { "server", "`ebb serve` lets other programs use the engine" },
    { "start", "`ebb` without a command is the chat" },
    { "rm", "models are files (`ebb models` lists them); `ebb sessions delete NAME` deletes a conversation" },
};

static void say_unknown_subcommand(const char *name, ebb_error *err)
{
    ebb_closest near = ebb_closest_begin(name, strlen(name));
    char *model = NULL;

    for (size_t i = 0; i < sizeof foreign_subcommands / sizeof *foreign_subcommands; i++)
        if (strcmp(foreign_subcommands[i][0], name) == 0) {
            EBB_FAIL(err, EBB_USAGE, "%s: no such command; %s", name, foreign_subcommands[i][1]);
            return;
        }
    if (ebb_models_resolve(name, &model, NULL) == EBB_OK && (ebb_cli_is_model_file(model) || access(name, F_OK) != 0)) {
        EBB_FAIL(err, EBB_USAGE, "%s: no such command; to talk with the model of that name: ebb -m %s", name, name);
        free(model);
        return;
    }
    free(model);
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        ebb_closest_try(&near, c->name);
    if (near.best)
        EBB_FAIL(err, EBB_USAGE, "%s: no such command; did you mean `ebb %s`?", name, near.best);
    else
        EBB_FAIL(err, EBB_USAGE, "%s: no such command; ebb --help lists them", name);
}

/* Many words that a bar divides take two lines. */
static void print_usage(const ebb_subcommand *of)
{
    enum { WIDTH = 80 };
    size_t room = WIDTH - strlen("ebb ") - strlen(of->name) - 1, n = strlen(of->args);
    const char *bar = n > room ? memrchr(of->args, '|', room) : NULL;
    int n_first = (int)(bar ? bar - of->args : (ptrdiff_t)n);

    printf("ebb %s %.*s\n", of->name, n_first, of->args);
    if (bar)
        printf("      %s\n", bar);
}

static int print_main_help(const ebb_subcommand *of)
{
    if (of) {
        print_usage(of);
        puts(of->help);
        ebb_args_help(of->mask);
        return EBB_EXIT_OK;
    }
    puts("ebb - chat with language models as large as the machine's memory, or larger");
    for (const ebb_subcommand *c = ebb_subcommands; c->name; c++)
        printf("  ebb %-10s %s\n", c->name, c->help);
    puts("\nWithout a command: chat.  To begin:\n"
         "  ebb                          chat, at first with the built-in guide\n"
         "  ebb pull OWNER/NAME          get a model file that suits this machine\n"
         "  ebb -m MODEL                 chat with that model; ebb -c continues tomorrow\n"
         "  ls | ebb run 'What is this?' one answer, for scripts\n"
         "`ebb COMMAND --help` lists the options of a command; the manual is ebb(1).");
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
    printf(", kernels %s", ebb_isa_best());
    putchar('\n');
    return EBB_EXIT_OK;
}

/* Whoever read standard output has seen enough: `| head`.  It is asked of the pipe itself, for the write that failed
 * may have been any before the last. */
static bool has_reader_left(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };
    struct stat s;

    return fstat(STDOUT_FILENO, &s) == 0 && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode)) && poll(&out, 1, 0) > 0;
}

/* What was printed is the result, and some of it did not arrive. */
static int finish_output(int status)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != EBB_EXIT_OK || has_reader_left())
        return status;
    fprintf(stderr, "ebb: not all of the output could be written: %s\n", errno ? strerror(errno) : "is its disk full?");
    return EBB_EXIT_FAILED;
}

/* What `ebb help` is to be about; NULL: everything, as where it is about words that are questions themselves. */
static const char *help_topic(int argc, char **argv)
{
    const char *word = argc > 2 ? argv[2] : "help";

    return word[0] == '-' || strcmp(word, "help") == 0 || strcmp(word, "version") == 0 ? NULL : word;
}

/* What was asked instead of a command's work, or a command that is none; *status: what came of it.  false: neither. */
static bool answer_question(int argc, char **argv, const ebb_subcommand *command, bool is_chat, int *status)
{
    ebb_args_question asked = ebb_args_asks(argc, argv, command ? command->mask : 0);
    const char *name = is_chat ? NULL : argv[1];
    ebb_error err = { 0 };

    if (!command && strcmp(name, "help") == 0) {
        asked = EBB_ASKS_HELP;
        name = help_topic(argc, argv);
        command = name ? find_subcommand(name) : NULL;
    } else if (!command && strcmp(name, "version") == 0) {
        asked = EBB_ASKS_VERSION;
        name = NULL;
    }
    if (!command && name) {
        say_unknown_subcommand(name, &err);
        *status = ebb_cli_fail(&err);
    } else if (asked == EBB_ASKS_HELP) {
        *status = finish_output(print_main_help(name ? command : NULL));
    } else if (asked == EBB_ASKS_VERSION) {
        *status = finish_output(version());
    } else {
        return false;
    }
    return true;
}

/* A login may bring the name of a locale that this machine lacks (ssh sends LANG): its characters are UTF-8 all the
 * same. */
static void set_locale(void)
{
    if (!setlocale(LC_CTYPE, "") && ebb_cli_has_utf8())
        setlocale(LC_CTYPE, "C.UTF-8");
}

static void complain_of_config(const char *line)
{
    fprintf(stderr, "ebb: %s\n", line);
}

/* Lines behind a NUL would not be read. */
static ebb_status expect_text(const ebb_buf *text, const char *path, ebb_error *err)
{
    const char *nul = text->len ? memchr(text->data, '\0', text->len) : NULL;
    int number = 1;

    for (const char *s = text->data; nul && s < nul; s++)
        number += *s == '\n';
    return nul ? EBB_FAIL(err, EBB_FORMAT, "%s:%d: not text; the file may be damaged", path, number) : EBB_OK;
}

/* The file stays in *text: the options point into it.  An error: what it says of `private` is not known. */
static ebb_status read_config(ebb_args *a, ebb_buf *text, unsigned mask, ebb_error *err)
{
    enum { MAX_CONFIG = 1 << 20 };
    ebb_buf path = { 0 };
    ebb_status st = ebb_path_in(EBB_DIR_CONFIG, "config", &path, err);

    if (st == EBB_OK)
        st = ebb_file_slurp(path.data, MAX_CONFIG, text, err);
    if (st == EBB_IO && err->sys_errno == ENOTDIR)       /* XDG_CONFIG_HOME=/dev/null: there is none */
        st = EBB_NOTFOUND;
    if (st == EBB_OK)
        st = expect_text(text, path.data, err);
    if (st == EBB_OK && text->len)               /* filters are programs to run */
        st = ebb_file_expect_trusted(path.data, err);
    if (st == EBB_OK && text->len)
        st = ebb_args_config(a, text->data, path.data, mask, complain_of_config, err);
    ebb_buf_fini(&path);
    return st == EBB_NOTFOUND ? EBB_OK : st;
}

/* Nothing is kept of a conversation that may have to be private; other commands go on without the file.  `why`: what
 * came of reading it. */
static ebb_status expect_config(const ebb_args *a, unsigned mask, const ebb_error *why, ebb_error *err)
{
    if (why->code == EBB_OK)
        return EBB_OK;
    if (!a->is_private && (mask & (EBB_FOR_CHAT | EBB_FOR_RUN)))
        return EBB_FAIL(err, why->code, "%s; it may say `private = on`, so nothing is begun: mend it, or say --private",
                        why->msg);
    complain_of_config(why->msg);
    return EBB_OK;
}

/* Files get the modes that they are made with, for nobody else; a umask that took their owner's part, too, would lock
 * him out of his own folders for good. */
static void keep_owner_modes(void)
{
    const mode_t of_owner = 0700;

    umask(umask(of_owner) & ~of_owner);
}

/* A core would have the conversation in it.  A limit of 1 byte, not of 0: that one does not hold for a core that goes
 * to a program (core(5)). */
static void forbid_cores(void)
{
    const struct rlimit one = { 1, 1 };

    if (!getenv("EBB_CORE") && setrlimit(RLIMIT_CORE, &one) != 0)
        return;
}

/* Where a standard file was closed by who began us, the next file that is opened would get its number, and with it what
 * is printed; or it would be read as a question.  What stands in its place can be neither read nor written. */
static void hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* With fewer, what fails first is anything, and says that it was denied, hidden or damaged. */
static ebb_status check_files(ebb_error *err)
{
    enum { NEEDED = 40, PLENTY = 1024 };          /* a chat has 26 open, and more for a moment */
    uint64_t n = ebb_limits_files();

    if (n >= NEEDED)
        return EBB_OK;
    return EBB_FAIL(err, EBB_LIMIT, "this process may open %" PRIu64 " files, and ebb needs %d; `ulimit -n %d` allows "
                    "more", n, NEEDED, PLENTY);
}

static void end_at_broken_rule(const char *rule, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, rule);
    abort();                                     /* what comes next would be somebody's data */
}

/* Builds with assertions check the engine's rules unless EBB_CHECK=0, others only with EBB_CHECK=1. */
static void check_rules(void)
{
    const char *wish = getenv("EBB_CHECK");
#ifdef NDEBUG
    bool by_default = false;
#else
    bool by_default = true;
#endif

    if (wish && *wish ? *wish != '0' : by_default)
        ebb_invariant_broken = end_at_broken_rule;
}

static ebb_status open_trace(const char *name, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = ebb_path_expand(name, &path, err);

    if (st == EBB_OK)
        st = ebb_log_open(path.data, err);
    ebb_buf_fini(&path);
    return st;
}

int main(int argc, char **argv)
{
    bool is_chat = argc < 2 || argv[1][0] == '-' || ebb_cli_is_model_file(argv[1]) ||
                   strcmp(argv[1], EBB_MODELS_GUIDE) == 0;
    const ebb_subcommand *command = find_subcommand(is_chat ? "chat" : argv[1]);
    ebb_args args = { .sampling = ebb_sampler_params_default(), .linger_s = 600 };
    ebb_buf config = { 0 };
    ebb_error err = { 0 }, why = { 0 };
    int status;

    hold_standard_files();
    keep_owner_modes();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);                    /* a file beyond `ulimit -f` is a write that fails, with a line */
    ebb_cli_remember_words(argc, argv);
    set_locale();
    forbid_cores();
    check_rules();
    if (answer_question(argc, argv, command, is_chat, &status))
        return status;
    if (check_files(&err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (!is_chat) {
        argv++;
        argc--;
    }
    why.code = read_config(&args, &config, command->mask, &why);
    if (ebb_args_parse(&args, argc, argv, command->mask, &err) != EBB_OK ||
        expect_config(&args, command->mask, &why, &err) != EBB_OK ||
        (args.trace && open_trace(args.trace, &err) != EBB_OK)) {
        ebb_buf_fini(&config);
        return ebb_cli_fail(&err);
    }
    if (!(command->mask & (EBB_FOR_CHAT | EBB_FOR_RUN | EBB_FOR_SERVE | EBB_FOR_SESSIONS)) && ebb_cli_is_encrypted())
        args.engine.no_kv_cache = true;          /* it takes no key, and nothing is kept in the clear */
    if (command->only_looks)
        ebb_cli_confine(&args, EBB_CLI_LOOK, NULL);
    status = finish_output(command->run(&args));
    if (ebb_log_gap_errno())
        fprintf(stderr, "ebb: %s: lines of the trace are missing: %s\n", args.trace, strerror(ebb_log_gap_errno()));
    ebb_log_close();
    ebb_buf_fini(&config);
    return status;
}
