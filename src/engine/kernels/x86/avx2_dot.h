/* x86/avx2_dot.h - products of unsigned by signed bytes, 32 at a time: where the rungs "avx2" and
 * "avxvnni" of the ladder differ.  The files that include it are compiled for both.
 *
 * vpmaddubsw adds two products into 16 bits and saturates, so what may come together is limited by
 * the largest number of a type; vpdpbusd adds four into 32 bits and never does. */
#ifndef EBB_KERNELS_AVX2_DOT_H
#define EBB_KERNELS_AVX2_DOT_H
#include <immintrin.h>
#include <stdbool.h>

#define DOT_INLINE static inline __attribute__((always_inline))

#ifdef __AVXVNNI__
#define EBB_YMM(name) ebb_avxvnni_##name

/* sum + a . b of pairs of 16 bits. */
DOT_INLINE __m256i dot_add_words(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_dpwssd_avx_epi32(sum, a, b);
}

/* w . x of each four bytes. */
DOT_INLINE __m256i dot_bytes(__m256i w, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), w, x);
}

/* ---- sums of products that are multiplied by a scale afterwards: DOT_ADDS of them ---- */

/* How many times four products are added before that; `group` fours have one scale. */
#define DOT_FITS(adds, max) (4 * (adds) * 127 * (max) <= 32767)
#define DOT_ADDS(group, max) (!DOT_FITS(8, max) && DOT_FITS(4, max) ? 4 : (group))

DOT_INLINE __m256i dot_start(__m256i w, __m256i x)
{
    return dot_bytes(w, x);
}

DOT_INLINE __m256i dot_more(__m256i v, __m256i w, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(v, w, x);
}

DOT_INLINE __m256i dot_total(__m256i sum, __m256i v)
{
    return _mm256_add_epi32(sum, v);
}

/* sum + v * scale, which dot_scale made. */
DOT_INLINE __m256i dot_scaled(__m256i sum, __m256i v, __m256i scale, const bool fits)
{
    return fits ? _mm256_dpwssd_avx_epi32(sum, v, scale)
                : _mm256_add_epi32(sum, _mm256_mullo_epi32(v, scale));
}

/* Of pairs of 16 bits: one of them.  Where sums fit 16 bits, their upper halves count nothing. */
DOT_INLINE __m256i dot_scale(__m256i pairs, int which, bool fits)
{
    if (which == 0)
        pairs = _mm256_slli_epi32(pairs, 16);
    return fits ? _mm256_srli_epi32(pairs, 16) : _mm256_srai_epi32(pairs, 16);
}

#else
#define EBB_YMM(name) ebb_avx2_##name

DOT_INLINE __m256i dot_add_words(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

DOT_INLINE __m256i dot_bytes(__m256i w, __m256i x)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
}

#define DOT_FITS(adds, max)  (2 * (adds) * 127 * (max) <= 32767)
#define DOT_ADDS(group, max) ((group) == 8 && DOT_FITS(8, max) ? 8 \
                              : DOT_FITS(4, max) ? 4 : DOT_FITS(2, max) ? 2 : 1)

DOT_INLINE __m256i dot_start(__m256i w, __m256i x)
{
    return _mm256_maddubs_epi16(w, x);
}

DOT_INLINE __m256i dot_more(__m256i v, __m256i w, __m256i x)
{
    return _mm256_add_epi16(v, _mm256_maddubs_epi16(w, x));
}

DOT_INLINE __m256i dot_total(__m256i sum, __m256i v)
{
    return dot_add_words(sum, v, _mm256_set1_epi16(1));
}

DOT_INLINE __m256i dot_scaled(__m256i sum, __m256i v, __m256i scale, const bool fits)
{
    (void)fits;                                  /* always: DOT_ADDS */
    return dot_add_words(sum, v, scale);
}

/* Twice: both halves of a sum count. */
DOT_INLINE __m256i dot_scale(__m256i pairs, int which, bool fits)
{
    const int first = 0x01000100 + which * 0x02020202;

    (void)fits;
    return _mm256_shuffle_epi8(
        pairs, _mm256_broadcastsi128_si256(_mm_setr_epi32(first, first + 0x04040404,
                                                          first + 0x08080808, first + 0x0c0c0c0c)));
}
#endif

#endif
