/* One turn of an answer: a batch of its prompt, or a token (serve_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "ebb/experimental/prompt_parts.h"
#include "serve/serve_priv.h"

/* tokens before an answer that may end in half a character; as ebb_engine_opts */
enum { PRIMING = 4, BATCH = 512 };

static uint32_t batch_of(const ebb_serve *s)
{
    return s->opts.engine.n_batch ? s->opts.engine.n_batch : BATCH;
}

/* -- Text ------------------------------------------------------------------------------------------ */

/* Where the first of the stops begins in text[0..n), or n; *which: that one, or NULL. */
static size_t find_stop(const ebb_serve_question *q, const char *text, size_t n, const char **which)
{
    size_t best = n;

    *which = NULL;
    for (size_t i = 0; i < q->n_stops; i++) {
        const char *at = n ? memmem(text, n, q->stops[i], strlen(q->stops[i])) : NULL;
        if (at && (size_t)(at - text) < best) {
            best = (size_t)(at - text);
            *which = q->stops[i];
        }
    }
    return best;
}

/* How much of text[0..n) cannot be the beginning of a stop any more. */
static size_t count_certain(const ebb_serve_question *q, const char *text, size_t n)
{
    size_t certain = n;

    for (size_t i = 0; i < q->n_stops; i++) {
        size_t most = strlen(q->stops[i]) - 1;
        for (size_t k = most < n ? most : n; k > n - certain; k--)
            if (memcmp(text + n - k, q->stops[i], k) == 0)
                certain = n - k;
    }
    return certain;
}

