/* Products of blocks of 256 for many columns: what a block of a tile does to 7 columns.
 *
 * A sum of 16 or 32 products is multiplied by its scale and added by one vpdpwssd if it fits
 * 16 bits.  Whether it must, for any activations, depends on the type; where it need not,
 * `peak` and `side` of the columns at hand say whether it does, and vpmulld serves the rest:
 * the integers are the same either way. */
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemm.h"
#include "kernels/x86/avx512_gemv.h"

/* What the sums of a block of activations start with: -offset * sum of 16 or 32 elements. */
typedef struct column_block {
    _Alignas(64) int32_t start[16];
} column_block;

typedef struct type256 {
    ebb_unpack256_fn       *unpack;
    ebb_gemm_micro *const  *narrow;
    ebb_gemm_micro *const  *wide; /* NULL: never needed */
    int  group;                  /* of 4 elements under one scale: 4 or 8 */
    int  offset;                 /* what sums start with: -offset * sum of x */
    int  n_min;                  /* pairs of minima: 0, 4 or 8 */
    int  peak, side;             /* of activations, up to which sums fit */
} type256;

/* sum += v * scale; scale as (int16, 0). */
GEMM_INLINE __m512i scaled(__m512i sum, __m512i v, __m512i scale, bool is_wide)
{
    if (!is_wide)
        return _mm512_dpwssd_epi32(sum, v, scale);
    scale = _mm512_srai_epi32(_mm512_slli_epi32(scale, 16), 16);
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(v, scale));
}

/* The lines of a block of activations that are asked for while the first tile is at work; the rest with the second, for
 * a core has only 16 lines on their way, and others are wanted, too. */
enum { AHEAD_FIRST = 3, AHEAD_SECOND = sizeof(ebb_q8_256) / 64 - AHEAD_FIRST };

/* One block of one tile times n columns.  `to_next`: from these to the columns that come next, n_lines of which are
 * fetched meanwhile; 0: there are none. */
GEMM_INLINE void block(const ebb_tile256 *t, const uint8_t *const x[GEMM_COLS], const column_block *col, float *acc,
                       size_t to_next, const int n_lines, const int n, const int group, const bool has_start,
                       const int n_min, const bool is_wide)
{
    const size_t q = offsetof(ebb_q8_256, q),
                 sums = n_min == 8 ? offsetof(ebb_q8_256, sum) : offsetof(ebb_q8_256, sum32);
    __m512i sum[GEMM_COLS][2], v[GEMM_COLS][2];

    GEMM_UNROLL for (int c = 0; c < n; c++)
        sum[c][0] = sum[c][1] = _mm512_setzero_si512();
    for (int s = 0; s < 64 / group; s++) {
        if (to_next && s % 2 == 0 && s / 2 < n_lines)
            GEMM_UNROLL for (int c = 0; c < n; c++)
                _mm_prefetch((const char *)x[c] + to_next + 32 * s, _MM_HINT_T0);
        GEMM_UNROLL for (int c = 0; c < n; c++)
            v[c][0] = v[c][1] = has_start ? _mm512_set1_epi32(col[c].start[s]) : _mm512_setzero_si512();
        GEMM_UNROLL for (int g = 0; g < group; g++) {
            __m512i w0 = _mm512_load_si512(t->q[s * group + g][0]), w1 = _mm512_load_si512(t->q[s * group + g][1]);

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                __m512i four = _mm512_set1_epi32(ebb_gemm_four(x[c] + q + 4 * (s * group + g)));

                v[c][0] = _mm512_dpbusd_epi32(v[c][0], w0, four);
                v[c][1] = _mm512_dpbusd_epi32(v[c][1], w1, four);
            }
        }
        __m512i s0 = _mm512_load_si512(t->scale[s][0]), s1 = _mm512_load_si512(t->scale[s][1]);

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            sum[c][0] = scaled(sum[c][0], v[c][0], s0, is_wide);
            sum[c][1] = scaled(sum[c][1], v[c][1], s1, is_wide);
            __asm__("" : "+v"(sum[c][0]), "+v"(sum[c][1]));      /* in place: no copies at the end of the loop */
        }
    }
    GEMM_UNROLL for (int c = 0; c < n; c++)
        v[c][0] = v[c][1] = _mm512_setzero_si512();
    GEMM_UNROLL for (int j = 0; j < n_min; j++) {
        __m512i m0 = _mm512_load_si512(t->min[j][0]), m1 = _mm512_load_si512(t->min[j][1]);

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            __m512i pair = _mm512_set1_epi32(ebb_gemm_four(x[c] + sums + 4 * j));

            v[c][0] = _mm512_dpwssd_epi32(v[c][0], m0, pair);
            v[c][1] = _mm512_dpwssd_epi32(v[c][1], m1, pair);
        }
    }
    GEMM_UNROLL for (int c = 0; c < n; c++)
        GEMM_UNROLL for (int h = 0; h < 2; h++)
            ebb_gemm256_finish(t->d[h], n_min > 0 ? t->dmin[h] : NULL, acc + c * GEMM_ROWS + 16 * h, x[c], sum[c][h],
                               v[c][h]);
}

