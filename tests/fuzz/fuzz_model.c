/* A model file: header, vocabulary, plan, a pass over three tokens.  The bytes are those of the file, or
 * what is changed in a small model of some architecture: 2 of where, 1 of what, again and again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "support/tiny_model.h"

/* None: the kernel takes 8 ms to close one, more than all the rest of a run. */
int __wrap_ebb_psi_open(void);
int __wrap_ebb_psi_open(void)
{
    return -1;
}

static void compute_tokens(const ebb_model *m, ebb_error *err)
{
    static const ebb_token ids[] = { 1, 2, 3 };
    ebb_engine_opts o = { .n_ctx = 16, .n_threads = 1, .cpu = EBB_ISA_SCALAR, .ram_bytes = (uint64_t)96 << 20,
                          .no_kv_cache = true };
    ebb_engine *e = NULL;
    ebb_session *s = NULL;
    ebb_status st = ebb_engine_open(m, &o, NULL, NULL, &e, err);

    if (st == EBB_OK)
        st = ebb_session_new(e, &s, err);
    if (st == EBB_OK)
        st = ebb_session_sync(s, ids, 3, NULL, err);
    FUZZ_MUST(st == EBB_OK || err->msg[0]);
    ebb_session_free(s);
    ebb_engine_close(e);
}

static void read_all_metadata(const ebb_model *m)
{
    static const char text[] = "Once <s> caf\xc3\xa9\xff 12";
    ebb_token ids[64];
    ebb_tensor_info t;
    char buf[40];
    size_t n = 0;

    for (size_t i = 0; i < ebb_model_n_meta(m); i++)
        FUZZ_MUST(ebb_model_meta(m, i, buf, sizeof buf));
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++)
        ebb_model_tensor(m, i, &t);
    if (ebb_model_tokenize(m, text, sizeof text - 1, EBB_TOK_BOS | EBB_TOK_SPECIAL, ids, 64, &n, NULL) == EBB_OK)
        for (size_t i = 0; i < n && i < 64; i++)
            ebb_model_piece(m, ids[i], true, buf, sizeof buf);
}

static void open_and_use(const char *data, size_t n)
{
    ebb_error err = { 0 };
    ebb_model *m = NULL;

    if (ebb_model_open_memory(data, n, "fuzz", &m, &err) != EBB_OK) {
        FUZZ_MUST(!m && err.msg[0]);
        return;
    }
    read_all_metadata(m);
    compute_tokens(m, &err);
    ebb_model_close(m);
}

/* The small models, made once. */
static const char *base(size_t i, size_t *n)
{
    static struct { char *bytes; size_t n; } made[64];
    ebb_tiny_opts o = { .arch = ebb_tiny_archs[i], .n_layers = 1, .n_embd = 32, .n_head = 2, .n_head_kv = 1,
                        .head_dim = 16, .n_ff = 32, .n_ctx = 32 };

    if (!made[i].bytes)
        made[i].bytes = ebb_tiny_bytes(&o, &made[i].n);
    FUZZ_MUST(made[i].bytes);
    *n = made[i].n;
    return made[i].bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t n_archs = 0, n_base;
    const char *bytes;
    char *changed;

    while (ebb_tiny_archs[n_archs])
        n_archs++;
    if (n == 0)
        return 0;
    if (data[0] % (n_archs + 1) == n_archs) {
        open_and_use((const char *)data + 1, n - 1);
        return 0;
    }
    bytes = base(data[0] % (n_archs + 1), &n_base);
    changed = malloc(n_base);
    FUZZ_MUST(changed);
    memcpy(changed, bytes, n_base);
    for (size_t i = 1; i + 3 <= n; i += 3)
        changed[(data[i] | (size_t)data[i + 1] << 8) % n_base] = (char)data[i + 2];
    open_and_use(changed, n_base);
    free(changed);
    return 0;
}
