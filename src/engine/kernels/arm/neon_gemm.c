/* Products with quantized weights for NEON and many columns: tiles of 16 rows, rows in lanes, by 4 columns.
 *
 * Numbers stand as the decoders of kernels/quant_blocks.h make them, 4 of each row in turn; of 16 bytes of a column one
 * instruction takes the 4 that it needs, so nothing is prepared. */
#include <arm_neon.h>

#include "kernels/arm/neon_rows.h"
#include "kernels/gemm.h"
#include "kernels/impl.h"

enum { COLS = 4, HALF = 8, TILE_ROWS = 2 * HALF, SLAB = GEMM_TILES * TILE_ROWS, PANEL_256 = 2, PANEL_32 = 16 };

typedef struct neon_tile256 {
    int8_t  q[2][64][32];        /* of the rows 8h .. 8h + 7 in turn the elements 4g .. 4g + 3 */
    int32_t scale[2][16][HALF];
    int16_t min[2][16][HALF];
    float   d[2][HALF], dmin[2][HALF];
} neon_tile256;

typedef struct neon_tile32 {
    int8_t q[2][8][32];
    float  d[2][HALF], m[2][HALF];
} neon_tile32;

/* ---- unpacking ---- */

/* 16 bytes of each of 4 rows, the first at `from`: 4 bytes of every row in turn, at out + 32 * (0 .. 3). */
GEMM_INLINE void put_4_rows(const int8_t *from, size_t row_bytes, int8_t *out)
{
    int32x4_t v[4];

    GEMM_UNROLL for (size_t i = 0; i < 4; i++)
        v[i] = vreinterpretq_s32_s8(vld1q_s8(from + i * row_bytes));
    int64x2_t a = vreinterpretq_s64_s32(vzip1q_s32(v[0], v[1])), b = vreinterpretq_s64_s32(vzip2q_s32(v[0], v[1]));
    int64x2_t c = vreinterpretq_s64_s32(vzip1q_s32(v[2], v[3])), d = vreinterpretq_s64_s32(vzip2q_s32(v[2], v[3]));
    vst1q_s8(out, vreinterpretq_s8_s64(vzip1q_s64(a, c)));
    vst1q_s8(out + 32, vreinterpretq_s8_s64(vzip2q_s64(a, c)));
    vst1q_s8(out + 64, vreinterpretq_s8_s64(vzip1q_s64(b, d)));
    vst1q_s8(out + 96, vreinterpretq_s8_s64(vzip2q_s64(b, d)));
}

/* n bytes of each of 8 rows. */
GEMM_INLINE void put_bytes(const int8_t *from, size_t row_bytes, size_t n, int8_t (*out)[32])
{
    for (size_t i = 0; i < n; i += 16) {
        put_4_rows(from + i, row_bytes, out[i / 4]);
        put_4_rows(from + 4 * row_bytes + i, row_bytes, out[i / 4] + 16);
    }
}

static void put_neon_256(const ebb_block256 rows[TILE_ROWS], bool has_min, neon_tile256 *t)
{
    for (int h = 0; h < 2; h++) {
        const ebb_block256 *b = rows + h * HALF;

        put_bytes(b->q, sizeof *b, 256, t->q[h]);
        for (int j = 0; j < 16; j++)
            for (int i = 0; i < HALF; i++)
                t->scale[h][j][i] = b[i].scale[j];
        for (int j = 0; has_min && j < 16; j++)
            for (int i = 0; i < HALF; i++)
                t->min[h][j][i] = b[i].min[j];
        for (int i = 0; i < HALF; i++) {
            t->d[h][i] = b[i].d;
            t->dmin[h][i] = b[i].dmin;
        }
    }
}

static void put_neon_32(const ebb_block32 rows[TILE_ROWS], bool has_min, neon_tile32 *t)
{
    (void)has_min;
    for (int h = 0; h < 2; h++) {
        const ebb_block32 *b = rows + h * HALF;

        put_bytes(b->q, sizeof *b, 32, t->q[h]);
        for (int i = 0; i < HALF; i++) {
            t->d[h][i] = b[i].d;
            t->m[h][i] = b[i].m;
        }
    }
}

/* ---- products ---- */

/* 16 elements of 8 rows and n columns. */
GEMM_INLINE void add_16(const int8_t (*q)[32], const int8_t *const x[COLS], size_t at, const int n,
                        int32x4_t dot[COLS][2])
{
    int8x16_t v[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++)
        v[c] = vld1q_s8(x[c] + at);
#define GROUP(g)                                                                 \
    {                                                                            \
        int8x16_t low = vld1q_s8(q[g]), high = vld1q_s8(q[g] + 16);              \
                                                                                 \
        GEMM_UNROLL for (int c = 0; c < n; c++) {                                \
            dot[c][0] = vdotq_laneq_s32(dot[c][0], low, v[c], g);                \
            dot[c][1] = vdotq_laneq_s32(dot[c][1], high, v[c], g);               \
        }                                                                        \
    }
    GROUP(0)
    GROUP(1)
    GROUP(2)
    GROUP(3)
#undef GROUP
}

