/* /schema, /grammar: the form that answers have. */

#include "command/slash_impl.h"

static ebb_status set_form(ebb_frontend *f, bool is_schema, const char *arg, ebb_error *err)
{
    if (*arg)
        return ebb_chat_set_form(f->chat, is_schema, arg, err);
    ebb_chat_tell_form(f->chat);
    return EBB_OK;
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
