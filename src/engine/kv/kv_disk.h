/* kv/kv_disk.h - the KV cache on disk: a directory of files (kv_file.h), a thread that writes them,
 * and a cap.
 *
 * The writer reads a job's blocks while the sequence goes on, so the caller keeps references to
 * them until the job is done.  The least recently used files are removed first; the files of a
 * sequence are touched from its end to its beginning, so that a block is removed before the
 * blocks it depends on.  Several programs may use a directory at once: a file appears complete,
 * by rename, and one that is gone is computed again.
 *
 * Threads: all calls from one thread; the writer is the module's own. */
#ifndef EBB_KV_DISK_H
#define EBB_KV_DISK_H
#include "kv/kv_file.h"
#include "kv/kv_swept.h"

typedef struct ebb_kv_disk ebb_kv_disk;

/* Files to be written: blocks from the first one on, then perhaps a tail and a recurrent state. */
typedef struct ebb_kv_disk_job {
    struct ebb_kv_disk_job *next;
    ebb_kv_file *items;
    uint32_t       n_items;
    ebb_kv_swept   swept;        /* as of when they began to be computed: if the folder was swept
                                    since, nothing more is written */
} ebb_kv_disk_job;

typedef struct ebb_kv_disk_limits {
    uint64_t max_files;          /* 16,384 */
    uint64_t look_ns;            /* 5 s: the folder is not listed again for a job before that, until
                                    a sixteenth of the cap was written */
} ebb_kv_disk_limits;

/* The directory is created; it must be this user's, and nobody else's to write.  max_bytes 0: the
 * lesser of 4 GiB and a tenth of the file system's free space.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_disk_open(const char *dir, uint64_t max_bytes, ebb_kv_disk **out, ebb_error *err);
/* After all jobs are reaped; NULL is fine. */
void ebb_kv_disk_close(ebb_kv_disk *d);
/* Other limits than the usual ones, for tests.  Before the first job. */
void ebb_kv_disk_set_limits(ebb_kv_disk *d, const ebb_kv_disk_limits *limits);
/* Whether a directory would be opened, and could be written to, as far as it can be told without
 * making it: one that is not there yet needs a place.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_disk_check(const char *dir, ebb_error *err);
const char *ebb_kv_disk_dir(const ebb_kv_disk *d);
/* Whether files can be made in the directory, as far as modes and mounts say.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_kv_disk_check_writable(const ebb_kv_disk *d, ebb_error *err);

/* Has the job's files written that do not exist yet; returns at once.  The job stays the caller's,
 * unchanged until it is reaped. */
void ebb_kv_disk_submit(ebb_kv_disk *d, ebb_kv_disk_job *job);
/* A job that is done, with or without success.  `wait`: waits for one that is not done yet.  NULL:
 * there is none. */
ebb_kv_disk_job *ebb_kv_disk_reap(ebb_kv_disk *d, bool wait);

/* For a job's `swept`; where it cannot be read, *out stays. */
void ebb_kv_disk_note_swept(const ebb_kv_disk *d, ebb_kv_swept *out);

/* As ebb_kv_file_has and ebb_kv_file_read; damaged files are removed.  From any thread. */
bool ebb_kv_disk_has(ebb_kv_disk *d, const ebb_kv_file *item, uint32_t *n_ids);
bool ebb_kv_disk_read(ebb_kv_disk *d, const ebb_kv_file *item);

/* A message for the user that was not taken yet: a damaged file, a full disk.  false: none. */
bool ebb_kv_disk_take_notice(ebb_kv_disk *d, char out[160]);

#endif
