/* A machine of files of ours, in which others take memory and give it back: a small shortage takes one layer, a steady
 * neighbour no second one, all come back when it leaves, and not too soon when it comes and goes (reclaim.c). */
#include "core/os/fake_root.h"

#include <time.h>

#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "open/engine_state.h"
#include "support/tiny_model.h"

enum { N_LAYERS = 16, N_RESIDENT = 12, N_CTX = 2048 };

static const ebb_tiny_opts dense = { .type = EBB_TYPE_Q8_0, .n_layers = N_LAYERS, .n_embd = 256, .n_ff = 512 },
    mixture = { .arch = "qwen3moe", .type = EBB_TYPE_Q8_0, .n_layers = N_LAYERS, .n_embd = 256, .n_ff = 512,
                .n_expert = 12 },
    wide = { .type = EBB_TYPE_Q8_0, .n_layers = N_LAYERS, .n_embd = 512, .n_head = 8, .n_head_kv = 8, .head_dim = 64,
             .n_ff = 1024, .n_ctx = N_CTX };
static char path[64];

/* Time stands still for the engine: a test says how long ago what was, and no machine is too slow for it. */
static const uint64_t now_ns = 1000 * 1000000000ull;

uint64_t __wrap_ebb_clock_ns(void);
uint64_t __wrap_ebb_clock_ns(void)
{
    return now_ns;
}

typedef struct fixture {
    ebb_model   *model;
    ebb_engine  *engine;
    ebb_session *s;
    uint64_t     group;          /* the bytes of a layer */
    uint64_t     all, ring;      /* what is resident by plan; the ring at first */
    int64_t      others;         /* taken by others */
} fixture;

static ebb_res_stats residency(fixture *f)
{
    ebb_res_stats s;

    ebb_res_get_stats(f->engine->res, &s);
    return s;
}

static uint64_t resident_bytes(fixture *f)
{
    return residency(f).pinned_bytes + residency(f).mapped_bytes;
}

