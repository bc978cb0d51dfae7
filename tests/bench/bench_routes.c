/* Answers of a mixture of experts whose router follows the routes of a trained one.
 *
 *     bench_routes MODEL TOKENS [RAM_MIB [TRACE.csv | - [plain]]]     RAM 0: what the machine has
 *
 * Random weights choose experts nearly alike for every token, or without any locality; both make
 * hit rates and speeds that no trained model has.  TRACE.csv has lines of
 * turn,phase,step,layer,slot,expert,...: step is the position.  What the trace does not say (later positions, more
 * layers, more slots) is generated with its locality: about 37 % of the selected experts were selected for the token
 * before, 73 % for one of the last eight, and a quarter of all experts gets 82 % of the work (Qwen3-30B-A3B and
 * Gemma 4 26B-A4B, 128 decoded tokens each).  The figures of what was generated are printed.
 *
 * Expert prefetch asks the model's own router and so learns that its predictions are wrong: the
 * speeds are those without it.  `plain`: without speculative decoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "ebb/stats.h"
#include "open/engine_state.h"

enum { PROMPT = 28, WINDOW = 8, MAX_SLOTS = 32 };
#define REPEATS_LAST 0.22        /* of the slots not left to popularity ... */
#define REPEATS_WINDOW 0.30      /* ... that repeat the last token's, or one of the window's */
#define SKEW 12                  /* the i-th most popular expert of X: (i + X / SKEW)^-2 */

typedef struct routes {
    uint32_t  n_pos, n_layers, n_expert, used;
    uint16_t *chosen;            /* [n_pos][n_layers][used]; NONE: not yet */
    double   *popular;           /* [X] sums of the popularity of the experts' ranks */
    uint16_t *ranked;            /* [n_layers][X] experts by rank */
    uint64_t  state;
} routes;
#define NONE UINT16_MAX

/* [0, 1): xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators"). */
static double draw_uniform(routes *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (double)(r->state * 2685821657736338717u >> 11) / 9007199254740992.0;
}

static uint16_t *route_of(const routes *r, uint32_t pos, uint32_t layer)
{
    return r->chosen + ((size_t)pos * r->n_layers + layer) * r->used;
}

static bool is_routed(const routes *r, const uint16_t *route, uint16_t expert)
{
    for (uint32_t i = 0; i < r->used; i++)
        if (route[i] == expert)
            return true;
    return false;
}

static uint16_t choose_popular(routes *r, uint32_t layer)
{
    double x = draw_uniform(r) * r->popular[r->n_expert - 1];
    uint32_t i = 0;

    while (i + 1 < r->n_expert && r->popular[i] < x)
        i++;
    return r->ranked[(size_t)layer * r->n_expert + i];
}

static uint16_t choose_next(routes *r, uint32_t pos, uint32_t layer)
{
    double x = draw_uniform(r);
    uint32_t back = pos < WINDOW ? pos : WINDOW, slot = (uint32_t)(draw_uniform(r) * r->used);

    if (pos > 0 && x < REPEATS_LAST)
        return route_of(r, pos - 1, layer)[slot];
    if (pos > 0 && x < REPEATS_LAST + REPEATS_WINDOW)
        return route_of(r, pos - 1 - (uint32_t)(draw_uniform(r) * back), layer)[slot];
    return choose_popular(r, layer);
}

static void fill_route(routes *r, uint32_t pos, uint32_t layer)
{
    uint16_t *route = route_of(r, pos, layer), next;

    for (uint32_t i = 0; i < r->used; i++) {
        if (route[i] != NONE)
            continue;
        do
            next = choose_next(r, pos, layer);
        while (is_routed(r, route, next));
        route[i] = next;
    }
}

static void rank_experts(routes *r)
{
    for (uint32_t l = 0; l < r->n_layers; l++) {
        uint16_t *at = r->ranked + (size_t)l * r->n_expert;

        for (uint32_t i = 0; i < r->n_expert; i++)
            at[i] = (uint16_t)i;
        for (uint32_t i = r->n_expert - 1; i > 0; i--) {
            uint32_t k = (uint32_t)(draw_uniform(r) * (i + 1));
            uint16_t other = at[k];

            at[k] = at[i];
            at[i] = other;
        }
    }
    for (uint32_t i = 0; i < r->n_expert; i++) {
        double rank = i + (double)r->n_expert / SKEW;

        r->popular[i] = (i > 0 ? r->popular[i - 1] : 0) + 1 / (rank * rank);
    }
}

static bool read_trace(routes *r, const char *path)
{
    unsigned pos, layer, slot, expert;
    char line[256];
    FILE *f = fopen(path, "r");

    if (!f)
        return false;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%*u,%*u,%u,%u,%u,%u", &pos, &layer, &slot, &expert) == 4 && pos < r->n_pos &&
            layer < r->n_layers && slot < r->used && expert < r->n_expert)
            route_of(r, pos, layer)[slot] = (uint16_t)expert;
    fclose(f);
    return true;
}

static bool is_in_window(const routes *r, uint32_t pos, uint32_t layer, uint32_t n, uint16_t expert)
{
    for (uint32_t i = 1; i <= n; i++)
        if (is_routed(r, route_of(r, pos - i, layer), expert))
            return true;
    return false;
}

