/* kv/kv_sealed.h - the bytes of a cache file (kv_file.h) that is encrypted: a lead with a salt, the
 * head, the data, and the tags of the data's pieces.  A nonce is the salt and the number of a
 * piece: 0 is the head.  The tags take the checksum's place. */
#ifndef EBB_KV_SEALED_H
#define EBB_KV_SEALED_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/experimental/kv_cache.h"
#include "ebb/status.h"

#define EBB_KV_SALT_BYTES 16u

/* Bytes of a file with n_head bytes of head and n_data of data. */
uint64_t ebb_kv_sealed_bytes(size_t n_head, size_t n_data);

/* Write all of it from the file's beginning on.  Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_sealed_write(int fd, const char *path, const ebb_kv_seal *seal, const void *head,
                               size_t n_head, const void *data, size_t n_data, ebb_error *err);
/* Read the head, and the salt that the data wants.  Errors: IO, FORMAT (no such file, another key,
 * damaged). */
EBB_MUST_CHECK
ebb_status ebb_kv_sealed_read_head(int fd, const char *path, const ebb_kv_seal *seal, void *head,
                                   size_t n_head, uint8_t salt[EBB_KV_SALT_BYTES], ebb_error *err);
/* Read the data; on failure it is of no use.  Errors: IO, FORMAT (damaged), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_sealed_read_data(int fd, const char *path, const ebb_kv_seal *seal,
                                   const uint8_t salt[EBB_KV_SALT_BYTES], size_t n_head, void *data,
                                   size_t n_data, ebb_error *err);

#endif
