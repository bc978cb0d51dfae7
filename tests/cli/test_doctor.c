/* The doctor on machines that are described: what it finds, and what it advises. */
#include "core/os/fake_root.h"

#include "cmd_doctor.h"

#define GIB ((uint64_t)1 << 30)

static ebb_doctor_report r;

static void begin(void)
{
    json_decref(r.figures);
    memset(&r, 0, sizeof r);
    r.figures = json_object();
}

/* There is a line with this key and text, and the advice (NULL: none). */
static void expect(const char *key, const char *text, const char *advice)
{
    for (uint32_t i = 0; i < r.n; i++) {
        const ebb_doctor_finding *f = &r.list[i];

        if (strcmp(f->key, key) != 0 || !strstr(f->text, text))
            continue;
        if (advice ? !strstr(f->advice, advice) : f->advice[0] != '\0')
            fail_msg("%s: %s -> %s", key, f->text, f->advice);
        return;
    }
    for (uint32_t i = 0; i < r.n; i++)
        print_message("%s: %s\n", r.list[i].key, r.list[i].text);
    fail_msg("no %s: %s", key, text);
}

static ebb_limits usual(void)
{
    return (ebb_limits){ .total_bytes = 6 * GIB, .available_bytes = 5 * GIB, .cgroup_limit_bytes = EBB_LIMIT_NONE,
                         .rlimit_as_bytes = EBB_LIMIT_NONE, .rlimit_data_bytes = EBB_LIMIT_NONE,
                         .rlimit_memlock_bytes = EBB_LIMIT_NONE, .pressure_some_avg10 = 0.5 };
}

static void test_memory(void **state)
{
    ebb_machine m = { .available_bytes = 4 * GIB, .available_why = "memory.max of /x" };
    ebb_limits l = usual();

    (void)state;
    begin();
    ebb_doctor_memory(&r, &l, &m);
    expect("memory", "6.00 GiB in all, 5.00 GiB available", NULL);
    expect("budget", "4.00 GiB may be used (memory.max of /x)", NULL);
    expect("cgroup", "no memory limit", NULL);
    expect("memlock", "unlimited", NULL);
    expect("pressure", "none to speak of (0.5 %", NULL);

    begin();
    l.cgroup_limit_bytes = 4 * GIB;
    l.cgroup_used_bytes = 2 * GIB;
    l.cgroup_cache_bytes = GIB;
    snprintf(l.cgroup, sizeof l.cgroup, "memory.max of /x");
    l.rlimit_as_bytes = 8 * GIB;
    l.rlimit_memlock_bytes = 8 << 20;
    l.pressure_some_avg10 = 42;
    ebb_doctor_memory(&r, &l, &m);
    expect("cgroup", "4.00 GiB, 1.00 GiB used without page cache (memory.max of /x)", "can raise it");
    expect("ulimit", "address space 8.00 GiB", "ulimit -v unlimited");
    expect("memlock", "8.00 MiB: too little", NULL);
    expect("pressure", "42 % of the last 10 s", "--ram");

    begin();
    l.pressure_some_avg10 = -1;
    ebb_doctor_memory(&r, &l, &m);
    expect("pressure", "no PSI", NULL);
}

static void test_swap(void **state)
{
    ebb_limits l = usual();

    (void)state;
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", "none: weights that are pinned stay", NULL);

    l.swap_total_bytes = 2 * GIB;
    l.swap_free_bytes = GIB;
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", "2.00 GiB, 1.00 GiB in use, swappiness unknown", NULL);

    fake_root_put("/proc/sys/vm/swappiness", "60\n");
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", "swappiness 60", "drops file pages rather than swap weights out");

    fake_root_put("/proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 2097148 0 100\n");
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", ", zram, swappiness 60", "compressed swap");

    fake_root_put("/proc/swaps", "Filename\n");
    fake_root_put("/sys/module/zswap/parameters/enabled", "Y\n");
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", ", zswap, swappiness 60", "compressed swap");

    fake_root_put("/proc/sys/vm/swappiness", "1\n");
    begin();
    ebb_doctor_swap(&r, fake_root, &l);
    expect("swap", "swappiness 1", NULL);
}

