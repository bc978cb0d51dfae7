/* A model file that is only a vocabulary: the 256 bytes and the special tokens a
 * test asks for, so that every text has exactly one tokenisation (SentencePiece's has a blank,
 * which it puts before a text). */
#ifndef EBB_TEST_CHAT_VOCAB_H
#define EBB_TEST_CHAT_VOCAB_H
#include "engine/gguf/gguf_build.h"
#include "engine/tokenizer/toy_vocab.h"

#include "ebb/model.h"

typedef struct chat_vocab {
    const char *name, *arch;     /* NULL: "test", "llama" */
    const char *tokens[13];      /* control tokens, from id 256 on; the first is BOS, the second
                                  * EOS */
    const char *source;          /* chat template, or NULL */
    bool        adds_bos, is_spm;
    bool        is_old;          /* they are user-defined, as older files type them */
} chat_vocab;

/* The bytes are kept in *file, which must outlive the model. */
static inline ebb_model *chat_vocab_open(const chat_vocab *c, ebb_buf *file)
{
    static toy t;
    ebb_model *m;
    ebb_error err = { 0 };
    size_t n = 0, first;

    if (c->is_spm) {
        toy_init_spm(&t);
        toy_add(&t, "\xE2\x96\x81", EBB_VOCAB_NORMAL, 0);
    } else {
        toy_init_bpe(&t, "gpt-2");
    }
    first = t.v.n_tokens;
    for (; n < 12 && c->tokens[n]; n++)
        toy_add(&t, c->tokens[n], c->is_old ? EBB_VOCAB_USER : EBB_VOCAB_CONTROL, 0);
    *file = (ebb_buf){ 0 };
    gguf_head(file, 3, 0, 10 + (c->source != NULL) + c->is_spm);
    gguf_kv_str(file, "general.architecture", c->arch ? c->arch : "llama");
    gguf_kv_str(file, "general.name", c->name ? c->name : "test");
    gguf_kv_str(file, "tokenizer.ggml.model", c->is_spm ? "llama" : "gpt2");
    gguf_kv_str(file, "tokenizer.ggml.pre", "gpt-2");
    gguf_kv_array(file, "tokenizer.ggml.tokens", EBB_GGUF_STRING, t.v.n_tokens);
    for (size_t i = 0; i < t.v.n_tokens; i++)
        gguf_text(file, t.tokens[i].ptr, t.tokens[i].len);
    gguf_kv_array(file, "tokenizer.ggml.token_type", EBB_GGUF_I32, t.v.n_tokens);
    for (size_t i = 0; i < t.v.n_tokens; i++)
        gguf_u32(file, (uint32_t)t.types[i]);
    if (c->is_spm)
        gguf_kv_raw(file, "tokenizer.ggml.add_space_prefix", EBB_GGUF_BOOL, &c->is_spm, 1);
    gguf_kv_array(file, "tokenizer.ggml.merges", EBB_GGUF_STRING, 1);
    gguf_text(file, "x x", 3);
    gguf_kv_u32(file, "tokenizer.ggml.bos_token_id", (uint32_t)first);
    gguf_kv_u32(file, "tokenizer.ggml.eos_token_id", (uint32_t)first + 1);
    if (c->source)
        gguf_kv_str(file, "tokenizer.chat_template", c->source);
    gguf_kv_raw(file, "tokenizer.ggml.add_bos_token", EBB_GGUF_BOOL, &c->adds_bos, 1);
    if (ebb_model_open_memory(file->data, file->len, "test.gguf", &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}
#endif
