/* gguf/gguf.h - a GGUF file as bytes: typed metadata and the tensor index.
 *
 * Reads versions 2 and 3, whole or split ("-00001-of-00003.gguf") or as a member of a llamafile
 * (gguf_zip.h), any power-of-two alignment.  Only headers are read, into one allocation for
 * each part; keys, string values and tensor names point into it.  No weight is
 * touched and nothing is computed.  docs/FORMATS.md draws the format.
 *
 * What open has checked, so that nobody needs to check it again:
 *  G1  keys and tensor names are unique, not empty, without NUL; scalar strings hold no NUL;
 *  G2  no dimension is 0 and the product of all fits 63 bits;
 *  G3  a tensor of a known type lies inside its file, rows are whole blocks;
 *      one of an unknown type begins inside its file and has n_bytes == 0;
 *  G4  offsets are multiples of the alignment from where the GGUF begins, in a llamafile anywhere;
 *      the alignment may be as small as 1: who maps a tensor and needs it aligned for a kernel has
 *      to look;
 *  G5  the tensors of a file have no more bytes together than the file, and a file at most 2^48.
 * Memory: never more than the size of the files + 64 MiB.
 *
 * Threads: immutable after open, free to share. */
#ifndef EBB_GGUF_H
#define EBB_GGUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/experimental/inspect.h"
#include "ebb/model.h"
#include "ebb/status.h"

/* Types of metadata values; the ids are those of the format. */
typedef enum ebb_gguf_type {
    EBB_GGUF_U8, EBB_GGUF_I8, EBB_GGUF_U16, EBB_GGUF_I16, EBB_GGUF_U32, EBB_GGUF_I32,
    EBB_GGUF_F32, EBB_GGUF_BOOL, EBB_GGUF_STRING, EBB_GGUF_ARRAY,
    EBB_GGUF_U64, EBB_GGUF_I64, EBB_GGUF_F64, EBB_GGUF_TYPE_COUNT
} ebb_gguf_type;
const char *ebb_gguf_type_name(ebb_gguf_type type);          /* "u32", "string" ... */

typedef struct ebb_gguf_kv {
    const char   *key;
    uint32_t      key_bytes;
    ebb_gguf_type type;
    ebb_gguf_type item_type;     /* of an array's items; of a scalar: its own type */
    uint64_t      n;             /* items; 1 for a scalar */
    uint64_t      n_bytes;       /* of data; for a string without its final NUL */
    const char   *data;          /* little-endian, unaligned; a scalar string ends with NUL */
} ebb_gguf_kv;

typedef struct ebb_gguf_tensor {
    const char *name;
    uint32_t    name_bytes;
    uint32_t    type;            /* id of the file: an ebb_type, or a type that is not known */
    uint32_t    n_dims;          /* 1..4 */
    uint64_t    dims[4];         /* dims[0] runs fastest; 1 beyond n_dims */
    uint64_t    n_elems;
    uint64_t    n_bytes;         /* 0 if the type is unknown */
    uint32_t    part;
    uint64_t    offset;          /* bytes from the start of the part's file */
} ebb_gguf_tensor;

typedef struct ebb_gguf_part {
    char       *path;            /* the name given, if from memory */
    const char *member;          /* of the file, if it was named: "x.gguf" of "FILE@x.gguf" */
    int         fd;              /* open for reading; -1 if from memory */
    const char *memory;          /* the whole file if from memory, else NULL */
    uint64_t    begin;           /* where in the file the GGUF begins: 0, but in a llamafile */
    uint64_t    gguf_bytes;      /* how long it is: n_bytes, but in a llamafile */
    uint64_t    n_bytes;         /* of the file; of one that is still being written, what it will
                                    have */
    uint64_t    n_present;       /* of them that are there already */
    uint64_t    data_at;         /* where in the file tensor data begins */
    char       *header;          /* owned copy of the bytes before data_at */
} ebb_gguf_part;

typedef struct ebb_gguf ebb_gguf;

/* Open the file at `path`; for a split model, any part opens all; "FILE@NAME.gguf" is a member of a
 * llamafile.  The caller owns *out, NULL on failure.  Errors: NOTFOUND (file or part, named), IO,
 * FORMAT (damaged, truncated: says where), UNSUPPORTED (version, big-endian,
 * no GGUF at all), LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_gguf_open(const char *path, ebb_gguf **out, ebb_error *err);
/* The same from bytes that outlive the handle; `name` is for messages. */
EBB_MUST_CHECK
ebb_status ebb_gguf_open_memory(const void *data, size_t n_bytes, const char *name,
                                ebb_gguf **out, ebb_error *err);
