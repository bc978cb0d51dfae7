/* Products with quantized weights for AVX2.
 *
 * 8 rows by a few blocks are decoded into the scratch (L1), as unsigned bytes
 * with their scales spread out; every group of columns passes over them.  A
 * row's sums lie along its bytes; those of 8 rows are then added into one
 * register with rows in lanes, where the float chain of rule K2 runs.
 *
 * vpmaddubsw adds two products into 16 bits: unsigned values stay at or below
 * 124, and those of Q8_0 and IQ4 go as |w| * (x with the sign of w), at most 2 * 128 * 127. */
#include <immintrin.h>

#include "kernels/blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx2_rows.h"

enum { COLS = 4, BLOCKS_256 = 4, BLOCKS_32 = 32 };

typedef struct row256 {
    int8_t  q[256];              /* offset added, if it is not above 64 */
    int16_t scale[8][16];        /* for each 32 elements: as vpmaddwd wants them */
    int16_t scale16[16], min[16];
} row256;

typedef struct tile256 {
    row256 row[ROWS];
    float  d[ROWS], dmin[ROWS];
} tile256;

typedef struct tile32 {
    int8_t q[ROWS][32];          /* offset added, if it is not above 64 */
    float  d[ROWS], m[ROWS];
} tile32;

_Static_assert(sizeof(tile256) * BLOCKS_256 <= EBB_KERNEL_SCRATCH && sizeof(tile32) * BLOCKS_32 <= EBB_KERNEL_SCRATCH, "");

/* Sums of two neighbouring products of 32 weights and activations. */
INLINE __m256i products(__m256i w, const int8_t *x, bool is_signed)
{
    __m256i v = _mm256_loadu_si256((const void *)x);

    return is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(v, w)) : _mm256_maddubs_epi16(w, v);
}

/* ---- blocks of 256 ---- */

INLINE void spread(const ebb_block256 *b, int offset, int r, tile256 *t)
{
    row256 *o = &t->row[r];

    for (int i = 0; i < 256; i++)
        o->q[i] = (int8_t)(b->q[i] + (offset > 64 ? 0 : offset));
    for (int i = 0; i < 8; i++)
        _mm256_storeu_si256((void *)o->scale[i],
                            _mm256_set_m128i(_mm_set1_epi16(b->scale[2 * i + 1]), _mm_set1_epi16(b->scale[2 * i])));
    memcpy(o->scale16, b->scale, sizeof o->scale16);
    memcpy(o->min, b->min, sizeof o->min);
    t->d[r] = b->d;
    t->dmin[r] = b->dmin;
}

/* Sums of one row for n columns x. */
INLINE void row_sums(const row256 *w, const ebb_q8_256 *const x[COLS], const int n, int offset, __m256i out[COLS])
{
    __m256i s[COLS];

#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        s[c] = _mm256_setzero_si256();
    for (int i = 0; i < 8; i++) {
        __m256i q = _mm256_loadu_si256((const void *)(w->q + 32 * i)), scale = _mm256_loadu_si256((const void *)w->scale[i]);
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
            s[c] = _mm256_add_epi32(s[c], _mm256_madd_epi16(products(q, x[c]->q + 32 * i, offset > 64), scale));
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        if (offset > 0 && offset <= 64) {
            __m256i fix = _mm256_madd_epi16(_mm256_loadu_si256((const void *)w->scale16), _mm256_loadu_si256((const void *)x[c]->sum));
            s[c] = _mm256_sub_epi32(s[c], _mm256_mullo_epi32(fix, _mm256_set1_epi32(offset)));
        }
        out[c] = s[c];
    }
}

INLINE __m256 step_256(const tile256 *t, const ebb_q8_256 *x, const __m256i sums[ROWS], bool has_min, __m256 acc)
{
    __m256 dx = _mm256_set1_ps(x->d);
    __m256i m[ROWS];

    acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(t->d), dx), _mm256_cvtepi32_ps(sum8(sums)), acc);
    if (!has_min)
        return acc;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
        m[r] = _mm256_madd_epi16(_mm256_loadu_si256((const void *)t->row[r].min), _mm256_loadu_si256((const void *)x->sum));
    return _mm256_fnmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(t->dmin), dx), _mm256_cvtepi32_ps(sum8(m)), acc);
}

INLINE void columns_256(const ebb_matmul *a, const tile256 *t, size_t r, size_t b0, size_t n_blocks, size_t c0, const int n,
                        int offset, bool has_min)
{
    __m256i mask = row_mask(a, r), sums[COLS][ROWS], one[COLS];
    __m256 acc[COLS];
    const ebb_q8_256 *x[COLS];

    for (int c = 0; c < n; c++) {
        x[c] = (const ebb_q8_256 *)column(a, c0 + (size_t)c) + b0;
        acc[c] = b0 ? _mm256_maskload_ps(a->y + (c0 + (size_t)c) * a->y_stride + r, mask) : _mm256_setzero_ps();
    }
    for (size_t b = 0; b < n_blocks; b++) {
        for (int i = 0; i < ROWS; i++) {
            row_sums(&t[b].row[i], x, n, offset, one);
            for (int c = 0; c < n; c++)
                sums[c][i] = one[c];
        }
        for (int c = 0; c < n; c++) {
            acc[c] = step_256(t + b, x[c], sums[c], has_min, acc[c]);
            x[c]++;
        }
    }
    for (int c = 0; c < n; c++)
        _mm256_maskstore_ps(a->y + (c0 + (size_t)c) * a->y_stride + r, mask, acc[c]);
}

/* ---- blocks of 32 ---- */

