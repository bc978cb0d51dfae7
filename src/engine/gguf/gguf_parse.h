/* gguf/gguf_parse.h - the header of one file: for gguf.c and nobody else. */
#ifndef EBB_GGUF_PARSE_H
#define EBB_GGUF_PARSE_H
#include "gguf/gguf.h"

#define EBB_GGUF_MAX_FILE    ((uint64_t)1 << 48)   /* bytes of a part: all parts fit 64 bits */
#define EBB_GGUF_MAX_HEADER  ((uint64_t)1 << 26)   /* bytes of all parts; the largest have 10 MB */
#define EBB_GGUF_MAX_TENSORS ((uint64_t)1 << 17)   /* the largest known have 30,000 */
#define EBB_GGUF_MAX_KEYS    ((uint64_t)1 << 16)
#define EBB_GGUF_MAX_NAME    ((uint64_t)1024)      /* of a tensor; ggml itself has 64 */
#define EBB_GGUF_MAX_KEY     ((uint64_t)65535)     /* as the format says */

typedef struct ebb_gguf_header {
    uint32_t         version;
    ebb_gguf_kv     *kvs;
    size_t           n_kvs;
    ebb_gguf_tensor *tensors;    /* part is 0 */
    size_t           n_tensors;
    uint64_t         alignment;
    uint64_t         n_bytes;    /* of the header, before alignment */
    uint64_t         data_at;
} ebb_gguf_header;

/* Parse bytes[0..have), the beginning of a file of `size` bytes; `name` is for
 * messages.  Pointers in *h point into `bytes`; no text ends with NUL yet, and
 * nobody has looked for duplicates.
 * BUSY means that the header goes on: come back with at least *need bytes.
 * On any other failure err is filled.  On every failure *h is empty; else it needs fini. */
EBB_MUST_CHECK
ebb_status ebb_gguf_parse(const char *bytes, uint64_t have, uint64_t size, const char *name,
                          ebb_gguf_header *h, uint64_t *need, ebb_error *err);
/* The keys alone, as many as are whole in bytes[0..have); *n_tensors is how many the file promises.
 * Never BUSY. */
EBB_MUST_CHECK
ebb_status ebb_gguf_parse_keys(const char *bytes, uint64_t have, uint64_t size, const char *name,
                               ebb_gguf_header *h, uint64_t *n_tensors, ebb_error *err);
void ebb_gguf_header_fini(ebb_gguf_header *h);

/* End keys, scalar strings and names with a NUL.  The byte each of them
 * overwrites was a length or a type that has been read; `bytes`, those that were
 * parsed, must have room for one more behind the header. */
void ebb_gguf_terminate(const ebb_gguf_header *h, char *bytes);

#endif
