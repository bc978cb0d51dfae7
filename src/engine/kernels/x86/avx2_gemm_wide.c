/* Q8_0, IQ4_NL and IQ4_XS for AVX2 and many columns: numbers and activations as 16 bits, as products of two signed
 * bytes leave no room for adding in 16.  A number of IQ4_XS is multiplied by its scale when it is unpacked (at most 32
 * * 127), so a whole block is one sum of products.
 *
 * Of 32 elements the even ones stand before the odd ones: so bytes are widened by shifts, weights and activations
 * alike. */
#include "kernels/x86/avx2_tile.h"

enum { COLS = 4 };

typedef struct wide256 {
    int16_t q[128][2][16];       /* of the rows 8h .. 8h + 7 in turn two elements */
    float   d[2][8];
} wide256;

typedef struct wide32 {
    int16_t q[16][2][16];
    float   d[2][8];
} wide32;

/* Elements 0 2 4 .. 30 and 1 3 5 .. 31. */
GEMM_INLINE __m256i even(__m256i bytes) { return _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8); }
GEMM_INLINE __m256i odd(__m256i bytes)  { return _mm256_srai_epi16(bytes, 8); }

/* sum of n_pairs * 2 elements of both halves and n columns. */
GEMM_INLINE void products(const int16_t (*q)[2][16], const uint8_t *const x[COLS], const int n, const int n_pairs,
                          __m256i sum[COLS][2])
{
    GEMM_UNROLL for (int c = 0; c < n; c++)
        sum[c][0] = sum[c][1] = _mm256_setzero_si256();
    for (int i = 0; i < n_pairs; i += 8)
        GEMM_UNROLL for (int j = i; j < i + 8; j++) {
            __m256i w[2] = { _mm256_load_si256((const void *)q[j][0]), _mm256_load_si256((const void *)q[j][1]) };

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                __m256i two = _mm256_set1_epi32(ebb_gemm_four(x[c] + 4 * j));

                GEMM_UNROLL for (int h = 0; h < 2; h++) {
                    sum[c][h] = _mm256_add_epi32(sum[c][h], _mm256_madd_epi16(w[h], two));
                    __asm__("" : "+x"(sum[c][h]));   /* now: gathering products would need more registers than there
                                                        are */
                }
            }
        }
}

/* 16 rows times n columns, a block; d: of the columns. */
GEMM_INLINE void block(const int16_t (*q)[2][16], const float (*d)[8], const uint8_t *const x[COLS],
                       const float *const dx[COLS], float *acc, const int n, const int n_pairs)
{
    __m256i sum[COLS][2];

    products(q, x, n, n_pairs, sum);
    GEMM_UNROLL for (int c = 0; c < n; c++)
        GEMM_UNROLL for (int h = 0; h < 2; h++) {
            float *y = acc + c * SLAB + h * ROWS;

            _mm256_store_ps(y, step(d[h], _mm256_set1_ps(*dx[c]), sum[c][h], _mm256_load_ps(y)));
        }
}

/* 32 elements of 8 rows times their scales (pairs of two alike), or as they are. */
GEMM_INLINE void put_wide(const int8_t *from, size_t row_bytes, const __m256i *scale, int half, int16_t (*out)[2][16])
{
    __m256i v[ROWS];

    load_transposed(from, row_bytes, v);
    GEMM_UNROLL for (int j = 0; j < 8; j++) {
        __m256i a = even(v[j]), b = odd(v[j]);

        _mm256_store_si256((void *)out[j][half], scale ? _mm256_mullo_epi16(a, *scale) : a);
        _mm256_store_si256((void *)out[8 + j][half], scale ? _mm256_mullo_epi16(b, *scale) : b);
    }
}

/* One scale for each 32 elements. */
static void put_wide_256(const ebb_block256 rows[TILE_ROWS], wide256 *t)
{
    for (int h = 0; h < 2; h++) {
        const ebb_block256 *b = rows + h * ROWS;
        __m256i scale[ROWS];

        load_transposed(b->scale, sizeof *b, scale);
        for (int i = 0; i < 8; i++)
            put_wide(b->q + 32 * i, sizeof *b, &scale[i], h, t->q + 16 * i);
        for (int i = 0; i < ROWS; i++)
            t->d[h][i] = b[i].d;
    }
}

