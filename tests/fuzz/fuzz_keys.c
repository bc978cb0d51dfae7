/* What a terminal sends, in pieces. */
#include "fuzz.h"

#include "term/keys.h"

static void drain(ebb_keys *k, size_t n_bytes)
{
    ebb_input in;
    size_t n = 0;

    while (ebb_keys_next(k, &in)) {
        FUZZ_MUST(in.kind == EBB_INPUT_KEY || in.kind == EBB_INPUT_PASTE);
        FUZZ_MUST(in.kind != EBB_INPUT_KEY || (in.key.code <= EBB_KEY_F12 && in.key.mods < 8));
        FUZZ_MUST(++n <= n_bytes + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_keys k = { .has_wheel = true };
    ebb_input in;

    for (size_t at = 1, step; at < n; at += step) {
        step = 1 + (data[0] ^ data[at]) % 23;
        step = step < n - at ? step : n - at;
        ebb_keys_feed(&k, (const char *)data + at, step);
        drain(&k, n);
        if (data[at] % 5 == 0 && ebb_keys_is_waiting(&k) && ebb_keys_flush(&k, &in))
            drain(&k, n);
    }
    for (size_t i = 0; i <= n && ebb_keys_is_waiting(&k) && ebb_keys_flush(&k, &in); i++)
        drain(&k, n);
    ebb_keys_fini(&k);
    return 0;
}
