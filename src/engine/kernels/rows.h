/* kernels/rows.h - where the rows and columns of a product stand; for all instruction sets. */
#ifndef EBB_KERNELS_ROWS_H
#define EBB_KERNELS_ROWS_H
#include "kernels/kernels.h"

/* Row r of the weights; behind the last one, the last. */
static inline const uint8_t *row_at(const ebb_matmul *a, size_t r)
{
    return (const uint8_t *)a->w + (r < a->n_rows ? r : a->n_rows - 1) * a->row_bytes;
}

/* Column c of the activations. */
static inline const void *column(const ebb_matmul *a, size_t c)
{
    return (const char *)a->x + c * a->x_col_bytes;
}

#endif
