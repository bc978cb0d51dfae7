/* Residency on a file of noise: whatever the states, the reader and the room in the
 * ring, an acquire gives the file's own bytes, or an error after which the next one does. */
#include "noise_file.h"

#include <pthread.h>

#include "os/fault.h"
#include "os/file.h"
#include "residency/pin.h"
#include "residency/read_speed.h"
#include "residency/reader.h"

#define N_LAYERS   6u
#define PER_LAYER  5u
#define N_EXTENTS  (N_LAYERS * PER_LAYER + 1)
#define MIN_BYTES  3001u
#define MAX_BYTES  90000u

static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };

/* The last extent ends with the file, at an odd byte. */
static void open_ring_file(noise_file *f)
{
    uint32_t seed = 7;
    uint64_t at = 1234;

    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < N_EXTENTS; i++) {
        uint64_t n = MIN_BYTES + noise(&seed) % (MAX_BYTES - MIN_BYTES);

        f->x[i] = (ebb_res_extent){ .name = "t", .offset = at, .n_bytes = n, .n_elems = n, .group = i / PER_LAYER,
                                    .is_certain = true };
        at += n + (i % 3 ? 0 : noise(&seed) % 9000);
    }
    f->n_bytes = f->x[N_EXTENTS - 1].offset + f->x[N_EXTENTS - 1].n_bytes;
    noise_file_open(f, N_EXTENTS, N_LAYERS, &seed);
}

static void stream_all(noise_file *f, ebb_io io, uint64_t ring)
{
    assert_int_equal(ebb_res_set_reader(f->r, io, NULL, ring, NULL), EBB_OK);
    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_set_state(f->r, i, EBB_LAYER_DISK, NULL), EBB_OK);
}

/* Use extent i..i + n at once, as an operation does; the first failure. */
static ebb_status use_extent(noise_file *f, uint32_t i, uint32_t n, ebb_error *err)
{
    ebb_status st = EBB_OK;
    uint32_t k = 0;
    const void *p;

    for (; k < n && (st = ebb_res_acquire(f->r, i + k, &p, err)) == EBB_OK; k++)
        if (memcmp(p, f->bytes + f->x[i + k].offset, f->x[i + k].n_bytes) != 0)
            fail_msg("extent %u: other bytes", i + k);
    while (k-- > 0)
        ebb_res_release(f->r, i + k);
    return st;
}

static ebb_status stream_pass(noise_file *f, uint32_t together, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < N_EXTENTS && st == EBB_OK; i += together)
        st = use_extent(f, i, N_EXTENTS - i < together ? N_EXTENTS - i : together, err);
    return st;
}

static void test_every_reader_every_ring(void **state)
{
    static const uint64_t rings[] = { 4096, 40000, 100000, 300000, 1 << 20, 8 << 20 };
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        for (size_t k = 0; k < sizeof rings / sizeof rings[0]; k++) {
            stream_all(&f, ios[io], rings[k]);
            for (uint32_t together = 1; together <= 4; together++)
                for (int i = 0; i < 3; i++)
                    assert_int_equal(stream_pass(&f, together, NULL), EBB_OK);
        }
    }
    noise_file_close(&f);
}

static void test_out_of_order(void **state)
{
    noise_file f;
    uint32_t seed = 3;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        stream_all(&f, ios[io], 250000);
        for (int i = 0; i < 300; i++) {
            uint32_t id = noise(&seed) % (N_EXTENTS - 3);

            assert_int_equal(use_extent(&f, id, 1 + noise(&seed) % 3, NULL), EBB_OK);
            if (i % 3 == 0)
                assert_int_equal(use_extent(&f, id, 1, NULL), EBB_OK);
        }
    }
    noise_file_close(&f);
}

/* A second acquire of what is held is free; the bytes stay. */
static void test_held_twice(void **state)
{
    noise_file f;
    const void *p, *q;
    ebb_res_stats before, after;

    (void)state;
    open_ring_file(&f);
    stream_all(&f, EBB_IO_PREAD, 200000);
    assert_int_equal(ebb_res_acquire(f.r, 4, &p, NULL), EBB_OK);
    ebb_res_get_stats(f.r, &before);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_res_acquire(f.r, 4, &q, NULL), EBB_OK);
        assert_ptr_equal(p, q);
        ebb_res_release(f.r, 4);
    }
    assert_memory_equal(p, f.bytes + f.x[4].offset, f.x[4].n_bytes);
    ebb_res_release(f.r, 4);
    ebb_res_get_stats(f.r, &after);
    assert_true(after.read_bytes - before.read_bytes <= 200000);     /* read ahead only */
    noise_file_close(&f);
}

