/* os/folder.h - a folder of many files: what is in it, how much room there is,
 * and the small things done to its files. */
#ifndef EBB_OS_FOLDER_H
#define EBB_OS_FOLDER_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/status.h"

typedef struct ebb_folder_entry {
    const char *name;            /* valid during the call */
    uint64_t    n_bytes;
    int64_t     modified_ns;     /* since 1970 */
} ebb_folder_entry;
typedef void ebb_folder_fn(void *arg, const ebb_folder_entry *entry);

/* Call fn for each regular file of the folder, in no order; those that vanish
 * meanwhile are left out.  Errors: NOTFOUND, IO. */
EBB_MUST_CHECK
ebb_status ebb_folder_each(const char *path, ebb_folder_fn *fn, void *arg, ebb_error *err);
/* That the folder is this user's and nobody else may write to it, so that what is in it is ours.
 * Errors: IO, also if it is not so. */
EBB_MUST_CHECK
ebb_status ebb_folder_check_own(const char *path, ebb_error *err);
/* Bytes that we may still write to the file system of `path`.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_folder_free_bytes(const char *path, uint64_t *bytes, ebb_error *err);

/* `to` is replaced at once by `from`.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_file_rename(const char *from, const char *to, ebb_error *err);
/* What was renamed in the folder is so after a power failure, too.  Error: IO.  Cost:
 * milliseconds. */
EBB_MUST_CHECK
ebb_status ebb_folder_sync(const char *path, ebb_error *err);
/* The name `path` was given to a file or folder just now: it is there after a power failure, too.
 * The file is there whatever comes of it, so this is no error.  Cost: milliseconds. */
void ebb_folder_sync_name(const char *path);
/* No file can be made in the folder: its mode or its file system forbids it. */
bool ebb_folder_is_readonly(const char *path);
/* The same of the folder that `path` is in. */
bool ebb_file_has_readonly_folder(const char *path);
/* No error if it is not there; false: it stays. */
bool ebb_file_remove(const char *path);
/* The file was used now; NOTFOUND if there is none, IO. */
EBB_MUST_CHECK
ebb_status ebb_file_touch(const char *path, ebb_error *err);

#endif
