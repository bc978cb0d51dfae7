/* Long work that another thread watches (progress.h). */
#include "base/progress.h"

enum { WHOLE = 1000 };

void ebb_progress_part(ebb_progress *p, uint32_t from, uint32_t to)
{
    if (!p)
        return;
    p->from = from;
    p->to = to;
    atomic_store(&p->permille, from);
}

bool ebb_progress_at(ebb_progress *p, uint64_t i, uint64_t n)
{
    uint32_t span;

    if (!p)
        return true;
    span = p->to ? p->to - p->from : WHOLE;
    if (n)
        atomic_store(&p->permille, p->from + (uint32_t)((double)i / (double)n * span));
    return !atomic_load(&p->is_stopped);
}

void ebb_progress_stop(ebb_progress *p)
{
    atomic_store(&p->is_stopped, true);
}

bool ebb_progress_is_stopped(const ebb_progress *p)
{
    return p && atomic_load(&p->is_stopped);
}

double ebb_progress_share(const ebb_progress *p)
{
    return atomic_load(&p->permille) / (double)WHOLE;
}