GEMM_INLINE void clear(const int n, int32x4_t v[COLS][2])
{
    GEMM_UNROLL for (int c = 0; c < n; c++)
        v[c][0] = v[c][1] = vdupq_n_s32(0);
}

/* sum_j min_j * (sum of x over the elements of j), minima of 16 or 32 elements. */
GEMM_INLINE void min_sums(const int16_t (*min)[HALF], const ebb_q8_256 *const x[COLS], const int n, const int by,
                          int32x4_t out[COLS][2])
{
    clear(n, out);
    for (int j = 0; j < 256 / by; j++) {
        int16x8_t m = vld1q_s16(min[j * by / 16]);

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            int16x8_t sum = vdupq_n_s16(by == 32 ? x[c]->sum32[j] : x[c]->sum[j]);

            out[c][0] = vmlal_s16(out[c][0], vget_low_s16(m), vget_low_s16(sum));
            out[c][1] = vmlal_high_s16(out[c][1], m, sum);
        }
    }
}

/* 8 rows by n columns, one block; scales of `by` elements each. */
GEMM_INLINE void block_256(const neon_tile256 *t, int h, const ebb_q8_256 *const x[COLS], float *acc, const int n,
                           const int by, const bool has_min)
{
    int32x4_t sum[COLS][2], dot[COLS][2];
    const int8_t *q[COLS];

    GEMM_UNROLL for (int c = 0; c < n; c++)
        q[c] = x[c]->q;
    clear(n, sum);
    for (int j = 0; j < 256 / by; j++) {
        const int32_t *s = t->scale[h][j * by / 16];

        clear(n, dot);
        GEMM_UNROLL for (int i = 0; i < by; i += 16)
            add_16(t->q[h] + (j * by + i) / 4, q, (size_t)(j * by + i), n, dot);
        GEMM_UNROLL for (int c = 0; c < n; c++) {
            sum[c][0] = vmlaq_s32(sum[c][0], dot[c][0], vld1q_s32(s));
            sum[c][1] = vmlaq_s32(sum[c][1], dot[c][1], vld1q_s32(s + 4));
        }
    }
    if (has_min)
        min_sums(t->min[h], x, n, by, dot);
    GEMM_UNROLL for (int c = 0; c < n; c++)
        GEMM_UNROLL for (int i = 0; i < 2; i++) {
            float *y = acc + c * SLAB + 4 * i;
            float32x4_t d = vld1q_f32(t->d[h] + 4 * i), dx = vdupq_n_f32(x[c]->d), total = vcvtq_f32_s32(sum[c][i]);

            if (has_min)
                vst1q_f32(y, vfmaq_f32(vld1q_f32(y), dx,
                                       vfmsq_f32(vmulq_f32(d, total), vld1q_f32(t->dmin[h] + 4 * i),
                                                 vcvtq_f32_s32(dot[c][i]))));
            else
                vst1q_f32(y, vfmaq_f32(vld1q_f32(y), vmulq_f32(d, dx), total));
        }
}

GEMM_INLINE void micro_256(const ebb_gemm_args *p, const int n, const int by, const bool has_min)
{
    const neon_tile256 *tile = p->tile;

    for (size_t t = 0; t < p->n_tiles; t++)
        for (size_t b = 0; b < p->n_blocks; b++, tile++) {
            const ebb_q8_256 *x[COLS];

            GEMM_UNROLL for (int c = 0; c < n; c++)
                x[c] = (const ebb_q8_256 *)(p->x + (size_t)c * p->x_col_bytes) + b;
            for (int h = 0; h < 2; h++)
                block_256(tile, h, x, p->acc + t * TILE_ROWS + h * HALF, n, by, has_min);
        }
}

/* 8 rows by n columns, all blocks of a panel; x_bytes: between columns. */
GEMM_INLINE void blocks_32(const neon_tile32 *t, size_t n_blocks, int h, const uint8_t *first, size_t x_bytes,
                           float *acc, const int n, const bool has_min)
{
    float32x4_t y[COLS][2];

    GEMM_UNROLL for (int c = 0; c < n; c++) {
        y[c][0] = vld1q_f32(acc + c * SLAB);
        y[c][1] = vld1q_f32(acc + c * SLAB + 4);
    }
    for (size_t b = 0; b < n_blocks; b++, t++, first += sizeof(ebb_q8_32)) {
        const ebb_q8_32 *x[COLS];
        const int8_t *q[COLS];
        int32x4_t dot[COLS][2];

        GEMM_UNROLL for (int c = 0; c < n; c++) {
            x[c] = (const ebb_q8_32 *)(first + (size_t)c * x_bytes);
            q[c] = x[c]->q;
        }
        clear(n, dot);
        add_16(t->q[h], q, 0, n, dot);
        add_16(t->q[h] + 4, q, 16, n, dot);
        GEMM_UNROLL for (int i = 0; i < 2; i++) {
            float32x4_t d = vld1q_f32(t->d[h] + 4 * i);

            GEMM_UNROLL for (int c = 0; c < n; c++) {
                y[c][i] = vfmaq_f32(y[c][i], vmulq_n_f32(d, x[c]->d), vcvtq_f32_s32(dot[c][i]));
                if (has_min)
                    y[c][i] = vfmaq_n_f32(y[c][i], vmulq_n_f32(vld1q_f32(t->m[h] + 4 * i), x[c]->d), (float)x[c]->sum);
            }
        }
    }
    GEMM_UNROLL for (int c = 0; c < n; c++) {
        vst1q_f32(acc + c * SLAB, y[c][0]);
        vst1q_f32(acc + c * SLAB + 4, y[c][1]);
    }
}

