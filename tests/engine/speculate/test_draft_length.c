/* How many tokens to draft: by the formula, by measured times, by the drafter's own probabilities. */
#include "ebb_test.h"

#include "speculate/draft_length.h"

#define MOST 31u

/* A pass takes t, a further token c, a draft token d; the acceptance rate is `right`. */
static ebb_draft_length pace_of(double right, double t, double c, double d)
{
    ebb_draft_length p;

    ebb_draft_length_init(&p, right, c / t, d / t);
    ebb_draft_length_learn_pass(&p, 1, t);
    p.n_tries = 0;
    return p;
}

/* A pass with a chain of draft tokens. */
static void learn_chain(ebb_draft_length *p, const double *probabilities, uint32_t n, uint32_t n_accepted,
                        bool is_rejected)
{
    const ebb_draft_outcome o = { .probabilities = probabilities, .n = n, .n_accepted = n_accepted,
                                  .is_rejected = is_rejected, .n_columns = n, .n_steps = n, .n_gained = n_accepted };

    ebb_draft_length_learn(p, &o, "test");
}

/* A pass with one draft token. */
static void learn_one(ebb_draft_length *p, double probability, bool is_accepted)
{
    learn_chain(p, &probability, 1, is_accepted, !is_accepted);
}

static double rate_of(double a, double t, double c, double d, uint32_t k)
{
    double tokens = 1, chance = 1;

    for (uint32_t i = 0; i < k; i++)
        tokens += chance *= a;
    return tokens / (t + k * (c + d));
}

/* The best k is the one with the best rate, for streamed models and those in memory. */
static void the_best_k(void **state)
{
    static const double cases[][4] = { { 0.7, 2.7, 0.03, 0.15 }, { 0.9, 2.7, 0.03, 0.15 }, { 0.7, 0.1, 0.03, 0.012 },
                                       { 0.95, 10, 0.04, 0.15 }, { 0.5, 0.5, 0.03, 0.015 }, { 0.99, 1, 0.001, 0.001 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *v = cases[i];
        ebb_draft_length p = pace_of(v[0], v[1], v[2], v[3]);
        double rate;
        uint32_t best = ebb_draft_length_best(&p, MOST, &rate);

        assert_true(best > 0);
        for (uint32_t k = 0; k <= MOST; k++)
            assert_true(rate_of(v[0], v[1], v[2], v[3], k) <= rate * 1.000001);
        assert_true(ebb_draft_length_begin(&p, MOST) == MOST);
    }
}

/* A draft as slow as its host never pays: it rests, each time longer, and is tried now and then. */
static void a_slow_draft_rests(void **state)
{
    ebb_draft_length p = pace_of(0.9, 0.1, 0.03, 0.1);
    uint32_t n_drafted = 0, last = 0, rest = 0;
    double rate;

    (void)state;
    assert_int_equal(ebb_draft_length_best(&p, MOST, &rate), 0);
    assert_true(rate == 1 / p.alone_s);
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t n = ebb_draft_length_begin(&p, MOST);

        if (n > 0) {
            rest = i - last > rest ? i - last : rest;
            last = i;
            n_drafted++;
            learn_one(&p, 0.9, true);
        }
        ebb_draft_length_learn_pass(&p, n + 1, 0.1 + 0.03 * n);
        if (n > 0)
            ebb_draft_length_learn_draft(&p, 1, 0.1);
    }
    assert_true(n_drafted > 0 && n_drafted < 40);
    assert_true(rest > 200);
}

/* Drafting ends where every token is rejected, although the plan had promised more, and begins again when they are
 * accepted. */
static void it_learns_what_they_are_worth(void **state)
{
    ebb_draft_length p = pace_of(0.9, 1, 0.02, 0.05);
    uint32_t n_early = 0, n_late = 0;

    (void)state;
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t n = ebb_draft_length_begin(&p, MOST);

        n_early += i < 30 && n > 0;
        n_late += i >= 100 && n > 0;
        if (n > 0)
            learn_one(&p, 0.5, false);
    }
    assert_in_range(n_early, 1, 10);
    assert_true(n_late < 60);
    for (uint32_t i = 0; i < 2000; i++)
        if (ebb_draft_length_begin(&p, MOST) > 0)
            learn_one(&p, 0.5, true);
    assert_int_equal(ebb_draft_length_begin(&p, MOST) + ebb_draft_length_begin(&p, MOST) > MOST, true);
}

