/* Products with quantized weights for AVX2 (and AVX-VNNI) and many columns: tiles of 16 rows, rows in lanes, by 4
 * columns.
 *
 * Numbers are unsigned bytes, 4 of each row in turn (the type's offset added).  `adds` times 4 products are added, then
 * multiplied by their scale; with AVX2 two products become one sum of 16 bits, so `adds` is such that these fit for any
 * weights and activations.  What an offset added is taken off by the sums of x.  Types that do not fit 7 bits are in
 * avx2_gemm_wide.c for AVX2, and here for AVX-VNNI. */
#include "kernels/impl.h"
#include "kernels/x86/avx2_tile.h"

enum { COLS = 4 };

typedef struct avx2_tile256 {
    uint8_t q[64][2][32];        /* of the rows 8h .. 8h + 7 in turn the elements 4g .. 4g + 3 */
    int32_t scale[16][2][8];     /* of 16 elements, as dot_scale makes them */
    int32_t pair[8][2][8];       /* of 32 elements: minima, or the scales that an offset is taken off with */
    float   d[2][8], dmin[2][8];
} avx2_tile256;

typedef struct avx2_tile32 {
    uint8_t q[8][2][32];
    float   d[2][8], m[2][8];
} avx2_tile32;

/* ---- what both forms share ---- */

/* `adds` times 4 elements of both halves of a tile and of n columns. */
GEMM_INLINE void products(const uint8_t (*q)[2][32], const uint8_t *const x[COLS], size_t at, const int n,
                          const int adds, __m256i v[COLS][2])
{
    GEMM_UNROLL for (int g = 0; g < adds; g++) {
        __m256i w[2] = { _mm256_load_si256((const void *)q[g][0]), _mm256_load_si256((const void *)q[g][1]) };

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            __m256i four = _mm256_set1_epi32(ebb_gemm_four(x[c] + at + 4 * (size_t)g));

            GEMM_UNROLL for (int h = 0; h < 2; h++) {
                v[c][h] = g ? dot_more(v[c][h], w[h], four) : dot_start(w[h], four);
                __asm__("" : "+x"(v[c][h]));     /* now: gathering products would need more registers than there are */
            }
        }
    }
}

/* 32 elements of 8 rows, the first at `from`; 4 * 8 of them in each of out. */
GEMM_INLINE void put_bytes(const int8_t *from, size_t row_bytes, int offset, int half, uint8_t (*out)[2][32])
{
    __m256i v[ROWS];

    load_transposed(from, row_bytes, v);
    GEMM_UNROLL for (int j = 0; j < 8; j++)
        _mm256_store_si256((void *)out[j][half], _mm256_add_epi8(v[j], _mm256_set1_epi8((char)offset)));
}

/* ---- blocks of 256 ---- */

/* sum_j pair_j * (sums of x), for all n columns. */
GEMM_INLINE void pair_sums(const avx2_tile256 *t, const ebb_q8_256 *const x[COLS], const int n, __m256i out[COLS][2])
{
    GEMM_UNROLL for (int c = 0; c < n; c++)
        out[c][0] = out[c][1] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++)
        GEMM_UNROLL for (int c = 0; c < n; c++) {
            __m256i sums = _mm256_set1_epi32(ebb_gemm_four((const uint8_t *)(x[c]->sum + 2 * j)));

            GEMM_UNROLL for (int h = 0; h < 2; h++)
                out[c][h] = dot_add_words(out[c][h], _mm256_load_si256((const void *)t->pair[j][h]), sums);
        }
}

