/* The ids of a prompt: those that are reused, and those of what is new (prompt_build.h). */
#include <stdlib.h>

#include "prompt/prompt_build.h"
#include "tree/thought.h"

void ebb_prompt_fini(ebb_prompt *p)
{
    for (size_t i = 0; i < p->n_messages; i++)
        free(p->messages[i].text);
    free(p->messages);
    free(p->ids);
    free(p->n_ids_of);
    memset(p, 0, sizeof *p);
}

/* -- Ids of texts ------------------------------------------------------------------------- */

static bool reserve_ids(ebb_prompt_build *w, size_t more)
{
    size_t need = w->out->n_ids + more, cap = need + need / 2 + 64;
    int32_t *grown;

    if (need <= w->cap)
        return true;
    grown = realloc(w->out->ids, cap * sizeof *grown);
    if (!grown)
        return false;
    w->out->ids = grown;
    w->cap = cap;
    return true;
}

static ebb_status append_ids(ebb_prompt_build *w, const int32_t *ids, size_t n, ebb_error *err)
{
    if (!reserve_ids(w, n))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    if (n)
        memcpy(w->out->ids + w->out->n_ids, ids, n * sizeof *ids);
    w->out->n_ids += n;
    return EBB_OK;
}

ebb_tokenize_opts ebb_prompt_tokenize_opts(const ebb_prompt_build *w, const ebb_text_range *quoted, size_t n_quoted)
{
    return (ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL, .quoted = quoted, .n_quoted = n_quoted,
                                .stop = w->job.opts->stop, .stop_arg = w->job.opts->stop_arg };
}

static ebb_status tokenize_text(ebb_prompt_build *w, const char *text, size_t n, ebb_tokenize_opts o, ebb_error *err)
{
    size_t n_new = n + 8, capacity = 0;

    while (n_new > capacity) {                   /* once, or a second time with the true number */
        ebb_status st;
        capacity = n_new;
        if (!reserve_ids(w, capacity))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
        st = ebb_model_tokenize_with(w->p->m, text, n, &o, w->out->ids + w->out->n_ids, capacity, &n_new, err);
        if (st != EBB_OK)
            return st;
    }
    w->out->n_ids += n_new;
    return EBB_OK;
}

/* -- Ids of the rendering ------------------------------------------------------------------ */

/* The words of range r of the rendering, with which an answer begins: all but its own marks. */
static ebb_status find_words(const ebb_prompt_build *w, ebb_template_range r, ebb_answer_words *words, ebb_error *err)
{
    ebb_buf given = { 0 };

    if (!ebb_prompt_write_answer(w->p, &w->job, r.message, &given, words)) {
        ebb_buf_fini(&given);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    }
    *words = ebb_answer_words_in(&given, words, w->now.text.data + r.begin, r.end - r.begin);
    for (size_t k = 0; k < words->n; k++) {
        words->list[k].begin += r.begin;
        words->list[k].end += r.begin;
    }
    ebb_buf_fini(&given);
    return EBB_OK;
}

/* Which ranges of now.text[from..to) are words of messages: *n of them, counted from `from`.  has_begun: zeroes, one of
 * each message. */
static ebb_status find_quoted(const ebb_prompt_build *w, size_t from, size_t to, bool *has_begun,
                              ebb_text_range *quoted, size_t *n, ebb_error *err)
{
    ebb_status st = EBB_OK;

    *n = 0;
    for (size_t i = 0; st == EBB_OK && i < w->now.n_ranges; i++) {
        ebb_template_range r = w->now.ranges[i];
        ebb_answer_words words = { .list = { { r.begin, r.end } }, .n = 1 };
        bool is_first = r.message < w->job.n && !has_begun[r.message];

        if (is_first)
            has_begun[r.message] = true;
        if (r.end <= from || r.begin >= to)
            continue;
        if (is_first && w->job.messages[r.message]->role == EBB_ROLE_ASSISTANT)
            st = find_words(w, r, &words, err);
        for (size_t k = 0; st == EBB_OK && k < words.n; k++) {
            ebb_text_range t = words.list[k];
            if (t.end > from && t.begin < to)
                quoted[(*n)++] = (ebb_text_range){ (t.begin > from ? t.begin : from) - from,
                                                   (t.end < to ? t.end : to) - from };
        }
    }
    return st;
}

