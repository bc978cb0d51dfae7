/* ebb bench: prefill and decode, measured the way they are used. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "cli.h"
#include "ebb/experimental/plan.h"

#define LEAST_READ ((uint64_t)256 << 20)

typedef struct bench {
    uint32_t   n_prompt, n_gen, depth, runs;
    double     prefill_tok_s, decode_tok_s, load_s, first_token_s;
    double     predicted_prefill_tok_s;          /* of the same prompts */
    uint64_t   read_bytes;       /* of one decoded token */
    uint32_t   passes;           /* for all tokens that were decoded */
    /* Experts of one decoded token: in memory, being prefetched, prefetched in all; of those selected. */
    double     here, ahead, guessed;
    double     ms, spent_ms[EBB_TIME_COUNT], waited_ms;      /* the same, of the last run */
    ebb_token *ids;
    size_t     n_ids;
    ebb_plan   plan;             /* as it was before the first token */
    ebb_machine machine;
    double     bare_bytes_s;     /* of the reader alone, right behind the runs; 0: nothing was streamed */
    ebb_sampler *chooser;        /* of a draft model's host: text that it writes itself; else NULL, ids of `ids` */
    ebb_model *draft;
    double     bound_tok_s;      /* what disk and memory allow: 1 / max(S / Bd, F / Bm) */
} bench;

/* Any ids do: speed depends on the shapes.  The first differs by run, so that no prefix is reused. */
static void fill_ids(bench *b, uint32_t n_vocab, uint32_t run)
{
    uint64_t x = 0x9E3779B97F4A7C15u * (run + 1);

    for (size_t i = 0; i < b->n_ids; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (ebb_token)((x >> 33) % n_vocab);
    }
}

/* Time and bytes of a decoded token. */
static void divide_up(bench *b, const ebb_stats *before, const ebb_stats *after, double seconds)
{
    b->passes += (uint32_t)(after->n_passes - before->n_passes);
    b->read_bytes = (after->read_bytes - before->read_bytes) / b->n_gen;
    if (after->experts_selected > before->experts_selected) {
        double n = (double)(after->experts_selected - before->experts_selected);

        b->here = (double)(after->experts_resident - before->experts_resident) / n;
        b->ahead = (double)(after->experts_prefetched - before->experts_prefetched) / n;
        b->guessed = (double)(after->experts_prefetch_reads - before->experts_prefetch_reads) / n;
    }
    b->ms = 1e3 * seconds / b->n_gen;
    for (int i = 0; i < EBB_TIME_COUNT; i++)
        b->spent_ms[i] = 1e3 * (after->time_s[i] - before->time_s[i]) / b->n_gen;
    b->waited_ms = 1e3 * (after->pool_wait_s - before->pool_wait_s) / b->n_gen;
}

/* The next token: any, or the likeliest. */
static ebb_token next_id(const bench *b, ebb_session *s, uint32_t i)
{
    return b->chooser ? ebb_session_sample(s, b->chooser) : b->ids[(b->depth + i + 1) % b->n_ids];
}

static ebb_status run_bench_once(bench *b, ebb_engine *e, ebb_session *s, uint32_t run, double *prefill, double *decode,
                                 ebb_error *err)
{
    ebb_stats before, after;
    ebb_status st = EBB_OK;
    double t;

    fill_ids(b, ebb_model_get_info(ebb_engine_model(e))->n_vocab, run);
    if (b->depth)
        st = ebb_session_sync(s, b->ids, b->depth, NULL, err);
    t = ebb_clock_s();
    if (st == EBB_OK && b->n_prompt)
        st = ebb_session_sync(s, b->ids, b->depth + b->n_prompt, NULL, err);
    *prefill = b->n_prompt / (ebb_clock_s() - t);
    if (run == 0)
        b->first_token_s = ebb_clock_s() - t;
    /* Decode at the depth asked for, not behind the prompt. */
    if (st == EBB_OK && b->n_gen && (b->depth || b->n_prompt))
        st = ebb_session_sync(s, b->ids, b->depth ? b->depth : 1, NULL, err);
    else if (st == EBB_OK && b->n_gen)
        st = ebb_session_sync(s, b->ids, 1, NULL, err);
    ebb_engine_stats(e, &before);
    t = ebb_clock_s();
    for (uint32_t i = 0; st == EBB_OK && i < b->n_gen; i++)
        st = ebb_session_append(s, next_id(b, s, i), err);
    *decode = b->n_gen / (ebb_clock_s() - t);
    ebb_engine_stats(e, &after);
    if (b->n_gen)
        divide_up(b, &before, &after, ebb_clock_s() - t);
    return st == EBB_OK ? ebb_session_sync(s, NULL, 0, NULL, err) : st;
}

