/* Products of blocks of 256 for many columns: what a block of a tile does to 16 columns with AMX.
 *
 * A weight times its scale, an integer of at most 14 bits, is what is multiplied here: as two bytes, 128 high + low.
 * So the sums of a whole block stay in the tile registers, and nothing is scaled in between; four tdpbssd make those
 * of 16 rows and 16 columns, for each byte.  The integers are those of avx512_gemm256.c, added in another order. */
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/amx_tile.h"
#include "kernels/x86/avx512_gemm.h"

/* Fewer columns are left to AVX-512: with 32 unpacking takes what is saved, with 8 the whole takes twice as long. */
enum { LOW_BITS = 7, STEPS = 4, X_LINES = sizeof(ebb_q8_256) / 64, FEW = 40 };

typedef struct amx_tile256 {
    int8_t  part[2][64][2][64];  /* low and, if it has one, high, each as ebb_tile256.q */
    int32_t min[8][2][16];
    float   d[2][16], dmin[2][16];
} amx_tile256;

typedef struct type {
    ebb_unpack256_fn *unpack;
    ebb_gemm_micro   *micro;
    int  group;                  /* of 4 elements under one scale */
    int  offset;                 /* of the unpacked bytes */
    bool has_high;               /* low is not enough, and has 7 bits; else it has 8 */
} type;

/* ---- weights ---- */

/* Words, those of the elements at even places and those at odd ones, as bytes. */
GEMM_INLINE void put_parts(amx_tile256 *o, int g, int h, __m512i even, __m512i odd, bool has_high)
{
    const __m512i low = _mm512_set1_epi16(has_high ? (1 << LOW_BITS) - 1 : 0xff), byte = _mm512_set1_epi16(0xff);

    _mm512_store_si512(o->part[0][g][h], _mm512_or_si512(_mm512_and_si512(even, low),
                                                         _mm512_slli_epi16(_mm512_and_si512(odd, low), 8)));
    if (!has_high)
        return;
    even = _mm512_and_si512(_mm512_srai_epi16(even, LOW_BITS), byte);
    odd = _mm512_slli_epi16(_mm512_srai_epi16(odd, LOW_BITS), 8);
    _mm512_store_si512(o->part[1][g][h], _mm512_or_si512(even, odd));
}

static void multiply_by_scales(const ebb_tile256 *t, const type *y, amx_tile256 *o)
{
    const __m512i byte = _mm512_set1_epi16(0xff), offset = _mm512_set1_epi16((short)y->offset);

    for (int g = 0; g < 64; g++)
        for (int h = 0; h < 2; h++) {
            __m512i q = _mm512_load_si512(t->q[g][h]), scale = _mm512_load_si512(t->scale[g / y->group][h]);

            scale = _mm512_or_si512(_mm512_and_si512(scale, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(scale, 16));
            put_parts(o, g, h,
                      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(q, byte), offset), scale),
                      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(q, 8), offset), scale),
                      y->has_high);
        }
    memcpy(o->min, t->min, sizeof o->min);
    memcpy(o->d, t->d, sizeof o->d);
    memcpy(o->dmin, t->dmin, sizeof o->dmin);
}

static void unpack(const ebb_gemm_kind *k, const ebb_matmul *a, size_t r0, size_t b0, size_t n_blocks, void *out)
{
    const type *y = k->more;
    _Alignas(64) ebb_tile256 t;

    for (int h = 0; h < 2; h++) {
        ebb_half rows;

        ebb_half_rows(a, r0 + (size_t)h * HALF_ROWS, b0 * ebb_type_get(a->type)->block_bytes, &rows);
        y->unpack(&rows, h, &t);
    }
    multiply_by_scales(&t, y, out);
    (void)n_blocks;                              /* 1 */
}

/* ---- products ---- */

typedef struct sums {
    _Alignas(64) int32_t of[2][2][AMX_COLS][HALF_ROWS];  /* low and high, of each half */
} sums;

/* How many columns this thread's registers are set for. */
static _Thread_local size_t n_configured;

/* The sums of one tile and all columns grow by those of the elements 64 i ... */
GEMM_INLINE void multiply_step(const amx_tile256 *t, const uint8_t *x, size_t x_stride, int i, const bool has_high)
{
    const int row = sizeof t->part[0][0], g = 16 * i;

    _tile_loadd(4, x + 64 * i, x_stride);
    _tile_loadd(5, t->part[0][g][0], row);
    _tile_dpbssd(0, 4, 5);
    _tile_loadd(6, t->part[0][g][1], row);
    _tile_dpbssd(1, 4, 6);
    if (has_high) {
        _tile_loadd(5, t->part[1][g][0], row);
        _tile_dpbssd(2, 4, 5);
        _tile_loadd(6, t->part[1][g][1], row);
        _tile_dpbssd(3, 4, 6);
    }
}

GEMM_INLINE void begin_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

GEMM_INLINE void store_sums(sums *o, const bool has_high)
{
    _tile_stored(0, o->of[0][0], 64);
    _tile_stored(1, o->of[0][1], 64);
    if (has_high) {
        _tile_stored(2, o->of[1][0], 64);
        _tile_stored(3, o->of[1][1], 64);
    }
}

