/* kernels/grids.h - the points that the IQ1, IQ2 and IQ3 types index: 8 (or 4)
 * small numbers each.  Which points were chosen is a fact of the format; grids.c
 * holds them packed.  Element i of a point is byte i of the word. */
#ifndef EBB_KERNELS_GRIDS_H
#define EBB_KERNELS_GRIDS_H
#include <stdint.h>

typedef struct ebb_grids {
    uint64_t iq1[2048];          /* bytes 0 1 2, for the values -1 0 1 */
    uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024];     /* bytes 8 25 43 */
    uint32_t iq3_xxs[256];       /* bytes 4 12 20 28 36 44 52 62 */
    uint32_t iq3_s[512];         /* bytes 1 3 5 .. 15 */
} ebb_grids;

extern ebb_grids ebb_grid;       /* read-only once filled */

void ebb_grids_fill(void);       /* before the first decoder runs; not thread-safe */

#endif