/* Of the first run, which finds nothing in memory, and of those behind it: their median, in tokens per second. */
static double predict_prefill(const bench *b, const ebb_engine *e, double *speeds)
{
    for (uint32_t run = 0; run < b->runs; run++)
        speeds[run] = b->n_prompt / ebb_engine_prompt_s(e, b->depth, b->n_prompt, run == 0 && b->depth == 0);
    return b->n_prompt ? ebb_median(speeds, b->runs) : 0;
}

/* With a draft model that is worth its memory: at the share of right draft tokens that the plan assumes. */
static double predicted_decode(const bench *b)
{
    return b->plan.draft_bytes > 0 ? b->plan.draft_tok_s : b->plan.predicted_decode_tok_s;
}

static ebb_status measure_bench(bench *b, ebb_engine *e, const ebb_args *a, ebb_error *err)
{
    ebb_session *s = NULL;
    double *speeds = calloc(2 * (size_t)b->runs, sizeof *speeds);
    ebb_status st;

    if (!speeds)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %u runs", b->runs);
    st = ebb_session_new(e, &s, err);
    for (uint32_t run = 0; st == EBB_OK && run < b->runs; run++) {
        st = run_bench_once(b, e, s, run, &speeds[run], &speeds[b->runs + run], err);
        if (st == EBB_OK && ebb_cli_progress(a))
            fprintf(stderr, "run %u: prefill %.2f, decode %.2f tok/s\n", run + 1, speeds[run], speeds[b->runs + run]);
    }
    if (st == EBB_OK) {
        b->prefill_tok_s = ebb_median(speeds, b->runs);
        b->decode_tok_s = ebb_median(speeds + b->runs, b->runs);
        b->predicted_prefill_tok_s = predict_prefill(b, e, speeds);
    }
    ebb_session_free(s);
    free(speeds);
    return st;
}

/* Right behind the runs: the reader with nothing to compute beside, over as much of the file as a token
 * reads. */
static void find_bound(bench *b, ebb_engine *e)
{
    const ebb_machine *m = &b->machine;
    double disk_s = 0, memory_s = m->memory_bytes_s > 0 ? (double)b->plan.pass_bytes / m->memory_bytes_s : 0;

    if (b->read_bytes == 0)
        return;
    b->bare_bytes_s = ebb_engine_read_speed(e, b->read_bytes > LEAST_READ ? b->read_bytes : LEAST_READ);
    if (b->bare_bytes_s > 0)
        disk_s = (double)b->read_bytes / b->bare_bytes_s;
    if (disk_s > 0)
        b->bound_tok_s = 1 / (disk_s > memory_s ? disk_s : memory_s);
}

static int print_bench_json(const bench *b, const ebb_stats *s)
{
    json_t *root = json_pack(
        "{s:f, s:f, s:f, s:f, s:I, s:I, s:i, s:i, s:I, s:I, s:f, s:f, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:s, s:f, "
        "s:f, s:f, s:I, s:f, s:f, s:f, s:i, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:{s:f, s:f, s:f}}",
        "prefill_tok_s", b->prefill_tok_s, "decode_tok_s", b->decode_tok_s, "load_s", b->load_s,
        "first_token_s", b->load_s + b->first_token_s, "peak_rss_bytes", (json_int_t)s->rss_peak_bytes,
        "kv_bytes", (json_int_t)s->kv_bytes, "layers", (int)s->n_layers, "resident_layers", (int)s->n_resident,
        "weight_bytes", (json_int_t)s->weight_bytes, "read_bytes_per_token", (json_int_t)b->read_bytes,
        "disk_bytes_s", s->disk_bytes_s, "stall_share", s->stall_share, "drafted", (json_int_t)s->n_drafted,
        "accepted", (json_int_t)s->n_accepted, "tier", ebb_tier_name(s->tier), "cpu", s->cpu, "io", s->io,
        "threads", (int)s->n_threads, "ctx", (int)s->n_ctx, "kv_type", s->kv_type,
        "predicted_prefill_tok_s", b->predicted_prefill_tok_s, "predicted_decode_tok_s", predicted_decode(b),
        "predicted_first_token_s", b->plan.predicted_first_token_s, "planned_bytes", (json_int_t)b->plan.total_bytes,
        "bare_disk_bytes_s", b->bare_bytes_s, "bound_tok_s", b->bound_tok_s,
        "bound_share", b->bound_tok_s > 0 ? b->decode_tok_s / b->bound_tok_s : 0,
        "decode_passes", (int)b->passes,
        "decode_ms", "token", b->ms, "matrices", b->spent_ms[EBB_TIME_MATMUL], "attention",
        b->spent_ms[EBB_TIME_ATTENTION],
        "rest", b->spent_ms[EBB_TIME_OTHER], "reads", b->spent_ms[EBB_TIME_READS], "waited", b->waited_ms,
        "experts", "here", b->here, "ahead", b->ahead, "guessed", b->guessed);

    return ebb_cli_print_json(root);
}

