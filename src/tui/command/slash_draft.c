/* /draft and /best: the draft model of speculative decoding, and a better file for one answer. */
#include <string.h>

#include "command/slash_impl.h"
#include "models/models.h"
#include "text/humanize.h"

static void add_rate(ebb_buf *out, const ebb_stats *s)
{
    ebb_humanize_count(out, s->n_accepted);
    ebb_buf_adds(out, " of ");
    ebb_humanize_count(out, s->n_drafted);
    ebb_buf_adds(out, " draft tokens were accepted");
    if (s->n_branched == 0)
        return;
    ebb_buf_adds(out, ", ");
    ebb_humanize_count(out, s->n_branched);
    ebb_buf_adds(out, " of them in branches of a tree");
}

static void say_draft(ebb_frontend *f)
{
    const char *name = ebb_chat_draft(f->chat);
    ebb_buf out = { 0 };
    ebb_stats s;

    ebb_chat_stats(f->chat, &s);
    if (!name) {
        ebb_buf_adds(&out, "no draft model; /draft NAME uses one, /draft auto the best one here, if any helps");
        if (s.n_drafted > 0) {                   /* from the text, or by the file's draft head */
            ebb_buf_adds(&out, "; without one ");
            add_rate(&out, &s);
        }
    } else if (s.draft_bytes == 0) {
        ebb_buf_addf(&out, "%s is not loaded: it cannot draft for this model, or would not help; /plan says more",
                     name);
    } else {
        ebb_buf_addf(&out, "%s drafts, in ", name);
        ebb_humanize_bytes(&out, s.draft_bytes);
        ebb_buf_adds(&out, " of memory; ");
        add_rate(&out, &s);
        ebb_buf_adds(&out, "; /draft off turns it off");
    }
    f->say(f, EBB_SAY_NOTICE, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
}

ebb_status ebb_slash_draft(ebb_frontend *f, const char *arg, ebb_error *err)
{
    bool is_off = strcmp(arg, "off") == 0 || strcmp(arg, "none") == 0;

    if (*arg && is_off && !ebb_chat_draft(f->chat) && !ebb_chat_engine(f->chat))
        return EBB_FAIL(err, EBB_USAGE, "there is no draft model");
    if (*arg || ebb_chat_engine(f->chat))        /* a server's is refused there, whatever this ebb was started with */
        return ebb_chat_set_draft(f->chat, is_off ? NULL : arg, err);
    if (!ebb_chat_is_ready(f->chat))
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    say_draft(f);
    return EBB_OK;
}

void ebb_complete_draft(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    fn(arg, EBB_MODELS_AUTO, "the best one found here");
    fn(arg, "off", "no draft model");
    ebb_complete_model(f, typed, fn, arg);
}

ebb_status ebb_slash_best(ebb_frontend *f, const char *arg, ebb_error *err)
{
    if (strcmp(arg, "?") == 0)
        return ebb_chat_price_better(f->chat, err);
    return ebb_chat_answer_better(f->chat, arg, strlen(arg), err);
}
