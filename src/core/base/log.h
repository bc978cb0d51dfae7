/* base/log.h - the trace: one line per decision, for `--trace FILE`.
 *
 * Off until a file is opened; then every line has a time stamp and its module.
 * Any thread may call; lines never mix.  Costs one load when off. */
#ifndef EBB_BASE_LOG_H
#define EBB_BASE_LOG_H
#include <stdbool.h>

#include "ebb/status.h"

EBB_MUST_CHECK
ebb_status ebb_log_open(const char *path, ebb_error *err);     /* appends; 0600 */
void ebb_log_close(void);
bool ebb_log_has_gaps(void);                     /* lines of the last file are missing: its disk was full */
void ebb_log(const char *module, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
