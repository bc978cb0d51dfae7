/* cli/cli.h - the commands, and what they share. */
#ifndef EBB_CLI_CLI_H
#define EBB_CLI_CLI_H
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "args.h"
#include "base/buf.h"
#include "conversation/chat.h"
#include "models/plan_text.h"

typedef struct ebb_subcommand {
    const char *name, *args, *help;  /* one line each, for `ebb --help` */
    unsigned    mask;                /* its options in the table */
    int       (*run)(ebb_args *a);   /* the exit status */
    bool        only_looks;          /* at models and files: confined before it begins */
} ebb_subcommand;
extern const ebb_subcommand ebb_subcommands[];

enum { EBB_EXIT_OK = 0, EBB_EXIT_FAILED = 1, EBB_EXIT_USAGE = 2 };

/* Print "ebb: message" on standard error, control characters made visible;
 * the exit status for `err`. */
int ebb_cli_fail(const ebb_error *err);

/* Print n bytes of foreign text: filtered where standard output is a terminal, exact elsewhere. */
void ebb_cli_print(const char *text, size_t n);
/* The same of a name in a line: a terminal shows a newline in it as a sign. */
void ebb_cli_print_name(const char *name);

/* The locale is one with UTF-8, or the environment asks for one. */
bool ebb_cli_has_utf8(void);

/* Print `root` and a newline as ebb_cli_print does, and drop the reference to it.  NULL: it could
 * not be built (out of memory).  Returns the exit status. */
int ebb_cli_print_json(json_t *root);

/* Catch SIGHUP, unless it is ignored, as nohup(1) and `trap '' HUP` have it: then it stays so. */
void ebb_cli_catch_hangup(void (*handler)(int));

/* Say a line on standard error, unless --quiet; what others named in it cannot hide there.  Empty:
 * nothing. */
void ebb_cli_tell(const ebb_args *a, const char *line);

/* Is a word the name of a model file, by its ending? */
bool ebb_cli_is_model_file(const char *word);

/* The grammar of --grammar or --json-schema, checked; NULL: neither was given.  The caller frees
 * it.  Fails with one line. */
EBB_MUST_CHECK
ebb_status ebb_cli_answer_form(const ebb_args *a, char **grammar, ebb_error *err);

/* Whether progress may be shown on standard error. */
bool ebb_cli_progress(const ebb_args *a);

/* Open the model of -m, or the default one.  Fails with one line. */
EBB_MUST_CHECK
ebb_status ebb_cli_open_model(const ebb_args *a, ebb_model **out, ebb_error *err);

/* The model that --draft names as it was given; NULL: none. */
const char *ebb_cli_draft_model_name(const ebb_args *a);
/* The same opened, for a->engine beside `host`; *out is the caller's to close behind the engine,
 * NULL: none. */
EBB_MUST_CHECK
ebb_status ebb_cli_open_draft_model(ebb_args *a, const ebb_model *host, ebb_model **out,
                                    ebb_error *err);

/* -m is there; what the configuration names is not meant where the command line names another. */
bool ebb_cli_is_model_said(const ebb_args *a);
/* Without -m a model may stand as a word of its own, as elsewhere: words[at], if it ends in .gguf
 * or is the guide. */
void ebb_cli_model_from_words(ebb_args *a, size_t at);

/* Of `run`: words[0] is the model if it is so called, or one alone begins so, and it does not look
 * like the first word of a sentence.  USAGE: several are meant, or it is nearly the name of one. */
EBB_MUST_CHECK
ebb_status ebb_cli_model_from_first_word(ebb_args *a, ebb_error *err);

/* The same for commands whose words can be nothing else: one is the model, more are a mistake. */
EBB_MUST_CHECK
ebb_status ebb_cli_only_model(ebb_args *a, ebb_error *err);

/* Ids of a text (flags as ebb_model_tokenize); *ids is for free(), also on failure. */
EBB_MUST_CHECK
ebb_status ebb_cli_tokenize(const ebb_model *m, const ebb_buf *text, unsigned flags,
                            ebb_token **ids, size_t *n, ebb_error *err);

