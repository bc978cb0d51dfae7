/* Several answers to one prompt, side by side (local_priv.h): each pass reads the weights once for all of them.
 *
 * Where the KV pool cannot hold all, the last ones wait without blocks until another has ended. */
#include <stdlib.h>
#include <string.h>

#include "backend/local_priv.h"
#include "base/clock.h"
#include "base/grow.h"
#include "ebb/grammar.h"

#define PRIMING 4                /* as local_answer.c */

/* One of the answers; the first one's events are those of a single answer. */
typedef struct one_of_several {
    uint32_t     which;
    ebb_session *session;
    ebb_sampler *sampler;
    ebb_detok   *detok;
    int32_t     *ids;            /* of the prompt and the answer so far */
    size_t       n_ids, cap_ids;
    bool         is_waiting, has_ended;
    uint32_t     n_generated;
    double       end_s;
    ebb_finish   finish;
    ebb_cache_salt drawn_salt;   /* on: a token of it was drawn behind moved K and V, which may be gone since */
} one_of_several;

typedef struct several {
    ebb_local *l;
    const ebb_turn_stats *prompt_stats;
    ebb_cache_salt prompt_salt;  /* of the prompt's K and V, from which each goes on */
    one_of_several *all;
    uint32_t   n, n_running;
    uint32_t   most, limit;      /* that run at once: at present, as the KV pool has it; ever */
    double     begin_s;
} several;

/* -- One answer ----------------------------------------------------------------------- */

static bool add_id(one_of_several *a, int32_t id)
{
    int32_t *p = ebb_grow(a->ids, a->n_ids, &a->cap_ids, sizeof *p);

    if (!p)
        return false;
    a->ids = p;
    a->ids[a->n_ids++] = id;
    return true;
}

static bool tell_token(several *v, one_of_several *a, int32_t id)
{
    ebb_backend_event ev = { .kind = EBB_BACKEND_TOKEN, .token = id, .which = a->which };
    bool ok;

    ev.text = ebb_detok_push(a->detok, id, &ev.n_text);
    pthread_mutex_lock(&v->l->lock);
    ok = add_id(a, id) && (a->which > 0 || ebb_local_append_id(v->l, id));
    if (ok)
        ebb_local_emit_locked(v->l, &ev);
    pthread_mutex_unlock(&v->l->lock);
    return ok;
}

static ebb_turn_stats stats_of(const several *v, const one_of_several *a)
{
    ebb_turn_stats t = *v->prompt_stats;

    if (a->which > 0) {                          /* the first one has computed it */
        t.n_reused = t.n_prompt;
        t.n_reused_disk = t.n_computed = t.n_prefilled_early = 0;
        t.prefill_s = 0;
    }
    t.n_generated = a->n_generated;
    t.decode_s = a->n_generated > 1 ? a->end_s - v->begin_s : 0;         /* the first takes no pass */
    t.about |= EBB_ABOUT_SIDE_BY_SIDE;
    return t;
}

static bool has_unended(const several *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->all[i].has_ended)
            return true;
    return false;
}

/* The END event of the first answer is the caller's, when all have ended.  Until then the others may take its blocks:
 * the conversation finds K and V on disk. */
static void end_one(several *v, one_of_several *a, ebb_finish finish)
{
    ebb_backend_event ev = { .kind = EBB_BACKEND_END, .finish = finish, .which = a->which };

    a->has_ended = true;
    a->finish = finish;
    a->end_s = ebb_clock_s();
    v->n_running -= !a->is_waiting;
    v->most += v->most < v->limit;
    if (a->which == 0 && has_unended(v))
        ebb_session_persist(a->session);
    if (a->which == 0)
        return;
    if (finish == EBB_FINISH_STOP)
        ev.text = ebb_detok_flush(a->detok, &ev.n_text);
    ev.turn_stats = stats_of(v, a);
    ev.cache_salt = a->drawn_salt;
    ebb_local_emit(v->l, &ev);
    ebb_session_persist(a->session);
    ebb_session_free(a->session);                /* its blocks are for the others */
    a->session = NULL;
}

