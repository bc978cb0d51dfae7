/* Decode behind a long context, beside decode at the beginning: milliseconds for a token and bytes of weights read
 * for it, the depths in turn.
 *
 *     bench_depth [-r ROUNDS] [-n TOKENS] [-t THREADS] [-m MIB] [-x] MODEL KV DEPTH...
 *     bench_depth -r 5 model.gguf q8_0 4096 16384
 *
 * -m: with so much memory; -x: in the mode max-context, with the longest context.
 *
 * The cache is not computed but filled with equal numbers, which changes no time: 16,384 positions take no minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/median.h"
#include "ebb/session.h"
#include "ebb/stats.h"
#include "open/engine_state.h"

enum { DEPTHS_MAX = 8, ROUNDS_MAX = 64 };
#define STEP 512u                /* positions at a time, as a prompt's */
#define FILL 0x2C                /* of f16, and as the scale of a quantized row: 0.065 */

typedef struct bench {
    ebb_engine  *engine;
    ebb_session *session;
    uint32_t     n_tokens, n_rounds, n_depths, depths[DEPTHS_MAX];
    double       token_ms[DEPTHS_MAX][ROUNDS_MAX], attend_ms[DEPTHS_MAX][ROUNDS_MAX];
    double       token_read[DEPTHS_MAX];     /* bytes, of the last round */
} bench;

/* What stands in the blocks from entry `from` on; those that are in a file are older. */
static void fill_blocks(bench *b, uint32_t from)
{
    const ebb_block_table *t = &b->session->table;
    ebb_kv *kv = b->engine->kv;

    for (int group = 0; group < EBB_KV_GROUPS; group++)
        for (uint32_t i = from; i < t->n_blocks && ebb_kv_group_block_bytes(kv, group); i++)
            if (t->blocks[group][i] != EBB_KV_NONE)
                memset(ebb_kv_data(kv, group, t->blocks[group][i]), FILL, ebb_kv_group_block_bytes(kv, group));
}

/* Positions [0, n) of the session, as if they had been computed: where there is no memory for all of them, the first
 * ones go to a file. */
static ebb_status fill(bench *b, uint32_t n, ebb_error *err)
{
    ebb_session *s = b->session;
    ebb_status st = EBB_OK;

    ebb_session_clear(s);
    for (uint32_t from = 0; from < n && st == EBB_OK; from = s->table.n_pos) {
        uint32_t to = n - from < STEP ? n : from + STEP;

        st = ebb_session_reserve(s, to, err);
        if (st != EBB_OK)
            break;
        fill_blocks(b, from / EBB_KV_BLOCK);
        for (uint32_t i = from; i < to; i++)
            s->ids[i] = (ebb_token)(300 + i % 64);
        ebb_prefix_hash_blocks(s);
    }
    return st;
}

static ebb_status run(bench *b, uint32_t depth, uint32_t round, ebb_error *err)
{
    ebb_stats before, after;
    double begin;
    ebb_status st = fill(b, b->depths[depth], err);

    if (st == EBB_OK)
        st = ebb_session_append(b->session, 301, err);   /* the first one finds cold caches */
    ebb_engine_stats(b->engine, &before);
    begin = ebb_clock_s();
    for (uint32_t i = 0; i < b->n_tokens && st == EBB_OK; i++)
        st = ebb_session_append(b->session, (ebb_token)(302 + i), err);
    b->token_ms[depth][round] = 1e3 * (ebb_clock_s() - begin) / b->n_tokens;
    ebb_engine_stats(b->engine, &after);
    b->attend_ms[depth][round] = 1e3 * (after.time_s[EBB_TIME_ATTENTION] - before.time_s[EBB_TIME_ATTENTION]) /
                                 b->n_tokens;
    b->token_read[depth] = (double)(after.read_bytes - before.read_bytes) / b->n_tokens;
    return st;
}

static int usage(void)
{
    fprintf(stderr, "bench_depth [-r ROUNDS] [-n TOKENS] [-t THREADS] [-m MIB] [-x] MODEL KV DEPTH...\n");
    return 2;
}

static ebb_status measure(bench *b, ebb_error *err)
{
    ebb_status st = ebb_session_new(b->engine, &b->session, err);

    for (uint32_t round = 0; round < b->n_rounds && st == EBB_OK; round++)
        for (uint32_t i = 0; i < b->n_depths && st == EBB_OK; i++)
            st = run(b, i, round, err);
    return st;
}

static void show(bench *b, const char *kv)
{
    double first = 0;

    for (uint32_t i = 0; i < b->n_depths; i++) {
        double ms = ebb_median(b->token_ms[i], b->n_rounds);

        first = i == 0 ? ms : first;
        printf("%s behind %5u: %7.2f ms a token (%.3f of the speed behind %u), attention %6.2f ms, %.1f MB read\n", kv,
               b->depths[i], ms, first / ms, b->depths[0], ebb_median(b->attend_ms[i], b->n_rounds),
               b->token_read[i] / 1e6);
    }
}

static bool choose_kv(const char *name, ebb_engine_opts *o)
{
    static const char *const names[] = { [EBB_KV_F32] = "f32", [EBB_KV_F16] = "f16", [EBB_KV_Q8_0] = "q8_0",
                                         [EBB_KV_Q4_0] = "q4_0" };

    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            o->has_kv = true;
            o->kv_k = o->kv_v = (ebb_kv_type)i;
        }
    return o->has_kv;
}

int main(int argc, char **argv)
{
    ebb_engine_opts o = { .no_kv_cache = true, .no_speculation = true };
    bench b = { .n_tokens = 4, .n_rounds = 5, .n_depths = 1, .depths = { 32 } };
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    ebb_status st;
    int c;

    while ((c = getopt(argc, argv, "r:n:t:m:x")) != -1) {
        uint32_t n = c == '?' ? 0 : c == 'x' ? 1 : (uint32_t)strtoul(optarg, NULL, 10);

        if (n == 0 || (c == 'r' && n > ROUNDS_MAX))
            return usage();
        switch (c) {
        case 'x': o.mode = EBB_MODE_MAX_CONTEXT; break;
        case 'm': o.ram_bytes = (uint64_t)n << 20; break;
        case 'r': b.n_rounds = n; break;
        case 'n': b.n_tokens = n; break;
        default:  o.n_threads = n; break;
        }
    }
    if (argc - optind < 3 || argc - optind - 2 >= DEPTHS_MAX || !choose_kv(argv[optind + 1], &o))
        return usage();
    for (int i = optind + 2; i < argc; i++)
        b.depths[b.n_depths++] = (uint32_t)strtoul(argv[i], NULL, 10);
    if (o.mode != EBB_MODE_MAX_CONTEXT)
        o.n_ctx = b.depths[b.n_depths - 1] + 2 * b.n_tokens + 64;
    st = ebb_model_open(argv[optind], &m, &err);
    if (st == EBB_OK)
        st = ebb_engine_open(m, &o, NULL, NULL, &b.engine, &err);
    if (st == EBB_OK)
        st = measure(&b, &err);
    if (st == EBB_OK)
        show(&b, argv[optind + 1]);
    else
        fprintf(stderr, "%s\n", err.msg);
    ebb_session_free(b.session);
    ebb_engine_close(b.engine);
    ebb_model_close(m);
    return st != EBB_OK;
}