/* The next of token ids that white space or commas part, from *at, which moves behind it;
 * EBB_TOKEN_NONE: there is no more up to `text_end`, where a zero byte is.  FORMAT names `where` if
 * it is none of the vocabulary. */
EBB_MUST_CHECK
ebb_status ebb_cli_next_id(const char **at, const char *text_end, const ebb_model *m,
                           const char *where, ebb_token *id, ebb_error *err);

/* Where a server of this user (`ebb serve`) has the model that this process would load, let it
 * answer: a->engine_name names it then.  Where a chat has it, a server takes over for both: the
 * address is a->shared_address, also for when this chat is the one that is asked later.  Not with
 * options of the engine, with -e, or with --private.  What a->model names is looked for once: it
 * becomes a path.  `tells`: one line about it all where progress may be shown; else
 * a->first_notice has it. */
void ebb_cli_share(ebb_args *a, bool tells);
/* Of a server, before it loads the model at `path`: a chat that has the same file hands it over;
 * waits until it has, while *stop is 0, for ten minutes at most, and for ten seconds while it has
 * nothing else to do. */
void ebb_cli_take_over(const ebb_args *a, const char *path, const volatile sig_atomic_t *stop);

/* What the chats and servers of this user say that run now, an array of `ebb stat`'s objects; of
 * process `pid` alone unless it is NULL.  `dir`: ebb_path_run.  The caller lets go of it.  Numbers
 * of those that were stopped, or take the question and say nothing for 2 s, are added to *silent,
 * unless it is NULL. */
json_t *ebb_cli_running(const char *dir, const char *pid, ebb_buf *silent);
/* Send a signal to the process of such an object: to the one that answers at its socket, never to a
 * number.  false: it is gone, or out of reach. */
bool ebb_cli_signal(const json_t *running, int number);

/* What --private means for the other options; USAGE where it cannot be. */
EBB_MUST_CHECK
ebb_status ebb_cli_check_private(ebb_args *a, ebb_error *err);
/* What the command line says about a conversation. */
ebb_chat_opts ebb_cli_chat_opts(const ebb_args *a);

int ebb_cmd_chat(ebb_args *a);
int ebb_cmd_run(ebb_args *a);
int ebb_cmd_plan(ebb_args *a);
int ebb_cmd_ollama(ebb_args *a);
int ebb_cmd_bench(ebb_args *a);
int ebb_cmd_doctor(ebb_args *a);
int ebb_cmd_sessions(ebb_args *a);
int ebb_cmd_models(ebb_args *a);
int ebb_cmd_pull(ebb_args *a);
int ebb_cmd_engines(ebb_args *a);
int ebb_cmd_serve(ebb_args *a);
int ebb_cmd_stat(ebb_args *a);
int ebb_cmd_stop(ebb_args *a);
int ebb_cmd_completion(ebb_args *a);

/* Whether --like or --memory describe the machine that is planned for, and then all of its figures;
 * USAGE for an unknown name. */
EBB_MUST_CHECK
ebb_status ebb_cli_describe_machine(const ebb_args *a, bool *is_described, ebb_machine *out,
                                    ebb_error *err);
/* `plan --table` and `plan --modes` of a model on `machine`, which is measured where it is not
 * described. */
EBB_MUST_CHECK
ebb_status ebb_cmd_plan_table(const ebb_args *a, const ebb_model *m, ebb_machine *machine,
                              bool is_described, int *status, ebb_error *err);

/* The estimate of `plan --ollama`, printed; with --json, to *json (NULL: no memory). */
EBB_MUST_CHECK
ebb_status ebb_cmd_plan_ollama(const ebb_args *a, const ebb_model *m, json_t **json,
                               ebb_error *err);
/* An option of Ollama's estimate without --ollama would say nothing: USAGE. */
EBB_MUST_CHECK
ebb_status ebb_cmd_plan_check(const ebb_args *a, ebb_error *err);

int ebb_cmd_inspect_gguf(ebb_args *a);
int ebb_cmd_inspect_tokens(ebb_args *a);
int ebb_cmd_inspect_text(ebb_args *a);
int ebb_cmd_inspect_template(ebb_args *a);
int ebb_cmd_inspect_logits(ebb_args *a);
int ebb_cmd_inspect_perplexity(ebb_args *a);

#endif
