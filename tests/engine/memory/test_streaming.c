/* Sessions on a model that is streamed: the same logits, bit for bit, whoever reads,
 * however many layers are resident, however the prompt is cut; and what happens when
 * reads fail, files change, and the budget does. */
#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "support/tiny_engine.h"

#define N_IDS    40u
#define N_LAYERS 5u

static char path[64];

static void write_model(ebb_type type, const char *arch)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = type, .n_layers = N_LAYERS, .n_embd = 256, .n_ff = 512, .seed = 3 };

    assert_true(ebb_tiny_write(&tiny, path));
}

static void open_engine(tiny_engine *f, ebb_engine_opts o)
{
    o.n_ctx = 64;
    o.n_threads = 2;
    open_tiny_file(f, path, &o);
}

#define N_LOGITS (N_IDS * EBB_TINY_VOCAB)

static void eval(tiny_engine *f, uint32_t chunk, float *out)
{
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };

    fill_ids(ids, N_IDS, 1);
    if (ebb_session_eval(f->s, ids, N_IDS, chunk, keep_logits, out, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static float want[N_LOGITS], got[N_LOGITS];

static void make_want(ebb_type type, const char *arch)
{
    tiny_engine f;

    write_model(type, arch);
    open_engine(&f, (ebb_engine_opts){ 0 });
    eval(&f, 1, want);
    close_tiny_engine(&f);
}

static void expect_want(tiny_engine *f, uint32_t chunk, const char *what)
{
    memset(got, 0, sizeof got);
    eval(f, chunk, got);
    if (memcmp(want, got, sizeof want) != 0)
        fail_msg("%s, %u columns: other bits", what, chunk);
}

/* The thread sanitizer makes a pass a hundred times slower, and a type more shows no other race. */
#ifdef __SANITIZE_THREAD__
enum { N_TYPES = 1, RESIDENT_STEP = 4 };
#else
enum { N_TYPES = 5, RESIDENT_STEP = 1 };
#endif

static void test_same_bits_for_every_reader_and_resident_count(void **state)
{
    static const ebb_type types[] = { EBB_TYPE_F32, EBB_TYPE_F16, EBB_TYPE_Q8_0, EBB_TYPE_Q4_K, EBB_TYPE_Q6_K };
    static const char *const archs[] = { "llama", "qwen2", "qwen3", "llama", "qwen2" };
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };

    (void)state;
    for (size_t t = 0; t < N_TYPES; t += ebb_test_one_in(N_TYPES)) {
        make_want(types[t], archs[t]);
        for (uint32_t i = 0; i < 3 * (N_LAYERS + 1); i += RESIDENT_STEP * ebb_test_one_in(4)) {
            ebb_engine_opts o = { .has_resident = true, .resident = i / 3, .io = ios[i % 3],
                                  .placement = (ebb_placement)(i % 3) };
            ebb_stats s;
            tiny_engine f;

            open_engine(&f, o);
            expect_want(&f, 1, ebb_type_get(types[t])->name);
            expect_want(&f, 7, ebb_type_get(types[t])->name);
            expect_want(&f, 64, ebb_type_get(types[t])->name);
            ebb_engine_stats(f.engine, &s);
            assert_int_equal(s.n_resident, i / 3);
            assert_int_equal(s.read_bytes > 0, i / 3 < N_LAYERS);
            close_tiny_engine(&f);
        }
    }
    unlink(path);
}

/* Experts that are read when they are chosen, into places for a few or for most of them. */
static void test_experts_come_when_chosen(void **state)
{
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };
    ebb_tiny_opts tiny = { .arch = "qwen3moe", .type = EBB_TYPE_Q8_0, .n_layers = 2, .n_embd = 256, .n_ff = 256,
                           .n_expert = 12, .seed = 5 };
    tiny_engine f;

    (void)state;
    assert_true(ebb_tiny_write(&tiny, path));
    open_engine(&f, (ebb_engine_opts){ 0 });
    eval(&f, 1, want);
    close_tiny_engine(&f);
    for (size_t i = 0; i < 6; i++) {
        ebb_engine_opts o = { .has_resident = true, .resident = i < 3 ? 0 : 60, .resident_is_percent = i >= 3,
                              .io = ios[i % 3] };
        ebb_stats s;

        open_engine(&f, o);
        if (i % 3 == 0)
            expect_want(&f, 1, "experts, one column");
        expect_want(&f, 7, "experts, some columns");
        expect_want(&f, 64, "experts, all columns");
        ebb_engine_stats(f.engine, &s);
        assert_true(s.read_bytes > 0);
        assert_true(s.n_resident < 2);
        ebb_res_resize_expert_cache(f.engine->res, ebb_plan_experts_min_bytes(&f.engine->net)); /* given back ... */
        expect_want(&f, 7, "experts, least memory");
        ebb_res_resize_expert_cache(f.engine->res, UINT64_MAX);  /* ... and there again */
        expect_want(&f, 7, "experts, all memory");
        close_tiny_engine(&f);
    }
    unlink(path);
}

