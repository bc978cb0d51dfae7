/* One answer of the engine in this process (local_priv.h). */
#include <string.h>

#include "backend/local_priv.h"
#include "ebb/grammar.h"
#include "ebb/experimental/cache_salt.h"
#include "ebb/experimental/prompt_parts.h"

#define PRIMING 4                /* tokens before the answer that may end in half a character */

static bool emit_token(ebb_local *l, int32_t id)
{
    ebb_backend_event ev = { .kind = EBB_BACKEND_TOKEN, .token = id };
    bool ok;

    ev.text = ebb_detok_push(l->detok, id, &ev.n_text);
    pthread_mutex_lock(&l->lock);
    ok = ebb_local_append_id(l, id);
    if (ok)
        ebb_local_emit_locked(l, &ev);
    pthread_mutex_unlock(&l->lock);
    return ok;
}

/* A model with states can go back to checkpoints only, and one is made before the last token of a sync: it
 * should be where the next prompt still agrees with this one. */
static ebb_status sync_prompt(ebb_local *l, size_t there, ebb_sync_result *r, ebb_error *err)
{
    size_t n_first = l->n_suffix < l->n_ids ? l->n_ids - l->n_suffix + 1 : 0;
    bool has_first = ebb_session_cannot_shift(l->session) && l->n_suffix > 1 && there < n_first;
    ebb_sync_result first = { 0 };
    ebb_status st = EBB_OK;

    if (has_first) {
        ebb_session_begin_prompt(l->session, l->n_ids);
        st = ebb_session_sync(l->session, l->ids, n_first, &first, err);
        ebb_session_set_cache_salt(l->session, &l->cache_salt);
    }
    if (st == EBB_OK)
        st = ebb_session_sync(l->session, l->ids, l->n_ids, r, err);
    r->n_prompt = (uint32_t)l->n_ids;
    r->n_computed += first.n_computed;
    r->n_reused = r->n_prompt > r->n_computed ? r->n_prompt - r->n_computed : 0;
    if (has_first)                               /* what the second finds on disk was counted as computed */
        r->n_reused_disk = first.n_reused_disk < r->n_reused ? first.n_reused_disk : r->n_reused;
    r->seconds += first.seconds;
    return st;
}

static ebb_status prefill_answer(ebb_local *l, ebb_turn_stats *turn_stats, ebb_error *err)
{
    size_t n = l->n_ids, there, drop;
    ebb_sync_result r = { 0 };
    ebb_status st;

    ebb_local_shift_context(l, l->ids, l->n_ids, &l->gap, &l->cache_salt);
    ebb_session_set_cache_salt(l->session, &l->cache_salt);
    there = ebb_session_common_prefix(l->session, l->ids, n);
    ebb_local_emit(l, &(ebb_backend_event){ .kind = EBB_BACKEND_PREFILL, .total = n - there });
    st = sync_prompt(l, there, &r, err);
    turn_stats->n_prompt = r.n_prompt;
    turn_stats->n_reused = r.n_reused;
    turn_stats->n_reused_disk = r.n_reused_disk;
    turn_stats->n_computed = r.n_computed;
    turn_stats->n_prefilled_early = ebb_local_count_prefilled(l, r.n_reused);
    turn_stats->prefill_s = r.seconds;
    if (st != EBB_OK)
        return st;
    ebb_local_emit(l, &(ebb_backend_event){ .kind = EBB_BACKEND_PREFILL, .done = r.n_computed, .total = r.n_computed });
    /* The detokenizer starts with the prompt's last tokens: they may end within a character. */
    ebb_detok_flush(l->detok, &drop);
    for (size_t i = n > PRIMING ? n - PRIMING : 0; i < n; i++)
        ebb_detok_push(l->detok, l->ids[i], &drop);
    return EBB_OK;
}

/* Tokens until something ends the turn.  The last one before the limit is not
 * computed: the next turn does that if there is one. */
