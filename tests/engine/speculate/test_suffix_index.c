/* The index of a text by its last tokens, beside a search that looks everywhere. */
#include "ebb_test.h"

#include "speculate/suffix_index.h"

#define MOST 400u

static uint32_t draw_below(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static uint32_t naive_length(const ebb_token *ids, uint32_t place, uint32_t n)
{
    uint32_t m = 0;

    while (m < place && m < EBB_SUFFIX_MAX && ids[place - 1 - m] == ids[n - 1 - m])
        m++;
    return m;
}

/* All places with the longest match of at least n_alike, the latest first. */
static uint32_t naive_search(const ebb_token *ids, uint32_t n, uint32_t n_alike, uint32_t *places)
{
    uint32_t longest = n_alike, n_places = 0;

    for (uint32_t place = 1; place < n; place++) {
        uint32_t m = naive_length(ids, place, n);

        longest = m > longest ? m : longest;
    }
    for (uint32_t place = n - 1; place > 0; place--)
        if (naive_length(ids, place, n) == longest)
            places[n_places++] = place;
    return n_places;
}

static void expect_as_naive(const ebb_suffix_index *x, const ebb_token *ids, uint32_t n, uint32_t n_alike)
{
    uint32_t naive[MOST], n_naive = naive_search(ids, n, n_alike, naive);
    ebb_suffix_match m;

    assert_int_equal(ebb_suffix_index_search(x, ids, ids, n, n_alike, &m), n_naive > 0);
    assert_int_equal(m.n_places, n_naive);
    assert_memory_equal(m.places, naive, n_naive * sizeof *naive);
}

/* Texts of few words grow, are cut and written anew.  They are as short as what a search tries. */
static void finds_what_a_search_everywhere_finds(void **state)
{
    uint64_t random = 17;
    ebb_suffix_index x;
    ebb_token ids[EBB_SUFFIX_TRIED];
    uint32_t n = 0;

    (void)state;
    assert_true(ebb_suffix_index_init(&x, EBB_SUFFIX_TRIED));
    for (int i = 0; i < 20000; i++) {
        if (n == EBB_SUFFIX_TRIED || draw_below(&random, 40) == 0) {
            n = n > 0 ? draw_below(&random, n) : 0;
            ebb_suffix_index_truncate(&x, n);
        }
        ids[n++] = (ebb_token)draw_below(&random, 1 + (uint32_t)i / 4000);
        if (draw_below(&random, 3) == 0)         /* now and then only, as if drafting paused */
            continue;
        ebb_suffix_index_follow(&x, ids, n - 1);
        expect_as_naive(&x, ids, n, EBB_SUFFIX_MIN);
        expect_as_naive(&x, ids, n, 8);
    }
    ebb_suffix_index_fini(&x);
}

/* In a longer one it finds the latest places, and no more than it may look at. */
static void a_search_has_an_end(void **state)
{
    ebb_token ids[MOST];
    uint32_t naive[MOST];
    ebb_suffix_index x;
    ebb_suffix_match m;

    (void)state;
    for (uint32_t i = 0; i < MOST; i++)
        ids[i] = 7;
    assert_true(ebb_suffix_index_init(&x, MOST));
    ebb_suffix_index_follow(&x, ids, MOST - 1);
    assert_true(naive_search(ids, MOST, EBB_SUFFIX_MIN, naive) > EBB_SUFFIX_TRIED);
    assert_true(ebb_suffix_index_search(&x, ids, ids, MOST, 0, &m));
    assert_int_equal(m.n_places, EBB_SUFFIX_TRIED);
    assert_int_equal(m.n_alike, EBB_SUFFIX_MAX);
    assert_memory_equal(m.places, naive, sizeof m.places);
    ebb_suffix_index_fini(&x);
}

/* What was indexed of ids that are others now is never taken for a match. */
static void what_was_written_over_does_not_match(void **state)
{
    ebb_token ids[] = { 1, 2, 3, 4, 5, 6, 1, 2, 3 };
    ebb_suffix_index x;
    ebb_suffix_match m;

    (void)state;
    assert_true(ebb_suffix_index_init(&x, 9));
    ebb_suffix_index_follow(&x, ids, 8);
    assert_true(ebb_suffix_index_search(&x, ids, ids, 9, 0, &m));
    assert_int_equal(m.n_places, 1);
    assert_int_equal(m.places[0], 3);
    ids[1] = 9;
    assert_false(ebb_suffix_index_search(&x, ids, ids, 9, 0, &m));
    assert_int_equal(m.n_alike, 0);
    ebb_suffix_index_fini(&x);
}

static void what_followed_most_often_is_continued(void **state)
{
    static const ebb_token ids[] = { 1, 2, 3, 40, 41, 1, 2, 3, 40, 42, 1, 2, 3, 40, 42, 1, 2, 3, 50, 51, 1, 2, 3 };
    uint32_t n = sizeof ids / sizeof *ids;
    ebb_suffix_match m = { .n_alike = 3, .n_places = 4, .places = { 18, 13, 8, 3 } };
    ebb_token out[4];

    (void)state;
    assert_int_equal(ebb_suffix_index_continue(ids, n, &m, out, 4), 4);
    assert_int_equal(out[0], 40);                /* three times, 50 once */
    assert_int_equal(out[1], 42);                /* twice behind 40 */
    assert_int_equal(out[2], 1);
    assert_int_equal(out[3], 2);
}

static void of_equals_the_latest_is_continued(void **state)
{
    static const ebb_token ids[] = { 1, 2, 3, 40, 1, 2, 3, 50, 1, 2, 3 };
    ebb_suffix_match m = { .n_alike = 3, .n_places = 2, .places = { 7, 3 } };
    ebb_token out;

    (void)state;
    assert_int_equal(ebb_suffix_index_continue(ids, 11, &m, &out, 1), 1);
    assert_int_equal(out, 50);
}

/* The last place of another text counts, and what was said there is not continued into the text behind it. */
static void another_text_is_continued_to_its_end(void **state)
{
    static const ebb_token text[] = { 1, 2, 3, 40, 41, -1, 5, 1, 2, 3, -1 }, ids[] = { 9, 1, 2, 3 };
    ebb_suffix_index x;
    ebb_suffix_match m;
    ebb_token out[8];

    (void)state;
    assert_true(ebb_suffix_index_init(&x, 11));
    ebb_suffix_index_follow(&x, text, 11);
    assert_true(ebb_suffix_index_search(&x, text, ids, 4, 0, &m));
    assert_int_equal(m.n_alike, 3);
    assert_int_equal(m.n_places, 2);
    assert_int_equal(m.places[0], 10);
    m.places[0] = m.places[--m.n_places];        /* of both the latest would win: its text ends there */
    assert_int_equal(ebb_suffix_index_continue(text, 11, &m, out, 8), 2);
    assert_int_equal(out[1], 41);
    ebb_suffix_index_fini(&x);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_search_everywhere_finds),
        cmocka_unit_test(a_search_has_an_end),
        cmocka_unit_test(what_was_written_over_does_not_match),
        cmocka_unit_test(what_followed_most_often_is_continued),
        cmocka_unit_test(of_equals_the_latest_is_continued),
        cmocka_unit_test(another_text_is_continued_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
