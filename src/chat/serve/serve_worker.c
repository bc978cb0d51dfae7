/* The thread that has model and engine: loads, gives turns, sleeps (serve_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "conversation/chat.h"
#include "models/models.h"
#include "serve/serve_priv.h"

/* tokens of the KV pool reserved for an answer's growth; answers for which window pools and state
 * slots are sized */
enum { MARGIN = 64, ROOM_FOR = 4 };

/* -- Loading ------------------------------------------------------------------------------------------- */

/* The name of a file without its folder and .gguf: what others may know of it.  It has any bytes but a slash, and is a
 * text of every reply. */
static ebb_status name_model(ebb_serve *s, ebb_error *err)
{
    const char *file = ebb_text_file_name(s->path ? s->path : EBB_MODELS_GUIDE);
    ebb_buf name = { 0 };
    size_t n = strlen(file);

    n -= n > 5 && strcmp(file + n - 5, ".gguf") == 0 ? 5 : 0;
    if (!ebb_utf8_add_line(&name, file, n, false))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the model's name");
    pthread_mutex_lock(&s->lock);                /* who looks for a server asks before it is ready */
    s->name = ebb_buf_take(&name);
    if (!ebb_models_file_id(s->path, s->file))
        s->file[0] = '\0';
    pthread_mutex_unlock(&s->lock);
    return EBB_OK;
}

