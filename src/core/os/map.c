/* Memory from the system (map.h). */
#include "base/size.h"
#include "os/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "os/fault.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22    /* Linux 5.14 */
#endif

#define PAGE_BYTES ((uintptr_t)4096)

static ebb_status map_anon(size_t n_bytes, bool huge, int flags, ebb_map *out, ebb_error *err)
{
    size_t total = n_bytes + (huge ? EBB_HUGE_PAGE_BYTES : 0);
    /* so much is no size: roundings would wrap */
    bool is_refused = n_bytes > SIZE_MAX / 2 || ebb_os_fault(ENOMEM);
    char *p, *start;

    memset(out, 0, sizeof *out);
    if (n_bytes == 0)
        return EBB_OK;
    p = is_refused ? MAP_FAILED : mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (p == MAP_FAILED)
        return EBB_FAIL(err, EBB_NOMEM, "the system refuses %s of memory", ebb_size_text(n_bytes, (char[16]){ 0 }));
    start = p;
    if (huge) {                                  /* cut the region to a 2 MiB boundary */
        start = (char *)(((uintptr_t)p + EBB_HUGE_PAGE_BYTES - 1) & ~(EBB_HUGE_PAGE_BYTES - 1));
        if (start > p)
            munmap(p, (size_t)(start - p));
        size_t kept = (n_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
        if (start + kept < p + total)
            munmap(start + kept, (size_t)(p + total - (start + kept)));
        madvise(start, kept, MADV_HUGEPAGE);
    }
    out->data = start;
    out->n_bytes = n_bytes;
    return EBB_OK;
}

ebb_status ebb_map_anon(size_t n_bytes, bool huge, ebb_map *out, ebb_error *err)
{
    return map_anon(n_bytes, huge, 0, out, err);
}

ebb_status ebb_map_sparse(size_t n_bytes, bool huge, ebb_map *out, ebb_error *err)
{
    return map_anon(n_bytes, huge, MAP_NORESERVE, out, err);
}

ebb_status ebb_map_file(int fd, const char *path, size_t n_bytes, ebb_map *out, ebb_error *err)
{
    memset(out, 0, sizeof *out);
    if (n_bytes == 0)
        return EBB_OK;
    void *p = ebb_os_fault(ENOMEM) ? MAP_FAILED : mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    out->data = p;
    out->n_bytes = n_bytes;
    return EBB_OK;
}

void ebb_map_fini(ebb_map *m)
{
    if (m->data)
        munmap(m->data, m->n_bytes);
    memset(m, 0, sizeof *m);
}

double ebb_file_cached_share(int fd, uint64_t n_bytes)
{
    enum { SAMPLES = 64, PAGES = 16 };
    unsigned char there[PAGES];
    size_t window = PAGES * PAGE_BYTES, n = 0, n_there = 0;
    ebb_map m;

    if (ebb_map_file(fd, "", (size_t)n_bytes, &m, NULL) != EBB_OK)
        return 0;
    for (size_t i = 0; i < SAMPLES && n_bytes >= window; i++) {
        size_t at = (size_t)((n_bytes - window) / SAMPLES * i) / PAGE_BYTES * PAGE_BYTES;

        if (mincore((char *)m.data + at, window, there) != 0)
            break;
        n += PAGES;
        for (size_t k = 0; k < PAGES; k++)
            n_there += there[k] & 1;
    }
    ebb_map_fini(&m);
    return n ? (double)n_there / (double)n : 0;
}

bool ebb_map_is_cached(const void *p)
{
    unsigned char there = 1;

    return mincore((void *)((uintptr_t)p & ~(PAGE_BYTES - 1)), 1, &there) != 0 || (there & 1);
}

bool ebb_map_is_huge(const ebb_map *m)
{
    volatile char *first = m->data;
    unsigned char there = 0;

    if (m->n_bytes < EBB_HUGE_PAGE_BYTES)
        return false;
    *first = 0;
    if (mincore((char *)m->data + EBB_HUGE_PAGE_BYTES - PAGE_BYTES, 1, &there) != 0)
        there = 0;
    madvise(m->data, EBB_HUGE_PAGE_BYTES, MADV_DONTNEED);
    return there & 1;
}

bool ebb_map_advise(void *p, size_t n, ebb_advice advice)
{
    static const int advices[] = {
        [EBB_ADVISE_NORMAL] = MADV_NORMAL,     [EBB_ADVISE_SEQUENTIAL] = MADV_SEQUENTIAL,
        [EBB_ADVISE_RANDOM] = MADV_RANDOM,     [EBB_ADVISE_WILLNEED] = MADV_WILLNEED,
        [EBB_ADVISE_POPULATE] = MADV_POPULATE_READ, [EBB_ADVISE_DONTNEED] = MADV_DONTNEED,
    };
    uintptr_t from = (uintptr_t)p & ~(PAGE_BYTES - 1);
    uintptr_t to = ((uintptr_t)p + n + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

    if (ebb_os_fault(EFAULT))
        return false;
    return madvise((void *)from, to - from, advices[advice]) == 0;
}