/* A round of a drafter that gives its tokens this probability, none of which is accepted; what it costs in passes.
 * As draft_model.c goes about it. */
static double lose_a_round(ebb_draft_length *p, double probability, double c, double d)
{
    double probabilities[MOST], chance = 1, cost = 0;
    uint32_t n = 0, most = ebb_draft_length_begin(p, MOST);

    while (n < most && (n == 0 || ebb_draft_length_is_next_worth(p, chance))) {
        cost += d;
        ebb_draft_length_learn_draft(p, 1, d);
        chance *= ebb_draft_length_accept_chance(p, probability);
        if (!ebb_draft_length_is_token_worth(p, chance))
            break;
        probabilities[n++] = probability;
    }
    if (most > 0 && n == 0)
        ebb_draft_length_learn_waste(p);
    ebb_draft_length_learn_pass(p, n + 1, 1 + c * n);
    if (n > 0)
        learn_chain(p, probabilities, n, 0, true);
    return cost + c * n;
}

/* A drafter that is never right is off within ten passes, whatever it thinks of its tokens - also one that thinks so
 * little of them that none comes into a pass - and costs little from then on. */
static void a_drafter_that_loses_is_off(void **state)
{
    static const double costs[][2] = { { 0.15, 0.17 }, { 0.15, 0.25 }, { 0.02, 0.05 }, { 0.005, 0.04 }, { 0.3, 0.1 } };
    static const double probabilities[] = { 0.05, 0.3, 0.5, 0.9, 0.99 };

    (void)state;
    for (size_t i = 0; i < 25; i++) {
        double c = costs[i / 5][0], d = costs[i / 5][1], lost = 0;
        uint32_t n_passes = 0;
        ebb_draft_length p;

        ebb_draft_length_init(&p, EBB_ACCEPT_RATE_FAMILY, c, d);
        for (; p.n_pause == 0 && n_passes < 100; n_passes++)
            lost += lose_a_round(&p, probabilities[i % 5], c, d);
        assert_in_range(n_passes, 2, 10);
        for (; n_passes < 96; n_passes++)
            lost += lose_a_round(&p, probabilities[i % 5], c, d);
        assert_true(lost < 0.02 * 96);
        for (; n_passes < 256; n_passes++)
            lost += lose_a_round(&p, probabilities[i % 5], c, d);
        assert_true(lost < 0.01 * 256);
    }
}

/* One that is right often enough is not taken for one, with the bad luck that it has. */
static void a_drafter_that_pays_stays(void **state)
{
    ebb_draft_length p = pace_of(0.7, 1, 0.01, 0.04);
    uint64_t random = 5;
    uint32_t n_drafted = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t n = ebb_draft_length_begin(&p, 4), n_right = 0;
        double probabilities[4] = { 0.7, 0.7, 0.7, 0.7 };

        for (; n_right < n; n_right++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            if ((random >> 33) % 10 >= 7)
                break;
        }
        n_drafted += n > 0;
        ebb_draft_length_learn_pass(&p, n + 1, 1 + 0.01 * n);
        if (n > 0)
            learn_chain(&p, probabilities, n, n_right, n_right < n);
    }
    assert_true(n_drafted > 950);
}

/* A new one, of which nothing is known but the plan's prediction. */
static ebb_draft_length new_drafter(double t, double c, double d)
{
    ebb_draft_length p;

    ebb_draft_length_init(&p, EBB_ACCEPT_RATE_FAMILY, c / t, d / t);
    ebb_draft_length_learn_pass(&p, 1, t);
    return p;
}

/* Where a pass waits for a disk, one shows whether drafting pays; where it computes, four do, with a token each. */
static void a_try_costs_little(void **state)
{
    const double probabilities[7] = { 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9 };
    ebb_draft_length disk = new_drafter(1, 0.004, 0.03), memory = new_drafter(0.16, 0.025, 0.03),
                     free_one = new_drafter(1, 0, 0);

    (void)state;
    assert_int_equal(ebb_draft_length_begin(&free_one, MOST), 1);        /* nothing says that it is */
    assert_int_equal(ebb_draft_length_begin(&disk, 3), 3);
    assert_int_equal(ebb_draft_length_begin(&disk, MOST), 7);            /* a quarter of a pass */
    learn_chain(&disk, probabilities, 7, 7, false);
    assert_int_equal(ebb_draft_length_begin(&disk, MOST), MOST);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(ebb_draft_length_begin(&memory, MOST), 1);
        learn_chain(&memory, probabilities, 1, 1, false);
    }
    assert_int_equal(ebb_draft_length_begin(&memory, MOST), MOST);
}