GEMM_INLINE void block_256(const avx2_tile256 *t, const ebb_q8_256 *const x[COLS], float *acc, size_t to_next,
                           const int n, const int adds, const bool fits, const int offset, const bool has_min)
{
    __m256i sum[COLS][2], v[COLS][2];
    const uint8_t *q[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        q[c] = (const uint8_t *)x[c]->q;
        sum[c][0] = sum[c][1] = _mm256_setzero_si256();
    }
    for (int i = 0; i < 64 / adds; i++) {
        size_t s = (size_t)(i * adds / 4);

        if (to_next && i % (8 / adds) == 0)
            GEMM_UNROLL for (int c = 0; c < n; c++)
                _mm_prefetch((const char *)x[c] + to_next + 64 * (i * adds / 8), _MM_HINT_T0);
        products(t->q + i * adds, q, 4 * (size_t)(i * adds), n, adds, v);
        GEMM_UNROLL for (int c = 0; c < n; c++)
            GEMM_UNROLL for (int h = 0; h < 2; h++)
                sum[c][h] = dot_scaled(sum[c][h], v[c][h], _mm256_load_si256((const void *)t->scale[s][h]), fits);
    }
    if (has_min || offset > 0)
        pair_sums(t, x, n, v);
    GEMM_UNROLL for (int c = 0; c < n; c++)
        GEMM_UNROLL for (int h = 0; h < 2; h++) {
            float *y = acc + c * SLAB + h * ROWS;
            __m256 dx = _mm256_set1_ps(x[c]->d), sums = _mm256_load_ps(y);

            if (offset > 0)
                sum[c][h] = _mm256_sub_epi32(sum[c][h], _mm256_mullo_epi32(v[c][h], _mm256_set1_epi32(offset)));
            if (has_min) {
                __m256 both = _mm256_mul_ps(_mm256_load_ps(t->d[h]), _mm256_cvtepi32_ps(sum[c][h]));

                both = _mm256_fnmadd_ps(_mm256_load_ps(t->dmin[h]), _mm256_cvtepi32_ps(v[c][h]), both);
                sums = _mm256_fmadd_ps(dx, both, sums);
            } else {
                sums = step(t->d[h], dx, sum[c][h], sums);
            }
            _mm256_store_ps(y, sums);
        }
}

GEMM_INLINE void micro_256(const ebb_gemm_args *p, const int n, const int adds, const bool fits, const int offset,
                           const bool has_min)
{
    const ebb_q8_256 *x[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++)
        x[c] = (const ebb_q8_256 *)(p->x + (size_t)c * p->x_col_bytes);
    for (size_t t = 0; t < p->n_tiles; t++)
        block_256((const avx2_tile256 *)p->tile + t, x, p->acc + t * TILE_ROWS, t ? 0 : p->to_next, n, adds, fits,
                  offset, has_min);
}

static void put_avx2_256(const ebb_block256 rows[TILE_ROWS], bool fits, int offset, bool has_min,
                         avx2_tile256 *t)
{
    for (int h = 0; h < 2; h++) {
        const ebb_block256 *b = rows + h * ROWS;
        __m256i v[ROWS];

        for (int i = 0; i < 8; i++)
            put_bytes(b->q + 32 * i, sizeof *b, offset, h, t->q + 8 * i);
        load_transposed(b->scale, sizeof *b, v);
        GEMM_UNROLL for (int j = 0; j < 8; j++) {
            _mm256_store_si256((void *)t->scale[2 * j][h], dot_scale(v[j], 0, fits));
            _mm256_store_si256((void *)t->scale[2 * j + 1][h], dot_scale(v[j], 1, fits));
        }
        if (has_min)
            load_transposed(b->min, sizeof *b, v);
        GEMM_UNROLL for (int j = 0; j < 8; j++)
            _mm256_store_si256((void *)t->pair[j][h], v[j]);
        for (int i = 0; i < ROWS; i++) {
            t->d[h][i] = b[i].d;
            t->dmin[h][i] = b[i].dmin;
        }
    }
}

/* ---- blocks of 32 ---- */

