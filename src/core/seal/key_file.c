/* The wrapped data key (seal/key_file.h). */
#include "seal/key_file.h"

#include <stddef.h>
#include <string.h>

#include "os/file.h"
#include "seal/sodium.h"

#define VERSION 1u
#define N_OPS   crypto_pwhash_argon2id_OPSLIMIT_MODERATE     /* of every file of version 1: a foreign hand ... */
#define N_MEM   crypto_pwhash_argon2id_MEMLIMIT_MODERATE     /* ... cannot ask for more */

/* As it stands in the file, little-endian. */
typedef struct key_file {
    char     magic[8];
    uint32_t version, kind;
    uint64_t n_ops, n_mem;                       /* Argon2id's rounds and bytes; 0: of a file */
    uint8_t  salt[crypto_pwhash_argon2id_SALTBYTES];
    uint8_t  nonce[EBB_SEAL_NONCE];              /* what is above is sealed with the key */
    uint8_t  wrapped[EBB_SEAL_KEY];
    uint8_t  tag[EBB_SEAL_TAG];
} key_file;

_Static_assert(sizeof(key_file) == EBB_KEY_FILE_BYTES, "a key file has no padding");

static const char key_magic[8] = "EBB-KEY\n";

/* The costs of its kind. */
static bool has_costs(const key_file *k)
{
    return k->kind == EBB_KEY_OF_FILE ? k->n_ops == 0 && k->n_mem == 0
                                      : k->kind == EBB_KEY_OF_PASSPHRASE && k->n_ops == N_OPS && k->n_mem == N_MEM;
}

static ebb_status load_key_file(const char *path, key_file *k, ebb_error *err)
{
    int fd;
    uint64_t n_bytes;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &fd, err);

    if (st != EBB_OK)
        return st;
    st = ebb_file_size(fd, path, &n_bytes, err);
    if (st == EBB_OK && n_bytes == 0)            /* as the kernel's own, of which some wait for more */
        st = EBB_FAIL(err, EBB_FORMAT, "%s: is empty; put it back from a copy", path);
    if (st == EBB_OK && n_bytes != sizeof *k)
        st = EBB_FAIL(err, EBB_FORMAT, "%s: is damaged: it has %llu bytes, not %u; put it back from a copy", path,
                      (unsigned long long)n_bytes, EBB_KEY_FILE_BYTES);
    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, k, sizeof *k, 0, err);
    ebb_file_close(fd);
    if (st != EBB_OK)
        return st;
    if (memcmp(k->magic, key_magic, sizeof key_magic) != 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: is not one of ebb's keys; put it back from a copy", path);
    if (k->version != VERSION)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s: has version %u; this ebb reads %u", path, k->version, VERSION);
    return has_costs(k) ? EBB_OK : EBB_FAIL(err, EBB_FORMAT, "%s: is damaged; put it back from a copy", path);
}

ebb_status ebb_key_file_kind(const char *path, ebb_key_kind *out, ebb_error *err)
{
    key_file k;
    ebb_status st = load_key_file(path, &k, err);

    if (st == EBB_OK)
        *out = (ebb_key_kind)k.kind;
    return st;
}

ebb_status ebb_key_draw(uint8_t data_key[EBB_SEAL_KEY], ebb_error *err)
{
    const ebb_sodium *sodium;
    ebb_status st = ebb_sodium_load(&sodium, err);

    if (st == EBB_OK)
        sodium->randombytes_buf(data_key, EBB_SEAL_KEY);
    return st;
}

/* The key that wraps the data key. */
static ebb_status derive_wrapping_key(const ebb_sodium *sodium, const key_file *k, const void *secret, size_t n,
                                      uint8_t out[EBB_SEAL_KEY], ebb_error *err)
{
    int failed = k->kind == EBB_KEY_OF_FILE
                     ? sodium->crypto_generichash(out, EBB_SEAL_KEY, secret, n, k->salt, sizeof k->salt)
                     : sodium->crypto_pwhash_argon2id(out, EBB_SEAL_KEY, secret, n, k->salt, k->n_ops,
                                                      (size_t)k->n_mem, crypto_pwhash_argon2id_ALG_ARGON2ID13);

    return failed ? EBB_FAIL(err, EBB_NOMEM, "no memory to derive a key from a passphrase: it takes %llu MiB",
                             (unsigned long long)(k->n_mem >> 20))
                  : EBB_OK;
}

ebb_status ebb_key_file_write(const char *path, ebb_key_kind kind, const void *secret, size_t n,
                              const uint8_t data_key[EBB_SEAL_KEY], ebb_error *err)
{
    key_file k = { .version = VERSION, .kind = kind };
    uint8_t wrapping[EBB_SEAL_KEY];
    unsigned long long n_tag;
    const ebb_sodium *sodium;
    ebb_status st = ebb_sodium_load(&sodium, err);

    if (st != EBB_OK)
        return st;
    memcpy(k.magic, key_magic, sizeof key_magic);
    if (kind == EBB_KEY_OF_PASSPHRASE) {
        k.n_ops = N_OPS;
        k.n_mem = N_MEM;
    }
    sodium->randombytes_buf(k.salt, sizeof k.salt);
    sodium->randombytes_buf(k.nonce, sizeof k.nonce);
    st = derive_wrapping_key(sodium, &k, secret, n, wrapping, err);
    if (st == EBB_OK) {
        sodium->crypto_aead_xchacha20poly1305_ietf_encrypt_detached(k.wrapped, k.tag, &n_tag, data_key, EBB_SEAL_KEY,
                                                                    (uint8_t *)&k, offsetof(key_file, nonce), NULL,
                                                                    k.nonce, wrapping);
        st = ebb_file_replace_wiping(path, &k, sizeof k, err);   /* the old key opens the same data key */
    }
    explicit_bzero(wrapping, sizeof wrapping);
    return st;
}

ebb_status ebb_key_file_read(const char *path, const void *secret, size_t n, uint8_t data_key[EBB_SEAL_KEY],
                             ebb_error *err)
{
    uint8_t wrapping[EBB_SEAL_KEY];
    const ebb_sodium *sodium;
    key_file k;
    ebb_status st = load_key_file(path, &k, err);

    if (st == EBB_OK)
        st = ebb_sodium_load(&sodium, err);
    if (st == EBB_OK)
        st = derive_wrapping_key(sodium, &k, secret, n, wrapping, err);
    if (st != EBB_OK)
        return st;
    if (sodium->crypto_aead_xchacha20poly1305_ietf_decrypt_detached(data_key, NULL, k.wrapped, EBB_SEAL_KEY, k.tag,
                                                                    (uint8_t *)&k, offsetof(key_file, nonce),
                                                                    k.nonce, wrapping) != 0)
        st = EBB_FAIL(err, EBB_IO, k.kind == EBB_KEY_OF_FILE ? "this is not the key file of the encrypted sessions"
                                                             : "wrong passphrase for the encrypted sessions");
    explicit_bzero(wrapping, sizeof wrapping);
    return st;
}