static ebb_token draw(one_of_several *a)
{
    ebb_cache_salt now = ebb_session_get_cache_salt(a->session);

    if (now.is_on)
        a->drawn_salt = now;
    return ebb_session_sample(a->session, a->sampler);
}

/* The next token, or the end; true: the token is to be computed. */
static ebb_status choose_token(several *v, one_of_several *a, bool *is_step, ebb_error *err)
{
    ebb_local *l = v->l;
    ebb_status st;
    ebb_token id;

    *is_step = false;
    if (a->n_ids >= ebb_engine_n_ctx(l->engine)) {
        end_one(v, a, EBB_FINISH_LENGTH);
        return EBB_OK;
    }
    id = draw(a);
    if (id == EBB_TOKEN_NONE && (st = ebb_sampler_check(a->sampler, err)) != EBB_OK)
        return st;
    if (id == EBB_TOKEN_NONE || ebb_model_is_eog(l->model, id)) {
        end_one(v, a, EBB_FINISH_STOP);
        return EBB_OK;
    }
    if (!tell_token(v, a, id))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the answer");
    if (++a->n_generated == l->n_predict)
        end_one(v, a, EBB_FINISH_LENGTH);
    else
        *is_step = true;
    return EBB_OK;
}

/* -- Sharing the KV pool ---------------------------------------------------------------- */

/* K, V and logits of all its ids are there: no other sequence took its blocks. */
static bool is_computed(const one_of_several *a)
{
    size_t n;

    (void)ebb_session_ids(a->session, &n);
    return n == a->n_ids && ebb_session_logits(a->session);
}

static void preempt(several *v, one_of_several *a)
{
    a->is_waiting = true;
    v->n_running--;
    v->most = v->n_running > 1 ? v->n_running : 1;
}

/* Answers whose blocks were taken wait; as many as fit the KV pool resume, in their order. */
static ebb_status resume(several *v, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = v->n; i-- > 0;)
        if (!v->all[i].has_ended && !v->all[i].is_waiting && !is_computed(&v->all[i]))
            preempt(v, &v->all[i]);
    for (uint32_t i = 0; i < v->n && st == EBB_OK; i++) {
        one_of_several *a = &v->all[i];

        if (a->has_ended || !a->is_waiting || v->n_running >= v->most)
            continue;
        ebb_session_set_cache_salt(a->session, &v->prompt_salt);         /* it has none once it was preempted */
        st = ebb_session_sync(a->session, a->ids, a->n_ids, NULL, err);
        a->is_waiting = st != EBB_OK;
        v->n_running += st == EBB_OK;
    }
    return st;
}

/* Those of which the state could not be brought back wait, too.  Returns how many steps are left. */
static size_t leave_lost_out(several *v, ebb_session_step *steps, one_of_several **of, size_t n)
{
    size_t n_left = 0, n_there;

    for (size_t i = 0; i < n; i++) {
        (void)ebb_session_ids(of[i]->session, &n_there);
        if (n_there + 1 != of[i]->n_ids) {
            preempt(v, of[i]);
            continue;
        }
        of[n_left] = of[i];
        steps[n_left++] = steps[i];
    }
    return n_left;
}

/* One pass with a token of each running answer.  If the KV pool is full, the last one waits. */
static ebb_status step(several *v, ebb_error *err)
{
    ebb_session_step steps[EBB_BACKEND_MAX_ANSWERS];
    one_of_several *of[EBB_BACKEND_MAX_ANSWERS];
    ebb_status st = resume(v, err);
    size_t n = 0;

    for (uint32_t i = 0; i < v->n && st == EBB_OK; i++) {
        one_of_several *a = &v->all[i];
        bool is_step = false;

        if (!a->has_ended && !a->is_waiting && is_computed(a))
            st = choose_token(v, a, &is_step, err);
        if (!is_step)
            continue;
        of[n] = a;
        steps[n++] = (ebb_session_step){ .session = a->session, .ids = &a->ids[a->n_ids - 1], .n = 1 };
    }
    if (st != EBB_OK || n == 0)
        return st;
    while (n > 0 && (st = ebb_sessions_append(steps, n, err)) == EBB_BUDGET && n > 1) {
        size_t n_left = leave_lost_out(v, steps, of, n);

        st = EBB_OK;
        if (n_left == n) {
            n_left--;
            preempt(v, of[n_left]);
            st = ebb_session_sync(of[n_left]->session, NULL, 0, NULL, err);
        }
        if (st != EBB_OK)
            return st;
        n = n_left;
    }
    return st;
}

