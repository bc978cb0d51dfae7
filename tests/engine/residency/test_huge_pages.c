/* What is still to be taken of memory, counted in huge pages: what has memory and what is to come is at every moment as
 * much as it will be in the end, in whatever order slots are written. */
#include "ebb_test.h"

#include "residency/huge_pages.h"

#define N_SLOTS     40u
#define SLOT_BYTES  ((uint64_t)3411968)          /* 833 pages of 4 KiB: nearly each huge page has two slots */
#define PIECE_BYTES ((uint64_t)1 << 20)
#define ALL_BYTES   (N_SLOTS * SLOT_BYTES)

static char *const region = (char *)((uintptr_t)7 << 30);        /* nobody reads or writes there */

static char *slot_at(uint32_t i)
{
    return region + i * SLOT_BYTES;
}

static uint64_t bytes_with_memory(const ebb_huge_pages *h)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < h->n; i++)
        sum += !h->has_memory[i] ? 0 : i + 1 < h->n ? EBB_HUGE_PAGE_BYTES : ALL_BYTES - i * EBB_HUGE_PAGE_BYTES;
    return sum;
}

static uint32_t pages_noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void shuffle(uint32_t *list, uint32_t n, uint32_t *seed)
{
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = pages_noise(seed) % (i + 1), t = list[i];

        list[i] = list[k];
        list[k] = t;
    }
}

static void read_slot(ebb_huge_pages *h, uint32_t i)
{
    for (uint64_t n = 0; n < SLOT_BYTES; n += PIECE_BYTES) {
        ebb_huge_pages_write(h, slot_at(i) + n, SLOT_BYTES - n < PIECE_BYTES ? SLOT_BYTES - n : PIECE_BYTES);
        assert_int_equal(bytes_with_memory(h) + h->pending_bytes, ALL_BYTES);
    }
    ebb_huge_pages_expect_no_more(h, slot_at(i), SLOT_BYTES);
    assert_int_equal(bytes_with_memory(h) + h->pending_bytes, ALL_BYTES);
    assert_true(ebb_huge_pages_check(h));
}

/* Counted by bytes of loads, memory of the neighbours would count twice: by 15 to 28 MiB in the middle of these 130. */
static void test_nothing_counts_twice(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 20; seed++) {
        uint32_t order[N_SLOTS], noise = seed;
        int64_t most = 0;
        ebb_huge_pages h;

        assert_true(ebb_huge_pages_init(&h, region, ALL_BYTES));
        shuffle(order, N_SLOTS, &noise);
        for (uint32_t i = 0; i < N_SLOTS; i++)
            ebb_huge_pages_expect(&h, slot_at(i), SLOT_BYTES);
        assert_int_equal(h.pending_bytes, ALL_BYTES);
        for (uint32_t i = 0; i < N_SLOTS; i++) {
            int64_t twice;

            read_slot(&h, order[i]);
            twice = (int64_t)((N_SLOTS - 1 - i) * SLOT_BYTES) - (int64_t)h.pending_bytes;
            most = twice > most ? twice : most;
        }
        assert_int_equal(h.pending_bytes, 0);
        assert_true(most >= (int64_t)15 << 20);
        ebb_huge_pages_fini(&h);
    }
}

/* A load that is given up takes nothing, but for the pages that it has begun or that others need. */
static void test_what_is_given_up(void **state)
{
    ebb_huge_pages h;

    (void)state;
    assert_true(ebb_huge_pages_init(&h, region, ALL_BYTES));
    assert_true(ebb_huge_pages_hold(&h, region) && ebb_huge_pages_hold(&h, region + ALL_BYTES - 1));
    assert_false(ebb_huge_pages_hold(&h, region - 1) || ebb_huge_pages_hold(&h, region + ALL_BYTES));
    ebb_huge_pages_expect(&h, slot_at(0), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, 2 * EBB_HUGE_PAGE_BYTES);
    ebb_huge_pages_expect(&h, slot_at(1), SLOT_BYTES);         /* pages 1 to 3 */
    assert_int_equal(h.pending_bytes, 4 * EBB_HUGE_PAGE_BYTES);
    ebb_huge_pages_expect_no_more(&h, slot_at(0), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, 3 * EBB_HUGE_PAGE_BYTES);
    ebb_huge_pages_write(&h, slot_at(1), 4096);
    assert_int_equal(h.pending_bytes, 2 * EBB_HUGE_PAGE_BYTES);
    ebb_huge_pages_expect_no_more(&h, slot_at(1), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, 0);
    assert_true(ebb_huge_pages_check(&h));
    ebb_huge_pages_fini(&h);
}

/* Memory that is given back is to be taken again by the next load; a page that it shares has kept its own. */
static void test_what_is_given_back(void **state)
{
    ebb_huge_pages h;

    (void)state;
    assert_true(ebb_huge_pages_init(&h, region, ALL_BYTES));
    ebb_huge_pages_write(&h, region, ALL_BYTES);
    ebb_huge_pages_expect(&h, slot_at(1), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, 0);
    ebb_huge_pages_expect_no_more(&h, slot_at(1), SLOT_BYTES);
    ebb_huge_pages_give_back(&h, slot_at(1), SLOT_BYTES);      /* page 2 lies in it whole */
    ebb_huge_pages_expect(&h, slot_at(1), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, EBB_HUGE_PAGE_BYTES);
    ebb_huge_pages_write(&h, slot_at(1), SLOT_BYTES);
    assert_int_equal(h.pending_bytes, 0);
    ebb_huge_pages_give_back(&h, region, ALL_BYTES);             /* it is still expected */
    assert_int_equal(h.pending_bytes, 3 * EBB_HUGE_PAGE_BYTES);
    assert_true(ebb_huge_pages_check(&h));
    ebb_huge_pages_fini(&h);
}

static void test_none(void **state)
{
    ebb_huge_pages h = { 0 };

    (void)state;
    assert_false(ebb_huge_pages_hold(&h, region));
    assert_true(ebb_huge_pages_check(&h));
    ebb_huge_pages_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_counts_twice),
        cmocka_unit_test(test_what_is_given_up),
        cmocka_unit_test(test_what_is_given_back),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
