/* The plan: tiers in order as memory gets less, real bytes, prediction. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/experimental/plan.h"
#include "open/model_file.h"
#include "plan/planning.h"
#include "support/tiny_model.h"

#define N_LAYERS 12u

static char path[64];

static int setup(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_F32, .n_layers = N_LAYERS, .n_embd = 256, .n_ff = 1024, .n_ctx = 8192 };

    (void)state;
    snprintf(path, sizeof path, "/var/tmp/ebb-plan-XXXXXX.gguf");
    close(mkstemps(path, 5));                    /* a name of its own */
    return ebb_tiny_write(&tiny, path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static ebb_machine machine_with(uint64_t bytes)
{
    return (ebb_machine){ .available_bytes = bytes, .n_cpus = 2, .available_why = "a test", .memory_bytes_s = 20e9,
                          .disk_bytes_s = 1e9, .int8_mac_s = 100e9 };
}

static ebb_plan plan(uint64_t bytes, ebb_engine_opts o)
{
    ebb_machine machine = machine_with(bytes);
    ebb_model *m;
    ebb_plan p;

    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    ebb_model_close(m);
    return p;
}

static void test_tiers_in_order(void **state)
{
    ebb_engine_opts o = { 0 };
    ebb_plan p = plan((uint64_t)1 << 40, o), last = p;
    uint64_t full = p.total_bytes;
    ebb_tier worst = p.tier;

    (void)state;
    assert_int_equal(p.tier, EBB_TIER_FULL);
    assert_true(p.is_mapped);
    assert_int_equal(p.n_resident, N_LAYERS);
    for (uint64_t bytes = full + (4 << 20); bytes > full / 4; bytes -= 1 << 20) {
        p = plan(bytes, o);
        if (!p.fits)
            break;
        assert_true(p.total_bytes <= bytes);
        assert_true(p.n_resident <= last.n_resident || p.n_ctx < last.n_ctx || p.n_batch < last.n_batch);
        worst = p.tier > worst ? p.tier : worst;
        assert_int_equal(p.stream_bytes > 0, p.tier >= EBB_TIER_STREAMING);
        last = p;
    }
    assert_true(worst >= EBB_TIER_STREAMING);
    assert_false(p.fits);
    assert_true(p.min_bytes > p.budget_bytes);
}

/* Just enough is pinned, for the page cache would need air; comfortably enough is mapped. */
static void test_tight_fits_are_pinned(void **state)
{
    ebb_engine_opts o = { .n_ctx = 1024 };
    uint64_t full = plan((uint64_t)1 << 40, o).total_bytes;
    ebb_plan p = plan(full + full / 50, o);

    (void)state;
    assert_int_equal(p.tier, EBB_TIER_FULL);
    assert_false(p.is_mapped);
    assert_true(plan(full * 2, o).is_mapped);
}

static void test_asked_layers_are_the_resident_ones(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= N_LAYERS; n++) {
        ebb_engine_opts o = { .n_ctx = 512, .has_resident = true, .resident = n };
        ebb_plan p = plan((uint64_t)1 << 40, o), half;

        assert_int_equal(p.n_resident, n);
        assert_int_equal(p.kv_k, EBB_KV_F16);    /* there is room: nothing else is given up */
        assert_int_equal(p.stream_bytes > 0, n < N_LAYERS);
        o.resident_is_percent = true;
        o.resident = n * 100 / N_LAYERS;
        half = plan((uint64_t)1 << 40, o);
        assert_true(half.n_resident <= n && half.n_resident + 1 >= n);
    }
}

static void test_layers_that_do_not_fit_are_refused(void **state)
{
    ebb_engine_opts o = { .n_ctx = 512, .has_resident = true, .resident = N_LAYERS - 1 };
    uint64_t full = plan((uint64_t)1 << 40, o).total_bytes;
    ebb_plan p = plan(full / 2, o);

    (void)state;
    assert_false(p.fits);
    assert_non_null(strstr(p.why, "fewer would fit"));
}

