/* backend/sampling_range.h - what a parameter of sampling may be, wherever it is named: on the
 * command line, in the configuration, by /set, in a model's file, in a request. */
#ifndef EBB_BACKEND_SAMPLING_RANGE_H
#define EBB_BACKEND_SAMPLING_RANGE_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ebb_sampling_range {
    size_t      at;              /* offset in ebb_sampler_params */
    bool        is_whole;        /* a uint32_t; else a float */
    double      min, max;
    const char *neutral;         /* the value that leaves the choice alone, and what it does */
} ebb_sampling_range;

/* That of the parameter at an offset in ebb_sampler_params; NULL: the seed, or none. */
const ebb_sampling_range *ebb_sampling_range_at(size_t at);
/* Whether x is in it; nan is in none. */
bool ebb_sampling_range_has(const ebb_sampling_range *r, double x);

#endif
