/* Types of the KV cache: what they cost in bytes and in quality, and which the
 * plan does not take. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "support/tiny_model.h"

#define GUIDE  "models/guide.gguf"
#define N_CTX  1024u
#define ANSWER 60u               /* tokens of an answer at most */

static const char *const questions[] = {
    "How do I change the theme?", "how do i leave", "What is kept when I leave?", "How do I edit an old question?",
    "Why is the first answer slow?", "what does the panel show", "Can I use another model?", "Who wrote Hamlet?",
};

typedef struct quality {
    const ebb_token *ids;
    float           *logits;     /* [n][V] */
    double           loss;
} quality;

static void see(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    quality *q = arg;
    double max = -INFINITY, sum = 0;

    memcpy(q->logits + pos * n_vocab, logits, n_vocab * sizeof *logits);
    for (size_t i = 0; i < n_vocab; i++)
        max = logits[i] > max ? logits[i] : max;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp(logits[i] - max);
    q->loss += log(sum) + max - logits[q->ids[pos + 1]];
}

static quality measure(const ebb_model *m, ebb_kv_type type, const ebb_token *ids, size_t n)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 2, .has_kv = true, .kv_k = type, .kv_v = type,
                          .no_kv_cache = true };
    quality q = { .ids = ids, .logits = calloc(n * ebb_model_get_info(m)->n_vocab, sizeof *q.logits) };
    ebb_engine *e;
    ebb_session *s;

    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    assert_int_equal(ebb_session_eval(s, ids, n, 0, see, &q, NULL), EBB_OK);
    ebb_session_free(s);
    ebb_engine_close(e);
    q.loss /= (double)n;
    return q;
}

static double nmse(const quality *a, const quality *b, size_t n)
{
    double error = 0, power = 0;

    for (size_t i = 0; i < n; i++) {
        double d = (double)a->logits[i] - b->logits[i];

        error += d * d;
        power += (double)b->logits[i] * b->logits[i];
    }
    return error / power;
}

/* A conversation of which the guide writes the answers; returns the tokens. */
static size_t converse(const ebb_model *m, ebb_token *ids)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 2, .no_kv_cache = true };
    ebb_sampler_params greedy = ebb_sampler_params_default();
    ebb_sampler *sampler;
    ebb_engine *e;
    ebb_session *s;
    size_t n = 0, n_more;

    greedy.temp = 0;
    sampler = ebb_sampler_new(&greedy, ebb_model_get_info(m)->n_vocab);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        char turn[200];

        snprintf(turn, sizeof turn, "%s<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n",
                 i ? "<|im_end|>\n" : "", questions[i]);
        assert_int_equal(ebb_model_tokenize(m, turn, strlen(turn), EBB_TOK_SPECIAL, ids + n, N_CTX - n, &n_more, NULL),
                         EBB_OK);
        n += n_more;
        assert_int_equal(ebb_session_sync(s, ids, n, NULL, NULL), EBB_OK);
        for (uint32_t k = 0; k < ANSWER; k++) {
            ebb_token id = ebb_sampler_sample(sampler, ebb_session_logits(s), ids, n);

            if (ebb_model_is_eog(m, id))
                break;
            ids[n++] = id;
            assert_int_equal(ebb_session_append(s, id, NULL), EBB_OK);
        }
    }
    ebb_sampler_free(sampler);
    ebb_session_free(s);
    ebb_engine_close(e);
    return n;
}

/* Against f16, on ids[0..n]. */
static void check_quality(const ebb_model *m, const char *name, const ebb_token *ids, size_t n)
{
    size_t n_logits = n * ebb_model_get_info(m)->n_vocab;
    quality f16, q8, q4;

    f16 = measure(m, EBB_KV_F16, ids, n);
    q8 = measure(m, EBB_KV_Q8_0, ids, n);
    q4 = measure(m, EBB_KV_Q4_0, ids, n);
    print_message("%s, %zu tokens: perplexity %.3f, q8_0 %+.3f %%, q4_0 %+.3f %%; NMSE %.2g, %.2g\n", name, n,
                  exp(f16.loss),
                  100 * (exp(q8.loss - f16.loss) - 1), 100 * (exp(q4.loss - f16.loss) - 1), nmse(&q8, &f16, n_logits),
                  nmse(&q4, &f16, n_logits));
    assert_true(nmse(&q8, &f16, n_logits) <= 1e-3);
    assert_true(exp(q8.loss - f16.loss) - 1 <= 0.005);   /* chance may make it better; that it differs little is the
                                                            NMSE's */
    assert_true(exp(q4.loss - f16.loss) - 1 <= 0.03);
    assert_true(nmse(&q4, &f16, n_logits) <= 0.03);
    free(f16.logits);
    free(q8.logits);
    free(q4.logits);
}

