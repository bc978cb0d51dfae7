/* Files that lie: each gets one clear line, and nothing worse happens. */
#include "gguf_build.h"

#include "ebb/experimental/inspect.h"

static void expect_refused(ebb_buf *f, ebb_status want, const char *words)
{
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open_memory(f->data, f->len, "dir/bad.gguf", &g, &err);

    if (st != want || !strstr(err.msg, words))
        fail_msg("wanted %s with \"%s\", got %s: \"%s\"", ebb_status_text(want), words, ebb_status_text(st), err.msg);
    assert_null(g);
    if (want != EBB_OK)
        assert_memory_equal(err.msg, "bad.gguf: ", 10);
    ebb_buf_fini(f);
}

static void test_other_files(void **state)
{
    static const struct { const char *bytes; size_t n; ebb_status st; const char *words; } files[] = {
        { "", 0, EBB_FORMAT, "is not a GGUF file: it has 0 bytes" },
        { "GG", 2, EBB_FORMAT, "it has 2 bytes" },
        { "GGUF", 4, EBB_FORMAT, "download it again" },
        { "\x40\0\0\0\0\0\0\0{\"a\"", 12, EBB_UNSUPPORTED, "but safetensors; look for a GGUF of it" },
        { "{\"error\":", 9, EBB_UNSUPPORTED, "JSON: a server's message" },
        { "ELF?....", 8, EBB_UNSUPPORTED, "is not a GGUF file (it begins with bytes 45 4c 46 3f)" },
        { "tjgg\3\0\0\0", 8, EBB_UNSUPPORTED, "an old GGML model" },
        { "PK\3\4....", 8, EBB_UNSUPPORTED, "PyTorch" },
        { "<!DOCTYPE html>", 15, EBB_UNSUPPORTED, "a web page" },
        { "version https://git-lfs.github.com/spec/v1", 42, EBB_UNSUPPORTED, "git lfs pull" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ebb_buf f = { 0 };
        ebb_buf_add(&f, files[i].bytes, files[i].n);
        expect_refused(&f, files[i].st, files[i].words);
    }
}

static void test_versions(void **state)
{
    static const struct { uint32_t version; const char *words; } versions[] = {
        { 0, "version 0" },   { 1, "version 1 of 2023" },          { 4, "version 4; ebb reads 2 and 3" },
        { 0x02000000, "big-endian" }, { 0x03000000, "big-endian" }, { 0x12345678, "ebb reads 2 and 3" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        ebb_buf f = { 0 };
        gguf_head(&f, versions[i].version, 0, 0);
        expect_refused(&f, EBB_UNSUPPORTED, versions[i].words);
    }
}

static void test_counts(void **state)
{
    static const uint64_t counts[] = { 1, 2, 1000, UINT32_MAX, (uint64_t)1 << 60, UINT64_MAX };
    ebb_buf f = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gguf_head(&f, 3, counts[i], 0);
        expect_refused(&f, EBB_FORMAT, "download it again");
        gguf_head(&f, 3, 0, counts[i]);
        expect_refused(&f, EBB_FORMAT, "download it again");
    }
    gguf_head(&f, 3, 1 << 18, 0);                /* the file has room for them, and still */
    gguf_data(&f, 1, 8 << 20);
    expect_refused(&f, EBB_LIMIT, "claims 262144 tensors");
    gguf_head(&f, 3, 0, 1 << 17);
    gguf_data(&f, 1, 4 << 20);
    expect_refused(&f, EBB_LIMIT, "claims 131072 metadata keys");
}

static void test_names(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 1);
    gguf_kv_u32(&f, "", 1);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "the name of a metadata key has 0 bytes");

    gguf_head(&f, 3, 0, 1);
    gguf_u64(&f, UINT64_MAX);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "has 18446744073709551615 bytes");

    gguf_head(&f, 3, 0, 1);
    gguf_text(&f, "a\0b", 3);
    gguf_u32(&f, EBB_GGUF_U8);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "holds a NUL byte");

    gguf_head(&f, 3, 1, 0);
    gguf_text(&f, "t\0", 2);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "the name of a tensor holds a NUL byte");

    gguf_head(&f, 3, 0, 2);
    gguf_kv_u32(&f, "twice", 1);
    gguf_kv_str(&f, "twice", "b");
    expect_refused(&f, EBB_FORMAT, "metadata key twice occurs twice");

    gguf_head(&f, 3, 2, 0);
    gguf_tensor(&f, "same", EBB_TYPE_F32, 0, 1, (uint64_t)8);
    gguf_tensor(&f, "same", EBB_TYPE_F32, 32, 1, (uint64_t)8);
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "tensor same occurs twice");
}

