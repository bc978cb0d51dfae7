/* The sampler: which tokens can come, how often, that seed and position decide and nothing else, and that two who run
 * the same race agree. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/session.h"

#define V 6

static const float logits[V] = { 1.0f, 3.0f, 2.0f, 3.0f, -4.0f, 0.0f };

/* How often each token comes at n positions; with `ids` at their end, n times. */
static void draw(ebb_sampler_params p, const ebb_token *ids, size_t n_ids, int n, int *count)
{
    ebb_sampler *s = ebb_sampler_new(&p, V);

    assert_non_null(s);
    memset(count, 0, V * sizeof *count);
    for (int i = 0; i < n; i++)
        count[ebb_sampler_sample(s, logits, ids, ids ? n_ids : (size_t)i)]++;
    ebb_sampler_free(s);
}

static ebb_sampler_params plain(void)
{
    return (ebb_sampler_params){ .temp = 1, .top_p = 1, .repeat_penalty = 1, .repeat_last_n = 64, .seed = 7 };
}

static void test_greedy_takes_the_lowest_of_equals(void **state)
{
    ebb_sampler_params p = plain();
    int count[V];

    (void)state;
    p.temp = 0;
    draw(p, NULL, 0, 10, count);
    assert_int_equal(count[1], 10);
}

static void test_shares_follow_the_logits(void **state)
{
    double sum = 0;
    int count[V];

    (void)state;
    draw(plain(), NULL, 0, 60000, count);
    for (int i = 0; i < V; i++)
        sum += exp((double)logits[i]);
    for (int i = 0; i < V; i++)
        assert_true(fabs(count[i] / 60000.0 - exp((double)logits[i]) / sum) < 0.01);
}

static void test_temperature(void **state)
{
    ebb_sampler_params p = plain();
    int count[V];

    (void)state;
    p.temp = 0.5f;
    p.top_k = 3;                                 /* 1, 3 with e^6 and 2 with e^4 */
    draw(p, NULL, 0, 60000, count);
    assert_true(fabs(count[2] / 60000.0 - exp(4) / (exp(4) + 2 * exp(6))) < 0.01);
    assert_int_equal(count[0] + count[4] + count[5], 0);
}

static void test_cuts(void **state)
{
    ebb_sampler_params p = plain();
    int count[V];

    (void)state;
    p.top_k = 1;
    draw(p, NULL, 0, 1000, count);
    assert_int_equal(count[1], 1000);
    p = plain();
    p.top_p = 0.7f;                              /* two of e^3 have 0.75 */
    draw(p, NULL, 0, 1000, count);
    assert_int_equal(count[1] + count[3], 1000);
    assert_true(count[1] > 400 && count[3] > 400);
    p.top_p = 0.8f;
    draw(p, NULL, 0, 1000, count);
    assert_true(count[2] > 0);
    assert_int_equal(count[0], 0);
    p = plain();
    p.min_p = 0.3f;                              /* e^2 has 0.37 of the best, e^1 0.14 */
    draw(p, NULL, 0, 1000, count);
    assert_int_equal(count[1] + count[2] + count[3], 1000);
    assert_true(count[2] > 0);
    p.top_p = 0.0f;                              /* the best one is always left */
    draw(p, NULL, 0, 100, count);
    assert_int_equal(count[1], 100);
}

static void test_repeat_penalty(void **state)
{
    static const ebb_token recent[] = { 1, 1, 2, 9999, -1, 3, 3 };
    ebb_sampler_params p = plain();
    int count[V];

    (void)state;
    p.temp = 0;
    p.repeat_penalty = 1.4f;                     /* 3 / 1.4 = 2.14, counted once; 2 / 1.4 */
    draw(p, recent, 7, 1, count);
    assert_int_equal(count[1], 1);
    p.repeat_penalty = 4;
    draw(p, recent, 7, 1, count);                /* all but 0 and below: 1.0 is the best now */
    assert_int_equal(count[0], 1);
    p.repeat_last_n = 2;                         /* only the last two */
    draw(p, recent, 7, 1, count);
    assert_int_equal(count[1], 1);
}

