/* base/size.h - sizes as people write them. */
#ifndef EBB_SIZE_H
#define EBB_SIZE_H
#include <stdbool.h>
#include <stdint.h>

/* "6G", "800M", "1.5GiB", "4096" to bytes; false if it is no size. */
bool ebb_size_parse(const char *text, uint64_t *bytes);

/* "5.42 GiB": three digits, by powers of 1024.  Returns out. */
const char *ebb_size_text(uint64_t bytes, char out[16]);

#endif