static void test_states_change_between_passes(void **state)
{
    static const ebb_layer_state states[] = { EBB_LAYER_DISK, EBB_LAYER_PINNED, EBB_LAYER_MAPPED };
    bool resident[N_EXTENTS];
    noise_file f;
    uint32_t seed = 11;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        ebb_res_stats s;
        uint64_t pinned = 0;

        stream_all(&f, ios[io], 200000);
        for (int i = 0; i < 60; i++) {
            if (i % 10 == 9) {                   /* others stay from now on */
                for (uint32_t k = 0; k < N_EXTENTS; k++)
                    resident[k] = noise(&seed) % 3 != 0;
                assert_int_equal(ebb_res_set_resident(f.r, resident, NULL), EBB_OK);
            }
            if (i % 4 == 3)
                assert_int_equal(ebb_res_pin_async(f.r, noise(&seed) % (N_LAYERS + 1), NULL), EBB_OK);
            else
                assert_int_equal(
                    ebb_res_set_state(f.r, noise(&seed) % (N_LAYERS + 1), states[noise(&seed) % 3], NULL),
                    EBB_OK);
            if (i % 2)
                assert_int_equal(use_extent(&f, noise(&seed) % N_EXTENTS, 1, NULL), EBB_OK);
            else
                assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        }
        for (uint32_t i = 0; i < N_EXTENTS; i++)
            pinned += resident[i] && ebb_res_state(f.r, f.x[i].group) == EBB_LAYER_PINNED ? ebb_pin_bytes(&f.x[i]) : 0;
        ebb_res_get_stats(f.r, &s);
        assert_int_equal(s.pinned_bytes, pinned);
    }
    noise_file_close(&f);
}

/* Passes run while everything is read into its place; whatever fails there, the next pass is right. */
static void test_pinned_in_the_background(void **state)
{
    uint8_t states[N_LAYERS + 1];
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (int n = 0; n < 90; n++) {
        ebb_error err = { 0 };
        ebb_status st = EBB_OK;
        ebb_res_stats s;

        stream_all(&f, ios[n % 3], n % 2 ? 4096 : 200000);
        if (n >= 6)
            ebb_os_fail_nth(n);
        for (uint32_t i = n % 4 == 1; i <= N_LAYERS && st == EBB_OK; i++)
            st = ebb_res_pin_async(f.r, i, &err);
        if (n % 5 == 4 && st == EBB_OK)          /* to another ring, what is on its way with it */
            st = ebb_res_set_reader(f.r, ios[(n + 1) % 3], NULL, 100000, &err);
        if (st == EBB_OK)
            st = stream_pass(&f, 2, &err);
        ebb_os_fail_off();
        if (st != EBB_OK)
            assert_true(n >= 6 && err.msg[0] != '\0');
        assert_int_equal(stream_pass(&f, 3, NULL), EBB_OK);
        ebb_res_get_stats(f.r, &s);
        ebb_res_states(f.r, states, N_LAYERS + 1);
        if (st != EBB_OK)
            continue;
        assert_int_equal(s.n_resident, N_LAYERS - (n % 4 == 1));
        for (uint32_t i = n % 4 == 1; i <= N_LAYERS; i++)
            assert_int_equal(states[i], EBB_LAYER_PINNED);
    }
    noise_file_close(&f);
}

/* Pieces of what stays for which there is memory; below 0: for all.  Several readers ask at once. */
static bool has_left(void *arg, uint64_t n_bytes)
{
    atomic_int *left = arg;
    int n = atomic_load(left);

    while (n > 0 && !atomic_compare_exchange_weak(left, &n, n - 1))
        continue;
    return n_bytes > 0 && n != 0;
}

static uint64_t pending_bytes(noise_file *f)
{
    return ebb_res_pending_bytes(f->r);
}

static uint64_t pin_all_later(noise_file *f)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_pin_async(f->r, i, NULL), EBB_OK);
    for (uint32_t i = 0; i < N_EXTENTS; i++)
        sum += ebb_pin_bytes(&f->x[i]);
    return sum;
}

