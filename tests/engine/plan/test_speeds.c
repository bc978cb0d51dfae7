/* What is remembered of a machine's speed. */
#include "ebb_test.h"

#include <time.h>

#include "base/buf.h"
#include "os/cpu.h"
#include "os/file.h"
#include "plan/layout.h"
#include "plan/speeds.h"
#include "support/own_cache.h"

static void load(ebb_speeds *s, uint32_t n_threads)
{
    const ebb_kernels *kern;

    assert_int_equal(ebb_kernels_get(EBB_ISA_SCALAR, &kern, NULL), EBB_OK);
    ebb_speeds_load(s, kern, n_threads);
}

static void learn(ebb_speeds *s, const char *name, double v0, double v1)
{
    ebb_speeds_learn(s, name, EBB_SPEED_RATE, v0, v1, 0);
}

/* Written and read again, each to its owner. */
static void test_kept(void **state)
{
    ebb_speeds s, other;
    double v[2];

    (void)state;
    load(&s, 2);
    assert_int_equal(s.n, 0);
    ebb_speeds_save(&s);
    assert_int_not_equal(access(ebb_own_cache_speeds(), F_OK), 0); /* nothing to say */
    learn(&s, "weights Q4_K", 20e9, 400e9);
    learn(&s, "weights Q4_K", 15e9, 500e9);
    ebb_speeds_learn(&s, "sync", EBB_SPEED_TIME, 1e-6, 0, 0);
    ebb_speeds_save(&s);
    load(&other, 3);
    assert_int_equal(other.n, 0);
    learn(&other, "weights Q4_K", 30e9, 1);
    ebb_speeds_save(&other);
    load(&s, 2);
    assert_int_equal(s.n, 2);
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v));
    assert_true(v[0] == 20e9 && v[1] == 400e9);
    assert_true(s.list[0].n_low == 1 && s.list[0].low[0] == 15e9);
    assert_false(ebb_speeds_get(&s, "weights Q6_K", 1000, v));
    assert_false(ebb_speeds_get(&s, "weights Q4_K", -1, v));     /* too old */
    s.list[0].asked_s += 2 * 86400;                              /* by a clock that was ahead: nobody knows when */
    assert_false(ebb_speeds_get(&s, "weights Q4_K", 1000, v));
    assert_true(ebb_speeds_get(&s, "weights Q4_K", INT64_MAX, v));
}

/* Disks that come and go leave figures behind: the newest are kept all the same. */
static void test_more_than_fit(void **state)
{
    ebb_speeds s;
    char name[EBB_SPEED_NAME];
    double v[2];

    (void)state;
    load(&s, 7);
    s.now_s = time(NULL) - 1000;
    for (uint32_t i = 0; i < EBB_MAX_SPEEDS + 5; i++, s.now_s++) {
        snprintf(name, sizeof name, "disk %x pread", i);
        learn(&s, name, 1e9 + i, 0);
        learn(&s, "weights Q4_K", 20e9, 400e9);  /* is measured again and again */
        assert_true(ebb_speeds_get(&s, name, 1000, v) && v[0] == 1e9 + i);
    }
    ebb_speeds_save(&s);
    load(&s, 7);
    assert_int_equal(s.n, EBB_MAX_SPEEDS);
    assert_true(ebb_speeds_get(&s, name, 2000, v));
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 2000, v));
    assert_false(ebb_speeds_get(&s, "disk 0 pread", INT64_MAX, v));
    assert_true(ebb_speeds_get(&s, "disk 7 pread", INT64_MAX, v));
}

/* A worse figure displaces a better one when it was seen again and again, in quiet, apart; a better one comes at
 * once. */
