/* Files of K and V, encrypted (store/sealed_kv.h). */
#include "store/sealed_kv.h"

#include "seal/seal.h"

static void kv_random(void *arg, void *out, size_t n)
{
    (void)arg;
    ebb_seal_random(ebb_seal_here(), out, n);
}

static void kv_close(void *arg, const uint8_t nonce[24], const void *in, size_t n, void *out, uint8_t tag[16])
{
    (void)arg;
    ebb_seal_with_nonce(ebb_seal_here(), EBB_SEAL_KV, nonce, in, n, out, tag);
}

static bool kv_open(void *arg, const uint8_t nonce[24], void *data, size_t n, const uint8_t tag[16])
{
    (void)arg;
    return ebb_seal_open_with_nonce(ebb_seal_here(), EBB_SEAL_KV, nonce, data, n, tag, data);
}

const ebb_kv_seal *ebb_sealed_kv(void)
{
    static ebb_kv_seal seal = { .random = kv_random, .seal = kv_close, .open = kv_open };

    static const ebb_seal *of;

    if (ebb_seal_here() && ebb_seal_here() != of) {      /* once: engines on other threads read it */
        of = ebb_seal_here();
        ebb_seal_name_key(of, EBB_SEAL_KV_NAME, seal.name_key);
    }
    return ebb_seal_here() ? &seal : NULL;
}
