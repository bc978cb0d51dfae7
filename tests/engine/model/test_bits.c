/* The logits of a position have the same bits for every number of columns in a pass, every cut into
 * chunks, every number of threads and every instruction set, with weights of every type. */
#include "ebb_test.h"

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "ebb/experimental/type.h"
#include "kernels/kernels.h"
#include "support/tiny_model.h"

enum { N_FEW = 70, N_MANY = 520 };
/* Threads meet in the same places whatever the type, and under their sanitizer all types take half an hour. */
#ifdef __SANITIZE_THREAD__
enum { TYPE_STEP = 5 };
#else
enum { TYPE_STEP = 1 };
#endif

static void keep_logits(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    memcpy((float *)arg + pos * n_vocab, logits, n_vocab * sizeof *logits);
}

/* Logits of the first n positions, at most `chunk` in a pass; for free(). */
static float *eval_bits(ebb_engine *e, uint32_t n, uint32_t chunk)
{
    float *out = calloc((size_t)n * EBB_TINY_VOCAB, sizeof *out);
    ebb_token ids[N_MANY];
    ebb_session *s;

    for (uint32_t i = 0; i < n; i++)
        ids[i] = (ebb_token)((i * 2654435761u + (i >> 3) * 97) % EBB_TINY_VOCAB);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    assert_int_equal(ebb_session_eval(s, ids, n, chunk, keep_logits, out, NULL), EBB_OK);
    ebb_session_free(s);
    return out;
}

static void compare_bits(ebb_engine *e, const float *want, const char *type, uint32_t n, uint32_t chunk)
{
    float *got = eval_bits(e, n, chunk);
    ebb_stats stats;

    ebb_engine_stats(e, &stats);
    if (memcmp(want, got, (size_t)n * EBB_TINY_VOCAB * sizeof *got) != 0)
        fail_msg("%s: other bits with %s, %u threads and %u columns", type, stats.cpu, stats.n_threads, chunk);
    free(got);
}

/* NULL: this machine lacks the instruction set. */
static ebb_engine *open_engine(const ebb_model *m, uint32_t threads, ebb_isa isa)
{
    ebb_engine_opts o = { .n_ctx = N_MANY, .n_threads = threads, .n_batch = 512, .no_kv_cache = true, .cpu = isa };
    ebb_error err = { 0 };
    ebb_engine *e = NULL;
    ebb_status st = ebb_engine_open(m, &o, NULL, NULL, &e, &err);

    if (st != EBB_OK && (st != EBB_UNSUPPORTED || isa == EBB_ISA_AUTO))
        fail_msg("%s", err.msg);
    return e;
}

static void check_chunks(ebb_engine *e, const float *want, const char *type)
{
    static const uint32_t chunks[] = { 1, 2, 3, 5, 7, 8, 17, 64 };

    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        compare_bits(e, want, type, N_FEW, chunks[i]);
}

static void check_bits_of_type(ebb_type type)
{
    const char *name = ebb_type_get(type)->name;
    ebb_tiny_opts tiny = { .arch = "llama", .type = type, .n_layers = 1, .n_ff = 512 };
    char *bytes;
    ebb_model *m = ebb_tiny_open(&tiny, &bytes);
    float *want = NULL;
    unsigned n_isas = 0;

    for (uint32_t threads = 1; threads <= 4; threads++) {
        ebb_engine *e = open_engine(m, threads, EBB_ISA_AUTO);

        want = want ? want : eval_bits(e, N_MANY, 512);
        check_chunks(e, want, name);
        if (threads > 1)
            compare_bits(e, want, name, N_MANY, 512);
        ebb_engine_close(e);
    }
    for (ebb_isa isa = EBB_ISA_SCALAR; isa <= EBB_ISA_NEON; isa++) {
        ebb_engine *e = open_engine(m, 2, isa);

        if (!e)
            continue;
        check_chunks(e, want, name);
        compare_bits(e, want, name, N_MANY, 512);
        ebb_engine_close(e);
        n_isas++;
    }
    assert_true(n_isas >= 1);
    free(want);
    ebb_model_close(m);
    free(bytes);
}

static void test_every_type(void **state)
{
    int n = 0, step = TYPE_STEP * (int)ebb_test_one_in(12);

    (void)state;
    for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++)
        if (ebb_kernel_has_type((ebb_type)t) && n++ % step == 0)
            check_bits_of_type((ebb_type)t);
    print_message("%d types\n", (n + step - 1) / step);
    assert_true(n >= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_type) };

    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