GEMM_INLINE void block_32(const avx2_tile32 *t, const ebb_q8_32 *const x[COLS], float *acc, const int n, const int adds,
                          const int offset, const bool has_min)
{
    __m256i sum[COLS][2], v[COLS][2];
    const uint8_t *q[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        q[c] = (const uint8_t *)x[c]->q;
        sum[c][0] = sum[c][1] = offset > 0 ? _mm256_set1_epi32(-offset * x[c]->sum) : _mm256_setzero_si256();
    }
    for (int i = 0; i < 8 / adds; i++) {
        products(t->q + i * adds, q, 4 * (size_t)(i * adds), n, adds, v);
        GEMM_UNROLL for (int c = 0; c < n; c++)
            GEMM_UNROLL for (int h = 0; h < 2; h++)
                sum[c][h] = dot_total(sum[c][h], v[c][h]);
    }
    GEMM_UNROLL for (int c = 0; c < n; c++)
        GEMM_UNROLL for (int h = 0; h < 2; h++) {
            float *y = acc + c * SLAB + h * ROWS;
            __m256 dx = _mm256_set1_ps(x[c]->d), sums = step(t->d[h], dx, sum[c][h], _mm256_load_ps(y));

            if (has_min)
                sums = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(t->m[h]), dx), _mm256_set1_ps((float)x[c]->sum),
                                       sums);
            _mm256_store_ps(y, sums);
        }
}

GEMM_INLINE void micro_32(const ebb_gemm_args *p, const int n, const int adds, const bool fits, const int offset,
                          const bool has_min)
{
    const avx2_tile32 *tile = p->tile;

    (void)fits;                                  /* its scale is a float */
    for (size_t t = 0; t < p->n_tiles; t++) {
        const uint8_t *first = p->x;

        for (size_t b = 0; b < p->n_blocks; b++, tile++, first += sizeof(ebb_q8_32)) {
            const ebb_q8_32 *x[COLS];

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                x[c] = (const ebb_q8_32 *)(first + (size_t)c * p->x_col_bytes);
                if (p->to_next && t == 0)        /* 40 bytes a block: some lines twice */
                    _mm_prefetch((const char *)x[c] + p->to_next, _MM_HINT_T0);
            }
            block_32(tile, x, p->acc + t * TILE_ROWS, n, adds, offset, has_min);
        }
    }
}

static void put_avx2_32(const ebb_block32 rows[TILE_ROWS], bool fits, int offset, bool has_min, avx2_tile32 *t)
{
    (void)fits, (void)has_min;
    for (int h = 0; h < 2; h++) {
        const ebb_block32 *b = rows + h * ROWS;

        put_bytes(b->q, sizeof *b, offset, h, t->q);
        for (int i = 0; i < ROWS; i++) {
            t->d[h][i] = b[i].d;
            t->m[h][i] = b[i].m;
        }
    }
}

/* ---- blocks of several parts ---- */

/* The sum of the first 16 elements. */
GEMM_INLINE int32_t first_half(const ebb_q8_32 *x)
{
    __m128i v = _mm_maddubs_epi16(_mm_set1_epi8(1), _mm_loadu_si128((const void *)x->q));

    v = _mm_madd_epi16(v, _mm_set1_epi16(1));
    v = _mm_add_epi32(v, _mm_srli_si128(v, 8));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_srli_si128(v, 4)));
}

/* Of NVFP4: 16 elements with the scales d, 16 with m. */
GEMM_INLINE void block_halves(const avx2_tile32 *t, const ebb_q8_32 *const x[COLS], float *acc, const int n,
                              const int offset)
{
    __m256i v[COLS][2];
    const uint8_t *q[COLS];
    int32_t start[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        q[c] = (const uint8_t *)x[c]->q;
        start[c] = first_half(x[c]);
    }
    GEMM_UNROLL for (int i = 0; i < 2; i++) {
        products(t->q + 4 * i, q, 16 * (size_t)i, n, 4, v);
        GEMM_UNROLL for (int c = 0; c < n; c++) {
            __m256i from = _mm256_set1_epi32(-offset * (i ? x[c]->sum - start[c] : start[c]));

            GEMM_UNROLL for (int h = 0; h < 2; h++) {
                float *y = acc + c * SLAB + h * ROWS;
                __m256i sum = dot_total(from, v[c][h]);

                _mm256_store_ps(y, step(i ? t->m[h] : t->d[h], _mm256_set1_ps(x[c]->d), sum, _mm256_load_ps(y)));
            }
        }
    }
}