static void test_believed(void **state)
{
    ebb_speeds s = { .now_s = 1000000 };
    double v[2];

    (void)state;
    for (int i = 0; i < 3; i++)
        learn(&s, "weights Q4_K", 20e9, 400e9);
    ebb_speeds_learn(&s, "weights Q4_K", EBB_SPEED_RATE, 19e9, 1, 0.5); /* so little worse under contention: nothing */
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 20e9);
    for (int i = 0; i < 100; i++, s.now_s += 7 * 3600)
        ebb_speeds_learn(&s, "weights Q4_K", EBB_SPEED_RATE, 10e9, 1, 0.5);
    for (int i = 0; i < 100; i++, s.now_s += 60)
        learn(&s, "weights Q4_K", 10e9 + i * 1e6, 1);            /* in quiet, but within two hours */
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 20e9);
    for (int i = 0; i < 5; i++) {
        assert_true(ebb_speeds_get(&s, "weights Q4_K", INT64_MAX, v) && v[0] == 20e9);
        s.now_s += 7 * 3600;
        learn(&s, "weights Q4_K", 10e9, 300e9);
    }
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] > 10e9 && v[0] < 10.1e9);
    learn(&s, "weights Q4_K", 20e9, 400e9);
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 20e9);
    s.now_s += 2 * 86400;                                        /* on few measurements: asked for again after a day */
    assert_false(ebb_speeds_get(&s, "weights Q4_K", 30 * 86400, v));
    ebb_speeds_doubt(&s); /* the user asks for a new measurement: under contention it is none */
    assert_false(ebb_speeds_get(&s, "weights Q4_K", 30 * 86400, v));
    ebb_speeds_learn(&s, "weights Q4_K", EBB_SPEED_RATE, 4e9, 1, 0.5);
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 20e9);
    learn(&s, "weights Q4_K", 5e9, 1);
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 5e9);

    ebb_speeds_learn(&s, "sync", EBB_SPEED_TIME, 2e-6, 0, 0);
    ebb_speeds_learn(&s, "sync", EBB_SPEED_TIME, 4e-6, 0, 0);
    assert_true(ebb_speeds_get(&s, "sync", 1000, v) && v[0] == 2e-6);
    ebb_speeds_learn(&s, "sync", EBB_SPEED_TIME, 1e-6, 0, 1);
    assert_true(ebb_speeds_get(&s, "sync", 1000, v) && v[0] == 1e-6);
}

/* What was only measured beside others serves for some minutes; the first quiet measurement founds it. */
static void test_provisional(void **state)
{
    ebb_speeds s = { .now_s = 1000000 };
    double v[2];

    (void)state;
    ebb_speeds_learn(&s, "disk 7 uring", EBB_SPEED_RATE, 1e9, 0, 0.5);
    assert_true(ebb_speeds_get(&s, "disk 7 uring", 86400, v) && v[0] == 1e9);
    s.now_s += 601;
    assert_false(ebb_speeds_get(&s, "disk 7 uring", 86400, v));
    ebb_speeds_learn(&s, "disk 7 uring", EBB_SPEED_RATE, 2e9, 0, 0.3);   /* better, but beside others, too */
    s.now_s += 601;
    assert_false(ebb_speeds_get(&s, "disk 7 uring", 86400, v));
    assert_true(ebb_speeds_get(&s, "disk 7 uring", INT64_MAX, v) && v[0] == 2e9);
    ebb_speeds_learn(&s, "disk 7 uring", EBB_SPEED_RATE, 3e9, 0, 0);
    s.now_s += 80000;
    assert_true(ebb_speeds_get(&s, "disk 7 uring", 86400, v) && v[0] == 3e9);
    ebb_speeds_learn(&s, "disk 7 uring", EBB_SPEED_RATE, 1e9, 0, 0.9);   /* which no neighbour takes back */
    s.now_s += 80000;
    assert_true(ebb_speeds_get(&s, "disk 7 uring", 86400, v) && v[0] == 3e9);
}

/* Lines that nobody wrote like that are passed over. */
static void test_damaged(void **state)
{
    static const char *const bad[] = { "",
                                       "\tweights Q4_K",
                                       "\tweights Q4_K\t1e9\t",
                                       "\tweights Q4_K\t-1\t2\t3",
                                       "\tweights Q4_K\tnan\t2\t3",
                                       "\tweights Q4_K\t1e300\t2\t3",
                                       "x\tweights Q4_K\t1\t2\t3" };
    ebb_speeds s;
    ebb_buf text = { 0 };
    uint32_t n_before;

    (void)state;
    load(&s, 2);
    n_before = s.n;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ebb_buf_addf(&text, "%s%s\n", s.owner, bad[i]);
    ebb_buf_addf(&text, "%0300d\n%s\tweights Q8_0\t5e9\t6e9\t%lld\t%lld\t1\t0\t0\t0\t0\t0", 0, s.owner,
                 (long long)time(NULL), (long long)time(NULL));
    assert_int_equal(ebb_file_replace(ebb_own_cache_speeds(), text.data, text.len, NULL), EBB_OK);
    load(&s, 2);
    assert_true(n_before > 0 && s.n == 1);
    assert_string_equal(s.list[0].name, "weights Q8_0");
    ebb_buf_fini(&text);
}

