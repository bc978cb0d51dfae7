/* Attention with NEON. */
#include "kernels/arm/v16_neon.h"

#include "kernels/attend_body.h"

void ebb_kernels_fill_neon_attend(ebb_kernels *k)
{
    attend_fill(k);
}
