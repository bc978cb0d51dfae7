/* x86/amx_tile.h - the registers of AMX, as products with quantized weights use them.
 *
 *   0 .. 3   sums: a row for each column of activations, a lane for each row of weights
 *   4        activations: a row for each column, 64 elements
 *   5, 6     weights as avx512_tile.h orders them: a row for four elements, four bytes for each row
 *            of weights
 *
 * They are a thread's own, and until they are released the kernel keeps 8 KiB whenever it is
 * interrupted. */
#ifndef EBB_KERNELS_AMX_TILE_H
#define EBB_KERNELS_AMX_TILE_H
#include <immintrin.h>
#include <stdint.h>

#include "kernels/gemm.h"

enum { AMX_COLS = 16, AMX_STEP = 64, AMX_WEIGHTS = 5, AMX_END = 7 };

/* Operand of ldtilecfg. */
typedef struct amx_config {
    _Alignas(64) uint8_t palette;
    uint8_t  start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t  rows[16];
} amx_config;

_Static_assert(sizeof(amx_config) == 64, "as ldtilecfg wants it");

/* For n columns. */
GEMM_INLINE void amx_configure(size_t n)
{
    amx_config c = { .palette = 1 };

    for (int i = 0; i < AMX_END; i++) {
        c.row_bytes[i] = 64;
        c.rows[i] = i >= AMX_WEIGHTS ? 16 : (uint8_t)n;
    }
    /* GCC thinks that the intrinsic reads 8 bytes. */
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}

#endif