/* No memory for what shall stay: passes go on all the same, nothing of it is taken, and all of it can be let go. */
static void test_no_room_for_what_stays(void **state)
{
    atomic_int left = 0;
    noise_file f;

    (void)state;
    open_ring_file(&f);
    ebb_res_set_headroom(f.r, (ebb_headroom){ has_left, &left });
    for (size_t io = 0; io < 3; io++) {
        uint32_t n_groups;
        ebb_error err = { 0 };
        uint64_t sum;

        stream_all(&f, ios[io], 200000);
        sum = pin_all_later(&f);
        for (uint32_t together = 1; together <= 4; together++) {
            assert_int_equal(stream_pass(&f, together, NULL), EBB_OK);
            assert_int_equal(pending_bytes(&f), sum);
        }
        assert_int_equal(ebb_res_evict(f.r, UINT64_MAX, &n_groups), sum);
        assert_int_equal(n_groups, N_LAYERS + 1);
        assert_int_equal(pending_bytes(&f), 0);
        assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        assert_int_equal(ebb_res_set_state(f.r, 2, EBB_LAYER_PINNED, &err), EBB_NOMEM);
        assert_non_null(strstr(err.msg, "memory ran short"));
        assert_int_equal(ebb_res_state(f.r, 2), EBB_LAYER_DISK);
    }
    noise_file_close(&f);
}

/* Memory ends after some pieces, and is there again; in between some groups are let go. */
static void test_room_ends_and_comes_back(void **state)
{
    atomic_int left;
    noise_file f;

    (void)state;
    open_ring_file(&f);
    ebb_res_set_headroom(f.r, (ebb_headroom){ has_left, &left });
    for (int n = 0; n < 60; n++) {
        uint32_t n_groups;
        ebb_res_stats s;

        atomic_store(&left, n % 30);
        stream_all(&f, ios[n % 3], n % 2 ? 4096 : 200000);
        (void)pin_all_later(&f);
        assert_int_equal(stream_pass(&f, 1 + (uint32_t)n % 4, NULL), EBB_OK);
        if (n % 4 == 3)
            (void)ebb_res_evict(f.r, 150000, &n_groups);
        assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        atomic_store(&left, -1);
        for (uint32_t i = 0; i <= N_LAYERS; i++)
            assert_int_equal(ebb_res_pin_async(f.r, i, NULL), EBB_OK);
        while (pending_bytes(&f) > 0)            /* the reader asks again by itself */
            assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        ebb_res_get_stats(f.r, &s);
        assert_int_equal(s.n_resident, N_LAYERS);
    }
    noise_file_close(&f);
}

static void test_each_byte_is_read_once_per_pass(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        ebb_res_stats before, after;
        uint64_t sum = 0;

        stream_all(&f, ios[io], 300000);
        for (uint32_t i = 0; i < N_EXTENTS; i++)
            sum += f.x[i].n_bytes;
        assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        ebb_res_get_stats(f.r, &before);
        for (int i = 0; i < 10; i++)
            assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
        ebb_res_get_stats(f.r, &after);
        assert_in_range(after.read_bytes - before.read_bytes, 10 * sum - 400000,
                        10 * (sum + N_EXTENTS * 4096) + 400000);
    }
    noise_file_close(&f);
}

/* -- What can go wrong ----------------------------------------------------------- */

/* Each guarded system call fails once, in turn: an error with words or another way, and the next pass is right. */
static void test_every_fault(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        int n_failed = 0;

        for (int n = 1; n < 140; n += n < 60 ? 1 : 7) {
            ebb_error err = { 0 };
            ebb_status st;

            ebb_os_fail_nth(n);
            st = ebb_res_set_reader(f.r, ios[io], NULL, 200000, &err);
            for (uint32_t i = 0; i <= N_LAYERS && st == EBB_OK; i++)
                st = ebb_res_set_state(f.r, i, i % 3 ? EBB_LAYER_DISK : EBB_LAYER_PINNED, &err);
            if (st == EBB_OK)
                st = stream_pass(&f, 2, &err);
            if (st == EBB_OK)
                st = stream_pass(&f, 2, &err);
            ebb_os_fail_off();
            if (st != EBB_OK) {
                n_failed++;
                assert_true(err.msg[0] != '\0');
            }
            assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
            for (uint32_t i = 0; i <= N_LAYERS; i++)
                assert_int_equal(ebb_res_set_state(f.r, i, EBB_LAYER_MAPPED, NULL), EBB_OK);
        }
        assert_true(n_failed > 1);
    }
    noise_file_close(&f);
}

