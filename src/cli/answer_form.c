/* The form that an answer is to have: --grammar and --json-schema (cli.h). */
#include "cli.h"
#include "schema/answer_form.h"

ebb_status ebb_cli_answer_form(const ebb_args *a, char **grammar, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st;

    *grammar = NULL;
    if (!a->grammar && !a->json_schema)
        return EBB_OK;
    if (a->grammar && a->json_schema)
        return EBB_FAIL(err, EBB_USAGE, "--grammar and --json-schema: give only one of them");
    st = a->grammar ? ebb_answer_form_grammar(a->grammar, &text, err)
                    : ebb_answer_form_schema(a->json_schema, "--json-schema", &text, err);
    if (st == EBB_OK && (!ebb_buf_reserve(&text, 1) || !(*grammar = ebb_buf_take(&text))))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    ebb_buf_fini(&text);
    return st;
}
