/* Products of blocks of 32 for many columns: what a block of a tile does to 6 columns. */
#include "kernels/blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemm.h"
#include "kernels/x86/avx512_gemv.h"

typedef struct column_block {
    int32_t start;               /* -offset * sum of x */
    float   d, sum;
} column_block;

typedef struct type32 {
    ebb_unpack32_fn       *unpack;
    ebb_gemm_micro *const *micro;
    int                    offset;
} type32;

enum { PANEL = 8 };

GEMM_INLINE __m512 scaled(const column_block *col, const ebb_tile32 *t, int h, __m512i v, __m512 acc, bool has_min)
{
    __m512 dx = _mm512_set1_ps(col->d);

    acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->d[h]), dx), _mm512_cvtepi32_ps(v), acc);
    if (has_min)
        acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->m[h]), dx), _mm512_set1_ps(col->sum), acc);
    return acc;
}

GEMM_INLINE void tile(const ebb_gemm_place *p, const ebb_tile32 *t, float *acc, const int n, const bool has_min)
{
    const column_block *col = p->column;
#define X(c) const uint8_t *x##c = p->x + offsetof(ebb_q8_32, q) + (n > c ? c : 0) * p->x_col_bytes;                  \
             __m512 y0##c = _mm512_load_ps(acc + (n > c ? c : 0) * GEMM_ROWS), y1##c = _mm512_load_ps(acc + (n > c ? c : 0) * GEMM_ROWS + 16);
    GEMM_EACH(X)
#undef X
    for (size_t b = 0; b < p->n_blocks; b++, t++, col++) {
#define X(c) __m512i v0##c = _mm512_set1_epi32(col[n > c ? c * PANEL : 0].start), v1##c = v0##c;
        GEMM_EACH(X)
#undef X
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++) {
            __m512i w0 = _mm512_load_si512(t->q[g][0]), w1 = _mm512_load_si512(t->q[g][1]);
#define X(c) if (n > c) {                                                           \
                __m512i four = ebb_gemm_four(x##c + 4 * g);                         \
                v0##c = _mm512_dpbusd_epi32(v0##c, w0, four);                       \
                v1##c = _mm512_dpbusd_epi32(v1##c, w1, four);                       \
            }
            GEMM_EACH(X)
#undef X
        }
#define X(c) if (n > c) {                                                           \
            y0##c = scaled(col + c * PANEL, t, 0, v0##c, y0##c, has_min);           \
            y1##c = scaled(col + c * PANEL, t, 1, v1##c, y1##c, has_min);           \
            x##c += sizeof(ebb_q8_32);                                              \
        }
        GEMM_EACH(X)
#undef X
    }
#define X(c) if (n > c) {                                                           \
        _mm512_store_ps(acc + c * GEMM_ROWS, y0##c);                                \
        _mm512_store_ps(acc + c * GEMM_ROWS + 16, y1##c);                           \
    }
    GEMM_EACH(X)
#undef X
}

GEMM_INLINE void micro(const ebb_gemm_place *p, const int n, const bool has_min)
{
    for (size_t t = 0; t < p->n_tiles; t++)
        tile(p, (const ebb_tile32 *)p->tile + t * p->n_blocks, p->acc + t * TILE_ROWS, n, has_min);
}

GEMM_MICRO(micro_plain, false)
GEMM_MICRO(micro_min, true)

static void unpack(const ebb_gemm_kind *k, const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, void *out)
{
    ((const type32 *)k->more)->unpack(rows, block_bytes, n_blocks, h, out);
}

static ebb_gemm_micro *prepare(const ebb_gemm_kind *k, const ebb_gemm_place *p, size_t n_cols, void *out)
{
    const type32 *t = k->more;
    column_block *o = out;

    for (size_t c = 0; c < n_cols; c++, o += PANEL) {
        const ebb_q8_32 *x = (const ebb_q8_32 *)(p->x + c * p->x_col_bytes);

        for (size_t b = 0; b < p->n_blocks; b++)
            o[b] = (column_block){ -t->offset * x[b].sum, x[b].d, (float)x[b].sum };
    }
    return t->micro[n_cols];
}

/* Few columns come straight from the blocks; int8 needs no unpacking, so 8 rows at a time do as well as 16. */
#define ebb_avx512_gemv_Q8_0 ebb_avx2_gemv_Q8_0
#define X(T, offset, has_min)                                                                                       \
static void matmul_##T(const ebb_matmul *a)                                                                         \
{                                                                                                                   \
    static const type32 t = { ebb_avx512_unpack_##T, has_min ? micro_min : micro_plain, offset };                   \
    static const ebb_gemm_kind k = { sizeof(ebb_q8_32), PANEL, sizeof(ebb_tile32), sizeof(column_block), unpack, prepare, &t }; \
                                                                                                                    \
    if (a->n_cols <= GEMV_COLS)                                                                                     \
        ebb_avx512_gemv_##T(a);                                                                                     \
    else                                                                                                            \
        ebb_avx512_gemm(a, &k);                                                                                     \
}
EBB_TYPES_32(X)
#undef X

void ebb_kernels_fill_avx512_gemm32(ebb_kernels *k)
{
#define X(T, offset, has_min) k->matmul[EBB_TYPE_##T] = matmul_##T;
    EBB_TYPES_32(X)
#undef X
}
