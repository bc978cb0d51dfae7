#include "support/own_key.h"

#include "seal/key_file.h"

ebb_seal *own_key(void)
{
    uint8_t key[EBB_SEAL_KEY];
    ebb_seal *s = NULL;

    if (ebb_key_draw(key, NULL) != EBB_OK || ebb_seal_new(key, &s, NULL) != EBB_OK) {
        puts("not ok 1 # SKIP libsodium is not installed");
        return NULL;
    }
    ebb_seal_use_here(s);
    return s;
}

void own_key_end(ebb_seal *s)
{
    ebb_seal_use_here(NULL);
    ebb_seal_free(s);
}

int own_key_run(const char *name, const struct CMUnitTest *tests, size_t n)
{
    ebb_seal *s = own_key();
    int failed = s ? _cmocka_run_group_tests(name, tests, n, NULL, NULL) : 0;

    own_key_end(s);
    return failed;
}
