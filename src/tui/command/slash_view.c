/* Commands that change the view, not the conversation (slash_impl.h). */
#include "command/slash_impl.h"

/* Where a front end prints lines, and never draws them anew. */
static const char *why_not_plain(ebb_view_act act)
{
    return act == EBB_VIEW_FIND ? "plain mode has no search in the conversation; /search WORDS looks in all of them"
           : act == EBB_VIEW_EDITING ? "in plain mode the terminal edits the line; this is for the full screen"
                                     : "plain mode has only one view; this is for the full screen";
}

static ebb_status change_view(ebb_frontend *f, ebb_view_act act, const char *arg, ebb_error *err)
{
    if (!f->view)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s", why_not_plain(act));
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
