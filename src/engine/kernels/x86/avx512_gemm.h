/* x86/avx512_gemm.h - what the two forms of blocks share in gemm.h's loops: 32 rows, rows in lanes,
 * by 7 columns. */
#ifndef EBB_KERNELS_AVX512_GEMM_H
#define EBB_KERNELS_AVX512_GEMM_H
#include "kernels/x86/avx512_tile.h"
#include "kernels/gemm.h"

enum { GEMM_COLS = 7, GEMM_ROWS = GEMM_TILES * TILE_ROWS };

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