/* Whatever is given up for them, context or K and V in memory: fewer layers than were asked for are no plan. */
static void test_asked_layers_stay_as_memory_gets_less(void **state)
{
    ebb_engine_opts o = { .has_resident = true, .resident = N_LAYERS - 1, .has_kv = true, .kv_k = EBB_KV_F32,
                          .kv_v = EBB_KV_F32 };
    ebb_plan p = plan((uint64_t)1 << 40, o);

    (void)state;
    for (uint64_t bytes = p.total_bytes; bytes > 16 << 20; bytes -= 2 << 20) {
        p = plan(bytes, o);
        assert_true(p.fits ? p.n_resident == N_LAYERS - 1 : strstr(p.why, "fewer would fit") != NULL);
    }
    assert_false(p.fits);
}

/* What a refusal names is enough, and a byte less is not. */
static void expect_least(const ebb_model *m, ebb_engine_opts o, ebb_machine machine)
{
    ebb_plan p;

    machine.available_bytes = 1 << 20;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    assert_true(!p.fits && p.min_bytes > machine.available_bytes);
    machine.available_bytes = p.min_bytes - 1;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    assert_true(!p.fits && p.min_bytes == machine.available_bytes + 1);
    machine.available_bytes++;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    assert_true(p.fits && p.total_bytes <= machine.available_bytes);
}

/* With K and V in a file where they may be, and without a ring for a model that is smaller than that; one in memory
 * has no choice but of context, chunk, and K and V. */
static void test_refusals_name_the_least(void **state)
{
    const ebb_engine_opts opts[] = {
        { 0 },
        { .n_ctx = 8192, .has_kv = true, .kv_k = EBB_KV_F32, .kv_v = EBB_KV_F32 },
        { .n_ctx = 8192, .no_kv_cache = true },
        { .n_ctx = 512, .has_resident = true, .resident = N_LAYERS - 1 },
        { .n_ctx = 512, .has_resident = true },
        { .n_ctx = 512, .has_resident = true, .resident_is_percent = true, .resident = 5 },
    };
    ebb_tiny_opts tiny = { .type = EBB_TYPE_F32, .n_ctx = 8192 };
    ebb_model *large, *small;
    char *bytes;

    (void)state;
    assert_int_equal(ebb_model_open(path, &large, NULL), EBB_OK);
    small = ebb_tiny_open(&tiny, &bytes);
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        expect_least(large, opts[i], machine_with(0));
        expect_least(small, opts[i], machine_with(0));
    }
    ebb_model_close(large);
    ebb_model_close(small);
    free(bytes);
}

/* The budget is used to the last part, and what is read is read evenly through the pass. */
static void test_the_budget_is_used_up(void **state)
{
    ebb_engine_opts o = { .n_ctx = 512, .has_kv = true, .n_batch = 64 };
    uint64_t full = plan((uint64_t)1 << 40, o).total_bytes, least = 0;

    (void)state;
    for (uint64_t bytes = full; bytes > full / 2; bytes -= 3 << 20) {
        ebb_plan p = plan(bytes, o);

        if (!p.fits || p.stream_bytes == 0)
            continue;
        least = least ? least : p.weights_ring_bytes;
        assert_true(p.is_spread);
        assert_in_range(bytes - p.total_bytes, 0, 4 << 20);
        assert_int_equal(p.weights_ring_bytes, least);
    }
    assert_true(least > 0);
}

/* t = max(S / Bd, F / Bm) + t_sync */
static void test_prediction(void **state)
{
    ebb_engine_opts o = { .n_ctx = 512, .has_resident = true, .resident = 0 };
    ebb_plan none = plan((uint64_t)1 << 40, o), all;
    double t = 1 / none.predicted_decode_tok_s;

    (void)state;
    assert_true(t > (double)none.stream_bytes / 1e9 && t < (double)none.stream_bytes / 1e9 + 0.005);
    o.resident = N_LAYERS;
    all = plan((uint64_t)1 << 40, o);
    t = 1 / all.predicted_decode_tok_s;
    assert_true(t > (double)all.pass_bytes / 20e9 && t < (double)all.pass_bytes / 20e9 + 0.005);
    assert_true(all.predicted_load_s > 0);
}

