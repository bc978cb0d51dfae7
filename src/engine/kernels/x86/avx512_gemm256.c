/* Products of blocks of 256 for many columns: tiles of 32 rows, 6 columns at a
 * time in registers.
 *
 * Order of the loops: 256 rows by 2048 elements are unpacked into the scratch
 * (L2); a group of columns passes over all of them while it stands in L1.  The
 * sums over the blocks go on in y itself, in the order K2 wants. */
#include "kernels/blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemv.h"

enum { COLS = 6, BLOCKS = 8, TILES = 8 };

/* What a column adds beside its bytes: starts of the sums and the sums of 32. */
typedef struct column_block {
    int32_t start[32];
    int32_t sums[8];             /* pairs of int16: of 32 elements each (4) or of 16 (8) */
    float   d;
} column_block;

typedef struct scratch_256 {
    ebb_tile256  tile[TILES][BLOCKS];
    column_block column[COLS][BLOCKS];
} scratch_256;

_Static_assert(sizeof(scratch_256) <= EBB_KERNEL_SCRATCH, "tiles must fit the scratch of a thread");

typedef struct place {
    const ebb_tile256  *tile;
    size_t              n_blocks;
    const ebb_q8_256   *x;
    size_t              x_col_bytes;
    const column_block *column;
    float              *y;
    size_t              y_stride;
    __mmask16           mask[2];
    bool                is_first;
} place;

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define INLINE static inline __attribute__((always_inline))

INLINE __m512i scaled(__m512i sum, __m512i v, __m512i scale, bool is_wide)
{
    return is_wide ? _mm512_add_epi32(sum, _mm512_mullo_epi32(v, scale)) : _mm512_dpwssd_epi32(sum, v, scale);
}

INLINE void finish(const place *p, const ebb_tile256 *t, size_t b, int c, int h, __m512i sum, __m512i min_sum, bool has_min)
{
    const column_block *col = &p->column[c * BLOCKS + (int)b];
    float *y = p->y + (size_t)c * p->y_stride + 16 * h;
    __m512 acc = b == 0 && p->is_first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(p->mask[h], y);
    __m512 dx = _mm512_set1_ps(col->d);

    acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->d[h]), dx), _mm512_cvtepi32_ps(sum), acc);
    if (has_min)
        acc = _mm512_fnmadd_ps(_mm512_mul_ps(_mm512_load_ps(t->dmin[h]), dx), _mm512_cvtepi32_ps(min_sum), acc);
    _mm512_mask_storeu_ps(y, p->mask[h], acc);
}

/* n columns; `group` of 4 elements under one scale; n_min pairs of minima (4: and what `fix` undoes);
 * is_wide: the sums do not fit 16 bits. */
