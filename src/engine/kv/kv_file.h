/* kv/kv_file.h - one file of the KV cache on disk (docs/FORMATS.md).
 *
 * A file holds a block of K and V, the last, partly filled block of a sequence (a tail), or a
 * recurrent state.  Block hashes are a chain that begins with a hash of model, KV types and layout
 * (the shape):
 *
 *     hash(0) = shape,  hash(i + 1) = H(hash(i), ids of block i)
 *
 * so a hash covers all tokens up to a block's end, and sequences with a common prefix share its
 * files.  Nothing in a file is trusted: shape, ids and length are compared with the expected ones,
 * and a checksum under the folder's key (kv_key.h) covers all bytes. */
#ifndef EBB_KV_FILE_H
#define EBB_KV_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/model.h"
#include "ebb/status.h"
#include "kv/kv_key.h"

#define EBB_KV_HASH_BYTES 16u    /* bytes of a block hash */

/* The layers with a window have files of their own (EBB_KV_WINDOW in kv.h). */
typedef enum ebb_kv_file_kind {
    EBB_KV_FILE_BLOCK,
    EBB_KV_FILE_WINDOW,
    EBB_KV_FILE_TAIL,
    EBB_KV_FILE_WINDOW_TAIL,
    EBB_KV_FILE_STATE,
    EBB_KV_FILE_KINDS
} ebb_kv_file_kind;

/* A file and its content.  A block is identified by its own hash, a tail and a state by the parent
 * hash: of several with the same one the last that was written is kept. */
typedef struct ebb_kv_file {
    const struct ebb_kv_seal *seal;      /* with which it is encrypted (kv_sealed.h); NULL: not */
    ebb_kv_file_kind kind;
    uint8_t          hash[EBB_KV_HASH_BYTES];
    uint8_t          shape[EBB_KV_HASH_BYTES];
    uint32_t         pos;        /* of ids[0] */
    const ebb_token *ids;        /* [n_ids] tokens of the block or tail; of a state those from the
                                    beginning of its block to its position */
    uint32_t         n_ids;
    void            *data;
    size_t           n_data;
    const struct ebb_guard *guard;       /* of the mapping that has `data` (if the mapped file was
                                            truncated, nothing is written); NULL: memory */
} ebb_kv_file;

/* Size of the file. */
uint64_t ebb_kv_file_bytes(const ebb_kv_file *item);
/* path[cap] = <dir>/<hash in hex>.<kind> */
void ebb_kv_file_path(const char *dir, const ebb_kv_file *item, char *path, size_t cap);

/* Writes a temporary file and renames it.  `key` is of its checksum; what is sealed has its own.
 * Error: IO, also if item->guard caught a fault. */
EBB_MUST_CHECK
ebb_status ebb_kv_file_write(const char *dir, const ebb_kv_file *item,
                             const uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err);

/* Sets *n_ids to how many of item->ids the file has: of a block all or none, of a state all that it
 * covers (which may be fewer) or none, of a tail the common prefix.  Reads the head only.  false:
 * there is no such file, or it is of another sequence; *err says if it is damaged (else OK). */
bool ebb_kv_file_has(const char *dir, const ebb_kv_file *item, uint32_t *n_ids, ebb_error *err);
/* Whether `name` is the name of a cache file; *is_leftover: of an unfinished temporary one. */
bool ebb_kv_file_is_name(const char *name, bool *is_leftover);
/* The token ids of the file at `path`, of whatever model, encrypted with `seal` (NULL: not); false:
 * it is no such cache file. */
bool ebb_kv_file_read_ids(const char *path, const struct ebb_kv_seal *seal, ebb_token ids[],
                          uint32_t cap, uint32_t *n_ids);
/* Reads item->data and checks everything.  Errors: NOTFOUND, IO, FORMAT (damaged, written with
 * another key, or replaced since ebb_kv_file_has). */
EBB_MUST_CHECK
ebb_status ebb_kv_file_read(const char *dir, const ebb_kv_file *item,
                            const uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err);

#endif
