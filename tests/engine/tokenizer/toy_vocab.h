/* Vocabularies built by hand, for tests of the tokenizer. */
#ifndef EBB_TEST_TOY_VOCAB_H
#define EBB_TEST_TOY_VOCAB_H
#include "base/utf8.h"
#include "ebb_test.h"
#include "tokenizer/tokenizer.h"

#define TOY_MAX 1024

typedef struct toy {
    ebb_vocab     v;
    ebb_vocab_str tokens[TOY_MAX], merges[TOY_MAX];
    float         scores[TOY_MAX];
    int32_t       types[TOY_MAX];
    char          spelt[256][5];
} toy;

static inline ebb_token toy_add_n(toy *t, const char *text, size_t n, int32_t type, float score)
{
    size_t i = t->v.n_tokens++;

    assert_true(i < TOY_MAX);
    t->tokens[i] = (ebb_vocab_str){ text, n };
    t->types[i] = type;
    t->scores[i] = score;
    return (ebb_token)i;
}

static inline ebb_token toy_add(toy *t, const char *text, int32_t type, float score)
{
    return toy_add_n(t, text, strlen(text), type, score);
}

static inline void toy_merge(toy *t, const char *merge)
{
    assert_true(t->v.n_merges < TOY_MAX);
    t->merges[t->v.n_merges++] = (ebb_vocab_str){ merge, strlen(merge) };
}

static inline void toy_init(toy *t, const char *model, const char *pre)
{
    *t = (toy){ .v = EBB_VOCAB_EMPTY };
    t->v.model = model;
    t->v.pre = pre;
    t->v.tokens = t->tokens;
    t->v.merges = t->merges;
    t->v.types = t->types;
    t->v.scores = t->scores;
}

/* Tokens 0..255 are the bytes, as gpt2 spells them. */
static inline void toy_init_bpe(toy *t, const char *pre)
{
    uint32_t other = 0x100;

    toy_init(t, "gpt2", pre);
    for (unsigned b = 0; b < 256; b++) {
        bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        size_t n = ebb_utf8_encode(visible ? b : other++, t->spelt[b]);
        toy_add_n(t, t->spelt[b], n, EBB_VOCAB_NORMAL, 0);
    }
}

/* 0 <unk>, 1 <s>, 2 </s>, 3..258 the bytes. */
static inline void toy_init_spm(toy *t)
{
    static char bytes[256][7];

    toy_init(t, "llama", NULL);
    toy_add(t, "<unk>", EBB_VOCAB_UNKNOWN, 0);
    toy_add(t, "<s>", EBB_VOCAB_CONTROL, 0);
    toy_add(t, "</s>", EBB_VOCAB_CONTROL, 0);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(bytes[b], sizeof bytes[b], "<0x%02X>", b);
        toy_add(t, bytes[b], EBB_VOCAB_BYTE, 0);
    }
}

static inline ebb_tokenizer *toy_open(const toy *t)
{
    ebb_tokenizer *out;
    ebb_error err;

    if (ebb_tokenizer_new(&t->v, &out, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return out;
}

/* A small generator of its own, so that tests are the same everywhere. */
static inline uint32_t toy_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* ids as text, "5 6 7" */
static inline const char *toy_ids(const ebb_tokenizer *t, const char *text, unsigned flags)
{
    static char line[4096];
    ebb_token ids[512];
    size_t n, at = 0;
    ebb_error err;

    assert_int_equal(
        ebb_tokenizer_encode(t, text, strlen(text), &(ebb_tokenize_opts){ .flags = flags }, ids,
                             512, &n, &err),
        EBB_OK);
    line[0] = '\0';
    for (size_t i = 0; i < n && i < 512; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, i ? " %d" : "%d", ids[i]);
    return line;
}
#endif
