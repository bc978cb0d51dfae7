/* The table of options, and what each does with its value (options.h). */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sampling_range.h"
#include "base/buf.h"
#include "base/size.h"
#include "models/plan_text.h"
#include "tui.h"

enum { MOST = 100000000 };       /* largest value of a COUNT option */

/* Short, for the rows. */
#define FLAG  EBB_OPTION_FLAG
#define TEXT  EBB_OPTION_TEXT
#define COUNT EBB_OPTION_COUNT
#define SIZE  EBB_OPTION_SIZE
#define REAL  EBB_OPTION_REAL
#define NAME  EBB_OPTION_NAME
#define CALL  EBB_OPTION_CALL
#define AT(field) offsetof(ebb_args, field)

/* Where a name stands is the value that ebb_option_apply sets. */
static const char *const mode_names[] = {
    [EBB_MODE_BALANCED] = "balanced", [EBB_MODE_MAX_TPS] = "max-tps", [EBB_MODE_MAX_CONTEXT] = "max-context", NULL,
};
static const char *const io_names[] = {
    [EBB_IO_AUTO] = "auto", [EBB_IO_URING] = "uring", [EBB_IO_PREAD] = "pread", [EBB_IO_MMAP] = "mmap", NULL,
};
static const char *const cpu_names[] = {
    [EBB_ISA_AUTO] = "auto", [EBB_ISA_SCALAR] = "scalar", [EBB_ISA_AVX2] = "avx2", [EBB_ISA_AVXVNNI] = "avxvnni",
    [EBB_ISA_AVX512] = "avx512", [EBB_ISA_AMX] = "amx", [EBB_ISA_NEON] = "neon", NULL,
};
static const char *const place_names[] = {
    [EBB_PLACEMENT_INTERLEAVED] = "interleaved", [EBB_PLACEMENT_FIRST] = "first", [EBB_PLACEMENT_LAST] = "last", NULL,
};
_Static_assert(sizeof(ebb_mode) == sizeof(unsigned) && sizeof(ebb_io) == sizeof(unsigned) &&
               sizeof(ebb_isa) == sizeof(unsigned) && sizeof(ebb_placement) == sizeof(unsigned), "a name's value");
static const char *const editing_names[] = { "emacs", "vi", NULL };
static const char *const bell_names[] = { "long", "always", "never", NULL };
static const char *const notify_names[] = { "desktop", "bell", NULL };
static const char *const links_names[] = { "auto", "always", "never", NULL };
static const char *const color_names[] = { "auto", "always", "never", NULL };

/* -- Values ---------------------------------------------------------------------------- */

/* Names that values have in other programs. */
static const char *hint_for_value(const char *value)
{
    static const char *const hints[][2] = {
        { "int8", "int8 is q8_0 here" }, { "q8", "q8 is q8_0 here" }, { "int4", "int4 is q4_0 here" },
        { "q4", "q4 is q4_0 here" },
        { "fp16", "fp16 is f16 here" }, { "fp32", "fp32 is f32 here" }, { "maxTPS", "maxTPS is max-tps here" },
        { "maxtps", "maxTPS is max-tps here" },
        { "maxContext", "maxContext is max-context here" }, { "maxcontext", "maxContext is max-context here" },
        { "first_n", "first_n is first here" }, { "last_n", "last_n is last here" },
    };

    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(hints[i][0], value) == 0)
            return hints[i][1];
    return NULL;
}

int ebb_option_name_index(const char *const *names, const char *value)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    return -1;
}

static bool parse_u64(const char *s, uint64_t max, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(s, &end, 10);
    return isdigit((unsigned char)*s) && *end == '\0' && errno == 0 && *out <= max;
}

/* -- Options that are more than a field ------------------------------------------------- */

static ebb_status set_resident(ebb_args *a, const char *value, ebb_error *err)
{
    size_t n = strlen(value);
    char digits[16];
    uint64_t v;

    a->engine.has_resident = strcmp(value, "auto") != 0;
    if (!a->engine.has_resident)
        return EBB_OK;
    a->engine.resident_is_percent = n > 0 && value[n - 1] == '%';
    n -= a->engine.resident_is_percent;
    if (n >= sizeof digits)
        n = sizeof digits - 1;
    memcpy(digits, value, n);
    digits[n] = '\0';
    if (!parse_u64(digits, a->engine.resident_is_percent ? 100 : 100000, &v))
        return EBB_FAIL(err, EBB_USAGE, "--resident %s: give a number of layers, a percentage like 50%%, or auto",
                        value);
    a->engine.resident = (uint32_t)v;
    return EBB_OK;
}

