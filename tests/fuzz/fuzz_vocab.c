/* Vocabularies that nobody would train: tokens, scores, types, merges and ids as the bytes say, for each kind of
 * tokenizer.  Lines are tokens until an empty one, then merges until an empty one; the rest is the text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer.h"

enum { MAX_LINES = 400, MAX_IDS = 20000 };

typedef struct lines {
    ebb_vocab_str of[MAX_LINES];
    size_t        n;
} lines;

/* Lines up to an empty one; returns what is behind it. */
static size_t read_lines(const char *s, size_t n, lines *out)
{
    size_t at = 0;

    for (out->n = 0; at < n && out->n < MAX_LINES;) {
        const char *nl = memchr(s + at, '\n', n - at);
        size_t len = nl ? (size_t)(nl - s) - at : n - at;

        at += len + (nl != NULL);
        if (len == 0)
            break;
        out->of[out->n++] = (ebb_vocab_str){ s + at - len - (nl != NULL), len };
    }
    return at;
}

/* The same text whether its ids become text in one step or byte by byte, and no more memory than said. */
static void use(const ebb_tokenizer *t, const char *text, size_t n, unsigned flags)
{
    static ebb_token ids[MAX_IDS];
    ebb_text_range quoted = { n / 3, n / 2 };
    ebb_detok *d = ebb_tokenizer_detok(t, true);
    char piece[64];
    const char *out;
    size_t n_ids = 0, n_out;

    FUZZ_MUST(d);
    if (ebb_tokenizer_encode(t, text, n,
                             &(ebb_tokenize_opts){ .flags = flags, .quoted = &quoted, .n_quoted = n > 5 },
                             ids, MAX_IDS, &n_ids, NULL) == EBB_OK)
        for (size_t i = 0; i < n_ids && i < MAX_IDS; i++) {
            (void)ebb_tokenizer_piece(t, ids[i], true, piece, sizeof piece);
            (void)ebb_tokenizer_is_eog(t, ids[i]);
            (void)ebb_tokenizer_is_control(t, ids[i]);
            out = ebb_detok_push(d, ids[i], &n_out);
            FUZZ_MUST(out || n_out == 0);
        }
    out = ebb_detok_flush(d, &n_out);
    FUZZ_MUST(out || n_out == 0);
    ebb_detok_free(d);
    FUZZ_MUST(ebb_tokenizer_bytes(t) > 0 && ebb_tokenizer_bytes(t) < (size_t)64 << 20);
    FUZZ_MUST(ebb_tokenizer_piece(t, -1, true, piece, sizeof piece) == 0);
    FUZZ_MUST(ebb_tokenizer_find(t, "x") >= -1 && ebb_tokenizer_bos(t) >= -1 && ebb_tokenizer_eot(t) >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const models[] = { "llama", "gpt2", "gemma4", "bert" };
    static const char *const pres[] = { NULL, "default", "llama-bpe", "tekken", "deepseek-v3", "qwen2", "gpt-4o",
                                       "??" };
    static const char *const names[] = { NULL, "Phi 3", "jina-v2" };
    static float scores[MAX_LINES];
    static int32_t types[MAX_LINES];
    static lines tokens, merges;
    ebb_vocab v = EBB_VOCAB_EMPTY;
    ebb_tokenizer *t = NULL, *again = NULL;
    ebb_error err = { 0 };
    char why[160];
    size_t at = 4;

    if (n < 4)
        return 0;
    at += read_lines((const char *)data + at, n - at, &tokens);
    at += read_lines((const char *)data + at, n - at, &merges);
    for (size_t i = 0; i < tokens.n; i++) {
        types[i] = (data[1] >> 4) + (uint8_t)tokens.of[i].ptr[tokens.of[i].len - 1] % 8;
        scores[i] = (float)((data[2] * (i + 1)) % 31) - 20;
    }
    v = (ebb_vocab){ .model = models[data[0] % 4], .pre = pres[data[0] / 4 % 8], .name = names[data[0] / 32 % 3],
                     .tokens = tokens.of, .n_tokens = tokens.n, .scores = data[1] & 1 ? scores : NULL,
                     .types = data[1] & 2 ? types : NULL, .merges = merges.of, .n_merges = merges.n,
                     .bos = data[1] & 4 ? data[2] : -1, .eos = data[1] & 8 ? data[3] : -1, .eot = data[2] % 7 - 1,
                     .eom = -1, .unk = data[3] % 5 - 1, .add_bos = (int8_t)(data[2] % 3 - 1),
                     .add_eos = (int8_t)(data[3] % 3 - 1), .add_space_prefix = (int8_t)(data[3] / 3 % 3 - 1) };
    if (ebb_tokenizer_new(&v, &t, &err) != EBB_OK) {
        FUZZ_MUST(!t && err.msg[0] && !strchr(err.msg, '\n'));
        return 0;
    }
    use(t, (const char *)data + at, n - at, EBB_TOK_BOS | EBB_TOK_SPECIAL);
    use(t, (const char *)data + at, n - at, 0);
    v.n_tokens -= v.n_tokens > 1 && data[3] & 1;
    if (ebb_tokenizer_new(&v, &again, NULL) == EBB_OK)
        FUZZ_MUST(ebb_tokenizer_is_like(t, again, why) == !why[0]);
    ebb_tokenizer_free(again);
    ebb_tokenizer_free(t);
    return 0;
}
