/* The specification of the kernels: everything in plain C. */
#include "kernels/float_body.h"
#include "kernels/impl.h"

void ebb_kernels_fill_scalar(ebb_kernels *k)
{
    k->name = "scalar";
    float_body_fill(k);
    ebb_kernels_fill_scalar_quant(k);
    ebb_kernels_fill_scalar_float(k);
    ebb_kernels_fill_scalar_attend(k);
}
