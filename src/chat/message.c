/* Names of roles, endings and policies, and what a note leaves out (message.h). */
#include "message.h"

#include <stdlib.h>

const char *const ebb_overflow_names[] = {
    [EBB_OVERFLOW_ASK] = "ask", [EBB_OVERFLOW_FORGET] = "forget", [EBB_OVERFLOW_COMPACT] = "compact", [EBB_OVERFLOW_GROW] = "grow",
    [EBB_OVERFLOW_STOP] = "stop", NULL,
};

const char *ebb_role_name(ebb_role role)
{
    static const char *const names[] = {
        [EBB_ROLE_SYSTEM] = "system", [EBB_ROLE_USER] = "user", [EBB_ROLE_ASSISTANT] = "assistant",
        [EBB_ROLE_NOTE] = "note",
    };

    return names[role];
}

const char *ebb_finish_name(ebb_finish finish)
{
    static const char *const names[] = {
        [EBB_FINISH_NONE] = "none", [EBB_FINISH_STOP] = "stop", [EBB_FINISH_LENGTH] = "length",
        [EBB_FINISH_CANCELED] = "cancelled", [EBB_FINISH_ERROR] = "error",
    };

    return names[finish];
}

bool ebb_message_leaves_out(const ebb_message *note, size_t i)
{
    const ebb_left_out *l = note ? &note->left_out : NULL;

    if (!l || i >= l->first)
        return false;
    for (uint32_t k = 0; k < l->n_kept; k++)
        if (l->kept[k] == i)
            return false;
    return true;
}

bool ebb_message_add_draw(ebb_message *m, const ebb_draw *d)
{
    ebb_draw *p = realloc(m->draws, (m->n_draws + 1) * sizeof *p);

    if (!p)
        return false;
    m->draws = p;
    m->draws[m->n_draws++] = *d;
    return true;
}