/* A mixture that is streamed: the nth system call of a pass fails, passes are stopped anywhere, memory for experts
 * comes and goes, and another run begins with what this one learned.  The bits stay. */
static void test_experts_in_need(void **state)
{
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };
    static const char *const archs[] = {
        "qwen3moe", "qwen2moe", "gpt-oss", "nemotron_h_moe", "granitehybrid", "lfm2moe"
    };
    ebb_token ids[N_IDS];

    (void)state;
    fill_ids(ids, N_IDS, 1);
    for (size_t k = 0; k < 6; k++) {
        ebb_tiny_opts tiny = { .arch = archs[k], .type = EBB_TYPE_Q8_0, .n_layers = 3, .n_embd = 256, .n_ff = 256,
                               .n_expert = 12, .seed = 5 };
        ebb_engine_opts o = { .has_resident = true, .resident = 50, .resident_is_percent = true, .io = ios[k % 3] };
        tiny_engine f;

        assert_true(ebb_tiny_write(&tiny, path));
        open_engine(&f, (ebb_engine_opts){ 0 });
        eval(&f, 1, want);
        close_tiny_engine(&f);
        open_engine(&f, o);
        for (int n = 1; n < 60; n += 2) {
            uint32_t at = (uint32_t)n % (N_IDS - 2);
            ebb_status st;

            if (n % 3 == 0)
                ebb_res_resize_expert_cache(f.engine->res,
                                            n % 2 ? UINT64_MAX : ebb_plan_experts_min_bytes(&f.engine->net));
            assert_int_equal(ebb_session_sync(f.s, ids, at, NULL, NULL), EBB_OK);
            ebb_os_fail_nth(n);
            st = ebb_session_append(f.s, ids[at], NULL);
            ebb_os_fail_off();
            assert_true(st == EBB_OK || st == EBB_IO || st == EBB_FORMAT);
            ebb_engine_cancel(f.engine);
            assert_int_equal(ebb_session_sync(f.s, ids + 1, N_IDS - 1, NULL, NULL), EBB_CANCELED);
            ebb_engine_cancel_clear(f.engine);
            assert_int_equal(ebb_session_sync(f.s, ids, at + 1, NULL, NULL), EBB_OK);
            assert_memory_equal(ebb_session_logits(f.s), want + at * EBB_TINY_VOCAB, EBB_TINY_VOCAB * sizeof(float));
        }
        close_tiny_engine(&f);
    }
    unlink(path);
}

static void *take_all(void *arg)
{
    tiny_engine *f = ((void **)arg)[0];
    atomic_bool *stop = ((void **)arg)[1];

    while (!atomic_load(stop)) {
        uint32_t n;

        (void)ebb_res_evict(f->engine->res, 1 << 20, &n);
        sched_yield();
    }
    return NULL;
}

