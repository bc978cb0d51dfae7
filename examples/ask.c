/* ask: the engine without ebb's chat, on one page: text in, its likeliest continuation out.
 *
 *     ask MODEL.gguf "Once upon a time" [TOKENS]
 *
 * After `make install`:  cc ask.c $(pkg-config --cflags --libs ebb) -o ask */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/session.h>

/* The ids of `text`; free() them.  NULL: *err says why. */
static ebb_token *read_prompt(const ebb_model *m, const char *text, size_t *n, ebb_error *err)
{
    ebb_token *ids = NULL;

    if (ebb_model_tokenize(m, text, strlen(text), EBB_TOK_BOS, NULL, 0, n, err) != EBB_OK ||
        !(ids = malloc((*n + 1) * sizeof *ids)) ||
        ebb_model_tokenize(m, text, strlen(text), EBB_TOK_BOS, ids, *n, n, err) != EBB_OK) {
        free(ids);
        return NULL;
    }
    return ids;
}

/* What the model says next, piece by piece: never half a character. */
static ebb_status go_on(ebb_session *s, const ebb_model *m, ebb_sampler *sampler, ebb_detok *text, long n_tokens,
                        ebb_error *err)
{
    ebb_status st = EBB_OK;
    const char *piece;
    size_t n;

    for (long i = 0; i < n_tokens && st == EBB_OK; i++) {
        ebb_token id = ebb_session_sample(s, sampler);

        if (ebb_model_is_eog(m, id))
            break;
        piece = ebb_detok_push(text, id, &n);
        fwrite(piece, 1, n, stdout);
        fflush(stdout);
        st = ebb_session_append(s, id, err);
    }
    piece = ebb_detok_flush(text, &n);
    fwrite(piece, 1, n, stdout);
    putchar('\n');
    return st == EBB_CONTEXT ? EBB_OK : st;      /* a full context is an end like any other */
}

int main(int argc, char **argv)
{
    ebb_sampler_params greedy = ebb_sampler_params_default();
    ebb_token *ids = NULL;
    ebb_model *m = NULL;
    ebb_engine *e = NULL;
    ebb_session *s = NULL;
    ebb_sampler *sampler = NULL;
    ebb_detok *text = NULL;
    ebb_error err = { .msg = "usage: ask MODEL.gguf TEXT [TOKENS]" };
    ebb_status st = argc < 3 ? EBB_USAGE : ebb_model_open(argv[1], &m, &err);
    size_t n = 0;

    greedy.temp = 0;
    if (st == EBB_OK)
        st = ebb_engine_open(m, &(ebb_engine_opts){ .no_kv_cache = true }, NULL, NULL, &e, &err);
    if (st == EBB_OK)
        st = ebb_session_new(e, &s, &err);
    if (st == EBB_OK && !(ids = read_prompt(m, argv[2], &n, &err)))
        st = EBB_NOMEM;
    if (st == EBB_OK)
        st = ebb_session_sync(s, ids, n, NULL, &err);
    if (st == EBB_OK && (!(sampler = ebb_sampler_new(&greedy, ebb_model_get_info(m)->n_vocab)) ||
                         !(text = ebb_detok_new(m, false))))
        st = EBB_NOMEM;
    if (st == EBB_OK && n > 0)
        st = go_on(s, m, sampler, text, argc > 3 ? strtol(argv[3], NULL, 10) : 32, &err);
    if (st != EBB_OK)
        fprintf(stderr, "ask: %s\n", err.msg[0] ? err.msg : ebb_status_text(st));
    ebb_detok_free(text);
    ebb_sampler_free(sampler);
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
    free(ids);
    return st != EBB_OK;
}