/* Text for the readers, which all ids so far belong to. */
static bool show_text(ebb_serve *s, ebb_served *a, const char *text, size_t n)
{
    ebb_served_piece *p;
    bool ok;

    if (n == 0)
        return true;
    pthread_mutex_lock(&s->lock);
    p = ebb_grow(a->pieces, a->n_pieces, &a->cap_pieces, sizeof *p);
    ok = p && ebb_buf_add(&a->text, text, n);
    if (p)
        a->pieces = p;
    if (ok)
        a->pieces[a->n_pieces++] = (ebb_served_piece){ .text_end = a->text.len, .ids_end = a->q.n_ids };
    ebb_served_notify(a);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

/* Add generated text; *has_stopped: it contained a stop, and only the text before that was sent. */
static bool add_text(ebb_serve *s, ebb_served *a, const char *text, size_t n, bool *has_stopped)
{
    const char *stop;
    size_t at;

    if (a->q.n_stops == 0)
        return show_text(s, a, text, n);
    if (!ebb_buf_add(&a->held, text, n))
        return false;
    at = find_stop(&a->q, ebb_buf_text(&a->held), a->held.len, &stop);
    *has_stopped = stop != NULL;
    if (!stop)
        at = count_certain(&a->q, ebb_buf_text(&a->held), a->held.len);
    else
        memcpy(a->stop, stop, strlen(stop) + 1);
    if (!show_text(s, a, ebb_buf_text(&a->held), at))
        return false;
    ebb_buf_remove(&a->held, 0, stop ? a->held.len : at);
    return true;
}

/* At the answer's end, send the text that was held back as the possible beginning of a stop, and
 * if is_whole the bytes of an incomplete character. */
static void flush_text(ebb_serve *s, ebb_served *a, bool is_whole)
{
    bool has_stopped = false;
    size_t n = 0;
    const char *rest = is_whole ? ebb_detok_flush(a->detok, &n) : "";

    if (n && !add_text(s, a, rest, n, &has_stopped))
        return;
    if (!has_stopped)
        show_text(s, a, ebb_buf_text(&a->held), a->held.len);
}

/* -- The prompt ------------------------------------------------------------------------------------ */

/* Constrain the sampler to the request's grammar; the beginning of an answer that is continued must
 * match the grammar, too. */
static ebb_status constrain_answer(ebb_serve *s, ebb_served *a, ebb_error *err)
{
    ebb_status st = ebb_sampler_constrain(a->sampler, a->q.grammar, s->model, err);

    if (st != EBB_OK)
        return st;
    st = ebb_sampler_accept(a->sampler, a->q.ids + a->n_prompt - a->q.n_answer, a->q.n_answer, err);
    if (st == EBB_USAGE)
        return EBB_FAIL(err, EBB_USAGE, "the answer that is to go on is not of the form that is asked for");
    return st;
}

static ebb_status prepare_answer(ebb_serve *s, ebb_served *a, ebb_error *err)
{
    size_t drop, n = a->q.n_ids;

    a->sampler = ebb_sampler_new(&a->q.sampling, ebb_model_get_info(s->model)->n_vocab);
    a->detok = ebb_detok_new(s->model, false);
    if (!a->sampler || !a->detok)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an answer");
    for (size_t i = n > PRIMING ? n - PRIMING : 0; i < n; i++)
        ebb_detok_push(a->detok, a->q.ids[i], &drop);
    if (a->q.grammar && a->q.n_answer == 0)      /* the beginning of a character that the text is not to have */
        ebb_detok_flush(a->detok, &drop);
    return constrain_answer(s, a, err);
}

/* A model with states is to have a checkpoint where the next prompt still agrees. */
size_t ebb_serve_part_end(const ebb_serve *s, const ebb_served *a, size_t there, size_t most)
{
    size_t end = there + (most < batch_of(s) ? most : batch_of(s)), n = a->q.n_ids;
    size_t first = a->q.n_suffix > 1 && a->q.n_suffix < a->n_prompt ? a->n_prompt - a->q.n_suffix + 1 : 0;

    if (s->is_recurrent && there < first && end > first)
        return first;
    return end < n ? end : n;
}

void ebb_serve_note_progress(ebb_serve *s, ebb_served *a, const ebb_sync_result *r, size_t done)
{
    bool is_first = a->state == SERVED_WAITING;

    pthread_mutex_lock(&s->lock);
    if (is_first) {
        a->stats.n_prompt = (uint32_t)a->n_prompt;
        a->stats.n_reused = r->n_reused;
        a->stats.n_reused_disk = r->n_reused_disk;
        a->progress_total = (uint32_t)(a->n_prompt - r->n_reused);
        a->state = SERVED_PREFILL;
    }
    a->stats.n_computed += r->n_computed;
    a->stats.prefill_s += r->seconds;
    a->progress_done = done > a->stats.n_reused ? (uint32_t)(done - a->stats.n_reused) : 0;
    if (a->progress_done > a->progress_total)    /* it was computed again, behind the answer's beginning */
        a->progress_done = a->progress_total;
    if (done == a->q.n_ids) {
        a->state = SERVED_DECODE;
        a->decode_from_s = a->decode_from_s > 0 ? a->decode_from_s : ebb_clock_s();
    }
    ebb_served_notify(a);
    pthread_mutex_unlock(&s->lock);
}

ebb_status ebb_serve_prefill(ebb_serve *s, ebb_served *a, size_t most, ebb_error *err)
{
    size_t there, end;
    ebb_sync_result r = { 0 };
    ebb_status st = a->sampler ? EBB_OK : prepare_answer(s, a, err);

    if (st != EBB_OK)
        return st;
    there = ebb_session_common_prefix(a->session, a->q.ids, a->q.n_ids);
    end = ebb_serve_part_end(s, a, there, most);
    if (a->state == SERVED_WAITING)
        ebb_session_begin_prompt(a->session, a->q.n_ids);
    st = ebb_session_sync(a->session, a->q.ids, end, &r, err);
    if (st == EBB_OK)
        ebb_serve_note_progress(s, a, &r, end);
    return st;
}

/* -- The answer -------------------------------------------------------------------------------------- */

bool ebb_serve_is_computed(const ebb_served *a)
{
    size_t n;

    (void)ebb_session_ids(a->session, &n);
    return n == a->q.n_ids && ebb_session_logits(a->session);
}

static bool keep_token(ebb_serve *s, ebb_served *a, int32_t id)
{
    int32_t *p;

    pthread_mutex_lock(&s->lock);                /* readers look at the ids */
    p = ebb_grow(a->q.ids, a->q.n_ids, &a->cap_ids, sizeof *p);
    if (p) {
        a->q.ids = p;
        a->q.ids[a->q.n_ids++] = id;
        a->stats.n_generated++;
        if (a->stats.first_s <= 0)
            a->stats.first_s = ebb_clock_s() - a->asked_s;
    }
    pthread_mutex_unlock(&s->lock);
    return p != NULL;
}

static bool end_turn(ebb_serve *s, ebb_served *a, ebb_finish finish)
{
    flush_text(s, a, finish == EBB_FINISH_STOP);
    ebb_serve_end(s, a, finish, NULL);
    return true;
}

ebb_status ebb_serve_next_token(ebb_serve *s, ebb_served *a, bool *has_ended, ebb_error *err)
{
    bool has_stopped = false;
    const char *text;
    ebb_token id;
    size_t n;

    if (a->q.predicts_nothing || a->q.n_ids >= s->n_ctx) {
        *has_ended = end_turn(s, a, EBB_FINISH_LENGTH);
        return EBB_OK;
    }
    id = ebb_session_sample(a->session, a->sampler);
    if (id == EBB_TOKEN_NONE) {
        ebb_status st = ebb_sampler_check(a->sampler, err);
        *has_ended = st == EBB_OK && end_turn(s, a, EBB_FINISH_STOP);
        return st;
    }
    if (ebb_model_is_eog(s->model, id) && !(a->q.ignores_end && !a->q.grammar)) {
        *has_ended = end_turn(s, a, EBB_FINISH_STOP);
        return EBB_OK;
    }
    text = ebb_detok_push(a->detok, id, &n);
    if (!keep_token(s, a, id) || !add_text(s, a, text, n, &has_stopped))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    if (has_stopped) {
        ebb_serve_end(s, a, EBB_FINISH_STOP, NULL);
        *has_ended = true;
    } else if (a->stats.n_generated == a->q.n_predict) {
        *has_ended = end_turn(s, a, EBB_FINISH_LENGTH);
    }
    return EBB_OK;
}

static ebb_status decode_turn(ebb_serve *s, ebb_served *a, bool *has_ended, ebb_error *err)
{
    ebb_status st = ebb_serve_next_token(s, a, has_ended, err);

    return st != EBB_OK || *has_ended ? st : ebb_session_append(a->session, a->q.ids[a->q.n_ids - 1], err);
}

void ebb_serve_run_fewer(ebb_serve *s)
{
    s->n_most -= s->n_most > 1;
}

void ebb_serve_turn(ebb_serve *s, ebb_served *a)
{
    bool has_ended = false;
    ebb_error err = { 0 };
    ebb_status st;

    a->turn = ++s->n_turns;
    if (a->state == SERVED_DECODE && ebb_serve_is_computed(a)) {
        st = decode_turn(s, a, &has_ended, &err);
    } else {
        if (a->state == SERVED_DECODE)
            ebb_serve_run_fewer(s);
        st = ebb_serve_prefill(s, a, batch_of(s), &err);
    }
    if (!has_ended)
        ebb_serve_end_failed(s, a, st, &err);
}

/* What is wrong with the model's file is no fault of the request. */
void ebb_serve_end_failed(ebb_serve *s, ebb_served *a, ebb_status st, const ebb_error *err)
{
    ebb_error told = st == EBB_OK || st == EBB_CANCELED ? (ebb_error){ 0 } : *err;

    if (told.code == EBB_FORMAT)
        told.code = EBB_IO;
    ebb_serve_hide_folders(told.msg);
    if (st == EBB_CANCELED)
        ebb_serve_end(s, a, EBB_FINISH_CANCELED, NULL);
    else if (st != EBB_OK)
        ebb_serve_end(s, a, EBB_FINISH_ERROR, &told);
}
