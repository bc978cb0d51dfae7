/* Sound files of every kind: what the reader hands out. */
#include "gguf_build.h"

#include <unistd.h>

#include "ebb/experimental/type.h"
#include "os/fault.h"
#include "os/file.h"

static ebb_gguf *open_bytes(const ebb_buf *f)
{
    ebb_error err = { 0 };
    ebb_gguf *g;

    if (ebb_gguf_open_memory(f->data, f->len, "test", &g, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return g;
}

/* -- Metadata ------------------------------------------------------------------ */
static void add_every_type(ebb_buf *f)
{
    const int8_t i8 = -8;
    const int16_t i16 = -1600;
    const int32_t i32 = -320000;
    const int64_t i64 = -64000000000;
    const uint64_t u64 = UINT64_MAX;
    const float f32 = 0.1f, whole = 42.0f;
    const double f64 = 1e-5;

    gguf_kv_raw(f, "u8", EBB_GGUF_U8, "\xff", 1);
    gguf_kv_raw(f, "i8", EBB_GGUF_I8, &i8, 1);
    gguf_kv_raw(f, "u16", EBB_GGUF_U16, "\xff\xff", 2);
    gguf_kv_raw(f, "i16", EBB_GGUF_I16, &i16, 2);
    gguf_kv_u32(f, "u32", 0xffffffff);
    gguf_kv_raw(f, "i32", EBB_GGUF_I32, &i32, 4);
    gguf_kv_raw(f, "u64", EBB_GGUF_U64, &u64, 8);
    gguf_kv_raw(f, "i64", EBB_GGUF_I64, &i64, 8);
    gguf_kv_raw(f, "f32", EBB_GGUF_F32, &f32, 4);
    gguf_kv_raw(f, "whole", EBB_GGUF_F32, &whole, 4);
    gguf_kv_raw(f, "f64", EBB_GGUF_F64, &f64, 8);
    gguf_kv_raw(f, "bool", EBB_GGUF_BOOL, "\1", 1);
    gguf_kv_str(f, "general.architecture", "llama");
    gguf_kv_u32(f, "llama.block_count", 5);
}

static void test_numbers_of_any_type(void **state)
{
    ebb_buf f = { 0 };
    uint64_t u = 7;
    int64_t i = 7;
    double d = 7;
    bool b = false;

    (void)state;
    gguf_head(&f, 3, 0, 14);
    add_every_type(&f);
    ebb_gguf *g = open_bytes(&f);
    assert_true(ebb_gguf_get_u64(g, "u8", &u) && u == 255);
    assert_true(ebb_gguf_get_u64(g, "u16", &u) && u == 65535);
    assert_true(ebb_gguf_get_u64(g, "u32", &u) && u == 0xffffffff);
    assert_true(ebb_gguf_get_u64(g, "u64", &u) && u == UINT64_MAX);
    assert_true(ebb_gguf_get_u64(g, "whole", &u) && u == 42);
    assert_true(ebb_gguf_get_u64(g, "bool", &u) && u == 1);
    assert_true(ebb_gguf_get_u64(g, ".block_count", &u) && u == 5);
    assert_true(ebb_gguf_get_i64(g, "i8", &i) && i == -8);
    assert_true(ebb_gguf_get_i64(g, "i16", &i) && i == -1600);
    assert_true(ebb_gguf_get_i64(g, "i32", &i) && i == -320000);
    assert_true(ebb_gguf_get_i64(g, "i64", &i) && i == -64000000000);
    assert_true(ebb_gguf_get_i64(g, "u32", &i) && i == 0xffffffff);
    assert_true(ebb_gguf_get_f64(g, "f64", &d) && d == 1e-5);
    assert_true(ebb_gguf_get_f64(g, "f32", &d) && d == (double)0.1f);
    assert_true(ebb_gguf_get_f64(g, "i8", &d) && d == -8);
    assert_true(ebb_gguf_get_bool(g, "bool", &b) && b);
    ebb_gguf_close(g);
    ebb_buf_fini(&f);
}

static void test_what_does_not_fit_leaves_the_default(void **state)
{
    static const char *const keys[] = { "i8", "i64", "f32", "general.architecture", "absent", ".absent" };
    ebb_buf f = { 0 };
    uint64_t u = 7;
    int64_t i = 7;

    (void)state;
    gguf_head(&f, 2, 0, 14);
    add_every_type(&f);
    ebb_gguf *g = open_bytes(&f);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        assert_false(ebb_gguf_get_u64(g, keys[k], &u));
    assert_false(ebb_gguf_get_i64(g, "u64", &i));
    assert_int_equal(u, 7);
    assert_int_equal(i, 7);
    assert_null(ebb_gguf_get_string(g, "u8"));
    assert_string_equal(ebb_gguf_get_string(g, "general.architecture"), "llama");
    ebb_gguf_close(g);
    ebb_buf_fini(&f);
}

static void test_arrays(void **state)
{
    const int32_t heads[] = { 8, 0, -1 };
    const char *text;
    ebb_buf f = { 0 };
    uint64_t u = 0;
    size_t n;

    (void)state;
    gguf_head(&f, 3, 0, 4);
    gguf_kv_array(&f, "heads", EBB_GGUF_I32, 3);
    ebb_buf_add(&f, heads, sizeof heads);
    gguf_kv_array(&f, "tokens", EBB_GGUF_STRING, 3);
    gguf_text(&f, "a", 1);
    gguf_text(&f, "", 0);
    gguf_text(&f, "b\0c", 3);                    /* inside an array any byte is allowed */
    gguf_kv_array(&f, "none", EBB_GGUF_STRING, 0);
    gguf_kv_u32(&f, "same", 9);
    ebb_gguf *g = open_bytes(&f);

    assert_true(ebb_gguf_get_u64_at(g, "heads", 0, &u) && u == 8);
    assert_false(ebb_gguf_get_u64_at(g, "heads", 2, &u));        /* negative */
    assert_false(ebb_gguf_get_u64_at(g, "heads", 3, &u));        /* beyond the end */
    assert_false(ebb_gguf_get_u64(g, "heads", &u));
    assert_true(ebb_gguf_get_u64_at(g, "same", 31, &u) && u == 9);

    ebb_gguf_strings s = ebb_gguf_strings_of(ebb_gguf_find(g, "tokens"));
    assert_true(ebb_gguf_strings_next(&s, &text, &n) && n == 1 && text[0] == 'a');
    assert_true(ebb_gguf_strings_next(&s, &text, &n) && n == 0);
    assert_true(ebb_gguf_strings_next(&s, &text, &n) && n == 3 && memcmp(text, "b\0c", 3) == 0);
    assert_false(ebb_gguf_strings_next(&s, &text, &n));
    s = ebb_gguf_strings_of(ebb_gguf_find(g, "none"));
    assert_false(ebb_gguf_strings_next(&s, &text, &n));
    s = ebb_gguf_strings_of(ebb_gguf_find(g, "absent"));
    assert_false(ebb_gguf_strings_next(&s, &text, &n));
    ebb_gguf_close(g);
    ebb_buf_fini(&f);
}

/* -- Tensors --------------------------------------------------------------------- */
static void test_tensors_at_any_alignment(void **state)
{
    static const uint32_t alignments[] = { 1, 2, 8, 32, 64, 4096 };

    (void)state;
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        const uint32_t a = alignments[i];
        const uint64_t second = (36 + a - 1) / a * a;
        ebb_buf f = { 0 };
        gguf_head(&f, 3, 2, 1);
        gguf_kv_u32(&f, "general.alignment", a);
        gguf_tensor(&f, "blk.0.a", EBB_TYPE_Q4_0, 0, 2, (uint64_t)32, (uint64_t)2);
        gguf_tensor(&f, "b", EBB_TYPE_F32, second, 3, (uint64_t)2, (uint64_t)3, (uint64_t)4);
        gguf_data(&f, a, second + 96);
        ebb_gguf *g = open_bytes(&f);
        const ebb_gguf_tensor *t = ebb_gguf_find_tensor(g, "blk.0.a"), *b = ebb_gguf_find_tensor(g, "b");

        assert_non_null(t);
        assert_non_null(b);
        assert_int_equal(t->n_bytes, 36);
        assert_int_equal(t->offset % a, 0);
        assert_int_equal(t->offset + second + 96, f.len);
        assert_int_equal(b->offset, t->offset + second);
        assert_int_equal(b->n_elems, 24);
        assert_int_equal(b->dims[3], 1);
        assert_null(ebb_gguf_find_tensor(g, "blk.0"));
        ebb_gguf_close(g);
        ebb_buf_fini(&f);
    }
}

static void test_unknown_types_are_kept_and_named(void **state)
{
    ebb_error err = { 0 };
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 2, 0);
    gguf_tensor(&f, "blk.3.ffn_up", 133, 0, 2, (uint64_t)256, (uint64_t)8);
    gguf_tensor(&f, "old", 31, 32, 1, (uint64_t)32);
    gguf_data(&f, 32, 64);
    ebb_gguf *g = open_bytes(&f);
    assert_int_equal(ebb_gguf_get_tensor(g, 0)->n_bytes, 0);
    assert_int_equal(ebb_gguf_check_type(ebb_gguf_get_tensor(g, 0), &err), EBB_UNSUPPORTED);
    assert_string_equal(err.msg, "tensor blk.3.ffn_up: type 133 is not supported");
    assert_int_equal(ebb_gguf_check_type(ebb_gguf_get_tensor(g, 1), &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "download the model as Q4_0"));
    ebb_gguf_close(g);
    ebb_buf_fini(&f);
}

