/* Trained models of real text: prompts, likelihoods and greedy continuations as
 * llama2.c computes them (../shared/data/models/golden_llama2c.json). */
#include "ebb_test.h"

#include <math.h>

#include <jansson.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"

#define MAX_IDS 400

static size_t read_story_ids(const json_t *list, ebb_token *out)
{
    size_t n = json_array_size(list);

    assert_true(n <= MAX_IDS);
    for (size_t i = 0; i < n; i++)
        out[i] = (ebb_token)json_integer_value(json_array_get(list, i));
    return n;
}

typedef struct likelihood {
    const ebb_token *ids;
    size_t n;
    double nll;
} likelihood;

static double log_sum_exp(const float *x, size_t n)
{
    double top = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

static void add_nll(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    likelihood *l = arg;

    if (pos + 1 < l->n)
        l->nll += log_sum_exp(logits, n_vocab) - logits[l->ids[pos + 1]];
}

static double read_number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* From the ids that stand, the most likely token again and again. */
static void check_greedy(ebb_session *s, size_t n_vocab, const json_t *want)
{
    const json_t *list = json_object_get(want, "greedy_ids");
    ebb_sampler_params p = { .repeat_penalty = 1 };
    ebb_sampler *sampler = ebb_sampler_new(&p, n_vocab);
    ebb_token ids[MAX_IDS];
    size_t n = read_story_ids(list, ids);

    for (size_t i = 0; i < n && read_number(want, "min_greedy_margin") > 1e-3; i++) {
        assert_int_equal(ebb_sampler_sample(sampler, ebb_session_logits(s), NULL, 0), ids[i]);
        assert_int_equal(ebb_session_append(s, ids[i], NULL), EBB_OK);
    }
    ebb_sampler_free(sampler);
}

static void check_prompt(ebb_session *s, size_t n_vocab, const json_t *want)
{
    const json_t *first = json_object_get(want, "last_logits_first8");
    ebb_token ids[MAX_IDS];
    likelihood l = { .ids = ids, .n = read_story_ids(json_object_get(want, "prompt_ids"), ids) };

    assert_int_equal(ebb_session_eval(s, ids, l.n, 16, add_nll, &l, NULL), EBB_OK);
    assert_true(fabs(l.nll - read_number(want, "prompt_nll_sum")) < 1e-3);
    for (size_t i = 0; i < 8; i++)
        assert_true(fabs(ebb_session_logits(s)[i] - json_number_value(json_array_get(first, i))) < 1e-4);
    assert_true(fabs(log_sum_exp(ebb_session_logits(s), n_vocab) - read_number(want, "last_logsumexp")) < 1e-4);
    check_greedy(s, n_vocab, want);
}

static void check_model(const char *name, const json_t *prompts)
{
    ebb_engine_opts o = { .n_ctx = 256, .has_kv = true, .kv_k = EBB_KV_F32, .kv_v = EBB_KV_F32, .n_threads = 2 };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    ebb_session *s = NULL;
    ebb_model *m = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/data/models/%s", ebb_test_shared(), name);
    if (ebb_model_open(path, &m, &err) != EBB_OK || ebb_engine_open(m, &o, NULL, NULL, &e, &err) != EBB_OK)
        fail_msg("%s: %s", name, err.msg);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    for (size_t i = 0; i < json_array_size(prompts); i++)
        check_prompt(s, ebb_model_get_info(m)->n_vocab, json_array_get(prompts, i));
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
}

static void test_llama2c(void **state)
{
    json_t *golden = json_load_file(ebb_test_shared_path("data/models/golden_llama2c.json"), 0, NULL);
    const char *name;
    json_t *prompts;

    (void)state;
    assert_non_null(golden);
    json_object_foreach(json_object_get(golden, "models"), name, prompts)
        check_model(name, prompts);
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_llama2c) };

    return cmocka_run_group_tests_name("stories", tests, NULL, NULL);
}