/* A machine takes over what is known, and what passes teach it; a described disk stays as described. */
static void test_machine(void **state)
{
    const uint64_t types = (uint64_t)1 << EBB_TYPE_Q4_K | (uint64_t)1 << EBB_TYPE_Q6_K;
    ebb_machine m = { 0 }, described = { .disk_bytes_s = 5 };
    ebb_disk_speeds d = { .device = 7, .io = EBB_IO_AUTO };
    ebb_speeds s = { 0 };
    double v[2];

    (void)state;
    learn(&s, "weights Q6_K", 10e9, 100e9);
    assert_false(ebb_machine_recall_types(&m, &s, types));
    learn(&s, "weights Q4_K", 20e9, 200e9);
    learn(&s, "sync", 1e-6, 0);
    assert_false(ebb_machine_recall_types(&m, &s, types));
    learn(&s, "product", 2e-6, 1e-9);
    learn(&s, "attend", 3e-9, 1e-11);
    learn(&s, "element", 4e-10, 3e-11);
    assert_true(ebb_machine_recall_types(&m, &s, types) && m.overheads.output_s == 1e-9 &&
                m.overheads.attend_dim_s == 1e-11 && m.overheads.state_s == 3e-11);
    assert_true(ebb_machine_recall_types(&m, &s, types));
    assert_true(m.memory_bytes_s == 20e9 && m.int8_mac_s == 200e9 && m.types[EBB_TYPE_Q6_K].bytes_s == 10e9);

    assert_false(ebb_machine_recall_disk(&m, &s, &d));
    learn(&s, "disk 7 pread", 2e9, 0.1);
    learn(&s, "disk 7 mmap", 1e9, 0.1);
    learn(&s, "busy 7 pread", 1.5e9, 0.8);
    d.io = EBB_IO_AUTO;
    assert_true(ebb_machine_recall_disk(&m, &s, &d));
    assert_true(d.io == EBB_IO_PREAD && m.disk_bytes_s == 2e9 && m.disk_busy_bytes_s == 1.5e9 && m.busy_share == 0.8);
    assert_true(ebb_machine_recall_disk(&described, &s, &d) && described.disk_bytes_s == 5);

    ebb_machine_correct_speeds(&m, types, NULL, 1.5, 0, &s);
    assert_true(m.memory_bytes_s == 30e9 && m.types[EBB_TYPE_Q6_K].bytes_s == 15e9);
    ebb_machine_correct_speeds(&m, types, &d, 0.5, 0, &s); /* seen once: neither kept nor planned with */
    assert_true(m.disk_bytes_s == 2e9 && m.memory_bytes_s == 30e9);
    ebb_machine_correct_speeds(&m, types, NULL, 0.5, 0.5, &s);
    assert_true(m.memory_bytes_s == 30e9);
    assert_true(ebb_speeds_get(&s, "weights Q4_K", 1000, v) && v[0] == 30e9);
    assert_true(ebb_speeds_get(&s, "disk 7 pread", 1000, v) && v[0] == 2e9);
}

static void test_flush(void **state)
{
    char *p = malloc(1 << 20), name[64];

    (void)state;
    assert_non_null(p);
    memset(p, 7, 1 << 20);
    (void)ebb_cpu_flush(p + 3, (1 << 20) - 5);
    for (size_t i = 0; i < 1 << 20; i++)
        assert_int_equal(p[i], 7);
    free(p);
    ebb_cpu_name(name);
    assert_true(strlen(name) < sizeof name && !strchr(name, '\t') && !strchr(name, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kept), cmocka_unit_test(test_more_than_fit),
                                        cmocka_unit_test(test_believed),
                                        cmocka_unit_test(test_provisional),
                                        cmocka_unit_test(test_damaged), cmocka_unit_test(test_machine),
                                        cmocka_unit_test(test_flush) };

    return cmocka_run_group_tests_name("speeds", tests, ebb_own_cache, ebb_own_cache_end);
}
