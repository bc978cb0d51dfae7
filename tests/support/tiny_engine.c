/* An engine on a tiny model (tiny_engine.h). */
#include "ebb_test.h"

#include "support/tiny_engine.h"

void open_tiny_engine(tiny_engine *f, const ebb_tiny_opts *tiny, const ebb_engine_opts *o)
{
    ebb_error err = { 0 };

    f->model = ebb_tiny_open(tiny, &f->bytes);
    if (ebb_engine_open(f->model, o, NULL, NULL, &f->engine, &err) != EBB_OK)
        fail_msg("%s: %s", tiny->arch ? tiny->arch : "llama", err.msg);
    assert_int_equal(ebb_session_new(f->engine, &f->s, &err), EBB_OK);
}

void open_tiny_file(tiny_engine *f, const char *path, const ebb_engine_opts *o)
{
    ebb_error err = { 0 };

    f->bytes = NULL;
    if (ebb_model_open(path, &f->model, &err) != EBB_OK ||
        ebb_engine_open(f->model, o, NULL, NULL, &f->engine, &err) != EBB_OK ||
        ebb_session_new(f->engine, &f->s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

void close_tiny_engine(tiny_engine *f)
{
    ebb_session_free(f->s);
    ebb_engine_close(f->engine);
    ebb_model_close(f->model);
    free(f->bytes);
}

void fill_ids(ebb_token *ids, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (ebb_token)((i * 2654435761u + seed * 40503u + (i >> 3) * 97) % EBB_TINY_VOCAB);
}

void keep_logits(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    memcpy((float *)arg + pos * n_vocab, logits, n_vocab * sizeof *logits);
}
