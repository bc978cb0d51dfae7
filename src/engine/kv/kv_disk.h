/* kv/kv_disk.h - the KV cache on disk: a folder of files (kv_file.h), a thread that
 * writes them, and a cap.
 *
 * What a job names is read by the writer while the sequence goes on, so its owner
 * holds the blocks until the job comes back.  The files used longest ago go
 * first; a sequence's files are touched from its end to its beginning, so that an
 * end goes before what it stands on.  Several programs may use a folder at once: files
 * appear whole, by renaming, and whoever finds one gone computes instead.
 *
 * Threads: all calls from one thread; the writer is the module's own. */
#ifndef EBB_KV_DISK_H
#define EBB_KV_DISK_H
#include "kv/kv_file.h"

typedef struct ebb_kv_disk ebb_kv_disk;

/* Blocks from the first one on, then perhaps a tail and a state. */
typedef struct ebb_kv_disk_job {
    struct ebb_kv_disk_job *next;
    ebb_kv_file *items;
    uint32_t       n_items;
} ebb_kv_disk_job;

/* The folder is made; max_bytes 0: the lesser of 4 GiB and a tenth of the room that
 * there is.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_disk_open(const char *dir, uint64_t max_bytes, ebb_kv_disk **out, ebb_error *err);
/* After all jobs have come back; NULL is fine. */
void ebb_kv_disk_close(ebb_kv_disk *d);

/* Write what of the job is not there yet; returns at once. */
void ebb_kv_disk_submit(ebb_kv_disk *d, ebb_kv_disk_job *job);
/* A job that is done, whatever came of it.  `wait`: if one is under way, until it
 * is done.  NULL: there is none. */
ebb_kv_disk_job *ebb_kv_disk_reap(ebb_kv_disk *d, bool wait);

/* As ebb_kv_file_has and _read.  A file that is damaged is removed.  May be called
 * from several threads at once. */
bool ebb_kv_disk_has(ebb_kv_disk *d, const ebb_kv_file *item, uint32_t *n_ids);
bool ebb_kv_disk_read(ebb_kv_disk *d, const ebb_kv_file *item);

/* What the user should know, once: a damaged file, a full disk.  false: nothing. */
bool ebb_kv_disk_take_notice(ebb_kv_disk *d, char out[160]);

#endif
