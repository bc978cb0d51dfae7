/* Products of blocks of 32 for many columns: tiles of 32 rows, 6 columns at a
 * time in registers.  The order of the loops is that of avx512_gemm256.c. */
#include "kernels/blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemv.h"

enum { COLS = 6, BLOCKS = 64, TILES = 8 };

typedef struct column_block {
    int32_t start;               /* -offset * sum of x */
    float   d, sum;
} column_block;

typedef struct scratch_32 {
    ebb_tile32   tile[TILES][BLOCKS];
    column_block column[COLS][BLOCKS];
} scratch_32;

_Static_assert(sizeof(scratch_32) <= EBB_KERNEL_SCRATCH, "tiles must fit the scratch of a thread");

typedef struct place {
    const ebb_tile32   *tile;
    size_t              n_blocks;
    const ebb_q8_32    *x;
    size_t              x_col_bytes;
    const column_block *column;
    float              *y;
    size_t              y_stride;
    __mmask16           mask[2];
    bool                is_first;
} place;

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define INLINE static inline __attribute__((always_inline))

INLINE __m512 load_sum(const place *p, int c, int h)
{
    return p->is_first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(p->mask[h], p->y + (size_t)c * p->y_stride + 16 * h);
}

INLINE __m512 scaled(const column_block *col, const ebb_tile32 *t, int h, __m512i v, __m512 acc, bool has_min)
{
    __m512 dx = _mm512_set1_ps(col->d);

    acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->d[h]), dx), _mm512_cvtepi32_ps(v), acc);
    if (has_min)
        acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->m[h]), dx), _mm512_set1_ps(col->sum), acc);
    return acc;
}

INLINE void micro(const place *p, const int n, const bool has_min)
{
#define X(c) const uint8_t *x##c = (const uint8_t *)p->x->q + (n > c ? c : 0) * p->x_col_bytes; \
             __m512 y0##c = _mm512_setzero_ps(), y1##c = y0##c;                                 \
             if (n > c) { y0##c = load_sum(p, c, 0); y1##c = load_sum(p, c, 1); }
    EACH(X)
#undef X
    for (size_t b = 0; b < p->n_blocks; b++) {
        const ebb_tile32 *t = p->tile + b;
        const column_block *col = p->column + b;
#define X(c) __m512i v0##c = _mm512_set1_epi32(col[n > c ? c * BLOCKS : 0].start), v1##c = v0##c;
        EACH(X)
#undef X
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++) {
            __m512i w0 = _mm512_load_si512(t->q[g][0]), w1 = _mm512_load_si512(t->q[g][1]);
#define X(c) if (n > c) {                                                                      \
                int32_t four;                                                                  \
                memcpy(&four, x##c + 4 * g, 4);                                                \
                v0##c = _mm512_dpbusd_epi32(v0##c, w0, _mm512_set1_epi32(four));               \
                v1##c = _mm512_dpbusd_epi32(v1##c, w1, _mm512_set1_epi32(four));               \
            }
            EACH(X)
#undef X
        }
#define X(c) if (n > c) {                                                          \
            y0##c = scaled(col + c * BLOCKS, t, 0, v0##c, y0##c, has_min);         \
            y1##c = scaled(col + c * BLOCKS, t, 1, v1##c, y1##c, has_min);         \
            x##c += sizeof(ebb_q8_32);                                             \
        }
        EACH(X)
#undef X
    }
#define X(c) if (n > c) {                                                                  \
        _mm512_mask_storeu_ps(p->y + c * p->y_stride, p->mask[0], y0##c);                  \
        _mm512_mask_storeu_ps(p->y + c * p->y_stride + 16, p->mask[1], y1##c);             \
    }
    EACH(X)
#undef X
}

typedef void micro_fn(const place *p);

#define MICRO(name, has_min)                                                  \
static void name##_1(const place *p) { micro(p, 1, has_min); }                \
static void name##_2(const place *p) { micro(p, 2, has_min); }                \
static void name##_3(const place *p) { micro(p, 3, has_min); }                \
static void name##_4(const place *p) { micro(p, 4, has_min); }                \
static void name##_5(const place *p) { micro(p, 5, has_min); }                \
static void name##_6(const place *p) { micro(p, 6, has_min); }                \
static micro_fn *const name[COLS + 1] = { NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };
MICRO(micro_plain, false)
MICRO(micro_min, true)