static void wake_on_evict(void *arg)
{
    ebb_serve *s = arg;

    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static void tell(ebb_serve *s, const char *line)
{
    ebb_log("serve", "%s", line);
    if (s->opts.tell && *line && !ebb_serve_is_leaving(s))       /* else who would be told may have left */
        s->opts.tell(s->opts.arg, line);
}

static void tell_unfollowed(ebb_serve *s)
{
    char list[200], line[sizeof list + sizeof EBB_UNFOLLOWED_LINE];

    if (!ebb_chat_unfollowed_sampling(s->model, list, sizeof list))
        return;
    snprintf(line, sizeof line, EBB_UNFOLLOWED_LINE, list);
    tell(s, line);
}

static ebb_status open_draft(ebb_serve *s, ebb_error *err)
{
    ebb_buf why = { 0 };
    ebb_status st = EBB_OK;

    if (s->draft_path && !s->opts.engine.no_speculation)
        st = ebb_models_open_draft(s->draft_path, s->model, &s->opts.engine, s->opts.models.draft_is_optional,
                                   &s->draft, &why, err);
    if (st == EBB_OK)
        tell(s, ebb_buf_text(&why));
    s->opts.engine.draft = s->draft;
    ebb_buf_fini(&why);
    return st;
}

static size_t most_sessions(const ebb_serve *s)
{
    uint32_t most = ebb_engine_max_sequences(s->engine);

    return most < SERVE_SESSIONS ? most : SERVE_SESSIONS;
}

static ebb_status load(ebb_serve *s, ebb_error *err)
{
    ebb_buf why = { 0 };
    ebb_status st = ebb_models_open(&s->opts.engine, &s->path, &s->model, &why, err);

    if (st == EBB_OK)
        tell(s, ebb_buf_text(&why));
    ebb_buf_fini(&why);
    if (st == EBB_OK)
        st = name_model(s, err);
    if (st == EBB_OK)
        st = open_draft(s, err);
    if (st == EBB_OK)
        st = ebb_prompter_new(s->model, &s->prompter, err);
    if (!s->opts.engine.n_sequences)
        s->opts.engine.n_sequences = ROOM_FOR;
    if (st == EBB_OK)
        st = ebb_engine_open(s->model, &s->opts.engine, NULL, NULL, &s->engine, err);
    if (st == EBB_OK)
        st = ebb_session_new(s->engine, &s->sessions[0], err);
    if (st != EBB_OK)
        return st;
    ebb_engine_on_evict(s->engine, wake_on_evict, s);
    s->n_ctx = ebb_engine_n_ctx(s->engine);
    s->sampling = s->opts.sampling;
    ebb_chat_advise_sampling(s->model, s->opts.sampling_given, &s->sampling);
    s->sampling_alone = ebb_sampler_params_default();
    ebb_chat_advise_sampling(s->model, 0, &s->sampling_alone);
    tell_unfollowed(s);
    s->is_recurrent = ebb_session_cannot_shift(s->sessions[0]) != NULL;
    s->n_most = most_sessions(s);
    return EBB_OK;
}

/* -- Turns ------------------------------------------------------------------------------------------------ */

/* Choose the free session whose sequence shares the longest prefix with the answer's ids. */
static bool choose_session(ebb_serve *s, ebb_served *a, ebb_error *err)
{
    size_t best = SERVE_SESSIONS, n_best = 0;

    for (size_t i = 0; i < SERVE_SESSIONS; i++) {
        const ebb_token *ids;
        size_t n, same = 0;

        if (s->session_users[i])
            continue;
        if (!s->sessions[i] && best < SERVE_SESSIONS)
            break;
        if (!s->sessions[i] && ebb_session_new(s->engine, &s->sessions[i], err) != EBB_OK)
            return false;
        ids = ebb_session_ids(s->sessions[i], &n);
        while (same < n && same < a->q.n_ids && ids[same] == a->q.ids[same])
            same++;
        if (best == SERVE_SESSIONS || same > n_best) {
            best = i;
            n_best = same;
        }
    }
    if (best == SERVE_SESSIONS)                  /* cannot be: no more answers than sessions have turns */
        return EBB_FAIL(err, EBB_BUSY, "no session is free") == EBB_OK;
    s->session_users[best] = a;
    a->session = s->sessions[best];
    return true;
}

static void free_session(ebb_serve *s, ebb_served *a)
{
    for (size_t i = 0; i < SERVE_SESSIONS; i++)
        if (s->session_users[i] == a)
            s->session_users[i] = NULL;
    a->session = NULL;
}

/* Pauses each answer; the one that was canceled, or NULL.  *n_free: sessions that nobody has. */
static ebb_served *pause_answers(ebb_serve *s, size_t *n_free)
{
    *n_free = most_sessions(s);
    for (ebb_served *a = s->answers; a; a = a->next) {
        if (a->state == SERVED_ENDED)
            continue;
        if (a->is_canceled)
            return a;
        a->is_paused = true;
        *n_free -= a->session && *n_free;
    }
    return NULL;
}

/* The answer that runs next: of those that fit the KV pool, the one whose last turn is longest ago.  Admitted is who
 * stands first in the line, until the pool is full: the many answers of one do not keep out the few of another, for
 * whom a quarter of the sessions is free.  Called with the lock held. */
static ebb_served *choose_turn(ebb_serve *s)
{
    size_t most_of_one = most_sessions(s) - most_sessions(s) / 4, n = 0, room = s->n_ctx, n_free;
    ebb_served *best = pause_answers(s, &n_free), *a;

    if (best)                                    /* a canceled one ends first */
        return best;
    while (n < s->n_most && (a = ebb_serve_next_in_line(s, most_of_one, n_free > 0)) != NULL) {
        size_t want = a->q.n_ids + MARGIN;

        if (n > 0 && want > room)
            break;
        a->is_paused = false;
        n_free -= !a->session;
        room -= want < room ? want : room;
        n++;
        if (!best || a->turn < best->turn)
            best = a;
    }
    return best;
}

/* Whoever still reads must not take what there is for all of it.  Under the lock. */
static void note_stopped(const ebb_serve *s, ebb_served *a)
{
    if (s->quit)
        EBB_FAIL(&a->error, EBB_BUSY, EBB_SERVE_LEAVES);
    else
        EBB_FAIL(&a->error, EBB_CANCELED, "the answer was stopped");
}

void ebb_serve_end(ebb_serve *s, ebb_served *a, ebb_finish finish, const ebb_error *err)
{
    double now_s = ebb_clock_s();

    if (a->session && finish != EBB_FINISH_ERROR)
        ebb_session_persist(a->session);
    ebb_sampler_free(a->sampler);
    ebb_detok_free(a->detok);
    a->sampler = NULL;
    a->detok = NULL;
    free_session(s, a);
    s->n_most += s->n_most < most_sessions(s);
    pthread_mutex_lock(&s->lock);
    a->finish = finish;
    if (err)
        a->error = *err;
    if (finish == EBB_FINISH_CANCELED)
        note_stopped(s, a);
    a->stats.decode_s = a->stats.n_generated > 1 ? now_s - a->decode_from_s : 0; /* the first takes no pass */
    a->state = SERVED_ENDED;
    ebb_grammar_free(a->q.grammar);              /* it may be kept for long, and be large */
    a->q.grammar = NULL;
    ebb_serve_leave_line(s, a);
    a->ended_s = s->used_s = now_s;
    s->n_prompt_tokens += a->stats.n_computed;
    s->n_reused_tokens += a->stats.n_reused;
    s->n_generated_tokens += a->stats.n_generated;
    s->prefill_s += a->stats.prefill_s;
    s->decode_s += a->stats.decode_s;
    s->n_canceled += finish == EBB_FINISH_CANCELED;
    s->n_failed += finish == EBB_FINISH_ERROR;
    ebb_served_notify(a);
    ebb_serve_sweep(s, now_s);
    pthread_mutex_unlock(&s->lock);
}

/* Who takes the turn together with `first`: all that are being written, and of those that are read the one whose last
 * turn was longest ago.  Under the lock. */
static size_t choose_batch_mates(ebb_serve *s, ebb_served *first, ebb_served *all[SERVE_SESSIONS])
{
    ebb_served *prompt = first->state == SERVED_DECODE ? NULL : first;
    bool has_prompt = prompt != NULL;
    size_t n = 0;

    all[n++] = first;
    for (ebb_served *a = s->answers; a; a = a->next) {
        if (a == first || a->state == SERVED_ENDED || a->is_paused || a->is_canceled)
            continue;
        if (a->state == SERVED_DECODE && n < SERVE_SESSIONS)
            all[n++] = a;
        else if (a->state != SERVED_DECODE && !has_prompt && (!prompt || a->turn < prompt->turn))
            prompt = a;
    }
    if (prompt && !has_prompt && n < SERVE_SESSIONS)
        all[n++] = prompt;
    return n;
}

/* Keep in all[] the answers that have or get a session; the others end with an error. */
static size_t seat(ebb_serve *s, ebb_served *all[SERVE_SESSIONS], size_t n)
{
    ebb_error err = { 0 };
    size_t n_seated = 0;

    for (size_t i = 0; i < n; i++) {
        if (all[i]->session || choose_session(s, all[i], &err))
            all[n_seated++] = all[i];
        else
            ebb_serve_end(s, all[i], EBB_FINISH_ERROR, &err);
    }
    return n_seated;
}

/* Called with the lock held; releases it during the pass. */
static void give_turn(ebb_serve *s, ebb_served *a)
{
    bool is_canceled = a->is_canceled;
    ebb_served *all[SERVE_SESSIONS];
    size_t n = is_canceled ? 1 : choose_batch_mates(s, a, all);

    s->running = n == 1 ? a : NULL;              /* a pass of several ends for none of them */
    pthread_mutex_unlock(&s->lock);
    if (is_canceled) {
        ebb_serve_end(s, a, EBB_FINISH_CANCELED, NULL);
    } else {
        n = seat(s, all, n);
        if (n > 1)
            ebb_serve_shared_turn(s, all, n);
        else if (n == 1)
            ebb_serve_turn(s, all[0]);
    }
    pthread_mutex_lock(&s->lock);
    s->running = NULL;
    ebb_engine_cancel_clear(s->engine);
}

/* -- Waiting -------------------------------------------------------------------------------------------------- */

/* A full disk costs the K and V that would be kept, and no answer: one line says so. */
static void tell_cache_notice(ebb_serve *s)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    ebb_stats stats;

    ebb_engine_stats(s->engine, &stats);
    if (stats.memory_event.code != EBB_MEMORY_CACHE_NOTICE || stats.memory_event.number == s->n_told)
        return;
    s->n_told = stats.memory_event.number;
    tell(s, ebb_memory_event_text(&stats.memory_event, line, sizeof line));
}

