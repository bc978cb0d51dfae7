/* Residency: extents of a file mapped and pinned give the file's bytes; what
 * fails leaves everything as it was. */
#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "os/fault.h"
#include "os/file.h"
#include "os/map.h"
#include "residency/pin.h"
#include "residency/residency.h"

#define FILE_BYTES 300000u
#define N_EXTENTS  5u

static char path[64];
static unsigned char content[FILE_BYTES];

static const ebb_res_extent extents[N_EXTENTS] = {
    { .name = "blk.0.a", .offset = 128, .n_bytes = 100000, .group = 0, .is_certain = true },
    { .name = "blk.0.b", .offset = 100131, .n_bytes = 70001, .group = 0, .is_certain = true },
    { .name = "blk.1.a", .offset = 170200, .n_bytes = 40000, .group = 1, .is_certain = true },
    { .name = "blk.1.b", .offset = 210240, .n_bytes = 19, .group = 1, .is_certain = true },
    { .name = "output", .offset = 220000, .n_bytes = 80000, .group = 2, .is_certain = true },
};

static int setup(void **state)
{
    int fd;

    (void)state;
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (unsigned char)(i * 2654435761u >> 13);
    snprintf(path, sizeof path, "build/test_residency.XXXXXX");
    fd = mkstemp(path);
    return fd >= 0 && write(fd, content, FILE_BYTES) == FILE_BYTES && close(fd) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static ebb_res *open_res(int fd, ebb_error *err)
{
    ebb_res_part part = { .path = path, .fd = fd, .n_bytes = FILE_BYTES };
    ebb_res *r;

    return ebb_res_open(&part, 1, extents, N_EXTENTS, 2, &r, err) == EBB_OK ? r : NULL;
}

static void check_bytes(ebb_res *r)
{
    char row[300];

    for (uint32_t i = 0; i < N_EXTENTS; i++) {
        const void *p;

        assert_int_equal(ebb_res_acquire(r, i, &p, NULL), EBB_OK);
        assert_memory_equal(p, content + extents[i].offset, extents[i].n_bytes);
        ebb_res_release(r, i);
    }
    assert_int_equal(ebb_res_read(r, 0, 221111, row, sizeof row, NULL), EBB_OK);
    assert_memory_equal(row, content + 221111, sizeof row);
    assert_int_equal(ebb_res_read(r, 0, 3, row, sizeof row, NULL), EBB_OK);
    assert_memory_equal(row, content + 3, sizeof row);
}

static uint64_t pinned_bytes_now(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < N_EXTENTS; i++)
        sum += ebb_pin_bytes(&extents[i]);
    return sum;
}

static void test_states(void **state)
{
    int fd = open(path, O_RDONLY);
    ebb_res *r = open_res(fd, NULL);
    ebb_res_stats st;

    (void)state;
    assert_non_null(r);
    check_bytes(r);
    ebb_res_get_stats(r, &st);
    assert_int_equal(st.pinned_bytes, 0);
    assert_int_equal(st.mapped_bytes, 290020);
    for (uint32_t g = 0; g <= 2; g++) {
        assert_int_equal(ebb_res_state(r, g), EBB_LAYER_MAPPED);
        assert_int_equal(ebb_res_set_state(r, g, EBB_LAYER_PINNED, NULL), EBB_OK);
        assert_int_equal(ebb_res_state(r, g), EBB_LAYER_PINNED);
        check_bytes(r);
    }
    ebb_res_get_stats(r, &st);
    assert_int_equal(st.mapped_bytes, 0);
    assert_int_equal(st.pinned_bytes, pinned_bytes_now());
    assert_int_equal(ebb_res_set_state(r, 1, EBB_LAYER_MAPPED, NULL), EBB_OK);
    assert_int_equal(ebb_res_state(r, 1), EBB_LAYER_MAPPED);
    check_bytes(r);
    ebb_res_close(r);
    close(fd);
}

/* Of an extent; the system may keep what it was told to let go. */
static bool any_is_cached(const ebb_map *m, const ebb_res_extent *x)
{
    for (uint64_t at = x->offset; at < x->offset + x->n_bytes; at += 4096)
        if (ebb_map_is_cached((const char *)m->data + at))
            return true;
    return ebb_map_is_cached((const char *)m->data + x->offset + x->n_bytes - 1);
}