INLINE void micro(const place *p, const int n, const int group, const int n_min, const bool is_wide)
{
#define X(c) const uint8_t *x##c = (const uint8_t *)p->x->q + (n > c ? c : 0) * p->x_col_bytes;
    EACH(X)
#undef X
    for (size_t b = 0; b < p->n_blocks; b++) {
        const ebb_tile256 *t = p->tile + b;
#define X(c) __m512i sum0##c = _mm512_setzero_si512(), sum1##c = sum0##c;
        EACH(X)
#undef X
        for (int s = 0; s < 64 / group; s++) {
#define X(c) __m512i v0##c = _mm512_set1_epi32(p->column[c * BLOCKS + (int)b].start[s]), v1##c = v0##c;
            EACH(X)
#undef X
#pragma GCC unroll 8
            for (int g = s * group; g < (s + 1) * group; g++) {
                __m512i w0 = _mm512_load_si512(t->q[g][0]), w1 = _mm512_load_si512(t->q[g][1]);
#define X(c)    if (n > c) {                                                                       \
                    int32_t four;                                                                  \
                    memcpy(&four, x##c + 4 * g, 4);                                                \
                    v0##c = _mm512_dpbusd_epi32(v0##c, w0, _mm512_set1_epi32(four));               \
                    v1##c = _mm512_dpbusd_epi32(v1##c, w1, _mm512_set1_epi32(four));               \
                }
                EACH(X)
#undef X
            }
            int i = s * group / (group < 4 ? 4 : group);
            __m512i s0 = _mm512_load_si512(t->scale[i][0]), s1 = _mm512_load_si512(t->scale[i][1]);
#define X(c) if (n > c) { sum0##c = scaled(sum0##c, v0##c, s0, is_wide); sum1##c = scaled(sum1##c, v1##c, s1, is_wide); }
            EACH(X)
#undef X
        }
#define X(c) \
        if (n > c) {                                                                               \
            __m512i m0 = _mm512_setzero_si512(), m1 = m0;                                          \
            for (int j = 0; j < n_min; j++) {                                                      \
                __m512i pair = _mm512_set1_epi32(p->column[c * BLOCKS + (int)b].sums[j]);          \
                if (n_min == 4) {                                                                  \
                    sum0##c = _mm512_dpwssd_epi32(sum0##c, _mm512_load_si512(t->fix[j][0]), pair); \
                    sum1##c = _mm512_dpwssd_epi32(sum1##c, _mm512_load_si512(t->fix[j][1]), pair); \
                }                                                                                  \
                m0 = _mm512_dpwssd_epi32(m0, _mm512_load_si512(t->min[j][0]), pair);               \
                m1 = _mm512_dpwssd_epi32(m1, _mm512_load_si512(t->min[j][1]), pair);               \
            }                                                                                      \
            finish(p, t, b, c, 0, sum0##c, m0, n_min > 0);                                         \
            finish(p, t, b, c, 1, sum1##c, m1, n_min > 0);                                         \
            x##c += sizeof(ebb_q8_256);                                                            \
        }
        EACH(X)
#undef X
    }
}

typedef void micro_fn(const place *p);

#define MICRO(name, group, n_min, is_wide)                                           \
static void name##_1(const place *p) { micro(p, 1, group, n_min, is_wide); }         \
static void name##_2(const place *p) { micro(p, 2, group, n_min, is_wide); }         \
static void name##_3(const place *p) { micro(p, 3, group, n_min, is_wide); }         \
static void name##_4(const place *p) { micro(p, 4, group, n_min, is_wide); }         \
static void name##_5(const place *p) { micro(p, 5, group, n_min, is_wide); }         \
static void name##_6(const place *p) { micro(p, 6, group, n_min, is_wide); }         \
static micro_fn *const name[COLS + 1] = { NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };
MICRO(micro_8, 8, 0, false)
MICRO(micro_8_min, 8, 4, false)
MICRO(micro_8_wide, 8, 0, true)
MICRO(micro_4, 4, 0, false)
MICRO(micro_4_wide, 4, 0, true)
MICRO(micro_4_min, 4, 4, false)
MICRO(micro_4_min16, 4, 8, false)
MICRO(micro_2, 2, 0, false)

typedef struct kind {
    ebb_unpack256_fn *unpack;
    micro_fn *const  *micro;
    int               group;     /* of 4 elements */
    int               offset;    /* what the sums start with: -offset * sum of x */
    int               n_min;
} kind;

static void prepare_column(const ebb_q8_256 *x, size_t n_blocks, const kind *k, column_block *o)
{
    const int group = k->group, offset = k->offset;

    for (size_t b = 0; b < n_blocks; b++, x++, o++) {
        int16_t sums[8];

        o->d = x->d;
        for (int j = 0; j < 8; j++) {
            int both = x->sum[2 * j] + x->sum[2 * j + 1];

            sums[j] = (int16_t)both;
            if (group == 8)
                o->start[j] = -offset * both;
        }
        memcpy(o->sums, k->n_min == 8 ? x->sum : sums, k->n_min == 8 ? sizeof x->sum : sizeof sums);
        if (group == 4)
            for (int j = 0; j < 16; j++)
                o->start[j] = -offset * x->sum[j];
        if (group == 2)
            for (int j = 0; j < 4; j++) {        /* sums of 8 bytes */
                __m512i v = _mm512_loadu_si512(x->q + 64 * j);
                __m512i four = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), v);
                __m512i eight = _mm512_add_epi32(four, _mm512_srli_epi64(four, 32));
                __m256i low = _mm512_cvtepi64_epi32(eight);

                _mm256_storeu_si256((void *)(o->start + 8 * j), _mm256_mullo_epi32(low, _mm256_set1_epi32(-offset)));
            }
    }
}

