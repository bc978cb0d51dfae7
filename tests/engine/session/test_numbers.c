/* Weights that are NaN or infinity: a pass fails with the model and the layer, instead of an answer of nothing. */
#include "ebb_test.h"

#include <math.h>

#include "gguf/gguf.h"
#include "support/tiny_engine.h"

enum { N_IDS = 40 };

/* A float of the tensor becomes `value`. */
static void spoil(char *bytes, size_t n, const char *name, size_t at, float value)
{
    ebb_gguf *g;
    const ebb_gguf_tensor *t;
    ebb_error err = { 0 };

    if (ebb_gguf_open_memory(bytes, n, "tiny", &g, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    t = ebb_gguf_find_tensor(g, name);
    assert_non_null(t);
    assert_true(at < t->n_elems);
    memcpy(bytes + t->offset + at * sizeof value, &value, sizeof value);
    ebb_gguf_close(g);
}

static void open_spoiled(tiny_engine *f, const ebb_tiny_opts *tiny, const char *name, size_t at, float value)
{
    ebb_engine_opts o = { .n_threads = 2 };
    ebb_error err = { 0 };
    size_t n;

    f->bytes = ebb_tiny_bytes(tiny, &n);
    assert_non_null(f->bytes);
    spoil(f->bytes, n, name, at, value);
    assert_int_equal(ebb_model_open_memory(f->bytes, n, "tiny", &f->model, &err), EBB_OK);
    if (ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(f->engine, &f->s, &err), EBB_OK);
}

static void check_told(const ebb_tiny_opts *tiny, const char *name, size_t at, float value, const char *where)
{
    tiny_engine f;
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };
    size_t n;

    fill_ids(ids, N_IDS, 1);
    open_spoiled(&f, tiny, name, at, value);
    assert_int_equal(ebb_session_sync(f.s, ids, N_IDS, NULL, &err), EBB_FORMAT);
    if (!strstr(err.msg, where) || !strstr(err.msg, "tiny: ") || !strstr(err.msg, "NaN"))
        fail_msg("%s: %s", name, err.msg);
    (void)ebb_session_ids(f.s, &n);
    assert_int_equal(n, 0);                      /* nothing of it is kept */
    assert_null(ebb_session_logits(f.s));
    close_tiny_engine(&f);
}

static void test_told(void **state)
{
    static const char *const archs[] = { "llama", "gemma2", "qwen35", "olmo2", "phi2", "mamba2" };
    ebb_tiny_opts tiny = { 0 };

    (void)state;
    check_told(&tiny, "blk.1.ffn_down.weight", 7, NAN, "its layer 1 ");
    check_told(&tiny, "blk.0.attn_v.weight", 300, INFINITY, "its layer 0 ");
    check_told(&tiny, "blk.0.attn_norm.weight", 3, -INFINITY, "its layer 0 ");
    check_told(&tiny, "output_norm.weight", 3, NAN, "its output ");
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        tiny.arch = archs[i];
        check_told(&tiny, "output_norm.weight", 5, NAN, "its output ");
    }
}

/* A row of the output that is none is a token that is never chosen: the rest is an answer like any. */
static void test_one_row(void **state)
{
    tiny_engine f;
    ebb_token ids[N_IDS];
    ebb_error err = { 0 };

    (void)state;
    fill_ids(ids, N_IDS, 1);
    open_spoiled(&f, &(ebb_tiny_opts){ 0 }, "output.weight", 9, NAN);
    assert_int_equal(ebb_session_sync(f.s, ids, N_IDS, NULL, &err), EBB_OK);
    assert_true(isnan(ebb_session_logits(f.s)[0]));
    assert_true(isfinite(ebb_session_logits(f.s)[1]));
    close_tiny_engine(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_told), cmocka_unit_test(test_one_row) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
