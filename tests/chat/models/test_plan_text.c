/* What a plan says of a model's context. */
#include "ebb_test.h"

#include "models/plan_text.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

static uint32_t trained_ctx(const char *arch, uint32_t n_ctx)
{
    const ebb_tiny_opts tiny = { .seed = 3, .arch = arch, .n_ctx = n_ctx };
    char path[96];
    ebb_model *m;
    ebb_error err;
    uint32_t n;

    snprintf(path, sizeof path, "%s/%s.gguf", ebb_own_dir, arch);
    assert_true(ebb_tiny_write(&tiny, path));
    if (ebb_model_open(path, &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    n = ebb_plan_trained_ctx(m);
    ebb_model_close(m);
    return n;
}

/* YaRN by 8, of 64 tokens: some files give the length before that, others the one behind it. */
static void test_stretched_positions(void **state)
{
    (void)state;
    assert_int_equal(trained_ctx("llama", 64), 64);
    assert_int_equal(trained_ctx("mistral3", 64), 512);
    assert_int_equal(trained_ctx("mistral3", 512), 512);
    assert_int_equal(trained_ctx("mistral3", 1024), 1024);
    assert_int_equal(trained_ctx("phi3", 2048), 2048);   /* LongRoPE: the file's is the long one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stretched_positions, ebb_own_dir_make, ebb_own_dir_drop),
    };

    return cmocka_run_group_tests_name("plan text", tests, NULL, NULL);
}