static void test_same_seed_same_tokens(void **state)
{
    ebb_sampler_params p = plain();
    ebb_sampler *a = ebb_sampler_new(&p, V), *b = ebb_sampler_new(&p, V), *c;
    int n_other = 0;

    (void)state;
    p.seed = 8;
    c = ebb_sampler_new(&p, V);
    for (int i = 0; i < 200; i++) {
        ebb_token id = ebb_sampler_sample(a, logits, NULL, (size_t)i);

        assert_int_equal(ebb_sampler_sample(b, logits, NULL, (size_t)i), id);
        n_other += ebb_sampler_sample(c, logits, NULL, (size_t)i) != id;
    }
    assert_true(n_other > 50);
    ebb_sampler_free(a);
    ebb_sampler_free(b);
    ebb_sampler_free(c);
}

/* In any order, as often as one likes: what was sampled before does not matter. */
static void test_a_position_decides(void **state)
{
    enum { N = 300 };
    ebb_sampler_params p = plain();
    ebb_sampler *a = ebb_sampler_new(&p, V), *b = ebb_sampler_new(&p, V);
    ebb_token forward[N];
    int n_other = 0;

    (void)state;
    for (size_t i = 0; i < N; i++)
        forward[i] = ebb_sampler_sample(a, logits, NULL, i);
    for (size_t i = N; i-- > 0;)
        assert_int_equal(ebb_sampler_sample(b, logits, NULL, i), forward[i]);
    for (size_t i = 1; i < N; i++)
        n_other += forward[i] != forward[i - 1];
    assert_true(n_other > N / 4);
    ebb_sampler_free(a);
    ebb_sampler_free(b);
}

/* Two distributions p and q agree in sum_x 1 / sum_y max(p_y / p_x, q_y / q_x) of the positions (exponential clocks),
 * though the tokens below stand in another order there. */
static void test_like_weights_agree(void **state)
{
    static const float other[V] = { 1.1f, 2.7f, 2.4f, 3.1f, -3.0f, 0.4f };
    enum { N = 40000 };
    ebb_sampler_params p = plain();
    ebb_sampler *a = ebb_sampler_new(&p, V), *b = ebb_sampler_new(&p, V);
    double expected = 0;
    int n_same = 0;

    (void)state;
    for (int x = 0; x < V; x++) {
        double sum = 0;

        for (int y = 0; y < V; y++)
            sum += fmax(exp((double)logits[y] - logits[x]), exp((double)other[y] - other[x]));
        expected += 1 / sum;
    }
    for (size_t i = 0; i < N; i++)
        n_same += ebb_sampler_sample(a, logits, NULL, i) == ebb_sampler_sample(b, other, NULL, i);
    assert_true(expected < 0.9);
    assert_true(fabs((double)n_same / N - expected) < 0.01);
    ebb_sampler_free(a);
    ebb_sampler_free(b);
}

static void test_strange_logits(void **state)
{
    float x[V] = { NAN, -INFINITY, 1, NAN, -INFINITY, -INFINITY };
    ebb_sampler_params p = ebb_sampler_params_default();
    ebb_sampler *s;

    (void)state;
    p.seed = 1;
    s = ebb_sampler_new(&p, V);
    assert_int_equal(ebb_sampler_sample(s, x, NULL, 0), 2);
    for (int i = 0; i < V; i++)
        x[i] = -INFINITY;
    assert_in_range(ebb_sampler_sample(s, x, NULL, 0), 0, V - 1);
    ebb_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_takes_the_lowest_of_equals), cmocka_unit_test(test_shares_follow_the_logits),
        cmocka_unit_test(test_temperature),                       cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_repeat_penalty),                    cmocka_unit_test(test_same_seed_same_tokens),
        cmocka_unit_test(test_a_position_decides),                cmocka_unit_test(test_like_weights_agree),
        cmocka_unit_test(test_strange_logits),
    };

    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