/* A disk that hangs for half a minute, in a pass, in a token alone or in the drafter, is no pace; a drafter that has
 * become slow for good is found out soon. */
static void a_stall_is_no_pace(void **state)
{
    const double probabilities[8] = { 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9 };
    uint32_t n_slow = 0;

    (void)state;
    for (int where = 0; where < 3; where++) {
        ebb_draft_length p = pace_of(0.9, 1, 0.01, 0.02);

        for (uint32_t i = 0; i < 200; i++) {
            uint32_t n = ebb_draft_length_begin(&p, 8);
            double stall = i % 50 == 20 ? 30 : 0;

            assert_true(n > 0 || p.n_pause == 0);
            ebb_draft_length_learn_draft(&p, 1, 0.02 + (where == 1 ? stall : 0));
            ebb_draft_length_learn_pass(&p, n + 1, 1 + 0.01 * n + (where == 0 || (where == 2 && n == 0) ? stall : 0));
            if (n > 0)
                learn_chain(&p, probabilities, n, i % 2 ? n : n - 1, !(i % 2));
        }
    }
    ebb_draft_length p = pace_of(0.9, 1, 0.01, 0.02);
    for (; p.n_pause == 0 && n_slow < 100; n_slow++) {
        uint32_t n = ebb_draft_length_begin(&p, 8);

        ebb_draft_length_learn_draft(&p, 1, 3);
        ebb_draft_length_learn_pass(&p, n + 1, 1 + 0.01 * n);
        if (n > 0)
            learn_chain(&p, probabilities, n, n, false);
    }
    assert_in_range(n_slow, 2, 12);
}

/* The drafter's own probability counts until it is known how often its tokens are accepted. */
static void a_chance_is_learned(void **state)
{
    ebb_draft_length p = pace_of(0.7, 1, 0.02, 0.1);

    (void)state;
    assert_true(ebb_draft_length_accept_chance(&p, 0.95) > 0.9 && ebb_draft_length_accept_chance(&p, 0.05) < 0.1);
    for (int i = 0; i < 40; i++)
        ebb_draft_length_learn_token(&p, 0.05, true);
    assert_true(ebb_draft_length_accept_chance(&p, 0.05) > 0.9);
    assert_true(ebb_draft_length_accept_chance(&p, 0.35) < 0.4);
    assert_true(ebb_draft_length_accept_chance(&p, 1) > 0.9);
}

/* Another draft token is worth it as long as its chance brings more than its time does elsewhere. */
static void it_stops_where_chances_are_small(void **state)
{
    ebb_draft_length p = pace_of(0.9, 1, 0.05, 0.05);
    double rate;

    (void)state;
    assert_true(ebb_draft_length_best(&p, MOST, &rate) > 3);
    assert_true(ebb_draft_length_is_next_worth(&p, 1));
    assert_false(ebb_draft_length_is_next_worth(&p, 0.5 * rate * 0.1));
    assert_true(ebb_draft_length_is_next_worth(&p, 1.2 * rate * 0.1));
    assert_false(ebb_draft_length_is_token_worth(&p, 0.9 * rate * 0.05));
    assert_true(ebb_draft_length_is_token_worth(&p, 1.1 * rate * 0.05));
}

/* A long text is worth taking in where every pass costs seconds, not where it costs little. */
static void catching_up_has_a_price(void **state)
{
    ebb_draft_length slow = pace_of(0.9, 2.7, 0.03, 0.15), quick = pace_of(0.7, 0.1, 0.03, 0.02);

    (void)state;
    ebb_draft_length_learn_draft(&slow, 100, 3);
    ebb_draft_length_learn_draft(&quick, 100, 1);
    assert_true(ebb_draft_length_is_sync_worth(&slow, 4000));
    assert_false(ebb_draft_length_is_sync_worth(&quick, 4000));
    assert_true(ebb_draft_length_is_sync_worth(&quick, 2));
    assert_false(ebb_draft_length_is_sync_worth(&slow, 1000000));
}

