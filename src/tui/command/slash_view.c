/* Commands that change the view, not the conversation (slash_impl.h). */
#include "command/slash_impl.h"

static ebb_status change_view(ebb_frontend *f, ebb_view_act act, const char *arg, ebb_error *err)
{
    if (!f->view)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "plain mode has only one view; this is for the full screen");
    return f->view(f, act, arg, err);
}

ebb_status ebb_slash_raw(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return change_view(f, EBB_VIEW_RAW, arg, err);
}

ebb_status ebb_slash_bare(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return change_view(f, EBB_VIEW_BARE, arg, err);
}

ebb_status ebb_slash_find(ebb_frontend *f, const char *arg, ebb_error *err)
{
    if (*arg == '\0')
        return EBB_FAIL(err, EBB_USAGE, "/find TEXT: which text?  Ctrl-S finds while you type");
    return change_view(f, EBB_VIEW_FIND, arg, err);
}

ebb_status ebb_slash_editing(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return change_view(f, EBB_VIEW_EDITING, arg, err);
}

void ebb_complete_editing(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    (void)typed;
    fn(arg, "emacs", "as in a shell");
    fn(arg, "vi", "insert and normal mode");
}
