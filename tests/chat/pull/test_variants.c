/* The models of a listing: types, parts, what is meant, what suits. */
#include "ebb_test.h"

#include "pull/variants.h"

#define GB ((uint64_t)1000000000)

static ebb_hub_file file(const char *path, uint64_t n_bytes)
{
    const char *slash = strrchr(path, '/');

    return (ebb_hub_file){ .path = (char *)(uintptr_t)path, .name = slash ? slash + 1 : path, .n_bytes = n_bytes };
}

static void test_types(void **state)
{
    static const char *const names[][2] = {
        { "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Q4_K_M" }, { "llama-2-7b.Q4_0.gguf", "Q4_0" },
        { "qwen2.5-7b-instruct-q5_k_m-00001-of-00002.gguf", "Q5_K_M" }, { "x-IQ2_XXS.gguf", "IQ2_XXS" },
        { "x-UD-Q4_K_XL.gguf", "Q4_K_XL" },
        { "x-BF16.gguf", "BF16" }, { "gpt-oss-20b-mxfp4.gguf", "MXFP4" }, { "x-Q4_0_4_4.gguf", "Q4_0_4_4" },
        { "model.gguf", "" }, { "x-Q8_0-imat.gguf", "Q8_0" }, { "Qwen-7B.gguf", "" }, { "-.gguf", "" },
    };
    char type[24];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ebb_pull_type_in_name(names[i][0], type);
        assert_string_equal(type, names[i][1]);
    }
}

static void test_parts(void **state)
{
    ebb_hub_file files[] = { file("Q8_0/x-Q8_0-00001-of-00003.gguf", 30), file("Q8_0/x-Q8_0-00002-of-00003.gguf", 30),
                             file("Q8_0/x-Q8_0-00003-of-00003.gguf", 5), file("x-F16-00001-of-00002.gguf", 50),
                             file("x-Q4_K_M.gguf", 40), file("x-Q6_K-00002-of-00002.gguf", 9) };
    ebb_hub_list l = { .files = files, .n = 6 };
    ebb_pull_variant *o;
    ebb_error err = { 0 };
    size_t n, i;

    (void)state;
    assert_int_equal(ebb_pull_group_variants(&l, &o, &n, NULL), EBB_OK);
    assert_int_equal(n, 4);
    assert_int_equal(o[0].n_bytes, 65);          /* the largest first */
    assert_int_equal(o[0].n_parts, 3);
    assert_true(o[0].is_whole);
    assert_int_equal(ebb_pull_find_variant(o, n, "Q8_0", &i, NULL), EBB_OK);
    assert_int_equal(i, 0);
    assert_int_equal(ebb_pull_find_variant(o, n, "x-Q8_0-00002-of-00003.gguf", &i, NULL), EBB_OK);
    assert_int_equal(i, 0);
    assert_int_equal(ebb_pull_find_variant(o, n, "F16", &i, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "some of its parts"));
    assert_int_equal(ebb_pull_find_variant(o, n, "Q6_K", &i, NULL), EBB_NOTFOUND);
    free(o);
}

static void test_meant(void **state)
{
    ebb_hub_file files[] = { file("a/m-8B-Q4_K_M.gguf", 5), file("b/m-8B-Q4_K_M.gguf", 4), file("m-UD-Q4_K_XL.gguf", 3),
                             file("m-8B-Q5_K_M.gguf", 2) };
    ebb_hub_list l = { .files = files, .n = 4 };
    ebb_pull_variant *o;
    ebb_error err = { 0 };
    size_t n, i;

    (void)state;
    assert_int_equal(ebb_pull_group_variants(&l, &o, &n, NULL), EBB_OK);
    assert_int_equal(ebb_pull_find_variant(o, n, "q4_k_m", &i, &err), EBB_LIMIT);
    assert_int_equal(ebb_pull_find_variant(o, n, "b/m-8b-q4_k_m.gguf", &i, NULL), EBB_OK);
    assert_int_equal(i, 1);
    assert_int_equal(ebb_pull_find_variant(o, n, "UD-Q4_K_XL", &i, NULL), EBB_OK);
    assert_int_equal(i, 2);
    assert_int_equal(ebb_pull_find_variant(o, n, "m-8B-Q5_K_M", &i, NULL), EBB_OK);
    assert_int_equal(i, 3);
    assert_int_equal(ebb_pull_find_variant(o, n, "Q5_KM", &i, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "it has Q5_K_M"));        /* what is spelled most like it comes first */
    assert_int_equal(ebb_pull_find_variant(o, n, "", &i, NULL), EBB_NOTFOUND);
    assert_string_equal(ebb_pull_variant_spec(o, n, 3), "Q5_K_M");
    free(o);
}

/* What is marked in a repository of an 8B on machines of these sizes. */
static const char *is_recommended(double memory, bool with_large, double *tok_s)
{
    ebb_hub_file files[] = { file("M-8B-Q2_K.gguf", 32 * GB / 10), file("M-8B-Q4_K_M.gguf", 49 * GB / 10),
                             file("M-8B-Q8_0.gguf", 85 * GB / 10), file("M-8B-F16.gguf", 16 * GB) };
    ebb_hub_list l = { .files = files, .n = with_large ? 4 : 3 };
    ebb_machine m = { .available_bytes = (uint64_t)(memory * 1e9), .n_cpus = 2, .memory_bytes_s = 22e9,
                      .disk_bytes_s = 2e9 };
    static char type[24];
    ebb_pull_variant *o;
    size_t n, n_marked = 0;

    assert_int_equal(ebb_pull_group_variants(&l, &o, &n, NULL), EBB_OK);
    ebb_pull_rate_variants(o, n, &m);
    for (size_t i = 0; i < n; i++)
        if (o[i].is_recommended) {
            snprintf(type, sizeof type, "%s", o[i].type);
            *tok_s = o[i].rating.plan.predicted_decode_tok_s;
            n_marked++;
        }
    assert_int_equal(n_marked, 1);
    free(o);
    return type;
}

static void test_suits(void **state)
{
    double tok_s;

    (void)state;
    assert_string_equal(is_recommended(6.5, true, &tok_s), "Q4_K_M");
    assert_true(tok_s > 4 && tok_s < 5);         /* every weight once, 22 GB/s */
    assert_string_equal(is_recommended(4.2, true, &tok_s), "Q2_K");
    assert_string_not_equal(is_recommended(64, true, &tok_s), "F16"); /* twice the bytes for nothing one would notice */
    assert_string_equal(is_recommended(1, true, &tok_s), "Q2_K");
    assert_true(tok_s < 1);                      /* most of it comes from the disk, at 2 GB/s */
}

static void test_experts(void **state)
{
    ebb_hub_file files[] = { file("Q-30B-A3B-Q4_K_M.gguf", 18 * GB), file("Q-32B-Q4_K_M.gguf", 18 * GB) };
    ebb_hub_list l = { .files = files, .n = 2 };
    ebb_machine m = { .available_bytes = 32 * GB, .n_cpus = 2, .memory_bytes_s = 18e9 };
    ebb_pull_variant *o;
    size_t n;

    (void)state;
    assert_int_equal(ebb_pull_group_variants(&l, &o, &n, NULL), EBB_OK);
    ebb_pull_rate_variants(o, n, &m);
    assert_true(o[0].rating.plan.predicted_decode_tok_s > 9);    /* three of thirty billion at a time */
    assert_true(o[1].rating.plan.predicted_decode_tok_s < 1.1);
    assert_true(o[0].is_recommended);
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_meant),
        cmocka_unit_test(test_suits),
        cmocka_unit_test(test_experts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
