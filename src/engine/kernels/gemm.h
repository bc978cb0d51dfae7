/* kernels/gemm.h - products with many columns: the loops that all types and instruction sets share.
 *
 *   for 2 tiles of rows                                  64 or 32 rows
 *     for a panel: some 10 KiB of each tile              unpacked to L1, once for all columns
 *       for a group of columns                           their blocks prepared for the kernel
 *         for each tile: its rows by the group           sums in registers
 *
 * Between panels the float sums stand in the scratch, column by column: in y itself they would
 * be a power of two apart and drive each other out of the caches. */
#ifndef EBB_KERNELS_GEMM_H
#define EBB_KERNELS_GEMM_H
#include <string.h>

#include "kernels/kernels.h"

enum { GEMM_TILES = 2, GEMM_MOST_COLS = 1024 };

/* One group of columns and the tiles of a panel. */
typedef struct ebb_gemm_args {
    const void    *tile;         /* [n_tiles][n_blocks] */
    size_t         n_tiles, n_blocks;
    const uint8_t *x;            /* first block of the panel of the first column ... */
    size_t         x_col_bytes;  /* ... and the distance of columns */
    size_t         to_next;      /* from these columns to the next ones; 0: there are none */
    const void    *column;       /* of each column of the group, as prepared */
    float         *acc;          /* [column][GEMM_TILES * tile rows] */
} ebb_gemm_args;

typedef void ebb_gemm_micro(const ebb_gemm_args *p);

typedef struct ebb_gemm_kind {
    size_t tile_rows, cols;      /* of a tile, of a group */
    size_t x_bytes;              /* of a block of activations */
    size_t panel;                /* most blocks of a panel */
    size_t tile_bytes;           /* of a block */
    /* n_blocks from b0 of the tile_rows rows from r0 of a, the last row repeated. */
    void (*unpack)(const struct ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0,
                   size_t n_blocks, void *out);
    /* n_blocks of n_cols columns; the kernel that suits them. */
    ebb_gemm_micro *(*prepare)(const struct ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols,
                               void *out);
    const void *more;            /* what the two need beside */
} ebb_gemm_kind;

/* The product that *a describes (kernels.h), for any number of columns; a->scratch is the
 * thread's. */
void ebb_gemm(const ebb_matmul *a, const ebb_gemm_kind *k);
/* The same where a block of the file is several of activations (`parts`, a divisor of the panel):
 * the blocks of *k are these. */
void ebb_gemm_parts(const ebb_matmul *a, const ebb_gemm_kind *k, size_t parts);

/* Define unpack_T of an ebb_gemm_kind: PUT makes block b of `out` from the decoded blocks
 * rows[n_rows].  With kernels/quant_blocks.h and kernels/rows.h. */
#define GEMM_UNPACK(T, len, n_rows, PUT)                                                  \
static void unpack_##T(const ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0, \
                       size_t n_blocks, void *out)                                        \
{                                                                                         \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                         \
    ebb_block##len rows[n_rows];                                                          \
                                                                                          \
    (void)k;                                                                              \
    for (size_t b = 0; b < n_blocks; b++) {                                               \
        for (size_t i = 0; i < (n_rows); i++)                                             \
            ebb_decode_##T(row_at(a, r0 + i) + (b0 + b) * bytes, rows + i);               \
        PUT;                                                                              \
    }                                                                                     \
}

/* The same of a type whose blocks have several parts, each decoded like a block of 32. */
#define GEMM_UNPACK_PARTS(T, parts, n_rows, PUT)                                               \
static void unpack_##T(const ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0,      \
                       size_t n_blocks, void *out)                                             \
{                                                                                              \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                              \
    ebb_block32 rows[n_rows];                                                                  \
                                                                                               \
    (void)k;                                                                                   \
    for (size_t b = 0; b < n_blocks; b++) {                                                    \
        for (size_t i = 0; i < (n_rows); i++)                                                  \
            ebb_decode_##T(row_at(a, r0 + i) + (b0 + b) / (parts) * bytes, (b0 + b) % (parts), \
                           rows + i);                                                          \
        PUT;                                                                                   \
    }                                                                                          \
}

#define GEMM_UNROLL _Pragma("GCC unroll 8")
#define GEMM_INLINE static inline __attribute__((always_inline))

/* 4 bytes. */
GEMM_INLINE int32_t ebb_gemm_four(const uint8_t *x)
{
    int32_t four;

    memcpy(&four, x, 4);
    return four;
}

#endif