GEMM_INLINE void micro(const ebb_gemm_args *p, const int n, const int group, const bool has_start, const int n_min,
                       const bool is_wide)
{
    const uint8_t *x[GEMM_COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++)
        x[c] = p->x + (size_t)c * p->x_col_bytes;
    for (size_t t = 0; t < p->n_tiles; t++)
        block((const ebb_tile256 *)p->tile + t, x, p->column, p->acc + t * TILE_ROWS,
              p->to_next ? p->to_next + 64 * AHEAD_FIRST * t : 0, t ? AHEAD_SECOND : AHEAD_FIRST, n, group, has_start,
              n_min, is_wide);
}

GEMM_MICRO(micro_8_min, 8, false, 4, false)
GEMM_MICRO(micro_8_min_wide, 8, false, 4, true)
GEMM_MICRO(micro_8, 8, true, 0, false)
GEMM_MICRO(micro_8_wide, 8, true, 0, true)
GEMM_MICRO(micro_4, 4, true, 0, false)
GEMM_MICRO(micro_4_wide, 4, true, 0, true)
GEMM_MICRO(micro_4_min16, 4, false, 8, false)

static void unpack(const ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0, size_t n_blocks, void *out)
{
    for (int h = 0; h < 2; h++) {
        ebb_half rows;

        ebb_half_rows(a, r0 + (size_t)h * HALF_ROWS, b0 * ebb_type_get(a->type)->block_bytes, &rows);
        ((const type256 *)k->more)->unpack(&rows, h, out);
    }
    (void)n_blocks;                              /* 1 */
}

static void prepare_block(const ebb_q8_256 *x, const type256 *t, column_block *o)
{
    __m256i sums = _mm256_loadu_si256((const void *)x->sum);

    if (t->group == 4)                           /* (low, sign) by (-offset, 0) */
        _mm512_store_si512(o->start,
                           _mm512_madd_epi16(_mm512_cvtepi16_epi32(sums), _mm512_set1_epi32(-t->offset & 0xffff)));
    else
        _mm256_storeu_si256((void *)o->start, _mm256_madd_epi16(sums, _mm256_set1_epi16((short)-t->offset)));
}

/* Whether peak and side of all columns are small enough: both at once, in the halves of a word. */
static bool all_fit(const type256 *t, const ebb_gemm_args *p, size_t n_cols)
{
    const uint32_t keep = 0x80008000u, most = ((uint32_t)t->side << 16 | (uint32_t)t->peak) | keep;
    const uint8_t *x = p->x + offsetof(ebb_q8_256, peak);
    uint32_t left = keep;

    for (size_t c = 0; c < n_cols; c++, x += p->x_col_bytes)
        left &= most - (uint32_t)ebb_gemm_four(x);
    return left == keep;
}

