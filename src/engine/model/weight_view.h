/* model/weight_view.h - what a product has acquired of a matrix, and the product of these rows: for
 * the operations that multiply (forward_ops.c, gated.c).
 *
 * A matrix comes in parts (net.h).  An operation holds the next part, and what is ready behind it
 * without waiting, multiplies their rows in slices, lets them go, and so on to the last. */
#ifndef EBB_WEIGHT_VIEW_H
#define EBB_WEIGHT_VIEW_H
#include "model/forward.h"

/* Parts [begin, end) of a weight's matrix are held, and where they are. */
typedef struct ebb_weight_view {
    ebb_weight        w;         /* a copy: a late thread of the pool may still look when the
                                    caller's is gone */
    const ebb_matrix *m;
    uint32_t          begin, end;
    const void       *at[EBB_MAX_PARTS];
} ebb_weight_view;

/* Begin with w: nothing is held, its first part comes next. */
void ebb_weight_view_init(const ebb_forward *r, ebb_weight_view *h, const ebb_weight *w);
/* Hold one part more; waits for it.  On failure what was held still is.  Errors: those of
 * ebb_res_acquire. */
EBB_MUST_CHECK
ebb_status ebb_weight_view_acquire(ebb_forward *r, ebb_weight_view *h, ebb_error *err);
/* The next part, or all of a matrix of which the weight is a view. */
EBB_MUST_CHECK
ebb_status ebb_weight_view_acquire_next(ebb_forward *r, ebb_weight_view *h, ebb_error *err);
/* Release all that is held; the next part stays the next. */
void ebb_weight_view_release(ebb_forward *r, ebb_weight_view *h);
/* The next part can be had without waiting. */
bool ebb_weight_view_is_ready(const ebb_forward *r, const ebb_weight_view *h);
/* The weight is its matrix, so that a part of it is a run of the weight's rows. */
bool ebb_weight_view_is_whole(const ebb_weight_view *h);

/* Rows of the weight that are held: [first, first + n). */
uint32_t ebb_weight_view_first_row(const ebb_weight_view *h);
uint32_t ebb_weight_view_n_rows(const ebb_weight_view *h);
/* Row of the tensor, in a part that is held. */
const void *ebb_weight_view_row(const ebb_weight_view *h, uint32_t row);
/* y[column * y_stride + i] = row (row + i) of W times the column, times the scale, plus the bias;
 * for i < n and the columns, whose activations are in cols->act.  `next` as in kernels.h.  Once
 * the pass is canceled: zeroes, at once.  Reads nothing of r but its constants and the thread's
 * scratch. */
void ebb_weight_view_multiply(const ebb_forward *r, const ebb_columns *cols,
                              const ebb_weight_view *h, uint32_t row, uint32_t n, float *y,
                              size_t y_stride, uint32_t thread, const void *next);

#define EBB_FEW_TOKENS 4u
/* So few columns that slices may be done twice (ebb_pool_run_hedged). */
bool ebb_has_few_tokens(const ebb_columns *cols);
/* Rows of w that make a slice. */
uint32_t ebb_slice_rows(const ebb_columns *cols, const ebb_weight *w);
/* rows[n_tokens][n] to their places in y. */
void ebb_scatter_rows(const float *rows, uint32_t n, uint32_t n_tokens, float *y, size_t y_stride);

#endif