/* Mapped pages that the page cache does not have are on disk, whatever the plan says. */
static void test_cold_pages_are_on_disk(void **state)
{
    int fd = open(path, O_RDWR);
    uint8_t states[3];
    ebb_res *r = open_res(fd, NULL);
    ebb_map m;

    (void)state;
    assert_non_null(r);
    assert_int_equal(ebb_map_file(fd, path, FILE_BYTES, &m, NULL), EBB_OK);
    assert_int_equal(fsync(fd), 0);
    ebb_file_drop_cache(fd, 0, FILE_BYTES);
    if (!any_is_cached(&m, &extents[4])) {       /* as where files are in memory anyway */
        assert_int_equal(ebb_res_states(r, states, 3), 3);
        assert_int_equal(states[2], EBB_LAYER_DISK);
    }
    check_bytes(r);
    assert_int_equal(ebb_res_states(r, states, 3), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(states[i], EBB_LAYER_MAPPED);
    ebb_map_fini(&m);
    ebb_res_close(r);
    close(fd);
}

/* A cold file is in memory some time after, without a use; what is given up meanwhile is left alone. */
static void test_prefault(void **state)
{
    int fd = open(path, O_RDONLY);
    ebb_res *r = open_res(fd, NULL);
    uint8_t states[3];

    (void)state;
    assert_non_null(r);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(ebb_res_set_reader(r, EBB_IO_PREAD, NULL, 1 << 20, NULL), EBB_OK);
    assert_int_equal(ebb_res_set_state(r, 1, EBB_LAYER_DISK, NULL), EBB_OK);
    ebb_file_drop_cache(fd, 0, FILE_BYTES);
    ebb_res_prefault(r);
    do {
        sched_yield();
        (void)ebb_res_states(r, states, 3);
    } while (states[0] != EBB_LAYER_MAPPED || states[2] != EBB_LAYER_MAPPED);
    assert_int_equal(ebb_res_state(r, 1), EBB_LAYER_DISK);
    check_bytes(r);
    ebb_res_prefault(r);                         /* once more, and closed in the middle of it */
    ebb_res_close(r);
    close(fd);
}

static void test_model_in_memory(void **state)
{
    ebb_res_part part = { .path = "guide", .fd = -1, .memory = (const char *)content, .n_bytes = FILE_BYTES };
    ebb_res *r;

    (void)state;
    assert_int_equal(ebb_res_open(&part, 1, extents, N_EXTENTS, 2, &r, NULL), EBB_OK);
    check_bytes(r);
    assert_int_equal(ebb_res_set_state(r, 0, EBB_LAYER_PINNED, NULL), EBB_OK);
    check_bytes(r);
    ebb_res_close(r);
}

static void test_a_file_that_shrank_is_refused(void **state)
{
    int fd = open(path, O_RDWR);
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(ftruncate(fd, 250000), 0);
    assert_null(open_res(fd, &err));
    assert_int_equal(err.code, EBB_FORMAT);
    assert_non_null(strstr(err.msg, "output"));
    assert_int_equal(pwrite(fd, content + 250000, FILE_BYTES - 250000, 250000), FILE_BYTES - 250000);
    close(fd);
}

/* What a pass computed from other weights is no K and V of this model, also if no pass follows. */
static void test_a_file_written_to_fails_the_pass(void **state)
{
    int fd = open(path, O_RDWR);
    ebb_error err = { 0 };
    ebb_res *r = open_res(fd, NULL);

    (void)state;
    assert_non_null(r);
    assert_int_equal(ebb_res_check(r, NULL), EBB_OK);
    assert_int_equal(ebb_res_check_pass(r, NULL), EBB_OK);
    assert_int_equal(pwrite(fd, content, 4096, 0), 4096);
    assert_int_equal(futimens(fd, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }), 0);
    assert_int_equal(ebb_res_check_pass(r, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "was written to while in use"));
    assert_int_equal(ebb_res_check(r, NULL), EBB_FORMAT);
    ebb_res_close(r);
    close(fd);
}

static void test_faults(void **state)
{
    int fd = open(path, O_RDONLY);

    (void)state;
    for (int n = 1;; n++) {
        ebb_error err = { 0 };
        ebb_status st = EBB_IO;
        ebb_res *r;
        bool reached;

        ebb_os_fail_nth(n);
        r = open_res(fd, &err);
        if (r)
            st = ebb_res_set_state(r, 1, EBB_LAYER_PINNED, &err);
        reached = ebb_os_fail_off();
        if (!r || st != EBB_OK)
            assert_int_not_equal(err.msg[0], 0);
        if (r) {
            assert_int_equal(ebb_res_state(r, 1), st == EBB_OK ? EBB_LAYER_PINNED : EBB_LAYER_MAPPED);
            check_bytes(r);
        }
        ebb_res_close(r);
        if (!reached)
            break;
    }
    close(fd);
}