/* The first pass goes alone, for what it takes is not known; a fixed number asks nobody. */
static void nothing_is_known_at_first(void **state)
{
    ebb_draft_length p;

    (void)state;
    ebb_draft_length_init(&p, 0.7, 0.1, 0.1);
    assert_int_equal(ebb_draft_length_begin(&p, MOST), 0);
    ebb_draft_length_learn_pass(&p, 1, 2);
    assert_int_equal(ebb_draft_length_begin(&p, MOST), 1); /* a try */
    assert_int_equal(ebb_draft_length_begin(&p, 1), 1);
    assert_int_equal(ebb_draft_length_begin(&p, 0), 0);
    ebb_draft_length_learn_pass(&p, 5, 1);       /* the first one had waited for something */
    assert_true(p.alone_s <= 1);
    ebb_draft_length_init(&p, 0.7, 1, 1);
    p.n_fixed = 6;
    assert_int_equal(ebb_draft_length_begin(&p, MOST), 6);
    assert_int_equal(ebb_draft_length_begin(&p, 4), 4);
    assert_true(ebb_draft_length_is_next_worth(&p, 0));
}

/* Of five draft tokens three were accepted: the fourth counts as rejected only if that is known, the fifth never. */
static void a_pass_is_learned(void **state)
{
    static const double probabilities[5] = { 0.95, 0.85, 0.75, 0.65, 0.55 };
    ebb_draft_length p = pace_of(0.7, 1, 0.02, 0.1), known;

    (void)state;
    p.n_tries = 5;
    known = p;
    learn_chain(&p, probabilities, 5, 3, false);
    learn_chain(&known, probabilities, 5, 3, true);
    assert_int_equal(p.n_tries, 1);
    for (int i = 5; i < 10; i++) {
        assert_true(p.bin_accepted[i] == (i >= 7) && p.bin_proposed[i] == (i >= 7));
        assert_true(known.bin_accepted[i] == (i >= 7) && known.bin_proposed[i] == (i >= 6));
    }
    learn_chain(&p, probabilities, 5, 5, true);       /* none was left to be rejected */
    assert_true(p.bin_proposed[5] == 1 && p.bin_accepted[5] == 1);
}

/* How often the next choice is sampled where a draft token is rejected is learned from chains as well; a branch is
 * worth its column, not a draft token's time. */
static void a_branch_has_a_chance(void **state)
{
    static const double probability = 0.5;
    ebb_draft_length p = pace_of(0.8, 1, 0.02, 0.2);
    double rate, before = ebb_draft_length_rank_chance(&p, 1);

    (void)state;
    assert_true(before > 0.2 && before < 0.5 && ebb_draft_length_rank_chance(&p, 2) < before);
    for (int i = 0; i < 40; i++)
        ebb_draft_length_learn(&p, &(ebb_draft_outcome){ .probabilities = &probability, .n = 1, .is_rejected = true,
                                                         .rank = i % 4 ? 1 : 2, .n_columns = 1, .n_steps = 1 }, "test");
    assert_true(ebb_draft_length_rank_chance(&p, 1) > 0.65 && ebb_draft_length_rank_chance(&p, 1) < 0.8);
    assert_true(ebb_draft_length_rank_chance(&p, 2) > 0.2 && ebb_draft_length_rank_chance(&p, 2) < 0.3);
    p = pace_of(0.8, 1, 0.02, 0.2);
    (void)ebb_draft_length_best(&p, MOST, &rate);
    assert_true(ebb_draft_length_is_branch_worth(&p, 1.1 * rate * 0.02, 5));
    assert_false(ebb_draft_length_is_branch_worth(&p, 0.9 * rate * 0.02, 0));
    p.n_tries = 1;                               /* a try is short */
    assert_false(ebb_draft_length_is_branch_worth(&p, 1, 0));
    p.n_fixed = 3;
    p.n_fixed_branches = 2;
    assert_true(ebb_draft_length_is_branch_worth(&p, 0, 1));
    assert_false(ebb_draft_length_is_branch_worth(&p, 1, 2));
}