/* Reload evicted layers; true: call again in a second, more could be reloaded. */
static bool tend_engine(ebb_serve *s)
{
    bool more;

    pthread_mutex_unlock(&s->lock);
    more = ebb_engine_idle(s->engine);
    tell_cache_notice(s);
    pthread_mutex_lock(&s->lock);
    return more;
}

/* Seconds that the worker may sleep: to the next thing that time brings. */
static double sleep_s(const ebb_serve *s, bool is_tending)
{
    double most = 3600, now_s = ebb_clock_s();

    if (is_tending)
        return 1;
    if (s->answers)
        most = 60;                               /* kept answers expire */
    if (s->opts.leave_s && s->used_s + s->opts.leave_s - now_s < most)
        most = s->used_s + s->opts.leave_s - now_s;
    return most > 0.01 ? most : 0.01;
}

static void sleep_until_woken(ebb_serve *s, double seconds)
{
    struct timespec until;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &until);
    ns = (uint64_t)until.tv_nsec + (uint64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&s->wake, &s->lock, &until);
}

static ebb_served *first_unended(const ebb_serve *s)
{
    ebb_served *a = s->answers;

    while (a && a->state == SERVED_ENDED)
        a = a->next;
    return a;
}

/* At the user's own socket whoever is connected is going to ask; over TCP he may only keep his connection. */
static bool is_awaited(const ebb_serve *s)
{
    return (s->opts.is_unix ? ebb_http_server_n_connections(s->http) : ebb_http_server_n_requests(s->http)) > 0;
}

