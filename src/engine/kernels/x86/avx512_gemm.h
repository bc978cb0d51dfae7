/* x86/avx512_gemm.h - what the two forms of blocks share in gemm.h's loops: 32 rows, rows in lanes,
 * by 7 columns. */
#ifndef EBB_KERNELS_AVX512_GEMM_H
#define EBB_KERNELS_AVX512_GEMM_H
#include "kernels/x86/avx512_tile.h"
#include "kernels/gemm.h"

enum { GEMM_COLS = 7, GEMM_ROWS = GEMM_TILES * TILE_ROWS };

/* What the integer sum of a block of 256 adds to 16 floats: of 16 rows with the scales d and the
 * block at x, whose own scale comes first (rule K2).  dmin NULL: the type has no minima. */
GEMM_INLINE void ebb_gemm256_finish(const float *d, const float *dmin, float *acc,
                                    const uint8_t *x, __m512i sum, __m512i min_sum)
{
    __m512 d_x = _mm512_castsi512_ps(_mm512_set1_epi32(ebb_gemm_four(x)));
    __m512 y = _mm512_load_ps(acc);

    if (dmin) {
        __m512 both = _mm512_mul_ps(_mm512_load_ps(d), _mm512_cvtepi32_ps(sum));

        both = _mm512_fnmadd_ps(_mm512_load_ps(dmin), _mm512_cvtepi32_ps(min_sum), both);
        y = _mm512_fmadd_ps(d_x, both, y);
    } else {
        y = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(d), d_x), _mm512_cvtepi32_ps(sum), y);
    }
    _mm512_store_ps(acc, y);
}

/* Of blocks of 256, any number of columns. */
void ebb_avx512_gemm_Q4_K(const ebb_matmul *a);
void ebb_avx512_gemm_Q5_K(const ebb_matmul *a);
void ebb_avx512_gemm_Q6_K(const ebb_matmul *a);
void ebb_avx512_gemm_Q2_K(const ebb_matmul *a);
void ebb_avx512_gemm_Q3_K(const ebb_matmul *a);
void ebb_avx512_gemm_IQ4_XS(const ebb_matmul *a);
void ebb_avx512_gemm_TQ1_0(const ebb_matmul *a);
void ebb_avx512_gemm_TQ2_0(const ebb_matmul *a);
void ebb_avx512_gemm_IQ1_S(const ebb_matmul *a);
void ebb_avx512_gemm_IQ1_M(const ebb_matmul *a);
void ebb_avx512_gemm_IQ2_XXS(const ebb_matmul *a);
void ebb_avx512_gemm_IQ2_XS(const ebb_matmul *a);
void ebb_avx512_gemm_IQ2_S(const ebb_matmul *a);
void ebb_avx512_gemm_IQ3_XXS(const ebb_matmul *a);
void ebb_avx512_gemm_IQ3_S(const ebb_matmul *a);

/* name[n]: micro(p, n, ...) for n columns. */
#define GEMM_MICRO(name, ...)                                                            \
static void name##_1(const ebb_gemm_args *p) { micro(p, 1, __VA_ARGS__); }               \
static void name##_2(const ebb_gemm_args *p) { micro(p, 2, __VA_ARGS__); }               \
static void name##_3(const ebb_gemm_args *p) { micro(p, 3, __VA_ARGS__); }               \
static void name##_4(const ebb_gemm_args *p) { micro(p, 4, __VA_ARGS__); }               \
static void name##_5(const ebb_gemm_args *p) { micro(p, 5, __VA_ARGS__); }               \
static void name##_6(const ebb_gemm_args *p) { micro(p, 6, __VA_ARGS__); }               \
static void name##_7(const ebb_gemm_args *p) { micro(p, 7, __VA_ARGS__); }               \
static ebb_gemm_micro *const name[GEMM_COLS + 1] = { NULL, name##_1, name##_2, name##_3, \
                                                     name##_4, name##_5, name##_6,       \
                                                        name##_7 };

#endif
