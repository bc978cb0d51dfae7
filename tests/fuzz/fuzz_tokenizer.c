/* Any bytes to tokens and back: byte-level BPE under every pre-tokenizer gives back what it got. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

static const char *const pres[] = { "default", "llama-bpe", "qwen2", "gpt-2", "deepseek-llm", "deepseek-v3", "tekken",
                                    "gpt-4o", "smollm", "qwen35" };
enum { N_PRES = sizeof pres / sizeof *pres, N_TOKENS = 256 + 8 };

static ebb_tokenizer *make_vocab(const char *pre)
{
    static char spelt[256][5];
    static const char *const more[] = { "th", "the", "in", "\xc4\xa0t", "<s>", "<|im_end|>", "\xc4\xa0\xc4\xa0", "ab" };
    static const char *const merges[] = { "t h", "th e", "i n", "\xc4\xa0 t", "\xc4\xa0 \xc4\xa0", "a b" };
    ebb_vocab_str tokens[N_TOKENS], joins[6];
    int32_t types[N_TOKENS];
    ebb_vocab v = EBB_VOCAB_EMPTY;
    uint32_t other = 0x100;
    ebb_tokenizer *t = NULL;

    for (unsigned b = 0; b < 256; b++) {
        bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        tokens[b] = (ebb_vocab_str){ spelt[b], ebb_utf8_encode(visible ? b : other++, spelt[b]) };
        types[b] = EBB_VOCAB_NORMAL;
    }
    for (size_t i = 0; i < 8; i++) {
        tokens[256 + i] = (ebb_vocab_str){ more[i], strlen(more[i]) };
        types[256 + i] = i == 4 || i == 5 ? EBB_VOCAB_CONTROL : EBB_VOCAB_NORMAL;
    }
    for (size_t i = 0; i < 6; i++)
        joins[i] = (ebb_vocab_str){ merges[i], strlen(merges[i]) };
    v.model = "gpt2";
    v.pre = pre;
    v.tokens = tokens;
    v.types = types;
    v.n_tokens = N_TOKENS;
    v.merges = joins;
    v.n_merges = 6;
    if (ebb_tokenizer_new(&v, &t, NULL) != EBB_OK)
        return NULL;
    return t;
}

static void there_and_back(const ebb_tokenizer *t, const char *text, size_t n)
{
    ebb_token *ids = malloc((n + 1) * sizeof *ids);
    char *back = malloc(n + 1);
    size_t n_ids = 0, at = 0;

    FUZZ_MUST(ids && back);
    if (ebb_tokenizer_encode(t, text, n, &(ebb_tokenize_opts){ 0 }, ids, n, &n_ids, NULL) == EBB_OK) {
        FUZZ_MUST(n_ids <= n);
        for (size_t i = 0; i < n_ids; i++) {
            FUZZ_MUST(at <= n);
            at += ebb_tokenizer_piece(t, ids[i], false, back + at, n - at);
        }
        FUZZ_MUST(at == n && memcmp(back, text, n) == 0);
    }
    free(ids);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ebb_tokenizer *tokenizers[N_PRES];
    const ebb_tokenizer *t;
    ebb_token ids[8];
    size_t n_ids;

    if (n < 2)
        return 0;
    if (!tokenizers[data[0] % N_PRES])
        tokenizers[data[0] % N_PRES] = make_vocab(pres[data[0] % N_PRES]);
    t = tokenizers[data[0] % N_PRES];
    if (!t)
        return 0;
    there_and_back(t, (const char *)data + 2, n - 2);
    if (ebb_tokenizer_encode(t, (const char *)data + 2, n - 2,
                             &(ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL | EBB_TOK_BOS, .n_quoted = 1,
                                                   .quoted = &(ebb_text_range){ data[1] % (n - 1), n - 2 } },
                             ids, 8, &n_ids, NULL) != EBB_OK)
        return 0;
    return 0;
}
