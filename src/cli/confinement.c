/* The files, connections and programs that a command stays allowed (confinement.h). */
#include "cli.h"
#include "confinement.h"
#include "confinement_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "models/finding.h"
#include "models/models.h"
#include "edit/command_output.h"
#include "edit/filter.h"
#include "os/broker.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/uring.h"
#include "pull/pull_process.h"
#include "remote/address.h"
#include "remote/engines_file.h"
#include "term/job.h"

static int n_words;
static char **words;

const char *ebb_cli_program(void)
{
    return "/proc/self/exe";
}

void ebb_cli_remember_words(int argc, char **argv)
{
    n_words = argc;
    words = argv;
}

char **ebb_cli_remembered_words(int *argc)
{
    *argc = n_words;
    return words;
}

/* -- Remote engines ---------------------------------------------------------------------------- */

/* Of one of them: where it is, and the command that says its key. */
typedef struct engine_needs {
    ebb_engine_entry entry;
    ebb_address      at;
    char            *key_argv[4];
} engine_needs;

typedef struct needs {
    ebb_connect         connect;         /* the widest of all */
    engine_needs       *engines;
    size_t              n_engines;
    ebb_broker_command *commands;        /* of engines, the editor, tmux */
    size_t              n_commands;
    ebb_buf             editor, drafts, socket;
    char               *editor_argv[5];
    ebb_filters         filters;
} needs;

static void add_command(needs *n, char *const *argv, ebb_broker_more more)
{
    n->commands[n->n_commands++] = (ebb_broker_command){ .argv = argv, .more = more };
}

static char *fixed(const char *word)
{
    return (char *)(uintptr_t)word;              /* as argv wants it; nobody writes there */
}

static void add_engine_needs(needs *n, engine_needs *e)
{
    ebb_connect connect;

    if (e->entry.key_command) {
        memcpy(e->key_argv, (char *[]){ fixed("/bin/sh"), fixed("-c"), e->entry.key_command, NULL },
               sizeof e->key_argv);
        add_command(n, e->key_argv, EBB_BROKER_NOTHING);
    }
    if (!e->entry.address || ebb_address_parse(e->entry.address, &e->at, NULL) != EBB_OK)
        return;
    connect = e->at.argv[0] ? EBB_CONNECT_GIVEN : e->at.unix_path[0] ? EBB_CONNECT_UNIX : EBB_CONNECT_INTERNET;
    n->connect = connect > n->connect ? connect : n->connect;
    if (e->at.argv[0])
        add_command(n, e->at.argv, strcmp(e->at.argv[0], "ssh") == 0 ? EBB_BROKER_A_MODEL : EBB_BROKER_NOTHING);
}

/* Those that have names, that of -e, and the server that may take over.  Where the file cannot be read, whoever names
 * one is told. */
static bool find_needs(const ebb_args *a, ebb_cli_needs kind, needs *n)
{
    ebb_engine_entry *list = NULL;
    size_t n_list = 0;

    bool has_engines = kind == EBB_CLI_CHAT || kind == EBB_CLI_ANSWER || kind == EBB_CLI_PROBE;

    if (has_engines && kind != EBB_CLI_PROBE && ebb_engines_read(&list, &n_list, NULL) != EBB_OK)
        n_list = 0;
    n->engines = calloc(n_list + 2, sizeof *n->engines);
    n->commands = calloc(2 * (n_list + 2) + 4 + EBB_MAX_FILTERS, sizeof *n->commands);
    for (size_t i = 0; n->engines && i < n_list; i++) {
        n->engines[n->n_engines++].entry = list[i];
        list[i] = (ebb_engine_entry){ 0 };
    }
    ebb_engines_free(list, n_list);
    if (!n->engines || !n->commands)
        return false;
    if (has_engines && a->engine_name &&
        ebb_engines_find(a->engine_name, &n->engines[n->n_engines].entry, NULL) == EBB_OK)
        n->n_engines++;
    if (kind == EBB_CLI_CHAT && a->shared_address[0] &&
        ebb_engines_find(a->shared_address, &n->engines[n->n_engines].entry, NULL) == EBB_OK)
        n->n_engines++;
    for (size_t i = 0; i < n->n_engines; i++)
        add_engine_needs(n, &n->engines[i]);
    return true;
}

