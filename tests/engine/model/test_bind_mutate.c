/* Damaged numbers in the header of a model of each architecture: it is refused
 * with one line, or it computes; nothing else happens (sanitizers watch). */
#include "ebb_test.h"

#include <math.h>

#include "ebb/session.h"
#include "support/tiny_model.h"

#define N_MUTANTS 60

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The numbers of the architecture stand before the vocabulary; the tensors' shapes behind it. */
static size_t pick_place(const char *bytes, size_t n, uint64_t *random)
{
    const char *vocab = memmem(bytes, n, "tokenizer.ggml.model", 20),
               *tensors = memmem(bytes, n, "token_embd.weight", 17);
    size_t n_keys = (size_t)(vocab - bytes), n_infos = 600;

    if (next_random(random) % 4 > 0)
        return 24 + next_random(random) % (n_keys - 24);
    return (size_t)(tensors - bytes) + next_random(random) % n_infos;
}

/* Whether it could be opened. */
static bool try_mutant(const char *bytes, size_t n)
{
    static const ebb_token ids[] = { 1, 2, 3 };
    ebb_engine_opts o = { .n_ctx = 16, .n_threads = 1, .ram_bytes = (uint64_t)96 << 20 };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    ebb_model *m = NULL;
    ebb_session *s = NULL;
    ebb_status st = ebb_model_open_memory(bytes, n, "mutant", &m, &err);
    bool is_open = false;

    if (st == EBB_OK)
        st = ebb_engine_open(m, &o, NULL, NULL, &e, &err);
    if (st == EBB_OK)
        st = ebb_session_new(e, &s, &err);
    is_open = st == EBB_OK;
    if (is_open)
        st = ebb_session_sync(s, ids, 3, NULL, &err);
    if (st != EBB_OK)
        assert_int_not_equal(err.msg[0], 0);
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
    return is_open;
}

static ebb_tiny_opts tiny_of(const char *arch)
{
    return (ebb_tiny_opts){ .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
}

static void test_mutants(void **state)
{
    static const uint8_t values[] = { 0, 1, 2, 3, 5, 16, 127, 128, 255 };
    uint32_t n_open = 0, n_tried = 0;

    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);
        uint64_t random = i;
        size_t n;
        char *good = ebb_tiny_bytes(&tiny, &n), *bad = malloc(n);

        assert_true(good && bad && try_mutant(good, n));
        for (int k = 0; k < N_MUTANTS; k++, n_tried++) {
            memcpy(bad, good, n);
            bad[pick_place(bad, n, &random)] = (char)values[next_random(&random) % sizeof values];
            n_open += try_mutant(bad, n);
        }
        free(good);
        free(bad);
    }
    print_message("%u of %u mutants could be opened\n", n_open, n_tried);
    assert_true(n_open > 0 && n_open < n_tried);
}

/* What stands there in the file becomes value i of those that its type is tried with; false: there are no more. */
static bool set_value(const ebb_tiny_key *k, size_t i)
{
    static const uint32_t whole[] = { 0, 1000, UINT32_MAX };
    static const float real[] = { NAN, 2 };

    switch (k->type) {
    case 4:
    case 5:
        if (i < sizeof whole / sizeof *whole)
            memcpy(k->value, &whole[i], sizeof *whole);
        return i < sizeof whole / sizeof *whole;
    case 6:
        if (i < sizeof real / sizeof *real)
            memcpy(k->value, &real[i], sizeof *real);
        return i < sizeof real / sizeof *real;
    case 7:
        *k->value = (char)i;
        return i < 2;
    default:
        return false;
    }
}

/* One number at a time; so whatever a value makes the rest of binding do without is met. */
static void test_wrong_numbers(void **state)
{
    uint32_t n_open = 0, n_tried = 0;

    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);
        size_t n;
        char *bytes = ebb_tiny_bytes(&tiny, &n);

        for (ebb_tiny_key k = { 0 }; ebb_tiny_next_key(bytes, n, tiny.arch, &k);) {
            char before[4];

            memcpy(before, k.value, sizeof before);
            for (size_t v = 0; set_value(&k, v); v++, n_tried++)
                n_open += try_mutant(bytes, n);
            memcpy(k.value, before, sizeof before);
        }
        free(bytes);
    }
    print_message("%u of %u could be opened\n", n_open, n_tried);
    assert_true(n_tried > 2000 && n_open > 0 && n_open < n_tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_mutants), cmocka_unit_test(test_wrong_numbers) };

    return cmocka_run_group_tests_name("bind mutate", tests, NULL, NULL);
}
