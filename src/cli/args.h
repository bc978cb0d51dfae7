/* cli/args.h - what the options of every command say, from one table (options.h).
 *
 * The table feeds the parser, `--help`, the configuration file and the man page's
 * test, so that an option exists in one place only. */
#ifndef EBB_CLI_ARGS_H
#define EBB_CLI_ARGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conversation/chat.h"
#include "ebb/engine.h"
#include "edit/filter.h"
#include "ebb/session.h"

/* Which commands take an option. */
enum {
    EBB_FOR_CHAT = 1, EBB_FOR_RUN = 2, EBB_FOR_PLAN = 4, EBB_FOR_BENCH = 8, EBB_FOR_INSPECT = 16,
    EBB_FOR_SESSIONS = 32, EBB_FOR_MODELS = 64, EBB_FOR_DOCTOR = 128, EBB_FOR_STAT = 256,
    EBB_FOR_COMPLETION = 512,
    EBB_FOR_PULL = 1024, EBB_FOR_ENGINES = 2048, EBB_FOR_OLLAMA = 4096, EBB_FOR_SERVE = 8192,
    EBB_FOR_ENGINE = EBB_FOR_CHAT | EBB_FOR_RUN | EBB_FOR_PLAN | EBB_FOR_BENCH | EBB_FOR_INSPECT |
                     EBB_FOR_SESSIONS | EBB_FOR_SERVE,
    EBB_FOR_ALL = 16383 & ~EBB_FOR_COMPLETION,
    EBB_NOT_IN_CONFIG = 16384,       /* beside them: the command line alone can say it */
};

#define EBB_ARGS_WORDS 64

/* Everything the command line can say; strings point into argv. */
typedef struct ebb_args {
    const char     *model;           /* -m */
    bool            is_model_of_config;      /* the command line may name another in a word */
    bool            is_model_elsewhere;      /* another engine's: not this command's */
    const char     *engine_name;     /* -e; NULL: the engine of this process */
    /* Engines add. */
    const char     *engine_kind, *key_file, *key_variable, *key_command, *ca_file;
    bool            is_insecure;
    const char     *quality;         /* --quality; NULL: one that is found */
    const char     *socket_path, *host;      /* serve */
    uint32_t        port, idle_s;
    bool            has_port, attaches;
    bool            is_engine_given; /* by -e or --host, here as well */
    char            shared[300];     /* the address of an engine that was not named as one */
    const char     *here_model;      /* ebb_chat_opts.here_model */
    bool            here_is_chosen;
    char            shared_address[1024];    /* ebb_chat_opts.shared_address; "": none */
    int             begin_lock;      /* ebb_tui_opts.begin_lock */
    char            first_notice[240];       /* for the chat's beginning; "": none */
    const char     *draft;           /* --draft; NULL, or "none": none */
    const char     *prompt;          /* -p TEXT; for bench the number of prompt tokens */
    const char     *session;         /* -s */
    const char     *system;
    bool            system_given;    /* on the command line */
    const char     *trace;
    bool            continue_last;   /* -c */
    bool            json_lines;      /* pull: events for a program that follows */
    bool            json, plain, is_inline, ascii, verbose, quiet, yes, suggests;
    uint32_t        n_predict;       /* -n */
    uint32_t        n_answers;       /* run --count; 0: 1 */
    bool            has_n_predict;
    uint32_t        bench_depth, bench_runs;
    double          disk_bytes_s, memory_bytes_s;        /* plan --disk, --memory; 0: measured */
    const char     *like;            /* plan --like: a machine of the table; NULL: this one */
    bool            is_table, is_modes;  /* plan --table; plan and bench --modes */
    bool            measures_again;  /* doctor --measure */
    uint32_t        greedy_steps;    /* inspect logits --greedy N */
    bool            no_bos, no_special;
    const char     *tokens_path, *out_path, *positions;
    const char     *file_path, *context_path, *now;
    bool            no_generation_prompt;
    const char     *grammar, *json_schema;       /* run: the form of the answer; NULL: free */
    bool            is_private_of_config;    /* is_private, which the command line does not say */
    const char     *template_name;   /* --template, --raw; NULL: the file's own */
    bool            template_given;  /* on the command line */
    const char     *theme;
    unsigned        bell;            /* --bell: EBB_BELL_* of tui.h */
    enum { EBB_NOTIFY_DESKTOP, EBB_NOTIFY_BELL } notify;
    bool            no_title;
    unsigned        links;           /* --links: EBB_HYPERLINKS_* of tui.h */
    ebb_filter_choice filters[EBB_MAX_FILTERS / 2];      /* --filter, and of the configuration */
    size_t          n_filters;
    bool            runs_shell;      /* --shell: !command may be run */
    enum { EBB_EDITING_EMACS, EBB_EDITING_VI } editing;
    unsigned        layout;          /* --status: EBB_LAYOUT_* of tui.h */
    enum { EBB_COLOR_AUTO, EBB_COLOR_ALWAYS, EBB_COLOR_NEVER } color;
    uint32_t        linger_s;        /* --linger */
    const char     *unlock_path;     /* --unlock; NULL: EBB_UNLOCK, or the terminal */
    bool            is_private;      /* --private: nothing of what is said reaches a disk */
    ebb_overflow_policy overflow;    /* --overflow; given: on the command line */
    bool            overflow_given;
    bool            ollama;          /* plan --ollama, and what it takes (cmd_ollama.h) */
    const char     *ollama_option;   /* the last of these on the command line; NULL: none */
    uint32_t        ollama_batch, ollama_parallel;
    const char     *ollama_flash, *ollama_gpus, *ollama_num_gpu, *ollama_overhead,
        *ollama_projector;
    bool            ollama_spread, ollama_require_full, ollama_vision, ollama_exact;
    ebb_engine_opts engine;
    ebb_sampler_params sampling;
    uint32_t        sampling_given;  /* EBB_SAMPLING_BITs of what was said ... */
    uint32_t        sampling_config; /* ... and of what the configuration file says */
    const char     *words[EBB_ARGS_WORDS]; /* what is no option, in order */
    size_t          n_words;
} ebb_args;

