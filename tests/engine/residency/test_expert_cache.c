/* Experts in slots that they take in turn: whatever is expected, guessed, given up or let go, an acquire gives the
 * file's own bytes, or an error after which the next one does; and what is used often is not read again. */
#include "noise_file.h"

#include <pthread.h>

#include "os/fault.h"

#define N_LAYERS  4u
#define N_EXPERT  8u             /* of a layer */
#define N_MATS    3u
#define N_EXTENTS (N_LAYERS * N_EXPERT * N_MATS)
#define SMALL     20000u         /* bytes of a matrix; those of odd layers have twice as many */
#define RING      65536u

/* The three tensors of a layer hold the matrices of all its experts, as in a model's file.  The cache has memory for
 * n experts of the larger kind. */
static void open_cache_file(noise_file *f, ebb_io io, uint32_t n)
{
    uint64_t at = 777;
    uint32_t seed = 5;

    memset(f, 0, sizeof *f);
    for (uint32_t l = 0; l < N_LAYERS; l++)
        for (uint32_t m = 0; m < N_MATS; m++)
            for (uint32_t e = 0; e < N_EXPERT; e++) {
                uint64_t n_bytes = l % 2 ? 2 * SMALL + 1 : SMALL + 3;

                f->x[(l * N_EXPERT + e) * N_MATS + m] = (ebb_res_extent){
                    .name = "experts", .offset = at, .n_bytes = n_bytes, .n_elems = n_bytes, .group = l,
                    .expert = l * N_EXPERT + e + 1,
                };
                at += n_bytes;
            }
    f->n_bytes = at;
    noise_file_open(f, N_EXTENTS, N_LAYERS, &seed);
    assert_int_equal(ebb_res_set_reader(f->r, io, NULL, RING, NULL), EBB_OK);
    for (uint32_t i = 0; i < N_LAYERS; i++)
        assert_int_equal(ebb_res_set_state(f->r, i, EBB_LAYER_DISK, NULL), EBB_OK);
    assert_int_equal(ebb_res_set_expert_cache(f->r, n * N_MATS * (2 * SMALL + 8192), NULL), EBB_OK);
}

static uint32_t first_extent(uint32_t layer, uint32_t e)
{
    return (layer * N_EXPERT + e) * N_MATS;
}

static ebb_status use_expert(noise_file *f, uint32_t layer, uint32_t e)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = first_extent(layer, e); i < first_extent(layer, e) + N_MATS && st == EBB_OK; i++) {
        const void *p;

        st = ebb_res_acquire(f->r, i, &p, NULL);
        if (st == EBB_OK && memcmp(p, f->bytes + f->x[i].offset, f->x[i].n_bytes) != 0)
            fail_msg("layer %u, expert %u: other bytes", layer, e);
        if (st == EBB_OK)
            ebb_res_release(f->r, i);
    }
    ebb_res_finish_expert(f->r, first_extent(layer, e));
    return st;
}

static void choose_experts(noise_file *f, uint32_t layer, uint32_t n_tokens, uint32_t mask)
{
    ebb_res_begin_experts(f->r, n_tokens);
    for (uint32_t e = 0; e < N_EXPERT; e++)
        if (mask >> e & 1)
            ebb_res_announce_expert(f->r, first_extent(layer, e), 1);
    ebb_res_end_experts(f->r);
}

static void layer(noise_file *f, uint32_t l, uint32_t mask)
{
    choose_experts(f, l, 1, mask);
    for (uint32_t e = 0; e < N_EXPERT; e++)
        if (mask >> e & 1)
            assert_int_equal(use_expert(f, l, e), EBB_OK);
}

static ebb_expert_counts counts(noise_file *f)
{
    ebb_res_stats s;

    ebb_res_get_stats(f->r, &s);
    return s.experts;
}

