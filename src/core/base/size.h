/* base/size.h - sizes as people write them, and products of sizes that somebody else wrote. */
#ifndef EBB_SIZE_H
#define EBB_SIZE_H
#include <stdbool.h>
#include <stdint.h>

/* "6G", "800M", "1.5GiB", "4096" to bytes; false if it is no size. */
bool ebb_size_parse(const char *text, uint64_t *bytes);

/* "5.42 GiB": three digits, by powers of 1024.  Returns out. */
const char *ebb_size_text(uint64_t bytes, char out[16]);
/* The same, never less than that: what is needed, and read back (ebb_size_parse) is enough. */
const char *ebb_size_text_up(uint64_t bytes, char out[16]);
/* The same, never more than that: what there is. */
const char *ebb_size_text_down(uint64_t bytes, char out[16]);

/* -- Arithmetic.  Sizes from a file may be any: their product is checked before it is believed. */

/* *out = a * b.  false: that has more than 64 bits, and *out stays what it was. */
static inline bool ebb_size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t v;

    if (__builtin_mul_overflow(a, b, &v))
        return false;
    *out = v;
    return true;
}

/* For bytes that are counted and then compared with what there is: UINT64_MAX stands for
 * all that have more than 64 bits, and fits no budget. */
static inline uint64_t ebb_size_times(uint64_t a, uint64_t b)
{
    uint64_t v = UINT64_MAX;

    (void)ebb_size_mul(a, b, &v);
    return v;
}

static inline uint64_t ebb_size_plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
