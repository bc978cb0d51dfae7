/* The next prompt: old ids and the ids of what is new (prompt.h).  prompt_reuse.c says how far old ids are reused,
 * prompt_ids.c makes the others, prompt_system.c counts what stands in front of the first question. */
#include "prompt/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "prompt/prompt_build.h"
#include "tree/thought.h"

bool ebb_prompt_message_init(ebb_prompt_message *out, ebb_role role, const char *text, size_t n)
{
    char *copy = ebb_text_copy(text, n);

    if (!copy)
        return false;
    *out = (ebb_prompt_message){ .role = role, .text = copy, .n_text = n };
    return true;
}

/* -- What to say ---------------------------------------------------------------------------------- */

static void compare_old(ebb_prompt_build *w, const ebb_message *const *messages, size_t n)
{
    ebb_prompt *o = w->out;
    bool same = true;

    for (size_t i = 0; i < n; i++) {
        o->n_old += messages[i]->n_ids;
        for (size_t k = 0; same && k < messages[i]->n_ids; k++) {
            same = o->n_kept < o->n_ids && o->ids[o->n_kept] == messages[i]->ids[k];
            o->n_kept += same;
        }
    }
    o->rewritten = o->n_kept + w->drops_end_token < o->n_old;
}

/* Does the rendering have s[0..n) within what it prints of message i? */
static bool prints_of(const ebb_prompt_build *w, size_t i, const char *s, size_t n)
{
    for (size_t k = 0; k < w->now.n_ranges; k++) {
        ebb_template_range r = w->now.ranges[k];
        if (r.message == i && memmem(w->now.text.data + r.begin, r.end - r.begin, s, n))
            return true;
    }
    return false;
}

/* Why old ids could not be reused, as a text for the user. */
static const char *why_rewritten(const ebb_prompt_build *w)
{
    for (size_t i = 0; i < w->job.n; i++) {
        const ebb_message *m = w->job.messages[i];
        ebb_thought t = ebb_message_thought(m);

        while (t.end > t.start && ebb_prompt_is_space(m->text[t.end - 1]))
            t.end--;
        if (t.end > t.start)
            return prints_of(w, i, m->text + t.start, t.end - t.start) ? "prints earlier turns in another way"
                                                                        : "drops the thinking of earlier answers";
    }
    return "prints earlier turns in another way";
}

/* Ids of messages that had some, and are made anew. */
static size_t count_again(const ebb_prompt *o, const ebb_message *const *messages, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += messages[i]->n_ids ? o->n_ids_of[i] : 0;
    return sum > o->n_kept ? sum - o->n_kept : 0;
}

static void write_notice(ebb_prompt_build *w, size_t n_again)
{
    ebb_prompt *o = w->out;

    if (o->rewritten)
        snprintf(o->notice, sizeof o->notice, "%zu tokens again: the chat template %s", n_again, why_rewritten(w));
    else if (w->job.merge_system && w->n_reused == 0)
        snprintf(o->notice, sizeof o->notice,
                 "the chat template takes no system message: its text goes before the first question");
}

/* What is printed behind the last question, in ids. */
static size_t count_frame(const ebb_prompt_build *w)
{
    size_t last = w->job.n, end = last ? ebb_rendering_end_of(&w->now, last - 1) : 0, n = 0;
    ebb_tokenize_opts o = ebb_prompt_tokenize_opts(w, NULL, 0);

    if (w->open || end == 0 || w->job.messages[last - 1]->role != EBB_ROLE_USER ||
        ebb_model_tokenize_with(w->p->m, ebb_buf_text(&w->now.text) + end, w->now.text.len - end, &o, NULL, 0, &n,
                                NULL) != EBB_OK)
        return 0;
    return n < w->out->n_ids ? n : 0;
}

/* -- The prompt -------------------------------------------------------------------------------------- */

static ebb_status build_prompt(ebb_prompt_build *w, ebb_error *err)
{
    size_t k = w->job.n;
    ebb_status st = ebb_prompt_render_or_merge(w->p, &w->job, &w->now, err);

    if (st != EBB_OK)
        return st;
    while (k > 0 && w->job.messages[k - 1]->n_ids == 0)
        k--;
    st = k > 0 ? ebb_prompt_find_reuse_end(w, k - 1, err) : EBB_OK;
    if (st == EBB_OK)
        st = ebb_prompt_add_reused(w, err);
    if (st == EBB_OK)
        st = ebb_prompt_add_new(w, err);
    if (st == EBB_OK && w->job.opts->counts_system)
        st = ebb_prompt_count_system(w, err);
    return st == EBB_OK ? ebb_prompt_add_open(w, err) : st;
}

ebb_status ebb_prompt_delta(const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                            const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err)
{
    static const ebb_prompt_opts defaults = { 0 };
    ebb_prompt_build w = { .p = p, .out = out,
                           .job = { .messages = messages, .n = n, .opts = opts ? opts : &defaults } };
    ebb_status st;

    memset(out, 0, sizeof *out);
    out->n_ids_of = calloc(n + 1, sizeof *out->n_ids_of);
    if (!out->n_ids_of)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    if (n > 0 && messages[n - 1]->role == EBB_ROLE_ASSISTANT) {
        w.open = messages[n - 1];
        w.job.n--;
    }
    st = build_prompt(&w, err);
    if (st == EBB_OK) {
        compare_old(&w, messages, n);
        write_notice(&w, count_again(out, messages, n));
        out->n_suffix = count_frame(&w);
    } else {
        ebb_prompt_fini(out);
    }
    ebb_rendering_fini(&w.now);
    return st;
}

bool ebb_prompt_opens_thought(const ebb_model *m, const int32_t *ids, size_t n)
{
    enum { MOST_IDS = 16, MOST_BYTES = 64 };     /* it is a token, or some */
    char text[MOST_IDS * MOST_BYTES];
    size_t len = 0;

    for (size_t i = n < MOST_IDS ? 0 : n - MOST_IDS; i < n; i++) {
        size_t n_piece = ebb_model_piece(m, ids[i], true, text + len, MOST_BYTES);
        len += n_piece < MOST_BYTES ? n_piece : MOST_BYTES;
    }
    return ebb_thought_opened_by(text, len) != NULL;
}