static void test_what_is_used_often_stays(void **state)
{
    noise_file f;
    uint64_t before;

    (void)state;
    open_cache_file(&f, EBB_IO_PREAD, 6);
    for (int i = 0; i < 40; i++)                 /* expert 3 all the time, others once in a while */
        for (uint32_t l = 0; l < N_LAYERS; l++)
            layer(&f, l, 8u | (l == 0 ? 1u << (i % 3) : 0));
    before = counts(&f).n_hits;
    for (uint32_t l = 0; l < N_LAYERS; l++)
        layer(&f, l, 8u);
    assert_int_equal(counts(&f).n_hits - before, N_LAYERS);
    noise_file_close(&f);
}

static void test_guesses(void **state)
{
    noise_file f;
    ebb_expert_counts c;

    (void)state;
    open_cache_file(&f, EBB_IO_PREAD, 16);
    layer(&f, 0, 1);
    ebb_res_prefetch_expert(f.r, first_extent(1, 2));
    ebb_res_prefetch_expert(f.r, first_extent(1, 2)); /* once is enough */
    ebb_res_prefetch_expert(f.r, first_extent(1, 5));
    assert_int_equal(counts(&f).n_prefetched, 2);
    choose_experts(&f, 1, 1, 4);                 /* one was right */
    c = counts(&f);
    assert_int_equal(c.n_prefetch_hits, 1);
    assert_int_equal(c.n_hits, 0);
    assert_int_equal(use_expert(&f, 1, 2), EBB_OK);
    layer(&f, 1, 4);
    assert_int_equal(counts(&f).n_hits, 1);
    layer(&f, 1, 32);                            /* the wrong one, in part here or not */
    for (uint32_t e = 0; e < N_EXPERT; e++)      /* guesses take a quarter of the slots at most */
        ebb_res_prefetch_expert(f.r, first_extent(2, e));
    assert_in_range(counts(&f).n_prefetched, 3, 2 + 8);
    noise_file_close(&f);
}

/* More is expected than there are slots: each gets one when another is done with. */
static void test_more_than_there_is_room_for(void **state)
{
    noise_file f;
    uint64_t before;

    (void)state;
    for (uint32_t n = 1; n < 6; n++) {
        open_cache_file(&f, EBB_IO_PREAD, n);
        for (uint32_t l = 0; l < N_LAYERS; l++)
            layer(&f, l, 0xff);
        before = counts(&f).read_bytes;
        assert_true(before > 0);
        layer(&f, 1, 0xff);
        assert_in_range(counts(&f).read_bytes - before, 1, 2 * N_EXPERT * N_MATS * 2 * SMALL);
        noise_file_close(&f);
    }
}

/* What was used most is there before anybody asks, if it is known. */
static void test_a_warm_beginning(void **state)
{
    float often[N_LAYERS * N_EXPERT];
    noise_file f;

    (void)state;
    open_cache_file(&f, EBB_IO_PREAD, 6);
    assert_int_equal(ebb_res_n_experts(f.r), N_LAYERS * N_EXPERT);
    for (int i = 0; i < 9; i++)
        layer(&f, 2, 6);
    ebb_res_get_expert_uses(f.r, often);
    noise_file_close(&f);
    assert_true(often[2 * N_EXPERT + 1] > 5 && often[0] == 0);
    open_cache_file(&f, EBB_IO_PREAD, 6);
    ebb_res_set_expert_uses(f.r, often);
    ebb_res_fill_expert_cache(f.r);
    assert_int_equal(use_expert(&f, 2, 1), EBB_OK);
    assert_int_equal(use_expert(&f, 2, 2), EBB_OK);
    layer(&f, 2, 6);
    assert_int_equal(counts(&f).n_hits, 2);
    noise_file_close(&f);
}

/* Whether the expert is among those that are read into free slots before anybody has selected one. */
static bool is_filled_first(uint32_t l, uint32_t e, uint32_t n)
{
    uint64_t before;
    noise_file f;
    bool is;

    open_cache_file(&f, EBB_IO_PREAD, n);
    ebb_res_fill_expert_cache(f.r);
    before = counts(&f).read_bytes;
    layer(&f, l, 1u << e);
    is = counts(&f).read_bytes == before;
    noise_file_close(&f);
    return is;
}

