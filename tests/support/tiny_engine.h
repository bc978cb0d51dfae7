/* support/tiny_engine.h - an engine on a tiny model, with one session. */
#ifndef EBB_TINY_ENGINE_H
#define EBB_TINY_ENGINE_H
#include "ebb/session.h"
#include "support/tiny_model.h"

typedef struct tiny_engine {
    char        *bytes;
    ebb_model   *model;
    ebb_engine  *engine;
    ebb_session *s;
} tiny_engine;

/* The test fails if one of them cannot be opened. */
void open_tiny_engine(tiny_engine *f, const ebb_tiny_opts *tiny, const ebb_engine_opts *o);
/* The same of a model's file. */
void open_tiny_file(tiny_engine *f, const char *path, const ebb_engine_opts *o);
void close_tiny_engine(tiny_engine *f);

/* n ids of the tiny vocabulary, others for each seed. */
void fill_ids(ebb_token *ids, uint32_t n, uint32_t seed);
/* For ebb_session_eval: `arg` is float [positions][EBB_TINY_VOCAB]. */
void keep_logits(void *arg, size_t pos, const float *logits, size_t n_vocab);

#endif