/* -- Files ------------------------------------------------------------------------- */
static char dir[] = "/tmp/ebb-gguf-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static unsigned turn;
    char *p = path[turn++ % 2];

    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void write_bytes(const char *name, const ebb_buf *f)
{
    assert_int_equal(ebb_file_replace(in_dir(name), f->data, f->len, NULL), EBB_OK);
}

/* Header beyond the first read, so that it is read in several goes. */
static void test_a_long_header_from_a_path(void **state)
{
    ebb_buf f = { 0 };
    ebb_gguf *g, *again;
    const char *text = NULL;
    size_t n = 0, count = 0;

    (void)state;
    gguf_head(&f, 3, 1, 2);
    gguf_kv_array(&f, "tokenizer.ggml.tokens", EBB_GGUF_STRING, 300000);
    for (int i = 0; i < 300000; i++)
        gguf_text(&f, "token", 5);
    gguf_kv_str(&f, "last", "value");
    gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 1, (uint64_t)1024);
    gguf_data(&f, 32, 4096);
    write_bytes("long.gguf", &f);

    assert_int_equal(ebb_gguf_open(in_dir("long.gguf"), &g, NULL), EBB_OK);
    again = open_bytes(&f);
    ebb_gguf_strings s = ebb_gguf_strings_of(ebb_gguf_find(g, "tokenizer.ggml.tokens"));
    while (ebb_gguf_strings_next(&s, &text, &n))
        count += n == 5 && memcmp(text, "token", 5) == 0;
    assert_int_equal(count, 300000);
    assert_string_equal(ebb_gguf_get_string(g, "last"), "value");
    assert_string_equal(ebb_gguf_get_tensor(g, 0)->name, "t");
    assert_true(ebb_gguf_get_part(g, 0)->fd >= 0);
    assert_memory_equal(ebb_gguf_digest(g), ebb_gguf_digest(again), 16);
    ebb_gguf_close(again);
    ebb_gguf_close(g);
    ebb_buf_fini(&f);
}