/* What the sums of one column add to its 32 floats. */
GEMM_INLINE void finish(const amx_tile256 *t, const sums *s, size_t c, const uint8_t *block, float *acc,
                        const int n_min, const bool has_high)
{
    const size_t min_sums = n_min == 8 ? offsetof(ebb_q8_256, sum) : offsetof(ebb_q8_256, sum32);

    GEMM_UNROLL for (int h = 0; h < 2; h++) {
        __m512i sum = _mm512_load_si512(s->of[0][h][c]), min_sum = _mm512_setzero_si512();

        if (has_high)
            sum = _mm512_add_epi32(sum, _mm512_slli_epi32(_mm512_load_si512(s->of[1][h][c]), LOW_BITS));
        GEMM_UNROLL for (int j = 0; j < n_min; j++)
            min_sum = _mm512_dpwssd_epi32(min_sum, _mm512_load_si512(t->min[j][h]),
                                          _mm512_set1_epi32(ebb_gemm_four(block + min_sums + 4 * (size_t)j)));
        ebb_gemm256_finish(t->d[h], n_min > 0 ? t->dmin[h] : NULL, acc + 16 * h, block, sum, min_sum);
    }
}

/* The columns [from, to) of tile i: their floats, and lines of the blocks that come next. */
GEMM_INLINE void finish_columns(const ebb_gemm_args *p, size_t i, const sums *s, size_t from, size_t to,
                                const int n_min, const bool has_high)
{
    const size_t first = i ? (X_LINES + 1) / 2 : 0, end = i ? X_LINES : (X_LINES + 1) / 2;

    for (size_t c = from; c < to; c++) {
        const uint8_t *block = p->x + c * p->x_col_bytes;

        for (size_t line = first; p->to_next && line < end; line++)
            _mm_prefetch((const char *)block + p->to_next + 64 * line, _MM_HINT_T0);
        finish((const amx_tile256 *)p->tile + i, s, c, block, p->acc + c * GEMM_ROWS + i * TILE_ROWS, n_min, has_high);
    }
}

/* While the tile registers are at work on one tile, the vector registers finish the one before. */
GEMM_INLINE void micro(const ebb_gemm_args *p, const int n_min, const bool has_high)
{
    const size_t n = *(const size_t *)p->column;
    const uint8_t *x = p->x + offsetof(ebb_q8_256, q);
    sums s[GEMM_TILES];

    if (n_configured != n)
        amx_configure(n_configured = n);
    __asm__ volatile("" : : : "memory");         /* GCC does not know what tileloadd reads */
    for (size_t i = 0; i < p->n_tiles; i++) {
        begin_sums();
        for (int step = 0; step < STEPS; step++) {
            multiply_step((const amx_tile256 *)p->tile + i, x, p->x_col_bytes, step, has_high);
            if (i > 0)
                finish_columns(p, i - 1, &s[i - 1], n * (size_t)step / STEPS, n * ((size_t)step + 1) / STEPS, n_min,
                               has_high);
        }
        store_sums(&s[i], has_high);
    }
    finish_columns(p, p->n_tiles - 1, &s[p->n_tiles - 1], 0, n, n_min, has_high);
}

static void micro_two(const ebb_gemm_args *p) { micro(p, 0, true); }
static void micro_two_min(const ebb_gemm_args *p) { micro(p, 4, true); }
static void micro_one(const ebb_gemm_args *p) { micro(p, 0, false); }
static void micro_one_min16(const ebb_gemm_args *p) { micro(p, 8, false); }

static ebb_gemm_micro *prepare_amx_256(const ebb_gemm_kind *k, const ebb_gemm_args *p, size_t n_cols, void *out)
{
    *(size_t *)out = n_cols;
    (void)p;
    return ((const type *)k->more)->micro;
}

static void gemm(const ebb_matmul *a, const ebb_gemm_kind *k, void (*few)(const ebb_matmul *a))
{
    if (a->n_cols < FEW) {
        few(a);
        return;
    }
    n_configured = 0;
    ebb_gemm(a, k);
    _tile_release();
}

#define TYPE(T, micro, group, offset, has_high)                                                       \
static void gemm_amx_##T(const ebb_matmul *a)                                                         \
{                                                                                                     \
    static const type t = { ebb_avx512_unpack_##T, micro, group, offset, has_high };                  \
    static const ebb_gemm_kind k = { TILE_ROWS, AMX_COLS, sizeof(ebb_q8_256), 1, sizeof(amx_tile256), \
                                     unpack, prepare_amx_256, &t };                                   \
                                                                                                      \
    gemm(a, &k, ebb_avx512_gemm_##T);                                                                 \
}
#define TYPES(X) \
    X(Q4_K, micro_two_min, 8, 0, true) X(Q5_K, micro_two_min, 8, 0, true) X(Q6_K, micro_two, 4, 32, true) \
    X(Q2_K, micro_one_min16, 4, 0, false) X(Q3_K, micro_two, 4, 4, true) X(IQ4_XS, micro_two, 8, 128, true) \
    X(TQ1_0, micro_one, 8, 1, false) X(TQ2_0, micro_one, 8, 1, false) X(IQ1_S, micro_two, 4, 9, true) \
    X(IQ1_M, micro_two, 4, 9, true) X(IQ2_XXS, micro_two, 8, 43, true) X(IQ2_XS, micro_two, 4, 43, true) \
    X(IQ2_S, micro_two, 4, 43, true) X(IQ3_XXS, micro_two, 8, 62, true) X(IQ3_S, micro_two, 4, 15, true)
TYPES(TYPE)

void ebb_kernels_fill_amx_gemm256(ebb_kernels *k)
{
#define X(T, ...) k->matmul[EBB_TYPE_##T].gemm = gemm_amx_##T;
    TYPES(X)
#undef X
}