/* K and V are read for each token: from memory, and much slower from a file. */
static void test_kv_in_a_file_costs(void **state)
{
    ebb_engine_opts o = { .n_ctx = 4096, .n_batch = 64 };
    ebb_plan roomy = plan((uint64_t)1 << 40, o), p = roomy;
    ebb_machine machine;
    double kv_s, full_s;

    (void)state;
    kv_s = (double)roomy.kv_bytes / 20e9;
    assert_true(roomy.kv_spill_bytes == 0 &&
                fabs(1 / roomy.predicted_full_tok_s - 1 / roomy.predicted_decode_tok_s - kv_s) < 0.05 * kv_s);
    for (uint64_t budget = roomy.total_bytes; p.fits && p.kv_spill_bytes == 0; budget -= 64 << 10)
        p = plan(budget, o);
    assert_true(p.fits && p.kv_spill_bytes > 0);
    machine = machine_with(p.budget_bytes);
    assert_true(p.lent_bytes > 0);               /* at first; beside all of K and V nothing is */
    full_s = 1 / p.predicted_full_tok_s - 1 / ebb_plan_with_lent(&p, &machine, 0).predicted_decode_tok_s;
    kv_s = (double)p.kv_bytes / 20e9 + (double)p.kv_spill_bytes / 1e9;
    assert_true(fabs(full_s - kv_s) < 0.05 * kv_s);
}

/* A file of K and V needs addresses for all of them, twice, beside those of the process itself: where there are not so
 * many, less is planned.  `limit` is one of the machine's; with `more` than so many there are enough. */
static void expect_no_file_without(ebb_machine *with, uint64_t *limit, uint64_t more)
{
    ebb_engine_opts o = { .n_ctx = 4096, .n_batch = 64, .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0 };
    uint64_t all = plan((uint64_t)1 << 40, o).kv_bytes;
    ebb_plan p = plan((uint64_t)1 << 20, o);     /* nothing fits: it says how much would */
    uint64_t least = p.min_bytes;
    ebb_model *m;

    with->available_bytes = least + all / 2;
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    *limit = least + 3 * all + more;
    assert_int_equal(ebb_plan_make(m, &o, with, &p, NULL), EBB_OK);
    assert_true(p.fits && p.kv_spill_bytes > 0);
    *limit = least + all + more;
    assert_int_equal(ebb_plan_make(m, &o, with, &p, NULL), EBB_OK);
    assert_false(p.fits);
    assert_true(p.min_bytes > with->available_bytes && p.kv_spill_bytes == 0);
    assert_non_null(strstr(p.why, "lack addresses"));
    expect_least(m, o, *with);
    o.n_ctx = 0;
    assert_int_equal(ebb_plan_make(m, &o, with, &p, NULL), EBB_OK);
    assert_true(p.fits && p.n_ctx < 4096 && p.kv_spill_bytes == 0);
    ebb_model_close(m);
}

static void test_no_file_of_kv_without_addresses(void **state)
{
    uint64_t weights = plan((uint64_t)1 << 40, (ebb_engine_opts){ 0 }).weights_resident_bytes;
    ebb_machine mapped = machine_with(0), promised = machine_with(0);

    (void)state;
    expect_no_file_without(&promised, &promised.promised_bytes, 0);
    expect_no_file_without(&mapped, &mapped.address_bytes,
                           weights + EBB_PLAN_OWN_ADDRESSES + mapped.n_cpus * EBB_PLAN_STACK_ADDRESSES);
}

