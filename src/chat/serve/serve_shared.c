/* A turn of several answers in one pass (serve_priv.h).
 *
 * Of a prompt beside them so much is computed that the pass takes at most PATIENCE times what it takes without:
 * nobody waits longer for a token because somebody else asks something long.  Nor because a grammar makes choices long:
 * what they take beyond about as much as a pass, their answers sit out. */
#include "base/clock.h"
#include "serve/serve_priv.h"

#define PATIENCE 2.5
#define LEARN_OVER 8
#define LEAST_CHOICES_S 0.002    /* that the choices of a pass may take */

enum { BESIDE_FIRST = 32, BESIDE_LEAST = 4 };

typedef struct shared_turn {
    ebb_session_step steps[SERVE_SESSIONS];
    ebb_served *of[SERVE_SESSIONS];
    size_t      n;
    ebb_served *prompt;          /* which of them takes a part of its prompt; NULL: none */
    size_t      n_prompt;        /* tokens of that part */
} shared_turn;

static void add_step(shared_turn *t, ebb_served *a, size_t from, size_t end)
{
    t->of[t->n] = a;
    t->steps[t->n++] = (ebb_session_step){ .session = a->session, .ids = a->q.ids + from, .n = end - from };
    if (a->state == SERVED_DECODE)
        return;
    t->prompt = a;
    t->n_prompt = end - from;
}

/* The session lacks more of its sequence than the last pass, which was undone, was to add. */
static bool is_behind(const ebb_served *a)
{
    size_t n;

    (void)ebb_session_ids(a->session, &n);
    if (a->state == SERVED_DECODE)
        return !ebb_serve_is_computed(a) && (n == 0 || n + 1 != a->q.n_ids);
    return a->state == SERVED_WAITING || n == 0 || n >= a->q.n_ids;
}

/* Lost positions are restored from the prefix cache or computed again, in a pass of their own. */
static void catch_up(ebb_serve *s, ebb_served *a)
{
    ebb_error err = { 0 };
    ebb_status st;

    if (a->state == SERVED_DECODE)
        ebb_serve_run_fewer(s);
    st = ebb_serve_prefill(s, a, s->n_beside, &err);
    ebb_serve_end_failed(s, a, st, &err);
}

/* Behind the others: of the pass it gets what their tokens leave, one at least, since no more answers run at once than
 * a pass has tokens (ebb_engine_max_sequences). */
static void join_prompt(ebb_serve *s, shared_turn *t, ebb_served *a)
{
    size_t room = ebb_engine_n_batch(s->engine) - t->n, n;

    (void)ebb_session_ids(a->session, &n);
    add_step(t, a, n, ebb_serve_part_end(s, a, n, s->n_beside < room ? s->n_beside : room));
}

/* A pass pays for choices about as long as it takes itself, the same for each answer under a grammar. */
static void pay_choices(const ebb_serve *s, ebb_served *const *all, size_t n)
{
    double paid_s = s->token_pass_s > LEAST_CHOICES_S ? s->token_pass_s : LEAST_CHOICES_S, least_s = 0;
    size_t n_owing = 0;

    for (size_t i = 0; i < n; i++)
        n_owing += all[i]->owed_s > 0;
    for (size_t i = 0; i < n; i++) {
        double left_s = all[i]->owed_s - paid_s / (double)(n_owing ? n_owing : 1);

        all[i]->owed_s = left_s > 0 ? left_s : 0;
        least_s = i == 0 || all[i]->owed_s < least_s ? all[i]->owed_s : least_s;
    }
    for (size_t i = 0; i < n; i++)               /* they would sit out for nobody */
        all[i]->owed_s -= least_s;
}

static void join(ebb_serve *s, shared_turn *t, ebb_served *a)
{
    double begin = ebb_clock_s();
    bool has_ended = false;
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;

    if (ebb_serve_is_computed(a))
        st = ebb_serve_next_token(s, a, &has_ended, &err);
    if (!has_ended && st == EBB_OK && a->q.grammar)
        a->owed_s += ebb_clock_s() - begin;
    if (st != EBB_OK)
        ebb_serve_end_failed(s, a, st, &err);
    else if (!has_ended)
        add_step(t, a, a->q.n_ids - 1, a->q.n_ids);
}

