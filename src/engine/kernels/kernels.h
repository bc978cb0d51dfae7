/* kernels/kernels.h - the inner loops, chosen once at run time.
 *
 * scalar.c is the specification: obvious, always built.  The tables are a ladder, scalar -> avx2 ->
 * avxvnni -> avx512 -> amx and scalar -> neon: each begins as a copy of the rung below that the CPU
 * has, and an ISA file (x86/, arm/) overrides entries.  So a new type is a decoder and a scalar
 * row, and runs everywhere.  Rules for every entry:
 *
 *  K1  The bits of an output element depend on its own row and column only:
 *      not on how many rows or columns the call has, nor on alignment.  So the
 *      logits of a position are the same for every n, chunk and thread count.
 *  K2  Quantized types: the integer sums of a block are exact; then one
 *      fmaf per scale, blocks in order:
 *        blocks of 32:   acc = fmaf(d_w * d_x, (float)isum, acc)   (and one more for a minimum)
 *        (of larger blocks with one scale, for each 32; of NVFP4 for each 16, with its own)
 *        blocks of 256:  acc = fmaf(d_w * d_x, (float)isum, acc)
 *          with minima:  acc = fmaf(d_x, fmaf(-dmin_w, (float)msum, d_w * (float)isum), acc)
 *      so every ISA gives the same bits as scalar.c.
 *  K3  Float types: 16 partial sums, element k goes to sum k % 16 by fmaf in
 *      order of k (a short tail is padded with zeroes), then the sums are
 *      added pairwise: i and i+8, i and i+4, i and i+2, i and i+1.
 *  K4  Weights are read in the file's own layout and never copied whole;
 *      a tile may be unpacked into the calling thread's scratch.
 *
 * Notation: W [n_rows, n_k] (n_k runs fastest), x [n_cols, n_k], y [n_cols, n_rows]:
 * y = x W^T. */
#ifndef EBB_KERNELS_H
#define EBB_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "ebb/experimental/type.h"

/* How a weight type wants its activations. */
typedef enum ebb_act {
    EBB_ACT_F32,                 /* for F32 F16 BF16 weights */
    EBB_ACT_Q8_32,               /* int8 with a scale per 32: for blocks of 32, 64 and 128 */
    EBB_ACT_Q8_256,              /* int8 with a scale per 256 and 16 sums of 16: for blocks of
                                    256 */
    EBB_ACT_COUNT
} ebb_act;

/* scale = max |x| / 127; q = x (1 / scale) rounded to nearest even (x / scale where 1 / scale is no
 * number). */
typedef struct ebb_q8_32 {
    float   d;
    int32_t sum;                 /* of q */
    int8_t  q[32];
} ebb_q8_32;                     /* 40 bytes */

typedef struct ebb_q8_256 {
    float    d;
    uint16_t peak;               /* the largest sum of |q| over 16 elements */
    uint16_t side;               /* the largest over 32 elements of the positive q or of the
                                    negative ones: how wide a sum of products can get */
    int16_t  sum[16];            /* of each 16 of q */
    int16_t  sum32[8];           /* of each 32 */
    int16_t  unused[4];          /* q begins a cache line if a column does */
    int8_t   q[256];
} ebb_q8_256;                    /* 320 bytes */

#define EBB_KERNEL_SCRATCH ((size_t)1 << 20)     /* bytes per thread, 64-byte aligned, given by the
                                                    caller */

/* The types that have kernels; others are refused when a model is bound. */
bool    ebb_kernel_has_type(ebb_type type);
ebb_act ebb_kernel_act(ebb_type type);
/* Bytes of n elements, whole blocks of them. */
size_t  ebb_act_bytes(ebb_act act, size_t n);
/* Bytes of one activation column of n_k elements, a multiple of 64, none of 4096. */
size_t  ebb_act_col_bytes(ebb_act act, size_t n_k);

typedef struct ebb_matmul {
    ebb_type    type;            /* of W */
    const void *w;               /* first row of this slice */
    size_t      row_bytes;
    size_t      n_rows, n_k;
    const void *x;               /* activations of kind ebb_kernel_act(type) */
    size_t      x_col_bytes;     /* distance of columns */
    size_t      n_cols;
    float      *y;               /* y[c * y_stride + r] */
    size_t      y_stride;        /* floats */
    void       *scratch;         /* EBB_KERNEL_SCRATCH bytes of this thread */
    const void *next;            /* what this thread will probably multiply next, for it to be
                                    fetched; or NULL */
} ebb_matmul;

/* Attention of the query heads that share one KV head, for n_cols columns at
 * consecutive positions, over one segment of the key positions.
 *
 * Keys stand in blocks of EBB_KV_BLOCK absolute positions; a segment is
 * EBB_KV_SEGMENT blocks.  Column c is at position pos0 + c and sees the
 * positions [max(0, pos - window + 1), pos] (window 0: no limit) that lie in the
 * segment.  Softmax is online over blocks in order (Milakov & Gimelshein 2018;
 * FlashAttention-2, Dao 2023, algorithm 1); segments are merged in order by
 * `attend_merge`, so the split over threads never changes a bit. */
#define EBB_KV_BLOCK   32u       /* positions */
#define EBB_KV_SEGMENT 16u       /* blocks */