/* What is pinned is taken in the middle of passes, the ring has one slot, and what was taken comes again. */
static void test_in_need(void **state)
{
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };

    (void)state;
    make_want(EBB_TYPE_Q8_0, "llama");
    for (size_t i = 0; i < 6; i++) {
        ebb_engine_opts o = { .has_resident = true, .resident = N_LAYERS - 1, .io = ios[i % 3] };
        atomic_bool stop = false;
        tiny_engine f;
        void *arg[] = { &f, &stop };
        pthread_t taker;

        open_engine(&f, o);
        if (i >= 3)
            assert_int_equal(
                ebb_res_set_reader(f.engine->res, ios[i % 3], NULL, ebb_plan_ring_min_bytes(&f.engine->net), NULL),
                EBB_OK);
        assert_int_equal(pthread_create(&taker, NULL, take_all, arg), 0);
        for (uint32_t chunk = 1; chunk < 40; chunk += 7) {
            for (uint32_t g = 0; g <= N_LAYERS; g++)
                assert_int_equal(ebb_res_pin_async(f.engine->res, g, NULL), EBB_OK);
            expect_want(&f, chunk, "in need");
        }
        atomic_store(&stop, true);
        pthread_join(taker, NULL);
        close_tiny_engine(&f);
    }
    unlink(path);
}

/* A chunk reads each streamed byte once, however many columns it has. */
static void test_a_chunk_reads_once(void **state)
{
    ebb_engine_opts o = { .has_resident = true, .resident = 0, .io = EBB_IO_PREAD };
    ebb_stats before, after;
    ebb_token ids[N_IDS];
    tiny_engine f;

    (void)state;
    write_model(EBB_TYPE_F32, "llama");
    fill_ids(ids, N_IDS, 1);
    open_engine(&f, o);
    assert_int_equal(ebb_session_sync(f.s, ids, 8, NULL, NULL), EBB_OK);
    ebb_engine_stats(f.engine, &before);
    assert_int_equal(ebb_session_sync(f.s, ids, N_IDS, NULL, NULL), EBB_OK);
    ebb_engine_stats(f.engine, &after);
    assert_true(after.read_bytes - before.read_bytes <= before.weight_bytes + before.ring_bytes);
    close_tiny_engine(&f);
    unlink(path);
}

/* The bytes that a prompt of a streamed mixture reads in chunks of `chunk` (0: as the plan decides), and the last
 * logits. */
static uint64_t read_for_long_prompt(uint32_t chunk, uint32_t *n_batch, float last[EBB_TINY_VOCAB])
{
    enum { N_LONG = 1700 };
    ebb_engine_opts o = { .n_ctx = 2048, .n_batch = chunk, .n_threads = 2, .has_resident = true, .resident = 0,
                          .io = EBB_IO_PREAD };
    ebb_token *ids = malloc(N_LONG * sizeof *ids);
    ebb_stats before, after;
    ebb_machine machine;
    ebb_plan plan;
    tiny_engine f;

    assert_non_null(ids);
    for (uint32_t i = 0; i < N_LONG; i++)
        ids[i] = (ebb_token)((i * 2654435761u >> 7) % EBB_TINY_VOCAB);
    open_tiny_file(&f, path, &o);
    ebb_engine_get_plan(f.engine, &plan, &machine);
    *n_batch = plan.n_batch;
    ebb_engine_stats(f.engine, &before);
    assert_int_equal(ebb_session_sync(f.s, ids, N_LONG, NULL, NULL), EBB_OK);
    ebb_engine_stats(f.engine, &after);
    memcpy(last, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *last);
    close_tiny_engine(&f);
    free(ids);
    return after.read_bytes - before.read_bytes;
}

/* A long prompt of a mixture that streams goes through a layer as a whole, and reads less than a third for it; the same
 * bits. */
