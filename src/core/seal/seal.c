/* Sealing and opening (seal/seal.h). */
#include "seal/seal.h"

#include <stdlib.h>
#include <string.h>

#include "seal/sodium.h"

struct ebb_seal {
    const ebb_sodium *sodium;
    uint8_t         (*keys)[EBB_SEAL_KEY];       /* [EBB_SEAL_USES] in locked memory */
};

static const char context[crypto_kdf_CONTEXTBYTES] = { 'e', 'b', 'b', ' ', 's', 'e', 'a', 'l' };
static const char mark[] = "~sealed1~";
enum { N_MARK = sizeof mark - 1 };

static const ebb_seal *here;

void ebb_seal_use_here(const ebb_seal *s)
{
    here = s;
}

const ebb_seal *ebb_seal_here(void)
{
    return here;
}

ebb_status ebb_seal_new(const uint8_t data_key[EBB_SEAL_KEY], ebb_seal **out, ebb_error *err)
{
    const ebb_sodium *sodium;
    ebb_status st = ebb_sodium_load(&sodium, err);
    ebb_seal *s;

    *out = NULL;
    if (st != EBB_OK)
        return st;
    s = calloc(1, sizeof *s);
    if (s) {
        s->sodium = sodium;
        s->keys = sodium->sodium_malloc(EBB_SEAL_USES * sizeof *s->keys);
    }
    if (!s || !s->keys) {
        free(s);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for keys");
    }
    for (uint64_t use = 0; use < EBB_SEAL_USES; use++)
        if (sodium->crypto_kdf_derive_from_key(s->keys[use], EBB_SEAL_KEY, use, context, data_key) != 0)
            st = EBB_FAIL(err, EBB_UNSUPPORTED, "libsodium cannot derive a key");
    if (sodium->sodium_mprotect_readonly(s->keys) != 0 && st == EBB_OK)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for keys");
    if (st != EBB_OK) {
        ebb_seal_free(s);
        return st;
    }
    *out = s;
    return EBB_OK;
}

void ebb_seal_free(ebb_seal *s)
{
    if (!s)
        return;
    s->sodium->sodium_free(s->keys);             /* which overwrites them */
    free(s);
}

void ebb_seal_random(const ebb_seal *s, void *out, size_t n)
{
    s->sodium->randombytes_buf(out, n);
}

static void seal_at(const ebb_seal *s, ebb_seal_use use, const void *place, size_t n_place, const uint8_t *nonce,
                    const void *in, size_t n, void *out, uint8_t *tag)
{
    unsigned long long n_tag;

    s->sodium->crypto_aead_xchacha20poly1305_ietf_encrypt_detached(out, tag, &n_tag, in, n, place, n_place, NULL,
                                                                   nonce, s->keys[use]);
}

static bool open_at(const ebb_seal *s, ebb_seal_use use, const void *place, size_t n_place, const uint8_t *nonce,
                    const void *in, size_t n, const uint8_t *tag, void *out)
{
    return s->sodium->crypto_aead_xchacha20poly1305_ietf_decrypt_detached(out, NULL, in, n, tag, place, n_place,
                                                                          nonce, s->keys[use]) == 0;
}

void ebb_seal_block(const ebb_seal *s, ebb_seal_use use, uint64_t place, const void *in, size_t n, void *out,
                    uint8_t extra[EBB_SEAL_EXTRA])
{
    ebb_seal_random(s, extra, EBB_SEAL_NONCE);
    seal_at(s, use, &place, sizeof place, extra, in, n, out, extra + EBB_SEAL_NONCE);
}

bool ebb_seal_open(const ebb_seal *s, ebb_seal_use use, uint64_t place, const void *in, size_t n,
                   const uint8_t extra[EBB_SEAL_EXTRA], void *out)
{
    return open_at(s, use, &place, sizeof place, extra, in, n, extra + EBB_SEAL_NONCE, out);
}

void ebb_seal_with_nonce(const ebb_seal *s, ebb_seal_use use, const uint8_t nonce[EBB_SEAL_NONCE], const void *in,
                         size_t n, void *out, uint8_t tag[EBB_SEAL_TAG])
{
    seal_at(s, use, NULL, 0, nonce, in, n, out, tag);
}

bool ebb_seal_open_with_nonce(const ebb_seal *s, ebb_seal_use use, const uint8_t nonce[EBB_SEAL_NONCE],
                              const void *in, size_t n, const uint8_t tag[EBB_SEAL_TAG], void *out)
{
    return open_at(s, use, NULL, 0, nonce, in, n, tag, out);
}

void ebb_seal_name_key(const ebb_seal *s, ebb_seal_use use, uint8_t out[16])
{
    s->sodium->crypto_generichash(out, 16, NULL, 0, s->keys[use], EBB_SEAL_KEY);
}

/* -- Texts ----------------------------------------------------------------------------------------- */

bool ebb_seal_add_text(const ebb_seal *s, const void *text, size_t n, ebb_buf *out)
{
    size_t n_sealed = EBB_SEAL_EXTRA + n,
           cap = sodium_base64_ENCODED_LEN(n_sealed, sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
    uint8_t *sealed = malloc(n_sealed);
    bool ok = sealed && ebb_buf_adds(out, mark) && ebb_buf_reserve(out, cap);

    if (ok) {
        ebb_seal_block(s, EBB_SEAL_TEXT, 0, text, n, sealed + EBB_SEAL_EXTRA, sealed);
        s->sodium->sodium_bin2base64(out->data + out->len, cap, sealed, n_sealed,
                                     sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
        out->len += strlen(out->data + out->len);
    }
    free(sealed);
    return ok;
}

bool ebb_seal_is_text(const char *word, size_t n)
{
    return n >= N_MARK && memcmp(word, mark, N_MARK) == 0;
}

bool ebb_seal_open_text(const ebb_seal *s, const char *word, size_t n, ebb_buf *out)
{
    uint8_t *sealed;
    size_t n_sealed;
    bool ok;

    if (!ebb_seal_is_text(word, n) || !(sealed = malloc(n)))
        return false;
    ok = s->sodium->sodium_base642bin(sealed, n, word + N_MARK, n - N_MARK, NULL, &n_sealed, NULL,
                                      sodium_base64_VARIANT_ORIGINAL_NO_PADDING) == 0 &&
         n_sealed >= EBB_SEAL_EXTRA &&
         ebb_seal_open(s, EBB_SEAL_TEXT, 0, sealed + EBB_SEAL_EXTRA, n_sealed - EBB_SEAL_EXTRA, sealed,
                       sealed + EBB_SEAL_EXTRA) &&
         ebb_buf_add(out, (char *)sealed + EBB_SEAL_EXTRA, n_sealed - EBB_SEAL_EXTRA);
    explicit_bzero(sealed, n);
    free(sealed);
    return ok;
}
