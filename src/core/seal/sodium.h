/* seal/sodium.h - libsodium, loaded when something is sealed or opened: whoever encrypts nothing
 * pays nothing for it at the start, and needs no such library. */
#ifndef EBB_SEAL_SODIUM_H
#define EBB_SEAL_SODIUM_H
#include <sodium.h>

#include "ebb/status.h"

/* The functions in use, by libsodium's own declarations and names. */
#define EBB_SODIUM_MAP(X)                                                                   \
    X(sodium_init) X(sodium_malloc) X(sodium_free) X(sodium_mprotect_readonly)              \
    X(sodium_bin2base64) X(sodium_base642bin) X(randombytes_buf)                            \
    X(crypto_kdf_derive_from_key) X(crypto_generichash) X(crypto_pwhash_argon2id)           \
    X(crypto_aead_xchacha20poly1305_ietf_encrypt_detached)                                  \
    X(crypto_aead_xchacha20poly1305_ietf_decrypt_detached)

typedef struct ebb_sodium {
#define X(name) __typeof__(name) *name;
    EBB_SODIUM_MAP(X)
#undef X
} ebb_sodium;

/* Loaded once for the process.  Error: UNSUPPORTED, naming the package. */
EBB_MUST_CHECK
ebb_status ebb_sodium_load(const ebb_sodium **out, ebb_error *err);

#endif
