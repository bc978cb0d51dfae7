/* The next prompt: old ids and the ids of what is new (prompt.h).
 *
 * Two renderings are compared: that of the messages with old ids, and that of the whole
 * conversation now.  Old ids are reused as far as the two agree, up to the end of a
 * turn: the cut. */
#include "prompt/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "prompt/answer_words.h"
#include "prompt/prompt_render.h"
#include "tree/thought.h"

typedef struct prompt_build {
    const ebb_prompter *p;
    ebb_render_job      job;     /* the turns that are over; the open one is not rendered */
    const ebb_message  *open;    /* an answer that is to be continued, or NULL */
    ebb_rendering       now;
    ebb_prompt         *out;
    size_t              cap;     /* of out->ids */
    size_t              reuse_end; /* bytes of now.text that the reused ids cover */
    size_t              n_reused; /* messages whose ids are reused */
    size_t              drops_end_token; /* 1: but not the end token of the last one */
} prompt_build;

bool ebb_prompt_message_init(ebb_prompt_message *out, ebb_role role, const char *text, size_t n)
{
    char *copy = ebb_text_copy(text, n);

    if (!copy)
        return false;
    *out = (ebb_prompt_message){ .role = role, .text = copy, .n_text = n };
    return true;
}

void ebb_prompt_fini(ebb_prompt *p)
{
    for (size_t i = 0; i < p->n_messages; i++)
        free(p->messages[i].text);
    free(p->messages);
    free(p->ids);
    free(p->n_ids_of);
    memset(p, 0, sizeof *p);
}

/* -- Where turns end -------------------------------------------------------------------- */

static bool is_template_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_template_space(const ebb_buf *text, size_t at)
{
    while (at < text->len && is_template_space(text->data[at]))
        at++;
    return at;
}

static bool starts_at(const ebb_buf *text, size_t at, const char *what, size_t n)
{
    return n > 0 && n <= text->len - at && memcmp(text->data + at, what, n) == 0;
}

/* The position behind the end-of-turn token of the text that ends at `at`; 0: none follows. */
static size_t behind_end(const prompt_build *w, size_t at)
{
    size_t best = 0;

    at = skip_template_space(&w->now.text, at);
    for (size_t i = 0; i < w->p->n_ends; i++) {
        size_t n = strlen(w->p->ends[i]);
        if (starts_at(&w->now.text, at, w->p->ends[i], n) && at + n > best)
            best = at + n;
    }
    return best;
}

/* Reuse the old ids up to and including answer a, whose text ends at `at`.  If its ids have
 * the end token, the text that the template prints for that token is skipped. */
static void reuse_through(prompt_build *w, size_t a, size_t at)
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
    at = skip_template_space(&w->now.text, at);
    if (n <= sizeof text && starts_at(&w->now.text, at, text, n))
        w->reuse_end = at + n;
    else
        w->drops_end_token = 1;
}

/* -- How far old ids are reused ------------------------------------------------------------ */

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
        size_t next_i = skip_template_space(old, i), next_n = skip_template_space(now, n);
        *whole = next_i == old->len;
        if (*whole || next_n == now->len || old->data[next_i] != now->data[next_n])
            return n;
        i = next_i;
        n = next_n;
    }
}

/* The end of message a's text if the rendering has that text at `at`, white space around it
 * aside, which templates may strip.  Else 0. */
static size_t match_answer_text(const prompt_build *w, size_t a, size_t at)
{
    const ebb_message *m = w->job.messages[a];
    size_t from = 0, to = m->n_text, begin = skip_template_space(&w->now.text, at);

    while (from < to && is_template_space(m->text[from]))
        from++;
    while (to > from && is_template_space(m->text[to - 1]))
        to--;
    if (from == to)
        return at;
    if (!starts_at(&w->now.text, begin, m->text + from, to - from))
        return 0;
    begin += to - from;
    return starts_at(&w->now.text, begin, m->text + to, m->n_text - to) ? begin + m->n_text - to : begin;
}

/* The last answer whose turn ends within the first `same` bytes. */
static void reuse_earlier(prompt_build *w, size_t n, size_t same)
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

/* The last message with ids is k.  No ids are reused if the old conversation can no longer be
 * rendered. */
static ebb_status find_reuse_end(prompt_build *w, size_t k, ebb_error *err)
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

/* -- Ids ---------------------------------------------------------------------------------------- */

static bool reserve_ids(prompt_build *w, size_t more)
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

static ebb_status append_ids(prompt_build *w, const int32_t *ids, size_t n, ebb_error *err)
{
    if (!reserve_ids(w, n))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    if (n)
        memcpy(w->out->ids + w->out->n_ids, ids, n * sizeof *ids);
    w->out->n_ids += n;
    return EBB_OK;
}

