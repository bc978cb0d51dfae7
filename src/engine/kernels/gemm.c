/* The loops of gemm.h. */
#include "kernels/gemm.h"

enum { PANEL_BYTES = 36 << 10, COLUMN_BYTES = 8 << 10, MOST_ROWS = 64 };

typedef struct scratch {
    _Alignas(64) uint8_t tile[PANEL_BYTES];
    _Alignas(64) uint8_t column[COLUMN_BYTES];
    float acc[GEMM_MOST_COLS * MOST_ROWS];
} scratch;

_Static_assert(sizeof(scratch) <= EBB_KERNEL_SCRATCH, "tiles must fit the scratch of a thread");

/* Some rows and columns of a product, and the panel under way. */
typedef struct part {
    const ebb_matmul    *a;
    const ebb_gemm_kind *k;
    const ebb_type_info *type;
    scratch *s;
    size_t rows;                 /* of all tiles */
    size_t r0, n_tiles, c0, n_cols, b0, n_blocks, n_all;      /* blocks of the panel; of a row */
    size_t n_groups;             /* of columns */
    size_t parts;                /* of a block of the file */
    size_t step, n_steps;        /* of the panel's work, done and in all: a tile unpacked, or a group multiplied */
} part;

static bool is_last_panel(const part *p)
{
    return p->b0 + p->n_blocks == p->n_all;
}

/* The first of the rows that are unpacked next, where their panel begins; NULL: nobody knows. */
static const char *next_panel(const part *p)
{
    const char *w = p->a->w;

    if (!is_last_panel(p))
        return w + p->r0 * p->a->row_bytes + (p->b0 + p->n_blocks) / p->parts * p->type->block_bytes;
    return p->r0 + p->rows < p->a->n_rows ? w + (p->r0 + p->rows) * p->a->row_bytes : p->a->next;
}

/* A step begins: its share of the panel that comes next is asked for.  A core has few lines on their way, and waits
 * if it asks for all at once. */
static void prefetch_weights(part *p)
{
    size_t bytes = p->n_blocks / p->parts * p->type->block_bytes, r = p->rows * p->step / p->n_steps;
    const char *w = next_panel(p);

    for (p->step++; w && r < p->rows * p->step / p->n_steps; r++)
        for (size_t i = 0; i < bytes + 63; i += 64)
            __builtin_prefetch(w + r * p->a->row_bytes + i, 0, 2);
}

static size_t n_rows_of(const part *p)
{
    return p->a->n_rows - p->r0 < p->rows ? p->a->n_rows - p->r0 : p->rows;
}

/* Complete sums of n columns from c. */
static void store_sums(const part *p, size_t c, size_t n, const float *acc)
{
    size_t rows = n_rows_of(p);
    float *y = p->a->y + c * p->a->y_stride + p->r0;

    for (size_t i = 0; i < n; i++, y += p->a->y_stride, acc += p->rows)
        memcpy(y, acc, rows * sizeof *y);
}

/* The columns from c on will be stored soon: y is far away, and what is written to has to be read. */
static void prefetch_output(const part *p, size_t c, size_t n)
{
    size_t rows = n_rows_of(p);

    for (size_t end = c + n < p->a->n_cols ? c + n : p->a->n_cols; c < end; c++)
        for (size_t r = 0; r < rows; r += 64 / sizeof(float))
            __builtin_prefetch((const char *)(p->a->y + c * p->a->y_stride + p->r0 + r), 0, 2);
}

/* n_tiles tiles from t on, which are unpacked, by all columns. */
static void multiply_columns(part *p, size_t t, size_t n_tiles)
{
    const ebb_matmul *a = p->a;
    const ebb_gemm_kind *k = p->k;
    const uint8_t *x = (const uint8_t *)a->x + p->c0 * a->x_col_bytes + p->b0 * k->x_bytes;
    size_t n = p->n_cols / p->n_groups, n_more = p->n_cols % p->n_groups;
    bool is_done = is_last_panel(p) && t + n_tiles == p->n_tiles;

    for (size_t i = 0, from = 0, to; i < p->n_groups; i++, from = to) {
        to = from + n + (i < n_more);
        ebb_gemm_args g = { .tile = p->s->tile, .n_tiles = n_tiles, .n_blocks = p->n_blocks,
                            .x = x + from * a->x_col_bytes,
                            .x_col_bytes = a->x_col_bytes,
                            .to_next = i + 1 < p->n_groups ? (to - from) * a->x_col_bytes : 0,
                            .column = p->s->column, .acc = p->s->acc + from * p->rows + t * k->tile_rows };

        prefetch_weights(p);
        if (is_done)
            prefetch_output(p, p->c0 + to + n, to - from);
        k->prepare(k, &g, to - from, p->s->column)(&g);
        if (is_done)                             /* here, where the next group hides what a store waits for */
            store_sums(p, p->c0 + from, to - from, p->s->acc + from * p->rows);
    }
}

/* For several groups all tiles are unpacked first, so that each group is prepared once; for one group each when it is
 * its turn: then there is more between what is asked of memory. */
static void multiply_panel(part *p)
{
    const ebb_gemm_kind *k = p->k;
    size_t n = p->n_groups > 1 ? p->n_tiles : 1;         /* tiles unpacked at once */

    p->step = 0;
    p->n_steps = p->n_tiles + p->n_tiles / n * p->n_groups;
    for (size_t t = 0; t < p->n_tiles; t += n) {
        for (size_t i = 0; i < n; i++) {
            prefetch_weights(p);
            k->unpack(k, p->a, p->r0 + (t + i) * k->tile_rows, p->b0, p->n_blocks,
                      p->s->tile + i * p->n_blocks * k->tile_bytes);
        }
        multiply_columns(p, t, n);
    }
}

static void multiply_tiles(part *p)
{
    const ebb_gemm_kind *k = p->k;

    p->n_groups = (p->n_cols + k->cols - 1) / k->cols;
    p->n_tiles = (p->a->n_rows - p->r0 + k->tile_rows - 1) / k->tile_rows;
    p->n_tiles = p->n_tiles < GEMM_TILES ? p->n_tiles : GEMM_TILES;
    memset(p->s->acc, 0, p->n_cols * p->rows * sizeof(float));
    for (p->b0 = 0; p->b0 < p->n_all; p->b0 += k->panel) {
        p->n_blocks = p->n_all - p->b0 < k->panel ? p->n_all - p->b0 : k->panel;
        multiply_panel(p);
    }
}

void ebb_gemm_parts(const ebb_matmul *a, const ebb_gemm_kind *k, size_t parts)
{
    part p = { .a = a, .k = k, .type = ebb_type_get(a->type), .s = a->scratch, .rows = GEMM_TILES * k->tile_rows,
               .parts = parts };

    p.n_all = a->n_k / p.type->block_len * p.parts;
    for (p.r0 = 0; p.r0 < a->n_rows; p.r0 += p.rows)
        for (p.c0 = 0; p.c0 < a->n_cols; p.c0 += GEMM_MOST_COLS) {
            p.n_cols = a->n_cols - p.c0 < GEMM_MOST_COLS ? a->n_cols - p.c0 : GEMM_MOST_COLS;
            multiply_tiles(&p);
        }
}

void ebb_gemm(const ebb_matmul *a, const ebb_gemm_kind *k)
{
    ebb_gemm_parts(a, k, 1);
}