static bool may_leave(ebb_serve *s)
{
    if (!s->opts.leave_s || ebb_clock_s() - s->used_s < s->opts.leave_s || first_unended(s))
        return false;
    if (!is_awaited(s))
        return true;
    s->used_s = ebb_clock_s();
    return false;
}

static void work(ebb_serve *s)
{
    bool is_tending = true;

    while (!s->quit && !s->has_left) {
        ebb_served *a = choose_turn(s);
        if (a) {
            give_turn(s, a);
            is_tending = true;
            continue;
        }
        ebb_serve_sweep(s, ebb_clock_s());
        is_tending = is_tending && tend_engine(s);
        if (may_leave(s))
            s->has_left = s->quit = true;
        else if (!s->quit && !choose_turn(s))
            sleep_until_woken(s, sleep_s(s, is_tending));
    }
    for (ebb_served *a; (a = first_unended(s)) != NULL;) {
        pthread_mutex_unlock(&s->lock);
        ebb_serve_end(s, a, EBB_FINISH_CANCELED, NULL);
        pthread_mutex_lock(&s->lock);
    }
}

void *ebb_serve_worker(void *arg)
{
    ebb_serve *s = arg;
    ebb_error err = { 0 };
    ebb_buf line = { 0 };
    bool is_orphan;
    ebb_status st = load(s, &err);

    if (st == EBB_OK)
        ebb_buf_addf(&line, "%s answers, with a context of %u tokens", s->name, s->n_ctx);
    tell(s, ebb_buf_text(&line));
    ebb_buf_fini(&line);
    pthread_mutex_lock(&s->lock);
    s->is_ready = st == EBB_OK;
    s->has_failed = st != EBB_OK;
    s->error = err;
    s->used_s = ebb_clock_s();
    if (st == EBB_OK)
        work(s);
    is_orphan = s->is_orphan;
    pthread_mutex_unlock(&s->lock);
    if (is_orphan)
        ebb_serve_free(s);
    return NULL;
}
