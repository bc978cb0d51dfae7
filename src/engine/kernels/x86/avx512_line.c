/* The loops of avx512_line.h. */
#include "kernels/x86/avx512_line.h"

/* Bytes are fetched twice: into the first cache NEAR bytes before their turn, and before that into the second.  A core
 * has few lines on their way to its first cache; more come only by its own fetching into the second, which follows what
 * is asked for within a page of 4 KiB.  So a stretch of some STRETCH steps is fetched while the one before is
 * multiplied, its four quarters side by side: four pages at once.  Measured on one machine; half or twice as much of
 * each changes little. */
enum { ROWS16 = 16, NEAR = 4608, STRETCH = 24, FIRST = 9216 };

/* One call. */
typedef struct line_call {
    const ebb_matmul    *a;
    const ebb_line_kind *k;
    size_t         n_blocks;     /* of a row */
    size_t         plane;        /* floats: of 16 rows one number for each block */
    ebb_line_x     x[GEMV_COLS];
    ebb_line_args p;             /* of which d and the like stand for the first block of 16 rows */
    uint8_t       *tail;         /* 16 blocks */
    const uint8_t *end;          /* of the rows */
    size_t         stretch;      /* bytes of all stretches but the last */
    size_t         left;         /* of the one at work */
} line_call;

static void *take_bytes(uint8_t **at, size_t n)
{
    void *p = *at;

    *at += (n + 63) / 64 * 64;
    return p;
}

static const ebb_q8_256 *column(const ebb_matmul *a, size_t c)
{
    return (const ebb_q8_256 *)((const char *)a->x + c * a->x_col_bytes);
}

/* Low 7 bits and the rest of 16 words, as bytes. */
static void split_sums(__m256i sums, __m128i *low, __m128i *high)
{
    *low = _mm256_cvtepi16_epi8(_mm256_and_si256(sums, _mm256_set1_epi16(127)));
    *high = _mm256_cvtepi16_epi8(_mm256_srai_epi16(sums, 7));
}

static void put_sums(const ebb_line_x *x, size_t i, const ebb_q8_256 *b, bool of_32)
{
    __m256i sums = _mm256_loadu_si256((const void *)b->sum), pairs = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    uint32_t low[4], high[4];
    __m128i l, h;

    split_sums(of_32 ? _mm256_castsi128_si256(_mm256_cvtepi32_epi16(pairs)) : sums, &l, &h);
    _mm_storeu_si128((void *)low, l);
    _mm_storeu_si128((void *)high, h);
    for (int j = 0; j < (of_32 ? 2 : 4); j++) {
        ((uint32_t *)x->low[j])[i] = low[j];
        ((uint32_t *)x->high[j])[i] = high[j];
    }
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    ((int32_t *)x->total)[i] = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* How many blocks of a column stand side by side. */
static size_t n_beside(size_t n_blocks)
{
    return n_blocks % 16 ? n_blocks + 16 : n_blocks;
}

static void lay_column(const line_call *l, size_t c, uint8_t **at, ebb_line_x *x)
{
    size_t n = n_beside(l->n_blocks);

    x->q = take_bytes(at, n * 256);
    for (int j = 0; j < 4; j++) {
        x->low[j] = take_bytes(at, n * 4);
        x->high[j] = take_bytes(at, n * 4);
    }
    x->total = take_bytes(at, n * 4);
    for (size_t i = 0; i < n; i++) {
        const ebb_q8_256 *b = column(l->a, c) + i % l->n_blocks;

        l->k->order(b, x->q + 256 * i);
        put_sums(x, i, b, l->k->has_sums32);
    }
}

static void lay(line_call *l)
{
    uint8_t *at = l->a->scratch;
    size_t bytes = l->plane * sizeof(float);

    l->tail = take_bytes(&at, ROWS16 * l->k->bytes);
    for (size_t c = 0; c < l->a->n_cols; c++)
        lay_column(l, c, &at, &l->x[c]);
    l->p.d = take_bytes(&at, bytes);
    for (size_t c = 0; c < l->a->n_cols; c++)
        l->p.sum[c] = take_bytes(&at, bytes);
}

/* The n < 16 last blocks, where none may be read behind them. */
static const uint8_t *copy_tail(const line_call *l, const uint8_t *w, size_t n)
{
    memset(l->tail, 0, ROWS16 * l->k->bytes);
    return memcpy(l->tail, w, n * l->k->bytes);
}

static void step_on(ebb_line_args *p)
{
    p->d += 16;
    for (size_t c = 0; c < p->n_cols; c++)
        p->sum[c] += 16;
}

/* Ask for [from, from + n), as far as it stands before `end`. */
static void prefetch_line(const uint8_t *from, size_t n, const uint8_t *end)
{
    for (size_t i = 0; i < n && from + i < end; i += 64)
        _mm_prefetch((const char *)from + i, _MM_HINT_T1);
}

/* What is read n bytes behind w: behind the last row it is what comes next. */
static const uint8_t *next_stretch(const line_call *l, const uint8_t *w, size_t n)
{
    size_t left = (size_t)(l->end - w);

    return n < left ? w + n : l->a->next ? (const uint8_t *)l->a->next + (n - left) : w;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* About STRETCH steps, and all stretches of the rows alike: the last one has to last for the fetching of the next
 * call's first. */
static void cut_stretches(line_call *l, size_t n_bytes)
{
    size_t step = ROWS16 * l->k->bytes, n = (n_bytes + STRETCH * step / 2) / (STRETCH * step);

    n = n ? n : 1;
    l->stretch = (n_bytes / n + step - 1) / step * step;
}

/* A stretch begins at w: the one behind it is fetched meanwhile. */
static void begin_stretch(line_call *l, const uint8_t *w)
{
    size_t rest;

    l->left = min_size(l->stretch, (size_t)(l->end - w));
    rest = (size_t)(l->end - w) - l->left;
    l->p.far = next_stretch(l, w, l->left);
    l->p.quarter = min_size(l->stretch, rest ? rest : l->stretch) / 4;
}

/* Integer sums of n blocks from w on, which are rows. */
static void sums(line_call *l, const uint8_t *w, size_t n)
{
    ebb_line_args p = l->p;
    size_t step = ROWS16 * l->k->bytes;

    for (size_t i = 0; i < n; i += ROWS16, w += step) {
        if (l->left == 0)
            begin_stretch(l, w);
        p.w = n - i < ROWS16 ? copy_tail(l, w, n - i) : w;
        p.near = next_stretch(l, w, NEAR);
        p.far = l->p.far;
        p.quarter = l->p.quarter;
        l->k->blocks(&p);
        l->p.far += step / 4;
        l->left -= min_size(l->left, step);
        step_on(&p);
        for (p.b += ROWS16; p.b >= l->n_blocks;)
            p.b -= l->n_blocks;
    }
}

/* Four blocks of 16 rows, rows in lanes. */
EBB_INLINE void turn4(const float *from, size_t n_blocks, __m512i out[4])
{
    __m512i z[4];

#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const float *p = from + i * n_blocks;
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));

        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 4 * n_blocks)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 8 * n_blocks)), 2);
        z[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 12 * n_blocks)), 3);
    }
    ebb_words4(z, out);
}

