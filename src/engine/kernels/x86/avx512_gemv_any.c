/* TQ1_0 and IQ1 types times up to three columns, through the decoders of
 * kernels/blocks.h: 16 rows of a block are decoded to where L1 holds them. */
#include "kernels/blocks.h"
#include "kernels/x86/avx512_gemv.h"

typedef struct decoded {
    _Alignas(64) uint8_t q[16][256];             /* the type's offset added: at most 124 */
    int16_t scale[16][16];
    float   d[16];
} decoded;

EBB_INLINE void put(const ebb_block256 *b, int offset, int row, decoded *o)
{
    for (int i = 0; i < 256; i++)
        o->q[row][i] = (uint8_t)(b->q[i] + offset);
    memcpy(o->scale[row], b->scale, sizeof b->scale);
    o->d[row] = b->d;
}

/* 16 elements to a 128-bit lane; what the offset added is taken off again. */
EBB_INLINE __m512i row_any(const decoded *w, int r, int offset, const ebb_q8_256 *x)
{
    const __m512i lane = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(1))),
                                            _mm256_setr_m128i(_mm_set1_epi16(2), _mm_set1_epi16(3)), 1);
    __m256i s = _mm256_loadu_si256((const void *)w->scale[r]);
    __m256i added = _mm256_madd_epi16(s, _mm256_loadu_si256((const void *)x->sum));
    __m512i sum = _mm512_zextsi256_si512(_mm256_mullo_epi32(added, _mm256_set1_epi32(-offset)));

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i products = _mm512_maddubs_epi16(_mm512_load_si512(w->q[r] + 64 * i), _mm512_loadu_si512(x->q + 64 * i));
        __m512i at = _mm512_add_epi16(lane, _mm512_set1_epi16((short)(4 * i)));

        sum = _mm512_dpwssd_epi32(sum, products, _mm512_permutexvar_epi16(at, _mm512_castsi256_si512(s)));
    }
    return sum;
}

EBB_INLINE void block_any(const decoded *w, int offset, const ebb_matmul *a, size_t b, ebb_sums16 *acc)
{
    for (size_t c = 0; c < a->n_cols; c++) {
        const ebb_q8_256 *x = (const ebb_q8_256 *)((const char *)a->x + c * a->x_col_bytes) + b;
        __m512i s[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s[i] = row_any(w, i, offset, x);
        acc->y[c] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_loadu_ps(w->d), _mm512_set1_ps(x->d)), _mm512_cvtepi32_ps(ebb_sum16(s)),
                                    acc->y[c]);
    }
}

#define TYPE(T, add, size)                                                                    \
void ebb_avx512_gemv_##T(const ebb_matmul *a)                                                \
{                                                                                            \
    for (size_t r = 0; r < a->n_rows; r += 16) {                                             \
        ebb_sums16 acc = { { _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps() } };  \
        ebb_block256 block;                                                                  \
        decoded w;                                                                           \
        ebb_half rows;                                                                       \
                                                                                             \
        ebb_half_rows(a, r, 0, &rows);                                                       \
        for (size_t b = 0; b < a->n_k / 256; b++) {                                          \
            for (int i = 0; i < 16; i++) {                                                   \
                ebb_decode_##T(rows.base + rows.offset[i] + b * (size), &block);             \
                put(&block, add, i, &w);                                                     \
            }                                                                                \
            block_any(&w, add, a, b, &acc);                                                  \
        }                                                                                    \
        for (size_t c = 0; c < a->n_cols; c++)                                               \
            _mm512_mask_storeu_ps(a->y + c * a->y_stride + r, ebb_row_mask(a->n_rows, r), acc.y[c]);  \
    }                                                                                        \
}
TYPE(TQ1_0, 1, 54)
TYPE(IQ1_S, 9, 50)
TYPE(IQ1_M, 9, 56)