INLINE void column_32(const ebb_matmul *a, const tile32 *t, size_t r, size_t b0, size_t n_blocks, size_t c, int offset, bool has_min)
{
    const ebb_q8_32 *x = (const ebb_q8_32 *)column(a, c) + b0;
    float *y = a->y + c * a->y_stride + r;
    __m256i mask = row_mask(a, r), s[ROWS];
    __m256 acc = b0 ? _mm256_maskload_ps(y, mask) : _mm256_setzero_ps();

    for (size_t b = 0; b < n_blocks; b++, t++, x++) {
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            s[i] = _mm256_madd_epi16(products(_mm256_loadu_si256((const void *)t->q[i]), x->q, offset > 64), _mm256_set1_epi16(1));
        __m256i sum = sum8(s);
        __m256 dx = _mm256_set1_ps(x->d);

        if (offset > 0 && offset <= 64)
            sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(offset * x->sum));
        acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(t->d), dx), _mm256_cvtepi32_ps(sum), acc);
        if (has_min)
            acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(t->m), dx), _mm256_set1_ps((float)x->sum), acc);
    }
    _mm256_maskstore_ps(y, mask, acc);
}

INLINE void spread_32(const ebb_block32 *b, int offset, int r, tile32 *t)
{
    for (int i = 0; i < 32; i++)
        t->q[r][i] = (int8_t)(b->q[i] + (offset > 64 ? 0 : offset));
    t->d[r] = b->d;
    t->m[r] = b->m;
}

/* ---- one product of each type ---- */

#define X(T, offset, has_min)                                                                                          \
static void columns_##T(const ebb_matmul *a, const tile256 *t, size_t r, size_t b, size_t n, size_t c, size_t n_cols)  \
{                                                                                                                      \
    switch (n_cols) {                                                                                                  \
    case 1:  columns_256(a, t, r, b, n, c, 1, offset, has_min); break;                                                 \
    case 2:  columns_256(a, t, r, b, n, c, 2, offset, has_min); break;                                                 \
    case 3:  columns_256(a, t, r, b, n, c, 3, offset, has_min); break;                                                 \
    default: columns_256(a, t, r, b, n, c, 4, offset, has_min); break;                                                 \
    }                                                                                                                  \
}                                                                                                                      \
                                                                                                                       \
static void matmul_##T(const ebb_matmul *a)                                                                            \
{                                                                                                                      \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes, n_blocks = a->n_k / 256;                             \
    tile256 *t = a->scratch;                                                                                           \
    ebb_block256 block;                                                                                                \
                                                                                                                       \
    for (size_t r = 0; r < a->n_rows; r += ROWS)                                                                       \
        for (size_t b = 0; b < n_blocks; b += BLOCKS_256) {                                                            \
            size_t n = n_blocks - b < BLOCKS_256 ? n_blocks - b : BLOCKS_256;                                          \
                                                                                                                       \
            for (int i = 0; i < ROWS; i++)                                                                             \
                for (size_t j = 0; j < n; j++) {                                                                       \
                    ebb_decode_##T(row_at(a, r + (size_t)i) + (b + j) * bytes, &block);                                \
                    spread(&block, offset, i, t + j);                                                                  \
                }                                                                                                      \
            for (size_t c = 0; c < a->n_cols; c += COLS)                                                               \
                columns_##T(a, t, r, b, n, c, a->n_cols - c < COLS ? a->n_cols - c : COLS);                            \
        }                                                                                                              \
}
EBB_TYPES_256(X)
#undef X

#define X(T, offset, has_min)                                                                                          \
static void matmul_##T(const ebb_matmul *a)                                                                            \
{                                                                                                                      \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes, n_blocks = a->n_k / 32;                              \
    tile32 *t = a->scratch;                                                                                            \
    ebb_block32 block;                                                                                                 \
                                                                                                                       \
    for (size_t r = 0; r < a->n_rows; r += ROWS)                                                                       \
        for (size_t b = 0; b < n_blocks; b += BLOCKS_32) {                                                             \
            size_t n = n_blocks - b < BLOCKS_32 ? n_blocks - b : BLOCKS_32;                                            \
                                                                                                                       \
            for (int i = 0; i < ROWS; i++)                                                                             \
                for (size_t j = 0; j < n; j++) {                                                                       \
                    ebb_decode_##T(row_at(a, r + (size_t)i) + (b + j) * bytes, &block);                                \
                    spread_32(&block, offset, i, t + j);                                                               \
                }                                                                                                      \
            for (size_t c = 0; c < a->n_cols; c++)                                                                     \
                column_32(a, t, r, b, n, c, offset, has_min);                                                          \
        }                                                                                                              \
}
EBB_TYPES_32(X)
#undef X

/* Few columns come straight from the blocks where there is code for it. */
#define FEW(X) X(Q4_K) X(Q5_K) X(Q6_K) X(Q8_0)
#define X(T)                                                     \
static void few_##T(const ebb_matmul *a)                         \
{                                                                \
    if (a->n_cols <= GEMV_COLS)                                  \
        ebb_avx2_gemv_##T(a);                                    \
    else                                                         \
        matmul_##T(a);                                           \
}
FEW(X)
#undef X

void ebb_kernels_fill_avx2_quant(ebb_kernels *k)
{
#define X(T, offset, has_min) k->matmul[EBB_TYPE_##T] = matmul_##T;
    EBB_TYPES_32(X)
    EBB_TYPES_256(X)
#undef X
#define X(T) k->matmul[EBB_TYPE_##T] = few_##T;
    FEW(X)
#undef X
}
