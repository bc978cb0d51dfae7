/* Names of roles, finish reasons and policies; truncation notes (message.h). */
#include "tree/message.h"

#include <stdlib.h>
#include <string.h>

const char *const ebb_overflow_policy_names[] = {
    [EBB_OVERFLOW_ASK] = "ask", [EBB_OVERFLOW_FORGET] = "forget", [EBB_OVERFLOW_COMPACT] = "compact",
    [EBB_OVERFLOW_GROW] = "grow", [EBB_OVERFLOW_STOP] = "stop", [EBB_OVERFLOW_SLIDE] = "slide", NULL,
};

const char *ebb_role_name(ebb_role role)
{
    static const char *const names[] = {
        [EBB_ROLE_SYSTEM] = "system", [EBB_ROLE_USER] = "user", [EBB_ROLE_ASSISTANT] = "assistant",
        [EBB_ROLE_NOTE] = "note",
    };

    return names[role];
}

static const char *const finish_names[] = {
    [EBB_FINISH_NONE] = "none", [EBB_FINISH_STOP] = "stop", [EBB_FINISH_LENGTH] = "length",
    [EBB_FINISH_CANCELED] = "cancelled", [EBB_FINISH_ERROR] = "error",
    [EBB_FINISH_CUT_OFF] = "cut off",
};

const char *ebb_finish_name(ebb_finish finish)
{
    return finish_names[finish];
}

bool ebb_finish_parse(const char *name, ebb_finish *out)
{
    for (size_t i = 0; i < sizeof finish_names / sizeof *finish_names; i++)
        if (strcmp(finish_names[i], name) == 0) {
            *out = (ebb_finish)i;
            return true;
        }
    return false;
}

ebb_finish ebb_message_finish_left(const ebb_message *m)
{
    return m->finish == EBB_FINISH_NONE && m->n_text > 0 ? EBB_FINISH_CUT_OFF : m->finish;
}

bool ebb_message_omits(const ebb_message *note, size_t i)
{
    const ebb_truncation *l = note ? &note->truncation : NULL;

    if (!l || i >= l->first)
        return false;
    for (uint32_t k = 0; k < l->n_kept; k++)
        if (l->kept[k] == i)
            return false;
    return true;
}

ebb_thought_begin ebb_message_thought_begin(const ebb_message *m)
{
    return m->n_sample_records > 0 ? m->sample_records[0].begin : EBB_THOUGHT_UNSURE;
}

ebb_thought ebb_message_thought(const ebb_message *m)
{
    ebb_thought t = { 0 };

    if (m->role == EBB_ROLE_ASSISTANT && m->n_text > 0)
        t = ebb_thought_find(m->text, m->n_text, ebb_message_thought_begin(m), m->finish != EBB_FINISH_NONE);
    if (t.is_open && !t.in_channels && m->finish == EBB_FINISH_STOP)
        t = (ebb_thought){ 0 };
    return t;
}

const char *ebb_message_behind_thought(const char *text, size_t n)
{
    ebb_thought t = n > 0 ? ebb_thought_find(text, n, EBB_THOUGHT_UNSURE, true) : (ebb_thought){ 0 };

    return t.body > 0 ? text + t.body : NULL;
}

bool ebb_message_add_sample_record(ebb_message *m, const ebb_sample_record *d)
{
    ebb_sample_record *p = realloc(m->sample_records, (m->n_sample_records + 1) * sizeof *p);

    if (!p)
        return false;
    m->sample_records = p;
    m->sample_records[m->n_sample_records++] = *d;
    return true;
}

void ebb_message_drop_sample_record(ebb_message *m)
{
    free(m->sample_records[--m->n_sample_records].grammar);
}

void ebb_message_keep_begin(ebb_message *m)
{
    ebb_thought_begin begin = ebb_message_thought_begin(m);

    while (m->n_sample_records > (begin != EBB_THOUGHT_UNSURE))
        ebb_message_drop_sample_record(m);
    if (m->n_sample_records > 0) {
        free(m->sample_records[0].grammar);
        m->sample_records[0] = (ebb_sample_record){ .begin = begin };
    }
}

bool ebb_message_is_sampled(const ebb_message *m)
{
    return m->n_sample_records > 0 && m->sample_records[0].sampling.seed != 0;
}

bool ebb_message_copy_begin(ebb_message *m, const ebb_message *from)
{
    ebb_sample_record d = { .begin = ebb_message_thought_begin(from) };

    return d.begin == EBB_THOUGHT_UNSURE || ebb_message_add_sample_record(m, &d);
}
