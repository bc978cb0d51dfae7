/* Residency: extents of a file mapped and pinned give the file's bytes; what
 * fails leaves everything as it was. */
#include "ebb_test.h"

#include <fcntl.h>

#include "os/fault.h"
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
    snprintf(path, sizeof path, "build/test_residency.%d", (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
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

static uint64_t pinned_bytes(void)
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
        assert_int_equal(ebb_res_place(r, g, EBB_LAYER_PINNED, NULL), EBB_OK);
        assert_int_equal(ebb_res_state(r, g), EBB_LAYER_PINNED);
        check_bytes(r);
    }
    ebb_res_get_stats(r, &st);
    assert_int_equal(st.mapped_bytes, 0);
    assert_int_equal(st.pinned_bytes, pinned_bytes());
    assert_int_equal(ebb_res_place(r, 1, EBB_LAYER_MAPPED, NULL), EBB_OK);
    assert_int_equal(ebb_res_state(r, 1), EBB_LAYER_MAPPED);
    check_bytes(r);
    ebb_res_close(r);
    close(fd);
}

static void test_memory(void **state)
{
    ebb_res_part part = { .path = "guide", .fd = -1, .memory = (const char *)content, .n_bytes = FILE_BYTES };
    ebb_res *r;

    (void)state;
    assert_int_equal(ebb_res_open(&part, 1, extents, N_EXTENTS, 2, &r, NULL), EBB_OK);
    check_bytes(r);
    assert_int_equal(ebb_res_place(r, 0, EBB_LAYER_PINNED, NULL), EBB_OK);
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
            st = ebb_res_place(r, 1, EBB_LAYER_PINNED, &err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_a_file_that_shrank_is_refused),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests_name("residency", tests, setup, teardown);
}