ebb_status ebb_prompt_add_part(ebb_prompt_build *w, size_t from, size_t to, ebb_error *err)
{
    ebb_text_range *quoted = calloc(w->now.n_ranges + w->job.n * EBB_ANSWER_WORDS + 1, sizeof *quoted);
    bool *has_begun = calloc(w->job.n + 1, sizeof *has_begun);
    size_t n;
    ebb_status st;

    if (quoted && has_begun)
        st = find_quoted(w, from, to, has_begun, quoted, &n, err);
    else
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    if (st == EBB_OK)
        st = tokenize_text(w, ebb_buf_text(&w->now.text) + from, to - from, ebb_prompt_tokenize_opts(w, quoted, n),
                           err);
    free(quoted);
    free(has_begun);
    return st;
}

ebb_status ebb_prompt_add_bos(ebb_prompt_build *w, ebb_error *err)
{
    ebb_token bos = ebb_model_bos(w->p->m);
    size_t n = strlen(w->p->bos);
    bool printed = ebb_prompt_starts_at(&w->now.text, 0, w->p->bos, n) &&
                   (w->now.n_ranges == 0 || w->now.ranges[0].begin >= n);

    if (!w->p->adds_bos || printed)
        return EBB_OK;
    return append_ids(w, &bos, 1, err);
}

void ebb_prompt_drop_second_bos(ebb_prompt_build *w)
{
    ebb_prompt *o = w->out;
    ebb_token bos = ebb_model_bos(w->p->m);
    size_t n = 0;

    while (bos >= 0 && n < o->n_ids && o->ids[n] == bos)
        n++;
    if (n > 1) {
        memmove(o->ids + 1, o->ids + n, (o->n_ids - n) * sizeof *o->ids);
        o->n_ids -= n - 1;
    }
}

/* -- Turn by turn ------------------------------------------------------------------------- */

ebb_status ebb_prompt_add_reused(ebb_prompt_build *w, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (size_t i = 0; st == EBB_OK && i < w->n_reused; i++) {
        const ebb_message *m = w->job.messages[i];
        size_t n = m->n_ids - (i + 1 == w->n_reused ? w->drops_end_token : 0);
        st = append_ids(w, m->ids, n, err);
        w->out->n_ids_of[i] = n;
    }
    return st;
}

/* The position behind the end-of-turn token of the text that ends at `at`; 0: none follows. */
static size_t behind_end(const ebb_prompt_build *w, size_t at)
{
    size_t best = 0;

    at = ebb_prompt_skip_space(&w->now.text, at);
    for (size_t i = 0; i < w->p->n_ends; i++) {
        size_t n = strlen(w->p->ends[i]);
        if (ebb_prompt_starts_at(&w->now.text, at, w->p->ends[i], n) && at + n > best)
            best = at + n;
    }
    return best;
}

