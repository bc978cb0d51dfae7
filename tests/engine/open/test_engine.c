/* Opening an engine: every system call may fail; what the plan says is what is
 * allocated. */
#include "ebb_test.h"

#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "os/fault.h"
#include "support/tiny_model.h"

static char path[64];
static const ebb_tiny_opts tiny = { .type = EBB_TYPE_Q4_K };

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "build/test_engine.XXXXXX.gguf");
    close(mkstemps(path, 5));                    /* a name of its own */
    return ebb_tiny_write(&tiny, path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static ebb_model *open_model(void)
{
    ebb_error err = { 0 };
    ebb_model *m;

    if (ebb_model_open(path, &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

static void test_every_fault_is_survived(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 3, .has_resident = true, .resident = 1 };
    ebb_model *m = open_model();

    (void)state;
    for (int n = 1;; n += (int)ebb_test_one_in(8)) {     /* each measures the machine */
        ebb_error err = { 0 };
        ebb_engine *e = NULL;
        ebb_status st;
        bool reached;

        ebb_os_fail_nth(n);
        st = ebb_engine_open(m, &o, NULL, NULL, &e, &err);
        reached = ebb_os_fail_off();
        if (st == EBB_OK) {
            ebb_session *s;

            assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
            assert_int_equal(ebb_session_append(s, 1, NULL), EBB_OK);
            ebb_session_free(s);
        } else {
            assert_null(e);
            assert_int_not_equal(err.msg[0], 0);
        }
        ebb_engine_close(e);
        if (!reached)
            break;
    }
    ebb_model_close(m);
}

/* With thousands of threads on a few CPUs a pass lasts for minutes, and no signal is seen before its end. */
static void test_too_many_threads_are_refused(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 64 };
    ebb_model *m = open_model();
    ebb_error err = { 0 };
    ebb_machine machine;
    char most[40];
    ebb_engine *e;

    (void)state;
    assert_int_equal(ebb_machine_probe(NULL, false, &machine, NULL), EBB_OK);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    ebb_engine_close(e);
    o.n_threads = machine.n_cpus * 4 > 64 ? machine.n_cpus * 4 : 64;
    snprintf(most, sizeof most, "give %u at most", o.n_threads++);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_USAGE);
    assert_null(e);
    assert_non_null(strstr(err.msg, most));
    assert_int_equal(ebb_machine_measure(&machine, m, &o, false, &err), EBB_USAGE);
    ebb_model_close(m);
}

static void test_a_failing_read_ends_the_pass_only(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1 };
    ebb_model *m = open_model();
    ebb_token ids[3] = { 1, 2, 3 };
    ebb_error err = { 0 };
    ebb_engine *e;
    ebb_session *s;
    size_t n;

    (void)state;
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(s, ids, 2, NULL, NULL), EBB_OK);
    ebb_os_fail_nth_here(1);                     /* the row of token_embd */
    assert_int_equal(ebb_session_append(s, 3, &err), EBB_IO);
    assert_true(ebb_os_fail_off());
    (void)ebb_session_ids(s, &n);
    assert_int_equal(n, 2);
    assert_int_equal(ebb_session_append(s, 3, &err), EBB_OK);
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
}

static void test_pinned_layers_give_the_same_bits(void **state)
{
    float want[EBB_TINY_VOCAB];
    ebb_token ids[20];
    ebb_model *m = open_model();

    (void)state;
    for (int i = 0; i < 20; i++)
        ids[i] = i * 7;
    for (uint32_t pinned = 0; pinned <= 2; pinned++) {
        ebb_engine_opts o = { .n_ctx = 64, .n_threads = 2, .has_resident = true, .resident = pinned };
        ebb_engine *e;
        ebb_session *s;
        ebb_stats st;

        assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
        assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
        assert_int_equal(ebb_session_sync(s, ids, 20, NULL, NULL), EBB_OK);
        ebb_engine_stats(e, &st);
        assert_true(st.pinned_bytes > 0);        /* the output matrix */
        assert_int_equal((st.layer[0] == EBB_LAYER_PINNED) + (st.layer[1] == EBB_LAYER_PINNED), pinned);
        if (pinned == 0)
            memcpy(want, ebb_session_logits(s), sizeof want);
        assert_memory_equal(ebb_session_logits(s), want, sizeof want);
        ebb_session_free(s);
        ebb_engine_close(e);
    }
    ebb_model_close(m);
}