static void test_long_prompts_read_experts_once(void **state)
{
    ebb_tiny_opts tiny = { .arch = "qwen3moe", .type = EBB_TYPE_Q8_0, .n_layers = 2, .n_embd = 256, .n_ff = 256,
                           .n_expert = 24, .n_ctx = 2048, .seed = 6 };
    float narrow_logits[EBB_TINY_VOCAB], wide_logits[EBB_TINY_VOCAB];
    uint32_t narrow, wide;
    uint64_t narrow_bytes, wide_bytes;

    (void)state;
    assert_true(ebb_tiny_write(&tiny, path));
    narrow_bytes = read_for_long_prompt(512, &narrow, narrow_logits);
    wide_bytes = read_for_long_prompt(0, &wide, wide_logits);
    assert_int_equal(narrow, 512);
    assert_int_equal(wide, 2048);
    print_message("read for 1700 tokens: %.2f MB in chunks of 512, %.2f MB as planned\n", (double)narrow_bytes / 1e6,
                  (double)wide_bytes / 1e6);
    assert_true(wide_bytes > 0 && 3 * wide_bytes <= narrow_bytes);
    assert_memory_equal(narrow_logits, wide_logits, sizeof wide_logits);
    unlink(path);
}

/* The nth system call of a pass fails: an error with words or no harm at all; the session goes on. */
static void test_faults_leave_the_session_intact(void **state)
{
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };
    ebb_token ids[N_IDS];

    (void)state;
    make_want(EBB_TYPE_Q8_0, "llama");
    fill_ids(ids, N_IDS, 1);
    for (size_t k = 0; k < 3; k++) {
        ebb_engine_opts o = { .has_resident = true, .resident = 2, .io = ios[k] };
        tiny_engine f;

        open_engine(&f, o);
        for (int n = 1; n < 80; n += 3) {
            uint32_t at = (uint32_t)n % (N_IDS - 2);
            ebb_error err = { 0 };
            ebb_status st;
            size_t held;

            assert_int_equal(ebb_session_sync(f.s, ids, at, NULL, NULL), EBB_OK);
            ebb_os_fail_nth(n);
            st = ebb_session_append(f.s, ids[at], &err);
            if (st == EBB_OK)
                st = ebb_session_append(f.s, ids[at + 1], &err);
            ebb_os_fail_off();
            if (st != EBB_OK)
                assert_true(err.msg[0] != '\0');
            (void)ebb_session_ids(f.s, &held);
            assert_in_range(held, at, at + 2);
            assert_int_equal(ebb_session_sync(f.s, ids, at + 2, NULL, NULL), EBB_OK);
            assert_memory_equal(ebb_session_logits(f.s), want + (at + 1) * EBB_TINY_VOCAB,
                                EBB_TINY_VOCAB * sizeof(float));
        }
        close_tiny_engine(&f);
    }
    unlink(path);
}

static void test_a_changed_file_is_an_error(void **state)
{
    ebb_engine_opts o = { .has_resident = true, .resident = 1, .io = EBB_IO_MMAP };
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };
    struct stat st;
    tiny_engine f;
    size_t held;

    (void)state;
    write_model(EBB_TYPE_Q8_0, "llama");
    fill_ids(ids, N_IDS, 1);
    open_engine(&f, o);
    assert_int_equal(ebb_session_sync(f.s, ids, 4, NULL, NULL), EBB_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    assert_int_equal(ebb_session_append(f.s, ids[4], &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, path));
    assert_memory_equal(ebb_session_ids(f.s, &held), ids, 4 * sizeof *ids);
    assert_int_equal(held, 4);
    close_tiny_engine(&f);
    unlink(path);
}

static void cut_off(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)arg;
    (void)logits;
    (void)n_vocab;
    if (pos == 0)
        assert_int_equal(truncate(path, 8192), 0);
}

/* In the middle of a pass over mapped weights: the pass fails, the session stands as before it. */
static void test_a_file_cut_off_during_a_pass(void **state)
{
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };
    tiny_engine f;
    size_t held;

    (void)state;
    write_model(EBB_TYPE_Q8_0, "llama");
    fill_ids(ids, N_IDS, 1);
    open_engine(&f, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_eval(f.s, ids, N_IDS, N_IDS, cut_off, NULL, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, path));
    assert_non_null(strstr(err.msg, "truncated"));
    (void)ebb_session_ids(f.s, &held);
    assert_int_equal(held, 0);
    assert_int_equal(ebb_session_append(f.s, ids[0], &err), EBB_FORMAT);
    close_tiny_engine(&f);
    unlink(path);
}

