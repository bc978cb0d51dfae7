/* Headers that end anywhere, and headers that are damaged, as they come: in files, in files of which only the
 * beginning is there, and in files of two parts.  Each is refused with one line, or can be asked everything. */
#include "gguf_damage.h"

#include <fcntl.h>

#include "ebb/experimental/inspect.h"
#include "support/own_folder.h"

#define N_MUTANTS 3000

static char folder[64], paths[2][128];
static int fds[2];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(folder, sizeof folder, "/dev/shm/ebb-gguf-files-XXXXXX") != 0 &&      /* some 10,000 times cut */
        ebb_own_folder(folder, sizeof folder, "/tmp/ebb-gguf-files-XXXXXX") != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/m-%05d-of-00002.gguf", folder, i + 1);
        fds[i] = open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fds[i] < 0)
            return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    return ebb_own_folder_end(folder);
}

static void put(int i, const ebb_buf *f, size_t n)
{
    assert_int_equal(ftruncate(fds[i], 0), 0);
    assert_int_equal(pwrite(fds[i], f->data, n, 0), n);
}

/* -- Opening ------------------------------------------------------------------------- */

/* What came of opening; true: it is open. */
static bool check(ebb_status st, ebb_gguf *g, const ebb_error *err)
{
    assert_true((st == EBB_OK) == (g != NULL));
    if (g)
        gguf_use(g);
    else
        gguf_check_failure(err);
    ebb_gguf_close(g);
    return st == EBB_OK;
}

static bool open_whole(int i)
{
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open(paths[i], &g, &err);

    return check(st, g, &err);
}

/* The first n files, each of which will have `size` bytes. */
static bool open_begun(size_t n, size_t size)
{
    const ebb_partial_file files[] = { { paths[0], "m-1.gguf", size }, { paths[1], "m-2.gguf", size } };
    ebb_error err = { 0 };
    size_t i_busy = 99;
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open_partial(files, n, &i_busy, &g, &err);

    assert_true(i_busy < n);
    return check(st, g, &err);
}

/* Both files as they stand, in every way; the first is whole, or not. */
static void open_all_ways(size_t size)
{
    open_whole(0);
    open_whole(1);
    open_begun(1, 0);
    open_begun(1, size);
    open_begun(2, 0);
    open_begun(2, size);
}

/* -- Ends ---------------------------------------------------------------------------- */

/* File i ends at each of [from, f->len); the other one stays as it is. */
static void cut_everywhere(int i, const ebb_buf *f, size_t from, size_t size)
{
    put(i, f, f->len);
    for (size_t n = f->len; n-- > from;) {
        assert_int_equal(ftruncate(fds[i], (off_t)n), 0);
        open_all_ways(size);
        assert_false(open_whole(i));             /* data of the last tensor end with the file */
    }
    put(i, f, f->len);
}

/* One key of each type, and of each name that is asked for: the file ends within it. */
static void test_an_end_in_any_key(void **state)
{
    static const char *const keys[] = {
        "split.tensors.count", "split.count", "split.no", "general.alignment", "general.architecture",
        "nineteen.bytes.long", "tokenizer.ggml.tokens", "x",
    };
    static const char zeroes[8];
    ebb_buf f = { 0 };

    (void)state;
    put(1, &f, 0);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (uint32_t type = 0; type <= EBB_GGUF_TYPE_COUNT; type++) {
            static const uint8_t n_bytes[EBB_GGUF_TYPE_COUNT + 1] = { 1, 1, 2, 2, 4, 4, 4, 1, 8, 13, 8, 8, 8, 8 };

            ebb_buf_clear(&f);
            gguf_head(&f, 3, 0, 1);
            gguf_kv_raw(&f, keys[k], type, zeroes, 0);
            for (size_t n = 0; n < n_bytes[type]; n++)
                ebb_buf_addc(&f, type == EBB_GGUF_ARRAY && n == 4);      /* one byte */
            put(0, &f, f.len);
            for (size_t n = f.len; n-- > 0;) {
                assert_int_equal(ftruncate(fds[0], (off_t)n), 0);
                assert_false(open_whole(0));
                assert_false(open_begun(1, 0));
                assert_false(open_begun(1, f.len));
            }
        }
    ebb_buf_fini(&f);
}

