/* open/model_file.h - the file side of ebb/model.h, for the rooms of the engine.
 *
 * An ebb_model is an open GGUF, the facts that everybody asks for, and the
 * tokenizer.  What an architecture needs beyond the facts it reads from the
 * metadata itself: ebb_gguf_get_f64(ebb_model_gguf(m), ".rope.freq_base", &x).
 *
 * A file without a tokenizer, or with one of a family that ebb does not know,
 * opens all the same, so that it can be inspected: then bos, eos and eot are
 * -1, and tokenize and check_tokenizer say why. */
#ifndef EBB_MODEL_FILE_H
#define EBB_MODEL_FILE_H
#include "ebb/model.h"
#include "gguf/gguf.h"
#include "grammar/token_trie.h"
#include "tokenizer/tokenizer.h"

/* Metadata, tensor index, and for each part its path, open descriptor or memory. */
const ebb_gguf *ebb_model_gguf(const ebb_model *m);

/* Whether it was opened from memory: then there is no file to map, or to read from. */
bool ebb_model_is_in_memory(const ebb_model *m);
/* How much of its first part is in memory, of the page cache or of its own: 0 to 1. */
double ebb_model_page_cache_share(const ebb_model *m);

const ebb_tokenizer *ebb_model_tokenizer(const ebb_model *m);  /* NULL if there is none */
/* OK if there is a tokenizer; else UNSUPPORTED, naming what is not known.  For
 * whoever makes the model ready to chat. */
EBB_MUST_CHECK
ebb_status ebb_model_check_tokenizer(const ebb_model *m, ebb_error *err);

/* Whether `draft` can draft for `m`: ids mean the same in both.  Errors: USAGE (names both files
 * and the first difference), UNSUPPORTED (one has no tokenizer that is known). */
EBB_MUST_CHECK
ebb_status ebb_model_check_draft(const ebb_model *m, const ebb_model *draft, ebb_error *err);

/* The texts of its tokens, made when they are first asked for; as long as the model, or who shares
 * it.  NULL: no memory. */
ebb_token_trie *ebb_model_token_trie(const ebb_model *m);

/* Bytes of memory that the open model holds: header, index, tokenizer. */
size_t ebb_model_bytes(const ebb_model *m);

/* model_tokens.c: make the tokenizer that the metadata describes; its strings
 * stay in g, which must outlive it.  Errors: UNSUPPORTED (no tokenizer, or an
 * unknown one), FORMAT (lists that do not fit together), LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_model_make_tokenizer(const ebb_gguf *g, ebb_tokenizer **out, ebb_error *err);

#endif
