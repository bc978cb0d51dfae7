/* /pull: a model from the hub, while the chat goes on. */
#include <string.h>

#include "command/pull_follow.h"
#include "command/slash_impl.h"
#include "models/models.h"
#include "models/suggestions.h"

/* What is fetched, what was begun once, and how to begin. */
static ebb_status say_pull_state(ebb_frontend *f, ebb_error *err)
{
    ebb_model_file *files;
    ebb_buf out = { 0 };
    size_t n;
    ebb_status st = ebb_models_find_partial(&files, &n, err);

    if (st != EBB_OK)
        return st;
    if (ebb_pull_process_is_running(&f->pull)) {
        ebb_pull_follow_figures(&f->pull, &out);
        ebb_buf_adds(&out, "; /pull stop stops it and keeps what has arrived\n");
    }
    for (size_t i = 0; i < n && !ebb_pull_process_is_running(&f->pull); i++)
        ebb_buf_addf(&out, "begun: %s\n", ebb_models_name(&files[i]));
    ebb_buf_adds(&out, "/pull OWNER/NAME[:TYPE] fetches a model from huggingface.co, without a type the one that "
                       "suits best; "
                       "`ebb pull --suggest` in a shell names some");
    f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
    ebb_models_free(files, n);
    return EBB_OK;
}

ebb_status ebb_slash_pull(ebb_frontend *f, const char *arg, ebb_error *err)
{
    if (*arg == '\0')
        return say_pull_state(f, err);
    if (strcmp(arg, "stop") != 0)
        return ebb_pull_follow_start(f, arg, err);
    return ebb_pull_follow_stop(f) ? EBB_OK : EBB_FAIL(err, EBB_NOTFOUND, "nothing is being fetched");
}

void ebb_complete_pull(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_suggestion s;

    (void)typed;
    if (ebb_pull_process_is_running(&f->pull))
        fn(arg, "stop", "stop it, and keep what has arrived");
    for (size_t i = 0; ebb_suggestion_at(i, &s); i++)
        fn(arg, s.source, s.what);
}