static void test_plan_is_the_allocation(void **state)
{
    ebb_engine_opts o = { .n_ctx = 512, .n_threads = 2, .n_batch = 64 };
    ebb_machine machine = { .available_bytes = (uint64_t)1 << 40, .n_cpus = 2 };
    ebb_model *m = open_model();
    ebb_engine *e;
    ebb_plan p;
    ebb_stats st;

    (void)state;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    assert_true(p.fits);
    assert_int_equal(p.tier, EBB_TIER_FULL);
    assert_int_equal(p.total_bytes, p.weights_resident_bytes + p.weights_ring_bytes + p.kv_bytes + p.activation_bytes +
                                        p.tokenizer_bytes + p.code_bytes + p.reserve_bytes);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    ebb_engine_stats(e, &st);
    assert_int_equal(st.kv_bytes, p.kv_bytes);
    /* 17 blocks of 32 positions, 2 layers, K and V of 2 heads of 64 in f16 */
    assert_int_equal(p.kv_bytes, 17 * 32 * 2 * 2 * 2 * 64 * 2);
    assert_int_equal(st.weight_bytes, p.weights_resident_bytes);
    /* scratch, and a session with its sampler: ids, tables of blocks, logits, candidates */
    assert_int_equal(p.activation_bytes, st.scratch_bytes + 512 * 4 + 2 * 16 * 4 + EBB_TINY_VOCAB * (4 + 24));
    ebb_engine_close(e);
    ebb_model_close(m);
}

static void test_plan_gives_up_context_and_precision(void **state)
{
    ebb_machine machine = { .available_bytes = (uint64_t)1 << 40, .n_cpus = 2, .available_why = "a test" };
    ebb_engine_opts o = { 0 };
    ebb_model *m = open_model();
    ebb_engine *e;
    ebb_error err = { 0 };
    ebb_plan p, q;

    (void)state;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    assert_int_equal(p.n_ctx, 1024);             /* what it was trained for */
    machine.available_bytes = p.total_bytes - 1;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &q, NULL), EBB_OK);
    assert_int_equal(q.tier, EBB_TIER_TIGHT);
    assert_int_equal(q.kv_k, EBB_KV_Q8_0);
    assert_int_equal(q.n_ctx, 1024);
    machine.available_bytes = q.total_bytes - 1; /* so small a model gains nothing by streaming: a smaller chunk */
    assert_int_equal(ebb_plan_make(m, &o, &machine, &q, NULL), EBB_OK);
    assert_true(q.fits);
    assert_true(q.n_batch < 512);
    assert_true(q.total_bytes <= machine.available_bytes);
    machine.available_bytes = 20 << 20;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &q, NULL), EBB_OK);
    assert_false(q.fits);
    assert_true(q.min_bytes > machine.available_bytes);
    assert_non_null(strstr(q.why, "a test"));
    o.ram_bytes = 1 << 20;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &q, NULL), EBB_OK);
    assert_int_equal(q.tier, EBB_TIER_CRITICAL);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_BUDGET);
    assert_non_null(strstr(err.msg, "--ram"));
    ebb_model_close(m);
}

static void test_kv_types_that_do_not_fit_are_refused(void **state)
{
    ebb_tiny_opts odd = { .type = EBB_TYPE_F32, .n_embd = 64, .head_dim = 20 };
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1, .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_F16 };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    char *bytes;
    ebb_model *m = ebb_tiny_open(&odd, &bytes);
    ebb_stats st;

    (void)state;
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "--kv f16"));
    o.kv_k = o.kv_v = EBB_KV_AUTO;
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_OK);
    ebb_engine_stats(e, &st);
    assert_string_equal(st.kv_type, "f16");
    ebb_engine_close(e);
    ebb_model_close(m);
    free(bytes);
}

/* Between its header and its weights the file was cut; which of a model's files it is has to be said. */
static void test_a_file_cut_while_it_opens(void **state)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1 };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    ebb_model *m = open_model();

    (void)state;
    assert_int_equal(truncate(path, 40000), 0);
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_FORMAT);
    if (strstr(err.msg, path) != err.msg || !strstr(err.msg, ": truncated: its tensor "))
        fail_msg("says: %s", err.msg);
    ebb_model_close(m);
    assert_true(ebb_tiny_write(&tiny, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_is_survived),
        cmocka_unit_test(test_too_many_threads_are_refused),
        cmocka_unit_test(test_a_failing_read_ends_the_pass_only),
        cmocka_unit_test(test_pinned_layers_give_the_same_bits),
        cmocka_unit_test(test_plan_is_the_allocation),
        cmocka_unit_test(test_plan_gives_up_context_and_precision),
        cmocka_unit_test(test_kv_types_that_do_not_fit_are_refused),
        cmocka_unit_test(test_a_file_cut_while_it_opens),
    };

    return cmocka_run_group_tests_name("engine", tests, setup, teardown);
}