static void test_huge_pages(void **state)
{
    (void)state;
    begin();
    ebb_doctor_huge_pages(&r, fake_root);
    expect("huge_pages", "not supported", NULL);
    fake_root_put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    begin();
    ebb_doctor_huge_pages(&r, fake_root);
    expect("huge_pages", "[never]", "echo madvise >");
    fake_root_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    begin();
    ebb_doctor_huge_pages(&r, fake_root);
    expect("huge_pages", "[madvise]", NULL);
}

static void test_cpu(void **state)
{
    ebb_machine m = { .n_cpus = 2, .memory_bytes_s = 20e9, .int8_mac_s = 600e9 };

    (void)state;
    fake_root_put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0\n");
    fake_root_put("/proc/stat", "cpu 100 0 100 800 0 0 0 0 0 0\n");
    begin();
    ebb_doctor_cpu(&r, fake_root, &m);
    expect("cpu", "2 CPUs for this process,", NULL);
    expect("steal", "0.0 %", NULL);
    expect("compute", "20.0 GB/s of weights with one column, 600 G", NULL);
    assert_int_equal(json_object_size(r.figures), 2);

    fake_root_put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
    fake_root_put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    fake_root_put("/proc/stat", "cpu 100 0 100 700 0 0 0 100 0 0\n");
    begin();
    ebb_doctor_cpu(&r, fake_root, &m);
    expect("cpu", "2 CPUs", "one core");
    expect("governor", "powersave", "performance");
    expect("steal", "10.0 %", "shared CPU");
}

static void test_disk(void **state)
{
    static const char *const local[] = { "ext4", "xfs" }, *const far[] = { "nfs", "cifs", "9p", "fuse" };
    ebb_disk_reader uring = { .name = "uring", .is_allowed = true };

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        ebb_doctor_file_system(&r, local[i], false, 2e9);
        expect("file_system", local[i], NULL);
    }
    for (int i = 0; i < 4; i++) {
        begin();
        ebb_doctor_file_system(&r, far[i], false, 2e9);
        expect("file_system", far[i], "a local disk is faster");
    }
    begin();
    ebb_doctor_file_system(&r, "btrfs", false, 2e9);
    expect("file_system", "btrfs", "compression defeats direct reads");
    begin();
    ebb_doctor_file_system(&r, "tmpfs", false, 0);
    expect("file_system", "tmpfs", "files on tmpfs take memory");
    begin();
    ebb_doctor_file_system(&r, "ext4", true, 0.15e9);
    expect("file_system", "ext4, on a rotating disk", "at 0.15 GB/s a model that does not fit is slow");

    begin();
    ebb_doctor_file_system(&r, "ext4", true, 1.9e9);
    expect("file_system", "ext4", NULL);
    assert_null(strstr(r.list[0].text, "rotating"));

    begin();
    ebb_doctor_io_uring(&r, fake_root, &uring);
    expect("io_uring", "allowed", NULL);
    uring.is_allowed = false;
    snprintf(uring.why_not, sizeof uring.why_not, "Operation not permitted");
    begin();
    ebb_doctor_io_uring(&r, fake_root, &uring);
    expect("io_uring", "refused: Operation not permitted", "containers forbid it");
    fake_root_put("/proc/sys/kernel/io_uring_disabled", "2\n");
    begin();
    ebb_doctor_io_uring(&r, fake_root, &uring);
    expect("io_uring", "kernel.io_uring_disabled is 2", "sysctl kernel.io_uring_disabled=0");
}

static int finish(void **state)
{
    json_decref(r.figures);
    r.figures = NULL;
    return fake_root_drop(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, NULL, fake_root_clear)
    const struct CMUnitTest tests[] = { T(test_memory), T(test_swap), T(test_huge_pages), T(test_cpu), T(test_disk) };

    return cmocka_run_group_tests_name("doctor", tests, fake_root_make, finish);
}