static ebb_status decode_answer(ebb_local *l, ebb_sampler *sampler, ebb_turn_stats *turn_stats, ebb_finish *finish,
                                ebb_error *err)
{
    uint32_t n_ctx = ebb_engine_n_ctx(l->engine);

    while (!atomic_load(&l->stop)) {
        size_t n;
        ebb_token id;
        ebb_status st;

        *finish = EBB_FINISH_LENGTH;
        (void)ebb_session_ids(l->session, &n);
        if (n >= n_ctx)
            return EBB_OK;
        id = ebb_session_sample(l->session, sampler);
        if (id == EBB_TOKEN_NONE && (st = ebb_sampler_check(sampler, err)) != EBB_OK)
            return st;
        if (id == EBB_TOKEN_NONE || ebb_model_is_eog(l->model, id)) {
            *finish = EBB_FINISH_STOP;
            return EBB_OK;
        }
        if (!emit_token(l, id))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
        if (++turn_stats->n_generated == l->n_predict)
            return EBB_OK;
        st = ebb_session_append(l->session, id, err);
        if (st != EBB_OK)
            return st;
    }
    return EBB_FAIL(err, EBB_CANCELED, "stopped");
}

/* By passes, as the panel counts: the last token was not computed, and where it is the only one, there is no speed. */
static void count_decode(ebb_local *l, ebb_turn_stats *turn_stats, const ebb_stats *before)
{
    ebb_stats s;

    ebb_engine_stats(l->engine, &s);
    turn_stats->decode_s = s.generated_tok > 0 ? turn_stats->n_generated / s.decode_tok_s : 0;
    turn_stats->n_accepted = (uint32_t)(s.n_accepted - before->n_accepted);
    turn_stats->n_accepted_reference = (uint32_t)(s.n_accepted_reference - before->n_accepted_reference);
}

ebb_status ebb_local_constrain(ebb_local *l, ebb_sampler *sampler, ebb_error *err)
{
    ebb_grammar *g = NULL;
    ebb_status st;

    if (!l->grammar)
        return EBB_OK;
    st = ebb_grammar_new(l->grammar, strlen(l->grammar), &g, err);
    if (st == EBB_OK)
        st = ebb_sampler_constrain(sampler, g, l->model, err);
    ebb_grammar_free(g);
    if (st == EBB_OK)
        st = ebb_sampler_accept(sampler, l->ids + l->n_ids - l->n_answer, l->n_answer, err);
    if (st == EBB_USAGE)
        return EBB_FAIL(err, EBB_USAGE, "the answer so far does not follow the grammar");
    return st;
}

/* Into the END event. */
static ebb_status run_answer(ebb_local *l, ebb_backend_event *end, ebb_error *err)
{
    ebb_sampler *sampler = ebb_sampler_new(&l->sampling, ebb_model_get_info(l->model)->n_vocab);
    ebb_status st = sampler ? ebb_local_constrain(l, sampler, err)
                            : EBB_FAIL(err, EBB_NOMEM, "no memory for the sampler");
    ebb_stats before;

    if (st == EBB_OK)
        st = prefill_answer(l, &end->turn_stats, err);
    end->cache_salt = ebb_session_get_cache_salt(l->session);
    if (st == EBB_OK && l->n_answers > 1) {
        st = ebb_local_decode_several(l, &end->turn_stats, &end->finish, &end->cache_salt, err);
    } else if (st == EBB_OK) {
        ebb_engine_stats(l->engine, &before);
        st = decode_answer(l, sampler, &end->turn_stats, &end->finish, err);
        count_decode(l, &end->turn_stats, &before);
    }
    ebb_sampler_free(sampler);
    return st;
}

/* One that failed before it touched the session leaves there what it held, which may have been deleted since. */
static bool holds_answer(const ebb_local *l)
{
    size_t n;
    const int32_t *ids = ebb_session_ids(l->session, &n);

    return n <= l->n_ids && memcmp(ids, l->ids, n * sizeof *ids) == 0;
}

void ebb_local_answer(ebb_local *l)
{
    ebb_backend_event ev = { .kind = EBB_BACKEND_END };
    ebb_error err = { 0 };
    ebb_status st = run_answer(l, &ev, &err);
    bool holds;

    if (st == EBB_CANCELED)
        ev.finish = EBB_FINISH_CANCELED;
    else if (st != EBB_OK) {
        ev.finish = EBB_FINISH_ERROR;
        ev.text = err.msg;
        ev.n_text = strlen(err.msg);
    } else if (ev.finish == EBB_FINISH_STOP) {   /* nothing will complete a character now */
        ev.text = ebb_detok_flush(l->detok, &ev.n_text);
    }
    holds = holds_answer(l);
    pthread_mutex_lock(&l->lock);
    l->is_answering = false;
    ebb_engine_cancel_clear(l->engine);          /* it would stop layers from coming back */
    ebb_local_emit_locked(l, &ev);
    pthread_mutex_unlock(&l->lock);
    if (holds)
        ebb_session_persist(l->session);
}

