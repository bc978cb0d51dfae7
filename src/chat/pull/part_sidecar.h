/* pull/part_sidecar.h - what is remembered beside a file that is under way, or waits for the others
 * of its model: NAME.gguf.part.json. */
#ifndef EBB_PULL_PART_SIDECAR_H
#define EBB_PULL_PART_SIDECAR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef struct ebb_pull_sidecar {
    char     command[1024];      /* that goes on with it */
    uint64_t n_bytes;            /* of the whole file; UINT64_MAX: unknown */
    char     sha256[65];         /* ""; so for the next */
    char     etag[200], modified[64];
    char     boot[40];           /* the start of the machine that wrote to the part last; "": of an
                                  * older ebb, or a user's own part; "?": it is not known, or a
                                  * sync has failed */
    uint64_t n_synced;           /* bytes of the part that are there after another one, too */
} ebb_pull_sidecar;

/* false: there is none, or it is damaged; *n is then empty. */
bool ebb_pull_sidecar_read(const char *part_path, ebb_pull_sidecar *n);
EBB_MUST_CHECK
ebb_status ebb_pull_sidecar_write(const char *part_path, const ebb_pull_sidecar *n, ebb_error *err);
void ebb_pull_sidecar_remove(const char *part_path);

#endif
