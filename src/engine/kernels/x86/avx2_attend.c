/* Attention with AVX2. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/attend_body.h"

void ebb_kernels_fill_avx2_attend(ebb_kernels *k)
{
    attend_fill(k);
}