/* Another file of the same name is not our concern: we hold the one we opened. */
static void test_a_replaced_file_is_not_noticed(void **state)
{
    ebb_engine_opts o = { .has_resident = true, .resident = 1, .io = EBB_IO_PREAD };
    tiny_engine f;

    (void)state;
    make_want(EBB_TYPE_Q8_0, "llama");
    open_engine(&f, o);
    unlink(path);
    write_model(EBB_TYPE_F16, "qwen2");
    expect_want(&f, 8, "the old file");
    close_tiny_engine(&f);
    unlink(path);
}

static void test_budget_changes_live(void **state)
{
    static const uint64_t less[] = { 900, 600, 300, 700, 1000 };         /* thousandths of what it takes in all */
    ebb_engine_opts o = { .io = EBB_IO_PREAD };
    ebb_plan plan, slow;
    ebb_stats s;
    uint64_t whole;
    tiny_engine f;

    (void)state;
    make_want(EBB_TYPE_F32, "llama");
    open_engine(&f, o);
    expect_want(&f, 8, "mapped");
    assert_int_equal(ebb_engine_plan_budget(f.engine, 0, &plan, NULL), EBB_OK);
    assert_int_equal(plan.n_resident, N_LAYERS);
    f.engine->calibration.correction = 3;        /* passes took three times as long: with a full context, too */
    assert_int_equal(ebb_engine_plan_budget(f.engine, 0, &slow, NULL), EBB_OK);
    assert_true(slow.predicted_full_tok_s <= slow.predicted_decode_tok_s);
    assert_true(slow.predicted_full_tok_s < plan.predicted_full_tok_s / 2);
    assert_true(slow.predicted_first_token_s > plan.predicted_first_token_s * 2);
    f.engine->calibration.correction = 0;
    whole = plan.weights_resident_bytes;
    for (size_t i = 0; i < 5; i++) {
        uint64_t bytes = plan.total_bytes - plan.weights_ring_bytes - plan.weights_resident_bytes +
                         whole * less[i] / 1000 + (20 << 20);
        ebb_status st = ebb_engine_set_budget(f.engine, bytes, NULL, NULL, NULL);

        assert_int_equal(st, EBB_OK);
        expect_want(&f, 8, "after a change of the budget");
        ebb_engine_stats(f.engine, &s);
        assert_true(s.budget_bytes <= bytes);
        assert_true(s.memory_event.code == EBB_MEMORY_BUDGET_SET);
    }
    assert_int_equal(ebb_engine_set_budget(f.engine, 1 << 20, NULL, NULL, NULL), EBB_BUDGET);
    expect_want(&f, 8, "after a refusal");
    close_tiny_engine(&f);
    unlink(path);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/var/tmp/ebb-stream-XXXXXX.gguf");
    return close(mkstemps(path, 5));             /* a name of its own */
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_every_reader_and_resident_count),
        cmocka_unit_test(test_experts_come_when_chosen),
        cmocka_unit_test(test_experts_in_need),
        cmocka_unit_test(test_in_need),
        cmocka_unit_test(test_a_chunk_reads_once),
        cmocka_unit_test(test_long_prompts_read_experts_once),
        cmocka_unit_test(test_faults_leave_the_session_intact),
        cmocka_unit_test(test_a_changed_file_is_an_error),
        cmocka_unit_test(test_a_file_cut_off_during_a_pass),
        cmocka_unit_test(test_a_replaced_file_is_not_noticed),
        cmocka_unit_test(test_budget_changes_live),
    };

    return cmocka_run_group_tests_name("stream", tests, setup, teardown);
}
