/* tui/edit/filter.h - which programs make text of files that are none: PDF, office files, books.
 *
 * A filter is a shell command for the files of one ending; each %s in it is the file, without %s it
 * reads standard input.  The file is open already when the command starts, so %s always becomes
 * the same word (/dev/stdin), and no name of a file can be taken for anything else. */
#ifndef EBB_TUI_FILTER_H
#define EBB_TUI_FILTER_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"
#include "os/spawn.h"

enum { EBB_MAX_FILTERS = 32 };

/* One of the configuration; the strings are borrowed. */
typedef struct ebb_filter_choice {
    const char *ending;          /* ".pdf" */
    size_t      n_ending;
    const char *command;         /* "none": no filter for it */
} ebb_filter_choice;

typedef struct ebb_filter {
    char        ending[16];      /* ".pdf", in small letters */
    char        command[256];    /* as it is written */
    char        program[64];     /* its first word, by which messages call it */
    const char *package;         /* that brings the program; NULL: a command of the user's */
    char        script[1296];    /* the command as it is run, were it all %s ... */
    char       *argv[4];         /* ... by a shell, up to a NULL; points into this struct */
} ebb_filter;

typedef struct ebb_filters {
    ebb_filter list[EBB_MAX_FILTERS];
    size_t     n;
} ebb_filters;

/* Is this a choice that can be kept?  USAGE: no ending, no command, too long. */
EBB_MUST_CHECK
ebb_status ebb_filter_choice_check(const ebb_filter_choice *c, ebb_error *err);

/* The usual filters, and the n_own of the user instead of or beside them.  *f must not be moved
 * after. */
void ebb_filters_init(ebb_filters *f, const ebb_filter_choice *own, size_t n_own);
/* NULL: there is none for such a name. */
const ebb_filter *ebb_filters_find(const ebb_filters *f, const char *path);
/* Is its program in $PATH?  Of a command of the user's only the shell knows, when it runs: true. */
bool ebb_filter_is_installed(const ebb_filter *f);
/* The usual ones see the file and what belongs to the system; the user's may do what he may. */
ebb_spawn_group ebb_filter_group(const ebb_filter *f);

#endif
