/* The machine that is planned for (ebb/plan.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ebb/plan.h"

ebb_status ebb_machine_probe(const char *path, bool measure, ebb_machine *out, ebb_error *err)
{
    (void)path;
    (void)measure;
    memset(out, 0, sizeof *out);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (pages <= 0 || page <= 0)
        return EBB_FAIL(err, EBB_IO, "the system does not say how much memory it has");
    out->available_bytes = (uint64_t)pages * (uint64_t)page;
    snprintf(out->available_why, sizeof out->available_why, "physical memory");
    out->n_cpus = cpus > 0 ? (uint32_t)cpus : 1;
    return EBB_OK;
}
