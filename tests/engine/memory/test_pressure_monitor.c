/* Memory that vanishes while layers are being read: what the machine has is a file of ours, which the monitor
 * reads in place of /proc/meminfo.  What has not been read is let go, passes go on, and the bits stay. */
#include "ebb_test.h"

#include <time.h>

#include "ebb/session.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "support/tiny_engine.h"

#define MIB ((uint64_t)1 << 20)
enum { N_IDS = 40, N_LAYERS = 6, FLOOR_MIB = 100 };

static char path[64];
static float want[EBB_TINY_VOCAB];

static void open_engine(tiny_engine *f)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 2, .has_resident = true, .resident = N_LAYERS - 1,
                          .io = EBB_IO_PREAD, .no_kv_cache = true };

    open_tiny_file(f, path, &o);
}

static void compute(tiny_engine *f)
{
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };

    fill_ids(ids, N_IDS, 1);
    if (ebb_session_sync(f->s, NULL, 0, NULL, &err) != EBB_OK ||
        ebb_session_sync(f->s, ids, N_IDS, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static void expect_want(tiny_engine *f)
{
    compute(f);
    assert_memory_equal(ebb_session_logits(f->s), want, sizeof want);
}

static int setup(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = N_LAYERS, .n_embd = 256, .n_ff = 512, .seed = 5 };
    tiny_engine f;

    (void)state;
    snprintf(path, sizeof path, "/var/tmp/ebb-monitor-%ld.gguf", (long)getpid());
    if (!ebb_tiny_write(&tiny, path))
        return -1;
    open_engine(&f);
    compute(&f);
    memcpy(want, ebb_session_logits(f.s), sizeof want);
    close_tiny_engine(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

/* Another file in the place of a descriptor: at once for whoever reads it. */
static void replace(int fd, const char *text)
{
    char name[] = "/var/tmp/ebb-monitor-gauge-XXXXXX";
    int file = mkstemp(name);

    assert_true(file >= 0);
    unlink(name);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_true(dup2(file, fd) == fd);
    close(file);
}

/* The machine has so much from here on; a cgroup that these tests may run in has all of its own. */
static void set_available(tiny_engine *f, uint64_t mib, bool has_copies)
{
    const ebb_limits_gauge *g = &f->engine->budget.gauge;
    char text[64];

    if (g->machine_fd < 0 || (g->fd >= 0 && g->limit_bytes < 4 * FLOOR_MIB * MIB) || !f->engine->budget.monitor)
        skip();
    snprintf(text, sizeof text, "MemTotal: 1 kB\nMemAvailable: %llu kB\n", (unsigned long long)mib * 1024);
    replace(g->machine_fd, text);
    if (g->fd >= 0)
        replace(g->fd, "0\n");
    ebb_pressure_monitor_set(f->engine, has_copies, FLOOR_MIB * MIB);
}

static ebb_res_stats stats(tiny_engine *f)
{
    ebb_res_stats s;

    ebb_res_get_stats(f->engine->res, &s);
    return s;
}

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Waits for an eviction by the monitor, with what is not read yet or without; its line says so. */
static void expect_eviction(tiny_engine *f, bool is_pending)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    ebb_stats s;

    for (;;) {                                   /* the layers are gone before it is said */
        ebb_engine_stats(f->engine, &s);
        if (s.memory_event.is_by_monitor && (s.memory_event.bytes_pending > 0 || !is_pending))
            break;
        sleep_a_little();
    }
    assert_int_equal(s.memory_event.code, EBB_MEMORY_LAYERS_EVICTED);
    assert_true((s.memory_event.n_layers > 0 || s.memory_event.detail[0]) && s.memory_event.number > 0);
    ebb_memory_event_text(&s.memory_event, line, sizeof line);
    assert_non_null(strstr(line, "memory is short: "));
    assert_int_equal(strstr(line, "still to be read") != NULL, s.memory_event.bytes_pending > 0);
}

static void release_all(tiny_engine *f)
{
    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_set_state(f->engine->res, i, EBB_LAYER_DISK, NULL), EBB_OK);
}

static void test_room(void **state)
{
    tiny_engine f;

    (void)state;
    open_engine(&f);
    release_all(&f);                             /* no reader asks beside us */
    set_available(&f, FLOOR_MIB + 5, true);
    assert_true(ebb_pressure_monitor_has_headroom(f.engine, 4 * MIB));
    set_available(&f, FLOOR_MIB + 5, true);
    assert_false(ebb_pressure_monitor_has_headroom(f.engine, 6 * MIB));
    set_available(&f, 1000, true);
    assert_true(ebb_pressure_monitor_has_headroom(f.engine, 6 * MIB));
    set_available(&f, FLOOR_MIB / 2, false);     /* nothing is held that could be too much */
    assert_true(ebb_pressure_monitor_has_headroom(f.engine, 6 * MIB));
    close_tiny_engine(&f);
}

/* However far the reading has come: nothing stays, and the next passes stream. */
static void test_memory_vanishes_while_layers_are_read(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 6; n++) {
        tiny_engine f;

        ebb_os_slow_reads(n % 3 * 3000);
        open_engine(&f);
        set_available(&f, FLOOR_MIB / 2, true);
        if (n < 3)
            expect_want(&f);
        while (stats(&f).pinned_bytes > 0)
            sleep_a_little();
        ebb_os_slow_reads(0);
        assert_int_equal(ebb_res_pending_bytes(f.engine->res), 0);
        expect_eviction(&f, false);
        expect_want(&f);
        close_tiny_engine(&f);
    }
}

/* There is more than the floor, but what is still to be read will not fit: it is let go before it is read. */
static void test_what_is_to_be_read_counts(void **state)
{
    tiny_engine f;

    (void)state;
    open_engine(&f);
    release_all(&f);
    set_available(&f, FLOOR_MIB + 1, true);      /* less than a piece of the reader */
    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_pin_async(f.engine->res, i, NULL), EBB_OK);
    while (ebb_res_pending_bytes(f.engine->res) > 0)          /* the reader has asked, and so has told */
        expect_want(&f);
    expect_eviction(&f, true);
    expect_want(&f);
    close_tiny_engine(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_memory_vanishes_while_layers_are_read),
        cmocka_unit_test(test_what_is_to_be_read_counts),
    };

    return cmocka_run_group_tests_name("monitor", tests, setup, teardown);
}
