/* os/file.h - files: whole reads, whole writes, direct reads, atomic replacement.
 *
 * All offsets and lengths are bytes.  Interrupted and short calls are
 * continued here; a read that ends early is EBB_FORMAT ("truncated"). */
#ifndef EBB_OS_FILE_H
#define EBB_OS_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef enum ebb_file_mode {
    EBB_FILE_READ,               /* must exist */
    EBB_FILE_READ_HERE,          /* the same, and a symbolic link is not followed */
    EBB_FILE_READ_DIRECT,        /* O_DIRECT: past the page cache; UNSUPPORTED where the file system
                                    refuses */
    EBB_FILE_CREATE,             /* read and write, made, 0600; IO where anything of that name is
                                    there */
    EBB_FILE_UPDATE,             /* read and write, created if absent, 0600 */
    EBB_FILE_UPDATE_HERE,        /* the same, for a name that others can guess: a symbolic link is
                                    not followed */
} ebb_file_mode;

/* *fd receives an open descriptor (close-on-exec); -1 on failure.
 * Errors: NOTFOUND, IO, UNSUPPORTED. */
EBB_MUST_CHECK
ebb_status ebb_file_open(const char *path, ebb_file_mode mode, int *fd, ebb_error *err);
void ebb_file_close(int fd);                     /* -1 is fine */

/* Open the file behind `fd` once more, whatever its path names by now: READ or
 * READ_DIRECT.  Errors: IO, UNSUPPORTED (no direct reads, or no /proc and the path names another
 * file). */
EBB_MUST_CHECK
ebb_status ebb_file_reopen(int fd, const char *path, ebb_file_mode mode, int *out, ebb_error *err);

/* Which file this is and which contents it has. */
typedef struct ebb_file_id {
    uint64_t device, inode, n_bytes;
    int64_t  modified_ns;
} ebb_file_id;
/* Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_file_get_id(int fd, const char *path, ebb_file_id *out, ebb_error *err);
/* The same of what has the name, which is not opened: closing it would give up the locks that
 * other code of this process has there (fcntl).  false: nothing has it, or it is out of reach. */
bool ebb_file_look_up(const char *path, ebb_file_id *out);

/* For a name where a file is kept: FORMAT where it leads to a folder, a pipe or anything else that
 * is no regular file, which is not opened.  Nothing there, or out of reach, is fine. */
EBB_MUST_CHECK
ebb_status ebb_file_expect_regular(const char *path, ebb_error *err);

/* For a file that says what is to be run: IO where it is another user's (but root's), or every user
 * may write to it.  To be asked after it was read, so that nothing is put in its place meanwhile.
 * Cost: a stat. */
EBB_MUST_CHECK
ebb_status ebb_file_expect_trusted(const char *path, ebb_error *err);

/* Whether it is a regular file of this user's; that besides no other user may read or write. */
bool ebb_file_is_own(int fd);
bool ebb_file_is_private(int fd);

/* The name of the file system that `path` is on: "ext4"; "0x1234" if it is not known by name. */
void ebb_file_system_name(const char *path, char out[16]);

/* In all that follows `path` is for messages only where there is an fd.  Errors: IO, and what is
 * named. */
/* FORMAT: it is no regular file. */
EBB_MUST_CHECK
ebb_status ebb_file_size(int fd, const char *path, uint64_t *bytes, ebb_error *err);
/* Read exactly n bytes from `at` on.  FORMAT: the file ends before. */
EBB_MUST_CHECK
ebb_status ebb_file_read_at(int fd, const char *path, void *out, size_t n, uint64_t at,
                            ebb_error *err);
/* Read n bytes, of which the last may lie beyond the file's end: FORMAT if fewer
 * than n_must are there.  For direct reads all but n_must are multiples of a block. */
EBB_MUST_CHECK
ebb_status ebb_file_read_range(int fd, const char *path, void *out, size_t n, size_t n_must,
                               uint64_t at, ebb_error *err);
/* Write exactly n bytes at `at`; on failure some of them may stand. */
EBB_MUST_CHECK
ebb_status ebb_file_write_at(int fd, const char *path, const void *data, size_t n, uint64_t at,
                             ebb_error *err);
/* Write behind the file's end: all of it, or the file stays as it was.  Hold a lock where others
 * write to it too. */
EBB_MUST_CHECK
ebb_status ebb_file_append(int fd, const char *path, const void *data, size_t n, ebb_error *err);
/* Until the disk has it: what was written survives a loss of power.  Cost: milliseconds. */
EBB_MUST_CHECK
ebb_status ebb_file_sync(int fd, const char *path, ebb_error *err);

/* Room on the disk for the file's first n bytes, of which none changes.  A file system that cannot
 * promise it does not. */
EBB_MUST_CHECK
ebb_status ebb_file_reserve(int fd, const char *path, uint64_t n, ebb_error *err);
/* Cut the file off at n bytes, or widen it. */
EBB_MUST_CHECK
ebb_status ebb_file_truncate(int fd, const char *path, uint64_t n, ebb_error *err);
/* Take the file for this program until it is closed; BUSY: another one has it. */
EBB_MUST_CHECK
ebb_status ebb_file_lock(int fd, const char *path, ebb_error *err);
/* The same, once whoever has it leaves it: within a second, for that one may be stopped; else
 * BUSY. */
