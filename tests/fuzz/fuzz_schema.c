/* A JSON schema: what is compiled is a grammar, and what is not says why. */
#include "fuzz.h"

#include "ebb/grammar.h"
#include "schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_buf text = { 0 };
    ebb_error err = { 0 };
    ebb_grammar *g = NULL;
    ebb_status st = ebb_schema_grammar_of_text((const char *)data, n, &text, &err);

    FUZZ_MUST(st == EBB_OK || err.msg[0]);
    if (st == EBB_OK) {
        st = ebb_grammar_new(ebb_buf_text(&text), text.len, &g, &err);
        /* It is always one, but it may be too large, or have no end ({"$ref": "#"} that is required). */
        FUZZ_MUST(st == EBB_OK || st == EBB_LIMIT || st == EBB_FORMAT);
    }
    ebb_grammar_free(g);
    ebb_buf_fini(&text);
    return 0;
}