/* A type's own speed counts, the cost of handing work out, and the disk while it shares the CPUs. */
static void test_prediction_by_type_and_under_reads(void **state)
{
    ebb_machine m = { .available_bytes = (uint64_t)1 << 40, .n_cpus = 2, .memory_bytes_s = 20e9, .disk_bytes_s = 2e9,
                      .disk_busy_bytes_s = 1e9, .busy_share = 0.5, .sync_s = 1e-9, .int8_mac_s = 100e9 };
    ebb_engine_opts all = { .n_ctx = 512 }, none = { .n_ctx = 512, .has_resident = true };
    ebb_model *model;
    ebb_plan p;
    double touch, wait;

    (void)state;
    m.types[EBB_TYPE_F32].bytes_s = 10e9;
    assert_int_equal(ebb_model_open(path, &model, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(model, &all, &m, &p, NULL), EBB_OK);
    touch = (double)p.pass_bytes / 10e9 + 60e-6 * N_LAYERS;      /* a layer costs something, however small it is */
    assert_true(1 / p.predicted_decode_tok_s > touch && 1 / p.predicted_decode_tok_s < 1.01 * touch);
    assert_int_equal(ebb_plan_make(model, &none, &m, &p, NULL), EBB_OK);
    wait = 2 * touch + ((double)p.stream_bytes - 1e9 * 2 * touch) / 2e9;
    assert_true(1 / p.predicted_decode_tok_s > 0.99 * wait && 1 / p.predicted_decode_tok_s < 1.01 * wait);
    m.disk_busy_bytes_s = m.disk_bytes_s = 100e9;        /* the reads are done before the products are */
    assert_int_equal(ebb_plan_make(model, &none, &m, &p, NULL), EBB_OK);
    wait = touch + (double)p.stream_bytes / 100e9 / 2;
    assert_true(1 / p.predicted_decode_tok_s > 0.99 * wait && 1 / p.predicted_decode_tok_s < 1.01 * wait);
    ebb_model_close(model);
}

/* Beside multiply-adds: what products give, what goes into them, attention to what stands before; of one column, each
 * product's own. */
static void test_prediction_of_what_is_no_product(void **state)
{
    ebb_machine m = { .available_bytes = (uint64_t)1 << 40, .n_cpus = 2, .memory_bytes_s = 20e9, .disk_bytes_s = 2e9,
                      .busy_share = 1, .sync_s = 1e-9, .int8_mac_s = 100e9 };
    ebb_engine_opts few = { .n_ctx = 512, .n_batch = 32 }, many = { .n_ctx = 512, .n_batch = 256 };
    double before_s, short_s, long_s;
    ebb_model *model;
    ebb_plan p;

    (void)state;
    assert_int_equal(ebb_model_open(path, &model, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(model, &many, &m, &p, NULL), EBB_OK);
    before_s = 1 / p.predicted_prefill_tok_s;
    m.overheads.attend_s = 1e-6;                 /* grows with the square of the chunk: per token, with its length */
    assert_int_equal(ebb_plan_make(model, &few, &m, &p, NULL), EBB_OK);
    short_s = p.n_batch / p.predicted_prefill_tok_s;
    assert_int_equal(ebb_plan_make(model, &many, &m, &p, NULL), EBB_OK);
    long_s = 1 / p.predicted_prefill_tok_s;
    /* Of each head a microsecond for 128 positions. */
    assert_true(p.n_batch == 256 && long_s - before_s > 128e-6 * N_LAYERS);
    assert_true(short_s < long_s * 32);
    m.overheads = (ebb_overheads){ .output_s = 1e-6 };
    assert_int_equal(ebb_plan_make(model, &many, &m, &p, NULL), EBB_OK);
    assert_true(1 / p.predicted_prefill_tok_s - before_s > 7e-6 * N_LAYERS);
    before_s = 1 / p.predicted_decode_tok_s;
    m.overheads = (ebb_overheads){ .product_s = 1e-3 };
    assert_int_equal(ebb_plan_make(model, &many, &m, &p, NULL), EBB_OK);
    assert_true(1 / p.predicted_decode_tok_s - before_s > 0.99e-3 * (7 * N_LAYERS + 1));
    assert_true(1 / p.predicted_decode_tok_s - before_s < 1.01e-3 * (7 * N_LAYERS + 1));
    ebb_model_close(model);
}

/* What more a column of a prompt of n tokens takes with these overheads. */
static double predicted_side_s(const char *arch, uint32_t n, ebb_overheads overheads, ebb_net *net)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_F32, .n_layers = 6, .n_embd = 64, .n_ff = 96, .head_dim = 32,
                           .n_ctx = 512 };
    ebb_engine_opts o = { .n_ctx = 512 };
    ebb_machine m = machine_with((uint64_t)1 << 40);
    char *bytes;
    ebb_model *model = ebb_tiny_open(&tiny, &bytes);
    double without_s, s;
    ebb_plan p;

    assert_int_equal(ebb_plan_make(model, &o, &m, &p, NULL), EBB_OK);
    assert_int_equal(ebb_net_bind(net, ebb_model_gguf(model), false, NULL), EBB_OK);
    without_s = ebb_plan_prompt_s(net, &m, &p, 0, n, false);
    m.overheads = overheads;
    s = (ebb_plan_prompt_s(net, &m, &p, 0, n, false) - without_s) / n;
    ebb_model_close(model);
    free(bytes);
    return s;
}

