/* The nibble types of blocks of 32 times up to four columns: as the unpacker reads them, but
 * the products are taken while the numbers are in registers. */
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx512_gemv.h"
#include "kernels/x86/avx512_nibbles.h"
#include "kernels/x86/prefetch.h"

typedef struct kind32 {
    head           head;
    int            has_high, offset;
    const __m512i *table;        /* NULL: the nibbles are the numbers */
    size_t         bytes;
} kind32;

EBB_INLINE __m512i number(__m512i nibbles, __m512i high, int g, const kind32 *k)
{
    if (k->has_high)
        nibbles = _mm512_or_si512(nibbles, fifth_bits(high, g));
    return k->table ? _mm512_shuffle_epi8(*k->table, nibbles) : nibbles;
}

/* Words 0..3 of a block of 16 rows times one column. */
EBB_INLINE __m512i product(const __m512i t[4], __m512i high, const ebb_q8_32 *x, const kind32 *k)
{
    __m512i a = _mm512_set1_epi32(-k->offset * x->sum), b = _mm512_setzero_si512();

#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        a = _mm512_dpbusd_epi32(a, number(low_nibbles(t[g]), high, g, k),
                                _mm512_set1_epi32((int)ebb_u32_load(x->q + 4 * g)));
        b = _mm512_dpbusd_epi32(b, number(high_nibbles(t[g]), high, 4 + g, k),
                                _mm512_set1_epi32((int)ebb_u32_load(x->q + 16 + 4 * g)));
    }
    return _mm512_add_epi32(a, b);
}

EBB_INLINE void rows16(const ebb_matmul *a, size_t r, const kind32 *k, const int n_cols)
{
    const size_t n_blocks = a->n_k / 32, at = nibbles_at(k->head, k->has_high);
    const uint8_t *next = ebb_behind_rows(a, r);
    __mmask16 mask = ebb_row_mask(a->n_rows, r);
    __m512i t[16], high = _mm512_setzero_si512();
    __m512 acc[GEMV_COLS];
    ebb_half rows;

    ebb_half_rows(a, r, 0, &rows);
    for (int c = 0; c < n_cols; c++)
        acc[c] = _mm512_setzero_ps();
    for (size_t b = 0; b < n_blocks; b += 4) {
        size_t n = n_blocks - b < 4 ? n_blocks - b : 4;

        ebb_fetch_rows(&rows, (b + 8) * k->bytes);
        if (next)                                /* not in the order in which it will be read */
            ebb_fetch_quarters(next, 16 * a->row_bytes, 4 * b * k->bytes, 4 * (b + n) * k->bytes);
        load_4x16(&rows, b * k->bytes + at, n, k->bytes, t);
        for (size_t i = 0; i < n; i++) {
            size_t byte = (b + i) * k->bytes;
            __m512i first = ebb_half_gather(&rows, byte);
            __m512 d = k->head == HEAD_E ? lanes_e8(first) : ebb_lanes_f16(first);

            if (k->has_high)
                high = ebb_half_gather(&rows, byte + at - 4);
            for (int c = 0; c < n_cols; c++) {
                const ebb_q8_32 *x = (const ebb_q8_32 *)((const char *)a->x + (size_t)c * a->x_col_bytes) + b + i;
                __m512 dx = _mm512_set1_ps(x->d);

                acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(product(t + 4 * i, high, x, k)),
                                         acc[c]);
                if (k->head == HEAD_D_M)
                    acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(ebb_lanes_f16(_mm512_srli_epi32(first, 16)), dx),
                                             _mm512_set1_ps((float)x->sum), acc[c]);
            }
        }
    }
    for (int c = 0; c < n_cols; c++)
        _mm512_mask_storeu_ps(a->y + (size_t)c * a->y_stride + r, mask, acc[c]);
}

EBB_INLINE void gemv(const ebb_matmul *a, const kind32 *k)
{
    for (size_t r = 0; r < a->n_rows; r += 16) {
        switch (a->n_cols) {
        case 1:  rows16(a, r, k, 1); break;
        case 2:  rows16(a, r, k, 2); break;
        case 3:  rows16(a, r, k, 3); break;
        default: rows16(a, r, k, 4); break;
        }
    }
}

#define TYPE(T, head, has_high, offset, values, bytes)                                         \
void ebb_avx512_gemv_##T(const ebb_matmul *a)                                                  \
{                                                                                              \
    const int8_t *v = values;                                                                  \
    __m512i table = v ? table_of(v, offset) : _mm512_setzero_si512();                          \
                                                                                               \
    gemv(a, &(kind32){ head, has_high, offset, v ? &table : NULL, bytes });                    \
}
TYPE(Q4_0, HEAD_D, 0, 8, NULL, 18)
TYPE(Q4_1, HEAD_D_M, 0, 0, NULL, 20)
TYPE(Q5_0, HEAD_D, 1, 16, NULL, 22)
TYPE(Q5_1, HEAD_D_M, 1, 0, NULL, 24)
TYPE(IQ4_NL, HEAD_D, 0, 128, ebb_iq4_values, 18)
TYPE(MXFP4, HEAD_E, 0, 12, ebb_mxfp4_values, 17)