/* n <= 4 blocks from b on, in the order of K2. */
EBB_INLINE __m512 chain(const line_call *l, size_t c, size_t b, size_t n, const __m512i d[4], bool has_min, __m512 acc)
{
    const ebb_q8_256 *x = column(l->a, c) + b;
    __m512i s[4];

    turn4(l->p.sum[c] + b, l->n_blocks, s);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4 && i < n; i++) {
        __m512 dx = _mm512_set1_ps(x[i].d);

        dx = has_min ? dx : _mm512_mul_ps(_mm512_castsi512_ps(d[i]), dx);
        acc = _mm512_fmadd_ps(dx, _mm512_castsi512_ps(s[i]), acc);
    }
    return acc;
}

/* A line of each quarter, so that memory does not rest while nothing is multiplied. */
EBB_INLINE void fetch_quarters(const ebb_line_args *p, size_t at)
{
    for (size_t i = 0; i < 4; i++)
        _mm_prefetch((const char *)p->far + i * p->quarter + at, _MM_HINT_T1);
}

static void add_up(const line_call *l, size_t r)
{
    const ebb_matmul *a = l->a;
    __mmask16 mask = ebb_row_mask(a->n_rows, r);
    __m512 acc[GEMV_COLS];
    __m512i d[4];

    for (int c = 0; c < GEMV_COLS; c++)
        acc[c] = _mm512_setzero_ps();
    for (size_t b = 0; b < l->n_blocks; b += 4) {
        size_t n = l->n_blocks - b < 4 ? l->n_blocks - b : 4;

        fetch_quarters(&l->p, 16 * b);
        if (!l->k->has_min)
            turn4(l->p.d + b, l->n_blocks, d);
        for (size_t c = 0; c < a->n_cols; c++)
            acc[c] = l->k->has_min ? chain(l, c, b, n, d, true, acc[c]) : chain(l, c, b, n, d, false, acc[c]);
    }
    for (size_t c = 0; c < a->n_cols; c++)
        _mm512_mask_storeu_ps(a->y + c * a->y_stride + r, mask, acc[c]);
}

void ebb_line(const ebb_matmul *a, const ebb_line_kind *k)
{
    const uint8_t *w = a->w;
    line_call l = { .a = a, .k = k, .n_blocks = a->n_k / 256, .end = w + a->n_rows * a->row_bytes };

    l.plane = ROWS16 * l.n_blocks + 16;
    l.p.x = l.x;
    l.p.n_cols = a->n_cols;
    prefetch_line(w, FIRST, l.end);
    lay(&l);
    cut_stretches(&l, a->n_rows * a->row_bytes);
    for (size_t r = 0; r < a->n_rows; r += ROWS16) {
        sums(&l, w + r * a->row_bytes, min_size(a->n_rows - r, ROWS16) * l.n_blocks);
        add_up(&l, r);
    }
}
