/* os/broker.h - a small process that does for a confined one what that one can no longer do.
 *
 * It is forked before anything foreign is read, and does few things, each for what was settled at
 * that moment or what its owner may do anyway:
 *
 *  B1  It starts the commands of a list, and no others.
 *  B2  It opens a regular file for reading that is new in the home or beside it, where the rules of
 *      confine.h know no name yet: never a hidden one of the home.
 *  B3  It makes a new file that ends in .md, .json or .txt (an export), where none of that name is,
 *      and in no hidden folder of the home.
 *  B4  A server's removes the server's socket, and does nothing else.
 *
 * It has no descriptor but its end of a socket pair, is in a process group of its own, and ends
 * with its owner.  Any thread may ask; one is answered at a time. */
#ifndef EBB_OS_BROKER_H
#define EBB_OS_BROKER_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ebb/status.h"
#include "os/spawn.h"

/* What may come behind the words of a command. */
typedef enum ebb_broker_more {
    EBB_BROKER_NOTHING,
    EBB_BROKER_A_FILTER,         /* nothing, and only as EBB_SPAWN_FILTER */
    EBB_BROKER_A_DRAFT,          /* one word: the path of a file right in the folder of drafts */
    EBB_BROKER_A_MODEL,          /* nothing, or -m and a name of letters, digits and ._-/+:@ that
                                  * is no option: at the far end of ssh words would be options */
    EBB_BROKER_A_LINE,           /* one word of any kind: for the shell, with --shell */
    EBB_BROKER_A_REPOSITORY,     /* digits, and a word of which ebb_broker_is_repository holds */
} ebb_broker_more;

typedef struct ebb_broker_command {
    char *const    *argv;        /* up to a NULL */
    ebb_broker_more more;
} ebb_broker_command;

typedef struct ebb_broker_opts {
    const ebb_broker_command *commands;
    size_t      n_commands;
    const char *home;            /* its real path; NULL: none, nothing is hidden */
    const char *drafts;          /* a folder; NULL: none */
    const char *socket;          /* a server's, B4; NULL: none */
} ebb_broker_opts;

/* Fork it; what *opts points to has to live until then alone.  Only while this process has one
 * thread.  Errors: IO. */
EBB_MUST_CHECK
ebb_status ebb_broker_start(const ebb_broker_opts *opts, ebb_error *err);
bool ebb_broker_is_there(void);
/* OWNER/NAME of a hub, with or without :TYPE, :FILE or @REVISION: no address, no option, nothing
 * that a program could take for a path above. */
bool ebb_broker_is_repository(const char *word);
/* For whoever starts one for a test: end it, and be as before. */
void ebb_broker_end(void);

/* As ebb_spawn.  0, or errno: EACCES where the command is not in the list. */
int ebb_broker_spawn(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid);
/* As open(2) with O_RDONLY, or with O_DIRECT, too.  A descriptor, or -1 with errno. */
int ebb_broker_open(const char *path, bool is_direct);
/* As ebb_file_create. */
EBB_MUST_CHECK
ebb_status ebb_broker_create(const char *path, const void *data, size_t n, ebb_error *err);
/* Remove the server's socket, as unlink(2); nothing where there is no broker. */
void ebb_broker_remove_socket(void);

#endif
