/* A key of this test's own, for what is encrypted. */
#ifndef EBB_TESTS_OWN_KEY_H
#define EBB_TESTS_OWN_KEY_H
#include "seal/seal.h"

/* Let this process encrypt from here on; NULL: libsodium is not installed. */
ebb_seal *own_key(void);
void own_key_end(ebb_seal *s);

#endif
