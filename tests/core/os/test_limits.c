#include "fake_root.h"

#include <sched.h>
#include <sys/resource.h>

#include "os/fault.h"
#include "os/limits.h"

#define MIB ((uint64_t)1 << 20)

static void put_meminfo(void)
{
    fake_root_put("/proc/meminfo",
                  "MemTotal:        6291456 kB\nMemFree:          200000 kB\n"
                  "MemAvailable:    5242880 kB\nSwapTotal:       1048576 kB\nSwapFree:         524288 kB\n");
}

static ebb_limits read_fake(void)
{
    ebb_error err = { 0 };
    ebb_limits l;

    if (ebb_limits_read(fake_root, &l, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return l;
}

static void test_machine(void **state)
{
    (void)state;
    put_meminfo();
    fake_root_put("/proc/pressure/memory", "some avg10=1.25 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.00\n");
    ebb_limits l = read_fake();
    assert_int_equal(l.total_bytes, 6144 * MIB);
    assert_int_equal(l.available_bytes, 5120 * MIB);
    assert_int_equal(l.swap_total_bytes, 1024 * MIB);
    assert_int_equal(l.swap_free_bytes, 512 * MIB);
    assert_int_equal(l.cgroup_limit_bytes, EBB_LIMIT_NONE);
    assert_string_equal(l.cgroup, "");
    assert_true(l.pressure_some_avg10 == 1.25);
}

static void test_old_kernel(void **state)
{
    ebb_error err = { 0 };
    ebb_limits l;

    (void)state;
    fake_root_put("/proc/meminfo", "MemTotal: 1024 kB\nMemFree: 512 kB\n");
    l = read_fake();
    assert_int_equal(l.available_bytes, 512 * 1024);
    assert_true(l.pressure_some_avg10 < 0);
    fake_root_put("/proc/meminfo", "nothing\n");
    assert_int_equal(ebb_limits_read(fake_root, &l, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "MemTotal"));
}

/* Version 2: the level with the least room decides, wherever on the way it is. */
static void put_v2(void)
{
    put_meminfo();
    fake_root_put("/proc/self/cgroup", "0::/user.slice/ebb.scope\n");
    fake_root_put("/sys/fs/cgroup/user.slice/ebb.scope/memory.max", "4294967296\n");
    fake_root_put("/sys/fs/cgroup/user.slice/ebb.scope/memory.current", "1048576\n");
    fake_root_put("/sys/fs/cgroup/user.slice/ebb.scope/memory.high", "max\n");
    fake_root_put("/sys/fs/cgroup/user.slice/ebb.scope/memory.pressure", "some avg10=12.50 avg60=0\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.high", "4294967296\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.current", "2147483648\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.stat",
                  "anon 1048576\nfile 9\ninactive_file 1000\nactive_file 24\ninactive_anon 5\n");
}

static void test_cgroup_2(void **state)
{
    (void)state;
    put_v2();
    ebb_limits l = read_fake();
    assert_int_equal(l.cgroup_limit_bytes, 4096 * MIB);
    assert_int_equal(l.cgroup_used_bytes, 2048 * MIB);
    assert_int_equal(l.cgroup_cache_bytes, 1024);
    assert_string_equal(l.cgroup, "memory.high of /user.slice");
    assert_true(l.pressure_some_avg10 == 12.5);

    /* as soon as the neighbour's use is cache, our own limit is the tighter one */
    fake_root_put("/sys/fs/cgroup/user.slice/memory.stat", "inactive_file 2147000000\nactive_file 0\n");
    l = read_fake();
    assert_string_equal(l.cgroup, "memory.max of /user.slice/ebb.scope");
    assert_int_equal(l.cgroup_used_bytes, MIB);
}

/* Use and cache are two files, read at two moments: the cache is never more than what is used, or the rest, which
 * cannot be given back, would be some 2^64 bytes. */
static void test_more_cache_than_use(void **state)
{
    (void)state;
    put_meminfo();
    fake_root_put("/proc/self/cgroup", "0::/ebb\n");
    fake_root_put("/sys/fs/cgroup/ebb/memory.max", "4294967296\n");
    fake_root_put("/sys/fs/cgroup/ebb/memory.current", "1048576\n");
    fake_root_put("/sys/fs/cgroup/ebb/memory.stat", "inactive_file 1048576\nactive_file 4096\n");
    ebb_limits l = read_fake();
    assert_int_equal(l.cgroup_used_bytes, MIB);
    assert_int_equal(l.cgroup_cache_bytes, MIB);

    fake_root_put("/sys/fs/cgroup/ebb/memory.current", "unreadable\n");
    l = read_fake();
    assert_int_equal(l.cgroup_used_bytes, 0);
    assert_int_equal(l.cgroup_cache_bytes, 0);
}

static void test_cgroup_1(void **state)
{
    (void)state;
    put_meminfo();
    fake_root_put("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/a/b\n1:cpuset:/\n0::/elsewhere\n");
    fake_root_put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    fake_root_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912\n");
    fake_root_put("/sys/fs/cgroup/memory/memory.stat",
                  "inactive_file 1\ntotal_inactive_file 4096\ntotal_active_file 4096\n");
    ebb_limits l = read_fake();
    assert_int_equal(l.cgroup_limit_bytes, 1024 * MIB);
    assert_int_equal(l.cgroup_used_bytes, 512 * MIB);
    assert_int_equal(l.cgroup_cache_bytes, 8192);
    assert_string_equal(l.cgroup, "memory.limit_in_bytes of /");
}

/* In a container the path may be one of the host's, of which only the mount point can be seen. */
static void test_a_path_that_is_not_there(void **state)
{
    static const char *const lines[] = { "0::/../../host.slice\n", "0::/docker/1234\n", "0::/\n", "0::/" };

    (void)state;
    put_meminfo();
    fake_root_put("/sys/fs/cgroup/memory.max", "1048576\n");
    for (int i = 0; i < 4; i++) {
        fake_root_put("/proc/self/cgroup", lines[i]);
        assert_int_equal(read_fake().cgroup_limit_bytes, MIB);
    }
    fake_root_put("/proc/self/cgroup", "garbage");
    assert_int_equal(read_fake().cgroup_limit_bytes, EBB_LIMIT_NONE);
}

/* What may still be promised counts where the kernel promises no more than there is, and nowhere else. */
static void test_promises(void **state)
{
    (void)state;
    fake_root_put("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n"
                                   "CommitLimit:     3072 kB\nCommitted_AS:    1024 kB\n");
    assert_int_equal(read_fake().commit_bytes, EBB_LIMIT_NONE);
    fake_root_put("/proc/sys/vm/overcommit_memory", "0\n");
    assert_int_equal(read_fake().commit_bytes, EBB_LIMIT_NONE);
    fake_root_put("/proc/sys/vm/overcommit_memory", "2\n");
    assert_int_equal(read_fake().commit_bytes, 2 * MIB);
    fake_root_put("/proc/meminfo", "MemTotal: 8192 kB\nCommitLimit: 3072 kB\nCommitted_AS: 4096 kB\n");
    assert_int_equal(read_fake().commit_bytes, 0);
}

static void test_rlimits(void **state)
{
    struct rlimit was, r;
    ebb_limits l;

    (void)state;
    put_meminfo();
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
    r = (struct rlimit){ .rlim_cur = was.rlim_max < 65536 ? was.rlim_max : 65536, .rlim_max = was.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &r), 0);
    l = read_fake();
    assert_int_equal(l.rlimit_memlock_bytes, r.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur == RLIM_INFINITY)
        assert_int_equal(l.rlimit_as_bytes, EBB_LIMIT_NONE);
}

/* -- CPUs -------------------------------------------------------------------------- */
static uint32_t n_affinity(void)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return (uint32_t)CPU_COUNT(&set);
}

