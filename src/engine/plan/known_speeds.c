/* The stored speeds of this machine, for the API (ebb/experimental/plan.h). */
#include <stdio.h>
#include <string.h>

#include "ebb/experimental/plan.h"
#include "os/limits.h"
#include "plan/speeds.h"

static ebb_status load_speeds(const ebb_engine_opts *o, ebb_speeds *out, ebb_error *err)
{
    const ebb_kernels *kern;
    ebb_status st = ebb_kernels_get(o ? o->cpu : EBB_ISA_AUTO, &kern, err);

    if (st == EBB_OK)
        ebb_speeds_load(out, kern, o && o->n_threads ? o->n_threads : ebb_limits_cpus(NULL));
    return st;
}

size_t ebb_machine_known_speeds(const ebb_engine_opts *opts, ebb_known_speed *out, size_t cap)
{
    ebb_speeds s;
    size_t n = 0;

    if (load_speeds(opts, &s, NULL) != EBB_OK)
        return 0;
    for (uint32_t i = 0; i < s.n && n < cap; i++) {
        const ebb_speed *x = &s.list[i];
        ebb_known_speed *k = &out[n++];

        *k = (ebb_known_speed){ .value = x->v[0], .age_s = ebb_speeds_age_s(&s, x), .n_seen = x->n_seen,
                                .is_quiet = x->contention <= EBB_QUIET, .lower = x->low[0],
                                .n_lower = x->low[0] > 0 ? x->n_low : 0,
                                .is_rate = strncmp(x->name, "weights ", 8) == 0 || strncmp(x->name, "disk ", 5) == 0 ||
                                           strncmp(x->name, "busy ", 5) == 0 };
        snprintf(k->name, sizeof k->name, "%s", x->name);
    }
    return n;
}

ebb_status ebb_machine_doubt_speeds(const ebb_engine_opts *opts, ebb_error *err)
{
    ebb_speeds s;
    ebb_status st = load_speeds(opts, &s, err);

    if (st != EBB_OK)
        return st;
    ebb_speeds_doubt(&s);
    ebb_speeds_save(&s);
    return EBB_OK;
}
