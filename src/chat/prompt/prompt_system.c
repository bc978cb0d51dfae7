/* What stands in front of the first question, in ids (prompt_build.h). */
#include "prompt/prompt_build.h"

/* Two turns, behind the system message if there is one. */
static ebb_status render_two_turns(const ebb_prompt_build *w, bool has_system, ebb_rendering *out)
{
    char text[] = "1";
    const ebb_message user = { .role = EBB_ROLE_USER, .text = text, .n_text = 1 };
    const ebb_message answer = { .role = EBB_ROLE_ASSISTANT, .text = text, .n_text = 1 };
    const ebb_message *const turns[] = { w->job.messages[0], &user, &answer, &user };
    const ebb_prompt_opts *o = w->job.opts, opts = { .now_ms = o->now_ms, .thinking = o->thinking, .stop = o->stop,
                                                     .stop_arg = o->stop_arg };
    ebb_render_job job = { .messages = turns + !has_system, .n = 3u + has_system, .opts = &opts };

    return ebb_prompt_render(w->p, &job, out, NULL);
}

/* Ids of r.text[from..to), in which is no answer, behind BOS if that is the beginning. */
static ebb_status ids_of_part(const ebb_prompt_build *w, const ebb_rendering *r, size_t from, size_t to,
                              ebb_prompt *out, ebb_error *err)
{
    ebb_prompt_build part = { .p = w->p, .job.opts = w->job.opts, .now = *r, .out = out };
    ebb_status st = from == 0 ? ebb_prompt_add_bos(&part, err) : EBB_OK;

    if (st == EBB_OK && from < to)
        st = ebb_prompt_add_part(&part, from, to, err);
    if (from == 0)
        ebb_prompt_drop_second_bos(&part);
    return st;
}

/* How many ids both end with. */
static size_t count_common_end(const ebb_prompt *a, const ebb_prompt *b)
{
    size_t n = 0;

    while (n < a->n_ids && n < b->n_ids && a->ids[a->n_ids - 1 - n] == b->ids[b->n_ids - 1 - n])
        n++;
    return n;
}

static bool is_blank_token(const ebb_prompt_build *w, int32_t id)
{
    char text[32];
    size_t n = ebb_model_piece(w->p->m, id, true, text, sizeof text), i = 0;

    while (i < n && n <= sizeof text && ebb_prompt_is_space(text[i]))
        i++;
    return i == n;
}

/* A token that begins or ends a part of the conversation. */
static bool is_mark_at(const ebb_prompt_build *w, const ebb_prompt *p, size_t i)
{
    return i < p->n_ids && ebb_model_is_control(w->p->m, p->ids[i]);
}

/* The first of ids[at..n) that is not blank; n: none. */
static size_t skip_blank_tokens(const ebb_prompt_build *w, const ebb_prompt *p, size_t at)
{
    while (at < p->n_ids && is_blank_token(w, p->ids[at]))
        at++;
    return at;
}

/* ids[0..n) end with words: the token that ends their turn, behind them, goes with them.  It is one that ends a model's
 * turn, or has the one that begins the next behind it.  0: none is there. */
static size_t behind_closing_token(const ebb_prompt_build *w, const ebb_prompt *p, size_t n)
{
    size_t at = skip_blank_tokens(w, p, n), next = at < p->n_ids ? skip_blank_tokens(w, p, at + 1) : at;

    if (!is_mark_at(w, p, at))
        return 0;
    return ebb_model_is_eog(w->p->m, p->ids[at]) || is_mark_at(w, p, next) ? at + 1 : 0;
}

/* p: the ids in front of the question, of which ids[0..n) are in front of its turn. */
static void count_front(ebb_prompt_build *w, const ebb_prompt *p, size_t n, bool has_system)
{
    ebb_prompt *o = w->out;
    size_t n_words = 0, last = n;

    for (size_t i = 0; i < n; i++)
        n_words += !is_mark_at(w, p, i) && !is_blank_token(w, p->ids[i]);
    o->has_open_system = n_words > 0 || has_system;
    if (!o->has_open_system)
        return;                                  /* BOS at most */
    while (last > 0 && is_blank_token(w, p->ids[last - 1]))
        last--;
    if (last == 0 || !is_mark_at(w, p, last - 1)) {
        last = behind_closing_token(w, p, n);
        last = last || !is_mark_at(w, p, n) ? last : n;
    }
    o->has_open_system = last == 0 || last > o->n_ids || memcmp(p->ids, o->ids, last * sizeof *o->ids) != 0;
    o->n_system = o->has_open_system ? 0 : last;
}

/* A system message, or a text of the template's own, ends with the token that ends its turn, or before one that begins
 * the next: the question's turn begins with what stands in front of a second question, too.  Where it is part of a
 * question's turn, it has no end of its own. */
ebb_status ebb_prompt_count_system(ebb_prompt_build *w, ebb_error *err)
{
    bool has_system = w->job.n > 0 && w->job.messages[0]->role == EBB_ROLE_SYSTEM;
    ebb_rendering r = { 0 };
    ebb_prompt front = { 0 }, between = { 0 };
    ebb_status st = EBB_OK;

    w->out->has_open_system = w->job.n > 0;
    if (w->job.n > 0 && !w->job.merge_system && render_two_turns(w, has_system, &r) == EBB_OK) {
        st = ids_of_part(w, &r, 0, ebb_rendering_begin_of(&r, has_system), &front, err);
        if (st == EBB_OK)
            st = ids_of_part(w, &r, ebb_rendering_end_of(&r, has_system + 1u),
                             ebb_rendering_begin_of(&r, has_system + 2u), &between, err);
        if (st == EBB_OK)
            count_front(w, &front, front.n_ids - count_common_end(&front, &between), has_system);
    }
    ebb_prompt_fini(&front);
    ebb_prompt_fini(&between);
    ebb_rendering_fini(&r);
    return st;
}