static void test_cpus_of_the_mask(void **state)
{
    cpu_set_t was, one;

    (void)state;
    assert_int_equal(ebb_limits_cpus(fake_root), n_affinity());
    assert_int_equal(sched_getaffinity(0, sizeof was, &was), 0);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &was))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(ebb_limits_cpus(fake_root), 1);
    assert_int_equal(sched_setaffinity(0, sizeof was, &was), 0);
}

static void test_cpu_quota(void **state)
{
    static const struct { const char *text; uint32_t most; } quotas[] = {
        { "max 100000\n", UINT32_MAX }, { "150000 100000\n", 1 },  { "50000 100000\n", 1 },
        { "200000 100000\n", 2 },       { "0 0\n", UINT32_MAX },   { "nonsense", UINT32_MAX },
    };
    uint32_t n = n_affinity();

    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/a/b\n");
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        fake_root_put("/sys/fs/cgroup/a/cpu.max", quotas[i].text);
        assert_int_equal(ebb_limits_cpus(fake_root), quotas[i].most < n ? quotas[i].most : n);
    }
    fake_root_put("/proc/self/cgroup", "2:cpu,cpuacct:/x\n");
    fake_root_put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    fake_root_put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(ebb_limits_cpus(fake_root), n);
    fake_root_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    fake_root_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(ebb_limits_cpus(fake_root), 1);
}