static ebb_tokenize_opts tokenize_opts(const prompt_build *w, const ebb_text_range *quoted, size_t n_quoted)
{
    return (ebb_tokenize_opts){ .flags = EBB_TOK_SPECIAL, .quoted = quoted, .n_quoted = n_quoted,
                                .stop = w->job.opts->stop, .stop_arg = w->job.opts->stop_arg };
}

static ebb_status tokenize_text(prompt_build *w, const char *text, size_t n, ebb_tokenize_opts o, ebb_error *err)
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

/* The words of range r of the rendering, with which an answer begins: all but its own marks. */
static ebb_status find_words(const prompt_build *w, ebb_template_range r, ebb_answer_words *words, ebb_error *err)
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
static ebb_status find_quoted(const prompt_build *w, size_t from, size_t to, bool *has_begun, ebb_text_range *quoted,
                              size_t *n, ebb_error *err)
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

/* Ids of now.text[from..to); the words of messages there are never control tokens. */
static ebb_status tokenize_part(prompt_build *w, size_t from, size_t to, ebb_error *err)
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
        st = tokenize_text(w, ebb_buf_text(&w->now.text) + from, to - from, tokenize_opts(w, quoted, n), err);
    free(quoted);
    free(has_begun);
    return st;
}

/* One BOS in front if the vocabulary asks for it, and never two, whoever printed them. */
static ebb_status add_bos(prompt_build *w, ebb_error *err)
{
    ebb_token bos = ebb_model_bos(w->p->m);
    size_t n = strlen(w->p->bos);
    bool printed = starts_at(&w->now.text, 0, w->p->bos, n) && (w->now.n_ranges == 0 || w->now.ranges[0].begin >= n);

    if (!w->p->adds_bos || printed)
        return EBB_OK;
    return append_ids(w, &bos, 1, err);
}

static void drop_second_bos(prompt_build *w)
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

static ebb_status add_reused_ids(prompt_build *w, ebb_error *err)
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

/* Everything behind the cut, turn by turn: an answer whose end is a token has its own
 * ids, the rest belongs to the last message. */
static ebb_status add_new(prompt_build *w, ebb_error *err)
{
    size_t at = w->reuse_end, before = w->out->n_ids;
    ebb_status st = at == 0 ? add_bos(w, err) : EBB_OK;

    for (size_t a = w->n_reused; st == EBB_OK && a < w->job.n; a++) {
        size_t end = w->job.messages[a]->role == EBB_ROLE_ASSISTANT ? ebb_rendering_end_of(&w->now, a) : 0;
        end = end > at ? behind_end(w, end) : 0;
        if (end == 0)
            continue;
        st = tokenize_part(w, at, end, err);
        at = end;
        if (before == 0)
            drop_second_bos(w);
        w->out->n_ids_of[a] = w->out->n_ids - before;
        before = w->out->n_ids;
    }
    if (st == EBB_OK && w->job.n > 0) {
        st = tokenize_part(w, at, w->now.text.len, err);
        if (before == 0)
            drop_second_bos(w);
        w->out->n_ids_of[w->job.n - 1] += w->out->n_ids - before;
    }
    return st;
}

static bool ends_with(const ebb_buf *text, const char *what)
{
    size_t n = strlen(what);

    return text->len >= n && memcmp(text->data + text->len - n, what, n) == 0;
}

/* What the model writes around a thought behind this prompt.  false: nothing, as the prompt is past all thoughts. */
static bool find_marks_behind(const prompt_build *w, const char **before, const char **behind)
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
static bool write_open(const prompt_build *w, ebb_buf *out, ebb_answer_words *words)
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
static ebb_status add_open(prompt_build *w, ebb_error *err)
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
        ebb_tokenize_opts o = tokenize_opts(w, words.list, words.n);
        o.flags |= EBB_TOK_INSIDE;
        st = tokenize_text(w, ebb_buf_text(&text), text.len, o, err);
    }
    ebb_buf_fini(&text);
    w->out->n_ids_of[w->job.n] = w->out->n_ids - before;
    return st;
}

/* -- What stands in front of the first question ------------------------------------------------------- */

