/* Parts of matrices, and the products of their rows (weight_view.h). */
#include "model/weight_view.h"

#include <string.h>

/* A slice of few columns: some tens of microseconds of decode, so that nobody waits long for the last one. */
#define BYTES_FEW   ((size_t)512 << 10)
#define ROWS_FEWEST 32u

void ebb_weight_view_init(const ebb_forward *r, ebb_weight_view *h, const ebb_weight *w)
{
    h->w = *w;
    h->m = &r->net->matrices[w->matrix];
    h->begin = h->end = 0;
}

static uint32_t next_extent(const ebb_weight_view *h)
{
    return h->m->extent + h->end * h->m->stride;
}

bool ebb_weight_view_is_ready(const ebb_forward *r, const ebb_weight_view *h)
{
    return ebb_res_is_ready(r->res, next_extent(h));
}

ebb_status ebb_weight_view_acquire(ebb_forward *r, ebb_weight_view *h, ebb_error *err)
{
    ebb_status st = ebb_res_acquire(r->res, next_extent(h), &h->at[h->end], err);

    h->end += st == EBB_OK;
    return st;
}

bool ebb_weight_view_is_whole(const ebb_weight_view *h)
{
    return h->w.first == 0 && h->w.run == 0;
}

ebb_status ebb_weight_view_acquire_next(ebb_forward *r, ebb_weight_view *h, ebb_error *err)
{
    ebb_status st;

    do
        st = ebb_weight_view_acquire(r, h, err);
    while (st == EBB_OK && !ebb_weight_view_is_whole(h) && h->end < h->m->n_parts);
    return st;
}

void ebb_weight_view_release(ebb_forward *r, ebb_weight_view *h)
{
    for (; h->begin < h->end; h->begin++)
        ebb_res_release(r->res, h->m->extent + h->begin * h->m->stride);
}

uint32_t ebb_weight_view_first_row(const ebb_weight_view *h)
{
    return ebb_weight_view_is_whole(h) ? h->begin * h->m->part_rows : 0;
}

uint32_t ebb_weight_view_n_rows(const ebb_weight_view *h)
{
    uint64_t end = (uint64_t)h->end * h->m->part_rows;

    if (h->begin == h->end)
        return 0;
    return (ebb_weight_view_is_whole(h) && end < h->w.n_rows ? (uint32_t)end : h->w.n_rows) -
           ebb_weight_view_first_row(h);
}

const void *ebb_weight_view_row(const ebb_weight_view *h, uint32_t row)
{
    return (const char *)h->at[row / h->m->part_rows] + row % h->m->part_rows * h->w.row_bytes;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Rows [row, row + n) of the tensor, which lie in one part, times the active columns. */
static void multiply_run(const ebb_forward *r, const ebb_columns *cols, const ebb_weight_view *h, uint32_t row,
                         uint32_t n, float *y, size_t y_stride, uint32_t thread, const void *next)
{
    const ebb_weight *w = &h->w;
    ebb_act kind = ebb_kernel_act(w->type);
    size_t col_bytes = ebb_act_col_bytes(kind, w->n_k);
    ebb_matmul a = {
        .type = w->type, .w = ebb_weight_view_row(h, row), .row_bytes = w->row_bytes, .n_rows = n, .n_k = w->n_k,
        .x = (const char *)cols->act[kind] + cols->c0 * col_bytes, .x_col_bytes = col_bytes,
        .n_cols = ebb_n_columns(cols),
        .y = y, .y_stride = y_stride, .scratch = ebb_forward_scratch(r, thread), .next = next,
    };

    ebb_kernels_matmul(r->kern, &a);
}

/* A slice of a cold file waits for the disk: who cancels waits for no more than those at work. */
static bool is_canceled(const ebb_forward *r)
{
    if (!r->cancel || !atomic_load_explicit(r->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(r->is_cut, true, memory_order_relaxed);
    return true;
}

void ebb_weight_view_multiply(const ebb_forward *r, const ebb_columns *cols, const ebb_weight_view *h,
                              uint32_t row, uint32_t n, float *y, size_t y_stride, uint32_t thread,
                              const void *next)
{
    const ebb_weight *w = &h->w;

    if (is_canceled(r)) {                        /* what goes on with them must find numbers */
        for (uint32_t c = 0; c < ebb_n_columns(cols); c++)
            memset(y + c * y_stride, 0, n * sizeof *y);
        return;
    }
    for (uint32_t i = 0, m; i < n; i += m) {
        uint32_t at = row + i, in_run = w->run ? at % w->run : 0;

        m = w->run ? min_u32(w->run - in_run, n - i) : n - i;
        at = w->first + (w->run ? at / w->run * (w->run + w->skip) + in_run : at);
        m = min_u32(m, h->m->part_rows - at % h->m->part_rows);
        multiply_run(r, cols, h, at, m, y + i, y_stride, thread,
                     i + m < n && ebb_weight_view_is_whole(h) ? ebb_weight_view_row(h, at + m) : next);
    }
    for (uint32_t c = 0; w->scale && c < ebb_n_columns(cols); c++)
        r->kern->scale(y + c * y_stride, *w->scale, n);
    for (uint32_t c = 0; w->bias && c < ebb_n_columns(cols); c++)
        r->kern->add(y + c * y_stride, w->bias + row, n);
}

/* -- Slices ------------------------------------------------------------------- */

bool ebb_has_few_tokens(const ebb_columns *cols)
{
    return ebb_n_columns(cols) <= EBB_FEW_TOKENS;
}

uint32_t ebb_slice_rows(const ebb_columns *cols, const ebb_weight *w)
{
    size_t rows = BYTES_FEW / w->row_bytes / 16 * 16;

    if (!ebb_has_few_tokens(cols))
        return EBB_SLICE_ROWS;
    return rows > EBB_SLICE_ROWS_FEW ? EBB_SLICE_ROWS_FEW : rows < ROWS_FEWEST ? ROWS_FEWEST : (uint32_t)rows;
}

void ebb_scatter_rows(const float *rows, uint32_t n, uint32_t n_tokens, float *y, size_t y_stride)
{
    for (uint32_t c = 0; c < n_tokens; c++)
        memcpy(y + c * y_stride, rows + c * n, n * sizeof *y);
}
