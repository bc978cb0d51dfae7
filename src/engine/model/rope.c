/* Angles of the rotary embedding (RoFormer, Su et al. 2021, eq. 34), in double:
 * at position 100,000 a float angle would be off by a hundredth of a turn. */
#include <math.h>

#include "model/forward.h"

#define PI 3.14159265358979323846

/* The pair that makes `turns` full rotations in the original context, as a real number. */
static double pair_of(const ebb_rope *rope, double turns)
{
    return rope->n_rot * log(rope->n_ctx_orig / (turns * 2 * PI)) / (2 * log(rope->freq_base));
}

/* YaRN (Peng et al. 2023, "NTK-by-parts"): 0 for pairs that are left alone, 1 for pairs that are scaled. */
static double yarn_share(const ebb_rope *rope, uint32_t i)
{
    double low = fmax(0, floor(pair_of(rope, rope->beta_fast)));
    double high = fmin(rope->n_rot - 1, ceil(pair_of(rope, rope->beta_slow)));

    return fmin(fmax((i - low) / fmax(0.001, high - low), 0), 1);
}

void ebb_rope_freqs(const ebb_rope *rope, uint32_t n_ctx, double *freqs)
{
    const float *factors = rope->long_factors && n_ctx > rope->n_ctx_orig ? rope->long_factors : rope->freq_factors;

    for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
        double share = rope->is_yarn ? yarn_share(rope, i) : 1;

        freqs[i] = pow(rope->freq_base, -2.0 * i / rope->n_rot) * (share * rope->freq_scale + 1 - share);
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

void ebb_rope_shift_table(const ebb_rope *rope, const double *freqs, uint32_t n, float *cos_sin)
{
    for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
        *cos_sin++ = (float)cos(n * freqs[i]);
        *cos_sin++ = (float)-sin(n * freqs[i]);
    }
}

void ebb_rope_rotate(const ebb_forward *r, const ebb_rope *rope, const float *cos_sin, float *x)
{
    if (rope->is_halves)
        r->kern->rope_halves(x, cos_sin, rope->n_rot);
    else
        r->kern->rope_adjacent(x, cos_sin, rope->n_rot);
}
