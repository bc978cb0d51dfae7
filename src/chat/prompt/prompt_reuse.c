/* How far the ids of earlier turns are reused (prompt_build.h).
 *
 * Two renderings are compared: that of the messages with old ids, and that of the whole conversation now.  Old ids are
 * reused as far as the two agree, up to the end of a turn: the cut. */
#include "prompt/prompt_build.h"

/* Reuse the old ids up to and including answer a, whose text ends at `at`.  If its ids have
 * the end token, the text that the template prints for that token is skipped. */
static void reuse_through(ebb_prompt_build *w, size_t a, size_t at)
{
    const ebb_message *m = w->job.messages[a];
    ebb_token last = m->ids[m->n_ids - 1];
    char text[128];
    size_t n;

    w->n_reused = a + 1;
    w->reuse_end = at;
    w->drops_end_token = 0;
    if (!ebb_model_is_eog(w->p->m, last))
        return;
    n = ebb_model_piece(w->p->m, last, true, text, sizeof text);
    at = ebb_prompt_skip_space(&w->now.text, at);
    if (n <= sizeof text && ebb_prompt_starts_at(&w->now.text, at, text, n))
        w->reuse_end = at + n;
    else
        w->drops_end_token = 1;
}

/* Bytes of `now` that agree with `old`, where white space counts as much as none: some
 * templates print other blanks before an answer than around it later, and the ids
 * are what the model has seen.  *whole: all of `old` agrees. */
static size_t common_bytes(const ebb_buf *old, const ebb_buf *now, bool *whole)
{
    size_t i = 0, n = 0;

    for (;;) {
        while (i < old->len && n < now->len && old->data[i] == now->data[n]) {
            i++;
            n++;
        }
        size_t next_i = ebb_prompt_skip_space(old, i), next_n = ebb_prompt_skip_space(now, n);
        *whole = next_i == old->len;
        if (*whole || next_n == now->len || old->data[next_i] != now->data[next_n])
            return n;
        i = next_i;
        n = next_n;
    }
}

/* The end of message a's text if the rendering has that text at `at`, white space around it
 * aside, which templates may strip.  Else 0. */
static size_t match_answer_text(const ebb_prompt_build *w, size_t a, size_t at)
{
    const ebb_message *m = w->job.messages[a];
    size_t from = 0, to = m->n_text, begin = ebb_prompt_skip_space(&w->now.text, at);

    while (from < to && ebb_prompt_is_space(m->text[from]))
        from++;
    while (to > from && ebb_prompt_is_space(m->text[to - 1]))
        to--;
    if (from == to)
        return at;
    if (!ebb_prompt_starts_at(&w->now.text, begin, m->text + from, to - from))
        return 0;
    begin += to - from;
    return ebb_prompt_starts_at(&w->now.text, begin, m->text + to, m->n_text - to) ? begin + m->n_text - to : begin;
}

/* The last answer whose turn ends within the first `same` bytes. */
static void reuse_earlier(ebb_prompt_build *w, size_t n, size_t same)
{
    for (size_t a = n; a > 0; a--) {
        const ebb_message *m = w->job.messages[a - 1];
        size_t end = m->role == EBB_ROLE_ASSISTANT && m->n_ids ? ebb_rendering_end_of(&w->now, a - 1) : 0;
        if (end == 0 || end > same)
            continue;
        reuse_through(w, a - 1, end);
        if (w->reuse_end <= same)
            return;
    }
    w->n_reused = w->reuse_end = w->drops_end_token = 0;
}

ebb_status ebb_prompt_find_reuse_end(ebb_prompt_build *w, size_t k, ebb_error *err)
{
    bool answered = w->job.messages[k]->role == EBB_ROLE_ASSISTANT;
    size_t n_old = answered ? k : k + 1, same, end;
    ebb_render_job job = w->job;
    ebb_rendering old = { 0 };
    bool agrees = n_old == w->job.n;             /* nothing is new */
    ebb_status st = EBB_OK;

    same = w->now.text.len;
    if (!agrees) {
        job.n = n_old;
        same = 0;
        st = ebb_prompt_render(w->p, &job, &old, NULL);
        if (st == EBB_OK && old.text.len > 0)
            same = common_bytes(&old.text, &w->now.text, &agrees);
        ebb_rendering_fini(&old);
    }
    if (st == EBB_NOMEM)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    if (st == EBB_CANCELED)
        return EBB_FAIL(err, EBB_CANCELED, "stopped while the prompt was rendered");
    if (!agrees) {
        reuse_earlier(w, n_old, same);
        return EBB_OK;
    }
    w->n_reused = n_old;
    w->reuse_end = same;
    end = answered ? match_answer_text(w, k, same) : 0;
    if (end > 0)
        reuse_through(w, k, end);
    return EBB_OK;
}
