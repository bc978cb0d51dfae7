/* The table of subcommands (cli.h). */
#include <string.h>

#include "cli.h"

typedef struct subject {
    const char *name, *reads;
    int       (*run)(ebb_args *a);
} subject;

static const subject *find_subject(const char *name)
{
    static const subject all[] = {
        { "gguf", "the model: -m FILE", ebb_cmd_inspect_gguf },
        { "tokens", "its text from standard input", ebb_cmd_inspect_tokens },
        { "text", "its ids from standard input", ebb_cmd_inspect_text },
        { "template", "the model's, or that of --file with --context", ebb_cmd_inspect_template },
        { "logits", "its ids from --tokens FILE", ebb_cmd_inspect_logits },
        { "perplexity", "its text from -f FILE", ebb_cmd_inspect_perplexity },
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

static int inspect(ebb_args *a)
{
    const subject *s = a->n_words > 0 ? find_subject(a->words[0]) : NULL;
    ebb_error err = { 0 };

    ebb_cli_model_from_words(a, 1);
    if (s && a->n_words == 1)
        return s->run(a);
    if (s)
        EBB_FAIL(&err, EBB_USAGE, "%s: unexpected argument; inspect %s reads %s", a->words[1], s->name, s->reads);
    else
        EBB_FAIL(&err, EBB_USAGE, "inspect: give gguf, tokens, text, template, logits or perplexity");
    return ebb_cli_fail(&err);
}

const ebb_subcommand ebb_subcommands[] = {
    { "chat", "[-m MODEL] [-c | -s NAME] [--inline | --plain]", "chat (the default)", EBB_FOR_CHAT, ebb_cmd_chat,
      false },
    { "run", "[-m MODEL] [-p TEXT] [-n N] [--count N] [--json] [-c | -s NAME]",
      "one answer to standard output; piped input is appended",
      EBB_FOR_RUN, ebb_cmd_run, false },
    { "plan", "[-m MODEL] [--json]", "where the memory would go, which tier, what speed", EBB_FOR_PLAN, ebb_cmd_plan,
      true },
    { "ollama", "[-m MODEL] [--ctx N] [--gpu CARD,...] [--json]",
      "what Ollama would estimate: KV, graph, layers on each card",
      EBB_FOR_OLLAMA, ebb_cmd_ollama, true },
    { "bench", "[-m MODEL] [-p N] [-n N] [-d N] [-r N] [--json]", "measure prefill and decode", EBB_FOR_BENCH,
      ebb_cmd_bench, true },
    { "doctor", "[-m MODEL] [--measure] [--json]", "this machine: memory, limits, disk, CPU, swap, and advice",
      EBB_FOR_DOCTOR, ebb_cmd_doctor, false },
    { "sessions", "list|show|search|rename|delete|purge|export|import|replay|encrypt|decrypt|rekey [NAME]",
      "the saved conversations", EBB_FOR_SESSIONS, ebb_cmd_sessions, false },
    { "models", "[--json]", "model files found on this machine", EBB_FOR_MODELS, ebb_cmd_models, true },
    { "engines", "list|test|add|remove [NAME] [ADDRESS]", "remote engines: the servers that ebb knows",
      EBB_FOR_ENGINES, ebb_cmd_engines, false },
    { "serve", "[-m MODEL] [--socket FILE | --port N] [--key-file FILE]", "the engine for other programs, over HTTP",
      EBB_FOR_SERVE, ebb_cmd_serve, false },
    { "pull", "OWNER/NAME[:TYPE] | ADDRESS [NAME.gguf] | --suggest", "get a model from huggingface.co, or any address",
      EBB_FOR_PULL, ebb_cmd_pull, false },
    { "inspect", "gguf|tokens|text|template|logits|perplexity [-m MODEL]", "look inside a model file", EBB_FOR_INSPECT,
      inspect, true },
    { "stat", "[PID] [--json]", "figures of what runs", EBB_FOR_STAT, ebb_cmd_stat, false },
    { "stop", "[PID | SESSION]", "stop all running answers, or one; what was written is kept", EBB_FOR_STAT,
      ebb_cmd_stop, false },
    { "completion", "bash|zsh|fish", "completion for a shell, to standard output", EBB_FOR_COMPLETION,
      ebb_cmd_completion, false },
    { 0 },
};