/* Part i of 3 with one tensor; the counts in the integer type that `type` says. */
static void write_part(const char *name, uint32_t i, uint32_t type, uint32_t said_no, uint32_t said_tensors)
{
    static const size_t bytes[EBB_GGUF_TYPE_COUNT] = {
        [EBB_GGUF_U8] = 1, [EBB_GGUF_U16] = 2, [EBB_GGUF_I32] = 4, [EBB_GGUF_U64] = 8, [EBB_GGUF_I64] = 8,
    };
    const uint64_t no = said_no, count = 3, total = said_tensors;
    char tensor[8];
    ebb_buf f = { 0 };

    gguf_head(&f, 3, 1, i == 0 ? 4 : 3);
    gguf_kv_raw(&f, "split.no", type, &no, bytes[type]);
    gguf_kv_raw(&f, "split.count", type, &count, bytes[type]);
    gguf_kv_raw(&f, "split.tensors.count", type, &total, bytes[type]);
    if (i == 0)
        gguf_kv_str(&f, "general.name", "Split");
    snprintf(tensor, sizeof tensor, "t.%u", i);
    gguf_tensor(&f, tensor, EBB_TYPE_F32, 0, 1, (uint64_t)8 * (i + 1));
    gguf_data(&f, 32, 32 * (i + 1));
    write_bytes(name, &f);
    ebb_buf_fini(&f);
}

static const char *const part_names[] = { "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf" };

static void write_parts(uint32_t type)
{
    for (uint32_t i = 0; i < 3; i++)
        write_part(part_names[i], i, type, i, 3);
}

/* Part i of 3, whose header is a list of n_bytes; it is a hole. */
static void write_part_of_holes(uint32_t i, uint64_t n_bytes)
{
    ebb_buf f = { 0 };

    gguf_head(&f, 3, 0, 3);
    gguf_kv_u32(&f, "split.no", i);
    gguf_kv_u32(&f, "split.count", 3);
    gguf_kv_array(&f, "list", EBB_GGUF_U8, n_bytes);
    write_bytes(part_names[i], &f);
    assert_int_equal(truncate(in_dir(part_names[i]), (off_t)(f.len + n_bytes)), 0);
    ebb_buf_fini(&f);
}