static void test_values(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 0, 1);
    gguf_kv_raw(&f, "k", 13, "........", 8);
    expect_refused(&f, EBB_FORMAT, "key k has a value of unknown type 13");

    gguf_head(&f, 3, 0, 1);
    gguf_text(&f, "k", 1);
    gguf_u32(&f, EBB_GGUF_STRING);
    gguf_u64(&f, (uint64_t)1 << 40);
    expect_refused(&f, EBB_FORMAT, "the text of k takes 1099511627776 bytes");

    gguf_head(&f, 3, 0, 1);
    gguf_text(&f, "k", 1);
    gguf_u32(&f, EBB_GGUF_STRING);
    gguf_text(&f, "a\0b", 3);
    expect_refused(&f, EBB_FORMAT, "the text of key k holds a NUL byte");

    gguf_head(&f, 3, 0, 1);
    gguf_kv_raw(&f, "k", EBB_GGUF_U64, "1234", 4);
    expect_refused(&f, EBB_FORMAT, "the value of k takes 8 bytes");
}

static void test_lists(void **state)
{
    static const uint32_t items[] = { EBB_GGUF_U8, EBB_GGUF_U16, EBB_GGUF_F32, EBB_GGUF_I64, EBB_GGUF_STRING };
    ebb_buf f = { 0 };

    (void)state;
    for (size_t i = 0; i < 5; i++) {             /* as many items as make the bytes overflow */
        for (uint64_t n = (uint64_t)1 << 61; n != 0; n <<= 1) {
            gguf_head(&f, 3, 0, 1);
            gguf_kv_array(&f, "list", items[i], n);
            gguf_data(&f, 1, 64);
            expect_refused(&f, EBB_FORMAT, "array list has");
        }
    }
    gguf_head(&f, 3, 0, 1);
    gguf_kv_array(&f, "list", EBB_GGUF_STRING, 3);
    gguf_text(&f, "ok", 2);
    gguf_u64(&f, UINT64_MAX - 3);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "the array of list takes");

    gguf_head(&f, 3, 0, 1);
    gguf_kv_array(&f, "list", EBB_GGUF_ARRAY, 1);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_UNSUPPORTED, "key list is an array of arrays");

    gguf_head(&f, 3, 0, 1);
    gguf_kv_array(&f, "list", 99, 1);
    gguf_data(&f, 1, 64);
    expect_refused(&f, EBB_FORMAT, "unknown type 99");
}

static void test_dimensions(void **state)
{
    static const uint64_t dims[][2] = {
        { 0, 1 }, { 32, 0 }, { (uint64_t)1 << 32, (uint64_t)1 << 31 }, { UINT64_MAX, 1 }, { 3, UINT64_MAX / 3 },
    };
    ebb_buf f = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        gguf_head(&f, 3, 1, 0);
        gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 2, dims[i][0], dims[i][1]);
        gguf_data(&f, 32, 64);
        expect_refused(&f, EBB_FORMAT, "of tensor t is");
    }
    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_F64, 0, 2, (uint64_t)1 << 31, (uint64_t)1 << 31);
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "tensor t has 4611686018427387904 elements");

    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 5, (uint64_t)1, (uint64_t)1, (uint64_t)1, (uint64_t)1, (uint64_t)1);
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "tensor t has 5 dimensions");

    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_Q4_K, 0, 2, (uint64_t)100, (uint64_t)8);
    gguf_data(&f, 32, 4096);
    expect_refused(&f, EBB_FORMAT, "tensor t has rows of 100; Q4_K needs a multiple of 256");
}

