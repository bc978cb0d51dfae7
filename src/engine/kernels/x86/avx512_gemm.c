/* The loops of avx512_gemm.h. */
#include "kernels/x86/avx512_gemm.h"

enum { PANEL_BYTES = 32 << 10, COLUMN_BYTES = 8 << 10 };

typedef struct scratch {
    _Alignas(64) uint8_t tile[PANEL_BYTES];
    _Alignas(64) uint8_t column[COLUMN_BYTES];
    float acc[GEMM_MOST_COLS][GEMM_ROWS];
} scratch;

_Static_assert(sizeof(scratch) <= EBB_KERNEL_SCRATCH, "tiles must fit the scratch of a thread");

static void unpack(const ebb_matmul *a, const ebb_gemm_kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, scratch *s)
{
    size_t bytes = ebb_type_get(a->type)->block_bytes;

    for (size_t t = 0; t < n_tiles; t++)
        for (int h = 0; h < 2; h++) {
            ebb_half half;

            ebb_half_rows(a, r0 + t * TILE_ROWS + (size_t)h * HALF_ROWS, b0 * bytes, &half);
            k->unpack(k, &half, bytes, n_blocks, h, s->tile + t * n_blocks * k->tile_bytes);
        }
}

/* Rows [from, to) of the 64 at r0: what the next panel unpacks. */
static void prefetch(const ebb_matmul *a, size_t r0, size_t from, size_t to, size_t byte, size_t bytes)
{
    for (size_t r = r0 + from; r < r0 + to && r < a->n_rows; r++)
        for (size_t i = 0; i < bytes + 63; i += 64)
            _mm_prefetch((const char *)a->w + r * a->row_bytes + byte + i, _MM_HINT_T1);
}

/* Sums of n_cols columns from c0, which are complete. */
static void store(const ebb_matmul *a, size_t r0, size_t n_tiles, size_t c0, size_t n_cols, const float *acc)
{
    for (size_t i = 0; i < 2 * n_tiles; i++) {
        __mmask16 mask = ebb_row_mask(a->n_rows, r0 + 16 * i);

        for (size_t c = 0; c < n_cols; c++)
            _mm512_mask_storeu_ps(a->y + (c0 + c) * a->y_stride + r0 + 16 * i, mask, _mm512_load_ps(acc + c * GEMM_ROWS + 16 * i));
    }
}

static void columns(const ebb_matmul *a, const ebb_gemm_kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, size_t c0,
                    size_t n_cols, scratch *s)
{
    const uint8_t *x = (const uint8_t *)a->x + c0 * a->x_col_bytes + b0 * k->x_bytes;
    const ebb_type_info *type = ebb_type_get(a->type);
    size_t n_groups = (n_cols + GEMM_COLS - 1) / GEMM_COLS, bytes = type->block_bytes;
    bool is_last = (b0 + n_blocks) * type->block_len == a->n_k;

    for (size_t i = 0; i < n_groups; i++) {
        size_t from = n_cols * i / n_groups, to = n_cols * (i + 1) / n_groups;
        ebb_gemm_place p = { .tile = s->tile, .n_tiles = n_tiles, .n_blocks = n_blocks, .x = x + from * a->x_col_bytes,
                             .x_col_bytes = a->x_col_bytes, .ahead = i + 1 < n_groups ? (to - from) * a->x_col_bytes : 0,
                             .column = s->column, .acc = s->acc[from] };

        if (!is_last)
            prefetch(a, r0, GEMM_ROWS * i / n_groups, GEMM_ROWS * (i + 1) / n_groups, (b0 + n_blocks) * bytes, n_blocks * bytes);
        k->prepare(k, &p, to - from, s->column)(&p);
        if (is_last)                             /* here, where the next group hides what a store waits for */
            store(a, r0, n_tiles, c0 + from, to - from, p.acc);
    }
}

static void rows(const ebb_matmul *a, const ebb_gemm_kind *k, size_t r0, size_t c0, size_t n_cols, scratch *s)
{
    size_t n_blocks = a->n_k / ebb_type_get(a->type)->block_len, n_tiles = (a->n_rows - r0 + TILE_ROWS - 1) / TILE_ROWS;

    n_tiles = n_tiles < GEMM_TILES ? n_tiles : GEMM_TILES;
    memset(s->acc, 0, n_cols * sizeof *s->acc);
    for (size_t b = 0; b < n_blocks; b += k->panel) {
        size_t n = n_blocks - b < k->panel ? n_blocks - b : k->panel;

        unpack(a, k, r0, n_tiles, b, n, s);
        columns(a, k, r0, n_tiles, b, n, c0, n_cols, s);
    }
}

void ebb_avx512_gemm(const ebb_matmul *a, const ebb_gemm_kind *k)
{
    for (size_t r = 0; r < a->n_rows; r += GEMM_ROWS)
        for (size_t c = 0; c < a->n_cols; c += GEMM_MOST_COLS)
            rows(a, k, r, c, a->n_cols - c < GEMM_MOST_COLS ? a->n_cols - c : GEMM_MOST_COLS, a->scratch);
}
