/* The form that an answer is to have: --grammar and --json-schema (cli.h). */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ebb/grammar.h"
#include "os/file.h"
#include "schema/schema.h"

#define MAX_FORM_BYTES ((size_t)4 << 20)

/* A schema is an object, true or false; no file has such a name by chance. */
static bool is_schema_text(const char *word)
{
    word += strspn(word, " \t\r\n");
    return *word == '{' || strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

static ebb_status read_schema(const char *word, ebb_buf *out, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_error why = { 0 };
    bool is_text = is_schema_text(word);
    ebb_status st = is_text ? EBB_OK : ebb_file_slurp(word, MAX_FORM_BYTES, &text, err);

    if (st != EBB_OK) {
        ebb_buf_fini(&text);
        return st;
    }
    st = is_text ? ebb_schema_grammar_of_text(word, strlen(word), out, &why)
                 : ebb_schema_grammar_of_text(ebb_buf_text(&text), text.len, out, &why);
    ebb_buf_fini(&text);
    return st == EBB_OK ? st : EBB_FAIL(err, st, "%.100s: %s", is_text ? "--json-schema" : word, why.msg);
}

/* It is compiled again where it is used; here errors in it are reported before a model is loaded. */
static ebb_status check_grammar(const char *name, const ebb_buf *text, ebb_error *err)
{
    ebb_grammar *g;
    ebb_error why = { 0 };
    ebb_status st = ebb_grammar_new(ebb_buf_text(text), text->len, &g, &why);

    ebb_grammar_free(g);
    return st == EBB_OK ? st : EBB_FAIL(err, st, "%.100s: %s", name, why.msg);
}

ebb_status ebb_cli_answer_form(const ebb_args *a, char **grammar, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st;

    *grammar = NULL;
    if (!a->grammar && !a->json_schema)
        return EBB_OK;
    if (a->grammar && a->json_schema)
        return EBB_FAIL(err, EBB_USAGE, "--grammar and --json-schema: an answer has one form");
    st = a->grammar ? ebb_file_slurp(a->grammar, MAX_FORM_BYTES, &text, err) : read_schema(a->json_schema, &text, err);
    if (st == EBB_OK && memchr(ebb_buf_text(&text), '\0', text.len))
        st = EBB_FAIL(err, EBB_FORMAT, "%.100s: no grammar, but binary", a->grammar);
    if (st == EBB_OK)
        st = check_grammar(a->grammar ? a->grammar : "--json-schema", &text, err);
    if (st == EBB_OK && (!ebb_buf_reserve(&text, 1) || !(*grammar = ebb_buf_take(&text))))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    ebb_buf_fini(&text);
    return st;
}
