/* ebb/grammar.h - constrained sampling: a grammar says which texts a sampler may write.
 *
 * A grammar is text in GBNF, the notation of llama.cpp (docs/CONSTRAINED.md); the language is that
 * of its rule `root`.  A sampler that is constrained by it chooses among the tokens with which the
 * text can still become one of the language, and ends it only where it is one.  Tokens that are no
 * text are never chosen.  Without a grammar every choice is what it was.
 *
 *     ebb_grammar_new, ebb_sampler_new, ebb_sampler_constrain
 *         ebb_session_sample as always; EBB_TOKEN_NONE: the text ends here
 *     ebb_sampler_check, ebb_sampler_free, ebb_grammar_free */
#ifndef EBB_GRAMMAR_H
#define EBB_GRAMMAR_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/session.h"

EBB_API_BEGIN

/* Immutable; threads may share it. */
typedef struct ebb_grammar ebb_grammar;

/* Compile text[0..n), which need not outlive it.  The caller owns *out; NULL on failure.
 * Errors, with line and column: FORMAT (no GBNF; a rule that is missing, begins with itself or can
 * never end), UNSUPPORTED (tokens by number or name), LIMIT (too large, nested too deeply), NOMEM.
 * Cost: linear in the text and in what its repetitions stand for. */
EBB_MUST_CHECK
ebb_status ebb_grammar_new(const char *text, size_t n, ebb_grammar **out, ebb_error *err);
void ebb_grammar_free(ebb_grammar *g);           /* NULL is fine */
size_t ebb_grammar_bytes(const ebb_grammar *g);  /* of memory that it takes; 0 for NULL */

/* Whether text[0..n) is of the language, or the beginning of a text that is. */
typedef enum ebb_match { EBB_MATCH_NONE, EBB_MATCH_PREFIX, EBB_MATCH_WHOLE } ebb_match;
/* Errors: LIMIT (the grammar is too ambiguous to follow), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_grammar_match(const ebb_grammar *g, const char *text, size_t n, ebb_match *out,
                             ebb_error *err);

/* From its next choice on s writes a text of g, from the beginning, in tokens of m; neither need
 * outlive s.  NULL: s is free again.  On failure s is as before.
 * Errors: UNSUPPORTED (m has no tokenizer), NOMEM.
 * Cost: once for each model some 50 ms for 150,000 tokens; a choice at a place of the grammar that
 * was not met before, some ms.  One that would take longer than some 20 ms is EBB_TOKEN_NONE and
 * LIMIT. */
EBB_MUST_CHECK
ebb_status ebb_sampler_constrain(ebb_sampler *s, const ebb_grammar *g, const ebb_model *m,
                                 ebb_error *err);
/* The text has begun with these tokens.  On failure s is as before.
 * Errors: USAGE (the grammar does not allow them), LIMIT (too ambiguous to follow), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_sampler_accept(ebb_sampler *s, const ebb_token *ids, size_t n, ebb_error *err);
/* After EBB_TOKEN_NONE: OK if the text is one of the grammar (or s is free).  Errors: UNSUPPORTED
 * (no token of the model goes on as the grammar wants), LIMIT (too ambiguous), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_sampler_check(const ebb_sampler *s, ebb_error *err);

EBB_API_END

#endif