/* Turn by turn: an answer whose end is a token has its own ids, the rest belongs to the last message. */
ebb_status ebb_prompt_add_new(ebb_prompt_build *w, ebb_error *err)
{
    size_t at = w->reuse_end, before = w->out->n_ids;
    ebb_status st = at == 0 ? ebb_prompt_add_bos(w, err) : EBB_OK;

    for (size_t a = w->n_reused; st == EBB_OK && a < w->job.n; a++) {
        size_t end = w->job.messages[a]->role == EBB_ROLE_ASSISTANT ? ebb_rendering_end_of(&w->now, a) : 0;
        end = end > at ? behind_end(w, end) : 0;
        if (end == 0)
            continue;
        st = ebb_prompt_add_part(w, at, end, err);
        at = end;
        if (before == 0)
            ebb_prompt_drop_second_bos(w);
        w->out->n_ids_of[a] = w->out->n_ids - before;
        before = w->out->n_ids;
    }
    if (st == EBB_OK && w->job.n > 0) {
        st = ebb_prompt_add_part(w, at, w->now.text.len, err);
        if (before == 0)
            ebb_prompt_drop_second_bos(w);
        w->out->n_ids_of[w->job.n - 1] += w->out->n_ids - before;
    }
    return st;
}

/* -- An answer that goes on ---------------------------------------------------------------- */

static bool ends_with(const ebb_buf *text, const char *what)
{
    size_t n = strlen(what);

    return text->len >= n && memcmp(text->data + text->len - n, what, n) == 0;
}

/* What the model writes around a thought behind this prompt.  false: nothing, as the prompt is past all thoughts. */
static bool find_marks_behind(const ebb_prompt_build *w, const char **before, const char **behind)
{
    const char *prompt = ebb_buf_text(&w->now.text);
    const ebb_thought_marks *opened = ebb_thought_opened_by(prompt, w->now.text.len), *usual = w->p->thought_marks;

    if (w->p->names_channels || w->p->keeps_channels) {
        *before = EBB_CHANNEL_THOUGHT_BEFORE;
        *behind = EBB_CHANNEL_THOUGHT_BEHIND;
        return !ends_with(&w->now.text, EBB_CHANNEL_TEXT);
    }
    if (!usual)
        usual = ebb_thought_marks_at(0);
    *before = opened ? "" : usual->before;
    *behind = opened ? opened->behind : usual->behind;
    return !ebb_thought_is_closed_by(prompt, w->now.text.len);
}

/* The open answer as the model writes it behind this prompt, its thought included, and what of it is words. */
static bool write_open(const ebb_prompt_build *w, ebb_buf *out, ebb_answer_words *words)
{
    const ebb_prompt_thought *thoughts = w->job.opts->thoughts;
    const ebb_message *m = w->open;
    ebb_answer_parts a = { .text = m->text, .n_text = m->n_text };
    bool is_apart = thoughts && thoughts[w->job.n].n > 0, ok;

    if (is_apart && find_marks_behind(w, &a.before, &a.behind)) {
        a.thought = thoughts[w->job.n].text;
        a.n_thought = thoughts[w->job.n].n;
    }
    ok = ebb_answer_join(&a, out, words);
    if (!is_apart)
        *words = ebb_answer_find_words(m->text, m->n_text,
                                       ebb_thought_opened_by(ebb_buf_text(&w->now.text), w->now.text.len)
                                       ? EBB_THOUGHT_OPENED : EBB_THOUGHT_UNOPENED);
    return ok;
}

/* Its ids are those of its text alone, so that what follows them stands behind it, and not behind a blank more. */
ebb_status ebb_prompt_add_open(ebb_prompt_build *w, ebb_error *err)
{
    const ebb_message *m = w->open;
    size_t before = w->out->n_ids;
    ebb_answer_words words;
    ebb_buf text = { 0 };
    ebb_status st = EBB_OK;

    if (!m)
        return EBB_OK;
    if (m->n_ids) {
        st = append_ids(w, m->ids, m->n_ids, err);
    } else if (!write_open(w, &text, &words)) {
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    } else if (text.len > 0) {
        ebb_tokenize_opts o = ebb_prompt_tokenize_opts(w, words.list, words.n);
        o.flags |= EBB_TOK_INSIDE;
        st = tokenize_text(w, ebb_buf_text(&text), text.len, o, err);
    }
    ebb_buf_fini(&text);
    w->out->n_ids_of[w->job.n] = w->out->n_ids - before;
    return st;
}