static bool add_editor(needs *n, const char *editor)
{
    static char name[] = "tmux", verb[] = "load-buffer", option[] = "-w", from[] = "-";
    static char *const tmux[] = { name, verb, option, from, NULL };

    if (!ebb_job_add_command(&n->editor, editor ? editor : "vi"))
        return false;
    memcpy(n->editor_argv, (char *[]){ fixed("sh"), fixed("-c"), n->editor.data, fixed("sh"), NULL },
           sizeof n->editor_argv);
    if (n->drafts.len)
        add_command(n, n->editor_argv, EBB_BROKER_A_DRAFT);
    add_command(n, tmux, EBB_BROKER_NOTHING);
    return true;
}

/* Their commands are whole: nothing of what is attached is among their words (edit/filter.h). */
static void add_filters(needs *n, const ebb_args *a)
{
    ebb_filters_init(&n->filters, a->filters, a->n_filters);
    for (size_t i = 0; i < n->filters.n; i++)
        add_command(n, n->filters.list[i].argv,
                    n->filters.list[i].package ? EBB_BROKER_A_FILTER : EBB_BROKER_NOTHING);
}

static void free_needs(needs *n)
{
    for (size_t i = 0; i < n->n_engines; i++)
        ebb_engine_entry_fini(&n->engines[i].entry);
    free(n->engines);
    free(n->commands);
    ebb_buf_fini(&n->editor);
    ebb_buf_fini(&n->drafts);
    ebb_buf_fini(&n->socket);
}

/* -- Files: those of models, those named, and what each command reaches ------------------------------------ */

/* A model, and its folder: other parts, a projector, a better file of the same network lie beside it. */
static void allow_model(ebb_cli_reach *r, const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    ebb_buf folder = { 0 };

    if (name)
        ebb_cli_allow_named(r, name);
    if (slash && slash > name && ebb_buf_add(&folder, name, (size_t)(slash - name)))
        ebb_cli_allow_named(r, folder.data);
    ebb_buf_fini(&folder);
}

static void allow_store(void *arg, const char *dir)
{
    ebb_cli_allow_named(arg, dir);
}

/* "dir:dir:file" */
static void allow_list(ebb_cli_reach *r, const char *list)
{
    ebb_buf one = { 0 };

    while (ebb_path_next(&list, &one))
        ebb_cli_allow_named(r, one.data);
    ebb_buf_fini(&one);
}

/* A link in a folder of models is followed to what is called as a model itself: no key becomes one by a link. */
static void allow_linked_model(void *arg, const char *path)
{
    char *real = realpath(path, NULL);

    if (real && strcmp(real, path) != 0 && ebb_cli_is_model_file(real))
        ebb_cli_allow_named(arg, real);
    free(real);
}

static void allow_models(ebb_cli_reach *r, const ebb_args *a)
{
    ebb_buf remembered = { 0 };

    allow_model(r, a->model);
    allow_model(r, a->here_model);
    allow_model(r, ebb_cli_draft_model_name(a));
    allow_model(r, a->quality);
    if (ebb_models_remembered(&remembered))
        allow_model(r, ebb_buf_text(&remembered));
    ebb_buf_fini(&remembered);
    allow_list(r, ebb_path_models());
    ebb_models_each_own(allow_linked_model, r);
    ebb_stores_each_place(allow_store, r);
}

/* A word may be a path, or have one behind "@" or "="; a longer one is a text. */
static void allow_words(ebb_cli_reach *r)
{
    enum { MAX_PATH = 4096 };

    for (int i = 1; i < n_words; i++)
        for (const char *w = strlen(words[i]) < MAX_PATH ? words[i] : NULL; w;
             w = strpbrk(w, "@="), w = w ? w + 1 : NULL)
            ebb_cli_allow_named(r, w);
}

/* The file of engines, prompts and themes, which are read again later. */
static void allow_config(ebb_cli_reach *r)
{
    ebb_buf path = { 0 };

    ebb_cli_allow_own(r, EBB_DIR_CONFIG, EBB_REACH_READ, false);
    if (ebb_path_in(EBB_DIR_CONFIG, "engines", &path, NULL) == EBB_OK)
        ebb_cli_allow_named(r, path.data);
    if (ebb_path_in(EBB_DIR_CONFIG, "prompts", &path, NULL) == EBB_OK)
        ebb_cli_allow_linked_texts(r, path.data);
    if (ebb_path_in(EBB_DIR_CONFIG, "themes", &path, NULL) == EBB_OK)
        ebb_cli_allow_linked_texts(r, path.data);
    ebb_buf_fini(&path);
}