static void test_short_reads_go_on(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 2; io++) {
        for (int n = 1; n < 60; n++) {
            stream_all(&f, ios[io], 200000);
            ebb_os_short_nth(n);
            assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
            assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
            ebb_os_short_nth(0);
        }
    }
    noise_file_close(&f);
}

enum { N_REFUSED = 12 };

typedef struct refused_pieces {
    const noise_file *f;
    char    *memory;
    uint32_t n, n_refused, n_right;
} refused_pieces;

static bool next_refused(void *self, bool wait, ebb_piece *out)
{
    refused_pieces *r = self;

    (void)wait;
    if (r->n == N_REFUSED)
        return false;
    *out = (ebb_piece){ .tag = r->n, .offset = r->n * EBB_READ_ALIGN, .n_bytes = EBB_READ_ALIGN,
                        .n_must = EBB_READ_ALIGN, .to = r->memory + r->n * EBB_READ_ALIGN };
    r->n++;
    ebb_os_fail_nth_here(1);
    return true;
}

static void refused_done(void *self, const ebb_piece *p, ebb_status st, const ebb_error *err)
{
    refused_pieces *r = self;

    (void)err;
    r->n_refused += ebb_os_fail_off();
    r->n_right += st == EBB_OK && memcmp(p->to, r->f->bytes + p->offset, p->n_must) == 0;
}

/* A kernel without memory for a request: the pieces are read without the ring. */
static void test_refused_requests(void **state)
{
    noise_file f;
    ebb_read_file file = { .direct_fd = -1 };
    refused_pieces r = { .f = &f };
    ebb_source source = { next_refused, refused_done, &r };
    ebb_reader *reader;

    (void)state;
    open_ring_file(&f);
    file.path = f.path;
    file.fd = f.fd;
    file.n_bytes = f.n_bytes;
    if (ebb_reader_try(&ebb_reader_uring, &file, 1, NULL) == EBB_OK) {
        r.memory = aligned_alloc(EBB_READ_ALIGN, N_REFUSED * EBB_READ_ALIGN);
        assert_non_null(r.memory);
        assert_int_equal(ebb_reader_start(&ebb_reader_uring, &file, 1, &source, &reader, NULL), EBB_OK);
        ebb_reader_stop(reader);
        assert_int_equal(r.n_refused, N_REFUSED);
        assert_int_equal(r.n_right, N_REFUSED);
        free(r.memory);
    }
    ebb_file_close(file.direct_fd);
    noise_file_close(&f);
}

static void *let_reads_go(void *arg)
{
    usleep(20000);
    ebb_os_hold_reads(false);
    return arg;
}

/* Nothing comes until the pass waits for it.  How long it has waited is chance, that it has is not: where this thread
 * stood still for as long as the reads were held, another pass is tried. */
static void test_late_reads_are_waited_for(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 2; io++) {
        ebb_res_stats s = { 0 };

        for (int i = 0; i < 100 && s.stall_ns < 5000000; i++) {
            pthread_t thread;

            stream_all(&f, ios[io], 150000);
            ebb_os_hold_reads(true);
            assert_int_equal(pthread_create(&thread, NULL, let_reads_go, NULL), 0);
            assert_int_equal(stream_pass(&f, 3, NULL), EBB_OK);
            pthread_join(thread, NULL);
            ebb_res_get_stats(f.r, &s);
        }
        assert_true(s.stall_ns >= 5000000);
    }
    noise_file_close(&f);
}

static void test_truncated_file_is_an_error(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 3; io++) {
        ebb_error err = { 0 };
        ebb_status st = EBB_OK;

        stream_all(&f, ios[io], 150000);
        assert_int_equal(use_extent(&f, 0, 1, NULL), EBB_OK);
        assert_int_equal(ftruncate(f.fd, (off_t)f.x[20].offset), 0);
        if (ios[io] == EBB_IO_MMAP)              /* its first pages may stand already; those are not touched */
            st = use_extent(&f, 25, 1, &err);
        else
            st = stream_pass(&f, 1, &err);
        assert_int_equal(st, EBB_FORMAT);
        assert_non_null(strstr(err.msg, "truncated"));
        assert_int_equal(ebb_res_check(f.r, &err), EBB_FORMAT);
        assert_int_equal(pwrite(f.fd, f.bytes + f.x[20].offset, f.n_bytes - f.x[20].offset, (off_t)f.x[20].offset),
                         (ssize_t)(f.n_bytes - f.x[20].offset));
        assert_int_equal(fsync(f.fd), 0);
        assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
        assert_int_equal(ebb_res_check(f.r, &err), EBB_FORMAT);      /* written to: another time */
    }
    noise_file_close(&f);
}