static ebb_status set_kv(ebb_args *a, const char *value, ebb_error *err)
{
    if (ebb_kv_parse(value, &a->engine))
        return EBB_OK;
    if (hint_for_value(value))
        return EBB_FAIL(err, EBB_USAGE, "--kv %s: %s", value, hint_for_value(value));
    return EBB_FAIL(err, EBB_USAGE, "--kv %s: give f16, q8_0, q4_0 or f32, or two of them as K/V", value);
}

static ebb_status set_raw(ebb_args *a, const char *value, ebb_error *err)
{
    (void)value;
    (void)err;
    a->template_name = "none";
    return EBB_OK;
}

static ebb_status set_bos(ebb_args *a, const char *value, ebb_error *err)
{
    (void)value;
    (void)err;
    a->no_bos = false;                           /* of the configuration, or further left */
    return EBB_OK;
}

static ebb_status set_overflow(ebb_args *a, const char *value, ebb_error *err)
{
    int i = ebb_option_name_index(ebb_overflow_policy_names, value);

    if (i < 0)
        return EBB_FAIL(err, EBB_USAGE, "--overflow %s: give ask, forget, slide, compact, grow or stop", value);
    a->overflow = (ebb_overflow_policy)i;
    a->overflow_given = true;
    return EBB_OK;
}

static ebb_status set_count(ebb_args *a, const char *value, ebb_error *err)
{
    uint64_t v = 0;

    if (!parse_u64(value, EBB_CHAT_MAX_ANSWERS, &v) || v == 0)
        return EBB_FAIL(err, EBB_USAGE, "--count %s: give how many answers, 1 to %u", value, EBB_CHAT_MAX_ANSWERS);
    a->n_answers = a->engine.n_sequences = (uint32_t)v;
    return EBB_OK;
}

static ebb_status set_n(ebb_args *a, const char *value, ebb_error *err)
{
    uint64_t v = 0;

    if (strcmp(value, "-1") != 0 && !parse_u64(value, 1000000, &v))      /* -1: as many as there are, as elsewhere */
        return EBB_FAIL(err, EBB_USAGE, "-n %s: give a number of tokens", value);
    a->n_predict = (uint32_t)v;
    a->has_n_predict = true;
    a->sampling_given |= EBB_SAMPLING_PREDICT;
    return EBB_OK;
}

/* "3G/s" to bytes per second: of speeds a G is 10^9. */
static ebb_status parse_speed(const char *name, const char *value, double *out, ebb_error *err)
{
    static const char *const units[] = { "kKmMgGtT", "mMgGtT", "gGtT", "tT" };
    size_t n = strlen(value);
    char size[32];
    uint64_t v;

    if (n > 2 && strcmp(value + n - 2, "/s") == 0)
        n -= 2;
    if (n < sizeof size) {
        memcpy(size, value, n);
        size[n] = '\0';
    }
    if (n >= sizeof size || !ebb_size_parse(size, &v) || v == 0)
        return EBB_FAIL(err, EBB_USAGE, "%s %s: give a speed like 3G/s or 500M/s", name, value);
    *out = (double)v;
    for (size_t unit = 0; unit < 4 && strpbrk(size, units[unit]) && !strchr(size, 'i'); unit++)
        *out *= 1000.0 / 1024;
    return EBB_OK;
}

static ebb_status set_disk(ebb_args *a, const char *value, ebb_error *err)
{
    return parse_speed("--disk", value, &a->disk_bytes_s, err);
}

static ebb_status set_memory(ebb_args *a, const char *value, ebb_error *err)
{
    return parse_speed("--memory", value, &a->memory_bytes_s, err);
}

static ebb_status set_ctx(ebb_args *a, const char *value, ebb_error *err)
{
    uint64_t v = EBB_CTX_MAX;

    if (strcmp(value, "max") != 0 && !parse_u64(value, MOST, &v))
        return EBB_FAIL(err, EBB_USAGE,
                        "--ctx %s: give a number of tokens up to 100000000, or max: the longest that stays in memory",
                        value);
    a->engine.n_ctx = (uint32_t)v;
    return EBB_OK;
}

static ebb_status set_chunk(ebb_args *a, const char *value, ebb_error *err)
{
    uint64_t v = 0;

    if (!parse_u64(value, EBB_MAX_BATCH, &v))
        return EBB_FAIL(err, EBB_USAGE, "--chunk %s: give a number of tokens, %u at most", value, EBB_MAX_BATCH);
    a->engine.n_batch = (uint32_t)v;
    return EBB_OK;
}

