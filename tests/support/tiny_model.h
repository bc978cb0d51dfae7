/* support/tiny_model.h - a small model written by the test itself: random
 * weights, the same bytes on every machine, in any type that has kernels.
 *
 * Its vocabulary is byte-level BPE: the 256 bytes, four merges ("th" "the" "in"
 * " t"), <|endoftext|> (BOS, EOS), <|im_start|>, <|im_end|>; its template is ChatML.
 * The text that it writes is noise. */
#ifndef EBB_TINY_MODEL_H
#define EBB_TINY_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/experimental/type.h"
#include "ebb/model.h"

/* Zero is the default: llama, F32, 2 layers, width 256, 4 heads on 2 of 64, feed-forward 256,
 * context 1024. */
typedef struct ebb_tiny_opts {
    const char *arch;            /* any of ebb_tiny_archs */
    ebb_type    type;            /* of all matrices; token_embd and output too */
    uint32_t    n_layers, n_embd, n_head, n_head_kv, head_dim, n_ff, n_ctx;
    uint32_t    n_expert;        /* of llama and the architectures with experts; those have 6 by
                                    default, 2 used */
    bool        is_split;        /* as old files have them: experts a tensor each, deepseek2's keys
                                    and values one */
    bool        is_joined;       /* gate and up of an expert one behind the other: in one tensor, or
                                    by turns where is_split */
    bool        is_mixed;        /* where is_split, every other expert is F16 */
    bool        is_tied;
    bool        has_draft_head;  /* of qwen35 and those beside it, GLM and deepseek2: a layer more,
                                    for multi-token prediction.  Layers add little to x then, and
                                    the head copies the token (types of floats): it is often
                                    right */
    uint32_t    n_suppressed;    /* the first ids are never to be chosen */
    uint64_t    seed;
} ebb_tiny_opts;

#define EBB_TINY_VOCAB  263u
#define EBB_TINY_WINDOW 16u      /* of architectures with local layers */

extern const char *const ebb_tiny_archs[];       /* ends with NULL */

/* The file's bytes, for free(); NULL: out of memory. */
char *ebb_tiny_bytes(const ebb_tiny_opts *o, size_t *n_bytes);
/* The same opened from memory; the test fails if that does. */
ebb_model *ebb_tiny_open(const ebb_tiny_opts *o, char **bytes);
/* The same as a file; false if it cannot be written. */
bool ebb_tiny_write(const ebb_tiny_opts *o, const char *path);

/* A key of the architecture in such a file. */
typedef struct ebb_tiny_key {
    char     name[128];          /* from the point on: ".block_count" */
    uint32_t type;               /* GGUF's; of an array, that of its items */
    char    *value;              /* in the file's bytes; of an array its first item, of a string its
                                    first letter */
} ebb_tiny_key;

/* The next key (value NULL: the first), in the order of the file; false: there is none. */
bool ebb_tiny_next_key(char *bytes, size_t n, const char *arch, ebb_tiny_key *k);

#endif