typedef struct kind {
    ebb_unpack32_fn  *unpack;
    micro_fn *const  *micro;
    int               offset;
} kind;

static void prepare_column(const ebb_q8_32 *x, size_t n_blocks, int offset, column_block *o)
{
    for (size_t b = 0; b < n_blocks; b++)
        o[b] = (column_block){ -offset * x[b].sum, x[b].d, (float)x[b].sum };
}

static void unpack(const ebb_matmul *a, const kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, scratch_32 *s)
{
    const size_t bytes = ebb_type_get(a->type)->block_bytes;
    ebb_half rows;

    for (size_t t = 0; t < n_tiles; t++)
        for (int h = 0; h < 2; h++) {
            ebb_half_rows(a, r0 + t * TILE_ROWS + (size_t)h * HALF_ROWS, b0 * bytes, &rows);
            k->unpack(&rows, bytes, n_blocks, h, s->tile[t]);
        }
}

static void columns(const ebb_matmul *a, const kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, scratch_32 *s)
{
    size_t n_groups = (a->n_cols + COLS - 1) / COLS;

    for (size_t i = 0; i < n_groups; i++) {
        size_t c0 = a->n_cols * i / n_groups, c1 = a->n_cols * (i + 1) / n_groups;
        const ebb_q8_32 *x = (const ebb_q8_32 *)((const char *)a->x + c0 * a->x_col_bytes) + b0;

        for (size_t c = c0; c < c1; c++)
            prepare_column((const ebb_q8_32 *)((const char *)x + (c - c0) * a->x_col_bytes), n_blocks, k->offset,
                           s->column[c - c0]);
        for (size_t t = 0; t < n_tiles; t++) {
            size_t r = r0 + t * TILE_ROWS;

            k->micro[c1 - c0](&(place){ .tile = s->tile[t], .n_blocks = n_blocks, .x = x, .x_col_bytes = a->x_col_bytes,
                .column = s->column[0], .y = a->y + c0 * a->y_stride + r, .y_stride = a->y_stride, .is_first = b0 == 0,
                .mask = { ebb_row_mask(a->n_rows, r), ebb_row_mask(a->n_rows, r + 16) } });
        }
    }
}

static void gemm(const ebb_matmul *a, const kind *k)
{
    size_t n_blocks = a->n_k / 32, n_rows = a->n_rows;

    for (size_t r = 0; r < n_rows; r += TILES * TILE_ROWS) {
        size_t n_tiles = (n_rows - r + TILE_ROWS - 1) / TILE_ROWS;

        n_tiles = n_tiles < TILES ? n_tiles : TILES;
        for (size_t b = 0; b < n_blocks; b += BLOCKS) {
            size_t n = n_blocks - b < BLOCKS ? n_blocks - b : BLOCKS;

            unpack(a, k, r, n_tiles, b, n, a->scratch);
            columns(a, k, r, n_tiles, b, n, a->scratch);
        }
    }
}

/* Few columns come straight from the blocks; int8 needs no unpacking, so 8 rows at a time do as well as 16. */
#define ebb_avx512_gemv_Q8_0 ebb_avx2_gemv_Q8_0
#define X(T, offset, has_min)                                                                \
static void matmul_##T(const ebb_matmul *a)                                                  \
{                                                                                            \
    if (a->n_cols <= GEMV_COLS)                                                              \
        ebb_avx512_gemv_##T(a);                                                              \
    else                                                                                     \
        gemm(a, &(kind){ ebb_avx512_unpack_##T, has_min ? micro_min : micro_plain, offset }); \
}
EBB_TYPES_32(X)
#undef X

void ebb_kernels_fill_avx512_gemm32(ebb_kernels *k)
{
#define X(T, offset, has_min) k->matmul[EBB_TYPE_##T] = matmul_##T;
    EBB_TYPES_32(X)
#undef X
}