static void print_bench(const bench *b, const ebb_stats *s)
{
    char size[16], size2[16], size3[16];

    printf("prefill %u tokens at depth %u: %8.2f tok/s, predicted %.2f\n", b->n_prompt, b->depth, b->prefill_tok_s,
           b->predicted_prefill_tok_s);
    printf("decode  %u tokens at depth %u: %8.2f tok/s, predicted %.2f\n", b->n_gen, b->depth ? b->depth : 1,
           b->decode_tok_s, predicted_decode(b));
    if (b->plan.draft_bytes > 0)
        printf("        predicted for draft tokens of which %.0f %% are right; without a draft model %.2f\n",
               100 * b->plan.draft_accept_rate, b->plan.no_draft_tok_s);
    if (b->n_gen)
        printf("        %.2f ms a token: matrices %.2f, attention %.2f, waiting for reads %.2f, the rest of the pass "
               "%.2f; of these %.2f waiting for the other threads\n",
               b->ms, b->spent_ms[EBB_TIME_MATMUL], b->spent_ms[EBB_TIME_ATTENTION], b->spent_ms[EBB_TIME_READS],
               b->spent_ms[EBB_TIME_OTHER], b->waited_ms);
    if (b->here > 0 || b->guessed > 0)
        printf("        experts: %.0f %% found in memory, %.0f %% prefetched (of %.0f %% that were), %.0f "
               "%% read when they were chosen\n",
               100 * b->here, 100 * b->ahead, 100 * b->guessed, 100 * (1 - b->here - b->ahead));
    printf("loaded in %.2f s; peak memory %s, planned %s, KV %s; %u of %u layers resident, tier %s\n", b->load_s,
           ebb_size_text(s->rss_peak_bytes, size), ebb_size_text(b->plan.total_bytes, size3),
           ebb_size_text(s->kv_bytes, size2), s->n_resident, s->n_layers,
           ebb_tier_name(s->tier));
    printf("%u threads, kernels %s, reader %s; %s read per token\n", s->n_threads, s->cpu, s->io,
           ebb_size_text(b->read_bytes, size));
    if (b->draft)
        printf("draft model: %llu of %llu draft tokens accepted, %llu in branches, %u passes for %u tokens; the "
               "text is the model's answer to random words\n",
               (unsigned long long)s->n_accepted, (unsigned long long)s->n_drafted, (unsigned long long)s->n_branched,
               b->passes, b->n_gen * b->runs);
    if (b->bound_tok_s > 0)
        printf("the reader alone: %.2f GB/s, so at most %.2f tok/s: %.0f %% of it reached\n", b->bare_bytes_s / 1e9,
               b->bound_tok_s, 100 * b->decode_tok_s / b->bound_tok_s);
}

static ebb_status set_up_bench(bench *b, const ebb_args *a, const ebb_model *m, ebb_engine_opts *opts, ebb_error *err)
{
    const ebb_sampler_params likeliest = { .top_p = 1, .repeat_penalty = 1 };
    char *end = NULL;
    unsigned long n = a->prompt ? strtoul(a->prompt, &end, 10) : 512;

    if (a->prompt && (end == a->prompt || *end || n > 10000000))
        return EBB_FAIL(err, EBB_USAGE, "-p %s: bench takes a number of tokens", a->prompt);
    b->n_prompt = (uint32_t)n;
    b->n_gen = a->has_n_predict ? a->n_predict : 64;
    b->depth = a->bench_depth;
    b->runs = a->bench_runs ? a->bench_runs : 3;
    b->n_ids = (size_t)b->depth + (b->n_prompt > b->n_gen ? b->n_prompt : b->n_gen) + 1;
    *opts = a->engine;
    opts->draft = b->draft;
    opts->no_speculation = !b->draft;    /* what a pass costs, whatever the text */
    if (!opts->n_ctx)
        opts->n_ctx = (uint32_t)b->n_ids;
    b->ids = calloc(b->n_ids, sizeof *b->ids);
    b->chooser = b->draft ? ebb_sampler_new(&likeliest, ebb_model_get_info(m)->n_vocab) : NULL;
    return b->ids && !b->draft == !b->chooser ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for %zu tokens", b->n_ids);
}

