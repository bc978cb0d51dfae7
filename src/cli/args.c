/* Reading a command line, and --help (args.h). */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "options.h"

/* -- One option ----------------------------------------------------------------------- */

/* *elsewhere: other commands have it. */
static const ebb_option *find_option(const char *word, size_t n, unsigned mask, bool *elsewhere)
{
    *elsewhere = false;
    for (size_t i = 0; i < ebb_n_options; i++) {
        const ebb_option *o = &ebb_options[i];
        bool same = (o->short_name && strlen(o->short_name) == n && memcmp(o->short_name, word, n) == 0) ||
                    (strlen(o->long_name) == n && memcmp(o->long_name, word, n) == 0);
        if (same && o->mask & mask)
            return o;
        *elsewhere |= same;
    }
    return NULL;
}

/* Of several rows with the name the first one: they begin with what chats and runs mean by it.  A row of `engines` only
 * where there is no other. */
static const ebb_option *find_config_option(const char *name)
{
    const ebb_option *found = NULL;

    for (size_t i = 0; i < ebb_n_options; i++)
        if (strcmp(ebb_options[i].long_name + strlen("--"), name) == 0 && (!found || found->mask == EBB_FOR_ENGINES))
            found = &ebb_options[i];
    return found;
}

/* An engine that a command passes over: what the file calls a model is one of that engine's. */
static void note_engine(ebb_args *a, const ebb_option *o, const char *value)
{
    if (strcmp(o->long_name, "--engine") == 0)
        a->is_model_elsewhere = *value && strcmp(value, "here") != 0;
    else if (strcmp(o->long_name, "--host") == 0)
        a->is_model_elsewhere = *value != '\0';
}

ebb_status ebb_args_set(ebb_args *a, const char *name, const char *value, unsigned mask, ebb_error *err)
{
    static const char *const switches[] = { "off", "no", "false", "0", "on", "yes", "true", "1", NULL };
    const ebb_option *o = find_config_option(name);
    int state;

    if (!o)
        return EBB_FAIL(err, EBB_USAGE, "unknown option '%.60s'", name);
    if (!(o->mask & mask) || o->mask == EBB_FOR_ENGINES) {
        note_engine(a, o, value);
        return EBB_OK;
    }
    if (o->mask & EBB_NOT_IN_CONFIG)
        return EBB_FAIL(err, EBB_USAGE, "%s: only the command line can say it", name);
    if (o->arg)
        return ebb_option_apply(o, a, value, err);
    state = ebb_option_name_index(switches, value);
    if (state < 0)
        return EBB_FAIL(err, EBB_USAGE, "%s: give on or off, not '%.60s'", name, value);
    if (state >= 4)
        return ebb_option_apply(o, a, NULL, err);
    if (o->kind == EBB_OPTION_FLAG)
        *(bool *)((char *)a + o->offset) = false;
    return EBB_OK;
}

bool ebb_args_option(size_t i, ebb_option_info *out)
{
    const ebb_option *o = &ebb_options[i < ebb_n_options ? i : 0];

    *out = (ebb_option_info){ o->short_name, o->long_name, o->arg, o->help, o->names, o->mask };
    return i < ebb_n_options;
}

/* -- A command line -------------------------------------------------------------------- */

static ebb_status add_operand(ebb_args *a, const char *word, ebb_error *err)
{
    if (a->n_words == sizeof a->words / sizeof a->words[0])
        return EBB_FAIL(err, EBB_USAGE, "%s: more than %d words; put a text in quotes", word, EBB_ARGS_WORDS);
    a->words[a->n_words++] = word;
    return EBB_OK;
}

