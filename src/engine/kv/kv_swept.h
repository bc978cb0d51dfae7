/* kv/kv_swept.h - when files were last removed from a folder of cache files for what they say:
 * DIR/.swept, 16 random bytes, drawn anew before each sweep (kv_sweep.c).
 *
 * Whoever writes there notes them before he computes, and looks again after each file: if they are
 * others, the sequence may be one that was deleted meanwhile, and the file goes.  So nobody waits
 * for anybody: a file that appears before the sweep lists the folder is found by it, one that
 * appears later is removed by its writer, in this process or another. */
#ifndef EBB_KV_SWEPT_H
#define EBB_KV_SWEPT_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/status.h"

/* All zero: nothing was ever swept. */
typedef struct ebb_kv_swept {
    uint8_t mark[16];
} ebb_kv_swept;

/* The mark as it is now; false: it cannot be read, and *out stays.  Cost: a small read. */
bool ebb_kv_swept_read(const char *dir, ebb_kv_swept *out);
/* Draw another one; in a folder that cannot be written to nobody writes, so that is fine.
 * Errors: NOTFOUND (no such folder), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_swept_renew(const char *dir, ebb_error *err);

#endif
