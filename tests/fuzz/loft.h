/* tests/fuzz/loft.h - a sound database of sessions: one, "Loft", of a question and its answer. */
#ifndef EBB_FUZZ_LOFT_H
#define EBB_FUZZ_LOFT_H
#include <stddef.h>

/* Its bytes, made at the first call; they stay the callee's. */
const char *fuzz_loft(size_t *n);

#endif
