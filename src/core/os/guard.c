/* Guarded mappings (guard.h). */
#include "os/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define MAX_GUARDS 64
#define PAGE_BYTES ((uintptr_t)4096)

struct ebb_guard {
    atomic_uintptr_t begin, end;         /* begin 0: free */
    atomic_bool      is_hit;
};

static ebb_guard guards[MAX_GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;         /* of adding and of `before`; never taken by the handler */
static struct sigaction before;          /* what SIGBUS did without us */

/* Runs in the thread that touched the page, which goes on with a zero. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int saved = errno;

    (void)context;
    for (int i = 0; i < MAX_GUARDS; i++) {
        uintptr_t begin = atomic_load(&guards[i].begin), end = atomic_load(&guards[i].end), page = at & ~(PAGE_BYTES - 1);

        if (!begin || at < begin || at >= end)
            continue;
        if (mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
            break;
        atomic_store(&guards[i].is_hit, true);
        errno = saved;
        return;
    }
    sigaction(number, &before, NULL);            /* the page is touched again, and the signal comes to whom it came before */
    errno = saved;
}

void ebb_guard_arm(void)
{
    struct sigaction now, ours = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER };

    pthread_mutex_lock(&lock);
    if (sigaction(SIGBUS, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus)) {
        before = now;
        sigaction(SIGBUS, &ours, NULL);
    }
    pthread_mutex_unlock(&lock);
}

ebb_guard *ebb_guard_add(const ebb_map *m)
{
    ebb_guard *g = NULL;

    ebb_guard_arm();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_GUARDS && !g && m->data; i++)
        if (atomic_load(&guards[i].begin) == 0)
            g = &guards[i];
    if (g) {
        atomic_store(&g->is_hit, false);
        atomic_store(&g->end, (uintptr_t)m->data + ((m->n_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1)));
        atomic_store(&g->begin, (uintptr_t)m->data);
    }
    pthread_mutex_unlock(&lock);
    return g;
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