/* -- The real machine, and faults --------------------------------------------------- */
static void test_this_machine(void **state)
{
    ebb_error err = { 0 };
    ebb_limits l;

    (void)state;
    if (ebb_limits_read(NULL, &l, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(l.total_bytes > 0 && l.available_bytes > 0 && l.available_bytes <= l.total_bytes);
    assert_true(ebb_limits_cpus(NULL) >= 1 && ebb_limits_cpus(NULL) <= n_affinity());
}

/* A fault gives an error, or a figure that is there without the file. */
static void test_without_proc(void **state)
{
    ebb_error err = { 0 };
    ebb_limits l = read_fake();                  /* the tree is empty */

    (void)state;
    assert_true(l.total_bytes > 0 && l.available_bytes > 0 && l.available_bytes <= l.total_bytes);
    assert_int_equal(l.cgroup_limit_bytes, EBB_LIMIT_NONE);
    assert_int_equal(ebb_limits_read(fake_root, &l, &err), EBB_OK);
    assert_int_equal(err.code, EBB_OK);          /* that there is no file is none of the caller's errors */
    for (int n = 1;; n++) {
        ebb_os_fail_nth(n);
        ebb_status st = ebb_limits_read(fake_root, &l, &err);
        if (!ebb_os_fail_off())
            break;
        assert_true(st == EBB_OK || err.msg[0] != '\0');
    }
}

static void test_survives_every_fault(void **state)
{
    (void)state;
    put_v2();
    for (int n = 1;; n++) {
        ebb_error err = { 0 };
        ebb_limits l;
        ebb_os_fail_nth(n);
        ebb_status st = ebb_limits_read(fake_root, &l, &err);
        bool reached = ebb_os_fail_off();
        if (st == EBB_OK)
            assert_int_equal(l.total_bytes, 6144 * MIB);
        else
            assert_int_not_equal(err.msg[0], '\0');
        if (!reached)
            break;
    }
    for (int n = 1;; n++) {
        ebb_os_fail_nth(n);
        uint32_t cpus = ebb_limits_cpus(fake_root);
        bool reached = ebb_os_fail_off();
        assert_true(cpus >= 1);
        if (!reached)
            break;
    }
}

/* The level with the least room has the gauge; it reads anew each time. */
static void test_gauge(void **state)
{
    ebb_limits_gauge g;
    uint64_t used;

    (void)state;
    ebb_limits_gauge_open(fake_root, &g);
    assert_int_equal(g.fd, -1);
    assert_false(ebb_limits_gauge_used(&g, &used));
    put_v2();
    fake_root_put("/sys/fs/cgroup/user.slice/memory.current", "1024\n");
    ebb_limits_gauge_open(fake_root, &g);
    assert_int_equal(g.limit_bytes, 4096 * MIB);
    assert_true(ebb_limits_gauge_used(&g, &used));
    assert_int_equal(used, MIB);
    ebb_os_fail_nth(1);
    assert_false(ebb_limits_gauge_used(&g, &used));
    ebb_os_fail_off();
    ebb_limits_gauge_close(&g);
    ebb_limits_gauge_close(&g);
}

static uint64_t gauge_available(void)
{
    uint64_t bytes;
    ebb_limits_gauge g;

    ebb_limits_gauge_open(fake_root, &g);
    assert_true(ebb_limits_gauge_available(&g, &bytes));
    ebb_limits_gauge_close(&g);
    return bytes;
}

/* Of the machine and of each version's cgroup, whoever has less; cache counts as free there. */
static void test_gauge_available(void **state)
{
    ebb_limits_gauge g;
    uint64_t bytes;

    (void)state;
    ebb_limits_gauge_open(fake_root, &g);        /* no /proc at all */
    assert_false(ebb_limits_gauge_available(&g, &bytes));
    ebb_limits_gauge_close(&g);
    put_meminfo();
    assert_int_equal(gauge_available(), 5120 * MIB);
    put_v2();                                    /* memory.high of the upper level: 4096 - 2048, and 1024 bytes of
                                                    cache */
    assert_int_equal(gauge_available(), 2048 * MIB + 1024);
    fake_root_put("/proc/meminfo", "MemTotal: 6291456 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n");
    assert_int_equal(gauge_available(), 1024 * MIB);
    fake_root_put("/proc/self/cgroup", "4:cpu,memory:/a\n0::/user.slice/ebb.scope\n");
    fake_root_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
    fake_root_put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "805306368\n");
    fake_root_put("/sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 1048576\ntotal_active_file 1048576\n");
    assert_int_equal(gauge_available(), 258 * MIB);
}

static void test_refaults(void **state)
{
    (void)state;
    put_meminfo();
    assert_int_equal(read_fake().n_refaults, 0);
    fake_root_put("/proc/vmstat", "nr_free_pages 5\nworkingset_refault_anon 3\nworkingset_refault_file 4711\n");
    assert_int_equal(read_fake().n_refaults, 4711);
    fake_root_put("/proc/vmstat", "workingset_refault 12\n");
    assert_int_equal(read_fake().n_refaults, 12);
    put_v2();
    fake_root_put("/sys/fs/cgroup/user.slice/ebb.scope/memory.stat", "anon 1\nworkingset_refault_file 99\n");
    assert_int_equal(read_fake().n_refaults, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_machine, fake_root_clear),
        cmocka_unit_test_teardown(test_old_kernel, fake_root_clear),
        cmocka_unit_test_teardown(test_cgroup_2, fake_root_clear),
        cmocka_unit_test_teardown(test_more_cache_than_use, fake_root_clear),
        cmocka_unit_test_teardown(test_cgroup_1, fake_root_clear),
        cmocka_unit_test_teardown(test_a_path_that_is_not_there, fake_root_clear),
        cmocka_unit_test_teardown(test_promises, fake_root_clear),
        cmocka_unit_test_teardown(test_rlimits, fake_root_clear),
        cmocka_unit_test_teardown(test_gauge, fake_root_clear),
        cmocka_unit_test_teardown(test_gauge_available, fake_root_clear),
        cmocka_unit_test_teardown(test_refaults, fake_root_clear),
        cmocka_unit_test_teardown(test_cpus_of_the_mask, fake_root_clear),
        cmocka_unit_test_teardown(test_cpu_quota, fake_root_clear),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_without_proc),
        cmocka_unit_test_teardown(test_survives_every_fault, fake_root_clear),
    };
    return cmocka_run_group_tests_name("limits", tests, fake_root_make, fake_root_drop);
}