static void test_places(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 2, (uint64_t)64, (uint64_t)4);
    gguf_data(&f, 32, 1000);
    expect_refused(&f, EBB_FORMAT, "bad.gguf: truncated: has 1096 of 1120 bytes; download it again");

    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", 133, 1 << 20, 1, (uint64_t)64);         /* size unknown, but it begins too late */
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "truncated");

    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_F32, UINT64_MAX - 31, 1, (uint64_t)8);
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "impossible offset");

    gguf_head(&f, 3, 1, 0);
    gguf_tensor(&f, "t", EBB_TYPE_F32, 4, 1, (uint64_t)8);
    gguf_data(&f, 32, 64);
    expect_refused(&f, EBB_FORMAT, "tensor t at offset 4 is not aligned to 32");
}

static void test_alignments(void **state)
{
    static const uint32_t bad[] = { 0, 3, 24, 33, UINT32_MAX };
    ebb_buf f = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gguf_head(&f, 3, 0, 1);
        gguf_kv_u32(&f, "general.alignment", bad[i]);
        expect_refused(&f, EBB_FORMAT, "general.alignment is not a power of two");
    }
    gguf_head(&f, 3, 0, 1);
    gguf_kv_str(&f, "general.alignment", "32");
    expect_refused(&f, EBB_FORMAT, "general.alignment is not a power of two");
}

/* What is promised or shared is no more than there is: memory is taken in proportion to it. */
static void test_more_than_there_is(void **state)
{
    const ebb_partial_file file = { "/proc/self/exe", "bad.gguf", ((uint64_t)1 << 48) + 1 };
    ebb_error err = { 0 };
    ebb_buf f = { 0 };
    ebb_gguf *g;
    size_t i;

    (void)state;
    gguf_head(&f, 3, 3, 0);
    gguf_tensor(&f, "a", EBB_TYPE_F32, 0, 1, (uint64_t)64);
    gguf_tensor(&f, "b", EBB_TYPE_F32, 0, 1, (uint64_t)64);
    gguf_tensor(&f, "c", EBB_TYPE_F32, 32, 1, (uint64_t)56);
    gguf_data(&f, 32, 256);
    expect_refused(&f, EBB_FORMAT, "its tensors have 736 bytes together, but the file has 384: they overlap");
    assert_int_equal(ebb_gguf_open_partial(&file, 1, &i, &g, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "has 281474976710657 bytes; at most 281474976710656 are accepted"));
    assert_null(g);
}

/* Cut at every byte: always an error with words, never more. */
static void test_every_truncation(void **state)
{
    ebb_buf f = { 0 };

    (void)state;
    gguf_head(&f, 3, 2, 3);
    gguf_kv_u32(&f, "a", 1);
    gguf_kv_str(&f, "b", "text");
    gguf_kv_array(&f, "c", EBB_GGUF_STRING, 2);
    gguf_text(&f, "x", 1);
    gguf_text(&f, "yz", 2);
    gguf_tensor(&f, "t", EBB_TYPE_F32, 0, 1, (uint64_t)8);
    gguf_tensor(&f, "u", EBB_TYPE_Q8_0, 32, 1, (uint64_t)32);
    gguf_data(&f, 32, 66);
    for (size_t n = 0; n < f.len; n++) {
        char *exact = malloc(n + 1);             /* so that a sanitizer sees one byte too far */
        ebb_error err = { 0 };
        ebb_gguf *g;
        assert_non_null(exact);
        exact = realloc(exact, n ? n : 1);
        memcpy(exact, f.data, n);
        assert_int_not_equal(ebb_gguf_open_memory(exact, n, "cut.gguf", &g, &err), EBB_OK);
        assert_memory_equal(err.msg, "cut.gguf: ", 10);
        free(exact);
    }
    ebb_buf_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_files), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_lists),
        cmocka_unit_test(test_dimensions),  cmocka_unit_test(test_places),
        cmocka_unit_test(test_alignments),  cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_more_than_there_is),
    };
    return cmocka_run_group_tests_name("gguf hostile", tests, NULL, NULL);
}
