/* Guarded mappings (guard.h). */
#include "os/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fault.h"

#define CHUNK_GUARDS 64

struct ebb_guard {
    atomic_uintptr_t begin, end;         /* begin 0: free */
    atomic_bool      is_hit;
};

/* A list that only grows: the handler may walk it in any thread at any moment. */
typedef struct chunk chunk;
struct chunk {
    ebb_guard        guards[CHUNK_GUARDS];
    _Atomic(chunk *) next;
};

static chunk first;
static atomic_uintptr_t page_bytes = 4096;       /* the machine's own from the first guard on: 64 KiB on some */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of adding and of what follows; never taken by the handler */
static struct sigaction original;        /* what SIGBUS did before us ... */
static bool has_original;
static struct sigaction before;          /* ... and when we last took its place: who came behind us, and who may hand on
                                            to us, since he found us there */

/* The guard whose mapping `at` lies in, NULL if none; the end of that mapping. */
static ebb_guard *guard_of(uintptr_t at, uintptr_t *end)
{
    for (chunk *c = &first; c; c = atomic_load(&c->next))
        for (int i = 0; i < CHUNK_GUARDS; i++) {
            uintptr_t begin = atomic_load(&c->guards[i].begin);

            *end = atomic_load(&c->guards[i].end);
            if (begin && at >= begin && at < *end)
                return &c->guards[i];
        }
    return NULL;
}

/* By a bare system call: to the thread sanitizer mmap is a write to all of the mapping, which other threads read; they
 * find what was there or zeroes, and what they compute is worth nothing either way. */
static bool map_zeroes(uintptr_t begin, uintptr_t end)
{
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;

    return syscall(SYS_mmap, begin, end - begin, (long)PROT_READ, flags, -1L, 0L) != -1;
}

static void on_bus(int number, siginfo_t *info, void *context);
static const struct sigaction ours = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER };

static bool is_same_action(const struct sigaction *a, const struct sigaction *b)
{
    return (a->sa_flags & SA_SIGINFO) == (b->sa_flags & SA_SIGINFO) && a->sa_handler == b->sa_handler;
}

static bool is_installed(int number, const struct sigaction *action)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && is_same_action(&now, action);
}

/* A function that can be called in place of the system, which would take it out first. */
static bool is_function(const struct sigaction *a)
{
    return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN && !(a->sa_flags & SA_RESETHAND);
}

static void call_function(const struct sigaction *a, int number, siginfo_t *info, void *context)
{
    if (a->sa_flags & SA_SIGINFO)
        a->sa_sigaction(number, info, context);
    else
        a->sa_handler(number);
}

/* The signal of somebody else's page goes to whoever had our place last; he stands there while he looks at it.  So if
 * it comes to us and he stands there, he has handed it on: then it goes to who was there before us.  What is no
 * function gets our place for good: the page is touched again. */
static void hand_on(int number, siginfo_t *info, void *context)
{
    bool is_from_him = !is_installed(number, &ours);
    const struct sigaction *to = is_from_him ? &original : &before;

    if (!is_from_him || !is_function(to))
        sigaction(number, to, NULL);
    if (is_function(to))
        call_function(to, number, info, context);
    if (!is_from_him && is_function(to) && is_installed(number, to))
        sigaction(number, &ours, NULL);
}

/* Runs in the thread that touched the page, which goes on with a zero. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, page = at & ~(atomic_load(&page_bytes) - 1), end;
    ebb_guard *g = guard_of(at, &end);
    int saved = errno;

    if (g && map_zeroes(page, end)) {
        atomic_store(&g->is_hit, true);
        errno = saved;
        return;
    }
    hand_on(number, info, context);
    errno = saved;
}

void ebb_guard_arm(void)
{
    struct sigaction now;

    pthread_mutex_lock(&lock);
    atomic_store(&page_bytes, (uintptr_t)sysconf(_SC_PAGESIZE));
    if (sigaction(SIGBUS, NULL, &now) == 0 && !is_same_action(&now, &ours)) {
        if (!has_original)
            original = now;
        has_original = true;
        before = now;
        sigaction(SIGBUS, &ours, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* A free guard, under the lock; NULL: no memory for more. */
static ebb_guard *find_free(void)
{
    chunk *last = &first;

    for (chunk *c = last; c; last = c, c = atomic_load(&c->next))
        for (int i = 0; i < CHUNK_GUARDS; i++)
            if (atomic_load(&c->guards[i].begin) == 0)
                return &c->guards[i];
    if (ebb_os_fault(ENOMEM))
        return NULL;
    atomic_store(&last->next, calloc(1, sizeof *last));
    last = atomic_load(&last->next);
    return last ? last->guards : NULL;
}

ebb_status ebb_guard_add(const ebb_map *m, ebb_guard **out, ebb_error *err)
{
    uintptr_t page;
    ebb_guard *g;

    *out = NULL;
    if (!m->data)
        return EBB_OK;
    ebb_guard_arm();
    page = atomic_load(&page_bytes);
    pthread_mutex_lock(&lock);
    g = find_free();
    if (g) {
        atomic_store(&g->is_hit, false);
        atomic_store(&g->end, (uintptr_t)m->data + ((m->n_bytes + page - 1) & ~(page - 1)));
        atomic_store(&g->begin, (uintptr_t)m->data);
    }
    pthread_mutex_unlock(&lock);
    *out = g;
    return g ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to guard a mapped file");
}

void ebb_guard_remove(ebb_guard *g)
{
    if (g)
        atomic_store(&g->begin, 0);
}

bool ebb_guard_is_hit(const ebb_guard *g)
{
    return g && atomic_load_explicit(&g->is_hit, memory_order_acquire);
}

bool ebb_guard_heal(ebb_guard *g, int fd)
{
    uintptr_t begin;

    if (!ebb_guard_is_hit(g))
        return true;
    begin = atomic_load(&g->begin);
    if (mmap((void *)begin, atomic_load(&g->end) - begin, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return false;
    atomic_store(&g->is_hit, false);
    return true;
}