static void *cancel_soon(void *arg)
{
    usleep(30000);
    atomic_store(&((noise_file *)arg)->cancel, true);
    return NULL;
}

/* Not one read comes before it has returned. */
static void test_cancel_wakes_a_waiting_acquire(void **state)
{
    noise_file f;
    pthread_t thread;

    (void)state;
    open_ring_file(&f);
    for (size_t io = 0; io < 2; io++) {
        atomic_store(&f.cancel, false);
        stream_all(&f, ios[io], 100000);
        ebb_os_hold_reads(true);
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &f), 0);
        assert_int_equal(stream_pass(&f, 1, NULL), EBB_CANCELED);
        pthread_join(thread, NULL);
        ebb_os_hold_reads(false);
        atomic_store(&f.cancel, false);
        assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
    }
    noise_file_close(&f);
}

static void test_refused_readers_give_way(void **state)
{
    noise_file f;
    ebb_read_speed speeds[EBB_IO_MMAP + 1];

    (void)state;
    open_ring_file(&f);
    ebb_os_fail_nth(2);                          /* 1 opens the file for direct reads */
    assert_int_equal(ebb_res_set_reader(f.r, EBB_IO_URING, NULL, 100000, NULL), EBB_OK);
    assert_true(ebb_os_fail_off());
    assert_string_equal(ebb_res_io_name(f.r), "pread");
    assert_non_null(strstr(ebb_res_io_reason(f.r), "io_uring is refused"));
    assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
    ebb_res_measure_readers(f.r, EBB_IO_AUTO, 0.05, speeds);
    assert_int_equal(ebb_res_set_reader(f.r, EBB_IO_AUTO, speeds, 100000, NULL), EBB_OK);
    assert_non_null(strstr(ebb_res_io_reason(f.r), "by measurement"));
    noise_file_close(&f);
}

/* It was allowed, and a further ring is not: what is pinned now and then is read, though. */
static void test_late_refusal_gives_way(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    assert_int_equal(ebb_res_set_reader(f.r, EBB_IO_URING, NULL, 0, NULL), EBB_OK);
    ebb_os_fail_nth(2);                          /* 1 is memory for the copy */
    assert_int_equal(ebb_res_set_state(f.r, 1, EBB_LAYER_PINNED, NULL), EBB_OK);
    assert_true(ebb_os_fail_off());
    assert_int_equal(stream_pass(&f, 1, NULL), EBB_OK);
    noise_file_close(&f);
}

static void test_files_without_direct_reads(void **state)
{
    noise_file f;

    (void)state;
    open_ring_file(&f);
    ebb_os_fail_nth(1);
    assert_int_equal(ebb_res_set_reader(f.r, EBB_IO_PREAD, NULL, 200000, NULL), EBB_OK);
    /* /proc refused: the path is tried; that it names the same file is checked */
    assert_true(ebb_os_fail_off());
    for (uint32_t i = 0; i <= N_LAYERS; i++)
        assert_int_equal(ebb_res_set_state(f.r, i, EBB_LAYER_DISK, NULL), EBB_OK);
    assert_int_equal(stream_pass(&f, 2, NULL), EBB_OK);
    noise_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_reader_every_ring),
        cmocka_unit_test(test_out_of_order),
        cmocka_unit_test(test_held_twice),
        cmocka_unit_test(test_states_change_between_passes),
        cmocka_unit_test(test_no_room_for_what_stays),
        cmocka_unit_test(test_room_ends_and_comes_back),
        cmocka_unit_test(test_each_byte_is_read_once_per_pass),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_short_reads_go_on),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_late_reads_are_waited_for),
        cmocka_unit_test(test_truncated_file_is_an_error),
        cmocka_unit_test(test_cancel_wakes_a_waiting_acquire),
        cmocka_unit_test(test_refused_readers_give_way),
        cmocka_unit_test(test_late_refusal_gives_way),
        cmocka_unit_test(test_files_without_direct_reads),
        cmocka_unit_test(test_pinned_in_the_background),
    };

    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
