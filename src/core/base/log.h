/* base/log.h - the trace: one line per decision, for `--trace FILE`.
 *
 * Off until a file is opened; then every line has a time stamp and its module.
 * Any thread may call; lines never mix.  Costs one load when off. */
#ifndef EBB_BASE_LOG_H
#define EBB_BASE_LOG_H
#include "ebb/status.h"

/* Append to that file (created with 0600) from now on.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_log_open(const char *path, ebb_error *err);
void ebb_log_close(void);                        /* off again; no file is fine */
int ebb_log_gap_errno(void);                     /* why lines of the last file are missing; 0: none
                                                    is */
/* A line without its end. */
void ebb_log(const char *module, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