GEMM_INLINE void micro_32(const ebb_gemm_args *p, const int n, const bool has_min)
{
    const neon_tile32 *tile = p->tile;

    for (size_t t = 0; t < p->n_tiles; t++)
        for (int h = 0; h < 2; h++)
            blocks_32(tile + t * p->n_blocks, p->n_blocks, h, p->x, p->x_col_bytes, p->acc + t * TILE_ROWS + h * HALF,
                      n, has_min);
}

/* ---- each type ---- */

static ebb_gemm_micro *prepare_neon(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    (void)p, (void)out;
    return ((ebb_gemm_micro *const *)k->more)[n_cols];
}

/* name[n]: the kernel for n columns. */
#define MICRO(name, len, ...)                                                                   \
static void name##_1(const ebb_gemm_args *p) { micro_##len(p, 1, __VA_ARGS__); }                \
static void name##_2(const ebb_gemm_args *p) { micro_##len(p, 2, __VA_ARGS__); }                \
static void name##_3(const ebb_gemm_args *p) { micro_##len(p, 3, __VA_ARGS__); }                \
static void name##_4(const ebb_gemm_args *p) { micro_##len(p, 4, __VA_ARGS__); }                \
static ebb_gemm_micro *const name[COLS + 1] = { NULL, name##_1, name##_2, name##_3, name##_4 };
MICRO(of_32, 32, false)
MICRO(of_32_min, 32, true)
MICRO(by_32, 256, 32, false)
MICRO(by_32_min, 256, 32, true)
MICRO(by_16, 256, 16, false)
MICRO(by_16_min, 256, 16, true)

/* few: as many columns come straight from the blocks, where that takes fewer instructions. */
#define TYPE(T, len, has_min, micros, few)                                                                       \
GEMM_UNPACK(T, len, TILE_ROWS, put_neon_##len(rows, has_min, (neon_tile##len *)out + b))                         \
                                                                                                                 \
static void gemm_##T(const ebb_matmul *a)                                                                        \
{                                                                                                                \
    static const ebb_gemm_kind k = { TILE_ROWS, COLS, sizeof(ebb_q8_##len), PANEL_##len, sizeof(neon_tile##len), \
                                     unpack_##T, prepare_neon, micros };                                         \
                                                                                                                 \
    ebb_gemm(a, &k);                                                                                             \
}
#define TYPES(X) X(Q8_0, 32, false, of_32, 8) X(Q4_0, 32, false, of_32, 4) X(Q4_1, 32, true, of_32_min, 4)       \
                 X(Q5_0, 32, false, of_32, 4) X(Q5_1, 32, true, of_32_min, 4) X(IQ4_NL, 32, false, of_32, 8)     \
                 X(MXFP4, 32, false, of_32, 4) X(Q2_K, 256, true, by_16_min, 4) X(Q3_K, 256, false, by_16, 4)    \
                 X(Q4_K, 256, true, by_32_min, 7) X(Q5_K, 256, true, by_32_min, 7) X(Q6_K, 256, false, by_16, 4) \
                 X(IQ4_XS, 256, false, by_32, 7) X(TQ1_0, 256, false, by_32, 4) X(TQ2_0, 256, false, by_32, 4)   \
                 X(IQ1_S, 256, false, by_32, 4) X(IQ1_M, 256, false, by_16, 4) X(IQ2_XXS, 256, false, by_32, 4)  \
                 X(IQ2_XS, 256, false, by_16, 4) X(IQ2_S, 256, false, by_16, 4) X(IQ3_XXS, 256, false, by_32, 4) \
                 X(IQ3_S, 256, false, by_32, 4)
TYPES(TYPE)

void ebb_kernels_fill_neon_quant(ebb_kernels *k)
{
#define X(T, len, has_min, micros, few) \
    k->matmul[EBB_TYPE_##T] = (ebb_matmul_slots){ .gemm = gemm_##T, .gemv = ebb_neon_gemv_##T, \
                                                  .gemv_most_cols = (few) };
    TYPES(X)
#undef X
}
