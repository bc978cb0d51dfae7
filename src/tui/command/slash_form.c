/* /schema, /grammar: the form that answers have. */
#include <string.h>

#include "command/slash_impl.h"

static void say_form(ebb_frontend *f)
{
    bool is_schema;
    const char *name = ebb_chat_form(f->chat, &is_schema);
    const char *what = is_schema ? "JSON under the schema" : "of the grammar";

    if (!name)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE,
                          "answers have no form; /schema FILE makes them JSON, /grammar FILE texts of a grammar");
    else
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "answers are %s%s%.200s from here on; /%s off frees them", what,
                          *name ? " " : "", name, is_schema ? "schema" : "grammar");
}

static ebb_status set_form(ebb_frontend *f, bool is_schema, const char *arg, ebb_error *err)
{
    ebb_status st = *arg ? ebb_chat_set_form(f->chat, is_schema, arg, err) : EBB_OK;

    if (st == EBB_OK)
        say_form(f);
    return st;
}

ebb_status ebb_slash_schema(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return set_form(f, true, arg, err);
}

ebb_status ebb_slash_grammar(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return set_form(f, false, arg, err);
}

void ebb_complete_form(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    bool is_schema;

    if (ebb_chat_form(f->chat, &is_schema))
        fn(arg, "off", "answers are free again");
    ebb_complete_file(f, typed, fn, arg);
}
