/* cli/confinement_files.h - what a command may reach of files, for confinement.c. */
#ifndef EBB_CLI_CONFINEMENT_FILES_H
#define EBB_CLI_CONFINEMENT_FILES_H
#include <stdbool.h>

#include "os/confine.h"
#include "os/paths.h"

typedef struct ebb_cli_reach {
    ebb_confinement c;
    char           *home;                /* its real path; NULL: none */
} ebb_cli_reach;

/* What is at that path is read (~/ is the home), if it is there and neither the home nor what the
 * home is in. */
void ebb_cli_allow_named(ebb_cli_reach *r, const char *name);
/* One of ebb's folders; with `makes` it is made if need be. */
void ebb_cli_allow_own(ebb_cli_reach *r, ebb_dir dir, ebb_reach how, bool makes);
/* A folder in which ebb keeps things, and what its links lead to. */
void ebb_cli_allow_kept(ebb_cli_reach *r, ebb_dir dir, ebb_reach how, bool makes);
/* A folder of files that are read, and files that links in it lead to; no folders within that. */
void ebb_cli_allow_linked_texts(ebb_cli_reach *r, const char *folder);

#endif
