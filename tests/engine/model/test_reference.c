/* Architectures without known-good logits: small models of them give what reference.py, which is written by itself from
 * their definitions, computes in float64; of several seeds, 90 tokens, behind windows and with K and V that layers
 * share. */
#include "ebb_test.h"

#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "support/tiny_engine.h"

#define N_IDS 90u
#define N_CTX 128u
#define N_ALL ((size_t)N_IDS * EBB_TINY_VOCAB)

/* Logits of all positions as reference.py has them, for free(); NULL: no Python with numpy. */
static float *read_reference(const char *path, const ebb_token *ids)
{
    char cmd[1200];
    size_t at = (size_t)snprintf(cmd, sizeof cmd, "/usr/bin/python3 tests/engine/model/reference.py %s %u", path,
                                 N_CTX);
    float *out = calloc(N_ALL, sizeof *out);
    size_t n;
    FILE *f;

    for (uint32_t i = 0; i < N_IDS; i++)
        at += (size_t)snprintf(cmd + at, sizeof cmd - at, " %d", (int)ids[i]);
    f = popen(cmd, "r");
    assert_non_null(f);
    n = fread(out, sizeof *out, N_ALL, f);
    if (pclose(f) == 0) {
        assert_int_equal(n, N_ALL);
        return out;
    }
    free(out);
    return NULL;
}

static double nmse(const float *got, const float *want)
{
    double diff = 0, power = 0;

    for (size_t i = 0; i < N_ALL; i++) {
        diff += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        power += (double)want[i] * want[i];
    }
    return diff / power;
}

/* limit: rounding to F32, which layers enlarge. */
static void check_reference(const char *arch, uint64_t seed, double limit)
{
    char path[] = "build/test_reference.XXXXXX.gguf";
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 96, .head_dim = 32, .seed = seed };
    ebb_engine_opts o = { .n_ctx = N_CTX, .has_kv = true, .kv_k = EBB_KV_F32, .kv_v = EBB_KV_F32, .n_threads = 2 };
    float *got = calloc(N_ALL, sizeof *got), *want;
    ebb_token ids[N_IDS];
    tiny_engine f;

    fill_ids(ids, N_IDS, 1);
    close(mkstemps(path, 5));                    /* a name of its own */
    assert_true(ebb_tiny_write(&tiny, path));
    want = read_reference(path, ids);
    unlink(path);
    if (!want) {
        free(got);
        if (system("/usr/bin/python3 -c 'import numpy'") == 0)
            fail_msg("reference.py failed");
        print_message("no /usr/bin/python3 with numpy\n");
        skip();
    }
    open_tiny_engine(&f, &tiny, &o);
    assert_int_equal(ebb_session_eval(f.s, ids, N_IDS, 0, keep_logits, got, NULL), EBB_OK);
    close_tiny_engine(&f);
    if (nmse(got, want) > limit)
        fail_msg("%s, seed %d: NMSE %.2e", arch, (int)seed, nmse(got, want));
    print_message("%s, seed %d: NMSE %.1e\n", arch, (int)seed, nmse(got, want));
    free(got);
    free(want);
}

static void test_gemma3n(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        check_reference("gemma3n", seed, 1e-7);
}

static void test_phimoe(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        check_reference("phimoe", seed, 1e-10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gemma3n), cmocka_unit_test(test_phimoe) };

    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