static void test_quality_on_the_guide(void **state)
{
    ebb_token ids[N_CTX];
    ebb_model *m;

    (void)state;
    assert_int_equal(ebb_model_open(GUIDE, &m, NULL), EBB_OK);
    check_quality(m, "guide", ids, converse(m, ids) - 1);
    ebb_model_close(m);
}

/* Sentences as these models know them; returns the tokens. */
static size_t tell(const ebb_model *m, ebb_token *ids, size_t cap)
{
    static const char *const who[] = { "Lily", "Tom", "Max", "the dog", "a little girl", "his friend", "her mom" };
    static const char *const did[] = { "wanted to play", "went to the park", "saw a big tree", "found a red ball",
                                       "said hello",     "ran home",         "felt sad" };
    static const char *const how[] = { "in the sun", "and smiled", "because it was late", "all day long",
                                       "with a cat" };
    char text[6000];
    size_t at = 0, n;

    for (unsigned i = 0; at + 100 < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s %s.%s", i % 9 ? "" : "Once upon a time, ",
                               who[i * 5 % 7], did[i * 3 % 7], how[i * 2 % 5], i % 7 == 6 ? "\n" : " ");
    assert_int_equal(ebb_model_tokenize(m, text, at, EBB_TOK_BOS, ids, cap, &n, NULL), EBB_OK);
    cap = N_CTX < ebb_model_get_info(m)->n_ctx_train ? N_CTX : ebb_model_get_info(m)->n_ctx_train;
    return n < cap ? n : cap;
}

/* Heads of 8 and of 16 elements: a row of the cache holds several. */
static void test_quality_with_narrow_heads(void **state)
{
    static const char *const names[] = { "data/models/stories260K.gguf", "data/models/babyllama-tok105-f32.gguf" };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        static ebb_token ids[8000];
        ebb_model *m;

        assert_int_equal(ebb_model_open(ebb_test_shared_path(names[i]), &m, NULL), EBB_OK);
        check_quality(m, names[i], ids, tell(m, ids, 8000) - 1);
        ebb_model_close(m);
    }
}

/* -- What the plan takes ----------------------------------------------------------------- */

static ebb_plan plan(const ebb_tiny_opts *tiny, ebb_kv_type k, ebb_kv_type v)
{
    ebb_engine_opts o = { .n_ctx = 256, .has_kv = true, .kv_k = k, .kv_v = v };
    ebb_machine machine = { .available_bytes = (uint64_t)1 << 32, .n_cpus = 2 };
    char *bytes;
    ebb_model *m = ebb_tiny_open(tiny, &bytes);
    ebb_plan p;

    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    ebb_model_close(m);
    free(bytes);
    return p;
}

static void test_types_that_hurt_are_not_taken(void **state)
{
    ebb_tiny_opts llama = { .type = EBB_TYPE_Q8_0 }, qwen2 = { .arch = "qwen2", .type = EBB_TYPE_Q8_0 };
    ebb_tiny_opts sinks = { .arch = "gpt-oss", .type = EBB_TYPE_Q8_0 };
    ebb_plan p = plan(&llama, EBB_KV_Q4_0, EBB_KV_Q4_0);

    (void)state;
    assert_int_equal(p.kv_k, EBB_KV_Q4_0);
    assert_null(strstr(p.why, "stays"));
    p = plan(&qwen2, EBB_KV_Q4_0, EBB_KV_Q4_0);
    assert_int_equal(p.kv_k, EBB_KV_Q8_0);
    assert_int_equal(p.kv_v, EBB_KV_Q4_0);
    assert_non_null(strstr(p.why, "K stays q8_0"));
    p = plan(&sinks, EBB_KV_Q8_0, EBB_KV_F32);
    assert_int_equal(p.kv_k, EBB_KV_F16);
    assert_int_equal(p.kv_v, EBB_KV_F32);
    assert_non_null(strstr(p.why, "sinks"));
}

/* 34 bytes for 32 elements of q8_0, 18 of q4_0. */
static void test_bytes_are_those_of_the_formula(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    uint64_t f16 = plan(&tiny, EBB_KV_F16, EBB_KV_F16).kv_bytes;

    (void)state;
    assert_int_equal(plan(&tiny, EBB_KV_Q8_0, EBB_KV_Q8_0).kv_bytes * 64, f16 * 34);
    assert_int_equal(plan(&tiny, EBB_KV_Q4_0, EBB_KV_Q4_0).kv_bytes * 64, f16 * 18);
    assert_int_equal(plan(&tiny, EBB_KV_Q8_0, EBB_KV_Q4_0).kv_bytes * 128, f16 * (34 + 18));
    assert_int_equal(plan(&tiny, EBB_KV_F32, EBB_KV_F32).kv_bytes, f16 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quality_on_the_guide),
        cmocka_unit_test(test_quality_with_narrow_heads),
        cmocka_unit_test(test_types_that_hurt_are_not_taken),
        cmocka_unit_test(test_bytes_are_those_of_the_formula),
    };

    return cmocka_run_group_tests_name("kv types", tests, NULL, NULL);
}