static void leave_out(shared_turn *t, size_t i)
{
    if (t->of[i] == t->prompt)
        t->prompt = NULL;
    t->n--;
    t->of[i] = t->of[t->n];
    t->steps[i] = t->steps[t->n];
}

/* Preempts the prompt first, then the answer that came last. */
static ebb_status drop_one(ebb_serve *s, shared_turn *t, ebb_error *err)
{
    size_t i = t->n - 1;

    for (size_t k = 0; k < t->n; k++)
        i = t->of[k] == t->prompt ? k : i;
    ebb_serve_run_fewer(s);
    if (ebb_session_sync(t->of[i]->session, NULL, 0, NULL, err) != EBB_OK)
        return err->code;
    leave_out(t, i);
    return EBB_OK;
}

/* Those whose sequence is not what their step goes on from, since its state could not be brought back: they catch up
 * in their next turn.  false: there is none. */
static bool leave_lost_out(shared_turn *t)
{
    size_t n_before = t->n, n;

    for (size_t i = t->n; i-- > 0;) {
        (void)ebb_session_ids(t->of[i]->session, &n);
        if (t->of[i]->q.ids + n != t->steps[i].ids)
            leave_out(t, i);
    }
    return t->n < n_before;
}

static ebb_status run_steps(ebb_serve *s, shared_turn *t, ebb_error *err)
{
    ebb_status st = ebb_sessions_append(t->steps, t->n, err);

    while (st == EBB_BUDGET && t->n > 1) {
        st = leave_lost_out(t) ? EBB_OK : drop_one(s, t, err);
        if (st == EBB_OK && t->n > 0)
            st = ebb_sessions_append(t->steps, t->n, err);
    }
    return st;
}

/* How much of a prompt the others can bear. */
static void learn(ebb_serve *s, const shared_turn *t, double seconds)
{
    if (!t->prompt) {
        s->token_pass_s += s->token_pass_s > 0 ? (seconds - s->token_pass_s) / LEARN_OVER : seconds;
    } else if (s->token_pass_s > 0 && seconds > PATIENCE * s->token_pass_s) {
        s->n_beside = s->n_beside * 2 / 3 > BESIDE_LEAST ? s->n_beside * 2 / 3 : BESIDE_LEAST;
    } else if (t->n_prompt == s->n_beside && s->n_beside < ebb_engine_n_batch(s->engine) / 2 &&
               seconds < PATIENCE / 1.5 * s->token_pass_s) {
        s->n_beside += s->n_beside / 2;
    }
}

void ebb_serve_shared_turn(ebb_serve *s, ebb_served *const *all, size_t n)
{
    bool has_caught_up[SERVE_SESSIONS] = { false };
    shared_turn t = { .n = 0 };
    ebb_served *prompt = NULL;                   /* one at most (choose_batch_mates) */
    ebb_error err = { 0 };
    double begin;
    ebb_status st;

    s->n_beside = s->n_beside ? s->n_beside : BESIDE_FIRST;
    pay_choices(s, all, n);                      /* first, for who catches up may end, and be gone */
    for (size_t i = 0; i < n; i++) {             /* first, for it may take the place of others */
        all[i]->turn = ++s->n_turns;
        has_caught_up[i] = is_behind(all[i]);
        if (has_caught_up[i])
            catch_up(s, all[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (has_caught_up[i] || is_behind(all[i]))
            continue;
        if (all[i]->state != SERVED_DECODE)
            prompt = all[i];
        else if (all[i]->owed_s <= 0)
            join(s, &t, all[i]);
    }
    if (prompt)
        join_prompt(s, &t, prompt);
    if (t.n == 0)
        return;
    begin = ebb_clock_s();
    st = run_steps(s, &t, &err);
    if (st == EBB_OK) {
        double seconds = ebb_clock_s() - begin;

        learn(s, &t, seconds);
        s->n_shared_passes += t.n > 1;
        if (t.prompt) {
            size_t done;

            (void)ebb_session_ids(t.prompt->session, &done);
            ebb_serve_note_progress(s, t.prompt,
                                    &(ebb_sync_result){ .n_computed = (uint32_t)t.n_prompt, .seconds = seconds }, done);
        }
    }
    /* CANCELED: an answer that was stopped ends by its own flag, the others continue */
    for (size_t i = 0; i < t.n && st != EBB_CANCELED; i++)
        ebb_serve_end_failed(s, t.of[i], st, &err);
}