/* Options of other programs, and what they are called here. */
static const char *const foreign_options[][2] = {
    { "--api-key", "a key on the command line could be seen by others: `ebb engines add NAME ADDRESS "
                   "--key-file FILE`" },
    { "--base-url", "-e ADDRESS names a remote engine" },
    { "--server", "-e ADDRESS names a remote engine" },
    { "--ctx-size", "it is --ctx N here" },
    { "--num-ctx", "it is --ctx N here" },
    { "--n-predict", "it is -n N here" },
    { "--max-tokens", "it is -n N here" },
    { "--num-predict", "it is -n N here" },
    { "--temperature", "it is --temp X here" },
    { "--system-prompt", "it is --system TEXT here" },
    { "-sys", "it is --system TEXT here" },
    { "--cache-type-k", "it is --kv K/V here" },
    { "--cache-type-v", "it is --kv K/V here" },
    { "--model-draft", "it is --draft MODEL here" },
    { "-md", "it is --draft MODEL here" },
    { "--num-gpu", "ebb uses no GPU; --resident N keeps layers in memory; `ebb ollama --num-gpu N` is for Ollama's "
                   "estimate" },
    { "--window", "models with windows use them without an option; --overflow decides what leaves a full context" },
    { "--sliding-window",
      "models with windows use them without an option; --overflow decides what leaves a full context" },
    { "--context-length", "it is --ctx N here, or --ctx max for the longest that stays in memory" },
    { "--kv-type", "it is --kv TYPE here" },
    { "--strategy", "--placement interleaved, first or last decides which layers stay" },
    { "--num-parallel", "`ebb serve` answers as many at once as its context holds; `ebb ollama --parallel N` is for "
                        "Ollama's estimate" },
    { "--n-gpu-layers", "ebb uses no GPU; --resident N keeps layers in memory, by default as many as fit" },
    { "-ngl", "ebb uses no GPU; --resident N keeps layers in memory, by default as many as fit" },
    { "--mlock", "layers that fit stay in memory anyway; see `ebb plan`" },
    { "--no-mmap", "--io pread reads without mapping; by default ebb uses the fastest reader" },
    { "--interactive", "`ebb` without a command is the chat" },
    { "-i", "`ebb` without a command is the chat" },
    { "-cnv", "`ebb` without a command is the chat" },
    { "--conversation", "`ebb` without a command is the chat" },
    { "--format", "--json-schema SCHEMA of `ebb run` has the model write JSON; --json prints answer and figures" },
    { "--grammar", "it is an option of `ebb run`; in the chat it is /grammar FILE" },
    { "--json-schema", "it is an option of `ebb run`; in the chat it is /schema FILE" },
};

static ebb_status unknown_option(const char *word, size_t n, unsigned mask, bool elsewhere, ebb_error *err)
{
    ebb_closest near = ebb_closest_begin(word, n);

    for (size_t i = 0; i < sizeof foreign_options / sizeof *foreign_options; i++)
        if (strlen(foreign_options[i][0]) == n && memcmp(foreign_options[i][0], word, n) == 0)
            return EBB_FAIL(err, EBB_USAGE, "%s: no such option %s; %s", word, elsewhere ? "of this command" : "here",
                            foreign_options[i][1]);
    if (elsewhere)
        return EBB_FAIL(err, EBB_USAGE, "%s is an option of other commands; see --help", word);
    ebb_closest_try(&near, "--help");
    for (size_t i = 0; i < ebb_n_options; i++)
        if (ebb_options[i].mask & mask)
            ebb_closest_try(&near, ebb_options[i].long_name);
    if (near.best)
        return EBB_FAIL(err, EBB_USAGE, "%s: no such option; did you mean %s?", word, near.best);
    return EBB_FAIL(err, EBB_USAGE, "%s: no such option; see --help", word);
}

/* An option as it stands on a command line. */
typedef struct said_option {
    const char       *word, *value;  /* value: NULL: none */
    size_t            n;             /* bytes of the option's name */
    const ebb_option *row;           /* NULL: the command has no such option ... */
    bool              elsewhere;     /* ... and others have */
} said_option;

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* The option at argv[*i]; *i is its last word then. */
static said_option take_option(int argc, char **argv, unsigned mask, int *i)
{
    const char *word = argv[*i], *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    said_option s = { .word = word, .value = equals ? equals + 1 : NULL,
                      .n = equals ? (size_t)(equals - word) : strlen(word) };

    s.row = find_option(word, s.n, mask, &s.elsewhere);
    if (s.row && s.row->arg && !s.value && *i + 1 < argc)
        s.value = argv[++*i];
    return s;
}

ebb_args_question ebb_args_asks(int argc, char **argv, unsigned mask)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return EBB_ASKS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return EBB_ASKS_VERSION;
        if (is_option(argv[i]))
            take_option(argc, argv, mask, &i);
    }
    return EBB_ASKS_NOTHING;
}

static ebb_status apply_option(const said_option *s, ebb_args *a, unsigned mask, ebb_error *err)
{
    if (!s->row)
        return unknown_option(s->word, s->n, mask, s->elsewhere, err);
    if (s->row->arg && !s->value)
        return EBB_FAIL(err, EBB_USAGE, "%s: needs %s", s->word, s->row->arg);
    if (!s->row->arg && s->value)
        return EBB_FAIL(err, EBB_USAGE, "%s: takes no value", s->word);
    if (s->row->mask == (EBB_FOR_PLAN | EBB_FOR_OLLAMA))
        a->ollama_option = s->row->long_name;
    return ebb_option_apply(s->row, a, s->value, err);
}