/* Each header may be as long as that, and there may be hundreds of parts. */
static void test_headers_have_a_limit_together(void **state)
{
    ebb_error err = { 0 };
    ebb_gguf *g;

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        write_part_of_holes(i, (uint64_t)24 << 20);
    assert_int_equal(ebb_gguf_open(in_dir(part_names[0]), &g, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "more than 67108864 bytes together"));
    assert_null(g);
}

static void test_any_part_opens_all(void **state)
{
    static const uint32_t types[] = { EBB_GGUF_U8, EBB_GGUF_U16, EBB_GGUF_I32, EBB_GGUF_U64, EBB_GGUF_I64 };
    ebb_error err = { 0 };
    ebb_gguf *g;

    (void)state;
    for (size_t k = 0; k < 5; k++) {
        write_parts(types[k]);
        for (uint32_t i = 0; i < 3; i++) {
            if (ebb_gguf_open(in_dir(part_names[i]), &g, &err) != EBB_OK)
                fail_msg("%s", err.msg);
            assert_int_equal(ebb_gguf_n_parts(g), 3);
            assert_int_equal(ebb_gguf_n_tensors(g), 3);
            assert_string_equal(ebb_gguf_get_string(g, "general.name"), "Split");
            const ebb_gguf_tensor *t = ebb_gguf_find_tensor(g, "t.2");
            assert_int_equal(t->part, 2);
            assert_int_equal(t->n_bytes, 96);
            assert_non_null(strstr(ebb_gguf_get_part(g, 2)->path, part_names[2]));
            ebb_gguf_close(g);
        }
    }
}

static void expect_open(const char *name, ebb_status want, const char *words)
{
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open(in_dir(name), &g, &err);

    assert_int_equal(st, want);
    assert_null(g);
    if (!strstr(err.msg, words))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
}

static void test_parts_that_do_not_fit_together(void **state)
{
    (void)state;
    write_parts(EBB_GGUF_U16);
    unlink(in_dir(part_names[1]));
    expect_open(part_names[2], EBB_NOTFOUND, "m-00002-of-00003.gguf: part 2 of 3 is missing");
    write_part(part_names[1], 1, EBB_GGUF_U16, 2, 3);
    expect_open(part_names[0], EBB_FORMAT, "says it is part 3");
    write_part(part_names[1], 0, EBB_GGUF_U16, 1, 3);
    expect_open(part_names[0], EBB_FORMAT, "tensor t.0 occurs twice");
    write_part(part_names[1], 1, EBB_GGUF_U16, 1, 3);
    write_part(part_names[0], 0, EBB_GGUF_U16, 0, 4);
    expect_open(part_names[0], EBB_FORMAT, "hold 3 of 4 tensors");
    write_part("renamed.gguf", 0, EBB_GGUF_U16, 0, 3);
    expect_open("renamed.gguf", EBB_FORMAT, "rename the parts");
    expect_open("absent.gguf", EBB_NOTFOUND, "absent.gguf");
}

/* Every system call fails once; the open fails with words, and nothing leaks. */
static void test_survives_every_fault(void **state)
{
    (void)state;
    write_parts(EBB_GGUF_U16);
    for (int n = 1;; n++) {
        ebb_error err = { 0 };
        ebb_gguf *g;
        ebb_os_fail_nth(n);
        ebb_status st = ebb_gguf_open(in_dir(part_names[1]), &g, &err);
        bool reached = ebb_os_fail_off();

        assert_true((st == EBB_OK) == (g != NULL));
        assert_true(st == EBB_OK || err.msg[0] != '\0');
        assert_true(!reached || st != EBB_OK);
        ebb_gguf_close(g);
        if (!reached)
            break;
    }
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = { "long.gguf", "renamed.gguf" };

    (void)state;
    for (int i = 0; i < 3; i++)
        unlink(in_dir(part_names[i]));
    for (int i = 0; i < 2; i++)
        unlink(in_dir(names[i]));
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_any_type),
        cmocka_unit_test(test_what_does_not_fit_leaves_the_default),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_tensors_at_any_alignment),
        cmocka_unit_test(test_unknown_types_are_kept_and_named),
        cmocka_unit_test(test_a_long_header_from_a_path),
        cmocka_unit_test(test_any_part_opens_all), cmocka_unit_test(test_headers_have_a_limit_together),
        cmocka_unit_test(test_parts_that_do_not_fit_together),
        cmocka_unit_test(test_survives_every_fault),
    };
    return cmocka_run_group_tests_name("gguf", tests, make_dir, remove_dir);
}
