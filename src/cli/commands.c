/* The table of commands (cli.h). */
#include <stdio.h>
#include <string.h>

#include "cli.h"

int ebb_cli_inspect(ebb_args *a)
{
    static const struct { const char *name; int (*run)(ebb_args *); } subjects[] = {
        { "gguf", ebb_inspect_gguf },
        { "tokens", ebb_inspect_tokens },
        { "text", ebb_inspect_text },
        { "template", ebb_inspect_template },
        { "logits", ebb_inspect_logits },
        { "perplexity", ebb_inspect_perplexity },
    };
    ebb_error err = { 0 };

    ebb_cli_take_model(a, 1);
    for (size_t i = 0; a->n_words == 1 && i < sizeof subjects / sizeof subjects[0]; i++)
        if (strcmp(subjects[i].name, a->words[0]) == 0)
            return subjects[i].run(a);
    EBB_FAIL(&err, EBB_USAGE, "inspect: say what: gguf, tokens, text, template, logits or perplexity");
    return ebb_cli_fail(&err);
}

const ebb_command_line ebb_commands_cli[] = {
    { "chat", "[-m MODEL] [-c | -s NAME] [--inline | --plain]", "talk (the default)", EBB_FOR_CHAT, ebb_cli_chat },
    { "run", "[-m MODEL] [-p TEXT] [-n N] [--json] [-c | -s NAME]", "one answer to standard output; what is piped in is appended",
      EBB_FOR_RUN, ebb_cli_run },
    { "plan", "[-m MODEL] [--json]", "where the memory would go, which tier, what speed", EBB_FOR_PLAN, ebb_cli_plan },
    { "bench", "[-m MODEL] [-p N] [-n N] [-d N] [-r N] [--json]", "measure prefill and decode", EBB_FOR_BENCH, ebb_cli_bench },
    { "doctor", "[-m MODEL] [--json]", "this machine: memory, limits, disk, CPU, swap, and advice", EBB_FOR_DOCTOR, ebb_cli_doctor },
    { "sessions", "list|show|search|rename|delete|export|import|replay", "the conversations that are kept", EBB_FOR_SESSIONS, ebb_cli_sessions },
    { "models", "[--json]", "model files found on this machine", EBB_FOR_MODELS, ebb_cli_models },
    { "pull", "OWNER/NAME[:TYPE] | ADDRESS [NAME.gguf]", "get a model from huggingface.co, or any address",
      EBB_FOR_PULL, ebb_cli_pull },
    { "inspect", "gguf|tokens|text|template|logits|perplexity -m MODEL", "look inside a model file", EBB_FOR_INSPECT, ebb_cli_inspect },
    { "stat", "[PID] [--json]", "figures of the chats that run now", EBB_FOR_STAT, ebb_cli_stat },
    { "completion", "bash|zsh|fish", "completion for a shell, on standard output", EBB_FOR_COMPLETION, ebb_cli_completion },
    { 0 },
};
