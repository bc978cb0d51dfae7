/* ebb/experimental/type.h - the element types of GGUF tensors: names, ids and sizes.
 *
 * The ids are those of the file format.  A row of `n` elements takes
 * n / block_len * block_bytes bytes; n is always a multiple of block_len. */
#ifndef EBB_EXPERIMENTAL_TYPE_H
#define EBB_EXPERIMENTAL_TYPE_H
#include <stdbool.h>
#include <stdint.h>

/*     name     id  elements  bytes of a block */
#define EBB_TYPE_MAP(X)        \
    X(F32,      0,   1,   4)   \
    X(F16,      1,   1,   2)   \
    X(Q4_0,     2,  32,  18)   \
    X(Q4_1,     3,  32,  20)   \
    X(Q5_0,     6,  32,  22)   \
    X(Q5_1,     7,  32,  24)   \
    X(Q8_0,     8,  32,  34)   \
    X(Q2_K,    10, 256,  84)   \
    X(Q3_K,    11, 256, 110)   \
    X(Q4_K,    12, 256, 144)   \
    X(Q5_K,    13, 256, 176)   \
    X(Q6_K,    14, 256, 210)   \
    X(IQ2_XXS, 16, 256,  66)   \
    X(IQ2_XS,  17, 256,  74)   \
    X(IQ3_XXS, 18, 256,  98)   \
    X(IQ1_S,   19, 256,  50)   \
    X(IQ4_NL,  20,  32,  18)   \
    X(IQ3_S,   21, 256, 110)   \
    X(IQ2_S,   22, 256,  82)   \
    X(IQ4_XS,  23, 256, 136)   \
    X(I8,      24,   1,   1)   \
    X(I16,     25,   1,   2)   \
    X(I32,     26,   1,   4)   \
    X(I64,     27,   1,   8)   \
    X(F64,     28,   1,   8)   \
    X(IQ1_M,   29, 256,  56)   \
    X(BF16,    30,   1,   2)   \
    X(TQ1_0,   34, 256,  54)   \
    X(TQ2_0,   35, 256,  66)   \
    X(MXFP4,   39,  32,  17)   \
    X(NVFP4,   40,  64,  36)   \
    X(Q1_0,    41, 128,  18)   \
    X(Q2_0,    42,  64,  18)

typedef enum ebb_type {
#define X(name, id, len, bytes) EBB_TYPE_##name = id,
    EBB_TYPE_MAP(X)
#undef X
    EBB_TYPE_LIMIT = 43          /* one more than the largest id */
} ebb_type;

typedef struct ebb_type_info {
    const char *name;            /* "Q4_K"; NULL for an id that is no known type */
    uint32_t    block_len;       /* elements of a block */
    uint32_t    block_bytes;
} ebb_type_info;

/* Name and sizes of a type.  An unknown id gives an entry whose name is NULL. */
const ebb_type_info *ebb_type_get(uint32_t id);

/* The type of that name ("Q4_K", any case); false if there is none. */
bool ebb_type_parse(const char *name, ebb_type *out);

/* Bytes of a row of n elements; 0 if n is no multiple of the block length. */
uint64_t ebb_type_row_bytes(ebb_type type, uint64_t n);

#endif
