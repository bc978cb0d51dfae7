/* A key of this test's own, for what is encrypted. */
#ifndef EBB_TESTS_OWN_KEY_H
#define EBB_TESTS_OWN_KEY_H
#include "ebb_test.h"

#include "seal/seal.h"

/* Let this process encrypt from here on; NULL: libsodium is not installed, which is counted as a
 * test that was skipped. */
ebb_seal *own_key(void);
void own_key_end(ebb_seal *s);           /* NULL is fine */

/* Runs an array of tests with such a key; returns how many failed. */
#define run_encrypted(name, tests) own_key_run(name, tests, sizeof(tests) / sizeof *(tests))
int own_key_run(const char *name, const struct CMUnitTest *tests, size_t n);

#endif
