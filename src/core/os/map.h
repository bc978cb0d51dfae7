/* os/map.h - memory from the system: anonymous regions and mapped files. */
#ifndef EBB_OS_MAP_H
#define EBB_OS_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

/* A region; fini unmaps it.  A zeroed one is empty. */
typedef struct ebb_map {
    void  *data;
    size_t n_bytes;
} ebb_map;

/* `n_bytes` of zeroes, page-aligned; with `huge`, 2 MiB-aligned and backed by
 * huge pages where the system allows.  Nothing is touched.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_map_anon(size_t n_bytes, bool huge, ebb_map *out, ebb_error *err);
/* The same for a region of which less is written than there is memory: it may be larger than memory
 * and swap together, except where vm.overcommit_memory is 2.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_map_sparse(size_t n_bytes, bool huge, ebb_map *out, ebb_error *err);
/* The first n_bytes of the file, read-only, shared with the page cache.  Error: IO. */
EBB_MUST_CHECK
ebb_status ebb_map_file(int fd, const char *path, size_t n_bytes, ebb_map *out, ebb_error *err);
void ebb_map_fini(ebb_map *m);
#define EBB_HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Whether the system backs an anonymous region with huge pages; it writes to the first and gives it
 * back. */
bool ebb_map_is_huge(const ebb_map *m);
/* The share of the file's first n_bytes that is in the page cache, by samples; 0 where the
 * system does not say. */
double ebb_file_cached_share(int fd, uint64_t n_bytes);
/* Whether the page of a file's mapping is in the page cache; true where the system does not
 * say. */
bool ebb_map_is_cached(const void *p);

typedef enum ebb_advice {
    EBB_ADVISE_NORMAL, EBB_ADVISE_SEQUENTIAL, EBB_ADVISE_RANDOM,
    EBB_ADVISE_WILLNEED,         /* begin to read, do not wait */
    EBB_ADVISE_POPULATE,         /* read now and wait (MADV_POPULATE_READ) */
    EBB_ADVISE_DONTNEED,         /* give anonymous pages back; unmap file pages, which stay in the
                                    page cache */
} ebb_advice;
/* Advise on [p, p + n), widened to pages.  false with errno set if the kernel
 * refuses; only POPULATE's answer matters (EFAULT: the file was truncated). */
bool ebb_map_advise(void *p, size_t n, ebb_advice advice);

#endif
