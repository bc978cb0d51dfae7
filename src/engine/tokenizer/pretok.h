/* tokenizer/pretok.h - cutting text into the words that byte-level BPE works on.
 *
 * A pre-tokenizer is a list of patterns (PCRE2, UTF and UCP).  The first cuts
 * the text into its matches and what lies between them; each piece is then cut
 * by the second, and so on.  Within a pattern the beginning and the end of a
 * piece are the beginning and the end of the text. */
#ifndef EBB_TOKENIZER_PRETOK_H
#define EBB_TOKENIZER_PRETOK_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"

typedef struct ebb_pretok ebb_pretok;

/* `name` is tokenizer.ggml.pre; NULL or "" is "default".  Without `jit`, or where
 * the JIT is missing, PCRE2's interpreter does the same, slower.
 * Errors: UNSUPPORTED (unknown name), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_pretok_new(const char *name, bool jit, ebb_pretok **out, ebb_error *err);
void ebb_pretok_free(ebb_pretok *p);             /* NULL is fine */
bool ebb_pretok_ignores_merges(const ebb_pretok *p);   /* a word that is a token is not merged but
                                                          taken */
bool ebb_pretok_adds_bos(const ebb_pretok *p);   /* where the file does not say */
size_t ebb_pretok_bytes(const ebb_pretok *p);

/* Called with each word in order; false stops. */
typedef bool ebb_pretok_fn(void *arg, const char *word, size_t n);

/* Cut text[0..n), any bytes: bytes that are no UTF-8 come as words of their
 * own, so the words joined are the text.  Errors: NOMEM (also when fn stopped). */
EBB_MUST_CHECK
ebb_status ebb_pretok_split(const ebb_pretok *p, const char *text, size_t n,
                            ebb_pretok_fn *fn, void *arg, ebb_error *err);

#endif
