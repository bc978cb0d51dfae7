/* The form of answers (answer_form.h). */
#include "schema/answer_form.h"

#include <string.h>

#include "base/utf8.h"
#include "ebb/grammar.h"
#include "os/file.h"
#include "os/paths.h"
#include "schema/schema.h"

#define MAX_FORM_BYTES ((size_t)4 << 20)

/* No file has such a name by chance. */
bool ebb_answer_form_is_schema(const char *word)
{
    word += strspn(word, " \t\r\n");
    return *word == '{' || strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

static ebb_status read_form(const char *word, ebb_buf *out, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = ebb_path_expand(word, &path, err);

    if (st == EBB_OK)
        st = ebb_file_slurp(ebb_buf_text(&path), MAX_FORM_BYTES, out, err);
    ebb_buf_fini(&path);
    return st;
}

/* It is compiled again where it is used; errors in it are reported before that. */
static ebb_status check_grammar(const char *name, const ebb_buf *text, ebb_error *err)
{
    ebb_grammar *g;
    ebb_error why = { 0 };
    ebb_status st = ebb_grammar_new(ebb_buf_text(text), text->len, &g, &why);

    ebb_grammar_free(g);
    return st == EBB_OK ? st : EBB_FAIL(err, st, "%.100s: %s", name, why.msg);
}

ebb_status ebb_answer_form_schema(const char *word, const char *what, ebb_buf *grammar, ebb_error *err)
{
    const char *name = ebb_answer_form_is_schema(word) ? what : word;
    ebb_buf text = { 0 };
    ebb_error why = { 0 };
    ebb_status st = EBB_OK;

    if (ebb_answer_form_is_schema(word) ? !ebb_buf_adds(&text, word) : (st = read_form(word, &text, err)) != EBB_OK) {
        ebb_buf_fini(&text);
        return st != EBB_OK ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for the schema");
    }
    st = ebb_schema_grammar_of_text(ebb_buf_text(&text), text.len, grammar, &why);
    ebb_buf_fini(&text);
    return st == EBB_OK ? check_grammar(name, grammar, err) : EBB_FAIL(err, st, "%.100s: %s", name, why.msg);
}

/* Only a comment of what is compiled can have bytes that are no UTF-8; sessions keep the grammar as JSON. */
static ebb_status make_valid(ebb_buf *grammar, ebb_error *err)
{
    ebb_buf valid = { 0 };

    if (!ebb_utf8_add_valid(&valid, ebb_buf_text(grammar), grammar->len)) {
        ebb_buf_fini(&valid);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    }
    ebb_buf_fini(grammar);
    *grammar = valid;
    return EBB_OK;
}

ebb_status ebb_answer_form_grammar(const char *path, ebb_buf *grammar, ebb_error *err)
{
    ebb_status st = read_form(path, grammar, err);

    if (st == EBB_OK && memchr(ebb_buf_text(grammar), '\0', grammar->len))
        st = EBB_FAIL(err, EBB_FORMAT, "%.100s: binary, not a grammar", path);
    if (st == EBB_OK)
        st = check_grammar(path, grammar, err);
    return st == EBB_OK ? make_valid(grammar, err) : st;
}
