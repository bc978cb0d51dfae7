/* remote/engines_file.h - the engines that have names: $XDG_CONFIG_HOME/ebb/engines.
 *
 *     [box]
 *     address = http://box:8080
 *     key-file = ~/.config/ebb/box.key
 *
 * Lines `name = value` below a [name]; # begins a comment.  The file is in docs/FORMATS.md. */
#ifndef EBB_REMOTE_ENGINES_FILE_H
#define EBB_REMOTE_ENGINES_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

#define EBB_ENGINE_HERE "here"   /* the name of the engine in this process */
#define EBB_ENGINE_NAME 41       /* bytes of a name, with its 0 */
#define EBB_ENGINE_HEADERS 16

/* Strings are NULL where the file says nothing. */
typedef struct ebb_engine_entry {
    char     name[EBB_ENGINE_NAME];
    char    *address;
    char    *kind;               /* of the server, where it is not to be found out */
    char    *model;
    char    *key, *key_file, *key_variable, *key_command;
    char    *ca_file;
    char    *headers[EBB_ENGINE_HEADERS +
                     1];    /* "Name: value", up to a NULL; as secret as a key */
    uint32_t n_ctx;              /* 0: the server says */
    uint32_t silence_s;          /* 0: the usual */
    bool     is_insecure;        /* secrets may go over plain http */
} ebb_engine_entry;
void ebb_engine_entry_fini(ebb_engine_entry *e); /* what was secret is overwritten */

/* All of them, in the file's order; none if there is no file.  Errors: USAGE ("path:line: ..."),
 * LIMIT (too many), IO, and IO if others can read a file with secrets. */
EBB_MUST_CHECK
ebb_status ebb_engines_read(ebb_engine_entry **out, size_t *n, ebb_error *err);
void ebb_engines_free(ebb_engine_entry *list, size_t n);

/* That of this name, or an engine without one at an address.  NOTFOUND: the error says which there
 * are. */
EBB_MUST_CHECK
ebb_status ebb_engines_find(const char *name, ebb_engine_entry *out, ebb_error *err);

/* Write it behind the others; the file gets 0600.  USAGE: there is one of this name, or a value
 * that cannot be. */
EBB_MUST_CHECK
ebb_status ebb_engines_add(const ebb_engine_entry *e, ebb_error *err);

/* Take the engine of this name out of the file; other lines stay as they are.  A key-file stays
 * where it is.  Errors: NOTFOUND, and those of ebb_engines_read. */
EBB_MUST_CHECK
ebb_status ebb_engines_remove(const char *name, ebb_error *err);

#endif
