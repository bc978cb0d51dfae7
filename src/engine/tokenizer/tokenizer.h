/* tokenizer/tokenizer.h - text to token ids and back, for one vocabulary.
 *
 * Three families: SentencePiece-style ("llama": the adjacent pair whose token has
 * the best score is joined first), byte-level BPE ("gpt2": the text is cut
 * by a pattern, then the pair with the lowest merge rank is joined first) and BPE of
 * characters ("gemma4": only newlines cut).  All use a heap: O(n log n) for any text.
 *
 * Knows no file format: whoever reads one fills an ebb_vocab.  A tokenizer is
 * immutable and may be shared by threads; a detokenizer belongs to one. */
#ifndef EBB_TOKENIZER_H
#define EBB_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/model.h"
#include "ebb/status.h"

typedef struct ebb_vocab_str {
    const char *ptr;             /* not NUL-terminated */
    size_t      len;
} ebb_vocab_str;

/* token_type of the file; any other value counts as normal */
enum {
    EBB_VOCAB_NORMAL = 1, EBB_VOCAB_UNKNOWN = 2, EBB_VOCAB_CONTROL = 3,
    EBB_VOCAB_USER = 4, EBB_VOCAB_UNUSED = 5, EBB_VOCAB_BYTE = 6,
};

/* What the file says.  The struct and its arrays are needed only during
 * ebb_tokenizer_new; the bytes of tokens and merges are borrowed and must
 * outlive the tokenizer.  Start from `ebb_vocab v = EBB_VOCAB_EMPTY;`. */
typedef struct ebb_vocab {
    const char *model;           /* tokenizer.ggml.model: "llama", "gpt2", "gemma4" */
    const char *pre;             /* tokenizer.ggml.pre; NULL or "": "default" */
    const char *name;            /* general.name, NULL if absent (some families have rules of their
                                    own) */
    size_t               n_tokens;
    const ebb_vocab_str *tokens;
    const float         *scores; /* n_tokens, or NULL */
    const int32_t       *types;  /* n_tokens, or NULL: all normal */
    size_t               n_merges;
    const ebb_vocab_str *merges; /* "left right" */

    /* ids as in the file, -1 where the key is absent; an id that names no
     * token (padding 0xFFFFFFFF is seen) counts as absent */
    ebb_token bos, eos, eot, eom, unk;
    size_t           n_eos_ids;  /* eos_token_ids, the newer array */
    const ebb_token *eos_ids;

    int8_t add_bos, add_eos, add_space_prefix;   /* -1 absent, 0 false, 1 true */
} ebb_vocab;

#define EBB_VOCAB_EMPTY { .bos = -1, .eos = -1, .eot = -1, .eom = -1, .unk = -1, \
                          .add_bos = -1, .add_eos = -1, .add_space_prefix = -1 }

typedef struct ebb_tokenizer ebb_tokenizer;

/* Errors: UNSUPPORTED (model or pre-tokenizer, named), FORMAT (no tokens, more
 * than 2^24, a token longer than 64 KiB, gpt2 or gemma4 without merges), NOMEM.  Merges that name
 * no token are ignored.  Cost: about 0.2 us per token and merge. */
EBB_MUST_CHECK
ebb_status ebb_tokenizer_new(const ebb_vocab *v, ebb_tokenizer **out, ebb_error *err);
void ebb_tokenizer_free(ebb_tokenizer *t);       /* NULL is fine */

/* Bytes of memory held, without the borrowed strings. */
size_t ebb_tokenizer_bytes(const ebb_tokenizer *t);

/* Whether ids of b mean the same as ids of a: the same texts and types, BOS and EOS; one may have
 * tokens without a use at the end that the other lacks.  false: the first difference in why[]. */
bool ebb_tokenizer_is_like(const ebb_tokenizer *a, const ebb_tokenizer *b, char why[160]);

/* These are the functions of ebb/model.h, contract for contract:
 * ebb_model_tokenize_with, _bos, _eos, _eot, _is_eog, _is_control, _find_token, _piece.
 * Errors also: LIMIT (the text is beyond all measure for this vocabulary, or for any). */
EBB_MUST_CHECK
ebb_status ebb_tokenizer_encode(const ebb_tokenizer *t, const char *text, size_t n_bytes,
                                const ebb_tokenize_opts *o, ebb_token *out, size_t cap,
                                size_t *n_out, ebb_error *err);
ebb_token ebb_tokenizer_bos(const ebb_tokenizer *t);
ebb_token ebb_tokenizer_eos(const ebb_tokenizer *t);
ebb_token ebb_tokenizer_eot(const ebb_tokenizer *t);
bool ebb_tokenizer_is_eog(const ebb_tokenizer *t, ebb_token id);
bool ebb_tokenizer_is_control(const ebb_tokenizer *t, ebb_token id);
ebb_token ebb_tokenizer_find(const ebb_tokenizer *t, const char *text);
size_t ebb_tokenizer_piece(const ebb_tokenizer *t, ebb_token id, bool special, char *out,
                           size_t cap);
size_t ebb_tokenizer_longest_piece(const ebb_tokenizer *t);          /* bytes that none exceeds */

/* ebb_detok_new of ebb/model.h for a tokenizer, which must outlive it.
 * ebb_detok_free, _push and _flush are implemented here, in detok.c. */
ebb_detok *ebb_tokenizer_detok(const ebb_tokenizer *t, bool special);

#endif
