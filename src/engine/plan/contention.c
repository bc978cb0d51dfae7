/* What others used (contention.h). */
#include "plan/contention.h"

#include <stddef.h>

#include "base/clock.h"

void ebb_contention_begin(ebb_contention_mark *mark)
{
    mark->clock_s = ebb_clock_s();
    mark->own_s = ebb_proc_cpu_s();
    mark->is_known = ebb_cpu_use_read(NULL, &mark->machine);
}

double ebb_contention_since(const ebb_contention_mark *mark, double least_s, double unknown)
{
    ebb_contention_mark now;
    double all_s, others_s;

    if (!mark->is_known || ebb_clock_s() - mark->clock_s < least_s)
        return unknown;
    ebb_contention_begin(&now);
    all_s = now.machine.all_s - mark->machine.all_s;
    others_s = now.machine.busy_s - mark->machine.busy_s - (now.own_s - mark->own_s);
    if (!now.is_known || all_s <= 0)
        return unknown;
    return others_s <= 0 ? 0 : others_s >= all_s ? 1 : others_s / all_s;
}

void ebb_disk_contention_begin(uint64_t device, ebb_disk_mark *mark)
{
    ebb_proc own;

    *mark = (ebb_disk_mark){ .device = device };
    mark->is_known = ebb_disk_use_read(NULL, device, &mark->all_bytes) && ebb_proc_read(NULL, &own, NULL) == EBB_OK;
    if (mark->is_known)
        mark->own_bytes = own.read_bytes;
}

double ebb_disk_contention_since(const ebb_disk_mark *mark)
{
    ebb_disk_mark now;
    double all, own;

    ebb_disk_contention_begin(mark->device, &now);
    if (!mark->is_known || !now.is_known || now.all_bytes <= mark->all_bytes)
        return 0;
    all = (double)(now.all_bytes - mark->all_bytes);
    own = (double)(now.own_bytes - mark->own_bytes);
    return own <= 0 || own >= all ? 0 : 1 - own / all;
}
