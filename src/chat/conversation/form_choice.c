/* The form of a session's answers (form_choice.h). */
#include "conversation/form_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "store/title.h"

void ebb_form_choice_fini(ebb_form_choice *f)
{
    free(f->grammar);
    *f = (ebb_form_choice){ 0 };
}

json_t *ebb_form_choice_json(const ebb_form_choice *f)
{
    return f->grammar ? json_pack("{s:s, s:s, s:s}", "kind", f->is_schema ? "schema" : "grammar", "name", f->name,
                                  "grammar", f->grammar)
                      : NULL;
}

void ebb_form_choice_read(ebb_form_choice *f, const json_t *o)
{
    const char *grammar = json_string_value(json_object_get(o, "grammar"));
    const char *kind = json_string_value(json_object_get(o, "kind"));
    const char *name = json_string_value(json_object_get(o, "name"));

    ebb_form_choice_fini(f);
    f->grammar = grammar ? strdup(grammar) : NULL;
    f->is_schema = kind && strcmp(kind, "schema") == 0;
    if (name)
        ebb_title_read(name, strlen(name), f->name, sizeof f->name);
}

const char *ebb_form_choice_grammar(const ebb_chat *c)
{
    return c->turn.grammar ? c->turn.grammar : c->settings.form.grammar;
}

ebb_thinking ebb_form_choice_thinking(const ebb_chat *c)
{
    return ebb_form_choice_grammar(c) ? EBB_THINKING_OFF : c->settings.thinking;
}