static ebb_status set_greedy(ebb_args *a, const char *value, ebb_error *err)
{
    (void)value;
    (void)err;
    a->sampling.temp = 0;
    a->sampling_given |= EBB_SAMPLING_BIT(temp);
    return EBB_OK;
}

static ebb_status set_session(ebb_args *a, const char *value, ebb_error *err)
{
    a->session = value;
    return *value ? EBB_OK
                  : EBB_FAIL(err, EBB_USAGE, "-s: give the name of a session; `ebb sessions list` "
                                             "shows the ones there are");
}

static ebb_status set_engine(ebb_args *a, const char *value, ebb_error *err)
{
    a->engine_name = strcmp(value, "here") == 0 ? NULL : value;
    a->is_engine_given = true;
    return *value ? EBB_OK
                  : EBB_FAIL(err, EBB_USAGE, "-e: give the name of an engine; `ebb engines list` shows the ones "
                                             "there are");
}

ebb_status ebb_args_add_filter(ebb_args *a, ebb_filter_choice choice, ebb_error *err)
{
    ebb_status st = ebb_filter_choice_check(&choice, err);

    if (st == EBB_OK && a->n_filters == sizeof a->filters / sizeof *a->filters)
        return EBB_FAIL(err, EBB_USAGE, "filter %.*s: there are already %zu, the most there can be",
                        (int)choice.n_ending,
                        choice.ending, a->n_filters);
    if (st == EBB_OK)
        a->filters[a->n_filters++] = choice;
    return st;
}

static ebb_status set_filter(ebb_args *a, const char *value, ebb_error *err)
{
    size_t n = strcspn(value, "=");

    if (!value[n])
        return EBB_FAIL(err, EBB_USAGE, "--filter %s: give an ending and a command, as in '.pdf=pdftotext %%s -'",
                        value);
    return ebb_args_add_filter(a, (ebb_filter_choice){ value, n, value + n + 1 }, err);
}

static ebb_status set_seed(ebb_args *a, const char *value, ebb_error *err)
{
    return parse_u64(value, INT64_MAX, &a->sampling.seed)        /* as JSON has it, in records and requests */
               ? EBB_OK
               : EBB_FAIL(err, EBB_USAGE, "--seed %s: give a whole number up to %" PRId64, value, INT64_MAX);
}

static ebb_status set_port(ebb_args *a, const char *value, ebb_error *err)
{
    uint64_t v;

    if (!parse_u64(value, 65535, &v))
        return EBB_FAIL(err, EBB_USAGE, "--port %s: give a number up to 65535; 0 takes a free one", value);
    a->port = (uint32_t)v;
    a->has_port = true;
    return EBB_OK;
}

static ebb_status set_host(ebb_args *a, const char *value, ebb_error *err)
{
    if (!*value || (size_t)snprintf(a->shared, sizeof a->shared, "ssh://%s", value) >= sizeof a->shared)
        return EBB_FAIL(err, EBB_USAGE, "--host: give USER@BOX, as for ssh");
    a->engine_name = a->shared;
    a->is_engine_given = true;
    return EBB_OK;
}

/* -- The table --------------------------------------------------------------------------- */

#define TALK (EBB_FOR_CHAT | EBB_FOR_RUN)
#define ESTIMATE (EBB_FOR_PLAN | EBB_FOR_OLLAMA)

