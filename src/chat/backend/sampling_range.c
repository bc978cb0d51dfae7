/* The ranges of sampling (sampling_range.h). */
#include "backend/sampling_range.h"

#include "ebb/session.h"

#define AT(field) offsetof(ebb_sampler_params, field)

static const ebb_sampling_range ranges[] = {
    { AT(temp), false, 0, 10, "0: greedy" },
    { AT(top_k), true, 0, 1e6, "0: off" },
    { AT(top_p), false, 0, 1, "1: off" },
    { AT(min_p), false, 0, 1, "0: off" },
    { AT(repeat_penalty), false, 0.1, 10, "1: off" },    /* scores are divided by it */
    { AT(repeat_last_n), true, 0, 1e6, "0: off" },
};

const ebb_sampling_range *ebb_sampling_range_at(size_t at)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].at == at)
            return &ranges[i];
    return NULL;
}

bool ebb_sampling_range_has(const ebb_sampling_range *r, double x)
{
    return x >= r->min && x <= r->max;
}
