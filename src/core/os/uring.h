/* os/uring.h - several reads under way at once from one thread (io_uring).
 *
 * A ring belongs to one thread.  Every read that was begun must be waited for
 * before the ring is closed or its memory reused. */
#ifndef EBB_OS_URING_H
#define EBB_OS_URING_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

#define EBB_URING_DEPTH 8u       /* reads under way, of whoever reads weights */

typedef struct ebb_uring ebb_uring;

/* Room for `depth` reads.  UNSUPPORTED where the kernel has none or a container
 * or kernel.io_uring_disabled forbids it.  Errors: UNSUPPORTED, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_uring_open(uint32_t depth, ebb_uring **out, ebb_error *err);
void ebb_uring_close(ebb_uring *u);              /* NULL is fine */

/* Before this process gives up making rings (confine.h): make some for EBB_URING_DEPTH reads,
 * which can do nothing but read, and are lent by ebb_uring_open from now on.  Where the kernel
 * makes none, or has none with limits (before 5.10), open says UNSUPPORTED. */
void ebb_uring_keep(void);

/* Begin to read n bytes at `at` into `to`; `tag` comes back with the answer.
 * Error: IO (nothing was begun). */
EBB_MUST_CHECK
ebb_status ebb_uring_read(ebb_uring *u, int fd, void *to, size_t n, uint64_t at, uint32_t tag,
                          ebb_error *err);

/* Wait for a read to end: its tag, and the bytes read or -errno.  There must be one: as long
 * as it has not ended, the kernel may write to its memory. */
void ebb_uring_wait(ebb_uring *u, uint32_t *tag, int64_t *result);

#endif