/* Open, measure, close; the figures stand in *b and *stats. */
static ebb_status run_bench(bench *b, const ebb_args *a, const ebb_model *m, const ebb_engine_opts *opts,
                            double start_s, ebb_stats *stats, ebb_error *err)
{
    ebb_engine *e = NULL;
    ebb_status st = ebb_engine_open(m, opts, NULL, NULL, &e, err);

    b->load_s = ebb_clock_s() - start_s;
    if (st == EBB_OK)
        st = ebb_engine_measure(e, err);
    if (st == EBB_OK)
        ebb_engine_get_plan(e, &b->plan, &b->machine);
    if (st == EBB_OK)
        st = measure_bench(b, e, a, err);
    if (st == EBB_OK) {
        ebb_engine_stats(e, stats);
        find_bound(b, e);
    }
    ebb_engine_close(e);
    return st;
}

/* -- The modes side by side --------------------------------------------------------- */

static void print_mode(const char *name, const bench *b, const ebb_stats *s)
{
    char size[16], layers[16];

    snprintf(layers, sizeof layers, "%u/%u", s->n_resident, s->n_layers);
    printf("%-12s %9u %-6s %-9s %7s %10s %8.2f %9.2f %8.1f\n", name, s->n_ctx, s->kv_type,
           ebb_tier_name(s->tier), layers,
           ebb_size_text(s->rss_anon_bytes + s->rss_file_bytes, size), b->decode_tok_s, predicted_decode(b),
           b->prefill_tok_s);
    fflush(stdout);                              /* each takes a while */
}

/* The context is the mode's own, so each engine is what a chat would have. */
static ebb_status bench_modes(bench *b, const ebb_args *a, const ebb_model *m, int *status, ebb_error *err)
{
    json_t *root = json_object();
    ebb_engine_opts opts = a->engine;
    ebb_status st = EBB_OK;

    opts.draft = b->draft;
    opts.no_speculation = !b->draft;
    if (!a->json)
        printf("%-12s %9s %-6s %-9s %7s %10s %8s %9s %8s\n", "mode", "context", "KV", "tier", "layers", "memory",
               "tok/s", "predicted", "prefill");
    for (int i = 0; i <= EBB_MODE_MAX_CONTEXT && st == EBB_OK; i++) {
        const char *name = ebb_mode_name((ebb_mode)i);
        ebb_stats s;

        opts.mode = (ebb_mode)i;
        b->passes = 0;
        st = run_bench(b, a, m, &opts, ebb_clock_s(), &s, err);
        if (st == EBB_OK && !a->json)
            print_mode(name, b, &s);
        else if (st == EBB_OK)
            json_object_set_new(root, name, json_pack("{s:i, s:s, s:s, s:i, s:i, s:I, s:f, s:f, s:f, s:f}", "ctx",
                                                      (int)s.n_ctx, "kv_type", s.kv_type,
                                "tier", ebb_tier_name(s.tier), "layers", (int)s.n_layers, "resident_layers",
                                (int)s.n_resident,
                                "rss_bytes", (json_int_t)s.rss_anon_bytes + (json_int_t)s.rss_file_bytes,
                                "decode_tok_s",
                                b->decode_tok_s,
                                "predicted_decode_tok_s", predicted_decode(b), "prefill_tok_s",
                                b->prefill_tok_s, "predicted_prefill_tok_s", b->predicted_prefill_tok_s));
    }
    if (st == EBB_OK && a->json)
        *status = ebb_cli_print_json(json_incref(root));
    json_decref(root);
    return st;
}

int ebb_cmd_bench(ebb_args *a)
{
    bench b = { 0 };
    ebb_engine_opts opts;
    ebb_model *m = NULL;
    ebb_stats stats;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;
    double start = ebb_clock_s();
    ebb_status st = ebb_cli_only_model(a, &err);

    if (st == EBB_OK)
        st = ebb_cli_open_model(a, &m, &err);
    if (st == EBB_OK)
        st = ebb_cli_open_draft_model(a, m, &b.draft, &err);
    if (st == EBB_OK)
        st = set_up_bench(&b, a, m, &opts, &err);
    if (st == EBB_OK && a->is_modes) {
        st = bench_modes(&b, a, m, &status, &err);
    } else if (st == EBB_OK) {
        st = run_bench(&b, a, m, &opts, start, &stats, &err);
        if (st == EBB_OK)
            ebb_cli_tell(a, stats.left_out);
        if (st == EBB_OK && a->json)
            status = print_bench_json(&b, &stats);
        else if (st == EBB_OK)
            print_bench(&b, &stats);
    }
    ebb_model_close(m);
    ebb_model_close(b.draft);
    ebb_sampler_free(b.chooser);
    free(b.ids);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