/* Two turns, behind the system message if there is one. */
static ebb_status render_two_turns(const prompt_build *w, bool has_system, ebb_rendering *out)
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
static ebb_status ids_of_part(const prompt_build *w, const ebb_rendering *r, size_t from, size_t to, ebb_prompt *out,
                              ebb_error *err)
{
    prompt_build part = { .p = w->p, .job.opts = w->job.opts, .now = *r, .out = out };
    ebb_status st = from == 0 ? add_bos(&part, err) : EBB_OK;

    if (st == EBB_OK && from < to)
        st = tokenize_part(&part, from, to, err);
    if (from == 0)
        drop_second_bos(&part);
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

static bool is_blank_token(const prompt_build *w, int32_t id)
{
    char text[32];
    size_t n = ebb_model_piece(w->p->m, id, true, text, sizeof text), i = 0;

    while (i < n && n <= sizeof text && is_template_space(text[i]))
        i++;
    return i == n;
}

/* A token that begins or ends a part of the conversation. */
static bool is_mark_at(const prompt_build *w, const ebb_prompt *p, size_t i)
{
    return i < p->n_ids && ebb_model_is_control(w->p->m, p->ids[i]);
}

/* The first of ids[at..n) that is not blank; n: none. */
static size_t skip_blank_tokens(const prompt_build *w, const ebb_prompt *p, size_t at)
{
    while (at < p->n_ids && is_blank_token(w, p->ids[at]))
        at++;
    return at;
}

/* ids[0..n) end with words: the token that ends their turn, behind them, goes with them.  It is one that ends a model's
 * turn, or has the one that begins the next behind it.  0: none is there. */
static size_t behind_closing_token(const prompt_build *w, const ebb_prompt *p, size_t n)
{
    size_t at = skip_blank_tokens(w, p, n), next = at < p->n_ids ? skip_blank_tokens(w, p, at + 1) : at;

    if (!is_mark_at(w, p, at))
        return 0;
    return ebb_model_is_eog(w->p->m, p->ids[at]) || is_mark_at(w, p, next) ? at + 1 : 0;
}

/* p: the ids in front of the question, of which ids[0..n) are in front of its turn. */
static void count_front(prompt_build *w, const ebb_prompt *p, size_t n, bool has_system)
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
static ebb_status count_system(prompt_build *w, ebb_error *err)
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

/* -- What to say ---------------------------------------------------------------------------------- */

static void compare_old(prompt_build *w, const ebb_message *const *messages, size_t n)
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
static bool prints_of(const prompt_build *w, size_t i, const char *s, size_t n)
{
    for (size_t k = 0; k < w->now.n_ranges; k++) {
        ebb_template_range r = w->now.ranges[k];
        if (r.message == i && memmem(w->now.text.data + r.begin, r.end - r.begin, s, n))
            return true;
    }
    return false;
}

/* Why old ids could not be reused, as a text for the user. */
static const char *why_rewritten(const prompt_build *w)
{
    for (size_t i = 0; i < w->job.n; i++) {
        const ebb_message *m = w->job.messages[i];
        ebb_thought t = ebb_message_thought(m);

        while (t.end > t.start && is_template_space(m->text[t.end - 1]))
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

static void write_notice(prompt_build *w, size_t n_again)
{
    ebb_prompt *o = w->out;

    if (o->rewritten)
        snprintf(o->notice, sizeof o->notice, "%zu tokens again: the chat template %s", n_again, why_rewritten(w));
    else if (w->job.merge_system && w->n_reused == 0)
        snprintf(o->notice, sizeof o->notice,
                 "the chat template takes no system message: its text goes before the first question");
}

/* What is printed behind the last question, in ids. */
static size_t count_frame(const prompt_build *w)
{
    size_t last = w->job.n, end = last ? ebb_rendering_end_of(&w->now, last - 1) : 0, n = 0;
    ebb_tokenize_opts o = tokenize_opts(w, NULL, 0);

    if (w->open || end == 0 || w->job.messages[last - 1]->role != EBB_ROLE_USER ||
        ebb_model_tokenize_with(w->p->m, ebb_buf_text(&w->now.text) + end, w->now.text.len - end, &o, NULL, 0, &n,
                                NULL) != EBB_OK)
        return 0;
    return n < w->out->n_ids ? n : 0;
}

/* -- The prompt -------------------------------------------------------------------------------------- */

static ebb_status build_prompt(prompt_build *w, ebb_error *err)
{
    size_t k = w->job.n;
    ebb_status st = ebb_prompt_render_or_merge(w->p, &w->job, &w->now, err);

    if (st != EBB_OK)
        return st;
    while (k > 0 && w->job.messages[k - 1]->n_ids == 0)
        k--;
    st = k > 0 ? find_reuse_end(w, k - 1, err) : EBB_OK;
    if (st == EBB_OK)
        st = add_reused_ids(w, err);
    if (st == EBB_OK)
        st = add_new(w, err);
    if (st == EBB_OK && w->job.opts->counts_system)
        st = count_system(w, err);
    return st == EBB_OK ? add_open(w, err) : st;
}

ebb_status ebb_prompt_delta(const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                            const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err)
{
    static const ebb_prompt_opts defaults = { 0 };
    prompt_build w = { .p = p, .out = out, .job = { .messages = messages, .n = n, .opts = opts ? opts : &defaults } };
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