static ebb_gemm_micro *prepare_avx512_256(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    const type256 *t = k->more;

    for (size_t c = 0; t->n_min == 0 && c < n_cols; c++)
        prepare_block((const ebb_q8_256 *)(p->x + c * p->x_col_bytes), t, (column_block *)out + c);
    return (all_fit(t, p, n_cols) ? t->narrow : t->wide)[n_cols];
}

/* Any activations have a peak of at most 16 * 127 and a side of at most 32 * 127. */
enum { ANY = 32 * 127 };

/* Few columns come straight from the blocks; where points are loaded one by one or digits are counted, 8 rows at a time
 * do as well as 16. */
#define ebb_avx512_gemv_TQ1_0   ebb_avx2_gemv_TQ1_0
#define ebb_avx512_gemv_IQ1_S   ebb_avx2_gemv_IQ1_S
#define ebb_avx512_gemv_IQ1_M   ebb_avx2_gemv_IQ1_M
#define ebb_avx512_gemv_IQ3_XXS ebb_avx2_gemv_IQ3_XXS
#define TYPE(T, narrow, wide, group, offset, n_min, peak, side)                                                \
void ebb_avx512_gemm_##T(const ebb_matmul *a)                                                                  \
{                                                                                                              \
    static const type256 t = { ebb_avx512_unpack_##T, narrow, wide, group, offset, n_min, peak, side };        \
    static const ebb_gemm_kind k = { TILE_ROWS, GEMM_COLS, sizeof(ebb_q8_256), 1, sizeof(ebb_tile256), unpack, \
                                     prepare_avx512_256, &t };                                                 \
                                                                                                               \
    ebb_gemm(a, &k);                                                                                           \
}
/* max |q| * peak <= 32767 (half of it for 32 elements), or max q * side without an offset. */
#define TYPES(X) \
    X(Q4_K, micro_8_min, micro_8_min_wide, 8, 0, 4, ANY, 2184) \
    X(Q5_K, micro_8_min, micro_8_min_wide, 8, 0, 4, ANY, 1057) \
    X(Q6_K, micro_4, micro_4_wide, 4, 32, 0, 1023, ANY) \
    X(Q2_K, micro_4_min16, NULL, 4, 0, 8, ANY, ANY) \
    X(Q3_K, micro_4, NULL, 4, 4, 0, ANY, ANY) \
    X(IQ4_XS, micro_8, micro_8_wide, 8, 128, 0, 129, ANY) \
    X(TQ1_0, micro_8, NULL, 8, 1, 0, ANY, ANY) \
    X(TQ2_0, micro_8, NULL, 8, 1, 0, ANY, ANY) \
    X(IQ1_S, micro_4, NULL, 4, 9, 0, ANY, ANY) \
    X(IQ1_M, micro_4, NULL, 4, 9, 0, ANY, ANY) \
    X(IQ2_XXS, micro_8, micro_8_wide, 8, 43, 0, 381, ANY) \
    X(IQ2_XS, micro_4, micro_4_wide, 4, 43, 0, 762, ANY) \
    X(IQ2_S, micro_4, micro_4_wide, 4, 43, 0, 762, ANY) \
    X(IQ3_XXS, micro_8, micro_8_wide, 8, 62, 0, 264, ANY) \
    X(IQ3_S, micro_4, NULL, 4, 15, 0, ANY, ANY)
TYPES(TYPE)

void ebb_kernels_fill_avx512_gemm256(ebb_kernels *k)
{
#define X(T, ...) k->matmul[EBB_TYPE_##T] = (ebb_matmul_slots){ .gemm = ebb_avx512_gemm_##T, \
                                                                .gemv = ebb_avx512_gemv_##T, \
                                                                .gemv_most_cols = GEMV_COLS, \
                                                                .gemv_most_k = GEMV_MOST_K };
    TYPES(X)
#undef X
}