const ebb_option ebb_options[] = {
    { "What to talk to", "-m", "--model", "MODEL",
      "model file (GGUF), or the name of one found here; default: the best one, or the built-in guide",
      EBB_FOR_ENGINE | EBB_FOR_DOCTOR | EBB_FOR_OLLAMA, TEXT, AT(model), 0, 0 },
    { 0, "-m", "--model", "MODEL", "the model to ask it for", EBB_FOR_ENGINES, TEXT, AT(model), 0, 0 },
    { 0, "-e", "--engine", "NAME",
      "a remote engine: its name (`ebb engines`) or address; here: this process", TALK, CALL, 0, 0,
      set_engine },
    { 0, 0, "--key-file", "FILE", "the file with its key; only you may be able to read it", EBB_FOR_ENGINES, TEXT,
      AT(key_file), 0, 0 },
    { 0, 0, "--key-variable", "NAME", "or the variable that holds it", EBB_FOR_ENGINES, TEXT, AT(key_variable), 0, 0 },
    { 0, 0, "--key-command", "COMMAND", "or the command that prints it", EBB_FOR_ENGINES, TEXT, AT(key_command), 0, 0 },
    { 0, 0, "--ca-file", "FILE", "a certificate to trust besides the system's", EBB_FOR_ENGINES, TEXT,
      AT(ca_file), 0, 0 },
    { 0, 0, "--kind", "KIND", "openai, llama-server, vllm, sglang, ollama, lm-studio or ebb; default: ebb finds out",
      EBB_FOR_ENGINES, TEXT, AT(engine_kind), 0, 0 },
    { 0, 0, "--insecure", 0, "its key may go over http, where others can read it", EBB_FOR_ENGINES, FLAG,
      AT(is_insecure), 0, 0 },
    { 0, 0, "--host", "USER@BOX", "the ebb of another machine, through ssh", TALK, CALL, 0, 0, set_host },
    { 0, 0, "--socket", "FILE", "the UNIX socket to listen at; default: serve.sock in $XDG_RUNTIME_DIR/ebb",
      EBB_FOR_SERVE, TEXT, AT(socket_path), 0, 0 },
    { 0, 0, "--port", "N", "listen at a TCP port instead; 0: any free one", EBB_FOR_SERVE, CALL, 0, 0, set_port },
    { 0, 0, "--host", "ADDRESS",
      "the address to listen on (127.0.0.1); anything but loopback needs a key", EBB_FOR_SERVE, TEXT,
      AT(host), 0, 0 },
    { 0, 0, "--key-file", "FILE",
      "the file with the key that clients must send; only you may be able to read it; none: no key",
      EBB_FOR_SERVE, TEXT, AT(key_file), 0, 0 },
    { 0, 0, "--attach", 0,
      "connect standard input and output to the running server, or start one; used by ssh",
      EBB_FOR_SERVE | EBB_NOT_IN_CONFIG, FLAG,     /* the server that it starts reads the file as well */
      AT(attaches), 0, 0 },
    { 0, 0, "--idle", "SECONDS", "exit after this long without a request; 0: never", EBB_FOR_SERVE, COUNT,
      AT(idle_s), 0, 0 },
    { 0, "-c", "--continue", 0, "go on with the last session", TALK, FLAG, AT(continue_last), 0, 0 },
    { 0, "-s", "--session", "NAME", "open the session NAME, or start it", TALK, CALL, 0, 0, set_session },
    { 0, 0, "--private", 0, "keep nothing of the conversation: no session, no K and V, no history", TALK, FLAG,
      AT(is_private), 0, 0 },
    { 0, 0, "--unlock", "FILE", "the key file of encrypted sessions, or a file with their passphrase",
      TALK | EBB_FOR_SESSIONS | EBB_FOR_SERVE, TEXT, AT(unlock_path), 0, 0 },
    { 0, 0, "--system", "TEXT", "system prompt of a new session", TALK, TEXT, AT(system), 0, 0 },
    { 0, 0, "--template", "NAME|FILE|none",
      "use this chat template, not the model's: chatml, llama3 ..., a Jinja file, or none", TALK | EBB_FOR_INSPECT,
      TEXT, AT(template_name), 0, 0 },
    { 0, 0, "--raw", 0, "no chat template: the model continues the text (--template none)", TALK, CALL, 0,
      0, set_raw },
    { 0, "-p", "--prompt", "TEXT", "the question; piped input is appended", EBB_FOR_RUN, TEXT, AT(prompt), 0, 0 },
    { 0, 0, "--filter", ".END=COMMAND",
      "turn attached files with that ending into text; %s is the file; none: off", TALK, CALL, 0, 0, set_filter },
    { 0, 0, "--json-schema", "FILE|TEXT", "make the answer JSON that is valid under this schema", EBB_FOR_RUN, TEXT,
      AT(json_schema), 0, 0 },
    { 0, 0, "--grammar", "FILE", "make the answer follow this grammar, in llama.cpp's notation (GBNF)",
      EBB_FOR_RUN, TEXT,
      AT(grammar), 0, 0 },
    { 0, "-p", "--prompt-tokens", "N", "tokens of prefill (512)", EBB_FOR_BENCH, TEXT, AT(prompt), 0, 0 },
    { 0, "-n", "--predict", "N", "generate at most N tokens", TALK | EBB_FOR_BENCH, CALL, 0, 0, set_n },
    { 0, 0, "--count", "N", "N answers at once, each with the next seed", EBB_FOR_RUN, CALL, 0, 0,
      set_count },
    { 0, "-d", "--depth", "N", "context filled before decoding", EBB_FOR_BENCH, COUNT, AT(bench_depth), 0, 0 },
    { 0, "-r", "--repeat", "N", "repetitions; medians are reported (3)", EBB_FOR_BENCH, COUNT, AT(bench_runs), 0, 0 },

    { "Memory and speed", 0, "--ctx", "N|max",
      "context in tokens; max: the longest that stays in memory; default: the plan chooses", EBB_FOR_ENGINE, CALL, 0,
      0, set_ctx },
    { 0, 0, "--ctx", "N", "its context in tokens, if it does not report it", EBB_FOR_ENGINES, COUNT,
      AT(engine.n_ctx), 0, 0 },
    { 0, 0, "--ram", "SIZE", "use at most this much memory: 6G, 800M",
      EBB_FOR_ENGINE | EBB_FOR_MODELS | EBB_FOR_DOCTOR | EBB_FOR_PULL, SIZE, AT(engine.ram_bytes), 0, 0 },
    { 0, 0, "--measure", 0, "measure this machine's speeds again", EBB_FOR_DOCTOR, FLAG,
      AT(measures_again), 0, 0 },
    { 0, 0, "--disk", "SPEED", "plan for a disk of this speed: 3G/s", EBB_FOR_PLAN, CALL, 0, 0, set_disk },
    { 0, 0, "--memory", "SPEED",
      "plan for kernels that read weights from memory at this speed: 30G/s; nothing is measured", EBB_FOR_PLAN, CALL, 0,
      0, set_memory },
    { 0, 0, "--like", "NAME",
      "plan for a typical machine: cloud, pi5, n100, old-laptop, desktop; adjust it with --ram, --disk, "
                              "--memory and -t", EBB_FOR_PLAN, TEXT, AT(like), 0, 0 },
    { 0, 0, "--table", 0, "tier, layers and speed of one model for each context and KV type", EBB_FOR_PLAN, FLAG,
      AT(is_table), 0, 0 },
    { 0, 0, "--modes", 0, "the three modes side by side", EBB_FOR_PLAN | EBB_FOR_BENCH, FLAG, AT(is_modes), 0, 0 },
    { 0, 0, "--mode", "MODE", "balanced, max-tps or max-context", EBB_FOR_ENGINE, NAME, AT(engine.mode),
      mode_names, 0 },
    { 0, 0, "--resident", "N|N%|auto", "layers kept in memory", EBB_FOR_ENGINE, CALL, 0, 0, set_resident },
    { 0, 0, "--placement", "WHERE", "which layers stay in memory: interleaved, first or last", EBB_FOR_ENGINE, NAME,
      AT(engine.placement), place_names, 0 },
    { 0, 0, "--kv", "TYPE", "type of the KV cache: f16, q8_0, q4_0, f32, or K/V", EBB_FOR_ENGINE, CALL, 0, 0, set_kv },
    { 0, "-t", "--threads", "N", "compute threads; default: the CPUs this process may use", EBB_FOR_ENGINE, COUNT,
      AT(engine.n_threads), 0, 0 },
    { 0, 0, "--cpu", "KERNELS", "auto, scalar, avx2, avxvnni, avx512, amx, neon", EBB_FOR_ENGINE, NAME, AT(engine.cpu),
      cpu_names, 0 },
    { 0, 0, "--io", "READER", "auto, uring, pread or mmap", EBB_FOR_ENGINE, NAME, AT(engine.io), io_names, 0 },
    { 0, 0, "--chunk", "N", "tokens in a prefill batch, up to 4096 (512)", EBB_FOR_ENGINE, CALL, 0, 0, set_chunk },
    { 0, 0, "--draft", "MODEL", "a smaller model with the same vocabulary to draft tokens; auto: one found here; none",
      TALK | EBB_FOR_SERVE | EBB_FOR_PLAN | EBB_FOR_BENCH, TEXT, AT(draft), 0, 0 },
    { 0, 0, "--quality", "MODEL", "a better file of the same network, for /best; default: the best one found",
      EBB_FOR_CHAT, TEXT, AT(quality), 0, 0 },
    { 0, 0, "--draft-tokens", "N", "tokens to draft in each pass; default: as many as save time",
      TALK | EBB_FOR_SERVE | EBB_FOR_BENCH, COUNT, AT(engine.n_draft), 0, 0 },
    { 0, 0, "--no-draft", 0, "no draft tokens at all", TALK | EBB_FOR_SERVE, FLAG, AT(engine.no_speculation), 0, 0 },
    { 0, 0, "--force", 0, "run a file that ebb does not fully understand, and say what is left out", EBB_FOR_ENGINE,
      FLAG, AT(engine.is_forced), 0, 0 },
    { 0, 0, "--no-kv-cache", 0, "neither read nor write the KV cache on disk", TALK | EBB_FOR_SERVE, FLAG,
      AT(engine.no_kv_cache), 0, 0 },

    { "Ollama's estimate", 0, "--ollama", 0, "Ollama's memory estimate before ebb's own plan", EBB_FOR_PLAN, FLAG,
      AT(ollama), 0, 0 },
    { 0, 0, "--ctx", "N", "its context for each sequence (4096)", EBB_FOR_OLLAMA, COUNT, AT(engine.n_ctx), 0, 0 },
    { 0, 0, "--kv", "TYPE", "its KV cache type, used only with flash attention: f16, q8_0 or q4_0",
      EBB_FOR_OLLAMA, CALL, 0, 0, set_kv },
    { 0, 0, "--batch", "N", "its batch (512)", ESTIMATE, COUNT, AT(ollama_batch), 0, 0 },
    { 0, 0, "--parallel", "N", "its parallel sequences (1)", ESTIMATE, COUNT, AT(ollama_parallel), 0, 0 },
    { 0, 0, "--flash", "on|off", "its flash attention; default: depends on the architecture", ESTIMATE, TEXT,
      AT(ollama_flash), 0, 0 },
    { 0, 0, "--gpu", "CARD[,CARD]",
      "the cards in order, by free memory: 24G, 8G:rocm, 16G:vulkan:integrated, 6G:cuda:no-flash", ESTIMATE, TEXT,
      AT(ollama_gpus), 0, 0 },
    { 0, 0, "--num-gpu", "N", "layers to put on the cards (num_gpu); -1: as many as fit", ESTIMATE, TEXT,
      AT(ollama_num_gpu), 0, 0 },
    { 0, 0, "--spread", 0, "use all cards, not the fewest", ESTIMATE, FLAG, AT(ollama_spread), 0, 0 },
    { 0, 0, "--overhead", "SIZE", "memory to leave free on each card, besides its own reserves", ESTIMATE, TEXT,
      AT(ollama_overhead), 0, 0 },
    { 0, 0, "--projector", "FILE|SIZE", "the file of the vision projector, or its bytes", ESTIMATE, TEXT,
      AT(ollama_projector), 0, 0 },
    { 0, 0, "--vision", 0, "the model has vision (a projector implies it)", ESTIMATE, FLAG,
      AT(ollama_vision), 0, 0 },
    { 0, 0, "--require-full", 0, "fail unless all layers fit, as if another model could be unloaded", ESTIMATE, FLAG,
      AT(ollama_require_full), 0, 0 },
    { 0, 0, "--ram", "SIZE", "fail if the CPU's part is larger", EBB_FOR_OLLAMA, SIZE, AT(engine.ram_bytes), 0, 0 },
    { 0, 0, "--exact", 0,
      "take context, batch, sequences, KV type and flash attention as given, uncorrected", ESTIMATE,
      FLAG, AT(ollama_exact), 0, 0 },

    { "Sampling", 0, "--temp", "X", "temperature; 0: greedy (0.7)", TALK | EBB_FOR_SERVE, REAL,
      AT(sampling.temp), 0, 0 },
    { 0, 0, "--top-k", "N", "choose among the N likeliest; 0: off (40)", TALK | EBB_FOR_SERVE, COUNT,
      AT(sampling.top_k), 0, 0 },
    { 0, 0, "--top-p", "X", "nucleus of probability X; 1: off (0.95)", TALK | EBB_FOR_SERVE, REAL,
      AT(sampling.top_p), 0, 0 },
    { 0, 0, "--min-p", "X", "at least X times the likeliest; 0: off (0.05)", TALK | EBB_FOR_SERVE, REAL,
      AT(sampling.min_p), 0, 0 },
    { 0, 0, "--repeat-penalty", "X", "penalty for tokens that occurred before; 1: off (1)", TALK | EBB_FOR_SERVE, REAL,
      AT(sampling.repeat_penalty), 0, 0 },
    { 0, 0, "--seed", "N", "the same seed gives the same answer; 0: a new one each time", TALK | EBB_FOR_SERVE, CALL, 0,
      0, set_seed },
    { 0, 0, "--greedy", 0, "always the likeliest token", TALK | EBB_FOR_SERVE, CALL, 0, 0, set_greedy },

    { "Inspecting", 0, "--bos", 0, "add BOS and EOS where the vocabulary asks for it (the default)", EBB_FOR_INSPECT,
      CALL, 0, 0, set_bos },
    { 0, 0, "--no-bos", 0, "add neither BOS nor EOS", EBB_FOR_INSPECT, FLAG, AT(no_bos), 0, 0 },
    { 0, 0, "--no-special", 0, "treat the text of control tokens as plain text",
      EBB_FOR_INSPECT, FLAG, AT(no_special), 0, 0 },
    { 0, 0, "--tokens", "FILE", "token ids to evaluate", EBB_FOR_INSPECT, TEXT, AT(tokens_path), 0, 0 },
    { 0, 0, "--out", "FILE", "where the logits go: float32, position-major", EBB_FOR_INSPECT, TEXT,
      AT(out_path), 0, 0 },
    { 0, 0, "--positions", "LIST", "only these positions: 0,1,15", EBB_FOR_INSPECT, TEXT, AT(positions), 0, 0 },
    { 0, 0, "--greedy", "N", "print the N ids that follow, always the likeliest", EBB_FOR_INSPECT, COUNT,
      AT(greedy_steps), 0, 0 },
    { 0, "-f", "--file", "FILE", "a Jinja template, or the text for perplexity", EBB_FOR_INSPECT, TEXT,
      AT(file_path), 0, 0 },
    { 0, 0, "--context", "FILE", "its variables, a JSON object", EBB_FOR_INSPECT, TEXT, AT(context_path), 0, 0 },
    { 0, 0, "--no-generation-prompt", 0, "leave out the beginning of the assistant's turn", EBB_FOR_INSPECT, FLAG,
      AT(no_generation_prompt), 0, 0 },
    { 0, 0, "--now", "TIME", "the clock of the template: YYYY-MM-DDThh:mm:ss", EBB_FOR_INSPECT, TEXT, AT(now), 0, 0 },

    { "Output", 0, "--plain", 0, "plain lines, only ever appended: for screen readers, logs, dumb terminals",
      EBB_FOR_CHAT, FLAG,
      AT(plain), 0, 0 },
    { 0, 0, "--inline", 0, "chat below the shell's lines; the terminal's scrollback keeps all of it",
      EBB_FOR_CHAT, FLAG,
      AT(is_inline), 0, 0 },
    { 0, 0, "--ascii", 0, "only ASCII, except in the conversation itself", EBB_FOR_CHAT, FLAG,
      AT(ascii), 0, 0 },
    { 0, 0, "--editing", "KEYS", "emacs or vi", EBB_FOR_CHAT, NAME, AT(editing), editing_names, 0 },
    { 0, 0, "--status", "WHERE", "the figures: panel, two (lines), one, hidden, or auto; F2 changes it", EBB_FOR_CHAT,
      NAME, AT(layout), ebb_layout_names, 0 },
    { 0, 0, "--bell", "WHEN", "when an answer ends: long (after over a minute), always or never", EBB_FOR_CHAT, NAME,
      AT(bell), bell_names, 0 },
    { 0, 0, "--notify", "HOW", "how: desktop (bell and notification) or bell", EBB_FOR_CHAT, NAME,
      AT(notify), notify_names, 0 },
    { 0, 0, "--shell", 0, "let !COMMAND in the chat run a shell command and attach its output", EBB_FOR_CHAT, FLAG,
      AT(runs_shell), 0, 0 },
    { 0, 0, "--no-title", 0, "leave the window's title alone", EBB_FOR_CHAT, FLAG, AT(no_title), 0, 0 },
    { 0, 0, "--links", "WHEN", "links that the terminal follows (OSC 8): auto, always or never", EBB_FOR_CHAT, NAME,
      AT(links), links_names, 0 },
    { 0, 0, "--color", "WHEN", "auto, always or never", EBB_FOR_CHAT, NAME, AT(color), color_names, 0 },
    { 0, 0, "--theme", "NAME", "colours: dark, light, contrast, dusk, ansi, mono, or your own theme file",
      EBB_FOR_CHAT, TEXT, AT(theme), 0, 0 },
    { 0, 0, "--overflow", "WHAT", "when the context is full: ask, forget, slide, compact, grow or stop", TALK, CALL, 0,
      ebb_overflow_policy_names, set_overflow },
    { 0, 0, "--linger", "SECONDS", "how long an answer may go on once the terminal is gone (600)", TALK, COUNT,
      AT(linger_s), 0, 0 },
    { 0, 0, "--json", 0, "one JSON object on standard output", EBB_FOR_ALL & ~(EBB_FOR_CHAT | EBB_FOR_SERVE), FLAG,
      AT(json), 0, 0 },
    { 0, 0, "--trace", "FILE", "append every decision to FILE", EBB_FOR_ALL, TEXT, AT(trace), 0, 0 },
    { 0, "-q", "--quiet", 0, "no progress", EBB_FOR_ALL, FLAG, AT(quiet), 0, 0 },
    { 0, 0, "--suggest", 0, "models that suit the free memory, with their speed on this machine",
      EBB_FOR_PULL, FLAG, AT(suggests), 0, 0 },
    { 0, 0, "--json-lines", 0, "report progress as lines of JSON; without a type, take the best one",
      EBB_FOR_PULL, FLAG, AT(json_lines), 0, 0 },
    { 0, "-y", "--yes", 0, "ask nothing: take what suits, even if it does not fit", EBB_FOR_PULL, FLAG, AT(yes), 0, 0 },
    { 0, "-v", "--verbose", 0, "show progress even if standard error is not a terminal", EBB_FOR_ALL, FLAG,
      AT(verbose), 0, 0 },
};
const size_t ebb_n_options = sizeof ebb_options / sizeof *ebb_options;