/* Attention looks at what a window shows, and layers with a state look at nothing. */
static void test_prediction_of_layers_that_differ(void **state)
{
    uint32_t n_attend = 0;
    const ebb_overheads one = { .attend_s = 1 };         /* for each head and position that it sees */
    double s, expected;
    ebb_net net;

    (void)state;
    s = predicted_side_s("gemma3", 256, one, &net);     /* five layers with a window, one without */
    expected = net.n_head * (5.0 * EBB_TINY_WINDOW + 128);
    assert_true(fabs(s / expected - 1) < 0.01);
    ebb_net_fini(&net);
    s = predicted_side_s("lfm2", 256, one, &net);
    for (uint32_t i = 0; i < net.n_layers; i++)
        n_attend += net.layers[i].recurrent.kind == EBB_RECURRENT_NONE;
    assert_true(n_attend > 0 && n_attend < net.n_layers);
    assert_true(fabs(s / (n_attend * net.n_head * 128.0) - 1) < 0.01);
    ebb_net_fini(&net);
}

/* A column goes through all elements of all states, as often as their kind wants it; those of attention have none. */
static void test_prediction_counts_what_is_done_with_states(void **state)
{
    static const struct {
        const char *arch;
        double ops;
    } kinds[] = { { "mamba2", 3 }, { "qwen35", 4 }, { "lfm2", 2 }, { "mamba", 52 }, { "llama", 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const ebb_overheads one = { .state_s = 1 };
        ebb_net net;
        double s = predicted_side_s(kinds[i].arch, 256, one, &net), n = (double)net.state_bytes / sizeof(float);

        assert_int_equal(net.state_bytes > 0, kinds[i].ops > 0);
        s *= 256.0 / 257;                        /* the pass has its own, as one of a token has */
        assert_true(fabs(s - n * kinds[i].ops) <= 0.01 * n * kinds[i].ops);
        ebb_net_fini(&net);
    }
}

/* A pass of one token reads and writes all states, however fast its products are. */
static void test_prediction_counts_states_read_and_written(void **state)
{
    ebb_tiny_opts tiny = { .arch = "mamba2", .type = EBB_TYPE_F32, .n_layers = 6, .n_embd = 64 };
    ebb_machine m = machine_with((uint64_t)1 << 40);
    double s[2];
    char *bytes;
    ebb_model *model = ebb_tiny_open(&tiny, &bytes);
    ebb_net net;
    ebb_plan p;

    (void)state;
    assert_int_equal(ebb_net_bind(&net, ebb_model_gguf(model), false, NULL), EBB_OK);
    m.types[EBB_TYPE_F32] = (ebb_type_speed){ 20e9, 100e9 };
    for (int i = 0; i < 2; i++) {
        m.memory_bytes_s = i == 0 ? 1e6 : 1e5;
        assert_int_equal(ebb_plan_make(model, NULL, &m, &p, NULL), EBB_OK);
        s[i] = 1 / p.predicted_decode_tok_s;
    }
    assert_true(net.state_bytes > 0);
    assert_true(fabs((s[1] - s[0]) / (2.0 * (double)net.state_bytes * (1e-5 - 1e-6)) - 1) < 0.01);
    ebb_net_fini(&net);
    ebb_model_close(model);
    free(bytes);
}

/* The first prompt finds an empty expert cache: however short it is, each expert that any of its tokens selects is
 * read, beside what is to stay.  Later ones find what has room, and long ones are chunks. */
static void test_prompts_of_a_streamed_mixture(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 3, .n_embd = 256, .n_ff = 1024, .n_expert = 32,
                           .n_ctx = 512 };
    ebb_engine_opts o = { .n_ctx = 256, .n_batch = 64 };
    char mixture[] = "/var/tmp/ebb-plan-XXXXXX.gguf";
    ebb_machine m = machine_with((uint64_t)1 << 40);
    double any, reads, few_s, eight_s;
    ebb_model *model;
    ebb_net net;
    ebb_plan p;

    (void)state;
    close(mkstemps(mixture, 5));
    assert_true(ebb_tiny_write(&tiny, mixture));
    assert_int_equal(ebb_model_open(mixture, &model, NULL), EBB_OK);
    assert_int_equal(ebb_net_bind(&net, ebb_model_gguf(model), false, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(model, &o, &m, &p, NULL), EBB_OK);
    m.disk_bytes_s = m.disk_busy_bytes_s = 1e6;          /* beside which nothing counts */
    for (m.available_bytes = p.total_bytes; p.fits && p.expert_read_bytes == 0; m.available_bytes -= 1 << 20)
        assert_int_equal(ebb_plan_make(model, &o, &m, &p, NULL), EBB_OK);
    assert_true(p.fits);
    any = 1 - pow(1 - (double)net.n_expert_used / net.n_expert, 8);
    reads = (double)(p.stream_bytes - p.expert_read_bytes + p.weights_resident_bytes + p.lent_bytes) +
            any * (double)p.expert_disk_bytes;
    assert_true(fabs(ebb_plan_prompt_s(&net, &m, &p, 0, 8, true) / (reads / 1e6) - 1) < 0.02);
    few_s = ebb_plan_prompt_s(&net, &m, &p, 0, 64, false);
    eight_s = ebb_plan_prompt_s(&net, &m, &p, 0, 8, false);
    assert_true(eight_s < few_s && few_s < ebb_plan_prompt_s(&net, &m, &p, 0, 64, true));
    assert_true(fabs(ebb_plan_prompt_s(&net, &m, &p, 0, 128, false) / (2 * few_s) - 1) < 0.02);
    /* Eight tokens after sixty are a pass of their own, whatever chunk the sixty were in. */
    assert_true(fabs(ebb_plan_prompt_s(&net, &m, &p, 60, 8, false) / eight_s - 1) < 0.02);
    assert_true(fabs(p.predicted_prefill_tok_s * few_s / 64 - 1) < 0.02);
    ebb_net_fini(&net);
    ebb_model_close(model);
    unlink(mixture);
}

/* The longest context is in memory, and 256 tokens more are not; with what K and V are asked for, or f16. */
static void test_longest_context(void **state)
{
    const uint64_t roomy = (uint64_t)1 << 40;
    ebb_engine_opts longest = { .n_ctx = EBB_CTX_MAX }, o = { 0 };
    uint64_t least = plan(roomy, (ebb_engine_opts){ .n_ctx = 512 }).total_bytes,
        most = plan(roomy, (ebb_engine_opts){ .n_ctx = 8192 }).total_bytes;
    ebb_plan p = plan(roomy, longest), q;

    (void)state;
    assert_int_equal(p.n_ctx, 8192);             /* what the model was trained for */
    p = plan(least + (most - least) * 3 / 4, longest);
    assert_true(p.fits && p.stream_bytes == 0 && p.kv_spill_bytes == 0 && p.kv_k == EBB_KV_F16);
    assert_true(p.n_ctx >= 4096 && p.n_ctx < 8192 && p.n_ctx % 256 == 0);
    o = (ebb_engine_opts){ .n_ctx = p.n_ctx + 256, .has_kv = true, .kv_k = EBB_KV_F16, .kv_v = EBB_KV_F16 };
    q = plan(p.budget_bytes, o);
    assert_true(!q.fits || q.stream_bytes > 0);
    longest.has_kv = true;
    longest.kv_k = longest.kv_v = EBB_KV_Q8_0;
    q = plan(p.budget_bytes, longest);
    assert_true(q.stream_bytes == 0 && q.n_ctx > p.n_ctx && q.kv_k == EBB_KV_Q8_0);
    longest.has_kv = false;                      /* f16 would allow too little: q8_0 by itself */
    p = plan(least + (most - least) / 8, longest);
    assert_true(p.fits && p.stream_bytes == 0 && p.kv_k == EBB_KV_Q8_0 && p.n_ctx > 512);
}

/* Weights that do not fit stream; the longest context is then that of K and V. */
static void test_longest_context_of_a_streamed_model(void **state)
{
    ebb_engine_opts longest = { .n_ctx = EBB_CTX_MAX };
    ebb_plan p = plan(plan((uint64_t)1 << 40, (ebb_engine_opts){ .n_ctx = 256 }).total_bytes * 3 / 4, longest),
        none = plan(1 << 20, longest);

    (void)state;
    assert_true(p.fits && p.stream_bytes > 0 && p.kv_spill_bytes == 0 && p.n_ctx >= 256);
    assert_false(none.fits);
    assert_true(none.why[0]);
}

/* What was not measured is a usual figure. */
static void test_a_machine_that_nothing_is_known_of(void **state)
{
    const ebb_machine machine = { .available_bytes = (uint64_t)1 << 40 };
    ebb_model *m;
    ebb_plan p;

    (void)state;
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(m, NULL, &machine, &p, NULL), EBB_OK);
    assert_true(p.fits && p.n_threads == 1);
    ebb_model_close(m);
}