/* Layers as large as the floor, as those of 18 GB are; the plan leaves a third more than that. */
static void open_fixture(fixture *f, const ebb_tiny_opts *tiny, ebb_engine_opts o)
{
    ebb_error err = { 0 };
    ebb_token ids[] = { 1, 2, 3 };

    o.n_ctx = o.n_ctx ? o.n_ctx : 64;
    o.n_threads = 2;
    o.io = EBB_IO_PREAD;
    o.no_kv_cache = true;
    *f = (fixture){ .others = 0 };
    assert_true(ebb_tiny_write(tiny, path));
    if (ebb_model_open(path, &f->model, &err) != EBB_OK ||
        ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, &err) != EBB_OK ||
        ebb_session_new(f->engine, &f->s, &err) != EBB_OK || ebb_session_sync(f->s, ids, 3, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    while (ebb_res_pending_bytes(f->engine->res) > 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    ebb_pressure_monitor_set(f->engine, false, 0);       /* it reads the true machine */
    if (o.has_resident)                          /* a group of another size */
        assert_int_equal(ebb_res_set_state(f->engine->res, N_LAYERS, EBB_LAYER_DISK, NULL), EBB_OK);
    f->all = resident_bytes(f);
    f->ring = residency(f).ring_bytes;
    f->group = f->all / (o.has_resident ? N_RESIDENT : N_LAYERS);
    f->engine->machine.os_reserve_bytes = f->group / 3 * 4;
    f->engine->plan.reserve_bytes = 0;
    f->engine->budget.root = fake_root;
}

static void open_layers(fixture *f)
{
    open_fixture(f, &dense, (ebb_engine_opts){ .has_resident = true, .resident = N_RESIDENT });
    assert_true(f->group > 100000);
}

static void close_fixture(fixture *f)
{
    ebb_session_free(f->s);
    ebb_engine_close(f->engine);
    ebb_model_close(f->model);
    fake_root_clear(NULL);
}

static int64_t available(fixture *f)
{
    return (int64_t)(f->group / 3 * 4 + f->all + f->ring) - (int64_t)(resident_bytes(f) + residency(f).ring_bytes) -
           f->others;
}

/* One check, and what may come back comes back. */
static void check(fixture *f)
{
    char text[96];
    ebb_error err = { 0 };
    int64_t kib = (available(f) + (int64_t)residency(f).mapped_bytes) / 1024;    /* these the kernel may drop */

    snprintf(text, sizeof text, "MemTotal: 99999999 kB\nMemAvailable: %lld kB\n", (long long)(kib > 0 ? kib : 0));
    fake_root_put("/proc/meminfo", text);
    f->engine->budget.n_passes_unchecked = 1000;
    if (ebb_reclaim_before_pass(f->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    while (ebb_res_pending_bytes(f->engine->res) > 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* All of that was long ago. */
static void let_time_pass(fixture *f)
{
    ebb_budget *b = &f->engine->budget;

    b->evicted_ns = b->evicted_ns ? 1 : 0;
    b->reload_tried_ns = b->step.at_ns = 1;
}

static ebb_memory_event last_event(fixture *f)
{
    ebb_stats s;

    ebb_engine_stats(f->engine, &s);
    return s.memory_event;
}

static void expect_calm(fixture *f)
{
    uint32_t number = last_event(f).number;

    for (int i = 0; i < 40; i++) {
        let_time_pass(f);
        check(f);
    }
    assert_int_equal(last_event(f).number, number);
}

static void test_a_small_shortage_takes_one_layer(void **state)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    ebb_memory_event event;
    fixture f;

    (void)state;
    open_layers(&f);
    check(&f);
    assert_int_equal(resident_bytes(&f), f.all);
    f.others = (int64_t)f.group * 2 / 3;         /* a third of a layer is short */
    check(&f);
    assert_in_range(f.all - resident_bytes(&f), f.group / 4 * 3, f.group / 4 * 5);
    event = last_event(&f);
    assert_int_equal(event.code, EBB_MEMORY_LAYERS_EVICTED);
    assert_int_equal(event.n_layers, 1);
    assert_false(event.is_emergency);
    assert_non_null(strstr(ebb_memory_event_text(&event, line, sizeof line), "; 1 layer evicted, "));
    close_fixture(&f);
}

/* However much a neighbour takes: what goes is enough, and neither more goes nor anything comes back while it stays.
 * When it leaves all come back, although the plan leaves little more than the floor. */
static void test_a_steady_neighbour(void **state)
{
    fixture f;

    (void)state;
    open_layers(&f);
    for (uint32_t sixths = 3; sixths <= 40; sixths += 2) {
        f.others = (int64_t)(f.group * sixths / 6);
        for (int i = 0; i < 8; i++) {            /* steps of a quarter at most */
            let_time_pass(&f);
            check(&f);
        }
        assert_true(available(&f) >= (int64_t)f.group);
        expect_calm(&f);
        f.others = 0;
        for (int i = 0; i < N_LAYERS; i++) {
            let_time_pass(&f);
            check(&f);
        }
        assert_int_equal(resident_bytes(&f), f.all);
        expect_calm(&f);
    }
    close_fixture(&f);
}

static void test_a_quarter_at_most_then_all(void **state)
{
    fixture f;
    uint64_t quarter;

    (void)state;
    open_layers(&f);
    quarter = f.all / 4;
    f.others = (int64_t)f.all + (int64_t)f.group;        /* nothing is left, and who knows how much is wanted */
    check(&f);
    assert_in_range(f.all - resident_bytes(&f), quarter / 4 * 3, quarter + f.group);
    assert_false(last_event(&f).is_emergency);
    check(&f);                                   /* it was not enough a moment ago */
    assert_int_equal(resident_bytes(&f), 0);
    assert_true(last_event(&f).is_emergency);
    close_fixture(&f);
}

/* Of mapped weights it is known how much others take of them; the first step also pays for the ring. */
static void test_mapped_weights(void **state)
{
    fixture f;

    (void)state;
    open_fixture(&f, &wide, (ebb_engine_opts){ 0 });
    assert_true(f.engine->plan.is_mapped && residency(&f).ring_bytes == 0);
    f.others = (int64_t)f.group * 3 / 2;         /* less than nothing is available: a sixth of a layer */
    check(&f);
    assert_true(residency(&f).ring_bytes > 0);
    assert_in_range(available(&f), f.group / 4 * 5, f.group / 4 * 9);
    expect_calm(&f);
    f.others += (int64_t)f.group * 5;            /* more than a quarter: that goes first, then the rest of it */
    let_time_pass(&f);
    check(&f);
    assert_false(last_event(&f).is_emergency);
    assert_true(available(&f) < (int64_t)f.group / 4);
    check(&f);
    assert_true(last_event(&f).is_emergency);
    assert_in_range(available(&f), f.group / 4 * 5, f.group / 4 * 9);
    close_fixture(&f);
}

/* The output matrix goes first, and is no layer: of what goes, of what stays, and of what comes back.  Without it a
 * token takes as long as its reading does, which nobody predicts for a disk that was never measured. */
static void test_the_output_matrix(void **state)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    ebb_machine *machine;
    ebb_memory_event event;
    ebb_stats before, without;
    fixture f;

    (void)state;
    open_fixture(&f, &dense, (ebb_engine_opts){ .has_resident = true, .resident = N_RESIDENT });
    assert_int_equal(ebb_res_set_state(f.engine->res, N_LAYERS, EBB_LAYER_PINNED, NULL), EBB_OK);
    f.all = resident_bytes(&f);
    machine = &f.engine->machine;
    machine->memory_bytes_s = 1e10;
    machine->disk_bytes_s = machine->disk_busy_bytes_s = 1e6;
    machine->busy_share = 0.9;
    machine->types[EBB_TYPE_Q8_0] = (ebb_type_speed){ 1e10, 1e12 };
    machine->overheads = (ebb_overheads){ 0 };
    machine->sync_s = 0;
    ebb_plan_predict(&f.engine->net, machine, &f.engine->plan);
    ebb_engine_stats(f.engine, &before);
    f.others = available(&f) - (int64_t)f.group + 1;     /* the least that is short */
    f.engine->budget.step.at_ns = 0;
    check(&f);
    event = last_event(&f);
    assert_int_equal(event.code, EBB_MEMORY_LAYERS_EVICTED);
    assert_int_equal(ebb_res_state(f.engine->res, N_LAYERS), EBB_LAYER_DISK);
    assert_int_equal(event.n_layers + event.n_layers_left, N_RESIDENT);
    assert_string_equal(event.detail, "the output matrix");
    ebb_engine_stats(f.engine, &without);
    assert_true(without.predicted_decode_tok_s > 0 &&
                without.predicted_decode_tok_s < before.predicted_decode_tok_s * 0.95);
    machine->disk_bytes_s = 0;
    ebb_engine_stats(f.engine, &without);
    assert_true(without.predicted_decode_tok_s == 0 && before.predicted_decode_tok_s > 0);
    f.others = 0;
    for (uint32_t i = 0; i <= event.n_layers; i++) {     /* the last one that comes back */
        let_time_pass(&f);
        check(&f);
    }
    assert_int_equal(resident_bytes(&f), f.all);
    event = last_event(&f);
    assert_string_equal(ebb_memory_event_text(&event, line, sizeof line),
                        "memory is available again: the output matrix reloaded, 0 to come");
    event = (ebb_memory_event){ .code = EBB_MEMORY_LAYERS_EVICTED, .n_layers_left = 2, .detail = "the output matrix" };
    assert_non_null(strstr(ebb_memory_event_text(&event, line, sizeof line),
                           "; the output matrix evicted, 2 layers left"));
    event.n_layers = 1;
    assert_non_null(strstr(ebb_memory_event_text(&event, line, sizeof line),
                           "; 1 layer and the output matrix evicted, 2 stay"));
    close_fixture(&f);
}

/* Each check finds it short again: the steps grow to a quarter, and not all goes. */
static void test_steps_grow_with_a_neighbour_that_grows(void **state)
{
    static const uint32_t n_layers[] = { 1, 2, 3, 2 };   /* twice, a quarter of 9, of 6 */
    fixture f;

    (void)state;
    open_layers(&f);
    for (size_t i = 0; i < 4; i++) {
        f.others += available(&f) - (int64_t)f.group * 2 / 3;
        check(&f);
        assert_int_equal(last_event(&f).n_layers, n_layers[i]);
        assert_false(last_event(&f).is_emergency);
    }
    close_fixture(&f);
}

static void check_in_swap(fixture *f, unsigned mib)
{
    char text[64];

    snprintf(text, sizeof text, "VmSwap:\t   %u kB\n", mib * 1024);
    fake_root_put("/proc/self/status", text);
    fake_root_put("/proc/self/stat", "1 (ebb) S 1 1 1 0 -1 4194560 100 0 7 0 0 0\n");
    check(f);
}

/* While more of us goes to swap, nothing counts as left. */
static void test_swap(void **state)
{
    fixture f;

    (void)state;
    open_layers(&f);
    check_in_swap(&f, 70);
    assert_int_equal(last_event(&f).code, EBB_MEMORY_LAYERS_EVICTED);
    assert_int_equal(last_event(&f).n_layers, 2);        /* the floor and a quarter of it */
    for (unsigned i = 2; i < 6; i++) {
        check_in_swap(&f, 70 * i);
    }
    assert_int_equal(resident_bytes(&f), 0);     /* it did not help */
    close_fixture(&f);
}

/* What an idle night left in swap is one step, and all comes back. */
static void test_what_stays_in_swap(void **state)
{
    fixture f;

    (void)state;
    open_layers(&f);
    check_in_swap(&f, 2000);
    assert_int_equal(last_event(&f).n_layers, 2);
    for (int i = 0; i < 4; i++)
        check(&f);
    assert_int_equal(last_event(&f).n_layers, 2);
    for (int i = 0; i < 20; i++) {
        let_time_pass(&f);
        check(&f);
    }
    assert_int_equal(resident_bytes(&f), f.all);
    check_in_swap(&f, 100);                      /* most of it was read in again: 30 MiB more are no sign, 70 are */
    check_in_swap(&f, 130);
    assert_int_equal(resident_bytes(&f), f.all);
    check_in_swap(&f, 170);
    assert_true(resident_bytes(&f) < f.all);
    close_fixture(&f);
}

/* A neighbour that comes back as soon as a layer has come back: that waits longer the next time. */
static void test_one_that_comes_and_goes(void **state)
{
    ebb_budget *b;
    uint64_t first;
    fixture f;

    (void)state;
    open_layers(&f);
    b = &f.engine->budget;
    first = b->calm_ns;
    for (int i = 0; i < 4; i++) {
        uint64_t calm = i == 1 || i == 2 ? 2 * first : first;

        f.others = (int64_t)f.group * 2 / 3;
        check(&f);
        assert_true(resident_bytes(&f) < f.all);
        assert_int_equal(b->calm_ns, calm);
        f.others = 0;
        b->evicted_ns = now_ns - calm + 1;       /* not long enough ago */
        b->reload_tried_ns = b->step.at_ns = 1;
        check(&f);
        assert_true(resident_bytes(&f) < f.all);
        let_time_pass(&f);
        check(&f);
        assert_int_equal(resident_bytes(&f), f.all);
        if (i == 2)
            b->reloaded_ns -= first;             /* it was of use for a while */
    }
    close_fixture(&f);
}

/* What K and V lend goes first; it comes back as layers do, and is not short again at once. */
static void test_lent_memory(void **state)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_batch = 64, .has_kv = true, .kv_k = EBB_KV_F16, .kv_v = EBB_KV_F16,
                          .no_speculation = true };
    ebb_machine machine = { .available_bytes = UINT64_MAX / 4, .n_cpus = 2 };
    ebb_engine_opts none = o;
    uint64_t lent, before;
    fixture f;
    ebb_model *m;
    ebb_plan p;

    (void)state;
    assert_true(ebb_tiny_write(&wide, path));
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    none.has_resident = true;
    assert_int_equal(ebb_plan_make(m, &none, &machine, &p, NULL), EBB_OK);
    ebb_model_close(m);
    o.ram_bytes = p.total_bytes + ((uint64_t)1 << 20);   /* nearly no layer beside all of K and V */
    open_fixture(&f, &wide, o);
    lent = residency(&f).lent_bytes;
    assert_true(lent > 4 * f.group);
    for (uint32_t sixths = 3; sixths <= 12; sixths++) {
        f.others = (int64_t)(f.group * sixths / 6);
        before = residency(&f).lent_bytes;
        let_time_pass(&f);
        check(&f);
        assert_true(residency(&f).lent_bytes < before);
        assert_int_equal(last_event(&f).code, EBB_MEMORY_LAYERS_EVICTED);
        for (int i = 0; i < 12; i++) {           /* what has room beside it */
            let_time_pass(&f);
            check(&f);
        }
        expect_calm(&f);
        f.others = 0;
        for (int i = 0; i < 2 * N_LAYERS; i++) {
            let_time_pass(&f);
            check(&f);
        }
        assert_int_equal(residency(&f).lent_bytes, lent);
        expect_calm(&f);
    }
    close_fixture(&f);
}

/* The memory of experts is given as that of layers: what is missing, a quarter at most, and it comes back. */
static void test_experts(void **state)
{
    uint64_t had, missing, want;
    ebb_budget *b;
    fixture f;

    (void)state;
    open_fixture(&f, &mixture,
                 (ebb_engine_opts){ .has_resident = true, .resident = 70, .resident_is_percent = true });
    b = &f.engine->budget;
    had = b->expert_bytes;
    missing = had / 100;
    assert_true(had > 0 && had / 4 < had - ebb_plan_experts_min_bytes(&f.engine->net));
    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_set_state(f.engine->res, i, EBB_LAYER_DISK, NULL), EBB_OK);
    f.all = 0;
    f.group = missing * 3;                       /* the floor is three hundredths */
    f.engine->machine.os_reserve_bytes = f.group / 3 * 4;
    f.others = (int64_t)(f.group / 3 * 4 - f.group * 11 / 12);   /* a twelfth and a quarter of the floor are missing */
    check(&f);
    assert_int_equal(last_event(&f).code, EBB_MEMORY_EXPERTS_EVICTED);
    assert_in_range(had - b->expert_bytes, missing - 2048, missing + 2048);
    had = b->expert_bytes;
    f.others = (int64_t)(f.group * 5);           /* nothing is left */
    for (int i = 0; i < 2; i++) {
        had = b->expert_bytes;
        check(&f);
        assert_int_equal(had - b->expert_bytes, had / 4);
    }
    for (size_t i = 0; i < 3; i++) {             /* too little room for a line; less than for a quarter; enough */
        static const uint32_t percent[] = { 3, 10, 50 }, back[] = { 0, 10, 25 };
        uint64_t room = f.engine->plan.expert_bytes * percent[i] / 100;

        had = b->expert_bytes;
        f.others = (int64_t)(f.group / 3 * 4) - (int64_t)(f.group / 4 * 5) - (int64_t)room;
        let_time_pass(&f);
        check(&f);
        want = f.engine->plan.expert_bytes * back[i] / 100;
        assert_in_range(b->expert_bytes - had + 2048, want, want + 4096);
    }
    close_fixture(&f);
}

static int setup(void **state)
{
    snprintf(path, sizeof path, "/var/tmp/ebb-steps-XXXXXX.gguf");
    close(mkstemps(path, 5));                    /* a name of its own */
    return fake_root_make(state);
}

static int teardown(void **state)
{
    unlink(path);
    return fake_root_drop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_shortage_takes_one_layer),
        cmocka_unit_test(test_a_steady_neighbour),
        cmocka_unit_test(test_a_quarter_at_most_then_all),
        cmocka_unit_test(test_mapped_weights),
        cmocka_unit_test(test_the_output_matrix),
        cmocka_unit_test(test_steps_grow_with_a_neighbour_that_grows),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_what_stays_in_swap),
        cmocka_unit_test(test_one_that_comes_and_goes),
        cmocka_unit_test(test_lent_memory),
        cmocka_unit_test(test_experts),
    };

    return cmocka_run_group_tests_name("reclaim_steps", tests, setup, teardown);
}
