/* Scores in place of a router's (ebb_router_trace): asked once for each layer and position, and followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "open/engine_state.h"
#include "support/tiny_engine.h"

enum { N = 9, LAYERS = 3, EXPERTS = 6, USED = 2 };

typedef struct calls {
    uint32_t n[LAYERS][N + 1];
    bool     is_route;           /* experts 4 and 1; else the scores stay as they are */
} calls;

static void note_call(void *arg, uint32_t layer, uint32_t pos, float *scores)
{
    calls *c = arg;

    assert_in_range(layer, 0, LAYERS - 1);
    assert_in_range(pos, 0, N);
    c->n[layer][pos]++;
    for (uint32_t i = 0; c->is_route && i < EXPERTS; i++)
        scores[i] = i == 4 ? 2.0f : i == 1 ? 1.0f : -9.0f;
}

/* In an engine of its own: another would find what has been computed. */
static void compute(uint32_t n_resident, calls *c, float *logits)
{
    ebb_engine_opts opts = { .no_kv_cache = true, .no_speculation = true, .has_resident = true,
                             .resident = n_resident };
    ebb_tiny_opts tiny = { .arch = "qwen3moe", .n_layers = LAYERS, .n_expert = EXPERTS, .seed = 8 };
    ebb_router_trace trace = { note_call, c };
    ebb_token ids[N + 1];
    tiny_engine f;
    ebb_error err;

    fill_ids(ids, N + 1, 3);
    open_tiny_engine(&f, &tiny, &opts);
    assert_int_equal(f.engine->net.n_expert_used, USED);
    f.engine->run.moe.trace = c ? &trace : NULL;
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, &err), EBB_OK);
    assert_int_equal(ebb_session_append(f.s, ids[N], &err), EBB_OK);
    memcpy(logits, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *logits);
    if (c && c->is_route) {
        assert_int_equal(f.engine->run.moe.chosen[0], 4);
        assert_int_equal(f.engine->run.moe.chosen[1], 1);
    }
    close_tiny_engine(&f);
}

static void test_trace_is_followed(void **state)
{
    float plain[EBB_TINY_VOCAB], same[EBB_TINY_VOCAB], routed[EBB_TINY_VOCAB];

    (void)state;
    for (uint32_t n_resident = 0; n_resident <= LAYERS; n_resident += LAYERS) {
        calls watch = { 0 }, route = { .is_route = true };

        compute(n_resident, NULL, plain);
        compute(n_resident, &watch, same);
        compute(n_resident, &route, routed);
        assert_memory_equal(plain, same, sizeof plain);
        assert_memory_not_equal(plain, routed, sizeof plain);
        for (uint32_t l = 0; l < LAYERS; l++)
            for (uint32_t i = 0; i <= N; i++)
                assert_int_equal(watch.n[l][i], l < LAYERS - 1 || i >= N - 1);   /* the last layer: for logits */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trace_is_followed) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
