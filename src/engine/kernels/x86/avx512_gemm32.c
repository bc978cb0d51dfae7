/* Products of blocks of 32 for many columns: what a block of a tile does to 6 columns. */
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemm.h"
#include "kernels/x86/avx512_gemv.h"

enum { PANEL = 8 };

/* What the blocks of a column add beside their bytes. */
typedef struct column {
    int32_t start[PANEL];        /* -offset * sum of x */
    float   sum[PANEL];
} column;

typedef struct type32 {
    ebb_unpack32_fn       *unpack;
    ebb_gemm_micro *const *micro;
    int                    offset;
} type32;

GEMM_INLINE __m512 scaled(const ebb_tile32 *t, int h, __m512i v, __m512 dx, float sum, __m512 acc, bool has_min)
{
    acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->d[h]), dx), _mm512_cvtepi32_ps(v), acc);
    if (has_min)
        acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->m[h]), dx), _mm512_set1_ps(sum), acc);
    return acc;
}

/* The blocks of one tile times n columns. */
GEMM_INLINE void tile(const ebb_gemm_args *p, const ebb_tile32 *t, float *acc, size_t to_next, const int n,
                      const bool has_min)
{
    const column *col = p->column;
    const uint8_t *x[GEMM_COLS];
    __m512 y[GEMM_COLS][2];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        x[c] = p->x + offsetof(ebb_q8_32, q) + (size_t)c * p->x_col_bytes;
        y[c][0] = _mm512_load_ps(acc + c * GEMM_ROWS);
        y[c][1] = _mm512_load_ps(acc + c * GEMM_ROWS + 16);
    }
    for (size_t b = 0; b < p->n_blocks; b++, t++) {
        __m512i v[GEMM_COLS][2];

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            if (to_next)                         /* 40 bytes a block: some lines twice */
                _mm_prefetch((const char *)x[c] + to_next, _MM_HINT_T0);
            v[c][0] = v[c][1] = _mm512_set1_epi32(col[c].start[b]);
        }
        GEMM_UNROLL for (int g = 0; g < 8; g++) {
            __m512i w0 = _mm512_load_si512(t->q[g][0]), w1 = _mm512_load_si512(t->q[g][1]);

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                __m512i four = _mm512_set1_epi32(ebb_gemm_four(x[c] + 4 * g));

                v[c][0] = _mm512_dpbusd_epi32(v[c][0], w0, four);
                v[c][1] = _mm512_dpbusd_epi32(v[c][1], w1, four);
            }
        }
        GEMM_UNROLL for (int c = 0; c < n; c++) {
            /* d comes first */
            __m512 dx = _mm512_castsi512_ps(_mm512_set1_epi32(ebb_gemm_four(x[c] - offsetof(ebb_q8_32, q))));

            y[c][0] = scaled(t, 0, v[c][0], dx, col[c].sum[b], y[c][0], has_min);
            y[c][1] = scaled(t, 1, v[c][1], dx, col[c].sum[b], y[c][1], has_min);
            __asm__("" : "+v"(y[c][0]), "+v"(y[c][1]));      /* in place: no copies at the end of the loop */
            x[c] += sizeof(ebb_q8_32);
        }
    }
    GEMM_UNROLL for (int c = 0; c < n; c++) {
        _mm512_store_ps(acc + c * GEMM_ROWS, y[c][0]);
        _mm512_store_ps(acc + c * GEMM_ROWS + 16, y[c][1]);
    }
}

GEMM_INLINE void micro(const ebb_gemm_args *p, const int n, const bool has_min)
{
    for (size_t t = 0; t < p->n_tiles; t++)
        tile(p, (const ebb_tile32 *)p->tile + t * p->n_blocks, p->acc + t * TILE_ROWS, t ? 0 : p->to_next, n, has_min);
}

GEMM_MICRO(micro_plain, false)
GEMM_MICRO(micro_min, true)

static void unpack(const ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0, size_t n_blocks, void *out)
{
    size_t bytes = ebb_type_get(a->type)->block_bytes;

    for (int h = 0; h < 2; h++) {
        ebb_half rows;

        ebb_half_rows(a, r0 + (size_t)h * HALF_ROWS, b0 * bytes, &rows);
        ((const type32 *)k->more)->unpack(&rows, bytes, n_blocks, h, out);
    }
}

static ebb_gemm_micro *prepare_avx512_32(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                          _mm256_set1_epi32(sizeof(ebb_q8_32)));
    const type32 *t = k->more;
    __mmask8 mask = (__mmask8)((1u << p->n_blocks) - 1);

    for (size_t c = 0; c < n_cols; c++) {
        const uint8_t *sum = p->x + c * p->x_col_bytes + offsetof(ebb_q8_32, sum);
        __m256i v = _mm256_mmask_i32gather_epi32(_mm256_setzero_si256(), mask, at, sum, 1);
        column *o = (column *)out + c;

        _mm256_storeu_si256((void *)o->start, _mm256_mullo_epi32(v, _mm256_set1_epi32(-t->offset)));
        _mm256_storeu_ps(o->sum, _mm256_cvtepi32_ps(v));
    }
    return t->micro[n_cols];
}

/* Few columns come straight from the blocks; int8 needs no unpacking, so 8 rows at a time do as well as 16. */
#define ebb_avx512_gemv_Q8_0 ebb_avx2_gemv_Q8_0
#define TYPE(T, offset, micros)                                                                                     \
static void gemm_zmm_##T(const ebb_matmul *a)                                                                       \
{                                                                                                                   \
    static const type32 t = { ebb_avx512_unpack_##T, micros, offset };                                              \
    static const ebb_gemm_kind k = { TILE_ROWS, GEMM_COLS, sizeof(ebb_q8_32), PANEL, sizeof(ebb_tile32), unpack,    \
                                     prepare_avx512_32, &t };                                                       \
                                                                                                                    \
    ebb_gemm(a, &k);                                                                                                \
}
#define TYPES(X) X(Q8_0, 128, micro_plain) X(Q4_0, 8, micro_plain) X(Q4_1, 0, micro_min) X(Q5_0, 16, micro_plain) \
                 X(Q5_1, 0, micro_min) X(IQ4_NL, 128, micro_plain) X(MXFP4, 12, micro_plain)
TYPES(TYPE)

void ebb_kernels_fill_avx512_gemm32(ebb_kernels *k)
{
#define X(T, ...) k->matmul[EBB_TYPE_##T] = (ebb_matmul_slots){ .gemm = gemm_zmm_##T, .gemv = ebb_avx512_gemv_##T, \
                                                                .gemv_most_cols = GEMV_COLS };
    TYPES(X)
#undef X
}