/* --help (-h) or --version, whichever comes first in argv[1..argc) before a "--": a question, which
 * is answered instead of doing what the command does.  The value of an option asks nothing. */
typedef enum ebb_args_question {
    EBB_ASKS_NOTHING, EBB_ASKS_HELP, EBB_ASKS_VERSION
} ebb_args_question;
ebb_args_question ebb_args_asks(int argc, char **argv, unsigned mask);

/* Parse argv[1..argc) for the command `mask`, on top of what the configuration has set: where only
 * one of two options can be, the one of the command line takes the place of the configuration's.
 * USAGE with one line otherwise. */
EBB_MUST_CHECK
ebb_status ebb_args_parse(ebb_args *a, int argc, char **argv, unsigned mask, ebb_error *err);

/* The same command line for another process, into out[argc + n_more + 1]: argv[0..argc) without the
 * flag `without` (its long name), and with more[0..n_more) behind all other options, where it has
 * the last word.  out ends with NULL and borrows the words. */
void ebb_args_rewrite(int argc, char **argv, unsigned mask, const char *without,
                      const char *const more[], size_t n_more, const char **out);

/* One option by its long name without dashes, as the configuration file has it: flags
 * are on or off, and an option of other commands is passed over.  Where a name means one thing to
 * chats and runs and another one elsewhere, the file means the former; `engines` keeps what is said
 * to it, so the file says nothing to it.  On failure *a may be half changed.  `value` must outlive
 * *a. */
EBB_MUST_CHECK
ebb_status ebb_args_set(ebb_args *a, const char *name, const char *value, unsigned mask,
                        ebb_error *err);

/* --filter in two parts, as the configuration file has it: "filter .pdf = COMMAND".  Both must
 * outlive *a.  Error: USAGE. */
EBB_MUST_CHECK
ebb_status ebb_args_add_filter(ebb_args *a, ebb_filter_choice choice, ebb_error *err);

/* Take the text of a configuration file: lines "name = value", # begins a comment, a
 * value may stand in quotes.  `text` is changed and must outlive *a.  Each error is
 * one line, "path:line: ...", for `complain`; its line changes nothing, and the lines after it
 * count.  Of many wrong lines the first 20 are told, and how many more there are.  A wrong line of
 * `private` is the error that is returned: whoever keeps something must not go on without it. */
typedef void ebb_complain_fn(const char *line);
EBB_MUST_CHECK
ebb_status ebb_args_config(ebb_args *a, char *text, const char *path, unsigned mask,
                           ebb_complain_fn *complain, ebb_error *err);

/* Option i of the table, for completion; false past the last. */
typedef struct ebb_option_info {
    const char *short_name, *long_name, *arg, *help;     /* short_name and arg may be NULL */
    const char *const *names;                            /* the values it takes, NULL: any */
    unsigned    mask;
} ebb_option_info;
bool ebb_args_option(size_t i, ebb_option_info *out);

/* The options of `mask`, grouped by task, for --help. */
void ebb_args_help(unsigned mask);

#endif
