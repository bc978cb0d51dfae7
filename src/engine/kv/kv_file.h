/* kv/kv_file.h - one file of the KV cache on disk (docs/FORMATS.md).
 *
 * A file holds a block of K and V, the last partly filled block of a sequence
 * (a tail), or the state of recurrent layers.  The tokens before it are named by
 * a chain of hashes whose beginning names model, KV types and layout:
 *
 *     hash(0) = shape,  hash(i + 1) = H(hash(i), ids of block i)
 *
 * so a hash stands for all tokens up to a block's end, and who shares a beginning
 * shares its files.  Nothing in a file is trusted: shape, ids and length are
 * compared with what is expected, and a checksum covers all of it. */
#ifndef EBB_KV_FILE_H
#define EBB_KV_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/model.h"
#include "ebb/status.h"

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

/* A file and what stands in it.  A block goes by its own hash, tail and state by
 * the hash of the block before them: the last one written is kept. */
typedef struct ebb_kv_file {
    ebb_kv_file_kind kind;
    uint8_t          hash[EBB_KV_HASH_BYTES];
    uint8_t          shape[EBB_KV_HASH_BYTES];
    uint32_t         pos;        /* of ids[0] */
    const ebb_token *ids;        /* of a block, a tail; of a state those behind its block's
                                    beginning */
    uint32_t         n_ids;
    void            *data;
    size_t           n_data;
    const struct ebb_guard *guard;       /* of the mapping that data lies in: what it lost is not
                                            kept; NULL: memory */
} ebb_kv_file;

/* Bytes of the file. */
uint64_t ebb_kv_file_bytes(const ebb_kv_file *item);
/* path[cap] = <dir>/<hash in hex>.<kind> */
void ebb_kv_file_path(const char *dir, const ebb_kv_file *item, char *path, size_t cap);
/* Whether that is a kind. */
bool ebb_kv_file_is_suffix(const char *suffix);

/* Write beside and rename.  Error: IO, also where item->guard was hit. */
EBB_MUST_CHECK
ebb_status ebb_kv_file_write(const char *dir, const ebb_kv_file *item, ebb_error *err);

/* How many of item->ids the file has: of a block and a state all n_ids or none (a state
 * may have fewer: *n_ids is set to what it has, if all of those are the same), of a tail the
 * common beginning.  Reads the head only.  false: there is no such file, or it is not
 * ours; *err says what is wrong with it (code OK: nothing). */
bool ebb_kv_file_has(const char *dir, const ebb_kv_file *item, uint32_t *n_ids, ebb_error *err);
/* Whether a name is that of a file of this cache; *is_leftover: one begun and never finished. */
bool ebb_kv_file_is_name(const char *name, bool *is_leftover);
/* The token ids that the file at `path` has, of whatever model; false: it is none of ours. */
bool ebb_kv_file_read_ids(const char *path, ebb_token ids[], uint32_t cap, uint32_t *n_ids);
/* Read data and check all.  Errors: NOTFOUND, IO, FORMAT (damaged, or not what `has` saw). */
EBB_MUST_CHECK
ebb_status ebb_kv_file_read(const char *dir, const ebb_kv_file *item, ebb_error *err);

#endif