static void show_locality(const routes *r)
{
    uint64_t n = 0, n_last = 0, n_window = 0;

    for (uint32_t pos = PROMPT + WINDOW; pos < r->n_pos; pos++)
        for (uint32_t l = 0; l < r->n_layers; l++)
            for (uint32_t i = 0; i < r->used; i++, n++) {
                n_last += is_in_window(r, pos, l, 1, route_of(r, pos, l)[i]);
                n_window += is_in_window(r, pos, l, WINDOW, route_of(r, pos, l)[i]);
            }
    printf("routes: %u of %u experts, %.1f %% as for the last token, %.1f %% as for one of the last %d\n", r->used,
           r->n_expert, 100.0 * (double)n_last / (double)n, 100.0 * (double)n_window / (double)n, WINDOW);
}

static bool make_routes(routes *r, const ebb_net *net, uint32_t n_pos, const char *trace)
{
    size_t n = (size_t)n_pos * (net->n_layers + net->n_mtp_layers) * net->n_expert_used;

    *r = (routes){ .n_pos = n_pos, .n_layers = net->n_layers + net->n_mtp_layers, .n_expert = net->n_expert,
                   .used = net->n_expert_used, .state = 20260715 };
    r->chosen = malloc(n * sizeof *r->chosen);
    r->popular = calloc(r->n_expert, sizeof *r->popular);
    r->ranked = calloc((size_t)r->n_layers * r->n_expert, sizeof *r->ranked);
    if (!r->chosen || !r->popular || !r->ranked)
        return false;
    memset(r->chosen, 0xFF, n * sizeof *r->chosen);
    rank_experts(r);
    if (strcmp(trace, "-") != 0 && !read_trace(r, trace))
        return false;
    for (uint32_t pos = 0; pos < n_pos; pos++)
        for (uint32_t l = 0; l < r->n_layers; l++)
            fill_route(r, pos, l);
    show_locality(r);
    return true;
}

static void score_route(void *arg, uint32_t layer, uint32_t pos, float *scores)
{
    const routes *r = arg;
    const uint16_t *route = route_of(r, pos % r->n_pos, layer % r->n_layers);

    for (uint32_t i = 0; i < r->n_expert; i++)
        scores[i] = -20;
    for (uint32_t i = 0; i < r->used; i++)
        scores[route[i]] = 1 - 0.2f * (float)i;
}

static int answer(ebb_engine *e, ebb_session *s, uint32_t n, ebb_error *err)
{
    ebb_sampler_params greedy = ebb_sampler_params_default();
    ebb_token prompt[PROMPT];
    ebb_sampler *sampler;
    ebb_stats before, now;
    double begin;

    greedy.temp = 0;
    sampler = ebb_sampler_new(&greedy, e->net.n_vocab);
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = (ebb_token)(1 + (i * 2654435761u) % 20000);
    if (!sampler || ebb_session_sync(s, prompt, PROMPT, NULL, err) != EBB_OK)
        return 1;
    ebb_engine_stats(e, &before);
    begin = ebb_clock_s();
    for (uint32_t i = 0; i < n; i++) {
        if (ebb_session_append(s, ebb_session_sample(s, sampler), err) != EBB_OK)
            return 1;
        if ((i + 1) % 32 != 0 && i + 1 != n)
            continue;
        ebb_engine_stats(e, &now);
        printf("%4u: %5.2f tok/s, %5.0f MB read a token, %llu of %llu draft tokens accepted", i + 1,
               (i % 32 + 1) / (ebb_clock_s() - begin),
               (double)(now.read_bytes - before.read_bytes) / 1e6 / (i % 32 + 1),
               (unsigned long long)(now.n_accepted - before.n_accepted),
               (unsigned long long)(now.n_drafted - before.n_drafted));
        if (now.experts_selected > before.experts_selected)
            printf(", %.1f %% of the experts in memory (passes of one token)",
                   100.0 * (double)(now.experts_resident - before.experts_resident) /
                   (double)(now.experts_selected - before.experts_selected));
        printf("\n");
        before = now;
        begin = ebb_clock_s();
    }
    ebb_sampler_free(sampler);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    ebb_engine_opts o = { .no_kv_cache = true, .n_ctx = PROMPT + n + 64 };
    ebb_router_trace trace = { .score = score_route };
    ebb_engine *e = NULL;
    ebb_session *s = NULL;
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    ebb_machine machine;
    ebb_plan p;
    routes r;
    int status = 1;

    if (argc < 3 || n == 0) {
        fprintf(stderr, "bench_routes MODEL TOKENS [RAM_MIB [TRACE.csv | - [plain]]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    o.ram_bytes = argc > 3 ? (uint64_t)atoi(argv[3]) << 20 : 0;
    o.no_speculation = argc > 5;
    if (ebb_model_open(argv[1], &m, &err) == EBB_OK && ebb_engine_open(m, &o, NULL, NULL, &e, &err) == EBB_OK &&
        ebb_session_new(e, &s, &err) == EBB_OK && e->net.n_expert > 0 &&
        make_routes(&r, &e->net, o.n_ctx, argc > 4 ? argv[4] : "-")) {
        ebb_engine_get_plan(e, &p, &machine);
        printf("%s: %u of %u layers, experts' cache %.2f of %.2f GB; predicted %.2f tok/s; %s\n", ebb_tier_name(p.tier),
               p.n_resident, p.n_layers, (double)p.expert_bytes / 1e9, (double)p.expert_disk_bytes / 1e9,
               p.predicted_decode_tok_s, p.why);
        trace.arg = &r;
        e->run.moe.trace = &trace;
        status = answer(e, s, n, &err);
    }
    if (status)
        fprintf(stderr, "%s\n", err.msg[0] ? err.msg : "not a mixture of experts, or no such trace");
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
    return status;
}
