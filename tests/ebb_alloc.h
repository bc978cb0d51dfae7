/* Count what a test program has on the heap: bytes now, and the peak; and make
 * the nth allocation fail.  Include in one file of a program only.  Under a
 * sanitizer through its hooks, which cannot fail, else by standing before
 * glibc's allocator; memory from mmap is not counted. */
#ifndef EBB_TEST_ALLOC_H
#define EBB_TEST_ALLOC_H
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_llong alloc_now, alloc_peak;

static inline void alloc_add(long long n)
{
    long long now = atomic_fetch_add(&alloc_now, n) + n, peak = atomic_load(&alloc_peak);

    while (now > peak && !atomic_compare_exchange_weak(&alloc_peak, &peak, now))
        ;
}

/* Begin to measure; alloc_peak_since tells how far the heap has grown at most since then. */
static inline long long alloc_begin(void)
{
    long long now = atomic_load(&alloc_now);

    atomic_store(&alloc_peak, now);
    return now;
}

static inline long long alloc_peak_since(long long begin)
{
    return atomic_load(&alloc_peak) - begin;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Of the sanitizers' allocator interface, whose header gcc does not install. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *p);

static inline void alloc_hook(const volatile void *p, size_t n)
{
    (void)p;
    alloc_add((long long)n);
}

static inline void free_hook(const volatile void *p)
{
    if (p)
        alloc_add(-(long long)__sanitizer_get_allocated_size(p));
}

#define ALLOC_CAN_FAIL 0

static inline void alloc_start(void)
{
    __sanitizer_install_malloc_and_free_hooks(alloc_hook, free_hook);
}
#else
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void  __libc_free(void *p);

#define ALLOC_CAN_FAIL 1
static atomic_int alloc_countdown;               /* 0: off; 1: the next fails; -1: it has failed */

/* The nth allocation from now fails; 0 ends that and tells whether it was reached. */
static inline bool alloc_fail_nth(int n)
{
    return atomic_exchange(&alloc_countdown, n) < 0;
}

static inline bool alloc_fails(void)
{
    if (atomic_load(&alloc_countdown) <= 0 || atomic_fetch_sub(&alloc_countdown, 1) != 1)
        return false;
    atomic_store(&alloc_countdown, -1);
    errno = ENOMEM;
    return true;
}

static inline void *alloc_counted(void *p)
{
    alloc_add((long long)malloc_usable_size(p));
    return p;
}

void *malloc(size_t n)
{
    return alloc_fails() ? NULL : alloc_counted(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return alloc_fails() ? NULL : alloc_counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    long long before = (long long)malloc_usable_size(p);
    void *q = alloc_fails() ? NULL : __libc_realloc(p, n);

    if (!q && n > 0)                             /* p stands as it was */
        return NULL;
    alloc_add(-before);
    return alloc_counted(q);
}

void free(void *p)
{
    alloc_add(-(long long)malloc_usable_size(p));
    __libc_free(p);
}

static inline void alloc_start(void) { }
#endif
#endif
