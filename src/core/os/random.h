/* os/random.h - random bytes of the kernel, for names and keys that nobody can guess. */
#ifndef EBB_OS_RANDOM_H
#define EBB_OS_RANDOM_H
#include <stddef.h>

#include "ebb/status.h"

/* Fills out[0..n), n <= 256.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_random(void *out, size_t n, ebb_error *err);

#endif
