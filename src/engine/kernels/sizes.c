/* Bytes of activations and of rows of the KV cache (kernels.h). */
#include "kernels/kernels.h"

ebb_act ebb_kernel_act(ebb_type type)
{
    switch (ebb_type_get(type)->block_len) {
    case 32:
    case 64:
    case 128: return EBB_ACT_Q8_32;
    case 256: return EBB_ACT_Q8_256;
    default:  return EBB_ACT_F32;
    }
}

size_t ebb_act_bytes(ebb_act act, size_t n)
{
    return act == EBB_ACT_Q8_32    ? n / 32 * sizeof(ebb_q8_32)
           : act == EBB_ACT_Q8_256 ? n / 256 * sizeof(ebb_q8_256)
                                   : n * sizeof(float);
}

size_t ebb_act_col_bytes(ebb_act act, size_t n_k)
{
    size_t bytes = (ebb_act_bytes(act, n_k) + 63) / 64 * 64;

    return bytes % 4096 ? bytes : bytes + 64;    /* or the same element of all columns would want the same place in the
                                                    caches */
}

size_t ebb_kv_row_bytes(ebb_kv_type type, size_t dim)
{
    switch (type) {
    case EBB_KV_F32:  return dim * 4;
    case EBB_KV_F16:  return dim * 2;
    case EBB_KV_Q8_0: return (size_t)ebb_type_row_bytes(EBB_TYPE_Q8_0, dim);
    case EBB_KV_Q4_0: return (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_0, dim);
    default:          return 0;
    }
}