/* Nothing is known: all slots are filled all the same, of each layer as many. */
static void test_a_cold_beginning(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (uint32_t l = 0; l < N_LAYERS; l++) {
        uint32_t n_here = 0;

        for (uint32_t e = 0; e < N_EXPERT; e++)
            n_here += is_filled_first(l, e, 12);
        assert_in_range(n_here, 2, 4);
        n += n_here;
    }
    assert_int_equal(n, 12);
}

/* Anything in any order, with failing reads, less memory and canceled waits between. */
static void test_at_random(void **state)
{
    static const ebb_io ios[] = { EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP };
    uint32_t n_failed = 0;

    (void)state;
    for (uint32_t k = 0; k < 9; k++) {
        uint32_t seed = k + 1;
        noise_file f;

        open_cache_file(&f, ios[k % 3], 1 + 8 * (k / 3)); /* with 17, huge pages */
        for (int i = 0; i < 400; i++) {
            uint32_t l = (uint32_t)i % N_LAYERS, mask = 0;

            for (uint32_t j = noise(&seed) % 4; j < 4; j++)
                mask |= 1u << noise(&seed) % N_EXPERT;
            if (noise(&seed) % 8 == 0)
                ebb_res_resize_expert_cache(f.r, noise(&seed) % 2 ? UINT64_MAX : noise(&seed) % 400000);
            if (noise(&seed) % 16 == 0)
                ebb_res_fill_expert_cache(f.r);
            atomic_store(&f.cancel, noise(&seed) % 16 == 0);
            if (noise(&seed) % 4 == 0)
                ebb_os_fail_nth(1 + (int)(noise(&seed) % 12));
            choose_experts(&f, l, 1 + noise(&seed) % 3, mask);
            for (uint32_t e = noise(&seed) % N_EXPERT; e < N_EXPERT && l + 1 < N_LAYERS; e++)
                ebb_res_prefetch_expert(f.r, first_extent(l + 1, e));
            for (uint32_t e = N_EXPERT; e-- > 0;)
                n_failed += (mask >> e & 1) && use_expert(&f, l, e) != EBB_OK;
            ebb_os_fail_off();
            atomic_store(&f.cancel, false);
        }
        layer(&f, 1, 0xff);
        noise_file_close(&f);
    }
    assert_true(n_failed > 0);
}

/* The figure of the reader alone reads what is not here, and leaves everything usable. */
static void test_the_reader_alone(void **state)
{
    noise_file f;

    (void)state;
    open_cache_file(&f, EBB_IO_PREAD, 8);
    layer(&f, 0, 3);
    assert_true(ebb_res_read_speed(f.r, 1 << 20) > 0);
    for (uint32_t l = 0; l < N_LAYERS; l++)
        layer(&f, l, 0x55);
    noise_file_close(&f);
}

static void *let_reads_go(void *arg)
{
    (void)arg;
    usleep(500000);
    ebb_os_hold_reads(false);
    return NULL;
}

/* A slow disk: of what was to be read for the slots, nothing is begun any more once they are given up. */
static void test_closed_while_filling(void **state)
{
    noise_file f;
    pthread_t thread;

    (void)state;
    open_cache_file(&f, EBB_IO_PREAD, N_LAYERS * N_EXPERT);
    ebb_os_hold_reads(true);
    ebb_os_slow_reads(20000);
    ebb_os_fail_nth(5);
    ebb_res_fill_expert_cache(f.r);
    assert_int_equal(pthread_create(&thread, NULL, let_reads_go, NULL), 0);
    assert_int_equal(ebb_res_set_expert_cache(f.r, 0, NULL), EBB_OK);
    pthread_join(thread, NULL);
    ebb_os_slow_reads(0);
    assert_false(ebb_os_fail_off());             /* each of the reader's threads had begun one */
    noise_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_used_often_stays),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_more_than_there_is_room_for),
        cmocka_unit_test(test_a_warm_beginning), cmocka_unit_test(test_a_cold_beginning),
        cmocka_unit_test(test_at_random),
        cmocka_unit_test(test_the_reader_alone), cmocka_unit_test(test_closed_while_filling),
    };

    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
