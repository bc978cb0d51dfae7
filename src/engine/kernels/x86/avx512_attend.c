/* Attention with AVX-512. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/attend_body.h"

void ebb_kernels_fill_avx512_attend(ebb_kernels *k)
{
    attend_fill(k);
}
