/* base/hash.h - a 128-bit hash that names things: SipHash-2-4 with 128 bits of
 * output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
 *
 * The digest of given bytes under a given key never changes between versions
 * of ebb: it is written to disk.  Cost: about 1 ns per byte, no allocation. */
#ifndef EBB_BASE_HASH_H
#define EBB_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

/* out = hash of data[0..n) under `key` (NULL: all zero).  A digest may be the
 * key of the next call, which chains pieces: h = H(h, piece).  key == out is allowed. */
void ebb_hash128(const void *data, size_t n, const uint8_t key[16], uint8_t out[16]);

/* For tables in memory whose keys come from outside: SipHash-1-3, 64 bits, under a key of this
 * process that nobody outside knows.  Differs from run to run.  Cost: some ns for a word. */
uint64_t ebb_hash_table(const void *data, size_t n);

#endif
