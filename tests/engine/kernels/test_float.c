/* The kernels over floats: every instruction set gives the bits of the specification. */
#include "ebb_test.h"

#include "kernel_data.h"

enum { N_MAX = 700 };

static const ebb_kernels *scalar, *k;
static float x[N_MAX], w[N_MAX], b[N_MAX], want[N_MAX], got[N_MAX];

static void fresh_copy(float size)
{
    for (int i = 0; i < N_MAX; i++) {
        x[i] = test_uniform(-size, size);
        w[i] = test_uniform(-2, 2);
        b[i] = test_uniform(-1, 1);
    }
    memcpy(want, x, sizeof x);
    memcpy(got, x, sizeof x);
}

static void same_bits(const char *name, size_t n)
{
    if (memcmp(want, got, sizeof want) != 0)
        fail_msg("%s: %s of %zu", k->name, name, n);
}

static void check_float(size_t n, float size)
{
#define CALL(fn, ...) do { float *y = want; scalar->fn(__VA_ARGS__); y = got; k->fn(__VA_ARGS__); same_bits(#fn, n); \
                           } while (0)
    fresh_copy(size);
    CALL(rmsnorm, y, y, w, n, 1e-5f);
    CALL(rmsnorm, y, x, NULL, n, 1e-6f);
    CALL(layernorm, y, x, w, b, n, 1e-5f);
    CALL(layernorm, y, x, NULL, NULL, n, 1e-5f);
    CALL(add, y, x, n);
    CALL(scale, y, 0.7f, n);
    CALL(axpy, y, -0.3f, w, n);
    CALL(silu_mul, y, x, w, n);
    CALL(gelu_mul, y, x, w, n);
    fresh_copy(size);
    CALL(softmax, y, n);
    fresh_copy(size);
    CALL(rope_adjacent, y, w, n / 2 * 2);
    CALL(rope_halves, y, w, n / 2 * 2);
#undef CALL
    assert_true(ebb_bits(scalar->dot(x, w, n)) == ebb_bits(k->dot(x, w, n)));
}

static void check_stores(float size)
{
    uint8_t a[N_MAX * 4], c[N_MAX * 4];

    fresh_copy(size);
    for (int t = 0; t < EBB_KV_AUTO; t++)
        for (size_t n = t == EBB_KV_F16 || t == EBB_KV_F32 ? 1 : 32; n <= 320;
             n += t == EBB_KV_F16 || t == EBB_KV_F32 ? 7 : 32) {
            memset(a, 0, sizeof a);
            memset(c, 0, sizeof c);
            scalar->kv_store[t](a, x, n);
            k->kv_store[t](c, x, n);
            assert_memory_equal(a, c, sizeof a);
        }
    for (int t = 0; t < EBB_ACT_COUNT; t++) {
        memset(a, 0, sizeof a);
        memset(c, 0, sizeof c);
        scalar->quantize[t](x, 512, a);
        k->quantize[t](x, 512, c);
        assert_memory_equal(a, c, sizeof a);
    }
}

static void test_bits_are_those_of_the_specification(void **state)
{
    static const float sizes[] = { 1, 30, 200, 1e-3f, 1e-41f };

    (void)state;
    assert_int_equal(ebb_kernels_get(EBB_ISA_SCALAR, &scalar, NULL), EBB_OK);
    for (ebb_isa cpu = EBB_ISA_SCALAR; cpu <= EBB_ISA_NEON; cpu++) {
        if (ebb_kernels_get(cpu, &k, NULL) != EBB_OK)
            continue;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t n = 1; n <= 70; n++)
                check_float(n, sizes[i]);
            check_float(N_MAX, sizes[i]);
            check_stores(sizes[i]);
        }
        print_message("%s: same bits\n", k->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits_are_those_of_the_specification) };
    return cmocka_run_group_tests_name("float kernels", tests, NULL, NULL);
}