static void test_an_end_anywhere(void **state)
{
    ebb_buf parts[2] = { { 0 }, { 0 } }, one = { 0 };
    size_t size;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        gguf_part(&parts[i], i, 2);
        put((int)i, &parts[i], parts[i].len);
    }
    size = parts[0].len;
    assert_true(open_whole(0) && open_whole(1) && open_begun(2, size));
    cut_everywhere(0, &parts[0], 0, size);
    cut_everywhere(1, &parts[1], 0, size);
    gguf_part(&one, 0, 1);
    put(0, &one, one.len);
    assert_true(open_whole(0) && open_begun(1, size));
    cut_everywhere(0, &one, 0, size);
    ebb_buf_fini(&parts[0]);
    ebb_buf_fini(&parts[1]);
    ebb_buf_fini(&one);
}

/* A header that is read in several steps ends around each of them. */
static void test_an_end_in_a_long_header(void **state)
{
    ebb_buf f = { 0 };
    size_t n_text = 2400000;

    (void)state;
    gguf_head(&f, 3, 1, 2);
    gguf_text(&f, "long", 4);
    gguf_u32(&f, EBB_GGUF_STRING);
    gguf_u64(&f, n_text);
    for (size_t i = 0; i < n_text; i++)
        ebb_buf_addc(&f, 'a');
    gguf_kv_u32(&f, "split.tensors.count", 1);
    gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 1, (uint64_t)8);
    gguf_data(&f, 32, 32);
    put(0, &f, f.len);
    assert_true(open_whole(0));
    for (size_t n = f.len; n-- > 0;) {
        size_t in_step = n % ((size_t)1 << 20);

        if (n > ((size_t)1 << 20) + 20 && in_step > 20 && in_step < ((size_t)1 << 20) - 20 && (n < n_text || n % 7))
            continue;                            /* within the text they are all alike */
        if (n < ((size_t)1 << 20) - 20)
            break;
        assert_int_equal(ftruncate(fds[0], (off_t)n), 0);
        assert_false(open_whole(0));
        open_begun(1, f.len);
    }
    ebb_buf_fini(&f);
}

/* A header without an end: files of 2 GiB of nothing cost no more than the limit. */
static void test_an_endless_header(void **state)
{
    static const struct { uint32_t item; uint64_t n; } arrays[] = {
        { EBB_GGUF_U8, 1u << 30 }, { EBB_GGUF_STRING, 1u << 27 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        ebb_error err = { 0 };
        ebb_buf f = { 0 };
        ebb_gguf *g;

        gguf_head(&f, 3, 0, 1);
        gguf_kv_array(&f, "endless", arrays[i].item, arrays[i].n);
        put(0, &f, f.len);
        ebb_buf_fini(&f);
        if (ftruncate(fds[0], (off_t)1 << 31) != 0)
            skip();                              /* not on this disk */
        assert_int_equal(ebb_gguf_open(paths[0], &g, &err), EBB_LIMIT);
        assert_non_null(strstr(err.msg, "its header has more than 67108864 bytes"));
        assert_null(g);
    }
}

/* -- Damage -------------------------------------------------------------------------- */

static void test_damaged_files(void **state)
{
    ebb_buf good[2] = { { 0 }, { 0 } }, f = { 0 };
    uint32_t n_open = 0;
    size_t most;

    (void)state;
    gguf_part(&good[0], 0, 2);
    gguf_part(&good[1], 1, 2);
    most = good[0].len;
    for (int k = 0; k < N_MUTANTS; k++) {
        int i = (int)gguf_random_below(2);

        ebb_buf_clear(&f);
        ebb_buf_add(&f, good[i].data, good[i].len);
        for (uint64_t edits = 1 + gguf_random_below(3); edits > 0; edits--)
            gguf_damage(&f, f.len);
        put(i, &f, f.len);
        put(1 - i, &good[1 - i], good[1 - i].len);
        open_all_ways(most > f.len ? most : f.len);
        n_open += open_whole(0);
    }
    print_message("%u of %d mutants could be opened\n", n_open, N_MUTANTS);
    assert_true(n_open > 0 && n_open < N_MUTANTS);
    ebb_buf_fini(&good[0]);
    ebb_buf_fini(&good[1]);
    ebb_buf_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_end_in_any_key),
        cmocka_unit_test(test_an_end_anywhere),
        cmocka_unit_test(test_an_end_in_a_long_header),
        cmocka_unit_test(test_an_endless_header),
        cmocka_unit_test(test_damaged_files),
    };

    return cmocka_run_group_tests_name("gguf files", tests, setup, teardown);
}