static ebb_status read_command_line(ebb_args *a, int argc, char **argv, unsigned mask, ebb_error *err)
{
    ebb_status st = EBB_OK;
    bool only_words = false;

    for (int i = 1; i < argc && st == EBB_OK; i++) {
        if (only_words || !is_option(argv[i])) {
            st = add_operand(a, argv[i], err);
        } else if (strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else {
            said_option s = take_option(argc, argv, mask, &i);
            st = apply_option(&s, a, mask, err);
        }
    }
    return st;
}

/* The engine in this process has no name. */
static bool is_same_engine(const ebb_args *a, const ebb_args *b)
{
    return a->engine_name && b->engine_name ? strcmp(a->engine_name, b->engine_name) == 0
                                            : a->engine_name == b->engine_name;
}

/* The configuration's part of *a, where the command line `said` something that only one of them can say.  But what the
 * configuration keeps private is not stored because a session is named. */
static void give_way(ebb_args *a, const ebb_args *said)
{
    if (a->is_model_elsewhere || (said->is_engine_given && !is_same_engine(a, said)))
        a->model = NULL;                         /* one of another engine's */
    a->is_model_of_config = a->model && !said->model;
    a->system_given = said->system != NULL;
    a->is_private_of_config = a->is_private && !said->is_private;
    a->template_given = said->template_name != NULL;
    if (said->session || said->is_private)
        a->continue_last = false;
    if (said->continue_last || said->is_private)
        a->session = NULL;
    if (said->json_schema)
        a->grammar = NULL;
    if (said->grammar)
        a->json_schema = NULL;
    if (said->socket_path)
        a->has_port = false;
    if (said->has_port || said->host)
        a->socket_path = NULL;
    if (said->engine.n_draft || (said->draft && strcmp(said->draft, "none") != 0))
        a->engine.no_speculation = false;
    if (said->is_inline)
        a->plain = false;
}

ebb_status ebb_args_parse(ebb_args *a, int argc, char **argv, unsigned mask, ebb_error *err)
{
    ebb_args said = { 0 };
    ebb_status st = read_command_line(&said, argc, argv, mask, err);

    if (st == EBB_OK && said.socket_path && (said.has_port || said.host))
        st = EBB_FAIL(err, EBB_USAGE,
                      "--socket %s is a place to listen, --port and --host are another: give one of the two",
                      said.socket_path);
    if (st == EBB_OK && said.attaches && (said.has_port || said.host))
        st = EBB_FAIL(err, EBB_USAGE, "--attach is for a server at a socket, --port and --host are for one at a TCP "
                                      "port: leave them out");
    if (st != EBB_OK)
        return st;
    give_way(a, &said);
    st = read_command_line(a, argc, argv, mask, err);
    if (st == EBB_OK && a->session && a->continue_last)
        st = EBB_FAIL(err, EBB_USAGE, "-c goes on with the last session, -s %s with that one: which of the two?",
                      a->session);
    return st;
}

void ebb_args_rewrite(int argc, char **argv, unsigned mask, const char *without, const char *const more[],
                      size_t n_more, const char **out)
{
    size_t n = 0;
    int i = 0;

    if (argc > 0)
        out[n++] = argv[i++];
    while (i < argc && strcmp(argv[i], "--") != 0) {
        int first = i;
        said_option s = is_option(argv[i]) ? take_option(argc, argv, mask, &i) : (said_option){ 0 };

        if (!s.row || strcmp(s.row->long_name, without) != 0)
            for (int k = first; k <= i; k++)
                out[n++] = argv[k];
        i++;
    }
    for (size_t k = 0; k < n_more; k++)
        out[n++] = more[k];
    while (i < argc)
        out[n++] = argv[i++];
    out[n] = NULL;
}

/* -- Help ------------------------------------------------------------------------------- */

/* The text behind an option's names, in lines of 80. */
static void print_help(const char *names, const char *text)
{
    enum { INDENT = 29, WIDTH = 80 };
    int at = printf("  %-26s ", names);

    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        if (at > INDENT && at + 1 + (int)n > WIDTH)
            at = printf("\n%*s", INDENT, "") - 1;
        else if (at > INDENT)
            at += printf(" ");
        at += printf("%.*s", (int)n, text);
    }
    putchar('\n');
}

void ebb_args_help(unsigned mask)
{
    const char *group = NULL, *printed = NULL;

    for (size_t i = 0; i < ebb_n_options; i++) {
        const ebb_option *o = &ebb_options[i];
        char names[48];
        if (o->group)
            group = o->group;
        if (!(o->mask & mask))
            continue;
        if (group != printed)
            printf("\n%s:\n", group);
        printed = group;
        snprintf(names, sizeof names, "%s%s%s%s%s", o->short_name ? o->short_name : "  ",
                 o->short_name ? ", " : "  ", o->long_name, o->arg ? " " : "", o->arg ? o->arg : "");
        print_help(names, o->help);
    }
}
