/* The form of a session's answers, as the user asks for it (chat.h). */
#include <stdio.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "schema/answer_form.h"

enum { MAX_KEPT = 256 << 10 };   /* of a grammar: it is saved with the session, each time */

/* Some engines elsewhere take no grammar, and say so before a question is lost on them. */
static ebb_status check_engine(const ebb_chat *c, ebb_error *err)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);

    if (facts && !facts->takes_grammar)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) takes no grammar; /engine here has this process answer",
                        facts->name, facts->kind);
    return EBB_OK;
}

ebb_status ebb_chat_set_form(ebb_chat *c, bool is_schema, const char *word, ebb_error *err)
{
    ebb_buf grammar = { 0 };
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK && strcmp(word, "off") != 0)
        st = check_engine(c, err);
    if (st == EBB_OK && strcmp(word, "off") != 0)
        st = is_schema ? ebb_answer_form_schema(word, "the schema", &grammar, err)
                       : ebb_answer_form_grammar(word, &grammar, err);
    if (st == EBB_OK && grammar.len > MAX_KEPT)
        st = EBB_FAIL(err, EBB_LIMIT, "its grammar has %zu KiB; a session keeps %d, `ebb run` takes more",
                      grammar.len >> 10, MAX_KEPT >> 10);
    if (st == EBB_OK && grammar.failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    if (st == EBB_OK) {
        ebb_form_choice *f = &c->settings.form;

        ebb_form_choice_fini(f);
        f->is_schema = is_schema;
        f->grammar = grammar.len ? ebb_buf_take(&grammar) : NULL;
        if (f->grammar && !(is_schema && ebb_answer_form_is_schema(word)))
            snprintf(f->name, sizeof f->name, "%s", word);
        ebb_chat_save(c, false);
    }
    ebb_buf_fini(&grammar);
    return st;
}

const char *ebb_chat_form(const ebb_chat *c, bool *is_schema)
{
    *is_schema = c->settings.form.is_schema;
    return c->settings.form.grammar ? c->settings.form.name : NULL;
}