/* -- What an option does with its value ------------------------------------------------- */

/* Whether the option sets a parameter of sampling. */
static bool is_sampling(const ebb_option *o)
{
    return o->offset >= AT(sampling) && o->offset < AT(sampling) + sizeof(ebb_sampler_params);
}

/* Of a parameter of sampling; any number is right for other options. */
static ebb_status check_range(const ebb_option *o, const char *shown, const char *value, double x, ebb_error *err)
{
    const ebb_sampling_range *r = is_sampling(o) ? ebb_sampling_range_at(o->offset - AT(sampling)) : NULL;

    if (!r || ebb_sampling_range_has(r, x))
        return EBB_OK;
    return EBB_FAIL(err, EBB_USAGE, "%s %s: it takes %g to %.7g (%s)", shown, value, r->min, r->max, r->neutral);
}

static ebb_status set_number(const ebb_option *o, const char *shown, void *field, const char *value, ebb_error *err)
{
    uint64_t v;

    if (o->kind == SIZE) {
        if (!ebb_size_parse(value, &v) || (v > 0 && v < 1 << 20))        /* "6" would be six bytes */
            return EBB_FAIL(err, EBB_USAGE, "%s %s: give a size like 6G or 800M", shown, value);
        *(uint64_t *)field = v;
    } else if (o->kind == COUNT) {
        if (!parse_u64(value, MOST, &v))
            return EBB_FAIL(err, EBB_USAGE, "%s %s: give a whole number%s", shown, value,
                            value[strspn(value, "0123456789")] ? "" : " up to 100000000");
        *(uint32_t *)field = (uint32_t)v;
        return check_range(o, shown, value, (double)v, err);
    } else {
        char *end;
        double x = strtod(value, &end);
        if (end == value || *end)
            return EBB_FAIL(err, EBB_USAGE, "%s %s: give a number", shown, value);
        *(float *)field = (float)x;
        return check_range(o, shown, value, x, err);
    }
    return EBB_OK;
}