static void unpack(const ebb_matmul *a, const kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, scratch_256 *s)
{
    const size_t bytes = ebb_type_get(a->type)->block_bytes;

    for (size_t t = 0; t < n_tiles; t++)
        for (int h = 0; h < 2; h++)
            for (size_t b = 0; b < n_blocks; b++) {
                ebb_half rows;

                ebb_half_rows(a, r0 + t * TILE_ROWS + (size_t)h * HALF_ROWS, (b0 + b) * bytes, &rows);
                k->unpack(&rows, h, &s->tile[t][b]);
            }
}

static void columns(const ebb_matmul *a, const kind *k, size_t r0, size_t n_tiles, size_t b0, size_t n_blocks, scratch_256 *s)
{
    size_t n_groups = (a->n_cols + COLS - 1) / COLS;

    for (size_t i = 0; i < n_groups; i++) {
        size_t c0 = a->n_cols * i / n_groups, c1 = a->n_cols * (i + 1) / n_groups;
        const ebb_q8_256 *x = (const ebb_q8_256 *)((const char *)a->x + c0 * a->x_col_bytes) + b0;

        for (size_t c = c0; c < c1; c++)
            prepare_column((const ebb_q8_256 *)((const char *)x + (c - c0) * a->x_col_bytes), n_blocks, k,
                           s->column[c - c0]);
        for (size_t t = 0; t < n_tiles; t++) {
            size_t r = r0 + t * TILE_ROWS;

            k->micro[c1 - c0](&(place){ .tile = s->tile[t], .n_blocks = n_blocks, .x = x, .x_col_bytes = a->x_col_bytes,
                .column = s->column[0], .y = a->y + c0 * a->y_stride + r, .y_stride = a->y_stride, .is_first = b0 == 0,
                .mask = { ebb_row_mask(a->n_rows, r), ebb_row_mask(a->n_rows, r + 16) } });
        }
    }
}

static void gemm(const ebb_matmul *a, const kind *k)
{
    size_t n_blocks = a->n_k / 256, n_rows = a->n_rows;

    for (size_t r = 0; r < n_rows; r += TILES * TILE_ROWS) {
        size_t n_tiles = (n_rows - r + TILE_ROWS - 1) / TILE_ROWS;

        n_tiles = n_tiles < TILES ? n_tiles : TILES;
        for (size_t b = 0; b < n_blocks; b += BLOCKS) {
            size_t n = n_blocks - b < BLOCKS ? n_blocks - b : BLOCKS;

            unpack(a, k, r, n_tiles, b, n, a->scratch);
            columns(a, k, r, n_tiles, b, n, a->scratch);
        }
    }
}

/* Few columns come straight from the blocks. */
#define TYPE(T, micro, group, offset, n_min)                                             \
static void matmul_##T(const ebb_matmul *a)                                              \
{                                                                                        \
    if (a->n_cols <= GEMV_COLS)                                                          \
        ebb_avx512_gemv_##T(a);                                                          \
    else                                                                                 \
        gemm(a, &(kind){ ebb_avx512_unpack_##T, micro, group, offset, n_min });          \
}
TYPE(Q4_K, micro_8_min, 8, 8, 4)
TYPE(Q5_K, micro_4_min, 4, 16, 4)
TYPE(Q6_K, micro_2, 2, 32, 0)
TYPE(Q2_K, micro_4_min16, 4, 0, 8)
TYPE(Q3_K, micro_4, 4, 4, 0)
TYPE(IQ4_XS, micro_8_wide, 8, 128, 0)
TYPE(TQ1_0, micro_8, 8, 1, 0)
TYPE(TQ2_0, micro_8, 8, 1, 0)
TYPE(IQ1_S, micro_4, 4, 9, 0)
TYPE(IQ1_M, micro_4, 4, 9, 0)
TYPE(IQ2_XXS, micro_8_wide, 8, 43, 0)
TYPE(IQ2_XS, micro_4_wide, 4, 43, 0)
TYPE(IQ2_S, micro_4_wide, 4, 43, 0)
TYPE(IQ3_XXS, micro_8_wide, 8, 62, 0)
TYPE(IQ3_S, micro_4, 4, 15, 0)
#undef TYPE

void ebb_kernels_fill_avx512_gemm256(ebb_kernels *k)
{
#define X(T, offset, has_min) k->matmul[EBB_TYPE_##T] = matmul_##T;
    EBB_TYPES_256(X)
#undef X
}
