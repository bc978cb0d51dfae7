/* Prompt lookup: what is drafted, how many tokens, and when it pauses. */
#include "ebb_test.h"

#include "speculate/prompt_lookup.h"

#define N(ids) (uint32_t)(sizeof(ids) / sizeof *(ids))

/* With an index of these ids alone. */
static uint32_t draft(ebb_prompt_lookup *d, const ebb_token *ids, uint32_t n, uint32_t n_alike, ebb_token *out,
                      uint32_t max)
{
    ebb_suffix_index index;
    ebb_suffix_match m;
    uint32_t n_out = 0;

    assert_true(ebb_suffix_index_init(&index, n));
    if (ebb_prompt_lookup_find(d, &index, ids, ids, n, n_alike, &m))
        n_out = ebb_prompt_lookup_draft(d, ids, n, &m, out, max);
    ebb_suffix_index_fini(&index);
    return n_out;
}

static void no_match_no_draft(void **state)
{
    static const ebb_token fresh[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, two[] = { 9, 1, 2, 7, 8, 1, 2 };
    ebb_prompt_lookup d;
    ebb_token out[8];

    (void)state;
    ebb_prompt_lookup_init(&d, 7);
    assert_int_equal(draft(&d, fresh, N(fresh), 0, out, 8), 0);
    assert_int_equal(draft(&d, two, N(two), 0, out, 8), 0); /* two tokens alike are too few */
    assert_int_equal(draft(&d, two, 0, 0, out, 8), 0);
    assert_int_equal(draft(&d, two, 1, 0, out, 8), 0);
}

static void what_followed_is_the_draft(void **state)
{
    static const ebb_token ids[] = { 5, 1, 2, 3, 40, 41, 42, 6, 9, 1, 2, 3 };
    ebb_prompt_lookup d;
    ebb_token out[8];

    (void)state;
    ebb_prompt_lookup_init(&d, 7);
    d.n_now = 3;
    assert_int_equal(draft(&d, ids, N(ids), 0, out, 8), 3);
    assert_int_equal(out[0], 40);
    assert_int_equal(out[2], 42);
    assert_int_equal(draft(&d, ids, N(ids), 0, out, 1), 1); /* no more than there is room for */
    assert_int_equal(draft(&d, ids, N(ids), 0, out, 0), 0);
}

static void the_longest_match_wins_then_the_latest(void **state)
{
    static const ebb_token longer[] = { 7, 1, 2, 3, 50, 8, 1, 2, 3, 60, 7, 1, 2, 3 };
    static const ebb_token latest[] = { 7, 1, 2, 3, 50, 8, 1, 2, 3, 60, 9, 1, 2, 3 };
    ebb_prompt_lookup d;
    ebb_token out[8];

    (void)state;
    ebb_prompt_lookup_init(&d, 1);
    assert_int_equal(draft(&d, longer, N(longer), 0, out, 8), 1);
    assert_int_equal(out[0], 50);
    assert_int_equal(draft(&d, latest, N(latest), 0, out, 8), 1);
    assert_int_equal(out[0], 60);
}


static void a_text_that_repeats_itself_goes_on(void **state)
{
    static const ebb_token ids[] = { 1, 2, 1, 2, 1, 2 };
    ebb_prompt_lookup d;
    ebb_token out[6];

    (void)state;
    ebb_prompt_lookup_init(&d, 6);
    d.n_now = 6;
    assert_int_equal(draft(&d, ids, N(ids), 0, out, 6), 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(out[i], 1 + i % 2);
}

static void accepted_drafts_grow_rejected_ones_shrink(void **state)
{
    ebb_prompt_lookup d;

    (void)state;
    ebb_prompt_lookup_init(&d, 7);
    assert_int_equal(d.n_now, 2);
    ebb_prompt_lookup_learn(&d, 2, 2, 1);
    assert_int_equal(d.n_now, 4);
    ebb_prompt_lookup_learn(&d, 4, 4, 1);
    assert_int_equal(d.n_now, 7);                /* n_most */
    ebb_prompt_lookup_learn(&d, 7, 3, 1);
    assert_int_equal(d.n_now, 4);
    ebb_prompt_lookup_learn(&d, 4, 0, 1);
    assert_int_equal(d.n_now, 1);
}

static void drafting_pauses_where_it_does_not_pay(void **state)
{
    static const ebb_token ids[] = { 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3 };
    ebb_prompt_lookup d;
    ebb_token out[8];
    uint32_t n_rest = 0;

    (void)state;
    ebb_prompt_lookup_init(&d, 7);
    ebb_prompt_lookup_learn(&d, 0, 0, 0.1);
    for (int i = 0; i < 8; i++)                  /* twice the tokens for one and a half times the time */
        ebb_prompt_lookup_learn(&d, 1, 1, 0.15);
    assert_int_not_equal(draft(&d, ids, N(ids), 0, out, 8), 0);
    for (int i = 0; i < 8; i++)                  /* one token for one and a half times the time */
        ebb_prompt_lookup_learn(&d, 1, 0, 0.15);
    while (draft(&d, ids, N(ids), 0, out, 8) == 0 && n_rest < 1000)
        n_rest++;
    assert_in_range(n_rest, 8, 200);             /* and it is tried again */
}

/* Where no draft token is accepted, four passes have one; the pauses behind such tries grow. */
static void drafting_that_loses_is_off(void **state)
{
    static const ebb_token ids[] = { 1, 2, 3, 4, 1, 2, 3 };
    uint32_t n_drafted = 0, n_early = 0;
    ebb_prompt_lookup d;
    ebb_token out[8];

    (void)state;
    ebb_prompt_lookup_init(&d, 7);
    ebb_prompt_lookup_learn(&d, 0, 0, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t n = draft(&d, ids, N(ids), 0, out, 8);

        n_drafted += n > 0;
        n_early += n > 0 && i < 40;
        ebb_prompt_lookup_learn(&d, n, 0, 1 + 0.15 * n);
    }
    assert_in_range(n_early, 1, 10);
    assert_in_range(n_drafted, 8, 24);
}

static void none_where_none_is_wanted(void **state)
{
    static const ebb_token ids[] = { 1, 2, 3, 4, 1, 2, 3 };
    ebb_prompt_lookup d;
    ebb_token out[8];

    (void)state;
    ebb_prompt_lookup_init(&d, 0);
    assert_int_equal(draft(&d, ids, N(ids), 0, out, 8), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_match_no_draft),
        cmocka_unit_test(what_followed_is_the_draft),
        cmocka_unit_test(the_longest_match_wins_then_the_latest),
        cmocka_unit_test(a_text_that_repeats_itself_goes_on),
        cmocka_unit_test(accepted_drafts_grow_rejected_ones_shrink),
        cmocka_unit_test(drafting_pauses_where_it_does_not_pay),
        cmocka_unit_test(drafting_that_loses_is_off),
        cmocka_unit_test(none_where_none_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