static void allow_system(ebb_cli_reach *r)
{
    static const char *const devices[] = { "/dev/null", "/dev/tty", "/dev/pts", "/proc/pressure" };

    if (r->home)
        ebb_confine_allow_all_but_hidden(&r->c, r->home);
    else
        ebb_confine_allow(&r->c, "/", EBB_REACH_READ);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        ebb_confine_allow(&r->c, devices[i], EBB_REACH_DEVICE);
    ebb_cli_allow_named(r, "/proc/self/exe");
    ebb_cli_allow_named(r, "~/.terminfo");
    ebb_cli_allow_named(r, ".");
}

/* Files that this command was told to write; one has to be there to be allowed. */
static void allow_outputs(ebb_cli_reach *r, const ebb_args *a)
{
    int fd = a->out_path ? open(a->out_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

    ebb_file_close(fd);
    if (a->out_path)
        ebb_confine_allow(&r->c, a->out_path, EBB_REACH_WRITE);
}

/* Where a model that is fetched goes to; and what may say whose certificates count. */
static void allow_pull(ebb_cli_reach *r)
{
    static const char *const variables[] = { "SSL_CERT_FILE", "SSL_CERT_DIR" };
    ebb_buf folder = { 0 };

    if (ebb_models_folder(&folder, NULL) == EBB_OK && ebb_file_mkdirs(folder.data, NULL) == EBB_OK)
        ebb_confine_allow(&r->c, folder.data, EBB_REACH_WRITE);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        allow_list(r, getenv(variables[i]));
    ebb_buf_fini(&folder);
}

/* Where /pull will put a model.  In a folder that is newer than the rules the broker opens it, but not in a hidden one,
 * which therefore has to be there; others, of a disk that is not mounted yet perhaps, are none of our making. */
static void allow_pulled(ebb_cli_reach *r)
{
    ebb_buf folder = { 0 };
    bool is_there = ebb_models_folder(&folder, NULL) == EBB_OK &&
                    (!ebb_path_models() || !strstr(folder.data, "/.") || ebb_file_mkdirs(folder.data, NULL) == EBB_OK);

    if (is_there)
        ebb_cli_allow_named(r, folder.data);
    ebb_buf_fini(&folder);
}

static void allow_files(ebb_cli_reach *r, const ebb_args *a, const needs *n, ebb_cli_needs kind)
{
    ebb_reach own = a->is_private ? EBB_REACH_READ : EBB_REACH_WRITE;   /* then the kernel sees to it, too */
    bool makes = !a->is_private, keeps = kind != EBB_CLI_LOOK && kind != EBB_CLI_PROBE && kind != EBB_CLI_PULL;

    allow_system(r);
    allow_config(r);
    ebb_cli_allow_own(r, EBB_DIR_DATA, EBB_REACH_READ, makes && kind == EBB_CLI_CHAT);
    if (makes && kind == EBB_CLI_CHAT)
        allow_pulled(r);
    ebb_cli_allow_kept(r, EBB_DIR_STATE, own, makes && keeps);
    ebb_cli_allow_kept(r, EBB_DIR_CACHE, own, makes);
    if (n->drafts.len)
        ebb_confine_allow(&r->c, n->drafts.data, EBB_REACH_WRITE);
    allow_models(r, a);
    allow_words(r);
    if (kind == EBB_CLI_PULL)
        allow_pull(r);
    allow_outputs(r, a);
    if (a->template_name)
        ebb_cli_allow_named(r, a->template_name);
    for (size_t i = 0; i < n->n_engines; i++) {
        const ebb_engine_entry *e = &n->engines[i].entry;
        if (e->key_file)
            ebb_cli_allow_named(r, e->key_file);
        if (e->ca_file)
            ebb_cli_allow_named(r, e->ca_file);
    }
}

/* -- All of it ------------------------------------------------------------------------------------------ */

static bool is_off(void)
{
    const char *v = getenv("EBB_NO_SANDBOX");

    return v && *v;
}

static void enter(const ebb_args *a, ebb_cli_needs kind, const char *editor, needs *n)
{
    const char *home = getenv("HOME");
    ebb_cli_reach r = { .home = home && home[0] == '/' ? realpath(home, NULL) : NULL };
    ebb_pull_words pull = ebb_pull_process_words(ebb_cli_program());
    bool has_figures = kind == EBB_CLI_CHAT || kind == EBB_CLI_ANSWER || kind == EBB_CLI_SERVE;   /* `ebb stat` */
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;

    if (ebb_path_run(&n->drafts, NULL) != EBB_OK ||
        ((has_figures || n->n_commands > 0) && ebb_file_mkdirs(n->drafts.data, NULL) != EBB_OK))
        ebb_buf_clear(&n->drafts);
    if (kind == EBB_CLI_CHAT && !add_editor(n, editor))
        st = EBB_FAIL(&err, EBB_NOMEM, "no memory for the editor's command");
    ebb_confine_begin(&r.c, n->connect);
    if (kind == EBB_CLI_CHAT && !a->is_private)
        add_command(n, pull.argv, EBB_BROKER_A_REPOSITORY);
    if (kind == EBB_CLI_CHAT)
        add_filters(n, a);
    if (kind == EBB_CLI_CHAT && a->runs_shell)
        add_command(n, ebb_command_output_words(), EBB_BROKER_A_LINE);
    if (kind == EBB_CLI_SERVE && a->socket_path)
        st = ebb_path_expand(a->socket_path, &n->socket, &err);
    if (st == EBB_OK && (kind == EBB_CLI_CHAT || n->n_commands || n->socket.len))
        st = ebb_broker_start(&(ebb_broker_opts){ .commands = n->commands, .n_commands = n->n_commands, .home = r.home,
                                                  .drafts = n->drafts.len ? n->drafts.data : NULL,
                                                  .socket = n->socket.len ? n->socket.data : NULL }, &err);
    if (st == EBB_OK) {
        allow_files(&r, a, n, kind);
        ebb_uring_keep();
        st = ebb_confine_enter(&r.c, &err);
    }
    if (st != EBB_OK)
        ebb_log("cli", "not confined: %s", err.msg);
    free(r.home);
}

void ebb_cli_confine(const ebb_args *a, ebb_cli_needs kind, const char *editor)
{
    needs n = { .connect = kind == EBB_CLI_PULL ? EBB_CONNECT_INTERNET : EBB_CONNECT_NOTHING };

    if (!is_off() && find_needs(a, kind, &n))
        enter(a, kind, editor, &n);
    free_needs(&n);
}

/* -- For the doctor ---------------------------------------------------------------------------------------- */

/* The confinement in force as a byte: bit 0 files, bit 1 connections and programs. */
static int try_here(void)
{
    char *const argv[] = { fixed("/bin/true"), NULL };
    ebb_confinement c;
    int fd, holds = 0;

    ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
    if (ebb_confine_enter(&c, NULL) != EBB_OK)
        return 0;
    fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    holds |= fd < 0 && errno == EACCES ? 1 : 0;
    execv(argv[0], argv);
    if (errno == EACCES)
        holds |= socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 && errno == EACCES ? 2 : 0;
    return holds;
}

bool ebb_cli_try_confinement(ebb_confined *out, const char **why)
{
    ebb_confinement c;
    int status = 0;
    pid_t pid;

    *why = NULL;
    *out = (ebb_confined){ 0 };
    if (is_off()) {
        *why = "EBB_NO_SANDBOX is set";
        return false;
    }
    ebb_confine_begin(&c, EBB_CONNECT_NOTHING);
    ebb_file_close(c.ruleset);
    pid = fork();
    if (pid == 0)
        _exit(try_here());
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        status = 0;
    out->landlock_abi = WEXITSTATUS(status) & 1 ? c.landlock_abi : 0;
    out->has_filter = (WEXITSTATUS(status) & 2) != 0;
    if (!out->landlock_abi && !out->has_filter)
        *why = "the kernel has neither Landlock nor seccomp, or a container forbids them";
    return *why == NULL;
}