static ebb_status fail_name(const ebb_option *o, const char *value, ebb_error *err)
{
    const char *hint = hint_for_value(value);
    ebb_buf names = { 0 };

    for (size_t i = 0; o->names[i]; i++)
        ebb_buf_addf(&names, "%s%s", i == 0 ? "" : o->names[i + 1] ? ", " : " or ", o->names[i]);
    EBB_FAIL(err, EBB_USAGE, "%s %s: %s%s", o->long_name, value, hint ? "" : "give ",
             hint ? hint : ebb_buf_text(&names));
    ebb_buf_fini(&names);
    return EBB_USAGE;
}

/* Of a model or a file, which no empty name means: one comes of a variable that is not set. */
static bool names_file(const ebb_option *o)
{
    return strcmp(o->arg, "MODEL") == 0 || strncmp(o->arg, "FILE", strlen("FILE")) == 0;
}

ebb_status ebb_option_apply(const ebb_option *o, ebb_args *a, const char *value, ebb_error *err)
{
    void *field = (char *)a + o->offset;
    const char *shown = o->long_name;
    int i;

    if (is_sampling(o))
        a->sampling_given |= EBB_SAMPLING_BIT_AT(o->offset - AT(sampling));
    switch (o->kind) {
    case FLAG: *(bool *)field = true; return EBB_OK;
    case TEXT:
        if (value && !*value && names_file(o))
            return EBB_FAIL(err, EBB_USAGE, "%s: needs %s", shown, o->arg);
        *(const char **)field = value;
        return EBB_OK;
    case CALL: return o->call(a, value, err);
    case NAME: case COUNT: case SIZE: case REAL: break;
    }
    if (!value)                                  /* their rows name one */
        return EBB_FAIL(err, EBB_USAGE, "%s: its value is missing", shown);
    if (o->kind != NAME)
        return set_number(o, shown, field, value, err);
    i = ebb_option_name_index(o->names, value);
    if (i < 0)
        return fail_name(o, value, err);
    memcpy(field, &(unsigned){ (unsigned)i }, sizeof(unsigned));
    return EBB_OK;
}