/* As micro_32, but for the block; they are apart because a choice in the loop costs the others registers. */
GEMM_INLINE void micro_halves(const ebb_gemm_args *p, const int n, const int offset)
{
    const avx2_tile32 *tile = p->tile;

    for (size_t t = 0; t < p->n_tiles; t++)
        for (size_t b = 0; b < p->n_blocks; b++, tile++) {
            const ebb_q8_32 *x[COLS];

            GEMM_UNROLL for (int c = 0; c < n; c++)
                x[c] = (const ebb_q8_32 *)(p->x + (size_t)c * p->x_col_bytes) + b;
            block_halves(tile, x, p->acc + t * TILE_ROWS, n, offset);
        }
}

/* ---- each type ---- */

static ebb_gemm_micro *prepare_avx2(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    (void)p, (void)out;
    return ((ebb_gemm_micro *const *)k->more)[n_cols];
}

/* A scale serves `group` times 4 elements (0 to `max`, with the offset). */
#define TYPE(T, len, panel, group, max, offset, has_min)                                                   \
enum { ADDS_##T = DOT_ADDS(group, max), FITS_##T = DOT_FITS(ADDS_##T, max) };                              \
static void T##_1(const ebb_gemm_args *p) { micro_##len(p, 1, ADDS_##T, FITS_##T, offset, has_min); }      \
static void T##_2(const ebb_gemm_args *p) { micro_##len(p, 2, ADDS_##T, FITS_##T, offset, has_min); }      \
static void T##_3(const ebb_gemm_args *p) { micro_##len(p, 3, ADDS_##T, FITS_##T, offset, has_min); }      \
static void T##_4(const ebb_gemm_args *p) { micro_##len(p, 4, ADDS_##T, FITS_##T, offset, has_min); }      \
                                                                                                           \
GEMM_UNPACK(T, len, TILE_ROWS, put_avx2_##len(rows, FITS_##T, offset, has_min, (avx2_tile##len *)out + b)) \
                                                                                                           \
static void gemm_##T(const ebb_matmul *a)                                                                  \
{                                                                                                          \
    static ebb_gemm_micro *const micro[COLS + 1] = { NULL, T##_1, T##_2, T##_3, T##_4 };                   \
    static const ebb_gemm_kind k = { TILE_ROWS, COLS, sizeof(ebb_q8_##len), panel, sizeof(avx2_tile##len), \
                                     unpack_##T, prepare_avx2, micro };                                    \
                                                                                                           \
    ebb_gemm(a, &k);                                                                                       \
}
#define TYPE_PARTS(T, parts, offset, MICRO)                                                                         \
static void T##_1(const ebb_gemm_args *p) { MICRO(p, 1); }                                                          \
static void T##_2(const ebb_gemm_args *p) { MICRO(p, 2); }                                                          \
static void T##_3(const ebb_gemm_args *p) { MICRO(p, 3); }                                                          \
static void T##_4(const ebb_gemm_args *p) { MICRO(p, 4); }                                                          \
                                                                                                                    \
GEMM_UNPACK_PARTS(T, parts, TILE_ROWS, put_avx2_32(rows, true, offset, false, (avx2_tile32 *)out + b))              \
                                                                                                                    \
static void gemm_##T(const ebb_matmul *a)                                                                           \
{                                                                                                                   \
    static ebb_gemm_micro *const micro[COLS + 1] = { NULL, T##_1, T##_2, T##_3, T##_4 };                            \
    static const ebb_gemm_kind k = { TILE_ROWS, COLS, sizeof(ebb_q8_32), PANEL_32, sizeof(avx2_tile32), unpack_##T, \
                                     prepare_avx2, micro };                                                         \
                                                                                                                    \
    ebb_gemm_parts(a, &k, parts);                                                                                   \
}
#define OF_ONE(p, n)    micro_32(p, n, 8, true, 1, false)
#define OF_HALVES(p, n) micro_halves(p, n, 12)
TYPE_PARTS(Q1_0, 4, 1, OF_ONE)
TYPE_PARTS(Q2_0, 2, 1, OF_ONE)
TYPE_PARTS(NVFP4, 2, 12, OF_HALVES)
#undef TYPE_PARTS

TYPE(Q4_0, 32, PANEL_32, 8, 15, 8, false)
TYPE(Q4_1, 32, PANEL_32, 8, 15, 0, true)
TYPE(Q5_0, 32, PANEL_32, 8, 31, 16, false)
TYPE(Q5_1, 32, PANEL_32, 8, 31, 0, true)
TYPE(MXFP4, 32, PANEL_32, 8, 24, 12, false)
TYPE(Q2_K, 256, 1, 4, 3, 0, true)
TYPE(Q3_K, 256, 1, 4, 7, 4, false)
TYPE(Q4_K, 256, 1, 8, 15, 0, true)
TYPE(Q5_K, 256, 1, 8, 31, 0, true)
TYPE(Q6_K, 256, 1, 4, 63, 32, false)
TYPE(TQ1_0, 256, 1, 8, 2, 1, false)
TYPE(TQ2_0, 256, 1, 8, 3, 1, false)
TYPE(IQ1_S, 256, 1, 4, 18, 9, false)
TYPE(IQ1_M, 256, 1, 4, 18, 9, false)
TYPE(IQ2_XXS, 256, 1, 8, 86, 43, false)
TYPE(IQ2_XS, 256, 1, 4, 86, 43, false)
TYPE(IQ2_S, 256, 1, 4, 86, 43, false)
TYPE(IQ3_XXS, 256, 1, 8, 124, 62, false)
TYPE(IQ3_S, 256, 1, 4, 30, 15, false)
#ifdef __AVXVNNI__
TYPE(Q8_0, 32, PANEL_32, 8, 255, 128, false)
TYPE(IQ4_NL, 32, PANEL_32, 8, 255, 128, false)
TYPE(IQ4_XS, 256, 1, 8, 255, 128, false)
#else
#define gemm_Q8_0   ebb_avx2_gemm_Q8_0
#define gemm_IQ4_NL ebb_avx2_gemm_IQ4_NL
#define gemm_IQ4_XS ebb_avx2_gemm_IQ4_XS
#endif
#undef TYPE

/* So few columns come straight from the blocks. */
#define FEW(X) X(Q8_0, 2) X(Q4_0, 2) X(Q4_1, 2) X(Q5_0, 2) X(Q5_1, 2) X(IQ4_NL, 2) X(MXFP4, 2) X(Q2_K, 4) X(Q3_K, 4) \
               X(Q4_K, 2) X(Q5_K, 2) X(Q6_K, 2) X(IQ4_XS, 2) X(TQ1_0, 4) X(TQ2_0, 4) X(IQ1_S, 4) X(IQ1_M, 4)         \
               X(IQ2_XXS, 4) X(IQ2_XS, 4) X(IQ2_S, 4) X(IQ3_XXS, 4) X(IQ3_S, 4) X(Q1_0, 2) X(Q2_0, 2) X(NVFP4, 2)

void EBB_YMM(fill_quant)(ebb_kernels *k)
{
#define X(T, n) k->matmul[EBB_TYPE_##T] = (ebb_matmul_slots){ .gemm = gemm_##T, .gemv = EBB_YMM(gemv_##T), \
                                                              .gemv_most_cols = (n) };
    FEW(X)
#undef X
}
