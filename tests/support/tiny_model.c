/* A GGUF file by hand (tiny_model.h). */
#include "support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ebb_test.h"
#include "support/tiny_writer.h"

static void pad(ebb_buf *b)
{
    while (b->len % ALIGN)
        ebb_buf_addc(b, 0);
}

static void write_tensors(tiny_writer *w)
{
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        const tiny_tensor *t = &w->tensors[i];

        tiny_add_string(&w->infos, t->name, strlen(t->name));
        tiny_add_u32(&w->infos, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++)
            tiny_add_u64(&w->infos, t->dims[d]);
        tiny_add_u32(&w->infos, t->type);
        tiny_add_u64(&w->infos, w->data.len);
        tiny_add_weights(w, t);
        pad(&w->data);
    }
}

static uint32_t or_default(uint32_t v, uint32_t otherwise)
{
    return v ? v : otherwise;
}

static ebb_tiny_opts with_defaults(const ebb_tiny_opts *given)
{
    ebb_tiny_opts o = *given;

    o.arch = o.arch ? o.arch : "llama";
    o.n_layers = or_default(o.n_layers, tiny_has(&o, GEMMA3N)                ? 10
                                        : tiny_has(&o, HYBRID | GEMMA4 | FOUR) ? 4
                                        : tiny_is_recurrent(&o)                ? 3
                                                                          : 2);
    o.n_expert = or_default(o.n_expert, tiny_has(&o, EXPERTS) ? 6 : 0);
    o.n_embd = or_default(o.n_embd, 256);
    o.n_head = or_default(o.n_head, 4);
    o.n_head_kv = or_default(o.n_head_kv, 2);
    o.head_dim = or_default(o.head_dim, 64);
    o.n_ff = or_default(o.n_ff, 256);
    o.n_ctx = or_default(o.n_ctx, 1024);
    return o;
}

char *ebb_tiny_bytes(const ebb_tiny_opts *given, size_t *n_bytes)
{
    ebb_tiny_opts o = with_defaults(given);
    tiny_writer *w = calloc(1, sizeof *w);
    ebb_buf file = { 0 };

    assert_non_null(w);
    w->random = o.seed;
    w->added = o.has_draft_head ? 0.2f : 1;
    tiny_write_keys(w, &o);
    tiny_add_tensor(w, "token_embd.weight", o.type, o.n_embd, EBB_TINY_VOCAB, 0, 1);
    tiny_end_tensors(w, &o);
    for (uint32_t i = 0; i < o.n_layers; i++)
        tiny_layer_tensors(w, &o, i);
    if (o.has_draft_head)
        tiny_draft_head_tensors(w, &o);
    write_tensors(w);
    ebb_buf_add(&file, "GGUF", 4);
    tiny_add_u32(&file, 3);
    tiny_add_u64(&file, w->n_tensors);
    tiny_add_u64(&file, w->n_keys);
    ebb_buf_add(&file, w->keys.data, w->keys.len);
    ebb_buf_add(&file, w->infos.data, w->infos.len);
    pad(&file);
    ebb_buf_add(&file, w->data.data, w->data.len);
    ebb_buf_fini(&w->keys);
    ebb_buf_fini(&w->infos);
    ebb_buf_fini(&w->data);
    free(w);
    *n_bytes = file.len;
    return ebb_buf_take(&file);
}

ebb_model *ebb_tiny_open(const ebb_tiny_opts *o, char **bytes)
{
    ebb_error err = { 0 };
    ebb_model *m = NULL;
    size_t n;

    *bytes = ebb_tiny_bytes(o, &n);
    assert_non_null(*bytes);
    if (ebb_model_open_memory(*bytes, n, "tiny", &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

bool ebb_tiny_write(const ebb_tiny_opts *o, const char *path)
{
    size_t n;
    char *bytes = ebb_tiny_bytes(o, &n);
    FILE *f = bytes ? fopen(path, "wb") : NULL;
    bool ok = f && fwrite(bytes, 1, n, f) == n;

    ok = f && fclose(f) == 0 && ok;
    free(bytes);
    return ok;
}
