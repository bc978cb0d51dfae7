/* x86/avx512_gemm.h - products with many columns: the loops that blocks of 32
 * and of 256 share.
 *
 *   for 64 rows                                          2 tiles: what a slice of the pool has
 *     for 10 KiB of a tile ("panel")                     unpacked to L1, once for all columns
 *       for 6 columns                                    their blocks prepared for the kernel
 *         for each tile: 32 rows x 6 columns in registers
 *
 * Between panels the float sums stand in the scratch, column by column: in y itself they would
 * be a power of two apart and drive each other out of the caches. */
#ifndef EBB_KERNELS_AVX512_GEMM_H
#define EBB_KERNELS_AVX512_GEMM_H
#include "kernels/x86/avx512_tile.h"

enum { GEMM_COLS = 6, GEMM_TILES = 2, GEMM_ROWS = GEMM_TILES * TILE_ROWS, GEMM_MOST_COLS = 1024 };

/* One group of columns and the tiles of a panel. */
typedef struct ebb_gemm_place {
    const void    *tile;         /* [n_tiles][n_blocks] */
    size_t         n_tiles, n_blocks;
    const uint8_t *x;            /* first block of the panel of the first column ... */
    size_t         x_col_bytes;  /* ... and the distance of columns */
    size_t         ahead;        /* from these columns to the next ones; 0: there are none */
    const void    *column;       /* [GEMM_COLS] as prepared */
    float         *acc;          /* [GEMM_COLS][GEMM_ROWS] */
} ebb_gemm_place;

typedef void ebb_gemm_micro(const ebb_gemm_place *p);

typedef struct ebb_gemm_kind {
    size_t x_bytes;              /* of a block of activations */
    size_t panel;                /* most blocks of a panel */
    size_t tile_bytes;           /* of a block */
    /* n_blocks of 16 rows to half h of the tiles at `out`. */
    void (*unpack)(const struct ebb_gemm_kind *k, const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, void *out);
    /* n_blocks of n_cols columns; the kernel that suits them. */
    ebb_gemm_micro *(*prepare)(const struct ebb_gemm_kind *k, const ebb_gemm_place *p, size_t n_cols, void *out);
    const void *more;            /* what the two need beside */
} ebb_gemm_kind;

void ebb_avx512_gemm(const ebb_matmul *a, const ebb_gemm_kind *k);

#define GEMM_UNROLL _Pragma("GCC unroll 8")
#define GEMM_INLINE static inline __attribute__((always_inline))

/* name[n]: micro(p, n, ...) for n columns. */
#define GEMM_MICRO(name, ...)                                                       \
static void name##_1(const ebb_gemm_place *p) { micro(p, 1, __VA_ARGS__); }         \
static void name##_2(const ebb_gemm_place *p) { micro(p, 2, __VA_ARGS__); }         \
static void name##_3(const ebb_gemm_place *p) { micro(p, 3, __VA_ARGS__); }         \
static void name##_4(const ebb_gemm_place *p) { micro(p, 4, __VA_ARGS__); }         \
static void name##_5(const ebb_gemm_place *p) { micro(p, 5, __VA_ARGS__); }         \
static void name##_6(const ebb_gemm_place *p) { micro(p, 6, __VA_ARGS__); }         \
static ebb_gemm_micro *const name[GEMM_COLS + 1] = { NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };

/* 4 activations of column c in every lane. */
GEMM_INLINE __m512i ebb_gemm_four(const uint8_t *x)
{
    int32_t four;

    memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
}

#endif
