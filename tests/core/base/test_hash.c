#include "ebb_test.h"

#include <stdbool.h>

#include "base/hash.h"

/* Vectors of the reference implementation: key 00..0f, message 00, 01, ... */
static void test_reference_vectors(void **state)
{
    static const struct { size_t n; uint8_t digest[16]; } vectors[] = {
        { 0, { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 } },
        { 1, { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 } },
    };
    uint8_t key[16], out[16];

    (void)state;
    for (uint8_t i = 0; i < 16; i++)
        key[i] = i;
    for (size_t i = 0; i < 2; i++) {
        ebb_hash128(key, vectors[i].n, key, out);
        assert_memory_equal(out, vectors[i].digest, 16);
    }
}

/* Every bit of a message of several words counts, and so does its length. */
static void test_every_bit_counts(void **state)
{
    uint8_t text[21] = "a message of 21 bytes", base[16], out[16];

    (void)state;
    ebb_hash128(text, sizeof text, NULL, base);
    for (size_t bit = 0; bit < 8 * sizeof text; bit++) {
        text[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ebb_hash128(text, sizeof text, NULL, out);
        assert_memory_not_equal(out, base, 16);
        text[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    ebb_hash128(text, sizeof text - 1, NULL, out);
    assert_memory_not_equal(out, base, 16);
}

static void test_digest_can_be_the_next_key(void **state)
{
    uint8_t chained[16] = { 0 }, apart[16];

    (void)state;
    ebb_hash128("one", 3, chained, chained);
    memcpy(apart, chained, 16);
    ebb_hash128("two", 3, chained, chained);
    ebb_hash128("two", 3, apart, apart);
    assert_memory_equal(chained, apart, 16);
    ebb_hash128("two", 3, NULL, apart);
    assert_memory_not_equal(chained, apart, 16);
}

/* Whoever chooses the keys cannot choose where they land: words whose sums under the multiplication that was used
 * before are all alike. */
static void test_table_hash_spreads(void **state)
{
    enum { N = 4096 };
    static bool used[4 * N];
    const uint64_t m = 0x9E3779B97F4A7C15u;
    uint64_t inverse = 1;
    size_t n_used = 0;

    (void)state;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - m * inverse;              /* Newton's iteration, modulo 2^64 */
    assert_true(m * inverse == 1);
    for (uint64_t i = 1; i <= N; i++) {
        uint64_t sum = i << 24, word;
        size_t at;

        for (int round = 0; round < 2; round++)
            sum = (sum ^ sum >> 32) * inverse;
        word = sum ^ 8;
        at = ebb_hash_table(&word, sizeof word) % (4 * N);
        n_used += !used[at];
        used[at] = true;
    }
    assert_true(n_used > N / 2);                 /* of 3,624 that chance leaves */
    assert_true(ebb_hash_table("abc", 3) == ebb_hash_table("abc", 3));
    assert_true(ebb_hash_table("abc", 3) != ebb_hash_table("abc\0", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_vectors),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_digest_can_be_the_next_key),
        cmocka_unit_test(test_table_hash_spreads),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
