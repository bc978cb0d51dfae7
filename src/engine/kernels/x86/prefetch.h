/* x86/prefetch.h - asking for what will be read soon, in the order in which memory is fastest. */
#ifndef EBB_KERNELS_PREFETCH_H
#define EBB_KERNELS_PREFETCH_H
#include <stddef.h>
#include <stdint.h>

/* Of n bytes from p on the lines [from, to) of each quarter, counted in bytes, into the second
 * cache.  A CPU's own fetching follows within a page of 4 KiB what is asked for: four pages side by
 * side keep it busy. */
static inline __attribute__((always_inline)) void ebb_fetch_quarters(const void *p, size_t n,
                                                                     size_t from, size_t to)
{
    for (size_t line = from / 64; line < to / 64; line++)
        for (size_t i = 0; i < 4; i++)
            __builtin_prefetch((const char *)p + i * (n / 4) + 64 * line, 0, 2);
}

#endif