EBB_MUST_CHECK
ebb_status ebb_file_lock_wait(int fd, const char *path, ebb_error *err);
/* Take it together with others who do so, against whoever takes it for himself: BUSY. */
EBB_MUST_CHECK
ebb_status ebb_file_lock_shared(int fd, const char *path, ebb_error *err);
/* Whether both paths lead to one file; false: one of them leads nowhere, or cannot be looked at. */
bool ebb_file_is_same(const char *path, const char *other);
/* Whether a symbolic link stands there, wherever it leads. */
bool ebb_file_is_link(const char *path);
/* Whether `path` leads to the open file still; false: it was removed, or replaced. */
bool ebb_file_is_at(int fd, const char *path);
/* Whether another program has taken it.  Asking does not take it, and does not hold up others who
 * ask. */
bool ebb_file_is_locked(int fd);
/* Whether another program has locked any byte of it for itself or together with others (fcntl), as
 * SQLite does while it has a database open. */
bool ebb_file_has_locked_bytes(int fd);

/* The process that has taken the file, as this one sees it; 0: nobody has, this very process has,
 * or one of another PID namespace. */
pid_t ebb_file_lock_holder(int fd);
/* Send a signal to the program that has taken the file: to that process, whoever has its number
 * meanwhile or elsewhere.  false: nobody has it, or it cannot be reached from here (another
 * container, a kernel before 5.3). */
bool ebb_file_signal_holder(int fd, int number);

/* Append the whole file to *out; LIMIT if it has more than max bytes.  A pipe that is
 * silent for 1.5 seconds, or takes ten, is IO; so is a device (a terminal, too), of which nothing
 * is read; but /dev/null is an empty file. */
EBB_MUST_CHECK
ebb_status ebb_file_slurp(const char *path, size_t max, ebb_buf *out, ebb_error *err);
/* The same where a file is kept: FORMAT at once for a pipe or whatever else is no regular file,
 * which is not opened; /dev/null is an empty one here, too. */
EBB_MUST_CHECK
ebb_status ebb_file_slurp_kept(const char *path, size_t max, ebb_buf *out, ebb_error *err);
/* Begin a file beside `path`, under a name that nobody can guess or prepare: PATH.<16 hex
 * digits>.new, which is appended to *beside.  Whoever begins it renames or removes it.  Errors: as
 * open, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_file_begin_beside(const char *path, ebb_buf *beside, int *fd, ebb_error *err);
/* Overwrite and remove what was begun beside `path`, or beside what a link there leads to, by
 * programs that were killed.  Nobody may be about to begin something there. */
void ebb_file_wipe_begun(const char *path);
/* Their names go first: whoever is at one all the same fails, and what has its place is left
 * alone. */
void ebb_file_remove_begun(const char *path);
/* Write beside, sync, rename: readers see the old file or the new one, after a loss of power, too.
 * Of a failure nothing stays.  Errors also: NOTFOUND (there is no such folder), USAGE (there is a
 * folder, a device or a pipe), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_file_replace(const char *path, const void *data, size_t n, ebb_error *err);
/* The same; what the file held is overwritten, and found by ebb_file_wipe_begun if a kill comes
 * before, where the file system can exchange names. */
EBB_MUST_CHECK
ebb_status ebb_file_replace_wiping(const char *path, const void *data, size_t n, ebb_error *err);
/* The file `from`, which was begun beside `to`, takes its name in that way. */
EBB_MUST_CHECK
ebb_status ebb_file_rename_wiping(const char *from, const char *to, ebb_error *err);
/* As replace, but only if no file of that name exists: else USAGE, and the existing file is kept,
 * even if it was created meanwhile. */
EBB_MUST_CHECK
ebb_status ebb_file_create(const char *path, const void *data, size_t n, ebb_error *err);
/* The same in the folder that is open, wherever its path leads by now; `name` has no slash.  Needs
 * /proc. */
EBB_MUST_CHECK
ebb_status ebb_file_create_in(int folder, const char *name, const char *path, const void *data,
                              size_t n, ebb_error *err);
/* Overwrite a file that has lost its name with zeros, down to the disk, as far as its file system
 * writes in place.  One that has another name still is somebody's copy, and stays.  Nobody waits
 * for the result, so this is no error. */
void ebb_file_overwrite(int fd);
/* Overwrite it and remove it; one with another name is only removed, one that is not there fine.
 * false: it stays. */
bool ebb_file_wipe(const char *path);
/* The same, its name goes first: nobody finds it half overwritten, not even after a loss of power,
 * and who gives it another name meanwhile keeps it. */
bool ebb_file_remove_wiping(const char *path);
/* Make the directory and its parents, 0700; what is made is there after a loss of power, too.
 * Error also: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_file_mkdirs(const char *path, ebb_error *err);

/* Ask the kernel to drop [at, at + n) from the page cache.  A hint: no error. */
void ebb_file_drop_cache(int fd, uint64_t at, uint64_t n);

#endif