/* Draft tokens that are often right pay for their time, and yet not for the memory that they take from the model. */
static void it_may_not_be_worth_its_memory(void **state)
{
    ebb_draft_length p = pace_of(0.4, 1, 0.02, 0.04);
    uint64_t random = 3;

    (void)state;
    assert_false(ebb_draft_length_is_known(&p));
    for (uint32_t i = 0; i < 64; i++) {
        assert_false(ebb_draft_length_is_known(&p));
        random = random * 6364136223846793005u + 1442695040888963407u;
        ebb_draft_length_learn_token(&p, 0.4, random >> 33 < (uint64_t)(0.4 * 0x80000000u));
    }
    assert_true(ebb_draft_length_is_known(&p));
    assert_true(ebb_draft_length_is_memory_worth(&p, 1));        /* 1.5 tokens a pass */
    assert_true(ebb_draft_length_is_memory_worth(&p, 0.9));
    assert_false(ebb_draft_length_is_memory_worth(&p, 0.5));
    p.n_fixed = 3;                               /* whoever asks for so many gets them */
    assert_false(ebb_draft_length_is_known(&p));
}

/* Where layers are streamed for it, a drafter that is never right is found out at once: a pause would cost, too. */
static void useless_memory_is_given_back_early(void **state)
{
    ebb_draft_length p;
    uint32_t n_passes = 0;

    (void)state;
    ebb_draft_length_init(&p, EBB_ACCEPT_RATE_FAMILY, 0.015, 0.03);
    p.takes_layers = true;
    for (; !ebb_draft_length_is_known(&p) && n_passes < 200; n_passes++)
        lose_a_round(&p, 0.5, 0.015, 0.03);
    assert_in_range(n_passes, 4, 9);
    assert_false(ebb_draft_length_is_memory_worth(&p, 0.6));
    ebb_draft_length_learn_pass(&p, 1, 1);       /* were it worth its memory all the same, it would pause now */
    assert_int_equal(ebb_draft_length_begin(&p, MOST), 0);
}

/* One that is right in 70 % of the places has to be very unlucky to be taken for useless in 64 draft tokens. */
static void bad_luck_does_not_cost_it_its_memory(void **state)
{
    uint64_t random = 7;
    uint32_t n_ended = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        ebb_draft_length p;
        double probabilities[MOST];

        ebb_draft_length_init(&p, EBB_ACCEPT_RATE_FAMILY, 0.015, 0.03);
        p.takes_layers = true;
        ebb_draft_length_learn_pass(&p, 1, 1);
        while (!ebb_draft_length_is_known(&p)) {
            uint32_t n = ebb_draft_length_begin(&p, 6), n_right = 0;

            for (uint32_t k = 0; k < n; k++)
                probabilities[k] = 0.7;
            for (; n_right < n; n_right++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                if (random >> 33 >= (uint64_t)(0.7 * 0x80000000u))
                    break;
            }
            if (n > 0)
                learn_chain(&p, probabilities, n, n_right, n_right < n);
        }
        n_ended += !ebb_draft_length_is_memory_worth(&p, 0.6);
    }
    assert_in_range(n_ended, 0, 5);
}

/* Two pauses in a row say what it is worth; a bad moment does not. */
static void two_pauses_are_enough(void **state)
{
    ebb_draft_length p;
    uint32_t n_passes = 0;

    (void)state;
    ebb_draft_length_init(&p, EBB_ACCEPT_RATE_FAMILY, 0.02, 0.05);
    for (; !ebb_draft_length_is_known(&p) && n_passes < 200; n_passes++)
        lose_a_round(&p, 0.5, 0.02, 0.05);
    assert_in_range(n_passes, 64, 96);
    assert_false(ebb_draft_length_is_memory_worth(&p, 0.9));
    assert_true(ebb_draft_length_is_memory_worth(&p, 1));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_k),
        cmocka_unit_test(a_slow_draft_rests),
        cmocka_unit_test(it_learns_what_they_are_worth),
        cmocka_unit_test(a_drafter_that_loses_is_off),
        cmocka_unit_test(a_drafter_that_pays_stays),
        cmocka_unit_test(a_try_costs_little),
        cmocka_unit_test(a_stall_is_no_pace),
        cmocka_unit_test(a_chance_is_learned),
        cmocka_unit_test(a_pass_is_learned),
        cmocka_unit_test(a_branch_has_a_chance),
        cmocka_unit_test(it_stops_where_chances_are_small),
        cmocka_unit_test(catching_up_has_a_price),
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(it_may_not_be_worth_its_memory),
        cmocka_unit_test(useless_memory_is_given_back_early),
        cmocka_unit_test(bad_luck_does_not_cost_it_its_memory),
        cmocka_unit_test(two_pauses_are_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
