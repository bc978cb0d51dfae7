/* residency/pin.h - reading a group into anonymous memory. */
#ifndef EBB_PIN_H
#define EBB_PIN_H
#include <stdatomic.h>

#include "residency/reader.h"
#include "residency/residency.h"

/* Bytes that a copy of the extent takes: the aligned range of the file around it. */
uint64_t ebb_pin_bytes(const ebb_res_extent *x);
/* Where the extent's first byte is in a copy that begins at `at`. */
const char *ebb_pin_address(const ebb_res_extent *x, const char *at);

/* Reads extents x[0..n) one behind the other to `to` (aligned, the sum of their ebb_pin_bytes),
 * past the page cache, as long as there is headroom, and drops their pages from the page cache.
 * Errors: IO, FORMAT (truncated), CANCELED, UNSUPPORTED, NOMEM (no headroom left). */
EBB_MUST_CHECK
ebb_status ebb_pin_read(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                        const ebb_res_extent *x, uint32_t n, char *to, ebb_headroom headroom,
                        const atomic_bool *cancel, ebb_error *err);

#endif
