/* ebb/model.h - a model file: metadata, tokenizer, chat template.
 *
 * Opening reads the GGUF header only: metadata, tensor index, vocabulary.  No weight is read, so
 * it is cheap even for a file of hundreds of gigabytes.
 * A model is immutable after open and may be shared by threads; each
 * detokenizer belongs to one thread. */
#ifndef EBB_MODEL_H
#define EBB_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

EBB_API_BEGIN

typedef int32_t ebb_token;
#define EBB_TOKEN_NONE (-1)      /* no token */
typedef struct ebb_model ebb_model;

/* Opens the GGUF file at `path`; of a split model, any one of its files.  On
 * success the caller owns *out; on failure *out is NULL.  Errors: NOTFOUND, IO,
 * FORMAT (the file is damaged: the message says where), UNSUPPORTED (a version, or a type of
 * tensors: named), NOMEM.  Whether ebb knows the architecture is for ebb_engine_open to say, and
 * of the tokenizer for what needs one.  Cost: the header, 10-300 ms for 150,000 tokens. */
EBB_MUST_CHECK
ebb_status ebb_model_open(const char *path, ebb_model **out, ebb_error *err);

/* The same from a GGUF file in memory, which must outlive the model. */
EBB_MUST_CHECK
ebb_status ebb_model_open_memory(const void *data, size_t n_bytes, const char *name,
                                 ebb_model **out, ebb_error *err);

void ebb_model_close(ebb_model *m);              /* NULL is fine */

/* Strings live as long as the model and are, but for `name`, as in the file: they may hold control
 * characters. */
typedef struct ebb_model_info {
    const char *path;            /* of a split model its first file; the given name if in memory */
    const char *name;            /* general.name, else the file's base name: a line of UTF-8 in
                                    which control characters are made visible, of 200 bytes of it */
    const char *arch;            /* "llama", "qwen3" ...: a line of text, of 64 bytes of the file at
                                  * most; "": the file names none */
    const char *quantization;    /* "Q4_K_M": general.file_type, else the type with most bytes */
    uint32_t    n_layers, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab;
    uint32_t    n_ctx_train;     /* longest context the model was trained for, tokens */
    uint64_t    n_params;
    uint64_t    weight_bytes;    /* all tensors of all files */
    uint64_t    kv_bytes_per_tok_f16;  /* K and V of a token in all layers, if f16 */
    uint8_t     fingerprint[16]; /* hash of metadata and tensor index; the KV cache on disk is kept
                                  * apart by it */
} ebb_model_info;
const ebb_model_info *ebb_model_get_info(const ebb_model *m);

/* String value of `key`, NULL if absent or of another type. */
const char *ebb_model_meta_string(const ebb_model *m, const char *key);
/* Number of `key`, whole or not; false if absent or of another type. */
bool ebb_model_meta_number(const ebb_model *m, const char *key, double *out);

/* -- Text and tokens -------------------------------------------------------- */
enum {
    EBB_TOK_BOS     = 1,         /* add BOS (and EOS) where the vocabulary asks for it */
    EBB_TOK_SPECIAL = 2,         /* parse control tokens: their texts in `text` become their ids.
                                  * Those of user-defined tokens do so without it, and of what
                                  * other readers take for such (<|channel|> of gpt-oss): where
                                  * that must not be, quote the text */
    EBB_TOK_INSIDE  = 4,         /* `text` goes on behind other text: no blank is put before it, as
                                  * some vocabularies do; its ids print it and nothing else */
};
/* Tokenizes n_bytes of UTF-8 (invalid bytes are allowed).  *n_out receives
 * the number of ids; at most `cap` are written, so a call with cap = 0 counts.
 * Errors: UNSUPPORTED (no tokenizer that is known: named), LIMIT (too long a text, or one that this
 * vocabulary takes too long for), NOMEM.  Cost: O(n log n). */
EBB_MUST_CHECK
ebb_status ebb_model_tokenize(const ebb_model *m, const char *text, size_t n_bytes, unsigned flags,
                              ebb_token *out, size_t cap, size_t *n_out, ebb_error *err);

/* The same for a text with ranges in which control tokens must not be parsed, such as what a user
 * wrote: one that touches a byte of a range is tokenized as text.  And it can be stopped: a text of
 * some megabytes takes seconds. */
typedef struct ebb_text_range { size_t begin, end; } ebb_text_range;
typedef struct ebb_tokenize_opts {
    unsigned flags;              /* EBB_TOK_* */
    const ebb_text_range *quoted;        /* in order and disjoint */
    size_t   n_quoted;
    bool   (*stop)(void *arg);   /* called about every millisecond, on this thread; true: end with
                                  * CANCELED.  NULL: it is not stopped */
    void    *stop_arg;
} ebb_tokenize_opts;
EBB_MUST_CHECK
ebb_status ebb_model_tokenize_with(const ebb_model *m, const char *text, size_t n_bytes,
                                   const ebb_tokenize_opts *o, ebb_token *out, size_t cap,
                                   size_t *n_out, ebb_error *err);

/* Beginning of sequence, end of sequence, end of turn; EBB_TOKEN_NONE where the vocabulary has
 * none. */
ebb_token ebb_model_bos(const ebb_model *m);
ebb_token ebb_model_eos(const ebb_model *m);
ebb_token ebb_model_eot(const ebb_model *m);
bool ebb_model_is_eog(const ebb_model *m, ebb_token id);     /* ends generation: EOS, <|im_end|> */
bool ebb_model_is_control(const ebb_model *m, ebb_token id);     /* <|im_start|>, <s> */
/* The id of the token whose text is exactly `text`; EBB_TOKEN_NONE: there is none. */
ebb_token ebb_model_find_token(const ebb_model *m, const char *text);
/* The bytes of one token (not NUL-terminated, perhaps a part of a character).  Control tokens give
 * their text if `special`, else nothing, but for those that part an answer (<|channel|>) and always
 * do.  Writes at most cap bytes, returns the full length. */
size_t ebb_model_piece(const ebb_model *m, ebb_token id, bool special, char *out, size_t cap);

/* A streaming detokenizer: the bytes of an incomplete UTF-8 character are kept until the next
 * token, invalid bytes become U+FFFD (one for each maximal subpart, Unicode 3.9). */
typedef struct ebb_detok ebb_detok;
ebb_detok *ebb_detok_new(const ebb_model *m, bool special);         /* NULL: out of memory, or m
                                                                    * has no tokenizer */
void ebb_detok_free(ebb_detok *d);
/* Takes a token; returns the text that is complete now (n_bytes, maybe 0), valid until the next
 * call. */
const char *ebb_detok_push(ebb_detok *d, ebb_token id, size_t *n_bytes);
/* Returns what is left as text, and resets the detokenizer. */
const char *ebb_detok_flush(ebb_detok *d, size_t *n_bytes);

/* -- Chat template ----------------------------------------------------------- */
/* Jinja source of `tokenizer.chat_template` (variant NULL) or of
 * `tokenizer.chat_template.<variant>`; NULL if the file has none. */
const char *ebb_model_template(const ebb_model *m, const char *variant);

EBB_API_END

#endif
