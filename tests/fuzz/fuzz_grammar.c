/* A grammar, and behind its first NUL a text that is followed by it. */
#include "fuzz.h"

#include <string.h>

#include "ebb/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    size_t n_grammar = end ? (size_t)(end - data) : n, n_text = end ? n - n_grammar - 1 : 0;
    ebb_match match, before;
    ebb_error err = { 0 };
    ebb_grammar *g;

    if (ebb_grammar_new((const char *)data, n_grammar, &g, &err) != EBB_OK) {
        FUZZ_MUST(!g && err.msg[0]);
        return 0;
    }
    FUZZ_MUST(ebb_grammar_match(g, "", 0, &before, &err) != EBB_OK || before != EBB_MATCH_NONE);
    if (end && ebb_grammar_match(g, (const char *)end + 1, n_text, &match, &err) == EBB_OK && n_text > 0 &&
        ebb_grammar_match(g, (const char *)end + 1, n_text - 1, &before, &err) == EBB_OK)
        FUZZ_MUST(match == EBB_MATCH_NONE || before != EBB_MATCH_NONE);  /* what is before a beginning is one */
    ebb_grammar_free(g);
    return 0;
}