/* The same from the beginnings of all n files of a model, as ebb_model_open_partial has it. */
EBB_MUST_CHECK
ebb_status ebb_gguf_open_partial(const ebb_partial_file *files, size_t n, size_t *i_busy,
                                 ebb_gguf **out, ebb_error *err);
void ebb_gguf_close(ebb_gguf *g);                /* NULL is fine */

/* The files of a model, in their order; they live as long as the handle. */
uint32_t ebb_gguf_n_parts(const ebb_gguf *g);
const ebb_gguf_part *ebb_gguf_get_part(const ebb_gguf *g, uint32_t i);
size_t ebb_gguf_header_bytes(const ebb_gguf *g); /* memory the handle holds */
/* Hash (base/hash.h) of the headers of all parts, chained in order. */
const uint8_t *ebb_gguf_digest(const ebb_gguf *g);

/* -- Metadata (of a split model: the first part's), in the order of the file.
 * A key that begins with '.' is one of the architecture: ".block_count" is
 * "llama.block_count" where general.architecture is "llama"; there are none where that is longer
 * than 64 bytes. */
size_t ebb_gguf_n_keys(const ebb_gguf *g);
const ebb_gguf_kv *ebb_gguf_get_key(const ebb_gguf *g, size_t i);
const ebb_gguf_kv *ebb_gguf_find(const ebb_gguf *g, const char *key); /* NULL if absent; O(log n) */

/* The value, whatever type the writer chose.  false if the key is absent, is no
 * number or bool, or does not fit *out without loss (a negative or a fraction
 * as u64); *out is then untouched, so it can hold the default before. */
bool ebb_gguf_get_u64(const ebb_gguf *g, const char *key, uint64_t *out);
bool ebb_gguf_get_i64(const ebb_gguf *g, const char *key, int64_t *out);
bool ebb_gguf_get_f64(const ebb_gguf *g, const char *key, double *out);
bool ebb_gguf_get_bool(const ebb_gguf *g, const char *key, bool *out);
/* For keys that are a number, or an array with one for each layer: item i. */
bool ebb_gguf_get_u64_at(const ebb_gguf *g, const char *key, uint64_t i, uint64_t *out);
/* A scalar string, NULL if absent or of another type. */
const char *ebb_gguf_get_string(const ebb_gguf *g, const char *key);

/* Item i of a number or an array of numbers, under the rules above. */
bool ebb_gguf_item_u64(const ebb_gguf_kv *kv, uint64_t i, uint64_t *out);
bool ebb_gguf_item_i64(const ebb_gguf_kv *kv, uint64_t i, int64_t *out);
bool ebb_gguf_item_f64(const ebb_gguf_kv *kv, uint64_t i, double *out);

/* Walk the strings of a string or an array of strings, copying nothing:
 *     ebb_gguf_strings s = ebb_gguf_strings_of(kv);
 *     while (ebb_gguf_strings_next(&s, &text, &n_bytes)) ...
 * Yields nothing for other values and for NULL.  The texts do not end with NUL. */
typedef struct ebb_gguf_strings {
    const char *at;
    uint64_t    left;
    uint64_t    n_scalar;        /* bytes, if it is one string and no array */
    bool        is_scalar;
} ebb_gguf_strings;
ebb_gguf_strings ebb_gguf_strings_of(const ebb_gguf_kv *kv);
bool ebb_gguf_strings_next(ebb_gguf_strings *s, const char **text, size_t *n_bytes);

/* -- Tensors, in the order of the parts and their files */
size_t ebb_gguf_n_tensors(const ebb_gguf *g);
const ebb_gguf_tensor *ebb_gguf_get_tensor(const ebb_gguf *g, size_t i);
const ebb_gguf_tensor *ebb_gguf_find_tensor(const ebb_gguf *g,
                                            const char *name); /* NULL if absent; O(log n) */

/* OK if the tensor's type is one that ebb knows; else UNSUPPORTED with
 * "tensor blk.3.ffn_up.weight: type 133 is not supported" or, for types that
 * were taken out of the format, what to download instead.  For whoever needs
 * the tensor: one that nobody needs may have any type. */
EBB_MUST_CHECK
ebb_status ebb_gguf_check_type(const ebb_gguf_tensor *t, ebb_error *err);

#endif
