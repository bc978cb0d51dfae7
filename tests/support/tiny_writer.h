/* support/tiny_writer.h - a tiny model's file as it is written: tiny_*.c only.
 *
 * tiny_archs.c knows what is special about each architecture, tiny_keys.c writes the keys,
 * tiny_tensors.c lists the tensors, tiny_weights.c fills them, and tiny_model.c puts the file
 * together. */
#ifndef EBB_TINY_WRITER_H
#define EBB_TINY_WRITER_H
#include <stdint.h>

#include "base/buf.h"
#include "support/tiny_model.h"

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STR = 8, ARR = 9 };

#define ALIGN 32u
#define MAX_TENSORS 1024

typedef struct tiny_tensor {
    char     name[64];
    ebb_type type;
    uint32_t dims[3], n_dims;
    float    mean, dev;
    bool     is_unit;            /* of floats: ones in the diagonal */
} tiny_tensor;

typedef struct tiny_writer {
    ebb_buf  keys, infos, data;
    uint32_t n_keys, n_tensors;
    float    added;              /* times what layers add to x */
    tiny_tensor tensors[MAX_TENSORS];
    uint64_t random;
} tiny_writer;

/* -- tiny_archs.c: traits of an architecture -------------------- */

enum {
    QKV_BIAS = 1,
    QK_NORM = 2,
    QK_WHOLE = 4,
    POST_NORMS = 8,
    FUSED_QKV = 16,
    FUSED_FFN = 32,
    PLAIN_FFN = 64,
    LAYER_NORM = 128,
    NORM_BIAS = 256,
    BIAS = 512,
    SINKS = 1024,
    HYBRID = 2048,
    EXPERTS = 4096,
    SHARED = 8192,
    NO_PRE_NORMS = 1 << 14,
    PARALLEL = 1 << 15,
    POSITIONS = 1 << 16,
    WINDOW = 1 << 17,
    PARTIAL = 1 << 18,
    MULTIPLIERS = 1 << 19,
    LONGROPE = 1 << 20,
    YARN = 1 << 21,
    LINEAR = 1 << 22,
    SOFTCAPS = 1 << 23,
    OUTPUT_BIAS = 1 << 24,
    ONE_FOR_ALL = 1 << 25,
    CHOICE_BIAS = 1 << 26,
    LATENT = 1 << 27,
    POST_IS_FFN = 1 << 28,
    GROUPED = 1 << 29,
    GEMMA4 = 1 << 30,
};

enum { DIM_LATENT = 32, DIM_LATENT_Q = 64, DIM_NOPE = 32, DIM_TURNED = 16, DIM_HEAD_V = 32 };
enum { DELTA_K = 2, DELTA_V = 4, DELTA_DIM = 32, DELTA_CONV = 4 };

enum {
    MAMBA_INNER = 128,
    MAMBA_HEADS = 4,
    MAMBA_GROUPS = 2,
    MAMBA_STATE = 16,
    MAMBA_RANK = 32,
    MAMBA_CONV = 4,
    SHORT_CONV = 3
};

#define TRAIT(n) ((uint64_t)1 << (n))
#define HEAD_GATE   TRAIT(31)
#define BARE        TRAIT(32)    /* norms behind are named without ".weight" */
#define XIELU       TRAIT(33)
#define TEMPERATURE TRAIT(34)
#define IMAGES      TRAIT(35)    /* rope.dimension_sections */
#define SOFT_BIAS   TRAIT(36)    /* exp_probs_b without groups and scales */
#define FOUR        TRAIT(37)    /* layers of several kinds: four are needed to see them */
#define GEMMA3N     TRAIT(38)
#define UNTURNED    TRAIT(39)    /* rope.scaling.finetuned says that there is no RoPE */

enum { N_STREAMS = 4, LAUREL_RANK = 64, DIM_LAYER_INPUT = 256, GEMMA3N_SHARED = 5 };

/* Whether it has one of these traits; the test fails if there is no such architecture. */
bool tiny_has(const ebb_tiny_opts *o, uint64_t traits);
/* How many layers of Gemma use the K and V of others; whether i does; its KV heads. */
uint32_t tiny_gemma4_shared(const ebb_tiny_opts *o);
bool tiny_gemma4_is_shared(const ebb_tiny_opts *o, uint32_t i);
uint32_t tiny_gemma4_n_kv(const ebb_tiny_opts *o, uint32_t i);
uint32_t tiny_gemma3n_shared(const ebb_tiny_opts *o);
/* Of architectures with recurrent layers: their kinds in turn, NULL for all others; that of
 * layer i. */
const char *tiny_layers_of(const ebb_tiny_opts *o);
bool tiny_is_recurrent(const ebb_tiny_opts *o);
char tiny_kind_of(const ebb_tiny_opts *o, uint32_t i);
bool tiny_is_bare(const ebb_tiny_opts *o);
bool tiny_is_single(const ebb_tiny_opts *o);
bool tiny_has_heads(const ebb_tiny_opts *o, uint32_t i);
/* Elements of a head that RoPE turns. */
uint32_t tiny_n_rot(const ebb_tiny_opts *o);

/* -- tiny_keys.c -------------------- */

void tiny_add_u32(ebb_buf *b, uint32_t v);
void tiny_add_u64(ebb_buf *b, uint64_t v);
void tiny_add_string(ebb_buf *b, const char *s, size_t n);
/* All keys of the file, the vocabulary among them. */
void tiny_write_keys(tiny_writer *w, const ebb_tiny_opts *o);

/* -- tiny_tensors.c, tiny_weights.c -------------------- */

/* A tensor of one dimension (n_rows 0) or two, of weights of that mean and deviation. */
void tiny_add_tensor(tiny_writer *w, const char *name, ebb_type type, uint32_t n_k, uint32_t n_rows,
                     float mean, float dev);
void tiny_layer_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i);
/* Those outside the layers but for the embeddings. */
void tiny_end_tensors(tiny_writer *w, const ebb_tiny_opts *o);
void tiny_draft_head_tensors(tiny_writer *w, const ebb_tiny_opts *o);
/* Append the tensor's weights to w->data. */
void tiny_add_weights(tiny_writer *w, const tiny_tensor *t);

#endif
