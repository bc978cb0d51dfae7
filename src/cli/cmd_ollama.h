/* cli/cmd_ollama.h - Ollama's estimate (ebb/experimental/ollama.h) of a command line and the
 * environment. */
#ifndef EBB_CLI_CMD_OLLAMA_H
#define EBB_CLI_CMD_OLLAMA_H
#include "cli.h"
#include "ebb/experimental/ollama.h"

#define EBB_OLLAMA_NOTES 8

typedef struct ebb_cli_ollama {
    ebb_ollama_model      model;
    ebb_ollama_settings   settings;
    ebb_ollama_graph      graph;         /* graph.kv is ours */
    ebb_ollama_gpu        gpus[EBB_OLLAMA_GPUS];
    size_t                n_gpus;
    bool                  has_old_card;  /* one that cannot do flash attention */
    ebb_ollama_options    options;
    ebb_ollama_layout     layout;        /* weights and buffer also without a card */
    ebb_ollama_prediction prediction;    /* of the cards' memory as one; nothing without a card */
    ebb_ollama_paper      paper;
    uint64_t              vram_bytes;    /* free memory of the cards */
    /* Where Ollama takes something else than was asked for. */
    char                  notes[EBB_OLLAMA_NOTES][160];
    size_t                n_notes;
} ebb_cli_ollama;

/* Print the estimate as text; or it as a JSON object, NULL: no memory. */
void ebb_cli_ollama_print(const ebb_cli_ollama *e);
json_t *ebb_cli_ollama_json(const ebb_cli_ollama *e);

#endif
