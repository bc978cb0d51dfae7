/* seal/key_file.h - the file that holds the data key, wrapped: sealed with a key that comes from a
 * passphrase (Argon2id) or from a file of the user's.  Changing the passphrase writes this file
 * anew and nothing else.  The format is in docs/FORMATS.md. */
#ifndef EBB_SEAL_KEY_FILE_H
#define EBB_SEAL_KEY_FILE_H
#include "seal/seal.h"

#define EBB_KEY_FILE_BYTES 120u

typedef enum ebb_key_kind {
    EBB_KEY_OF_PASSPHRASE = 1,   /* Argon2id, 256 MiB, three rounds: about a second */
    EBB_KEY_OF_FILE,             /* BLAKE2b of its bytes: no time */
} ebb_key_kind;

/* What kind the file at `path` is of.  Errors: NOTFOUND, FORMAT (it is none, or damaged),
 * UNSUPPORTED (of a newer ebb), IO. */
EBB_MUST_CHECK
ebb_status ebb_key_file_kind(const char *path, ebb_key_kind *out, ebb_error *err);

/* Draw a data key. */
EBB_MUST_CHECK
ebb_status ebb_key_draw(uint8_t data_key[EBB_SEAL_KEY], ebb_error *err);
/* Wrap the data key with secret[0..n) and write the file, whole or not at all; one that is there is
 * replaced.  Errors: UNSUPPORTED, NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_key_file_write(const char *path, ebb_key_kind kind, const void *secret, size_t n,
                              const uint8_t data_key[EBB_SEAL_KEY], ebb_error *err);
/* Unwrap it.  Errors: as of the kind, NOMEM, and IO where the secret is another one. */
EBB_MUST_CHECK
ebb_status ebb_key_file_read(const char *path, const void *secret, size_t n,
                             uint8_t data_key[EBB_SEAL_KEY], ebb_error *err);

#endif
