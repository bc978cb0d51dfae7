/* cli/confinement.h - what a command keeps of what the system allows it (os/confine.h,
 * os/broker.h).
 *
 * The rules of all commands that read what others made:
 *
 *  files        are read everywhere, but for what is hidden in the home; of that, what is ebb's,
 *               the folders of models, what the command line, the configuration or the file of
 *               engines names, and what links of the user's in folders of models and of ebb's lead
 *               to.  Written are ebb's folders of state, cache and this run alone, what is behind
 *               links there included: of a file its folder, if nothing else is in that
 *  connections  only where a remote engine was named, there or with -e
 *  programs     only by the broker: the user's editor, tmux for /copy, commands of those engines
 *
 * EBB_NO_SANDBOX, set to anything, leaves it out. */
#ifndef EBB_CLI_CONFINEMENT_H
#define EBB_CLI_CONFINEMENT_H
#include "args.h"
#include "os/confine.h"

typedef enum ebb_cli_needs {
    EBB_CLI_CHAT,                /* the editor, tmux, exports, other files, engines */
    EBB_CLI_ANSWER,              /* engines */
    EBB_CLI_SERVE,               /* its socket, which is there */
    EBB_CLI_LOOK,                /* models and files that were named, nothing else */
    EBB_CLI_KEEP,                /* the same, and what is kept of conversations */
    EBB_CLI_PROBE,               /* the engine that was named */
    EBB_CLI_PULL,                /* any server; the folder of models is written */
} ebb_cli_needs;

/* From here on; before any thread is begun and any model is opened.  What cannot be given up is
 * kept: `ebb doctor` says so.  `editor` is of EBB_CLI_CHAT, a shell command; NULL: vi. */
void ebb_cli_confine(const ebb_args *a, ebb_cli_needs needs, const char *editor);
/* This program, to be started again: also where its file was replaced meanwhile. */
const char *ebb_cli_program(void);
/* What was given to main: words that name files are within reach. */
void ebb_cli_remember_words(int argc, char **argv);
char **ebb_cli_remembered_words(int *argc);

/* Try it, in a process of its own: what holds there.  false: nothing does, and *why says why. */
bool ebb_cli_try_confinement(ebb_confined *out, const char **why);

#endif