static void put_wide_32(const ebb_block32 rows[TILE_ROWS], wide32 *t)
{
    for (int h = 0; h < 2; h++) {
        const ebb_block32 *b = rows + h * ROWS;

        put_wide(b->q, sizeof *b, NULL, h, t->q);
        for (int i = 0; i < ROWS; i++)
            t->d[h][i] = b[i].d;
    }
}

GEMM_INLINE void micro_256(const ebb_gemm_args *p, const int n)
{
    const uint8_t *x[COLS];
    const float *dx[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        const uint8_t *block_x = p->x + (size_t)c * p->x_col_bytes;

        for (size_t line = 0; p->to_next && line < sizeof(ebb_q8_256); line += 64)
            _mm_prefetch((const char *)block_x + p->to_next + line, _MM_HINT_T0);
        dx[c] = &((const ebb_q8_256 *)block_x)->d;
        x[c] = (const uint8_t *)p->column + (size_t)c * 512;
    }
    for (size_t t = 0; t < p->n_tiles; t++) {
        const wide256 *tile = (const wide256 *)p->tile + t;

        block(tile->q, tile->d, x, dx, p->acc + t * TILE_ROWS, n, 128);
    }
}

GEMM_INLINE void micro_32(const ebb_gemm_args *p, const int n)
{
    const wide32 *tile = p->tile;

    for (size_t t = 0; t < p->n_tiles; t++)
        for (size_t b = 0; b < p->n_blocks; b++, tile++) {
            const uint8_t *x[COLS];
            const float *dx[COLS];

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                const ebb_q8_32 *block_x = (const ebb_q8_32 *)(p->x + (size_t)c * p->x_col_bytes) + b;

                if (p->to_next && t == 0)        /* 40 bytes a block: some lines twice */
                    _mm_prefetch((const char *)block_x + p->to_next, _MM_HINT_T0);
                dx[c] = &block_x->d;
                x[c] = (const uint8_t *)p->column + ((size_t)c * p->n_blocks + b) * 64;
            }
            block(tile->q, tile->d, x, dx, p->acc + t * TILE_ROWS, n, 16);
        }
}

/* n elements of activations. */
GEMM_INLINE __m256i *widen(const int8_t *q, size_t n, __m256i *out)
{
    for (size_t i = 0; i < n; i += 32) {
        __m256i v = _mm256_loadu_si256((const void *)(q + i));

        *out++ = even(v);
        *out++ = odd(v);
    }
    return out;
}

static ebb_gemm_micro *prepare_avx2_wide(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    __m256i *o = out;

    for (size_t c = 0; c < n_cols; c++) {
        const uint8_t *x = p->x + c * p->x_col_bytes;

        for (size_t b = 0; b < p->n_blocks; b++, x += k->x_bytes)
            o = k->x_bytes == sizeof(ebb_q8_32) ? widen(((const ebb_q8_32 *)x)->q, 32, o)
                                                : widen(((const ebb_q8_256 *)x)->q, 256, o);
    }
    return ((ebb_gemm_micro *const *)k->more)[n_cols];
}

#define MICRO(len) \
    static void micro_##len##_1(const ebb_gemm_args *p) \
    { \
        micro_##len(p, 1); \
    } \
    static void micro_##len##_2(const ebb_gemm_args *p) \
    { \
        micro_##len(p, 2); \
    } \
    static void micro_##len##_3(const ebb_gemm_args *p) \
    { \
        micro_##len(p, 3); \
    } \
    static void micro_##len##_4(const ebb_gemm_args *p) \
    { \
        micro_##len(p, 4); \
    } \
    static ebb_gemm_micro *const micros_##len[COLS + 1] = { NULL, micro_##len##_1, micro_##len##_2, micro_##len##_3, \
                                                            micro_##len##_4 };
MICRO(32)
MICRO(256)

#define TYPE(T, len, panel)                                                                                       \
GEMM_UNPACK(T, len, TILE_ROWS, put_wide_##len(rows, (wide##len *)out + b))                                        \
                                                                                                                  \
void ebb_avx2_gemm_##T(const ebb_matmul *a)                                                                       \
{                                                                                                                 \
    static const ebb_gemm_kind k = { TILE_ROWS, COLS, sizeof(ebb_q8_##len), panel, sizeof(wide##len), unpack_##T, \
                                     prepare_avx2_wide, micros_##len };                                           \
                                                                                                                  \
    ebb_gemm(a, &k);                                                                                              \
}
TYPE(Q8_0, 32, PANEL_32)
TYPE(IQ4_NL, 32, PANEL_32)
TYPE(IQ4_XS, 256, 1)
