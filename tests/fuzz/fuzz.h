/* tests/fuzz/fuzz.h - what the fuzzers share.
 *
 * A fuzzer is a function that takes any bytes and must come back: libFuzzer makes the bytes
 * (`make fuzz`), the sanitizers watch, and FUZZ_MUST states what has to hold besides. */
#ifndef EBB_FUZZ_H
#define EBB_FUZZ_H
#include <stddef.h>
#include <stdint.h>

#include "support/broken_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FUZZ_MUST(what) ((what) ? (void)0 : __builtin_trap())

#endif
