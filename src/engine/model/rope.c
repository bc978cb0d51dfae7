/* Angles of the rotary embedding (RoFormer, Su et al. 2021, eq. 34), in double:
 * at position 100,000 a float angle would be off by a hundredth of a turn. */
#include <math.h>

#include "model/run.h"

void ebb_rope_freqs(const ebb_rope *rope, uint32_t n_ctx, double *freqs)
{
    const float *factors = rope->long_factors && n_ctx > rope->n_ctx_orig ? rope->long_factors : rope->factors;

    for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
        freqs[i] = pow(rope->freq_base, -2.0 * i / rope->n_rot) * rope->freq_scale;
        if (factors)
            freqs[i] /= (double)factors[i];
    }
}

void ebb_rope_table(const ebb_rope *rope, const double *freqs, uint32_t pos0, uint32_t n, float *cos_sin)
{
    for (uint32_t c = 0; c < n; c++) {
        for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
            double angle = (double)(pos0 + c) * freqs[i];

            *cos_sin++ = (float)(cos(angle) * rope->magnitude);
            *cos_sin++ = (float)(sin(angle) * rope->magnitude);
        }
    }
}