/* -- All of them ------------------------------------------------------------------------- */

static ebb_status init_one(several *v, uint32_t i, ebb_error *err)
{
    one_of_several *a = &v->all[i];
    ebb_sampler_params sampling = v->l->sampling;
    size_t drop, n = v->l->n_ids;
    ebb_status st;

    sampling.seed = ebb_seed_behind(sampling.seed, i);
    a->which = i;
    a->sampler = ebb_sampler_new(&sampling, ebb_model_get_info(v->l->model)->n_vocab);
    a->detok = i > 0 ? ebb_detok_new(v->l->model, false) : v->l->detok;
    a->session = i > 0 ? NULL : v->l->session;
    if (!a->sampler || !a->detok)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %u answers", v->n);
    st = ebb_local_constrain(v->l, a->sampler, err);
    if (st != EBB_OK)
        return st;
    for (size_t k = 0; k < n; k++)
        if (!add_id(a, v->l->ids[k]))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for %u answers", v->n);
    for (size_t k = n > PRIMING ? n - PRIMING : 0; k < n && i > 0; k++)
        ebb_detok_push(a->detok, v->l->ids[k], &drop);
    a->is_waiting = i >= v->most;
    if (i > 0)
        st = a->is_waiting ? ebb_session_new(v->l->engine, &a->session, err)
                           : ebb_session_fork(v->l->session, &a->session, err);
    v->n_running += st == EBB_OK && !a->is_waiting;
    return st;
}

static void fini_one(one_of_several *a)
{
    ebb_sampler_free(a->sampler);
    free(a->ids);
    if (a->which == 0)
        return;
    ebb_session_free(a->session);
    ebb_detok_free(a->detok);
}

ebb_status ebb_local_decode_several(ebb_local *l, ebb_turn_stats *turn_stats, ebb_finish *finish,
                                    ebb_cache_salt *cache_salt, ebb_error *err)
{
    one_of_several all[EBB_BACKEND_MAX_ANSWERS] = { 0 };
    several v = { .l = l, .prompt_stats = turn_stats, .all = all, .n = l->n_answers,
                  .prompt_salt = ebb_session_get_cache_salt(l->session),
                  .limit = ebb_engine_max_sequences(l->engine), .begin_s = ebb_clock_s() };
    ebb_turn_stats first;
    ebb_status st = EBB_OK;

    v.most = v.limit = v.limit < v.n ? v.limit : v.n;
    for (uint32_t i = 0; i < v.n && st == EBB_OK; i++)
        st = init_one(&v, i, err);
    while (st == EBB_OK && has_unended(&v))
        st = atomic_load(&l->stop) ? EBB_FAIL(err, EBB_CANCELED, "stopped") : step(&v, err);
    for (uint32_t i = 0; i < v.n; i++)           /* answers that were stopped get their END event, too */
        if (!all[i].has_ended && all[i].session)
            end_one(&v, &all[i], EBB_FINISH_CANCELED);
    first = stats_of(&v, &all[0]);
    *turn_stats = first;
    *finish = all[0].finish;
    *cache_salt = all[0].drawn_salt;
    for (uint32_t i = 0; i < v.n; i++)
        fini_one(&all[i]);
    /* the first has its end, whatever became of the others */
    return st == EBB_CANCELED && all[0].finish != EBB_FINISH_CANCELED ? EBB_OK : st;
}