typedef struct ebb_attend {
    ebb_kv_type k_type, v_type;
    const void *const *k, *const *v;  /* per block of the segment: rows of this KV head,
                                         position-major, head_dim each */
    const void *next_k, *next_v; /* the first block that this thread will probably attend to next,
                                    to be fetched; or NULL */
    uint32_t    seg_pos;         /* first position of the segment */
    uint32_t    pos0, n_cols;
    uint32_t    window;
    uint32_t    n_group;         /* query heads of this KV head */
    uint32_t    dim_k, dim_v;    /* elements of a row */
    const float *q;              /* q[c * q_stride + g * dim_k + i] */
    size_t      q_stride;        /* floats between columns */
    float       scale;           /* of q . k */
    float       softcap;         /* 0: none; else cap * tanh(s / cap) */
    float      *acc;             /* acc[(c * n_group + g) * (dim_v + 2)]: m, l, then dim_v sums */
    void       *scratch;
} ebb_attend;

/* The products with weights of one type: two slots that give the same bits. */
typedef struct ebb_matmul_slots {
    void (*gemm)(const ebb_matmul *a);           /* any number of columns */
    void (*gemv)(const ebb_matmul *a);           /* few, straight from the file's blocks; NULL: gemm
                                                    takes them, too */
    size_t gemv_most_cols, gemv_most_k;          /* of what gemv takes; 0: any n_k */
} ebb_matmul_slots;

typedef struct ebb_kernels {
    const char *name;            /* "scalar", "avx2", "avxvnni", "avx512", "amx", "neon" */

    /* x[n_k] to one column of the kind (EBB_ACT_F32 copies). */
    void (*quantize[EBB_ACT_COUNT])(const float *x, size_t n_k, void *out);
    ebb_matmul_slots matmul[EBB_TYPE_LIMIT];     /* by ebb_kernels_matmul */
    /* Unpack a row of n_k elements to float: token_embd, tests. */
    void (*dequantize[EBB_TYPE_LIMIT])(const void *row, size_t n_k, float *out);

    /* y = x / sqrt(mean(x^2) + eps) * w; w NULL: 1.  (Zhang & Sennrich 2019.)  y may be x.  The sum
     * as K3. */
    void (*rmsnorm)(float *y, const float *x, const float *w, size_t n, float eps);
    /* y = (x - mean) / sqrt(var + eps) * w + b; w, b may be NULL. */
    void (*layernorm)(float *y, const float *x, const float *w, const float *b, size_t n,
                      float eps);
    void (*add)(float *y, const float *x, size_t n);                       /* y += x */
    void (*scale)(float *y, float s, size_t n);                            /* y *= s */
    /* y = silu(gate) * up */
    void (*silu_mul)(float *y, const float *gate, const float *up, size_t n);
    void (*gelu_mul)(float *y, const float *gate, const float *up, size_t n);   /* tanh form */
    float (*dot)(const float *a, const float *b, size_t n);                /* as K3 */
    void (*axpy)(float *y, float a, const float *x, size_t n);             /* y = fmaf(a, x, y) */
    void (*softmax)(float *x, size_t n);                                   /* in place; sum as K3 */
    /* Rotate pairs by (cos, sin)[i], i in [0, n_rot / 2): adjacent (x[2i], x[2i+1]) or
     * half apart (x[i], x[i + n_rot / 2]).  (RoFormer, Su et al. 2021, eq. 34.) */
    void (*rope_adjacent)(float *x, const float *cos_sin, size_t n_rot);
    void (*rope_halves)(float *x, const float *cos_sin, size_t n_rot);

    /* One row of a KV head to the type of the cache, and back. */
    void (*kv_store[EBB_KV_AUTO])(void *out, const float *x, size_t dim);
    void (*kv_load)(ebb_kv_type type, const void *row, size_t dim, float *out);
    void (*attend)(const ebb_attend *a);
    /* Merge n_seg partial results (each m, l, dim_v sums, `stride` floats apart) and, if sink is
     * not NULL, an extra logit; out[dim_v] = sum / l. */
    void (*attend_merge)(float *out, const float *parts, size_t n_seg, size_t stride, size_t dim_v,
                         const float *sink);
} ebb_kernels;

/* By ebb_isa, "auto" first; NULL behind the last. */
extern const char *const ebb_isa_names[EBB_ISA_NEON + 2];

/* The product that *a describes, by the slot that suits its columns. */
static inline void ebb_kernels_matmul(const ebb_kernels *k, const ebb_matmul *a)
{
    const ebb_matmul_slots *s = &k->matmul[a->type];

    if (s->gemv && a->n_cols <= s->gemv_most_cols &&
        (s->gemv_most_k == 0 || a->n_k <= s->gemv_most_k))
        s->gemv(a);
    else
        s->gemm(a);
}

/* Bytes of one KV row of `dim` elements. */
size_t ebb_kv_row_bytes(ebb_kv_type type, size_t dim);

/* The table for `cpu`; EBB_ISA_AUTO: the best this machine has.  UNSUPPORTED
 * (named) if the machine or the build lacks it.  The table is static. */
EBB_MUST_CHECK
ebb_status ebb_kernels_get(ebb_isa cpu, const ebb_kernels **out, ebb_error *err);

#endif