static void *acquire_all(void *arg)
{
    ebb_res *r = ((void **)arg)[0];
    atomic_bool *stop = ((void **)arg)[1];

    while (!atomic_load(stop)) {
        uint32_t n;

        (void)ebb_res_evict(r, UINT64_MAX, &n);
        sched_yield();
    }
    return NULL;
}

/* Passes read right bytes while another thread takes every copy that is not held, through a ring and without room in
 * one. */
static void test_let_go_while_in_use(void **state)
{
    static const ebb_io readers[] = { EBB_IO_PREAD, EBB_IO_MMAP };

    (void)state;
    for (int k = 0; k < 4; k++) {
        int fd = open(path, O_RDONLY);
        ebb_res *r = open_res(fd, NULL);
        atomic_bool stop = false;
        void *arg[] = { r, &stop };
        pthread_t taker;

        assert_int_equal(ebb_res_set_reader(r, readers[k % 2], NULL, k < 2 ? 1 << 20 : 4096, NULL), EBB_OK);
        assert_int_equal(pthread_create(&taker, NULL, acquire_all, arg), 0);
        for (int pass = 0; pass < 60; pass++) {
            const void *p;

            for (uint32_t g = 0; g <= 2; g++)
                assert_int_equal(
                    pass % 2 ? ebb_res_pin_async(r, g, NULL) : ebb_res_set_state(r, g, EBB_LAYER_PINNED, NULL), EBB_OK);
            if (ebb_res_state(r, 0) == EBB_LAYER_PINNED && ebb_res_acquire(r, 1, &p, NULL) == EBB_OK) {
                for (int i = 0; i < 50; i++)     /* what is held stays, and so does all of its group */
                    sched_yield();
                assert_memory_equal(p, content + extents[1].offset, extents[1].n_bytes);
                ebb_res_release(r, 1);
            }
            check_bytes(r);
        }
        atomic_store(&stop, true);
        pthread_join(taker, NULL);
        ebb_res_close(r);
        close(fd);
    }
}

/* What is acquired is not let go; the rest is, from the end on, until it is enough. */
static void test_let_go(void **state)
{
    int fd = open(path, O_RDONLY);
    ebb_res *r = open_res(fd, NULL);
    const void *p;
    uint32_t n;

    (void)state;
    assert_int_equal(ebb_res_set_reader(r, EBB_IO_PREAD, NULL, 1 << 20, NULL), EBB_OK);
    for (uint32_t g = 0; g <= 2; g++)
        assert_int_equal(ebb_res_set_state(r, g, EBB_LAYER_PINNED, NULL), EBB_OK);
    assert_true(ebb_res_evict(r, 1, &n) >= extents[4].n_bytes);
    assert_int_equal(n, 1);
    assert_int_equal(ebb_res_state(r, 2), EBB_LAYER_DISK);
    assert_int_equal(ebb_res_acquire(r, 2, &p, NULL), EBB_OK);
    assert_true(ebb_res_evict(r, UINT64_MAX, &n) >= extents[0].n_bytes);
    assert_int_equal(n, 1);
    assert_int_equal(ebb_res_state(r, 0), EBB_LAYER_DISK);
    assert_int_equal(ebb_res_state(r, 1), EBB_LAYER_PINNED);
    assert_memory_equal(p, content + extents[2].offset, extents[2].n_bytes);
    ebb_res_release(r, 2);
    check_bytes(r);
    assert_int_equal(ebb_res_set_state(r, 0, EBB_LAYER_PINNED, NULL), EBB_OK);
    check_bytes(r);
    ebb_res_close(r);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_cold_pages_are_on_disk),
        cmocka_unit_test(test_prefault),
        cmocka_unit_test(test_model_in_memory),
        cmocka_unit_test(test_a_file_that_shrank_is_refused),
        cmocka_unit_test(test_a_file_written_to_fails_the_pass),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_let_go),
        cmocka_unit_test(test_let_go_while_in_use),
    };

    return cmocka_run_group_tests_name("residency", tests, setup, teardown);
}
