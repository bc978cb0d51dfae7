/* Commands that change what is seen, not what was said (commands_priv.h). */
#include "commands_priv.h"

#include <string.h>

static ebb_status view(ebb_front *f, ebb_view_act act, const char *arg, ebb_error *err)
{
    if (!f->view)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "plain text has no other view; this is for the full screen");
    return f->view(f, act, arg, err);
}

ebb_status ebb_cmd_raw(ebb_front *f, const char *arg, ebb_error *err)
{
    return view(f, EBB_VIEW_RAW, arg, err);
}

ebb_status ebb_cmd_bare(ebb_front *f, const char *arg, ebb_error *err)
{
    return view(f, EBB_VIEW_BARE, arg, err);
}

ebb_status ebb_cmd_find(ebb_front *f, const char *arg, ebb_error *err)
{
    if (*arg == '\0')
        return EBB_FAIL(err, EBB_USAGE, "/find TEXT: which text?  Ctrl-S finds while you type");
    return view(f, EBB_VIEW_FIND, arg, err);
}

ebb_status ebb_cmd_editing(ebb_front *f, const char *arg, ebb_error *err)
{
    return view(f, EBB_VIEW_EDITING, arg, err);
}

void ebb_complete_editing(ebb_front *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    (void)typed;
    fn(arg, "emacs");
    fn(arg, "vi");
}