/* A described machine has every figure that a plan uses, and so is the same wherever it is planned for. */
static void test_described_machines(void **state)
{
    ebb_machine_kind kind;
    ebb_machine machine, faster;
    ebb_model *m;
    ebb_plan p, q;
    size_t n = 0;

    (void)state;
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    for (; ebb_machine_kind_get(n, &kind); n++) {
        ebb_machine_describe(&kind, &machine);
        assert_true(machine.available_bytes > 0 && (double)machine.available_bytes < kind.ram_bytes);
        assert_true(machine.memory_bytes_s > 0 && machine.int8_mac_s > 0 && machine.disk_bytes_s > 0 &&
                    machine.disk_busy_bytes_s > 0);
        assert_true(machine.overheads.product_s > 0 && machine.overheads.attend_dim_s > 0 &&
                    machine.expert_miss_rate[16] > 0);
        assert_int_equal(ebb_plan_make(m, NULL, &machine, &p, NULL), EBB_OK);
        assert_true(p.fits && p.n_threads == kind.n_cpus);
        assert_true(p.predicted_full_tok_s > 0 && p.predicted_full_tok_s < p.predicted_decode_tok_s);
    }
    assert_true(n >= 5);
    ebb_machine_describe_speed(10e9, 2, (uint64_t)8 << 30, &machine);
    ebb_machine_describe_speed(30e9, 2, (uint64_t)8 << 30, &faster);
    assert_int_equal(ebb_plan_make(m, NULL, &machine, &p, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(m, NULL, &faster, &q, NULL), EBB_OK);
    assert_true(q.predicted_decode_tok_s > p.predicted_decode_tok_s);
    ebb_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiers_in_order),
        cmocka_unit_test(test_tight_fits_are_pinned),
        cmocka_unit_test(test_asked_layers_are_the_resident_ones),
        cmocka_unit_test(test_layers_that_do_not_fit_are_refused),
        cmocka_unit_test(test_asked_layers_stay_as_memory_gets_less),
        cmocka_unit_test(test_refusals_name_the_least),
        cmocka_unit_test(test_the_budget_is_used_up),
        cmocka_unit_test(test_longest_context),
        cmocka_unit_test(test_longest_context_of_a_streamed_model),
        cmocka_unit_test(test_a_machine_that_nothing_is_known_of),
        cmocka_unit_test(test_described_machines),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_kv_in_a_file_costs),
        cmocka_unit_test(test_no_file_of_kv_without_addresses),
        cmocka_unit_test(test_prediction_of_what_is_no_product),
        cmocka_unit_test(test_prediction_of_layers_that_differ),
        cmocka_unit_test(test_prediction_counts_what_is_done_with_states),
        cmocka_unit_test(test_prediction_counts_states_read_and_written),
        cmocka_unit_test(test_prompts_of_a_streamed_mixture),
        cmocka_unit_test(test_prediction_by_type_and_under_reads),
    };

    return cmocka_run_group_tests_name("plan", tests, setup, teardown);
}
