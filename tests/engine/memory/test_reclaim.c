/* What watches over memory fails at every call it makes, and the disk of the KV cache is full while
 * weights are streamed: the session and its bits stay. */
#include "ebb_test.h"

#include "base/clock.h"
#include "ebb/experimental/plan.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "support/own_folder.h"
#include "support/tiny_engine.h"

enum { N_IDS = 40 };

static char dir[64], path[80], cache[80];
static float want[EBB_TINY_VOCAB];

static ebb_status open_engine(tiny_engine *f, uint32_t resident, const char *kv, ebb_error *err)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 2, .has_resident = true, .resident = resident, .io = EBB_IO_PREAD,
                          .no_kv_cache = !kv, .kv_cache_dir = kv };
    ebb_status st = ebb_model_open(path, &f->model, err);

    f->bytes = NULL;
    f->engine = NULL;
    f->s = NULL;
    if (st == EBB_OK)
        st = ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, err);
    return st == EBB_OK ? ebb_session_new(f->engine, &f->s, err) : st;
}

/* Compute the ids anew and compare. */
static void expect_want(tiny_engine *f)
{
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };

    fill_ids(ids, N_IDS, 1);
    if (ebb_session_sync(f->s, NULL, 0, NULL, &err) != EBB_OK ||
        ebb_session_sync(f->s, ids, N_IDS, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_memory_equal(ebb_session_logits(f->s), want, sizeof want);
}

static int setup(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 4, .n_embd = 256, .n_ff = 512, .seed = 11 };
    ebb_token ids[N_IDS];
    tiny_engine f;

    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/var/tmp/ebb-reclaim-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    snprintf(cache, sizeof cache, "%s/kv", dir);
    if (!ebb_tiny_write(&tiny, path) || open_engine(&f, 4, NULL, NULL) != EBB_OK)
        return -1;
    fill_ids(ids, N_IDS, 1);
    if (ebb_session_sync(f.s, ids, N_IDS, NULL, NULL) != EBB_OK)
        return -1;
    memcpy(want, ebb_session_logits(f.s), sizeof want);
    close_tiny_engine(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

/* Files of /proc and of the cgroup that cannot be read, at open: an error with words, or none at all. */
static void test_open(void **state)
{
    int n_opened = 0;

    (void)state;
    for (int n = 1; n < 120; n += 2) {
        ebb_error err = { 0 };
        ebb_status st;
        tiny_engine f;

        ebb_os_fail_nth(n);
        st = open_engine(&f, 2, NULL, &err);
        ebb_os_fail_off();
        if (st == EBB_OK)
            expect_want(&f);
        else
            assert_true(err.msg[0] != '\0');
        n_opened += st == EBB_OK;
        close_tiny_engine(&f);
    }
    assert_true(n_opened > 20);
}

/* The same between turns, and while another budget is brought about. */
static void test_idle_and_budget(void **state)
{
    ebb_error err = { 0 };
    tiny_engine f;

    (void)state;
    assert_int_equal(open_engine(&f, 4, NULL, &err), EBB_OK);
    for (int n = 1; n < 40; n++) {
        ebb_os_fail_nth(n);
        ebb_engine_idle(f.engine);
        ebb_os_fail_off();
    }
    expect_want(&f);
    for (int n = 1; n < 90; n += 4) {
        ebb_plan p;
        ebb_status st;

        assert_int_equal(ebb_engine_plan_budget(f.engine, 0, &p, &err), EBB_OK);
        ebb_os_fail_nth(n);
        st = ebb_engine_set_budget(
            f.engine, n % 8 == 1 ? p.total_bytes + 18 * ((uint64_t)1 << 20) - p.weights_resident_bytes / 2 : 0, NULL,
            NULL, &err);
        ebb_os_fail_off();
        assert_true(st == EBB_OK || err.msg[0] != '\0');
        expect_want(&f);
    }
    close_tiny_engine(&f);
}

/* The nth call of keeping KV fails while layers are streamed: only time is lost. */
static void test_full_disk_while_streaming(void **state)
{
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };

    (void)state;
    fill_ids(ids, N_IDS, 1);
    for (int n = 1; n < 60; n += 4) {
        tiny_engine f;

        assert_int_equal(open_engine(&f, 1, cache, &err), EBB_OK);
        expect_want(&f);
        ebb_os_fail_nth(n);
        ebb_session_persist(f.s);
        if (ebb_session_append(f.s, ids[0], &err) != EBB_OK)     /* reads, too: it may be the one that fails */
            assert_true(err.msg[0] != '\0');
        ebb_os_fail_off();
        expect_want(&f);
        close_tiny_engine(&f);
    }
}

/* Layers were evicted, and memory has been there for a while: they come back while the answer goes on, with the same
 * bits. */
static void test_reloaded_in_an_answer(void **state)
{
    tiny_engine f, same;
    uint32_t n_gone = 0;
    ebb_stats s;

    (void)state;
    assert_int_equal(open_engine(&f, 3, NULL, NULL), EBB_OK);
    assert_int_equal(open_engine(&same, 3, NULL, NULL), EBB_OK);
    expect_want(&f);
    expect_want(&same);
    for (uint32_t i = 0; i < 4; i++)
        if (ebb_reclaim_group_is_resident(f.engine, i)) {
            assert_int_equal(ebb_res_set_state(f.engine->res, i, EBB_LAYER_DISK, NULL), EBB_OK);
            n_gone++;
        }
    assert_int_equal(n_gone, 3);
    atomic_store(&f.engine->budget.n_evicted, n_gone);
    f.engine->budget.evicted_ns = ebb_clock_ns(); /* just now: nothing comes back */
    assert_int_equal(ebb_session_append(f.s, 5, NULL), EBB_OK);
    assert_int_equal(ebb_session_append(same.s, 5, NULL), EBB_OK);
    assert_int_equal(atomic_load(&f.engine->budget.n_evicted), n_gone);
    if (ebb_reclaim_last_snapshot(f.engine).pressure_avg10 >= 1) {
        print_message("          others wait for memory here: nothing would come back\n");
        skip();
    }
    for (uint32_t i = 1; i <= n_gone; i++) {
        f.engine->budget.evicted_ns = 1;         /* long ago */
        f.engine->budget.reload_tried_ns = 1;
        assert_int_equal(ebb_session_append(f.s, (ebb_token)(60 + i * i), NULL), EBB_OK);
        assert_int_equal(ebb_session_append(same.s, (ebb_token)(60 + i * i), NULL), EBB_OK);
        assert_int_equal(atomic_load(&f.engine->budget.n_evicted), n_gone - i);
        assert_memory_equal(ebb_session_logits(f.s), ebb_session_logits(same.s), sizeof want);
        ebb_engine_stats(f.engine, &s);
        assert_true(s.memory_event.code == EBB_MEMORY_LAYER_RELOADED && s.memory_event.n_layers_left == n_gone - i);
    }
    expect_want(&f);
    close_tiny_engine(&f);
    close_tiny_engine(&same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_idle_and_budget),
        cmocka_unit_test(test_full_disk_while_streaming),
        cmocka_unit_test(test_reloaded_in_an_answer),
    };

    return cmocka_run_group_tests_name("budget_watch", tests, setup, teardown);
}
